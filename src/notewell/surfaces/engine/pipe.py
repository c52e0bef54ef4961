"""`notewell mcp` beside an engine: lines go from stdin to the engine and back to stdout, and
nothing else is loaded.

When the engine is lost, another one or a server of our own gets the handshake again and every
request that waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from notewell.launcher import NOTEWELL, Piped, has_ended
from notewell.surfaces.engine.attach import (
    SILENCE_S,
    STARVED_S,
    Attached,
    NoAnswerError,
    accepted,
    attach,
)
from notewell.surfaces.engine.place import is_busy
from notewell.surfaces.engine.thin import Asked

# for an engine that we start, for one that somebody else has
_START_S, _OTHER_S, _POLL_S = (20.0, 6.0, 0.02)
_GREETING_S = 2.0  # a server of our own would take longer, and many times the memory
_SOON_S = (
    60.0  # an engine that hung, or was lost twice within this time, is not asked again for so long
)
_READ_BYTES = 1 << 16
_LAST_S = 5.0  # for our own server, after its client has left
_STDIN, _STDOUT = 0, 1


class Pending:
    """The requests of one client that wait for an answer, with their lines; both ends count them in
    the same way.
    """

    def __init__(self) -> None:
        self.lines: dict[str, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self.lines)

    def asked(self, line: bytes) -> dict[str, Any]:
        """Counts a line of the client and returns its message."""
        message = _message(line)
        key = message.get("id")
        # An id of another type is answered with null, which says nothing about who is answered.
        if "method" in message and isinstance(key, int | str) and not isinstance(key, bool):
            self.lines[repr(key)] = line
        elif message.get("method") == "notifications/cancelled":
            params = message.get("params")
            self.lines.pop(
                repr(params.get("requestId") if isinstance(params, dict) else None), None
            )
        return message

    def answered(self, line: bytes) -> str:
        """Counts a line of the server and returns the id that it answers, if it answers one."""
        message = _message(line)
        if "id" in message and "method" not in message:
            self.lines.pop(repr(message["id"]), None)
            return repr(message["id"])
        return ""


def _message(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Server(Protocol):
    """Whoever answers: what it says is read from `inlet`."""

    inlet: int | socket.socket
    silence_s: float | None  # after how long without a word it is lost, while a request waits

    def is_busy(self) -> bool:
        """Whether it is silent only because the machine has no time for it."""
        ...

    def read(self) -> bytes:
        """What it has said; nothing at its end."""
        ...

    def send(self, line: bytes) -> None:
        """Passes on a line of the client."""
        ...

    def end(self) -> None:
        """Says that the client will send no more."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


class _Window:
    """An engine that serves this client."""

    silence_s: float | None = SILENCE_S

    def __init__(self, made: Attached) -> None:
        self.inlet: int | socket.socket = made.socket
        self._socket = made.socket
        self._first = made.rest
        made.socket.settimeout(STARVED_S)

    def is_busy(self) -> bool:
        return is_busy(self._socket)

    def read(self) -> bytes:
        found, self._first = self._first, b""
        with contextlib.suppress(OSError):
            return found or self._socket.recv(_READ_BYTES)
        return b""

    def send(self, line: bytes) -> None:
        self._socket.sendall(line)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()


class _Own:
    """A server that this process starts for itself; it ends when its stdin does."""

    silence_s: float | None = None

    def __init__(self, asked: Asked) -> None:
        env = {**os.environ, "NOTEWELL_ENGINE_ENABLED": "0"}
        # the last one of each is meant
        here = ["--workspace", asked.root, "--cwd", asked.given["cwd"]]
        self._process = Piped([*NOTEWELL, *sys.argv[1:], *here], env, quiet=False)
        self.inlet: int | socket.socket = selectable(self._process.stdout.fileno())

    def is_busy(self) -> bool:
        return True

    def read(self) -> bytes:
        return take(self.inlet)

    def send(self, line: bytes) -> None:
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def close(self) -> None:
        self._process.close(within_s=_LAST_S)


def selectable(handle: int) -> int | socket.socket:
    """Something that `select` can wait for: the handle itself, or where it waits for sockets only,
    one that follows.
    """
    if os.name != "nt":
        return handle
    ours, theirs = socket.socketpair()

    def follow() -> None:
        with contextlib.suppress(OSError):
            while part := os.read(handle, _READ_BYTES):
                theirs.sendall(part)
        theirs.close()

    threading.Thread(target=follow, name="load stdin", daemon=True).start()
    return ours


def take(inlet: int | socket.socket) -> bytes:
    """What has come in; nothing at the end."""
    with contextlib.suppress(OSError):
        return os.read(inlet, _READ_BYTES) if isinstance(inlet, int) else inlet.recv(_READ_BYTES)
    return b""


