"""The door of the HTTP server, in front of every route: who may ask, how much, and how often.

A page of another site that runs in the same browser can reach a server on loopback. It cannot read an answer without
CORS, but it can send; and with a name that it lets point to 127.0.0.1 it could even read. So Host and Origin are
checked before anything else looks at a request.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1_000_000
TOO_LARGE = f"the body is larger than {MAX_BODY:,} bytes"
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?\Z")
_OPEN = re.compile(r"/([a-z]+\.(css|js|svg))?\Z")  # the page without any note
_CLIENTS = 1_000


@dataclass(frozen=True, slots=True)
class Door:
    """What is let in. `token` empty: anybody on this machine; `loopback`: only names of this machine."""

    token: str = ""
    loopback: bool = True
    names: tuple[str, ...] = ()
    per_second: float = 1_000.0
    burst: int = 2_000

    def admits_host(self, value: str) -> bool:
        """Whether a Host names this server: a loopback name, or with a token any bare address or a named host."""
        match = _HOST.match(value)
        if not match:
            return False
        name = match["name"].strip("[]").lower()
        if name == "localhost" or name in (n.lower() for n in self.names):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return not self.loopback and name == socket.gethostname().lower()
        # A name can be made to point here by its owner; a bare address cannot.
        return address.is_loopback or not self.loopback

    def admits_origin(self, value: str, host: str) -> bool:
        """Whether an Origin is this very server's page; anything else that names itself is turned away."""
        try:
            parts = urlsplit(value)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def admits_token(self, header: str) -> bool:
        """Whether the caller knows the token, compared in constant time."""
        kind, _, given = header.partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
        return right and kind.lower() == "bearer"


class _Buckets:
    """So many requests at once for each address, refilled at a steady rate."""

    def __init__(self, door: Door, clock: Callable[[], float]) -> None:
        self._door = door
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """0 when the request may pass, else how long until the next may."""
        now = self._clock()
        left, seen = self._known.pop(client, (float(self._door.burst), now))
        left = min(float(self._door.burst), left + (now - seen) * self._door.per_second)
        passes = left >= 1.0
        self._known[client] = (left - 1.0 if passes else left, now)
        if len(self._known) > _CLIENTS:
            self._known.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._door.per_second


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, door: Door, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.door = door
        self._buckets = _Buckets(door, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Turns a request away, or hands it on with a bound on its body and with headers that keep browsers strict."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal:
            await _refuse(send, *refusal)
            return
        await self.app(scope, _Counted(receive), _strict(send))

    def _refusal(self, scope: Scope) -> tuple[int, str, str, str] | None:
        headers = Headers(scope=scope)
        return self._stranger(scope, headers) or self._excess(scope, headers)

    def _stranger(self, scope: Scope, headers: Headers) -> tuple[int, str, str, str] | None:
        """Who may not ask at all."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.admits_host(hosts[0]):
            return 421, "wrong_host", "this server does not answer for that name", "use its address, or --allow-host"
        own = all(self.door.admits_origin(o, hosts[0]) for o in headers.getlist("origin"))
        if not own or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "wrong_origin", "requests of other sites are not answered", "open the server's own page"
        known = not self.door.token or self.door.admits_token(headers.get("authorization", ""))
        if not known and not _OPEN.match(scope["path"]):
            return 401, "no_token", "this server needs its token", "send the header Authorization: Bearer TOKEN"
        return None

    def _excess(self, scope: Scope, headers: Headers) -> tuple[int, str, str, str] | None:
        """What is too much or too often."""
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > MAX_BODY:
            return 413, "too_large", TOO_LARGE, "send less"
        wait_s = self._buckets.wait_s(scope["client"][0] if scope.get("client") else "")
        if wait_s:
            return 429, "too_many", "too many requests", f"wait {wait_s:.2f} s"
        return None


class _Counted:
    """A receive channel that counts what comes in."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > MAX_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_STRICT = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


def _strict(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *_STRICT]}
        await send(message)

    return sending


async def _refuse(send: Send, status: int, code: str, message: str, hint: str) -> None:
    body = json.dumps({"error": {"code": code, "message": message, "hint": hint}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_STRICT]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
