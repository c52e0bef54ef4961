"""Whether the work for an input grows as its length does, on a quiet machine and on a busy one.

In every run this is for a guard to say, which nothing but a hang meets: the inputs are so long that
work which grows with the square of the length would go on for minutes. The slow runs measure.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TypeVar

import pytest

Input = TypeVar("Input", str, bytes)
# of processor time, which a busy machine does not use up; what is tried takes about a second of it
HANG_S = 30.0
_TRIES = 6
# Eight times the length takes about eight times as long, somewhat more where the shorter one fits
# into a bound of the work; where the time grows with its square, 64 times.
_LONGER, _MOST = 8, 32.0
_NOTHING_S = 0.02  # too little to compare


class Linear(Protocol):
    """Says no where the work for an input grows faster than its length."""

    def __call__(self, work: Callable[[Input], object], whole: Input) -> None: ...


class Hang(BaseException):
    """What no `except Exception` of the work takes for its own."""


@contextmanager
def no_hang(cpu_s: float = HANG_S) -> Iterator[None]:
    """Ends what uses up the processor time that only a hang needs, and fails."""
    if not hasattr(signal, "setitimer"):  # the limit of pytest is left
        yield
        return
    hung = []

    def end(_signal: int, _frame: FrameType | None) -> None:
        hung.append(True)
        raise Hang

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, cpu_s, 1.0)
    try:
        yield
    except Hang:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert not hung, f"not done after {cpu_s:.0f} s of processor time"


def grows_as_its_length(work: Callable[[Input], object], whole: Input) -> bool:
    """Compares the processor time for an input with that for a part of it, by the best of a few
    tries.
    """
    part = whole[: len(whole) // _LONGER]
    best = [math.inf, math.inf]
    for _ in range(_TRIES):
        for number, one in enumerate((part, whole)):
            begun = time.thread_time()
            work(one)
            best[number] = min(best[number], time.thread_time() - begun)
        if best[1] < max(_NOTHING_S, _MOST * best[0]):
            return True
    return False


def ends(work: Callable[[Input], object], whole: Input) -> None:
    """A quarter of the input: enough for a hang, and a slow machine does not take it for one."""
    with no_hang():
        work(whole[: len(whole) // 4])


def measured(work: Callable[[Input], object], whole: Input) -> None:
    assert grows_as_its_length(work, whole)


@pytest.fixture(
    params=[ends, pytest.param(measured, marks=pytest.mark.slow)], ids=["ends", "measured"]
)
def linear(request: pytest.FixtureRequest) -> Linear:
    """`linear(work, whole)`: ends, in every run, and measured, in slow ones."""
    found: Linear = request.param
    return found


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, a piece of work calls in this thread."""
    count = 0

    def called(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
