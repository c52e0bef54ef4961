"""Engines for tests: real processes in a runtime folder of their own, none of which outlives its
test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.engine.attach import NoAnswerError, ask
from notewell.surfaces.engine.launch import living, places
from notewell.surfaces.engine.place import Place
from notewell.surfaces.engine.thin import place_of

PATIENCE_S = 60.0
# as the program, which looks for no module where it works
NOTEWELL = [sys.executable, "-P", "-m", "notewell"]


def until(met: Callable[[], Any], what: str) -> Any:
    """Waits until a condition holds, and returns what it returned."""
    end = time.monotonic() + PATIENCE_S
    while not (found := met()):
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.02)
    return found


class Desk:
    """A workspace with some notes, and the engines and commands that a test runs for it."""

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        self.root, self.env = root, env
        self.processes: list[subprocess.Popen[Any]] = []

    @property
    def place(self) -> Place:
        place = place_of(os.path.realpath(self.root), (), self.env)
        assert place is not None
        return place

    def run(self, *words: str, sent: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """Runs a command in the workspace, as a person or a host would."""
        whole = {**self.env, **env}
        done = subprocess.run(
            [*NOTEWELL, *words],
            cwd=self.root,
            env=whole,
            input=sent,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done

    def alone(self, *words: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """The same without any engine."""
        return self.run(*words, sent=sent, NOTEWELL_ENGINE_ENABLED="0")

    def spawn(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        given = {"cwd": self.root, "env": self.env, **more}
        made: subprocess.Popen[bytes] = subprocess.Popen([*NOTEWELL, *words], **given)
        self.processes.append(made)
        return made

    def start(self) -> subprocess.Popen[bytes]:
        """An engine that is ready."""
        made = self.spawn("engine", "run", "-w", str(self.root))
        self.wait_ready()
        return made

    def wait_ready(self) -> dict[str, Any]:
        found: dict[str, Any] = until(
            lambda: one if (one := self.status()).get("ready") else None, "an engine is ready"
        )
        return found

    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(ask(self.place, "status", silence_s=60.0).out)
        except NoAnswerError:
            return {}
        return found

    def _is_engine(self, entry: Path) -> bool:
        """Whether a process is an engine of this test, perhaps one that does not listen yet."""
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return False
        return "engine" in words and any(
            word.startswith(os.fspath(self.root.parent)) for word in words
        )

    @staticmethod
    def _kill(pids: Iterable[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends everything, whatever state it is in."""
        self._kill({made.pid for made in self.processes if made.poll() is None})
        self._kill(
            int(entry.parent.name)
            for entry in Path("/proc").glob("[0-9]*/cmdline")
            if self._is_engine(entry)
        )
        # now that none is left which was stopped in a test and would not answer
        for place in living(self.env):
            with contextlib.suppress(NoAnswerError):
                self._kill([json.loads(ask(place, "status", silence_s=60.0).out)["pid"]])
        for made in self.processes:
            made.wait(timeout=30)
            for stream in (made.stdin, made.stdout, made.stderr):
                if stream is not None:
                    stream.close()
        until(lambda: not living(self.env), "no engine is left")
        assert places(self.env) == []


@pytest.fixture
def desk(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    runtime = Path(tempfile.mkdtemp(prefix="nw", dir="/tmp"))  # a socket's path must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.delenv("NOTEWELL_ENGINE_ENABLED")
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_HOOK_CONFIDENCE", "0.1")  # such a model makes nobody sure
    (root / "memory").mkdir()
    (root / "memory/2026-02-10.md").write_text("# Standup\n\nThe staging port is 8081.\n")
    (root / "memory/deploy.md").write_text(
        "# Deploy\n\nWe deploy on Fridays, from the café. 我们周五部署。\n"
    )
    made = Desk(root, dict(os.environ))
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(runtime)
