"""Fusions: from leg ranks and signals to one score. The published ones are here as they were published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from recollect.types import Candidate, Query

RRF_K = 60


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first, ties by id."""
    return sorted(candidates, key=lambda c: (-c.score, c.chunk.id))


def rescored(candidates: Iterable[Candidate], score: Callable[[Candidate], float]) -> list[Candidate]:
    """The candidates with a new score each, best first."""
    return ordered(replace(c, score=score(c)) for c in candidates)


def falling(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same order with scores that fall where they must, so that no later sort undoes it."""
    out: list[Candidate] = []
    last: Candidate | None = None
    for c in candidates:
        if last is None or c.score < last.score or (c.score == last.score and c.id >= last.id):
            last = c
        else:
            last = replace(c, score=min(last.score * (1.0 - 1e-9), math.nextafter(last.score, 0.0)))
        out.append(last)
    return out


def _found_by(candidates: Sequence[Candidate], leg: str) -> bool:
    return any(leg in c.ranks for c in candidates)


def _legs_only(candidates: Sequence[Candidate], legs: Sequence[str]) -> list[Candidate]:
    """Without candidates that only another leg brought: a published pipeline had no such leg."""
    return [c for c in candidates if any(leg in c.ranks for leg in legs)]


@dataclass(frozen=True, slots=True)
class Weighted:
    """vector·cosine + text·1/(1+rank), rank from 0. `silent_is_zero` and `clamped` are faults of an old release."""

    vector: float = 0.7
    text: float = 0.3
    silent_is_zero: bool = False
    clamped: bool = False

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """A silent leg gives its weight to the other one, unless that fault is asked for."""
        pool = _legs_only(candidates, ("vector", "lexical"))
        vector = self.vector if self.silent_is_zero or _found_by(pool, "vector") else 0.0
        text = self.text if self.silent_is_zero or _found_by(pool, "lexical") else 0.0
        total = (vector + text) or 1.0

        def score(c: Candidate) -> float:
            cosine = max(0.0, c.ranks["vector"].score) if "vector" in c.ranks else 0.0
            rank = c.ranks["lexical"].rank - 1 if "lexical" in c.ranks else None
            words = 0.0 if rank is None else 1.0 if self.clamped else 1.0 / (1.0 + rank)
            return (vector * cosine + text * words) / total

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class MaxNorm:
    """Cosine over the best cosine, 1/(1+rank) of the keywords, weighted."""

    vector: float = 0.7
    text: float = 0.3

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Scores what either leg found."""
        pool = _legs_only(candidates, ("vector", "lexical"))
        best = max((c.ranks["vector"].score for c in pool if "vector" in c.ranks), default=0.0)
        total = (self.vector + self.text) or 1.0

        def score(c: Candidate) -> float:
            cosine = max(0.0, c.ranks["vector"].score / best) if best > 0 and "vector" in c.ranks else 0.0
            words = 1.0 / c.ranks["lexical"].rank if "lexical" in c.ranks else 0.0
            return (self.vector * cosine + self.text * words) / total

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion: Σ weight/(60+rank), divided by the best possible sum if `normalised`."""

    vector: float = 0.7
    text: float = 0.3
    normalised: bool = True

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Scores by rank alone."""
        pool = _legs_only(candidates, ("vector", "lexical"))
        weights = {"vector": self.vector, "lexical": self.text}
        best = (sum(weights.values()) / (RRF_K + 1) if self.normalised else 1.0) or 1.0

        def score(c: Candidate) -> float:
            total = sum(w / (RRF_K + c.ranks[leg].rank) for leg, w in weights.items() if leg in c.ranks)
            return min(1.0, total / best)

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class Single:
    """One leg alone, in its own order, its scores squeezed into 0–1."""

    leg: str

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """A cosine stays itself; other scores become s/(1+s), which keeps their order."""
        pool = [c for c in candidates if self.leg in c.ranks]

        def score(c: Candidate) -> float:
            value = c.ranks[self.leg].score
            return max(0.0, min(1.0, value)) if self.leg == "vector" else max(0.0, value) / (1.0 + max(0.0, value))

        return rescored(pool, score)


def sigmoid(x: float) -> float:
    """The logistic function, safe at both ends."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    return math.exp(x) / (1.0 + math.exp(x))
