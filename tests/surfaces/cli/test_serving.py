"""How servers end: on a signal, when the client goes, and while a model hangs."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Write

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
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write) -> Path:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081 now.\n")
    return root


@contextmanager
def running(model: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    line = [sys.executable, *MODELS[model], *arguments, "--setting", "embed.deadline_s=0.2"]
    process = subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
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
        address = process.stderr.readline().decode().rsplit(" ", 1)[1].strip()
        connection = http.client.HTTPConnection("127.0.0.1", int(address.strip("/").rsplit(":", 1)[1]), timeout=20)
        connection.request("GET", "/api/search?query=staging+port")
        found = json.load(connection.getresponse())
        connection.close()
        assert "8081" in json.dumps(found["results"])
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert process.returncode == code, err
        assert b"Traceback" not in err
        assert out == b""


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
        _, err = process.communicate(timeout=10)
        assert process.returncode == {"stdin": 0, "term": 0, "int": 130}[end], err
        assert b"Traceback" not in err
