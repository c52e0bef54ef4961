"""Okapi BM25: the one formula that weighs words, for the keyword leg and for the evidence."""

from __future__ import annotations

import math

K1, B = 1.2, 0.75
HEAD_WEIGHT, EXACT_WEIGHT = 1.5, 0.25
"""How much an occurrence in the head and an exact form count, in occurrences in the body."""


def idf(chunks: int, found_in: float) -> float:
    """Robertson's inverse document frequency, never negative."""
    return math.log(1.0 + (chunks - found_in + 0.5) / (found_in + 0.5))
