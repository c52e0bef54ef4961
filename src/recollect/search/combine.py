"""The default fusion: a small logistic combination of real scores, each relative to what it could be.

Every weight is in the table below. A term that is a product lets the weight of a leg follow the evidence of the
question at hand: how far the best cosine stands out from the corpus, how much of the question the words cover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.search.fusion import ordered, sigmoid
from recollect.types import Candidate, Query

WEIGHTS: Mapping[str, float] = {
    "bias": -4.5,
    "text": 3.0,
    "cover": 2.0,
    "near": 1.0,
    "head": 0.7,
    "exact": 0.3,
    "z": 0.8,
    "date": 2.0,
}
"""Fitted by `python -m recollect.eval.fit`; leave-one-set-out figures in benchmarks/QUALITY.md."""

Z_SCALE = 1.0


def features(candidate: Candidate) -> dict[str, float]:
    """What the combination looks at, by name."""
    s = candidate.signals
    readable = 1.0 - s.get("foreign", 0.0)
    return {
        "bias": 1.0,
        "text": s.get("text", 0.0),
        "cover": s.get("cover", 0.0),
        "near": s.get("near", 0.0),
        "head": s.get("head", 0.0),
        "exact": s.get("exact", 0.0),
        "z": s.get("z", 0.0) * readable,
        "date": s.get("date", 0.0),
    }


@dataclass(frozen=True, slots=True)
class Combine:
    """Scores by the weights of the table; `confidence` is the same evidence, calibrated."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Scores every candidate of every leg."""
        out = []
        for c in candidates:
            total = sum(WEIGHTS[name] * value for name, value in features(c).items())
            score = sigmoid(total)
            out.append(replace(c, score=score, signals={**c.signals, "confidence": score}))
        return ordered(out)
