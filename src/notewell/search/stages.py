"""Stages: candidates to candidates. Each may drop, rescore or reorder, never invent, repeat or
mutate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter

from notewell.embed.embedder import Reranker
from notewell.errors import EmbedderError, SettingsError
from notewell.search.confidence import other_script
from notewell.search.fusion import falling, logit, ordered, rescored
from notewell.text.link_syntax import is_named, link_list
from notewell.text.snippet import snippet
from notewell.text.words import count_tokens, term_set
from notewell.types import Candidate, Chunk, Query, Tense

_ALL = 1.0 - 1e-6
_FIRST = 6


def age_days(chunk: Chunk, query: Query) -> int | None:
    """The age of a passage on the day of the question: None without a date, 0 for a date in the
    future.
    """
    day = chunk.day
    return None if day is None else max(0, (query.now.date() - day).days)


@dataclass(frozen=True, slots=True)
class Decay:
    """Score × e^(−age/τ), never below `floor` of itself; evergreen files do not decay."""

    half_life_days: float = math.nan
    tau_days: float = math.nan
    floor: float = 0.0
    spare_evergreen: bool = True

    def __post_init__(self) -> None:
        """Computes τ from the half-life, or the half-life from τ; without either, the half-life is
        30 days.
        """
        if math.isnan(self.tau_days):
            half_life = 30.0 if math.isnan(self.half_life_days) else self.half_life_days
            object.__setattr__(self, "tau_days", half_life / math.log(2))
        else:
            half_life = self.tau_days * math.log(2)
            if not math.isnan(self.half_life_days) and not math.isclose(
                self.half_life_days, half_life, rel_tol=1e-3
            ):
                raise SettingsError(
                    (
                        f"half_life_days {self.half_life_days:g} and tau_days {self.tau_days:g} "
                        "are different curves"
                    ),
                    hint=(
                        f"τ = {self.tau_days:g} days is a half-life of {half_life:.3g} days; set "
                        "one of them"
                    ),
                )
        object.__setattr__(self, "half_life_days", half_life)
        if half_life <= 0:
            raise SettingsError(
                f"the half-life is {half_life:g} days", hint="give more than 0 days"
            )
        if not 0.0 <= self.floor <= 1.0:
            raise SettingsError(
                f"floor is {self.floor:g}",
                hint="give the share of the score that stays, from 0 to 1",
            )

    def keeps(self, chunk: Chunk, query: Query) -> float:
        """The share of its score that a passage keeps."""
        age = age_days(chunk, query)
        if age is None or (self.spare_evergreen and chunk.facts.evergreen):
            return 1.0
        return self.floor + (1.0 - self.floor) * math.exp(-age / self.tau_days)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Lowers older passages; drops none."""
        return rescored(candidates, lambda c: c.score * self.keeps(c.chunk, query))


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    return term_set(text)


