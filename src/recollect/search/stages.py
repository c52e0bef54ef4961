"""Stages: candidates to candidates. Each may drop, rescore or reorder, never invent, repeat or mutate."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recollect.errors import SettingsError
from recollect.search.fusion import falling, ordered, rescored
from recollect.text.words import count_tokens, term_set
from recollect.types import Candidate, Chunk, Query

_WHOLE = 1.0 - 1e-6


def age_days(chunk: Chunk, query: Query) -> int | None:
    """How old a passage is on the day of the question; None when it has no date, 0 when it is of the future."""
    day = chunk.day
    return None if day is None else max(0, (query.now.date() - day).days)


@dataclass(frozen=True, slots=True)
class Decay:
    """Score × e^(−age/τ), never under `floor` of itself; evergreen files stay as they are."""

    half_life_days: float = math.nan
    tau_days: float = math.nan
    floor: float = 0.0
    spare_evergreen: bool = True

    def __post_init__(self) -> None:
        """τ and half-life are one curve: one given, the other follows; none given, the half-life is 30 days."""
        if math.isnan(self.tau_days):
            half_life = 30.0 if math.isnan(self.half_life_days) else self.half_life_days
            object.__setattr__(self, "tau_days", half_life / math.log(2))
        else:
            half_life = self.tau_days * math.log(2)
            if not math.isnan(self.half_life_days) and not math.isclose(self.half_life_days, half_life, rel_tol=1e-3):
                raise SettingsError(
                    f"half_life_days {self.half_life_days:g} and tau_days {self.tau_days:g} are different curves",
                    hint=f"τ = {self.tau_days:g} days is a half-life of {half_life:.3g} days; set one of them",
                )
        object.__setattr__(self, "half_life_days", half_life)
        if half_life <= 0:
            raise SettingsError(f"a half-life of {half_life:g} days is no decay", hint="give more than 0 days")
        if not 0.0 <= self.floor <= 1.0:
            raise SettingsError(f"floor is {self.floor:g}", hint="it is the share that is kept, 0 to 1")

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

    Scores fall down the list, so the order holds to the end.
    """

    lambda_: float = 0.7
    depth: int = 50

    def __post_init__(self) -> None:
        """Outside 0 to 1 likeness would be a merit."""
        if not 0.0 <= self.lambda_ <= 1.0:
            raise SettingsError(f"lambda is {self.lambda_:g}", hint="1 is relevance alone, 0 is difference alone")

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        head, rest = list(candidates[: self.depth]), list(candidates[self.depth :])
        best = max((c.score for c in head), default=0.0) or 1.0
        likeness = [0.0] * len(head)
        left = list(range(len(head)))
        picked: list[Candidate] = []
        while left:
            i = max(left, key=lambda n: (self.lambda_ * head[n].score / best - (1 - self.lambda_) * likeness[n], -n))
            left.remove(i)
            picked.append(head[i])
            for n in left:
                likeness[n] = max(likeness[n], jaccard(head[i].chunk.text, head[n].chunk.text))
        return falling(picked + rest)


