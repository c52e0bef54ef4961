"""What a client may take of the server: connections, the size of headers, and time for each part of
a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import TracebackType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from notewell.surfaces.server.guard import MAX_HEADERS
from notewell.surfaces.server.peer import user_of

_LOG = logging.getLogger("uvicorn.error")
_SPARE_FILES = 128  # for the index, the notes and the model
_TURNED_AWAY = 64  # so many get to read why at the same time
_LINGER_S = 1.0
_REASONS = {
    400: (
        b"Bad Request",
        "bad_request",
        "the request is not HTTP, or its headers are too large",
        "send less",
    ),
    408: (b"Request Timeout", "too_slow", "the request did not arrive in time", "send it faster"),
    503: (
        b"Service Unavailable",
        "too_many",
        "too many connections",
        "close some, or try again later",
    ),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one server; those on headers, bodies and rates are in `guard.py`."""

    connections: int = 1_000
    header_s: float = 10.0
    body_s: float = 30.0
    idle_s: float = 5.0
    unread_s: float = 60.0
    say_s: float = 60.0

    def room(self) -> int:
        """How many connections there is room for: as many as are allowed, less if few files may be
        open.
        """
        with contextlib.suppress(ImportError, OSError, ValueError):
            import resource  # noqa: PLC0415 - not on Windows

            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            if soft != resource.RLIM_INFINITY:
                return min(self.connections, max(8, soft - _SPARE_FILES))
        return self.connections


class _Connection(H11Protocol):
    """A connection that is closed when it is one too many, or when its client takes too long."""

    def __init__(self, *, limits: Limits, room: int, **rest: Any) -> None:
        super().__init__(**rest)
        self._limits = limits
        self._room = room
        self._left = False
        self._waits_for: object = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Turns one away that is too many; others get no delay between small packets."""
        super().connection_made(transport)
        # Asked for at most once a connection, and only where a request does not show the token.
        peer = cache(partial(user_of, self.client, self.server))
        self.app_state = {**self.app_state, "peer": peer}
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):  # the client has gone
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) <= self._room:
            self._watch()
            return
        _LOG.warning("there are %d connections; others are turned away", self._room)
        if len(self.connections) <= self._room + _TURNED_AWAY:
            self._leave(503)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clocks."""
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes what came, and looks whether the client still owes a part of its request."""
        if not self._left:
            super().data_received(data)
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is not HTTP, or has too large headers."""
        del msg
        self._leave(400)

    def on_response_complete(self) -> None:
        """Waits for the next request, or until the client has read the last answer."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_reading()
        else:
            self._watch()

    def pause_writing(self) -> None:
        """Gives a client that does not read some time."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _expect_reading(self, before: int | None = None) -> None:
        """Cuts off a client that reads nothing of what waits for it."""
        size = self.transport.get_write_buffer_size()
        if before is not None and size >= before:
            self.transport.abort()
        elif before is not None or self._unread is None:
            self._unread = self.loop.call_later(self._limits.unread_s, self._expect_reading, size)

    def _watch(self) -> None:
        """One deadline for the headers of a request and one for its body, which no single byte puts
        off.
        """
        state = self.conn.their_state
        part = (state, self.cycle) if state in (h11.IDLE, h11.SEND_BODY) else None
        if self._left or part == self._waits_for:
            return
        self._waits_for = part
        if self._deadline is not None:
            self._deadline.cancel()
        within_s = self._limits.header_s if state is h11.IDLE else self._limits.body_s
        self._deadline = self.loop.call_later(within_s, self._leave, 408) if part else None

    def _leave(self, status: int) -> None:
        """Says why, if the client has begun a request and got no answer yet, and closes."""
        self._left = True
        if not getattr(self.cycle, "response_complete", True):
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        begun = self.conn.our_state is h11.SEND_RESPONSE or bool(self.conn.trailing_data[0])
        if self.transport.is_closing() or (status == 408 and not begun):
            self.transport.abort()
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_farewell(status))
        # If the socket were closed with something unread in it, the client might not get to see the
        # answer.
        with contextlib.suppress(OSError):  # the client has gone
            self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self.transport.abort)


def _farewell(status: int) -> bytes:
    reason, code, message, hint = _REASONS[status]
    body = json.dumps({"error": {"code": code, "message": message, "hint": hint}}).encode()
    head = (
        b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        b"connection: close\r\n\r\n"
    )
    return head % (status, reason, len(body)) + body


class Seldom(logging.Filter):
    """Lets each message through once in a while, so that no client can fill the log."""

    def __init__(self, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s = every_s
        self._clock = clock
        self._said: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it now; the next one that is written says how many were not."""
        key, now = (
            (record.msg, _place(record.exc_info[2] if record.exc_info else None)),
            self._clock(),
        )
        last, kept = self._said.get(key, (-self._every_s, 0))
        if now - last < self._every_s:
            self._said[key] = (last, kept + 1)
            return False
        if len(self._said) > 100:
            self._said.clear()
        self._said[key] = (now, 0)
        if kept:
            record.msg, record.args = f"{record.getMessage()} (and {kept} times before)", None
        return True


def _place(trace: TracebackType | None) -> str:
    """Where an error was raised: two that come from the same line are the same to a log."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""


class _Server(uvicorn.Server):
    """A server whose log stays small when files or patience run out."""

    def __init__(self, config: uvicorn.Config, limits: Limits) -> None:
        super().__init__(config)
        self._seldom = Seldom(limits.say_s)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen."""
        asyncio.get_running_loop().set_exception_handler(_briefly)
        _LOG.addFilter(self._seldom)
        await super().startup(sockets=sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops to listen."""
        await super().shutdown(sockets=sockets)
        _LOG.removeFilter(self._seldom)


def _briefly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Says in one line that no connection could be accepted; asyncio tries again after a second."""
    error = context.get("exception")
    if isinstance(error, OSError) and "accept" in str(context.get("message")):
        _LOG.error("no connection can be accepted now: %s", error.strerror)
    else:
        loop.default_exception_handler(context)


def server(app: ASGIApp, limits: Limits | None = None) -> uvicorn.Server:
    """The server of an application: bounded, it logs warnings only and trusts no proxy headers."""
    limits = limits or Limits()
    config = uvicorn.Config(
        app,
        http=partial(_Connection, limits=limits, room=limits.room()),  # type: ignore[arg-type]
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="on",
        backlog=128,
        timeout_keep_alive=limits.idle_s,  # type: ignore[arg-type]
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=MAX_HEADERS,
    )
    return _Server(config, limits)
