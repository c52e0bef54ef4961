"""A real server on loopback, in a thread, and a plain client for it."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from notewell.memory import Memory
from notewell.surfaces.server.guard import Door
from notewell.surfaces.server.http import application
from notewell.surfaces.server.limits import Limits, server


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """Where a server listens, and over which memory."""

    port: int
    memory: Memory
    running: uvicorn.Server
    token: str = ""

    @classmethod
    def told(cls, line: str) -> Served:
        """The server in another process that has said where it is."""
        found = re.search(r"http://127\.0\.0\.1:(\d+)/(?:#token=(\S+))?", line)
        assert found, line
        return cls(int(found[1]), None, None, found[2] or "")  # type: ignore[arg-type]

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: bytes = b"",
    ) -> Reply:
        """One request; `body` goes as JSON, `raw` as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            data = json.dumps(body).encode() if body is not None else raw or None
            connection.request(method, path, data, {**sent, **(headers or {})})
            answer = connection.getresponse()
            return Reply(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: Any, **headers: str) -> Reply:
        return self.ask("POST", path, body, headers=headers)


@contextlib.contextmanager
def serving(
    root: Path,
    *,
    door: Door | None = None,
    read_only: bool = False,
    model: str = "hashed",
    warm: bool = True,
    synced: bool = True,
    limits: Limits | None = None,
    port: int = 0,
    **settings: Any,
) -> Iterator[Served]:
    """Serves a workspace until the block ends."""
    listening = socket.create_server(("127.0.0.1", port))
    with Memory.open(root, embed__model=model, **settings) as memory:
        if warm and synced:
            # else a first search may find the server at work, and answer by keywords alone
            memory.sync()
        app = application(memory, door or Door(anyone=True), read_only=read_only, warm=warm)
        running = server(app, limits)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield Served(listening.getsockname()[1], memory, running)
        finally:
            running.should_exit = True
            thread.join(timeout=60)
            listening.close()