@dataclass(frozen=True, slots=True)
class Newer:
    """When a question asks how things stand, the newer of the two best notes goes first if they are close.

    The two change places, nothing else moves: the only true note is never buried for its age. `margin` is in
    units of the logit of the score; a question that names a day is left alone.
    """

    margin: float = 2.0

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Swaps the scores of the best passages of two notes."""
        out = list(candidates)
        if not query.wants_now or query.dates or not out:
            return out
        first = out[0]
        place = next((i for i, c in enumerate(out) if c.chunk.path != first.chunk.path), None)
        if place is None:
            return out
        second = out[place]
        days = first.chunk.day, second.chunk.day
        if days[0] is None or days[1] is None or days[1] <= days[0] or _logit(first) - _logit(second) > self.margin:
            return out
        out[0], out[place] = replace(second, score=first.score), replace(first, score=second.score)
        return out


def _logit(candidate: Candidate) -> float:
    score = min(max(candidate.score, 1e-9), 1.0 - 1e-9)
    return math.log(score / (1.0 - score))


@dataclass(frozen=True, slots=True)
class Spread:
    """A note's second, third… passage steps back a little each time, so that one note does not fill the list.

    `step` is in units of the logit of the score; the first passage of every note keeps its place among the others.
    """

    step: float = 1.0
    depth: int = 50

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        head = candidates[: self.depth]
        seen: Counter[str] = Counter()
        placed: list[tuple[float, str, Candidate]] = []
        for c in head:
            placed.append((seen[c.chunk.path] * self.step - _logit(c), c.id, c))
            seen[c.chunk.path] += 1
        placed.sort(key=lambda p: p[:2])
        return falling([c for _, _, c in placed] + list(candidates[self.depth :]))


@dataclass(frozen=True, slots=True)
class Suppress:
    """Drops passages that another passage in the index says it supersedes; pinned ones stay."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Looks at what the store knows and at what the candidates declare; two that supersede each other both stay."""
        if query.include_superseded:
            return list(candidates)
        by: dict[str, set[str]] = {}
        for c in candidates:
            for name in c.chunk.facts.supersedes:
                by.setdefault(name, set()).add(c.chunk.path)
        if not by:  # no note here says that it replaces anything
            return [c for c in candidates if c.chunk.facts.pinned or c.relations.copy or not c.relations.superseded_by]
        none: set[str] = set()

        def stays(c: Candidate) -> bool:
            if c.chunk.facts.pinned:
                return True
            if c.relations.superseded_by and not c.relations.copy:
                return False
            newer = by.get(c.chunk.path, none) | by.get(c.id, none)
            return newer <= {c.chunk.path, *c.chunk.facts.supersedes}

        return [c for c in candidates if stays(c)]


@dataclass(frozen=True, slots=True)
class Collapse:
    """Drops passages of which the index has a newer copy; pinned ones stay."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """The newest copy stands at the best place that any reached; if no leg brought it, the best stands for all."""
        copies = [c for c in candidates if c.relations.copy and not c.chunk.facts.pinned]
        if query.include_superseded or not copies:
            return list(candidates)
        older = {c.id for c in copies}
        stand_in = {c.id: c.id for c in candidates if c.id not in older}
        best: dict[str, float] = {}
        for c in copies:
            head = stand_in.setdefault(c.relations.superseded_by, c.id)
            best[head] = max(best.get(head, 0.0), c.score)
        gone = older - set(stand_in.values())
        kept = [c for c in candidates if c.id not in gone]
        if all(best.get(c.id, 0.0) <= c.score for c in kept):
            return kept
        return rescored(kept, lambda c: max(c.score, best.get(c.id, 0.0)))


@dataclass(frozen=True, slots=True)
class Settle:
    """Of two passages that contradict each other the newer goes directly before the older.

    Nothing else moves. A question that names a day is left alone, and so is one whose words the older has more of:
    it may well be about that one.
    """

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Lifts the newer; drops nothing."""
        out = list(candidates)
        if query.dates or not any(c.relations.conflicts_with for c in out):
            return out
        for newer in sorted((c for c in candidates if c.relations.conflicts_with), key=_newest_last):
            against = set(newer.relations.conflicts_with)
            place = next((i for i, c in enumerate(out) if c.id == newer.id), 0)
            goal = next(
                (i for i, c in enumerate(out[:place]) if c.id in against and _replaces(newer, c)),
                None,
            )
            if goal is not None:
                lifted = replace(out.pop(place), score=out[goal].score)
                out.insert(goal, lifted)
        return falling(out)


def _newest_last(candidate: Candidate) -> tuple[str, str, int, str]:
    day = candidate.chunk.day
    return (day.isoformat() if day else "", candidate.chunk.path, candidate.chunk.start_line, candidate.id)


def _replaces(newer: Candidate, older: Candidate) -> bool:
    covers = newer.signals.get("cover", 0.0) >= older.signals.get("cover", 0.0) - 1e-9
    return covers and is_newer(newer.chunk, older.chunk)


