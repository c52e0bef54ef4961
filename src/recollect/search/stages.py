"""Stages: candidates to candidates. Each may drop, rescore or reorder, never invent, repeat or mutate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recollect.errors import SettingsError
from recollect.search.fusion import ordered, rescored
from recollect.text.words import count_tokens, term_set
from recollect.types import Candidate, Chunk, Query


def age_days(chunk: Chunk, query: Query) -> int | None:
    """How old a passage is on the day of the question; None when it has no date, 0 when it is of the future."""
    day = chunk.facts.date
    return None if day is None else max(0, (query.now.date() - day).days)


@dataclass(frozen=True, slots=True)
class Decay:
    """Score × e^(−age/τ), never under `floor` of itself; evergreen files stay as they are."""

    half_life_days: float = 30.0
    tau_days: float = 0.0
    floor: float = 0.0
    spare_evergreen: bool = True

    def __post_init__(self) -> None:
        """τ and half-life are one curve: one given, the other follows."""
        if self.tau_days:
            half_life = self.tau_days * math.log(2)
            if self.half_life_days not in (30.0, half_life) and abs(self.half_life_days - half_life) > 1e-6:
                raise SettingsError(
                    f"half_life_days {self.half_life_days:g} and tau_days {self.tau_days:g} are different curves",
                    hint=f"τ = {self.tau_days:g} days is a half-life of {half_life:.3g} days; set one of them",
                )
            object.__setattr__(self, "half_life_days", half_life)
        elif self.half_life_days <= 0:
            raise SettingsError("half_life_days must be above 0")
        else:
            object.__setattr__(self, "tau_days", self.half_life_days / math.log(2))

    def keeps(self, chunk: Chunk, query: Query) -> float:
        """The share of its score that a passage keeps."""
        age = age_days(chunk, query)
        if age is None or (self.spare_evergreen and chunk.facts.evergreen):
            return 1.0
        return self.floor + (1.0 - self.floor) * math.exp(-age / self.tau_days)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Older passages lose, none is dropped."""
        return rescored(candidates, lambda c: c.score * self.keeps(c.chunk, query))


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    return term_set(text)


def jaccard(a: str, b: str) -> float:
    """Shared terms over all terms of two texts, in any script; 0 when a text has none."""
    first, second = _terms(a), _terms(b)
    if not first or not second:
        return 0.0
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance over the first `depth`: λ·relevance − (1−λ)·likeness to what stands above.

    Scores never rise down the list, so the order holds to the end.
    """

    lambda_: float = 0.7
    depth: int = 50

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Reorders; drops nothing."""
        head, rest = list(candidates[: self.depth]), list(candidates[self.depth :])
        best = max((c.score for c in head), default=0.0) or 1.0
        likeness = [0.0] * len(head)
        left = list(range(len(head)))
        picked: list[Candidate] = []
        while left:
            i = max(left, key=lambda n: (self.lambda_ * head[n].score / best - (1 - self.lambda_) * likeness[n], -n))
            left.remove(i)
            ceiling = picked[-1].score if picked else head[i].score
            picked.append(replace(head[i], score=min(ceiling, head[i].score)))
            for n in left:
                likeness[n] = max(likeness[n], jaccard(head[i].chunk.text, head[n].chunk.text))
        floor = picked[-1].score if picked else 0.0
        return picked + [replace(c, score=min(floor, c.score)) for c in rest]


@dataclass(frozen=True, slots=True)
class Suppress:
    """Drops passages that another document in the index says it supersedes."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Looks at what the candidates themselves declare."""
        gone = {name for c in candidates for name in c.chunk.facts.supersedes}
        if not gone:
            return list(candidates)
        return [c for c in candidates if c.chunk.path not in gone and c.id not in gone]


@dataclass(frozen=True, slots=True)
class Boost:
    """Score × a factor: by source, by path prefix, by importance and pins, or by a callable of yours."""

    sources: tuple[tuple[str, float], ...] = ()
    paths: tuple[tuple[str, float], ...] = ()
    importance: float = 0.2
    pin: float = 0.2
    factor: Callable[[Candidate, Query], float] | None = field(default=None)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Rescores, never beyond 1."""

        def score(c: Candidate) -> float:
            by = dict(self.sources).get(c.chunk.source, 1.0)
            for prefix, weight in self.paths:
                if c.chunk.path.startswith(prefix):
                    by *= weight
            by *= 1.0 + self.importance * c.chunk.facts.importance + (self.pin if c.chunk.facts.pinned else 0.0)
            if self.factor is not None:
                by *= max(0.0, self.factor(c, query))
            return min(1.0, c.score * by)

        return rescored(candidates, score)


@dataclass(frozen=True, slots=True)
class Quota:
    """At most so many passages of a source among the first `window`; what is over moves below them."""

    most: tuple[tuple[str, int], ...]
    window: int = 20

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Reorders; drops nothing."""
        limits = dict(self.most)
        seen: Counter[str] = Counter()
        kept: list[Candidate] = []
        over: list[Candidate] = []
        for c in candidates:
            seen[c.chunk.source] += 1
            full = seen[c.chunk.source] > limits.get(c.chunk.source, len(candidates)) and len(kept) < self.window
            (over if full else kept).append(c)
        ceiling = 1.0
        out = []
        for c in kept + over:
            ceiling = min(ceiling, c.score)
            out.append(replace(c, score=ceiling))
        return out


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of the list: what is too weak, beyond the limit or over the token budget goes."""

    min_score: float = 0.0
    on: str = "confidence"

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Keeps a prefix of the order, so that fewer wanted is the same list, shorter."""
        least = query.min_score if query.min_score >= 0 else self.min_score
        kept: list[Candidate] = []
        spent = 0
        for c in candidates:
            value = c.signals.get("confidence", c.score) if self.on == "confidence" else c.score
            if value < least:
                continue
            spent += count_tokens(c.chunk.text) if query.budget_tokens else 0
            if len(kept) == query.limit or (query.budget_tokens and spent > query.budget_tokens and kept):
                break
            kept.append(c)
        return kept


__all__ = ["Boost", "Cut", "Decay", "Mmr", "Quota", "Suppress", "age_days", "jaccard", "ordered"]
