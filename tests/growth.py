"""Whether the time for an input grows as its length does, on a quiet machine and on a busy one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input", str, bytes)
_TRIES = 6
_MOST = 8.0  # four times the length takes about four times as long; where the time grows with its square, sixteen times
_NOTHING_S = 0.02  # too little to compare


def grows_as_its_length(work: Callable[[Input], object], whole: Input) -> bool:
    """Compares the processor time for an input with that for its first quarter, by the best of a few tries."""
    quarter = whole[: len(whole) // 4]
    best = [math.inf, math.inf]
    for _ in range(_TRIES):
        for number, one in enumerate((quarter, whole)):
            begun = time.thread_time()
            work(one)
            best[number] = min(best[number], time.thread_time() - begun)
        if best[1] < max(_NOTHING_S, _MOST * best[0]):
            return True
    return False