class Pipe:
    """One client on stdin and stdout, and whoever answers it now."""

    def __init__(
        self, find: Callable[[bool], Server], stdin: int, write: Callable[[bytes], None]
    ) -> None:
        """`find` gives a server: an engine, or with True one of our own."""
        self._find, self._write = find, write
        self._inlet = selectable(stdin)
        self._server: Server | None = None
        self._pending = Pending()
        self._handshake: list[bytes] = []
        # the id of the handshake, and whether the client has its answer
        self._greeting, self._greeted = ("", False)
        self._lost_at = -_SOON_S
        self._heard_at = 0.0  # when it was asked or heard
        self._open = True
        self._in = self._out = b""

    def run(self) -> None:
        """Passes lines on until the client has left and everything is answered."""
        self._server = self._find(False)  # noqa: FBT003 - an engine, if there is one
        while self._is_going():
            server: Server | None = self._server
            waits = [self._inlet] if self._open else []
            waits += [server.inlet] if server is not None else []
            limit_s = server.silence_s if server is not None and self._pending else None
            found = select.select(waits, [], [], limit_s)[0]
            if server is not None and server.inlet in found:
                self._hear(server)
            elif self._open and self._inlet in found:
                self._read()
            elif (
                server is not None
                and time.monotonic() - self._heard_at < STARVED_S
                and server.is_busy()
            ):
                continue
            elif not found:
                self._lose(hung=True)

    def _is_going(self) -> bool:
        return self._open or self._server is not None

    def _read(self) -> None:
        """Takes what the client has sent."""
        part = take(self._inlet)
        *lines, self._in = (self._in + (part or b"\n")).split(b"\n")
        for line in lines:
            if line.strip():
                self._ask(line + b"\n")
        if not part:
            self._open = False
            self._end_if_done()

    def _ask(self, line: bytes) -> None:
        if (
            self._server is not None
            and self._server.silence_s is None
            and not self._pending
            and not self._lost_soon()
        ):
            self._server.close()  # our own has done its part
            self._server = None
        message = self._pending.asked(line)
        if message.get("method") == "initialize":
            self._handshake, self._greeting, self._greeted = [line], repr(message.get("id")), False
        elif message.get("method") == "notifications/initialized":
            self._handshake.append(line)
        if self._server is None:
            self._resume()
            if line in self._handshake or line in self._pending.lines.values():
                return  # it was sent with all that waits
        self._send(line)

    def _send(self, line: bytes) -> None:
        self._heard_at = time.monotonic()
        try:
            if self._server is not None:
                self._server.send(line)
        except OSError:  # it is gone, or has not read for long
            self._lose(hung=True)

    def _hear(self, server: Server) -> None:
        """Passes on what the server says; empty lines only say that it is alive."""
        part = server.read()
        self._heard_at = time.monotonic()
        if not part:
            self._lose(hung=False)
            return
        *lines, self._out = (self._out + part).split(b"\n")
        for line in lines:
            if not line.strip():
                continue
            known = self._pending.answered(line) == self._greeting != ""
            if not (known and self._greeted):
                self._write(line + b"\n")
            self._greeted = self._greeted or known
        self._end_if_done()

    def _end_if_done(self) -> None:
        """Once the client has left and has every answer, so may the server."""
        if not self._open and not self._pending and self._server is not None:
            self._server.end()

    def _lose(self, *, hung: bool) -> None:
        """The server is gone: what waits is asked again at once, else the next line looks for
        another.
        """
        if self._server is not None:
            self._server.close()
        self._server, self._out = None, b""
        soon = self._lost_soon()
        self._lost_at = time.monotonic()
        if self._pending:
            self._resume(own=hung or soon)

    def _lost_soon(self) -> bool:
        return time.monotonic() - self._lost_at < _SOON_S

    def _resume(self, *, own: bool = False) -> None:
        """Gives another server the handshake, whose answer the client may have, and every request
        that waits.
        """
        self._server = self._find(own)
        waiting = [line for line in self._pending.lines.values() if line not in self._handshake]
        if self._handshake:
            self._pending.asked(self._handshake[0])
        for line in (*self._handshake, *waiting):
            self._send(line)


def pipe(asked: Asked) -> int | None:
    """Serves the client of `notewell mcp` through an engine; None if there is none and none can be
    started.
    """
    if sys.stdin is None or sys.stdout is None or sys.stdin.isatty():
        return None
    made = _engine(asked, resumes=False)
    if made is None:
        return None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    first: list[Server] = [made]

    def find(own: bool) -> Server:  # noqa: FBT001 - as `Pipe` asks
        return (
            first.pop() if first else (None if own else _engine(asked, resumes=True)) or _Own(asked)
        )

    def write(line: bytes) -> None:
        while line:
            line = line[os.write(_STDOUT, line) :]

    try:
        Pipe(find, _STDIN, write).run()
    except BrokenPipeError:
        pass
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return 0


def _engine(asked: Asked, *, resumes: bool) -> Server | None:
    """A window on an engine, which is started if none runs."""
    until, process = time.monotonic() + _START_S, None
    while True:
        try:
            made = attach(
                asked.place,
                "mcp",
                waits=True,
                silence_s=_GREETING_S,
                resumes=resumes,
                **asked.given,
            )
            try:
                accepted(made)  # comes when it is ready; until then it says that it is alive
            except NoAnswerError:
                made.close()
                raise
            return _Window(made)
        except NoAnswerError as error:
            if not error.start or error.hung or time.monotonic() > until:
                return None
        if process is None:
            from notewell.surfaces.engine.launch import launch  # noqa: PLC0415

            try:
                process = launch(asked.root, asked.options, os.environ, indexed=False)
            except Exception:  # noqa: BLE001 - what is wrong with the settings is told by the server of our own
                process = None
            if process is None:
                return None
        elif time.monotonic() > until - _START_S + _OTHER_S if process == 0 else has_ended(process):
            return None
        time.sleep(_POLL_S)
