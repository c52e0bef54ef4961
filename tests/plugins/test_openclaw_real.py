"""The plugin inside the real OpenClaw, set up by `notewell install`, with a model that is a few
lines on loopback.

Needs `openclaw` and the node that it asks for on the PATH: npm install openclaw node@24, and add
node_modules/.bin.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.cli.commands import run
from tests.plugins.fake_model import FakeModel, fake_model

TOKEN = "0123456789abcdef0123"
SAMPLE = Path(__file__).parents[2] / "src/notewell/surfaces/sample"
QUESTION = "which port does staging answer on"
LIMIT_S = 240


def version() -> str:
    """The version of OpenClaw that can be run here; empty if none can."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(
            ["openclaw", "--version"], capture_output=True, text=True, timeout=60, check=True
        )
        found = re.search(r"\d{4}\.\d+\.\d+", said.stdout)
        return found[0] if found else ""
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not shutil.which("openclaw"), reason="there is no openclaw here"),
]


@dataclass
class Host:
    """A home with OpenClaw's settings, a workspace of notes, and the model that its agent asks."""

    home: Path
    notes: Path
    model: FakeModel
    port: int

    @property
    def env(self) -> dict[str, str]:
        """Without what belongs to whoever runs the tests."""
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("OPENCLAW_", "NOTEWELL_", "XDG_"))
        }
        return kept | {
            "HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join(sys.path),
            "NO_COLOR": "1",
        }

    def openclaw(self, *words: str) -> str:
        done = subprocess.run(
            ["openclaw", *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def children(self) -> list[int]:
        """The processes of ours that serve these notes."""
        found = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = one.read_bytes().split(b"\0")
                if b"mcp" in words and str(self.notes).encode() in words:
                    found.append(int(one.parent.name))
        return found

    def turn(self, session: str, *more: str) -> str:
        """The answer of the agent to a question, after which nothing of ours may run any more, but
        in a gateway.
        """
        self.model.asked.clear()
        return self.openclaw(
            "agent",
            "--agent",
            "main",
            "--session-id",
            session,
            "--json",
            "-m",
            f"{QUESTION}?",
            *more,
        )


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    if not version():
        pytest.skip("openclaw does not run with the node here")
    home = tmp_path_factory.mktemp("openclaw")
    notes = home / "notes"
    shutil.copytree(SAMPLE, notes)
    with socket.create_server(("127.0.0.1", 0)) as free, fake_model() as model:
        port = free.getsockname()[1]
        free.close()
        fake = {"id": "fake", "name": "fake", "contextWindow": 32_000, "maxTokens": 1_000}
        provider = {
            "baseUrl": f"http://127.0.0.1:{model.port}/v1",
            "apiKey": "x",
            "api": "openai-completions",
            "models": [fake],
        }
        settings = {
            "agents": {
                "defaults": {
                    "workspace": str(notes),
                    "skipBootstrap": True,
                    "model": {"primary": "fake/fake"},
                }
            },
            "models": {"providers": {"fake": provider}},
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": port,
                "auth": {"mode": "token", "token": TOKEN},
            },
        }
        file = home / ".openclaw/openclaw.json"
        file.parent.mkdir()
        file.write_text(json.dumps(settings, indent=2), encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(home))
            assert run(["install", "openclaw", "--yes"]) == 0
        yield Host(home, notes, model, port)


def until(true: Callable[[], Any], limit_s: float = 120.0) -> Any:
    end = time.monotonic() + limit_s
    while not (found := true()):
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.2)
    return found


def test_the_command_line_is_ours(host: Host) -> None:
    told = host.openclaw("memory", "search", QUESTION, "--max-results", "2", "--json")
    results = json.loads(told[told.index("{") :])["results"]
    assert results[0]["citation"] == "memory/2026-09-03.md#L5-L7"
    assert "notes," in host.openclaw("memory", "status")
    assert "unchanged" in host.openclaw("memory", "index")
    until(lambda: not host.children(), 20)


def test_a_turn_calls_our_tool_and_is_told_about_it(host: Host) -> None:
    answer = host.turn("one", "--local")
    assert "9443" in answer
    assert "DONE" in answer
    assert "## Memory" in host.model.texts()
    until(lambda: not host.children(), 20)


def test_the_engine_may_be_killed_in_mid_turn(host: Host) -> None:
    """Between the question of the model and the tool that answers it."""
    killed: list[int] = []

    def kill() -> None:
        for pid in host.children():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with gateway(host):
        assert "9443" in host.turn("two")
        assert host.children()
        host.model.before = kill
        try:
            assert "9443" in host.turn("three")
        finally:
            host.model.before = lambda: None
        assert killed
        assert not set(killed) & set(host.children())
    until(lambda: not host.children(), 20)


def test_stopped_and_started_again_it_finds_what_was_written_meanwhile(host: Host) -> None:
    with gateway(host):
        assert search(host, QUESTION)
    until(lambda: not host.children(), 20)
    (host.notes / "memory/2026-11-02.md").write_text(
        "# Walrus\n\nThe walrus moved to Oslo.\n", encoding="utf-8"
    )
    index = host.notes / ".notewell/index.sqlite"
    index.write_bytes(b"an index of another time")  # an upgrade that cannot read the old index
    with gateway(host):
        assert "Oslo" in json.dumps(search(host, "where did the walrus move"))
        assert index.read_bytes().startswith(b"SQLite format 3")


def test_an_uninstall_gives_the_slot_back(host: Host) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(host.home))
        assert run(["install", "openclaw", "--uninstall", "--yes"]) == 0
    told = host.openclaw("plugins", "list", "--json")
    assert "memory-notewell" not in told


@contextlib.contextmanager
def gateway(host: Host) -> Iterator[None]:
    """A gateway that answers on loopback; ended as its service ends it."""
    log = host.home / "gateway.log"
    with log.open("ab") as out:
        process = subprocess.Popen(["openclaw", "gateway"], env=host.env, stdout=out, stderr=out)
        try:
            until(lambda: _ready(host.port), LIMIT_S)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as one,
    ):
        one.request("GET", "/readyz")
        with one.getresponse() as answer:
            return answer.status == 200
    return False


def search(host: Host, query: str) -> list[Any]:
    """What the gateway's own door to tools says."""
    body = json.dumps({"tool": "memory_search", "args": {"query": query, "maxResults": 2}})
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", host.port, timeout=LIMIT_S)
    ) as connection:
        connection.request("POST", "/tools/invoke", body, headers)
        with connection.getresponse() as answer:
            told = json.loads(answer.read())
            assert answer.status == 200, told
    results = json.loads(told["result"]["content"][0]["text"])["results"]
    assert isinstance(results, list)
    return results
