"""What compares two lengths sees a square, and does not take a straight line for one."""

from __future__ import annotations

from tests.growth import grows_as_its_length


def test_a_square_is_seen_and_a_line_is_none() -> None:
    text = "a" * 300_000
    assert grows_as_its_length(lambda one: [one.count("b") for _ in range(400)], text)
    assert not grows_as_its_length(lambda one: [one.count("b") for _ in range(len(one) // 250)], text)
