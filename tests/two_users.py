"""Two real users of this machine, neither of whom is the one who runs the tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ALONE = (
    "what one user does to another was not tried: that needs root, and a Python that others may run"
)
# Python itself may be in a home that is closed to others. This lets them read there, and write
# nowhere.
_READS = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
_SOURCE = str(Path(__file__).parents[1] / "src")


@dataclass(frozen=True)
class Person:
    """A user with a home, who runs commands there."""

    number: int
    home: Path
    further: tuple[str, ...] = ()

    @property
    def env(self) -> dict[str, str]:
        """The environment of their commands."""
        kept = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": _SOURCE,
            "NO_COLOR": "1",
        }
        return {**kept, "NOTEWELL_ENGINE_ENABLED": "0", "NOTEWELL_EMBED_MODEL": "none"}

    def does(
        self,
        *command: str,
        cwd: Path | None = None,
        sent: str = "",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as this user."""
        who = (
            "setpriv",
            f"--reuid={self.number}",
            f"--regid={self.number}",
            "--clear-groups",
            *self.further,
            "--",
        )
        return subprocess.run(
            (*who, *command),
            cwd=cwd or self.home,
            env={**self.env, **(env or {})},
            input=sent,
            capture_output=True,
            text=True,
            umask=0o022,
            check=False,
            timeout=60,
        )

    def notewell(
        self, *arguments: str, cwd: Path, sent: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs notewell as this user."""
        return self.does(
            sys.executable, "-P", "-m", "notewell", *arguments, cwd=cwd, sent=sent, env=env
        )

    def found(self, *arguments: str, cwd: Path, **env: str) -> dict[str, Any]:
        """The answer of a command."""
        done = self.notewell(*arguments, "--json", cwd=cwd, **env)
        assert done.stdout, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def hook(self, event: str, cwd: Path, **given: str) -> dict[str, Any]:
        """What a host gets for an event."""
        sent = json.dumps({"session_id": "s", "cwd": str(cwd), **given})
        done = self.notewell("hook", event, cwd=cwd, sent=sent)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        return answer

    def writes(self, place: Path, text: str) -> Path:
        """Writes a file, and the folders that it needs, as this user."""
        code = (
            "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.parent.mkdir(parents=True, "
            "exist_ok=True); "
        )
        done = self.does(
            sys.executable, "-c", code + "p.write_text(sys.stdin.read())", str(place), sent=text
        )
        assert done.returncode == 0, done.stderr
        return place


@dataclass(frozen=True)
class Machine:
    """Two users, and a folder like `/tmp`, where both may write but neither may remove what is the
    other's.
    """

    victim: Person
    mallory: Person
    shared: Path


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with two users; skipped where nobody can be somebody else."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip(ALONE)
    base = Path(tempfile.mkdtemp(prefix="notewell-users-", dir="/tmp"))
    try:
        base.chmod(0o755)
        shared = base / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        numbers = {"victim": 54321, "mallory": 54322}
        for name, number in numbers.items():
            (base / name).mkdir(mode=0o755)
            os.chown(base / name, number, number)
        for further in (_READS, ()):
            victim, mallory = (
                Person(number, base / name, further) for name, number in numbers.items()
            )
            tried = victim.does(sys.executable, "-P", "-c", "import notewell.memory")
            if not tried.returncode:
                yield Machine(victim, mallory, shared)
                return
        pytest.skip(f"{ALONE}: {tried.stderr[-200:]}")
    finally:
        shutil.rmtree(base, ignore_errors=True)
