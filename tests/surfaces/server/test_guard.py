"""Who is let in: the rules of the door by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.surfaces.server.guard import Door, _Buckets


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "127.1.2.3", "[::1]:8765", "[::1]"])
def test_names_of_this_machine_are_admitted(host: str) -> None:
    assert Door().admits_host(host)


@pytest.mark.parametrize(
    "host", ["192.168.1.5", "10.0.0.1:80", "example.org", "localhost.", "0.0.0.0", "::1", "127.0.0.1@x"]
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
