"""The HTTP client: pooled, bounded in time and size, cancellable, and silent about keys.

It uses the standard library. An HTTP package would still need this thread, this deadline over
slowly dripping servers and this way to cut a socket, and would double the time to import (see
docs/design.md).
"""

from __future__ import annotations

import base64
import json
import math
import os
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPConnection

MAX_ANSWER_BYTES = 64_000_000
HIDDEN = "(hidden)"
_IDLE_PER_HOST = 8
_READ_BYTES = 1 << 16


class CallError(Exception):
    """A call without an answer; `again` when the same call may succeed a little later."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer, with any status except a redirect; header names are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A text without the secrets, in whatever form a server may have echoed them."""
    for secret in secrets:
        for form in (secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]):
            if len(form) > 3:
                text = text.replace(form, HIDDEN)
    return text


@dataclass(eq=False, slots=True)
class _Exchange:
    """A call in progress: its request and limits, its answer and the connection it uses."""

    method: str
    parts: SplitResult
    body: bytes | None
    headers: dict[str, str]
    until: float
    max_bytes: int
    answer: Future[Answer] = field(default_factory=Future)
    connection: HTTPConnection | None = None
    connected: threading.Event = field(default_factory=threading.Event)

    def end(self, error: CallError) -> None:
        """Fails the call and cuts its socket, unless its answer is there."""
        with suppress(InvalidStateError, OSError):
            self.answer.set_exception(error)
            if self.connection is not None and self.connection.sock is not None:
                # On the plain socket, below TLS: this wakes the thread that waits in it.
                socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)

    def check(self) -> None:
        """Stops the thread of a call that has ended."""
        if self.answer.done():
            raise TimeoutError