def jaccard(a: str, b: str) -> float:
    """Shared terms over all terms of two texts, in any script; 0 if a text has none."""
    first, second = _terms(a), _terms(b)
    if not first or not second:
        return 0.0
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal marginal relevance over the first `depth`: λ·relevance − (1−λ)·similarity to what is
    ranked above.
    """

    lambda_: float = 0.7
    depth: int = 50

    def __post_init__(self) -> None:
        if not 0.0 <= self.lambda_ <= 1.0:
            raise SettingsError(
                f"lambda is {self.lambda_:g}", hint="1 is relevance alone, 0 is difference alone"
            )

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        head, rest = list(candidates[: self.depth]), list(candidates[self.depth :])
        best = max((c.score for c in head), default=0.0) or 1.0
        similarity = [0.0] * len(head)
        left = list(range(len(head)))
        picked: list[Candidate] = []
        while left:
            i = max(
                left,
                key=lambda n: (
                    self.lambda_ * head[n].score / best - (1 - self.lambda_) * similarity[n],
                    -n,
                ),
            )
            left.remove(i)
            picked.append(head[i])
            for n in left:
                similarity[n] = max(similarity[n], jaccard(head[i].chunk.text, head[n].chunk.text))
        return falling(picked + rest)


@dataclass(frozen=True, slots=True)
class Spread:
    """Moves the second, third, … passage of a note down by `step` logits each: one note must not
    fill the list.
    """

    step: float = 1.0
    depth: int = 50

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        head = candidates[: self.depth]
        seen: dict[str, int] = {}
        spread: list[tuple[float, str, Candidate]] = []
        for c in head:
            chunk = c.chunk
            before = seen.get(chunk.path, 0)
            spread.append((before * self.step - logit(c.score), chunk.id, c))
            seen[chunk.path] = before + 1
        spread.sort(key=itemgetter(0, 1))
        return falling([c for _, _, c in spread] + list(candidates[self.depth :]))


@dataclass(frozen=True, slots=True)
class Listing:
    """Puts a list of links, such as an index page, behind the best note that it links to, if the
    two are close.

    A list has at least this `share` of lines that are links. `margin` is in units of the logit of
    the score. A page that the question names is left alone.
    """

    share: float = 0.6
    margin: float = 2.5
    depth: int = 20

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Moves such lists down; drops nothing."""
        out = list(candidates)
        lists = {
            c.id: found
            for c in out[: self.depth]
            if (found := link_list(c.chunk.text))[0] >= self.share
        }
        for page in [c for c in out[: self.depth] if c.id in lists and "path" not in c.ranks]:
            share, names = lists[page.id]
            at = next(i for i, c in enumerate(out) if c.id == page.id)
            below = range(at + 1, min(self.depth, len(out)))
            goal = next(
                (i for i in below if out[i].id not in lists and is_named(out[i].chunk.path, names)),
                None,
            )
            if goal is not None and logit(page.score) - logit(out[goal].score) <= self.margin:
                out.insert(goal, replace(out.pop(at), signals=page.signals._replace(links=share)))
        return falling(out) if lists else out


@dataclass(frozen=True, slots=True)
class NotesFirst:
    """Puts a note before a turn of a conversation that is ahead of it by no more than `margin`, in
    logits of the score.

    Somebody wrote the note to be read again; the turn was said once, perhaps by a model. A turn
    that says nothing with a word of the question goes behind every note with a confidence of
    `answers` or more, since its title or the turn before it is what was found.
    """

    margin: float = 1.0
    answers: float = 0.5
    depth: int = 50

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        head = candidates[: self.depth]
        if len({c.chunk.source == "sessions" for c in head}) < 2:
            return list(candidates)

        notes = [c for c in head if c.chunk.source != "sessions"]
        last = min(
            (logit(c.score) for c in notes if c.confidence >= self.answers), default=math.inf
        )

        def standing(c: Candidate) -> tuple[float, bool]:
            is_note = c.chunk.source != "sessions"
            own = logit(c.score) - (0.0 if is_note else self.margin)
            return (min(own, last) if c.signals.is_half_open else own), is_note

        ranked = sorted(head, key=standing, reverse=True)
        return falling(ranked + list(candidates[self.depth :]))


