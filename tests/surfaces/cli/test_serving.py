"""How servers end: on a signal, when the client goes, and while a model hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notewell.launcher import NEUTRAL
from tests.conftest import Write
from tests.surfaces.engine.conftest import until
from tests.surfaces.server.served import Served

HANGING = """
import sys, threading
from notewell.embed import registry
from notewell.embed.local.hashed import HashedEmbedder

class Hanging(HashedEmbedder):
    def embed(self, texts, role):
        threading.Event().wait()

registry.embedder = lambda *given, **more: Hanging()
from notewell.surfaces.cli.main import main
main()
"""
MODELS = {"answers": ["-m", "notewell.surfaces.cli.main"], "hangs": ["-c", HANGING]}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write) -> Path:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081 now.\n")
    return root


@contextmanager
def running(model: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    line = [sys.executable, *MODELS[model], *arguments, "--setting", "embed.deadline_s=0.2"]
    process = subprocess.Popen(
        line,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_serve_ends_on_a_signal(root: Path, model: str, number: signal.Signals, code: int) -> None:
    with running(model, "serve", "-w", str(root), "--port", "0", "--model", "local") as process:
        assert process.stderr is not None
        served = Served.told(process.stderr.readline().decode())
        assert "8081" in json.dumps(served.get("/api/search?query=staging+port").json["results"])
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == code, err
        assert b"Traceback" not in err
        assert out == b""


def serve(root: Path, *more: str, **how: Any) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "notewell", "serve", "-w", str(root), "--port", "0", *more]
    return subprocess.Popen([*line, "--model", "none"], text=True, **how)


@contextmanager
def printing(root: Path, *more: str, **env: str) -> Iterator[str]:
    """The first line of a server that is there meanwhile."""
    with serve(root, *more, stderr=subprocess.PIPE, env={**os.environ, **env}) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline()
        finally:
            process.kill()


def test_the_address_ends_in_a_token_that_is_new_with_each_start(root: Path) -> None:
    tokens = []
    for _ in range(2):
        with printing(root) as line:
            tokens.append(Served.told(line).token)
            assert line.startswith(f"notewell serves {root} at http://127.0.0.1:")
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 32


def test_a_token_of_ones_own_is_not_printed(root: Path, tmp_path: Path) -> None:
    own = "a-token-of-thirty-two-characters"
    file = tmp_path / "token"
    file.write_text(own)
    file.chmod(0o600)
    for more, env in (([], {"NOTEWELL_TOKEN": own}), (["--token-file", str(file)], {})):
        with printing(root, *more, **env) as line:
            assert line.rstrip().endswith("/")
            assert own not in line


def test_the_address_is_a_number_where_localhost_was_asked_for(root: Path) -> None:
    with printing(root, "--host", "localhost") as line:
        assert " at http://127.0.0.1:" in line


def test_a_log_that_others_may_read_gets_no_token(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as out, serve(root, stderr=out) as process:
        try:
            until(lambda: "\n" in log.read_text(), "it says where it is")
        finally:
            process.kill()
    assert "token=" not in log.read_text()


def test_without_a_token_it_says_who_gets_in(root: Path) -> None:
    for more, can in (([], "read and change these notes"), (["--read-only"], "read these notes")):
        with serve(root, "--anyone-on-this-machine", *more, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            assert process.stderr.readline().rstrip().endswith("/")
            said = process.stderr.readline()
            process.kill()
        assert said == f"warning: every user of this machine can {can} there\n"


@pytest.mark.parametrize(
    ("more", "env", "words"),
    [
        (["--host", "0.0.0.0"], {}, "so a token is needed"),
        (["--host", "0.0.0.0", "--anyone-on-this-machine"], {}, "so a token is needed"),
        (
            ["--anyone-on-this-machine"],
            {"NOTEWELL_TOKEN": "x" * 16},
            "you gave a token and also --anyone",
        ),
        ([], {"NOTEWELL_TOKEN": "short"}, "at least 16 ASCII characters"),
    ],
)
def test_what_would_let_others_in_is_refused(
    root: Path, more: list[str], env: dict[str, str], words: str
) -> None:
    with serve(root, *more, stderr=subprocess.PIPE, env={**os.environ, **env}) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert words in err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems open it in other ways")
def test_the_browser_is_opened_without_the_token_in_its_command_line(
    root: Path, tmp_path: Path
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\n(pwd; echo "$@") > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o700)
    with printing(root, "--open", BROWSER=f"{browser} %s") as line:
        until(opened.exists, "the browser is started")
        assert opened.read_text().splitlines() == [NEUTRAL, line.split()[-1].partition("#")[0]]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("end", ["stdin", "term", "int"])
def test_mcp_ends_with_its_client_or_on_a_signal(root: Path, model: str, end: str) -> None:
    with running(model, "mcp", "-w", str(root), "--model", "local") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        said = json.loads(process.stdout.readline())["result"]["instructions"]
        assert "1 note in 1 passage" in said
        call = {"name": "memory_search", "arguments": {"query": "staging port"}}
        for one in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        ):
            process.stdin.write(json.dumps(one).encode() + b"\n")
        process.stdin.flush()
        assert b"8081" in process.stdout.readline()
        if end != "stdin":
            process.send_signal(signal.SIGTERM if end == "term" else signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == {"stdin": 0, "term": 0, "int": 130}[end], err
        assert b"Traceback" not in err