class Client:
    """Calls servers: reuses connections, verifies TLS, uses the environment's proxies, follows no
    redirect.
    """

    def __init__(
        self, *, secrets: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> None:
        self._secrets = tuple(secrets)
        self._env = os.environ if env is None else env
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, ...], list[HTTPConnection]] = {}
        self._in_progress: set[_Exchange] = set()
        self._closed = False

    def call(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        connect_s: float = math.inf,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """The complete answer within `timeout_s`, whatever the server, its proxy or the resolver
        does.

        There must be a connection within `connect_s`: a server may think for long, but an address
        answers at once.
        """
        until = time.monotonic() + timeout_s
        exchange = _Exchange(method, address(url), body, dict(headers or {}), until, max_bytes)
        late = CallError(f"timed out after {timeout_s:g} s", again=True)
        lost = CallError(f"no connection after {connect_s:g} s", again=True)
        with self._lock:
            if self._closed:
                raise CallError("it was cancelled")
            self._in_progress.add(exchange)
        threading.Thread(
            target=self._run, args=(exchange, late), name="notewell-http", daemon=True
        ).start()
        try:
            if connect_s < timeout_s and not exchange.connected.wait(connect_s):
                exchange.end(lost)
            answer = exchange.answer.result(max(0.0, until - time.monotonic()))
        except TimeoutError:
            raise late from None
        finally:
            with self._lock:
                self._in_progress.discard(exchange)
            exchange.end(late)
        if 300 <= answer.status < 400:
            host = (
                urlsplit(redacted(answer.headers.get("location", ""), self._secrets)).hostname
                or "itself"
            )
            raise CallError(
                f"it answered {answer.status}, a redirect to {host}, which is not followed"
            )
        return answer

    def cancel(self) -> None:
        """Ends every call in progress at once, by cutting its socket."""
        with self._lock:
            in_progress = list(self._in_progress)
        for exchange in in_progress:
            exchange.end(CallError("it was cancelled"))

    def close(self) -> None:
        """Ends every call in progress, and refuses new ones."""
        with self._lock:
            self._closed = True
        self.cancel()
        self.__del__()

    def __del__(self) -> None:
        while self._idle:
            for connection in self._idle.popitem()[1]:
                connection.close()

    def _run(self, exchange: _Exchange, late: CallError) -> None:
        """Makes a call on its own thread, so that nothing can hold the caller beyond the
        deadline. A socket that meets the deadline first reports `late` as the caller would.
        """
        try:
            answer = self._exchange(exchange)
            with suppress(InvalidStateError):
                exchange.answer.set_result(answer)
        except Exception as error:  # noqa: BLE001 - whatever ends this thread, the caller must learn of it
            if exchange.connection is not None:
                exchange.connection.close()
            met_deadline = isinstance(error, TimeoutError) and error.errno is None
            failure = late if met_deadline else _failure(error)
            with suppress(InvalidStateError):
                exchange.answer.set_exception(
                    CallError(redacted(str(failure), self._secrets), again=failure.again)
                )
        finally:
            exchange.connected.set()

    def _exchange(self, exchange: _Exchange) -> Answer:
        parts, headers = exchange.parts, exchange.headers
        proxy = self._proxy(parts)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if proxy and parts.scheme == "http":  # a proxy takes the full address, and its own login
            target = f"http://{parts.netloc}{target}"
            headers |= _proxy_login(proxy)
        key = (parts.scheme, parts.netloc, proxy.netloc if proxy else "")
        connection = exchange.connection = self._reused(key) or self._new(
            parts, proxy, exchange.until
        )
        if connection.sock is None:
            connection.connect()
        exchange.connected.set()
        exchange.check()
        connection.sock.settimeout(max(0.01, exchange.until - time.monotonic()))
        connection.request(exchange.method, target, body=exchange.body, headers=headers)
        response = connection.getresponse()
        length: int | None = response.length
        data = bytearray()
        while part := response.read1(_READ_BYTES):
            data += part
            if len(data) > exchange.max_bytes:
                raise CallError(f"it answered with more than {exchange.max_bytes:,} bytes")
            exchange.check()
        if length is not None and len(data) < length:
            raise CallError("its answer was cut off", again=True)
        response.close()  # all of it was read, but `read1` does not tell the connection
        exchange.connection = None
        self._keep(key, connection, reusable=not response.will_close)
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, response.reason, found, bytes(data))

    def _reused(self, key: tuple[str, ...]) -> HTTPConnection | None:
        """An idle connection that is still open."""
        while True:
            with self._lock:
                idle = self._idle.get(key)
                connection = idle.pop() if idle else None
            if connection is None or _is_open(connection.sock):
                return connection
            connection.close()

    def _new(self, parts: SplitResult, proxy: SplitResult | None, until: float) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

        host, port = parts.hostname or "", parts.port
        near, near_port = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        timeout = max(0.01, until - time.monotonic())
        if parts.scheme == "http":
            return HTTPConnection(near, near_port, timeout=timeout)
        connection = HTTPSConnection(near, near_port, timeout=timeout, context=self._tls)
        if proxy:
            connection.set_tunnel(host, port, headers=_proxy_login(proxy))
        return connection

    def _keep(self, key: tuple[str, ...], connection: HTTPConnection, *, reusable: bool) -> None:
        with self._lock:
            idle = self._idle.setdefault(key, [])
            if reusable and not self._closed and len(idle) < _IDLE_PER_HOST:
                idle.append(connection)
                return
        connection.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import ssl  # noqa: PLC0415

        return ssl.create_default_context(cafile=self._env.get("SSL_CERT_FILE") or None)

    def _proxy(self, parts: SplitResult) -> SplitResult | None:
        """The proxy for an address; there is none for this machine itself."""
        host = parts.hostname or ""
        if host == "localhost" or host.startswith("127.") or host == "::1":
            return None
        from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

        proxies = getproxies()
        found = proxies.get(parts.scheme) or proxies.get("all")
        if not found or proxy_bypass(host):
            return None
        proxy = urlsplit(found if "://" in found else f"http://{found}")
        if proxy.scheme != "http":
            raise CallError(
                f"{parts.scheme.upper()}_PROXY names a {proxy.scheme} proxy; only http is supported"
            )
        return proxy


def address(url: str) -> SplitResult:
    """The parts of an http address, or an error that says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CallError(f"its address is not an http address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise CallError(f"{url!r} is not an http address")
    if parts.username or parts.password:
        raise CallError(
            f"the address of {parts.hostname} holds a name or password; set the key in its own "
            "setting"
        )
    return parts


def _is_open(sock: socket.socket | None) -> bool:
    """Whether an idle connection can be used; one with something to read was closed by its
    server.
    """
    try:
        return sock is not None and not select.select([sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False  # closed, or its number is too high for `select`


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode()}


def _failure(error: Exception) -> CallError:
    """What went wrong, in words, and whether it may pass."""
    from http.client import BadStatusLine, HTTPException, IncompleteRead  # noqa: PLC0415
    from ssl import SSLCertVerificationError, SSLError  # noqa: PLC0415

    passing = isinstance(error, OSError | IncompleteRead | BadStatusLine)
    match error:
        case CallError():
            return error
        case SSLCertVerificationError():
            return CallError(f"its certificate is not trusted: {error.verify_message}")
        case TimeoutError():
            message = "timed out"
        case SSLError():
            message = f"TLS failed: {error.reason or error}"
        case socket.gaierror():
            message = "its host name cannot be resolved"
        case IncompleteRead():
            message = "its answer was cut off"
        case OSError():
            message = error.strerror or str(error)
        case HTTPException():
            message = str(error) or "its answer is not HTTP"
        case _:
            message = f"{type(error).__name__}: {error}"
    return CallError(message, again=passing)