@dataclass(frozen=True, slots=True)
class Suppress:
    """Drops passages that another passage in the index supersedes; pinned ones stay."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Uses the relations in the store and what the candidates declare; two that supersede each
        other both stay.
        """
        if query.include_superseded:
            return list(candidates)
        by: dict[str, set[str]] = {}
        for c in candidates:
            for name in c.chunk.facts.supersedes:
                by.setdefault(name, set()).add(c.chunk.path)
        if not by:  # no candidate declares that it replaces anything
            return [
                c
                for c in candidates
                if c.chunk.facts.pinned or c.relations.copy or not c.relations.superseded_by
            ]
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
    """Drops passages that have a newer copy in the index; pinned ones stay."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """The newest copy gets the best score of all copies; if no leg found it, the best copy
        replaces them all.
        """
        copies = [c for c in candidates if c.relations.copy and not c.chunk.facts.pinned]
        if query.include_superseded or not copies:
            return list(candidates)
        older = {c.id for c in copies}
        shown_as = {c.id: c.id for c in candidates if c.id not in older}
        best: dict[str, float] = {}
        for c in copies:
            shown = shown_as.setdefault(c.relations.superseded_by, c.id)
            best[shown] = max(best.get(shown, 0.0), c.score)
        dropped = older - set(shown_as.values())
        left = [c for c in candidates if c.id not in dropped]
        if all(best.get(c.id, 0.0) <= c.score for c in left):
            return left
        return rescored(left, lambda c: max(c.score, best.get(c.id, 0.0)))


@dataclass(frozen=True, slots=True)
class Settle:
    """Puts the newer of two passages that contradict each other directly before the older.

    Nothing else moves. A question about a period or about history is left alone, and so is a pair
    of which the older covers more of the question, which may well be about that one.
    """

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Moves the newer up; drops nothing."""
        out = list(candidates)
        past = query.dates or query.until or query.before or query.tense is Tense.HISTORY
        if past or not any(c.relations.conflicts_with for c in out):
            return out
        for newer in sorted(
            (c for c in candidates if c.relations.conflicts_with), key=_newest_last
        ):
            against = newer.relations.conflicts_with
            at = next((i for i, c in enumerate(out) if c.id == newer.id), 0)
            goal = next(
                (i for i, c in enumerate(out[:at]) if c.id in against and _replaces(newer, c)), None
            )
            if goal is not None:
                out.insert(goal, replace(out.pop(at), score=out[goal].score))
        return falling(out)


def _newest_last(candidate: Candidate) -> tuple[str, str, int, str]:
    day = candidate.chunk.day
    return (
        day.isoformat() if day else "",
        candidate.chunk.path,
        candidate.chunk.start_line,
        candidate.id,
    )


def _replaces(newer: Candidate, older: Candidate) -> bool:
    covers_as_much = newer.signals.cover >= older.signals.cover - 1e-9
    return covers_as_much and is_newer(newer.chunk, older.chunk)


def is_newer(one: Chunk, other: Chunk) -> bool:
    """Whether a passage is known to be newer than another: by their days, or further down in the
    same note.
    """
    if one.path == other.path:
        return one.start_line > other.start_line
    return one.day is not None and other.day is not None and one.day > other.day


