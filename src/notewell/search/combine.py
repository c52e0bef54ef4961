"""The default fusion: both legs by their scores, each weighted by what is known about the question.

    total = lexical weight · text relative to the best text
                           · how much of the question the best text covers
          + vector weight  · cosine, in units of what chance alone would bring
          + coverage, nearness, the heaviest stretch, headings, exact forms, the day asked for

The two weights are sums over the evidence of the question, never constants of a corpus: how rare
its words are, how far the best cosine is above chance, and how similar in meaning the best keyword
hits are (where all of them are near the question, keywords no longer tell them apart). Keywords
that cover little of a question always count little.

All numbers are in the tables below; `confidence.py` has those that say how likely a passage is
relevant at all. `make tune` prints them: a conditional logit on sixteen labelled sets, then a hill
climb on nDCG@10 with a penalty where one leg alone is better. `benchmarks/QUALITY.md` shows how
such tables do on a set they were not fitted on. Chosen by hand, looking at the same sets and the
golden tests, were the measures, `_RAREST`, `_ENOUGH`, what `trust` scales, the step size of the
climb, the weight of `date`, which only one set taught, and that of `foreign`, for other models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from notewell.search.confidence import confidences
from notewell.search.fusion import falling, sigmoids
from notewell.types import Candidate, Query, Signals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

LEXICAL: Mapping[str, float] = {
    "always": -3.05,
    "rare": 31.24,
    "standing_out": -8.19,
    "alike": 0.82,
}
VECTOR: Mapping[str, float] = {"always": 7.96, "rare": -6.61, "standing_out": 0.9, "alike": 1.79}
OTHER: Mapping[str, float] = {
    "cover": 1.19,
    "near": 1.29,
    "window": 2.07,
    "head": 1.89,
    "exact": 0.94,
    "foreign": 1.53,
    "date": 10.0,
}

WEIGHTS: Mapping[str, float] = {
    **{f"lexical·{name}": weight for name, weight in LEXICAL.items()},
    **{f"vector·{name}": weight for name, weight in VECTOR.items()},
    **OTHER,
}

REST = ("cover", "near", "window", "head", "exact", "date")
BY_TRUST = ("cover", "window", "exact")

_CENTRE, _SCALE = 8.0, 2.0
_FIRST = 5
_CHANCE, _RAREST, _ENOUGH = 0.6, 0.6, 0.5
_SHOWN = 12  # hooks look at ten; reading more turns takes longer than the rest of a search
_EMPTY = 0.1  # a turn that only asks, or found nothing, is no more likely than this


def question_evidence(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What all candidates together say about the two legs for this question.

    `rare`: how rare the question's words are. `standing_out`: how far the best cosine is above
    chance. `alike`: how near the five best keyword hits are in meaning, relative to the `nearest`
    of all. `reached` and `covered`: the best keyword score, and the largest share of the question
    that one passage covers. `trust`: 1, or less where that share is under a half: one rare word of
    many is often a coincidence. It stays high where the model cannot read the question either.
    """
    if not candidates:
        return dict.fromkeys(
            ("always", "rare", "standing_out", "alike", "nearest", "reached", "covered", "trust"),
            0.0,
        )
    own = [c.signals for c in candidates]
    question = own[0]
    nearest = max([signals.z or 0.0 for signals in own])
    covered = max([signals.cover for signals in own])
    texts = [signals.text for signals in own]
    least = sorted(texts)[-_FIRST:][0]  # few reach it, and only those need sorting
    matching = [c for c, text in zip(candidates, texts, strict=True) if text >= least and text > 0]
    best = sorted(matching, key=lambda c: (-c.signals.text, c.id))[:_FIRST]
    mean_z = sum(c.signals.z or 0.0 for c in best) / len(best) if best else 0.0
    return {
        "always": 1.0,
        "rare": min(question.rare, _RAREST),
        "standing_out": max(0.0, nearest / question.noise - _CHANCE),
        "alike": max(0.0, mean_z / nearest) if nearest > 0 else 0.0,
        "nearest": max(0.0, nearest),
        "reached": best[0].signals.text if best else 0.0,
        "covered": covered,
        "trust": max(min(1.0, covered / _ENOUGH), question.foreign),
    }


def leg_weights(question: Mapping[str, float]) -> tuple[float, float]:
    """How much keywords and meaning count for this question, never below zero."""
    lexical = sum(weight * question[name] for name, weight in LEXICAL.items())
    vector = sum(
        weight
        * question[name]
        * (question["covered"] * question["trust"] if name == "rare" else 1.0)
        for name, weight in VECTOR.items()
    )
    return max(0.0, lexical), max(0.0, vector)


def columns(candidates: Sequence[Candidate], question: Mapping[str, float]) -> dict[str, Column]:
    """The signals that scores are made of, each as an array over all candidates; an unknown date is
    0.

    A passage that has no vector yet, while others have, is taken to be as near in meaning as it has
    the words.
    """
    import numpy as np  # noqa: PLC0415

    values = dict(
        zip(Signals._fields, zip(*[c.signals for c in candidates], strict=True), strict=True)
    )
    near = zip(values["z"], values["cover"], strict=True)
    unknown = {
        "z": [cover * question["nearest"] if z is None else z for z, cover in near],
        "date": [v or 0.0 for v in values["date"]],
    }
    return {
        name: np.array(unknown.get(name, values[name]))
        for name in ("text", "z", "noise", "foreign", *REST)
    }


