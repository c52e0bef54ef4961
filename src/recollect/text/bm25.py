"""The one formula by which words are weighed: Okapi BM25, by the keyword leg and by the evidence alike."""

from __future__ import annotations

import math

K1, B = 1.2, 0.75
HEAD_WEIGHT, EXACT_WEIGHT = 1.5, 0.25
"""What a word in the head adds to how often it stands in the body, and what an exact form counts."""


def idf(chunks: int, found_in: int) -> float:
    """Robertson's inverse document frequency, never negative."""
    return math.log(1.0 + (chunks - found_in + 0.5) / (found_in + 0.5))
