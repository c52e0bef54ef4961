"""The one HTTP client: pooled, bounded in time and size, cancellable, and silent about keys.

It stands on the standard library. urllib3 costs twice the import time, would be one more dependency, and keeps the
socket of a request under way out of reach, which is what a deadline against dripping servers and a prompt
cancellation need.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPConnection

MAX_ANSWER_BYTES = 64_000_000
HIDDEN = "(hidden)"
_IDLE_PER_HOST = 8
_READ_BYTES = 1 << 16


class CallError(Exception):
    """A call that brought no answer; `again` when the same call may fare better a little later."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said: any status but a redirect, header names in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


def redacted(text: str, secrets: Sequence[str]) -> str:
    """A text without the secrets, however a server may have echoed them."""
    for secret in secrets:
        for form in (secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]):
            if len(form) > 3:
                text = text.replace(form, HIDDEN)
    return text


class Client:
    """Calls servers: keeps connections, never follows a redirect, verifies TLS, respects proxies of the environment."""

    def __init__(self, *, secrets: Sequence[str] = (), env: Mapping[str, str] | None = None) -> None:
        self._secrets = tuple(secrets)
        self._env = os.environ if env is None else env
        self._lock = threading.Lock()
        self._idle: dict[str, list[HTTPConnection]] = {}
        self._under_way: set[_Exchange] = set()
        self._closed = False
        self._tls: ssl.SSLContext | None = None

    def call(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """The answer, whole, within `timeout_s` from now, whatever the server, its proxy or the resolver do."""
        parts = address(url)
        until = time.monotonic() + timeout_s
        exchange = _Exchange(self, method, parts, body, dict(headers or {}), until=until, max_bytes=max_bytes)
        with self._lock:
            if self._closed:
                raise CallError("it was cancelled")
            self._under_way.add(exchange)
        threading.Thread(target=exchange.run, name="recollect-http", daemon=True).start()
        try:
            exchange.done.wait(max(0.0, timeout_s))
        finally:
            with self._lock:
                self._under_way.discard(exchange)
            exchange.stop()
        return self._outcome(exchange, timeout_s)

    def _outcome(self, exchange: _Exchange, timeout_s: float) -> Answer:
        if exchange.cancelled:
            raise CallError("it was cancelled")
        if exchange.error is not None:
            raise CallError(redacted(_said(exchange.error), self._secrets), again=_again(exchange.error)) from None
        answer = exchange.answer
        if answer is None:
            raise CallError(f"timed out after {timeout_s:g} s", again=True)
        if 300 <= answer.status < 400:
            host = urlsplit(redacted(answer.headers.get("location", ""), self._secrets)).hostname or "itself"
            raise CallError(f"it answered {answer.status}, a redirect to {host}, which is not followed")
        return answer

    def cancel(self) -> None:
        """Ends every call under way at once, by its socket."""
        with self._lock:
            under_way = list(self._under_way)
        for exchange in under_way:
            exchange.cancelled = True
            exchange.stop()

    def close(self) -> None:
        """Ends every call under way, and takes no more."""
        with self._lock:
            self._closed = True
            idle = [connection for held in self._idle.values() for connection in held]
            self._idle.clear()
        self.cancel()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        for held in self._idle.values():
            for connection in held:
                connection.close()

    def connection(self, parts: SplitResult, until: float) -> tuple[str, HTTPConnection, bool]:
        """A connection for an address, with the name it is kept under and whether whole addresses are asked of it."""
        from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

        proxy = self._proxy(parts)
        name = f"{parts.scheme}://{parts.netloc} via {proxy.netloc if proxy else ''}"
        plain = proxy is not None and parts.scheme == "http"
        while True:
            with self._lock:
                held = self._idle.get(name)
                kept = held.pop() if held else None
            if kept is None:
                break
            if kept.sock is not None and _quiet(kept.sock):
                return name, kept, plain
            kept.close()
        host, port = parts.hostname or "", parts.port
        near, near_port = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        timeout = max(0.01, until - time.monotonic())
        if parts.scheme == "https":
            made: HTTPConnection = HTTPSConnection(near, near_port, timeout=timeout, context=self._context())
            if proxy:
                made.set_tunnel(host, port, headers=_proxy_key(proxy))
        else:
            made = HTTPConnection(near, near_port, timeout=timeout)
        return name, made, plain

    def keep(self, name: str, connection: HTTPConnection) -> None:
        """Holds a connection for the next call to the same place."""
        with self._lock:
            held = self._idle.setdefault(name, [])
            if not self._closed and len(held) < _IDLE_PER_HOST:
                held.append(connection)
                return
        connection.close()

    def proxy_key(self, parts: SplitResult) -> dict[str, str]:
        """The header that a proxy asks for in front of a plain address."""
        proxy = self._proxy(parts)
        return _proxy_key(proxy) if proxy and parts.scheme == "http" else {}

    def _context(self) -> ssl.SSLContext:
        import ssl  # noqa: PLC0415

        with self._lock:
            if self._tls is None:
                self._tls = ssl.create_default_context(cafile=self._env.get("SSL_CERT_FILE") or None)
            return self._tls

    def _proxy(self, parts: SplitResult) -> SplitResult | None:
        """The proxy for an address; this machine itself is never asked for through one."""
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
                f"the proxy of {parts.scheme.upper()}_PROXY is of the kind {proxy.scheme}; only http is known"
            )
        return proxy


