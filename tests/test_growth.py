"""A hang and a square are seen, and a straight line is taken for neither."""

from __future__ import annotations

import contextlib
import re
import signal

import pytest

from tests.growth import HANG_S, calls_of, grows_as_its_length, no_hang

guarded = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="needs a timer of processor time"
)


@guarded
def test_a_hang_is_ended_whatever_its_work_catches() -> None:
    with pytest.raises(AssertionError, match="not done"), no_hang(0.05):
        re.search("(a+)+b", "a" * 100)
    with (
        pytest.raises(AssertionError, match="not done"),
        no_hang(0.05),
        contextlib.suppress(BaseException),
    ):
        re.search("(a+)+b", "a" * 100)
    with no_hang():
        assert re.search("(a+)+b", "ab")
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@guarded
@pytest.mark.slow
def test_a_square_of_a_megabyte_is_taken_for_a_hang() -> None:
    with pytest.raises(AssertionError, match=f"not done after {HANG_S:.0f} s"), no_hang():
        re.sub("curl [^\n]*?-u x", "", "curl " * 200_000)


@pytest.mark.slow
def test_a_square_is_seen_and_a_line_is_none() -> None:
    text = "a" * 300_000
    assert grows_as_its_length(lambda one: [one.count("b") for _ in range(400)], text)
    assert not grows_as_its_length(
        lambda one: [one.count("b") for _ in range(len(one) // 250)], text
    )


def test_calls_are_counted_those_of_c_too() -> None:
    def doubled(text: str) -> str:
        return text.upper().lower()

    few, many = (calls_of(lambda n=n: [doubled("a") for _ in range(n)]) for n in (10, 1_000))  # type: ignore[misc]
    assert many - few == 990 * 3