def parts(
    signals: Mapping[str, Column], question: Mapping[str, float], weights: tuple[float, float]
) -> tuple[Column, Column, Column]:
    """What keywords, meaning and everything else add to the total of each candidate."""
    import numpy as np  # noqa: PLC0415

    foreign = signals["foreign"]
    cosine = signals["z"] / signals["noise"]
    text = signals["text"] / (question["reached"] or 1.0) * question["covered"] * question["trust"]
    rest = np.zeros(len(text))
    for name in REST:
        rest = rest + OTHER[name] * signals[name] * (question["trust"] if name in BY_TRUST else 1.0)
    return (
        weights[0] * text,
        (weights[1] * (1.0 - foreign) + OTHER["foreign"] * foreign) * cosine,
        rest,
    )


def addends(candidate: Candidate) -> dict[str, float]:
    """What the total of a passage is the sum of; empty for a passage that this fusion did not
    score.
    """
    s = candidate.signals
    if s.keywords is None or s.meaning is None or s.trust is None:
        return {}
    rest = {
        name: OTHER[name] * (getattr(s, name) or 0.0) * (s.trust if name in BY_TRUST else 1.0)
        for name in REST
    }
    return {"keywords": s.keywords, "meaning": s.meaning, **rest}


def sum_in_words(candidate: Candidate) -> str:
    """The total of a passage as a sum whose numbers add up to it."""
    added = " ".join(f"{value:+.3f} {name}" for name, value in addends(candidate).items() if value)
    total = f"total {candidate.signals.total:.3f} = {added or 'nothing'}"
    return f"{total}; score 1/(1+e^-((total-{_CENTRE:g})/{_SCALE:g}))"


def _is_turn(candidate: Candidate) -> bool:
    return candidate.chunk.source == "sessions"


def _with_share(candidate: Candidate, share: float | None) -> Candidate:
    if share is None:
        return candidate
    return replace(candidate, signals=candidate.signals._replace(unanswered=share))


def _at_least(candidate: Candidate, confidence: float) -> Candidate:
    if candidate.confidence >= confidence:
        return candidate
    return replace(candidate, signals=candidate.signals._replace(confidence=confidence))


def _unlikely(candidate: Candidate) -> Candidate:
    confidence = min(candidate.confidence, _EMPTY)
    return replace(candidate, signals=candidate.signals._replace(confidence=confidence))


@dataclass(frozen=True, slots=True)
class Combine:
    """Scores by the weights of the tables, and estimates how likely each passage is relevant at
    all.

    Turns of conversations that only ask, or say that nothing was found, come after all others and
    have no say in what those are worth; no turn has a say in how sure the notes are. The knobs
    multiply the weights that the question gives to each leg, to try out what a leg does.
    """

    lexical: float = 1.0
    vector: float = 1.0

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Scores every candidate of every leg."""
        scored = self._scored(candidates, query)
        empty: list[Candidate] = []
        looked_at: set[str] = set()
        while turns := [c.chunk for c in scored[:_SHOWN] if _is_turn(c) and c.id not in looked_at]:
            from notewell.search.empty_turns import open_turns  # noqa: PLC0415 - most have no conversations

            asked = open_turns(turns, query)
            looked_at |= asked.keys()
            known = [_with_share(c, asked.get(c.id)) for c in scored]
            found = [c for c in known if c.signals.is_empty]
            scored = [c for c in known if not c.signals.is_empty]
            if found:
                empty += found
                scored = self._scored(scored, query)
        scored = self._with_notes_as_sure_as_alone(scored, query)
        return falling([*scored, *map(_unlikely, empty)]) if empty else scored

    def _with_notes_as_sure_as_alone(
        self, scored: list[Candidate], query: Query
    ) -> list[Candidate]:
        """Confidence is shared out among the passages, and turns take none of it from the notes.

        Whoever asked before left a turn with all words of the question. Whether the reply to it
        answers is beyond any list of phrases, so the notes are measured without what was said.
        """
        notes = [c for c in scored if not _is_turn(c)]
        if not notes or len(notes) == len(scored):
            return scored
        alone = {c.id: c.confidence for c in self._scored(notes, query)}
        return [_at_least(c, alone.get(c.id, 0.0)) for c in scored]

    def _scored(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """The candidates by score, best first."""
        if not candidates:
            return []
        question = question_evidence(candidates)
        lexical, vector = leg_weights(question)
        signals = columns(candidates, question)
        keywords, meaning, rest = parts(
            signals, question, (lexical * self.lexical, vector * self.vector)
        )
        totals = (keywords + meaning + rest).tolist()
        scores = sigmoids([(total - _CENTRE) / _SCALE for total in totals])
        keys = [(-score, c.chunk.id) for score, c in zip(scores, candidates, strict=True)]
        order = sorted(range(len(totals)), key=keys.__getitem__)
        best_first = [candidates[i] for i in order]
        sure = confidences(best_first, [totals[i] for i in order], query.text)
        trust, first = question["trust"], Signals._fields.index("keywords")
        words, near = keywords.tolist(), meaning.tolist()
        scored = []
        # Built outright: `_replace` takes three times as long, and this runs for every candidate of
        # every search.
        for c, i, likely in zip(best_first, order, sure, strict=True):
            known = (
                *c.signals[:first],
                words[i],
                near[i],
                totals[i],
                trust,
                likely,
                *c.signals[first + 5 :],
            )
            scored.append(
                Candidate(
                    c.chunk, scores[i], c.ranks, tuple.__new__(Signals, known), c.relations, c.near
                )
            )
        return scored