class _Exchange:
    """One request and its answer, on a thread of its own so that nothing can hold the caller past its time."""

    def __init__(
        self,
        client: Client,
        method: str,
        parts: SplitResult,
        body: bytes | None,
        headers: dict[str, str],
        *,
        until: float,
        max_bytes: int,
    ) -> None:
        self.done = threading.Event()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.cancelled = False
        self._client = client
        self._request = (method, parts, body, headers)
        self._until = until
        self._max_bytes = max_bytes
        self._connection: HTTPConnection | None = None

    def run(self) -> None:
        try:
            answer = self._run()
        except Exception as error:  # noqa: BLE001 - whatever ends this thread, the caller must hear of it
            if self._connection is not None:
                self._connection.close()
            if not self.done.is_set():
                self.error = error
        else:
            if not self.done.is_set():
                self.answer = answer
        self.done.set()

    def stop(self) -> None:
        """Lets the caller go on, and cuts the socket when the answer is still on its way."""
        if self.answer is not None or self.error is not None:
            return
        self.done.set()
        sock = self._connection.sock if self._connection else None
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS: wakes a thread that waits in it

    def _run(self) -> Answer:
        method, parts, body, headers = self._request
        name, connection, plain = self._client.connection(parts, self._until)
        self._connection = connection
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = f"http://{parts.netloc}{path}" if plain else path
        if connection.sock is None:
            connection.connect()
        if self.done.is_set():
            raise TimeoutError
        connection.sock.settimeout(max(0.01, self._until - time.monotonic()))
        connection.request(method, target, body=body, headers={**headers, **self._client.proxy_key(parts)})
        response = connection.getresponse()
        data = self._read(response)
        found = {key.lower(): value for key, value in response.getheaders()}
        response.close()  # read whole, but the connection would not know
        if response.will_close:
            connection.close()
        else:
            self._connection = None
            self._client.keep(name, connection)
        return Answer(response.status, response.reason, found, data)

    def _read(self, response: Any) -> bytes:
        wanted: int | None = response.length
        data = bytearray()
        while part := response.read1(_READ_BYTES):
            data += part
            if len(data) > self._max_bytes:
                raise CallError(f"it answered with more than {self._max_bytes:,} bytes")
            if self.done.is_set():
                raise TimeoutError
        if wanted is not None and len(data) < wanted:
            raise CallError("its answer was cut off", again=True)
        return bytes(data)


def address(url: str) -> SplitResult:
    """An http address in its parts, or an error that says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CallError(f"its address is no http address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise CallError(f"the address {url!r} is no http address")
    if parts.username or parts.password:
        raise CallError(f"the address of {parts.hostname} holds a name or password; keys have a setting of their own")
    return parts


def _quiet(sock: socket.socket) -> bool:
    """Whether a kept connection is still good: one that has something to say has been hung up by its server."""
    try:
        return not select.select([sock], [], [], 0)[0]
    except (OSError, ValueError):
        return False  # closed, or one of so many that `select` cannot watch it


def _proxy_key(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    import base64  # noqa: PLC0415

    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(login.encode()).decode()}


def _said(error: Exception) -> str:
    from http.client import HTTPException, IncompleteRead  # noqa: PLC0415
    from ssl import SSLCertVerificationError, SSLError  # noqa: PLC0415

    match error:
        case TimeoutError():
            said = "timed out"
        case SSLCertVerificationError():
            said = f"its certificate is not trusted: {error.verify_message}"
        case SSLError():
            said = f"TLS failed: {error.reason or error}"
        case socket.gaierror():
            said = "its host name is not known"
        case IncompleteRead():
            said = "its answer was cut off"
        case OSError():
            said = error.strerror or str(error)
        case HTTPException() | CallError():
            said = str(error) or "it answered no HTTP"
        case _:
            said = f"{type(error).__name__}: {error}"
    return said


def _again(error: Exception) -> bool:
    from http.client import BadStatusLine, IncompleteRead  # noqa: PLC0415
    from ssl import SSLCertVerificationError  # noqa: PLC0415

    if isinstance(error, CallError):
        return error.again
    return isinstance(error, OSError | IncompleteRead | BadStatusLine) and not isinstance(
        error, SSLCertVerificationError
    )


__all__ = ["HIDDEN", "Answer", "CallError", "Client", "address", "redacted"]