@dataclass(frozen=True, slots=True)
class Boost:
    """Score × a factor: by source, by path prefix, by importance and pins, or by your own
    function.
    """

    sources: tuple[tuple[str, float], ...] = ()
    paths: tuple[tuple[str, float], ...] = ()
    importance: float = 0.2
    pin: float = 0.2
    factor: Callable[[Candidate, Query], float] | None = field(default=None)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Rescores, never above 1; without importance, pins or settings, nothing changes."""
        if not (self.sources or self.paths or self.factor):
            for c in candidates:
                facts = c.chunk.facts
                if facts.importance or facts.pinned:
                    break
            else:
                return list(candidates)

        def score(c: Candidate) -> float:
            by = dict(self.sources).get(c.chunk.source, 1.0)
            for prefix, weight in self.paths:
                if c.chunk.path.startswith(prefix):
                    by *= weight
            by *= (
                1.0
                + self.importance * c.chunk.facts.importance
                + (self.pin if c.chunk.facts.pinned else 0.0)
            )
            if self.factor is not None:
                by *= max(0.0, self.factor(c, query))
            return max(0.0, min(1.0, c.score * by))

        return rescored(candidates, score)


@dataclass(frozen=True, slots=True)
class Quota:
    """At most so many passages of a source among the first `window`; the rest move below them."""

    most: tuple[tuple[str, int], ...]
    window: int = 20

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:  # noqa: ARG002
        """Reorders; drops nothing."""
        limits = dict(self.most)
        seen: Counter[str] = Counter()
        first: list[Candidate] = []
        below: list[Candidate] = []
        for c in candidates:
            seen[c.chunk.source] += 1
            over = seen[c.chunk.source] > limits.get(c.chunk.source, len(candidates))
            (below if over or len(first) == self.window else first).append(c)
        return falling(first + below)


@dataclass(frozen=True, slots=True)
class Abstain:
    """Returns nothing if even the best hit is very unlikely; a single likely hit keeps them all.

    So no relevant passage is lost to a threshold. A question with its own `min_score` is left
    alone, and so is one whose words are all in one passage, that has one at `near` of the way from
    the mean of all meanings to 1, or that could share no word with most of the first, which are in
    another script.
    """

    least: float = 0.3
    near: float = 0.45

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """All or nothing."""
        if query.min_score >= 0 or any(map(self.keeps, candidates)):
            return list(candidates)
        first = candidates[:_FIRST]
        others = sum(other_script(c.chunk.text, query.text) for c in first)
        return list(candidates) if 2 * others > len(first) else []

    def keeps(self, candidate: Candidate) -> bool:
        """Whether a passage is reason enough to answer."""
        signals = candidate.signals
        return (
            candidate.confidence >= self.least
            or signals.cover > _ALL
            or (signals.lift or 0.0) >= self.near
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """Cuts off what is too weak, beyond the limit or over the token budget."""

    min_score: float = 0.0
    on: str = "confidence"

    def __post_init__(self) -> None:
        if self.on not in ("confidence", "score"):
            raise SettingsError(
                f"cut is on {self.on!r}", hint='it must be on="confidence" or on="score"'
            )

    def least(self, query: Query) -> float:
        """The least value to keep: the question's, or else the profile's."""
        return query.min_score if query.min_score >= 0 else self.min_score

    def value(self, candidate: Candidate) -> float:
        """What is compared with the least value."""
        return candidate.confidence if self.on == "confidence" else candidate.score

    def drops(self, candidate: Candidate, query: Query) -> bool:
        """Whether it is too weak; where the least is the profile's, `Abstain` says what is never
        too weak.
        """
        if self.value(candidate) >= self.least(query):
            return False
        own = query.min_score >= 0 or self.on != "confidence"
        return own or not (
            candidate.signals.cover > _ALL or other_script(candidate.chunk.text, query.text)
        )

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Keeps the start of the list, so that a smaller limit gives the same list, shorter."""
        out: list[Candidate] = []
        spent = 0
        for c in candidates:
            if self.drops(c, query):
                continue
            spent += count_tokens(c.chunk.text) if query.budget_tokens else 0
            if len(out) == query.limit or (
                query.budget_tokens and spent > query.budget_tokens and out
            ):
                break
            out.append(c)
        return out


@dataclass(frozen=True, slots=True)
class Rerank:
    """A model reads the first `depth` again, around the match: score = (1−weight)·fused +
    weight·reranker.

    If it fails or is late, the order stays.
    """

    reranker: Reranker = field(repr=False)
    depth: int = 20
    weight: float = 0.5
    passage: int = 600
    deadline_s: float = 1.5
    name: str = ""

    def __post_init__(self) -> None:
        """Takes the name of the model, which the trace shows."""
        object.__setattr__(
            self, "name", str(getattr(self.reranker, "id", type(self.reranker).__name__))
        )

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Reorders the first `depth`; the rest stays below them."""
        head, rest = list(candidates[: self.depth]), list(candidates[self.depth :])
        if not head:
            return rest
        texts = [_read_part(c, query.text, self.passage) for c in head]
        try:
            scores = [
                float(s) for s in self.reranker.score(query.text, texts, deadline_s=self.deadline_s)
            ]
            if len(scores) != len(head):
                raise EmbedderError(
                    f"{self.name} returned {len(scores)} scores for {len(head)} passages"
                )
            if not all(map(math.isfinite, scores)):
                raise EmbedderError(f"{self.name} returned a score that is not a number")
        except Exception:  # noqa: BLE001 - anybody's model may fail in any way, and the order is there already
            return [replace(c, signals=c.signals._replace(rerank_failed=1.0)) for c in head] + rest
        mixed = ordered(
            replace(
                c,
                score=(1 - self.weight) * c.score + self.weight * s,
                signals=c.signals._replace(rerank=s),
            )
            for c, s in zip(head, scores, strict=True)
        )
        return falling(mixed + rest)


def _read_part(candidate: Candidate, question: str, length: int) -> str:
    heading = " > ".join(h for h in candidate.chunk.heading if h)
    body = snippet(candidate.chunk.text, question, limit=length)
    return f"{heading}\n{body}" if heading else body
