"""The guard in front of every route of the HTTP server: who may ask, how much, and how often.

A page of another site in the same browser can reach a server on loopback. Without CORS it cannot
read an answer, but it can send requests; and if its host name resolves to 127.0.0.1 it can even
read. So Host and Origin are checked before anything else. Every user of this machine can reach it
too: so a caller shows the token, or is a program of this user.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import re
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1_000_000
MAX_HEADERS = 1 << 16
_WHO = (
    "send the header Authorization: Bearer TOKEN, with what follows #token= in the address "
    "that notewell serve printed, or the token you gave it"
)
TOO_LARGE = f"the body is larger than {MAX_BODY:,} bytes"
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?\Z")
_LOCALHOST = re.compile(r"localhost(:\d+)?\Z", re.IGNORECASE)
_OPEN = re.compile(r"/([a-z]+\.(css|js|svg))?\Z")  # the files of the page, which hold no notes
_CLIENTS = 1_000
# Added by programs that pass requests on: one may be this user's while its callers are not.
_PASSED_ON = frozenset(("forwarded", "via", "x-real-ip", "true-client-ip", "cf-connecting-ip"))


@dataclass(frozen=True, slots=True)
class Door:
    """Who is let in: who shows the token or the key, programs of the user `uid`, or `anyone`.

    The token is one that its user has chosen. The key is made for one run and ends with it, so a
    browser may keep it. `loopback` admits only names of this machine.
    """

    token: str = ""
    key: str = field(default_factory=partial(secrets.token_urlsafe, 32))
    uid: int | None = None
    anyone: bool = False
    loopback: bool = True
    names: tuple[str, ...] = ()
    per_second: float = 5_000.0
    burst: int = 5_000

    def admits_host(self, value: str) -> bool:
        """Whether a Host names this server: a loopback name, an allowed name, or off loopback any
        bare address.
        """
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
        # The owner of a name can let it resolve to this machine; nobody can do that with a bare
        # address.
        return address.is_loopback or not self.loopback

    def admits_origin(self, value: str, host: str) -> bool:
        """Whether an Origin is this server's own page."""
        try:
            parts = urlsplit(value)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    def admits_token(self, header: str) -> bool:
        """Whether the header holds the token or the key, compared in constant time."""
        kind, _, given = header.partition(" ")
        said = given.strip().encode("utf-8", "replace")
        right = [hmac.compare_digest(said, one.encode()) for one in (self.token, self.key) if one]
        return any(right) and kind.lower() == "bearer"

    def admits_user(self, scope: Scope, headers: Headers, host: str) -> bool:
        """Whether the kernel says that a program of this user asks, for itself.

        It must name the very address that it reached. Under another name, such as localhost, a
        browser may show what somebody else sent: another user's server at [::1], which then ended
        so that its page reaches this one.
        """
        peer = scope.get("state", {}).get("peer")
        passed_on = any(n in _PASSED_ON or n.startswith("x-forwarded-") for n in headers)
        match = _HOST.match(host)
        if self.uid is None or peer is None or passed_on or not match or not scope.get("server"):
            return False
        address, port = scope["server"]
        named = (match["name"].strip("[]"), match["port"] or "80")
        return named == (address, str(port)) and peer() == self.uid


class _Buckets:
    """A token bucket for each client address."""

    def __init__(self, door: Door, clock: Callable[[], float]) -> None:
        self._door = door
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """0 if the request may pass, otherwise the seconds until the next one may."""
        now = self._clock()
        left, seen = self._known.pop(client, (float(self._door.burst), now))
        left = min(float(self._door.burst), left + (now - seen) * self._door.per_second)
        passes = left >= 1.0
        self._known[client] = (left - 1.0 if passes else left, now)
        if len(self._known) > _CLIENTS:
            self._known.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._door.per_second


class Guard:
    """ASGI middleware around the application."""

    def __init__(
        self, app: ASGIApp, door: Door, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.app = app
        self.door = door
        self._buckets = _Buckets(door, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuses a request, or passes it on with a limit on its body and with strict headers for
        browsers.
        """
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = _unclear(scope, headers) or self._stranger(scope, headers)
        refusal = refusal or self._excess(scope, headers)
        if refusal:
            await _refusal(*refusal)(scope, receive, _strict(send))
        elif self.door.loopback and scope["path"] == "/" and _LOCALHOST.match(headers["host"]):
            await _by_address(scope, headers["host"])(scope, receive, _strict(send))
        else:
            # nobody is there to be told, and it is not our fault
            with contextlib.suppress(ClientDisconnect):
                await self.app(scope, _limited(receive), _strict(send))

    def _stranger(self, scope: Scope, headers: Headers) -> tuple[int, str, str, str] | None:
        """The refusal of a caller who may not ask at all."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.door.admits_host(hosts[0]):
            hint = "use its address, or start it with --allow-host"
            return 421, "wrong_host", "this server does not answer to that host name", hint
        own = all(self.door.admits_origin(o, hosts[0]) for o in headers.getlist("origin"))
        if not own or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return (
                403,
                "wrong_origin",
                "requests from other sites are refused",
                "open the server's own page",
            )
        known = self.door.anyone or self.door.admits_token(headers.get("authorization", ""))
        if known or _OPEN.match(scope["path"]) or self.door.admits_user(scope, headers, hosts[0]):
            return None
        return 401, "no_token", "this server needs its token", _WHO

    def _excess(self, scope: Scope, headers: Headers) -> tuple[int, str, str, str] | None:
        """The refusal of a request that is too large or comes too soon."""
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > MAX_BODY:
            return 413, "too_large", TOO_LARGE, "send less"
        wait_s = self._buckets.wait_s(scope["client"][0] if scope.get("client") else "")
        if wait_s:
            return 429, "too_many", "too many requests", f"wait {wait_s:.2f} s"
        return None


def _unclear(scope: Scope, headers: Headers) -> tuple[int, str, str, str] | None:
    """The refusal of what a proxy may see another end of than we do, or has too large headers."""
    chunked = "transfer-encoding" in headers
    if chunked and ("content-length" in headers or scope["http_version"] == "1.0"):
        beside = "Content-Length" if "content-length" in headers else "HTTP/1.0"
        message = f"the request has Transfer-Encoding together with {beside}"
        return 400, "bad_request", message, "send Content-Length and no Transfer-Encoding"
    line = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    if line + sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > MAX_HEADERS:
        return 400, "bad_request", f"the headers are larger than {MAX_HEADERS:,} bytes", "send less"
    return None


def _by_address(scope: Scope, host: str) -> Response:
    """The way to the page under the address of this server, which nobody else can have.

    Another user may listen at [::1], which is localhost too, and would find there what a browser
    keeps for the page.
    """
    address = f"[{scope['server'][0]}]" if ":" in scope["server"][0] else scope["server"][0]
    query = f"?{scope['query_string'].decode('ascii', 'replace')}" if scope["query_string"] else ""
    return RedirectResponse(f"http://{address}{host[len('localhost') :]}/{query}", 307)


def _limited(receive: Receive) -> Receive:
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receiving


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


def _refusal(status: int, code: str, message: str, hint: str) -> Response:
    body = json.dumps({"error": {"code": code, "message": message, "hint": hint}})
    more = {
        400: {"connection": "close"},
        401: {"www-authenticate": "Bearer"},
        429: {"retry-after": "1"},
    }
    headers = more.get(status)
    return Response(body, status, headers, "application/json")