def is_newer(one: Chunk, other: Chunk) -> bool:
    """Whether a passage is surely newer than another: by their days, or further down in one note."""
    days = one.day, other.day
    if one.path == other.path:
        return one.start_line > other.start_line
    return days[0] is not None and days[1] is not None and days[0] > days[1]


@dataclass(frozen=True, slots=True)
class Boost:
    """Score × a factor: by source, by path prefix, by importance and pins, or by a callable of yours."""

    sources: tuple[tuple[str, float], ...] = ()
    paths: tuple[tuple[str, float], ...] = ()
    importance: float = 0.2
    pin: float = 0.2
    factor: Callable[[Candidate, Query], float] | None = field(default=None)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Rescores, never beyond 1; most notes say nothing about themselves, and then nothing moves."""
        marked = any(c.chunk.facts.importance or c.chunk.facts.pinned for c in candidates)
        if not (marked or self.sources or self.paths or self.factor):
            return list(candidates)

        def score(c: Candidate) -> float:
            by = dict(self.sources).get(c.chunk.source, 1.0)
            for prefix, weight in self.paths:
                if c.chunk.path.startswith(prefix):
                    by *= weight
            by *= 1.0 + self.importance * c.chunk.facts.importance + (self.pin if c.chunk.facts.pinned else 0.0)
            if self.factor is not None:
                by *= max(0.0, self.factor(c, query))
            return max(0.0, min(1.0, c.score * by))

        return rescored(candidates, score)


@dataclass(frozen=True, slots=True)
class Quota:
    """At most so many passages of a source among the first `window`; what is over moves below them."""

    most: tuple[tuple[str, int], ...]
    window: int = 20

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        limits = dict(self.most)
        seen: Counter[str] = Counter()
        kept: list[Candidate] = []
        below: list[Candidate] = []
        for c in candidates:
            seen[c.chunk.source] += 1
            over = seen[c.chunk.source] > limits.get(c.chunk.source, len(candidates))
            (below if over or len(kept) == self.window else kept).append(c)
        return falling(kept + below)


@dataclass(frozen=True, slots=True)
class Abstain:
    """Returns nothing when even the best hit is very unlikely; one likely hit keeps the whole list.

    No single true passage is lost to a threshold, and a question that names its own `min_score` is left alone. So is
    one whose every word stands in a passage: in a handful of notes no word is rare, and it is no answer that none is.
    """

    least: float = 0.03

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """All or nothing."""
        if query.min_score >= 0 or any(
            c.signals.get("confidence", c.score) >= self.least or c.signals.get("cover", 0.0) > _WHOLE
            for c in candidates
        ):
            return list(candidates)
        return []


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of the list: what is too weak, beyond the limit or over the token budget goes."""

    min_score: float = 0.0
    on: str = "confidence"

    def least(self, query: Query) -> float:
        """What the question asks for, or else the profile."""
        return query.min_score if query.min_score >= 0 else self.min_score

    def value(self, candidate: Candidate) -> float:
        """What the least is compared with."""
        return candidate.signals.get("confidence", candidate.score) if self.on == "confidence" else candidate.score

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Keeps a prefix of the order, so that fewer wanted is the same list, shorter."""
        least = self.least(query)
        kept: list[Candidate] = []
        spent = 0
        for c in candidates:
            if self.value(c) < least:
                continue
            spent += count_tokens(c.chunk.text) if query.budget_tokens else 0
            if len(kept) == query.limit or (query.budget_tokens and spent > query.budget_tokens and kept):
                break
            kept.append(c)
        return kept


__all__ = [
    "Abstain",
    "Boost",
    "Collapse",
    "Cut",
    "Decay",
    "Mmr",
    "Newer",
    "Quota",
    "Settle",
    "Spread",
    "Suppress",
    "age_days",
    "is_newer",
    "jaccard",
    "ordered",
]
