"""Fusions turn leg ranks into one score. These are the published ones, as they were published."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from notewell.errors import SettingsError
from notewell.types import Candidate, Query

LEGS = ("lexical", "vector", "path")
_LARGEST_K = 1_000_000


def ordered(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first, ties by id."""
    return sorted(candidates, key=lambda c: (-c.score, c.chunk.id))


def rescored(
    candidates: Iterable[Candidate], score: Callable[[Candidate], float]
) -> list[Candidate]:
    """The candidates with new scores, best first."""
    # Built outright: `replace` takes three times as long, and this runs for every candidate of
    # every search.
    return ordered(
        Candidate(c.chunk, score(c), c.ranks, c.signals, c.relations, c.near) for c in candidates
    )


def falling(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same order, with scores lowered where needed so that no later sort undoes it."""
    out: list[Candidate] = []
    last: Candidate | None = None
    for c in candidates:
        if last is None or c.score < last.score or (c.score == last.score and c.id >= last.id):
            last = c
        else:
            last = replace(c, score=min(last.score * (1.0 - 1e-9), math.nextafter(last.score, 0.0)))
        out.append(last)
    return out


def _check_weights(vector: float, text: float) -> None:
    if not (0.0 <= vector < math.inf and 0.0 <= text < math.inf and vector + text > 0.0):
        raise SettingsError(
            f"the weights are vector={vector:g}, text={text:g}",
            hint="give two from 0 on, not both 0",
        )


def _two_legs(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that keywords or meaning found: the published pipelines had no other leg."""
    return [c for c in candidates if "vector" in c.ranks or "lexical" in c.ranks]


@dataclass(frozen=True, slots=True)
class Weighted:
    """vector·cosine + text·1/(1+rank), rank from 0; `silent_is_zero` and `clamped` are faults of an
    old release.
    """

    vector: float = 0.7
    text: float = 0.3
    silent_is_zero: bool = False
    clamped: bool = False

    def __post_init__(self) -> None:
        _check_weights(self.vector, self.text)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """If a leg found nothing, the other takes its weight, unless `silent_is_zero` is set."""
        pool = _two_legs(candidates)
        vector = (
            self.vector if self.silent_is_zero or any("vector" in c.ranks for c in pool) else 0.0
        )
        text = self.text if self.silent_is_zero or any("lexical" in c.ranks for c in pool) else 0.0
        total = (vector + text) or 1.0

        def score(c: Candidate) -> float:
            cosine = max(0.0, c.ranks["vector"].score) if "vector" in c.ranks else 0.0
            rank = c.ranks["lexical"].rank - 1 if "lexical" in c.ranks else None
            words = 0.0 if rank is None else 1.0 if self.clamped else 1.0 / (1.0 + rank)
            return (vector * cosine + text * words) / total

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class MaxNorm:
    """vector·(cosine over the best cosine) + text·1/(1+rank), rank from 0."""

    vector: float = 0.7
    text: float = 0.3

    def __post_init__(self) -> None:
        _check_weights(self.vector, self.text)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Scores what either leg found."""
        pool = _two_legs(candidates)
        best = max((c.ranks["vector"].score for c in pool if "vector" in c.ranks), default=0.0)
        total = self.vector + self.text

        def score(c: Candidate) -> float:
            cosine = (
                max(0.0, c.ranks["vector"].score / best)
                if best > 0 and "vector" in c.ranks
                else 0.0
            )
            words = 1.0 / c.ranks["lexical"].rank if "lexical" in c.ranks else 0.0
            return (self.vector * cosine + self.text * words) / total

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion: Σ weight/(k+rank), divided by the best possible sum if
    `normalised`.
    """

    vector: float = 0.7
    text: float = 0.3
    normalised: bool = True
    k: float = 60

    def __post_init__(self) -> None:
        _check_weights(self.vector, self.text)
        if not 0 <= self.k <= _LARGEST_K:
            raise SettingsError(
                f"k is {self.k:g}",
                hint=f"give a number from 0 (the first rank is all) to {_LARGEST_K:,}",
            )

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Scores by rank alone."""
        pool = _two_legs(candidates)
        weights = {"vector": self.vector, "lexical": self.text}
        best = sum(weights.values()) / (self.k + 1) if self.normalised else 1.0

        def score(c: Candidate) -> float:
            total = sum(
                w / (self.k + c.ranks[leg].rank) for leg, w in weights.items() if leg in c.ranks
            )
            return min(1.0, total / best)

        return rescored(pool, score)


@dataclass(frozen=True, slots=True)
class Single:
    """One leg alone, in its own order, with its scores scaled to 0–1."""

    leg: str

    def __post_init__(self) -> None:
        if self.leg not in LEGS:
            raise SettingsError(
                f"no leg is called {self.leg!r}", hint=f"there are: {', '.join(LEGS)}"
            )

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """A cosine stays as it is; other scores become s/(1+s), which keeps their order."""
        pool = [c for c in candidates if self.leg in c.ranks]

        def score(c: Candidate) -> float:
            value = c.ranks[self.leg].score
            return (
                max(0.0, min(1.0, value))
                if self.leg == "vector"
                else max(0.0, value) / (1.0 + max(0.0, value))
            )

        return rescored(pool, score)


def sigmoids(values: Iterable[float]) -> list[float]:
    """The logistic function of each value, safe at both ends."""
    exp = math.exp
    return [1.0 / (1.0 + exp(-x)) if x >= 0 else exp(x) / (1.0 + exp(x)) for x in values]


def logit(score: float) -> float:
    """The inverse of that, finite at both ends."""
    score = min(max(score, 1e-9), 1.0 - 1e-9)
    return math.log(score / (1.0 - score))
