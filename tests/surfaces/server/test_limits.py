"""What one client may take of the server, over real sockets: others are answered all the same."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.server.limits import Limits, Seldom
from tests.conftest import Write
from tests.surfaces.server.served import Served, serving

GET = b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = (
    b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 999\r\n\r\n"
)


@contextlib.contextmanager
def bounded(root: Path, **limits: Any) -> Iterator[Served]:
    with serving(root, warm=False, limits=Limits(**limits)) as served:
        yield served


def connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=60)


def until_closed(client: socket.socket, dribble: bytes = b"") -> bytes:
    """All that comes until the server closes, while a byte is sent every now and then."""
    heard = b""
    if dribble:
        client.settimeout(0.02)
    for _ in range(3_000):
        try:
            part = client.recv(65536)
            if not part:
                return heard
            heard += part
        except TimeoutError:
            if not dribble:
                raise
            client.send(dribble)
    raise AssertionError("the server did not close")


def until(fulfilled: Callable[[], bool]) -> None:
    """Waits for what the thread of the server does."""
    give_up = time.monotonic() + 60
    while not fulfilled() and time.monotonic() < give_up:
        time.sleep(0.005)
    assert fulfilled()


def test_an_answer_on_a_kept_connection_is_not_held_back(root: Path) -> None:
    """Without TCP_NODELAY each of them takes 40 ms and more."""
    with bounded(root) as served, connected(served) as client:
        client.send(GET)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        (connection,) = served.running.server_state.connections
        raw = connection.transport.get_extra_info("socket")
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_one_connection_too_many_is_told_so_and_the_next_is_let_in(root: Path) -> None:
    with bounded(root, connections=3) as served:
        held = [connected(served) for _ in range(3)]
        until(lambda: len(served.running.server_state.connections) == 3)
        reply = served.get("/api/status")
        assert reply.status == 503
        assert reply.json["error"]["code"] == "too_many"
        for one in held:
            one.close()
        until(lambda: not served.running.server_state.connections)
        assert served.get("/api/status").status == 200


def test_many_who_hold_connections_are_all_turned_away(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bounded(root, connections=5, header_s=2.0) as served:
        held = [connected(served) for _ in range(200)]
        for one in held:
            with contextlib.suppress(OSError):
                until_closed(one)
            one.close()
        assert served.get("/api/status").status == 200
    assert capsys.readouterr().err.count("turned away") == 1


@pytest.mark.parametrize(("sent", "byte"), [(GET[:20], b"x"), (POST, b" "), (GET + GET[:9], b"x")])
def test_a_request_that_comes_byte_by_byte_is_ended(
    root: Path, capsys: pytest.CaptureFixture[str], sent: bytes, byte: bytes
) -> None:
    with bounded(root, header_s=1.0, body_s=1.0) as served, connected(served) as client:
        client.send(sent)
        assert served.get("/page.js").status == 200
        head, _, body = until_closed(client, byte).rpartition(b"\r\n\r\n")
        assert b"HTTP/1.1 408 " in head
        assert json.loads(body)["error"]["code"] == "too_slow"
        assert served.get("/api/status").status == 200
    assert capsys.readouterr().err == ""


def test_a_connection_on_which_nothing_is_asked_is_closed(root: Path) -> None:
    with bounded(root, header_s=0.2) as served, connected(served) as client:
        assert until_closed(client) == b""
    with bounded(root, idle_s=0.2) as served, connected(served) as client:
        client.send(GET)
        assert until_closed(client).startswith(b"HTTP/1.1 200")


def test_a_stream_of_events_is_not_ended(root: Path) -> None:
    with (
        bounded(root, header_s=0.5, body_s=0.5, idle_s=0.5, unread_s=0.5) as served,
        connected(served) as client,
    ):
        client.send(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = client.recv(65536)
        assert heard.startswith(b"HTTP/1.1 200")
        client.settimeout(0.9)
        with pytest.raises(TimeoutError):
            until_closed(client)


def test_headers_without_end_are_refused(root: Path) -> None:
    with bounded(root) as served, connected(served) as client:
        with contextlib.suppress(OSError):
            client.sendall(GET[:-2] + b"X: y\r\n" * 100_000)
        head, _, body = until_closed(client).rpartition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert json.loads(body)["error"]["code"] == "bad_request"


def test_headers_that_come_at_once_are_bounded_too(root: Path) -> None:
    with bounded(root) as served:
        for size, answer in ((60_000, b"HTTP/1.1 200 "), (70_000, b"HTTP/1.1 400 ")):
            with connected(served) as client:
                client.sendall(GET[:-2] + b"X: " + b"y" * size + b"\r\nConnection: close\r\n\r\n")
                assert until_closed(client).startswith(answer)


@pytest.mark.parametrize(
    "head",
    [
        b"POST /api/search HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"POST /api/search HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        b"POST /api/search HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n",
    ],
)
def test_a_request_of_unclear_length_is_refused_and_nothing_behind_it_is_read(
    root: Path,
    head: bytes,
) -> None:
    for body in (b"0\r\n\r\n", b"4\r\n{}  \r\n0\r\n\r\n", b""):
        with bounded(root) as served, connected(served) as client:
            client.sendall(head + b"Host: localhost\r\n\r\n" + body + GET)
            heard = until_closed(client)
            assert heard.startswith(b"HTTP/1.1 400 ")
            assert heard.count(b"HTTP/1.1 ") == 1
            assert json.loads(heard.rpartition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


def test_who_reads_no_answer_is_cut_off(root: Path) -> None:
    with bounded(root, unread_s=0.2, header_s=0.2) as served, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", served.port))
        with contextlib.suppress(OSError):
            client.settimeout(60)
            client.sendall(GET.replace(b"page.js", b"openapi.json") * 1_000)
        until(lambda: not served.running.server_state.connections)


FEW_FILES = """
import resource, sys
from notewell.surfaces.server import limits
limits.Limits.room = lambda self: 100_000
resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
from notewell.surfaces.cli.main import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="no such limit there")
def test_when_files_run_out_the_log_stays_small_and_the_server_recovers(
    root: Path, write: Write
) -> None:
    write("MEMORY.md", "- a fact\n")
    line = [
        sys.executable,
        "-c",
        FEW_FILES,
        "serve",
        "-w",
        str(root),
        "--port",
        "0",
        "--model",
        "none",
    ]
    with subprocess.Popen(line, stderr=subprocess.PIPE, env=dict(os.environ)) as process:
        try:
            assert process.stderr is not None
            served = Served.told(process.stderr.readline().decode())
            assert served.get("/api/status").status == 200
            held = [connected(served) for _ in range(120)]
            first = process.stderr.readline().decode()
            for one in held:
                one.close()
            assert served.get("/api/status").status == 200
        finally:
            process.terminate()
            _, rest = process.communicate(timeout=60)
    assert "no connection can be accepted now: Too many open files" in first
    assert "Traceback" not in rest.decode()
    assert len(rest) < 1_000


def test_there_is_room_for_fewer_where_few_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resource = pytest.importorskip("resource")
    for soft, room in (
        (1024, 896),
        (256, 128),
        (64, 8),
        (100_000, 1_000),
        (resource.RLIM_INFINITY, 1_000),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _which, soft=soft: (soft, soft))
        assert Limits().room() == room


def test_the_same_line_is_written_once_in_a_while() -> None:
    now = [0.0]
    seldom = Seldom(60.0, lambda: now[0])

    def record(message: str, *args: object) -> logging.LogRecord:
        return logging.LogRecord("x", logging.WARNING, "", 0, message, args, None)

    assert [seldom.filter(record("full %d", n)) for n in range(3)] == [True, False, False]
    assert seldom.filter(record("other"))
    now[0] = 61.0
    last = record("full %d", 9)
    assert seldom.filter(last)
    assert last.getMessage() == "full 9 (and 2 times before)"
