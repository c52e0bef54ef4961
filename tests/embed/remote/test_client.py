"""The HTTP client against real servers that hang, drip, lie and redirect."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from notewell.embed.remote.client import CallError, Client, redacted
from tests.embed.provider_server import (
    KEY,
    ProviderServer,
    cut_off,
    drip,
    drip_body,
    hang,
    hang_up,
    serving,
    status,
)

AUTH = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
BODY = b'{"model": "m", "input": ["a"]}'


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving(ProviderServer("openai")) as server:
        yield server


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client(secrets=[KEY])
    yield client
    client.close()


def call(client: Client, server: ProviderServer, **more: Any) -> Any:
    return client.call("POST", server.url + "/embeddings", body=BODY, headers=AUTH, **more)


def test_connections_are_kept_and_used_again(server: ProviderServer, client: Client) -> None:
    made: list[Any] = []
    accept = server.get_request

    def counted() -> Any:
        made.append(accept())
        return made[-1]

    server.get_request = counted  # type: ignore[method-assign]
    assert [call(client, server).status for _ in range(5)] == [200] * 5
    assert len(made) == 1


def test_a_connection_that_the_server_closed_is_not_used_again(
    server: ProviderServer, client: Client
) -> None:
    assert call(client, server).status == 200
    (held,) = client._idle.values()
    held[0].sock.shutdown(socket.SHUT_RDWR)
    assert call(client, server).status == 200


@pytest.mark.parametrize(
    "fault", [hang, drip, drip_body], ids=["hangs", "drips headers", "drips the body"]
)
def test_the_deadline_holds_whatever_the_server_does(
    server: ProviderServer, client: Client, fault: Any
) -> None:
    server.always = fault
    with pytest.raises(CallError, match="timed out") as caught:
        call(client, server, timeout_s=0.2)
    assert caught.value.again


def test_the_deadline_holds_when_nobody_takes_the_connection(client: Client) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with pytest.raises(CallError, match="timed out"):
            client.call("GET", f"http://127.0.0.1:{full.getsockname()[1]}/", timeout_s=0.2)


def test_an_address_that_takes_no_connection_is_left_before_a_server_that_thinks(
    server: ProviderServer, client: Client
) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):  # they fill its queue: what comes now gets no answer at all
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(CallError, match=r"no connection after 0.1 s") as caught:
            client.call(
                "GET", f"http://127.0.0.1:{full.getsockname()[1]}/", timeout_s=3600, connect_s=0.1
            )
        assert caught.value.again
    server.faults.append(hang)
    with pytest.raises(CallError, match=r"timed out after 2 s"):
        call(client, server, timeout_s=2.0, connect_s=1.999)


@pytest.mark.parametrize("fault", [cut_off, hang_up], ids=["in the middle", "at once"])
def test_an_answer_that_is_cut_off_is_worth_another_try(
    server: ProviderServer, client: Client, fault: Any
) -> None:
    server.always = fault
    with pytest.raises(CallError) as caught:
        call(client, server)
    assert caught.value.again


def test_nobody_at_the_address(client: Client) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(CallError, match="refused") as caught:
        client.call("GET", f"http://127.0.0.1:{port}/")
    assert caught.value.again


def test_an_answer_without_end_is_left(server: ProviderServer, client: Client) -> None:
    server.always = lambda asked, _: asked.raw(b"x" * 200_000)
    with pytest.raises(CallError, match="more than 100,000 bytes") as caught:
        call(client, server, max_bytes=100_000)
    assert not caught.value.again


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_named_and_never_followed(
    server: ProviderServer, client: Client, code: int
) -> None:
    with serving(ProviderServer("openai")) as other:
        place = f"http://localhost:{other.server_address[1]}/v1/embeddings?k={KEY}"
        server.always = status(code, {}, Location=place)
        with pytest.raises(
            CallError, match=rf"answered {code}, a redirect to localhost, which"
        ) as caught:
            call(client, server)
        assert not caught.value.again
        assert KEY not in str(caught.value)
        assert other.requests == []


def test_cancelling_ends_calls_at_once_and_cuts_their_sockets(
    server: ProviderServer, client: Client
) -> None:
    arrived, gone = threading.Event(), threading.Event()

    def notice(asked: Any, _: Any) -> None:
        arrived.set()
        assert asked.connection.recv(1) == b""
        gone.set()
        asked.close_connection = True

    server.always = notice
    failed: list[CallError] = []

    def run() -> None:
        with pytest.raises(CallError, match="cancelled") as caught:
            call(client, server, timeout_s=3600)
        failed.append(caught.value)

    thread = threading.Thread(target=run)
    thread.start()
    assert arrived.wait(60)
    client.close()
    thread.join(60)
    assert failed
    assert gone.wait(60), "the server sees that nobody listens any more"
    with pytest.raises(CallError, match="cancelled"):
        call(client, server)


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "example.org", "", "http://", "http://h:x/", "http://h:0/"]
)
def test_what_is_no_http_address_is_refused(client: Client, url: str) -> None:
    with pytest.raises(CallError, match="not an http address"):
        client.call("GET", url)


def test_an_address_with_a_password_is_refused_without_repeating_it(client: Client) -> None:
    with pytest.raises(CallError) as caught:
        client.call("GET", f"https://me:{KEY[:6]}@example.org/")
    assert KEY[:6] not in str(caught.value)


def test_a_header_that_is_none_tells_no_secret(server: ProviderServer) -> None:
    secret = "abc\r\nX-Evil: 1"
    client = Client(secrets=[secret])
    with pytest.raises(CallError, match="header") as caught:
        client.call("GET", server.url, headers={"Authorization": secret})
    assert "abc" not in str(caught.value)
    assert "abc" not in repr(client)
    assert server.requests == []


def test_secrets_are_taken_out_of_a_text_in_every_form() -> None:
    assert (
        redacted(f"key {KEY} and sk-test-5ecr3t%2FKey%2B42.", [KEY]) == "key (hidden) and (hidden)."
    )
    assert redacted("abc", ["", "a"]) == "abc"


class Proxy(BaseHTTPRequestHandler):
    """A proxy that forwards to one server, whatever host is asked for."""

    server: Any

    def do_POST(self) -> None:
        self.server.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        data = self.rfile.read(int(self.headers["Content-Length"]))
        # Not through Client: one that asks for this machine through its proxy would call this proxy
        # without end.
        host, port = self.server.target
        far = HTTPConnection(host, port, timeout=60)
        far.request("POST", "/v1/embeddings", body=data, headers=AUTH)
        answer = far.getresponse()
        body = answer.read()
        far.close()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.server.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        with socket.create_connection(self.server.far) as far:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=pump, args=(far, self.connection))
            back.start()
            pump(self.connection, far)
            back.join()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.seen = []  # type: ignore[attr-defined]
        proxy.target = server.server_address[:2]  # type: ignore[attr-defined]
        proxy.daemon_threads = True
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://me:pass%40word@127.0.0.1:{proxy.server_address[1]}")
        yield proxy
        proxy.shutdown()
        thread.join()


LOGIN = "Basic bWU6cGFzc0B3b3Jk"


def test_a_proxy_of_the_environment_is_used_with_its_login(
    server: ProviderServer, client: Client, proxy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "http://api.example.test/v1/embeddings"
    assert client.call("POST", address, body=BODY, headers=AUTH).status == 200
    assert proxy.seen == [("POST", address, LOGIN)]
    assert "Proxy-Authorization" not in server.requests[0][2]
    assert call(client, server).status == 200, "this machine is never asked for through a proxy"
    assert len(proxy.seen) == 1
    monkeypatch.setenv("no_proxy", "example.test")
    assert client._proxy(urlsplit(address)) is None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate that nobody has signed, for this machine and for a name."""
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "cert.pem", folder / "key.pem"
    names = "subjectAltName=IP:127.0.0.1,DNS:api.example.test"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=test"
    )
    subprocess.run(
        [*command.split(), "-addext", names, "-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
    )
    return str(made), str(key)


def test_a_certificate_that_nobody_vouches_for_is_refused(
    client: Client, certificate: tuple[str, str]
) -> None:
    with serving(ProviderServer("openai"), certificate=certificate) as server:
        with pytest.raises(CallError, match=r"certificate is not trusted: self.signed") as caught:
            call(client, server)
        assert not caught.value.again
        assert server.requests == []


def test_a_certificate_that_the_environment_trusts_is_taken(certificate: tuple[str, str]) -> None:
    with serving(ProviderServer("openai"), certificate=certificate) as server:
        trusting = Client(env={"SSL_CERT_FILE": certificate[0]})
        assert [call(trusting, server).status for _ in range(2)] == [200, 200]
        server.always = hang
        with pytest.raises(CallError, match="timed out"):
            call(trusting, server, timeout_s=0.2)
        trusting.close()


def test_tls_goes_through_a_tunnel_of_the_proxy(certificate: tuple[str, str], proxy: Any) -> None:
    with serving(ProviderServer("openai"), certificate=certificate) as server:
        proxy.far = ("127.0.0.1", server.server_address[1])
        trusting = Client(env={"SSL_CERT_FILE": certificate[0]})
        address = "https://api.example.test:8443/v1/embeddings"
        assert trusting.call("POST", address, body=BODY, headers=AUTH).status == 200
        trusting.close()
    assert proxy.seen == [("CONNECT", "api.example.test:8443", LOGIN)]


def test_a_server_that_speaks_no_tls_is_one_error(server: ProviderServer, client: Client) -> None:
    with pytest.raises(CallError, match="TLS failed"):
        client.call("GET", server.url.replace("http:", "https:") + "/", timeout_s=5)


def test_importing_it_imports_neither_http_nor_tls() -> None:
    code = (
        "import sys, notewell.embed.remote.client; print({'http.client', 'ssl', "
        "'urllib.request'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "set()"
