"""Who is let in: the rules of the door by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from notewell.surfaces.server.guard import Door, Guard, _Buckets, _unclear


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "127.1.2.3", "[::1]:8765", "[::1]"]
)
def test_names_of_this_machine_are_admitted(host: str) -> None:
    assert Door().admits_host(host)


@pytest.mark.parametrize(
    "host",
    ["192.168.1.5", "10.0.0.1:80", "example.org", "localhost.", "0.0.0.0", "::1", "127.0.0.1@x"],
)
def test_other_names_are_not(host: str) -> None:
    assert not Door().admits_host(host)


def test_with_a_token_bare_addresses_and_named_hosts_are_admitted() -> None:
    door = Door(token="x" * 16, loopback=False, names=("notes.example",))
    assert door.admits_host("192.168.1.5:8765")
    assert door.admits_host("Notes.example")
    assert not door.admits_host("evil.example")


@given(st.text(max_size=60))
def test_no_text_makes_the_door_fail(text: str) -> None:
    door = Door(token="secret-secret-16")
    assert door.admits_host(text) in (True, False)
    assert door.admits_origin(text, "localhost") in (True, False)
    assert not door.admits_token(text) or text.partition(" ")[2].strip() == door.token


def test_a_bucket_empties_and_fills_again() -> None:
    now = [0.0]
    buckets = _Buckets(Door(per_second=2.0, burst=3), lambda: now[0])
    assert [buckets.wait_s("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert buckets.wait_s("a") == pytest.approx(0.5)
    assert buckets.wait_s("b") == 0.0
    now[0] = 0.5
    assert buckets.wait_s("a") == 0.0
    assert buckets.wait_s("a") > 0.0


@pytest.mark.parametrize(
    ("version", "more", "said"),
    [
        (
            "1.1",
            [(b"content-length", b"4")],
            "the request has Transfer-Encoding together with Content-Length",
        ),
        ("1.0", [], "the request has Transfer-Encoding together with HTTP/1.0"),
        ("1.1", [], None),
    ],
)
def test_what_makes_a_length_unclear_is_said(
    version: str, more: list[tuple[bytes, bytes]], said: str | None
) -> None:
    headers = [(b"host", b"localhost"), (b"transfer-encoding", b"chunked"), *more]
    scope = {"type": "http", "http_version": version, "query_string": b"", "headers": headers}
    refusal = _unclear(scope, Headers(scope=scope))
    assert (refusal and refusal[2]) == said
    assert not refusal or refusal[3] == "send Content-Length and no Transfer-Encoding"


def test_who_has_no_token_is_told_where_it_is() -> None:
    headers = [(b"host", b"127.0.0.1")]
    scope = {"type": "http", "path": "/api/search", "headers": headers}
    refusal = Guard(PlainTextResponse("a note"), Door())._stranger(scope, Headers(scope=scope))
    assert refusal is not None
    assert "with what follows #token= in the address that notewell serve printed" in refusal[3]
