"""The default fusion: both legs by their real scores, each weighed by what the question at hand says of it.

    total = lexical weight · text relative to the best text · how much of the question the best text covers
          + vector weight  · cosine, in units of what chance alone would bring
          + coverage, nearness, the fullest stretch, headings, exact forms, the day asked for

The two weights are sums over the question's own evidence, never a constant of a corpus: how rare its words are, how
far the best cosine stands out from chance, how alike in meaning the best keyword hits are (where all of them are
near the question, keywords no longer tell them apart). Keywords that cover little of a question have little to say
about it, whatever the weights.

All numbers are in the tables below. `make tune` fits such tables: a conditional logit on twelve labelled sets, then a
climb on nDCG@10 that is punished where a leg alone would be better; how its tables do on a set they never saw is in
`benchmarks/QUALITY.md`. The order's table here is the same climb, begun at an earlier mixture made by hand instead of
at the logit: .0005 less in the mean, but not under the better leg on CoSQA and not under .955 on KorQuAD, as the other
was. Chosen by hand, looking at these sets and at the golden suite of the tests: that start, the measures themselves,
`_RAREST`, `_ENOUGH`, what `trust` scales, the size of the climb's steps, and the weight of `date`, which one set alone
could teach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.search.fusion import ordered, sigmoid
from recollect.types import Candidate, Query

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEXICAL: Mapping[str, float] = {"always": -1.88, "rare": 38.0, "standing_out": -7.87, "alike": -7.7}
VECTOR: Mapping[str, float] = {"always": 8.2, "rare": -17.6, "standing_out": 1.38, "alike": 4.2}
OTHER: Mapping[str, float] = {
    "cover": 2.77, "near": 2.3, "window": 0.08, "head": 1.15, "exact": 0.68, "foreign": 1.53, "date": 11.0,
}  # fmt: skip
CONFIDENCE: Mapping[str, float] = {
    "bias": -1.81, "total": 0.31, "behind": -0.28, "cover": 1.44, "near": 0.18, "cosine": -0.92, "alike": -0.16,
    "covered": -0.42, "standing_out": 0.91, "rare": 1.74, "foreign": 1.03, "noise": -0.88,
}  # fmt: skip
CONFIDENCE_WORDS: Mapping[str, float] = {
    "bias": -2.49, "total": 0.3, "behind": -0.15, "cover": -0.08, "near": 1.4, "covered": -3.28, "rare": 0.75,
}  # fmt: skip

REST = ("cover", "near", "window", "head", "exact", "date")
_WORDS = ("cover", "window", "exact")

_CENTRE, _SCALE = 8.0, 2.0
_FIRST = 5
_CHANCE, _RAREST, _ENOUGH = 0.6, 0.6, 0.5


def question_evidence(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What the pool as a whole says about the two legs for this question.

    `rare`: how rare the question's words are. `standing_out`: how far the best cosine is above chance. `alike`: how
    near the five best keyword hits are in meaning, against the nearest of all. `reached` and `covered`: the best
    keyword score and the largest share of the question one passage covers.
    `trust`: 1, and less where that share is under a half: one rare word of many is a coincidence as often as not,
    unless the model cannot read the question either.
    """
    if not candidates:
        return dict.fromkeys(("always", "rare", "standing_out", "alike", "reached", "covered", "trust"), 0.0)
    shared = candidates[0].signals
    nearest = max(c.signals.get("z", 0.0) for c in candidates)
    covered = max(c.signals.get("cover", 0.0) for c in candidates)
    texts = [c.signals.get("text", 0.0) for c in candidates]
    least = sorted(texts)[-_FIRST:][0]  # few reach it, and only those are put in order
    among_best = [c for c, text in zip(candidates, texts, strict=True) if text >= least and text > 0]
    wordy = sorted(among_best, key=lambda c: (-c.signals.get("text", 0.0), c.id))[:_FIRST]
    among = sum(c.signals.get("z", 0.0) for c in wordy) / len(wordy) if wordy else 0.0
    return {
        "always": 1.0,
        "rare": min(shared.get("rare", 0.0), _RAREST),
        "standing_out": max(0.0, nearest / shared.get("noise", 1.0) - _CHANCE),
        "alike": max(0.0, among / nearest) if nearest > 0 else 0.0,
        "reached": wordy[0].signals["text"] if wordy else 0.0,
        "covered": covered,
        "trust": max(min(1.0, covered / _ENOUGH), shared.get("foreign", 0.0)),
    }


def features(candidate: Candidate, question: Mapping[str, float]) -> dict[str, float]:
    """What the combination looks at, by the name its weight has in the tables."""
    s = candidate.signals
    foreign = s.get("foreign", 0.0)
    cosine = s.get("z", 0.0) / s.get("noise", 1.0)
    text = (
        s.get("text", 0.0) / question["reached"] * question["covered"] * question["trust"]
        if question["reached"] > 0
        else 0.0
    )
    found = {f"lexical·{name}": text * question[name] for name in LEXICAL}
    found |= {f"vector·{name}": cosine * (1.0 - foreign) * question[name] for name in VECTOR}
    found["vector·rare"] *= question["covered"] * question["trust"]
    found |= {name: s.get(name, 0.0) * (question["trust"] if name in _WORDS else 1.0) for name in OTHER}
    found["foreign"] = cosine * foreign
    return found


WEIGHTS: Mapping[str, float] = {
    **{f"lexical·{name}": weight for name, weight in LEXICAL.items()},
    **{f"vector·{name}": weight for name, weight in VECTOR.items()},
    **OTHER,
}


def confidence_features(
    candidate: Candidate, question: Mapping[str, float], reached: float, best: float
) -> dict[str, float]:
    """What the confidence looks at: the passage in itself, how far it is under the best, and the question."""
    return _confidence_features(candidate.signals, question, reached, best)


def _confidence_features(
    s: Mapping[str, Any], question: Mapping[str, float], reached: Any, best: float
) -> dict[str, Any]:
    """The same for the signals of one passage, or of all at once, where each signal is an array."""
    return {
        "bias": 1.0,
        "total": reached,
        "behind": best - reached,
        "cover": s.get("cover", 0.0),
        "near": s.get("near", 0.0),
        "cosine": s.get("z", 0.0) / s.get("noise", 1.0) * (1.0 - s.get("foreign", 0.0)),
        "alike": question["alike"],
        "covered": question["covered"],
        "standing_out": question["standing_out"],
        "rare": question["rare"],
        "foreign": s.get("foreign", 0.0),
        "noise": s.get("noise", 0.0),
    }


def leg_weights(question: Mapping[str, float]) -> tuple[float, float]:
    """How much the two legs count for this question, never less than nothing."""
    lexical = sum(weight * question[name] for name, weight in LEXICAL.items())
    vector = sum(
        weight * question[name] * (question["covered"] * question["trust"] if name == "rare" else 1.0)
        for name, weight in VECTOR.items()
    )
    return max(0.0, lexical), max(0.0, vector)


def parts(candidate: Candidate, question: Mapping[str, float], weights: tuple[float, float]) -> tuple[Any, ...]:
    """What keywords, meaning and everything else add to a passage: `features` summed up."""
    return _parts(candidate.signals, question, weights)


def _parts(signals: Mapping[str, Any], question: Mapping[str, float], weights: tuple[float, float]) -> tuple[Any, ...]:
    """The same for the signals of one passage, or of all at once, where each signal is an array."""
    get = signals.get
    foreign = get("foreign", 0.0)
    cosine = get("z", 0.0) / get("noise", 1.0)
    text = (
        get("text", 0.0) / question["reached"] * question["covered"] * question["trust"]
        if question["reached"] > 0
        else 0.0
    )
    trust = question["trust"]
    rest = 0.0
    for name in REST:
        rest = rest + OTHER[name] * get(name, 0.0) * (trust if name in _WORDS else 1.0)
    return weights[0] * text, (weights[1] * (1.0 - foreign) + OTHER["foreign"] * foreign) * cosine, rest


def total(candidate: Candidate, question: Mapping[str, float], weights: tuple[float, float]) -> float:
    """The combined evidence of one passage."""
    return float(sum(parts(candidate, question, weights)))


def score_of(reached: float) -> float:
    """A total as a score between 0 and 1."""
    return sigmoid((reached - _CENTRE) / _SCALE)


def addends(candidate: Candidate) -> dict[str, float]:
    """What the total of a passage is the sum of; nothing for a passage that this fusion did not score."""
    s = candidate.signals
    if "total" not in s:
        return {}
    named = {"keywords": s["keywords"], "meaning": s["meaning"]}
    return named | {name: OTHER[name] * s.get(name, 0.0) * (s["trust"] if name in _WORDS else 1.0) for name in REST}


def sum_in_words(candidate: Candidate) -> str:
    """How the total of a passage came about, in numbers that add up to it."""
    s = candidate.signals
    named = addends(candidate)
    added = " ".join(f"{value:+.3f} {name}" for name, value in named.items() if value)
    return f"total {s['total']:.3f} = {added or 'nothing'}; score 1/(1+e^-((total-{_CENTRE:g})/{_SCALE:g}))"


@dataclass(frozen=True, slots=True)
class Combine:
    """Scores by the weights of the tables, and says how likely each passage is relevant at all.

    The knobs multiply what the question gives to each leg, for those who want to see what a leg does.
    """

    lexical: float = 1.0
    vector: float = 1.0

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Scores every candidate of every leg."""
        del query
        question = question_evidence(candidates)
        weights = leg_weights(question)
        weights = (weights[0] * self.lexical, weights[1] * self.vector)
        if not candidates:
            return []
        columns = _columns(candidates)
        count = len(candidates)
        three = [_listed(part, count) for part in _parts(columns, question, weights)]
        reached = [a + b + c for a, b, c in zip(*three, strict=True)]
        sure = _confidences(candidates, columns, question, reached)
        trust = question["trust"]
        return ordered(
            # Made outright: `replace` takes three times as long, and this runs for every candidate of every search.
            Candidate(
                c.chunk,
                score_of(total),
                c.ranks,
                {
                    **c.signals,
                    "keywords": keywords,
                    "meaning": meaning,
                    "total": total,
                    "trust": trust,
                    "confidence": confidence,
                },
                c.relations,
            )
            for c, keywords, meaning, total, confidence in zip(candidates, *three[:2], reached, sure, strict=True)
        )


def _columns(candidates: Sequence[Candidate]) -> dict[str, NDArray[Any]]:
    """The signals that scores are made of, each for all passages; what the first lacks of the question's, all lack."""
    import numpy as np  # noqa: PLC0415

    signals = [c.signals for c in candidates]
    out = {name: np.array([s.get(name, 0.0) for s in signals]) for name in ("z", "text", *REST)}
    asked = {name: missing for name, missing in (("noise", 1.0), ("foreign", 0.0)) if name in signals[0]}
    return out | {name: np.array([s.get(name, missing) for s in signals]) for name, missing in asked.items()}


def _listed(values: Any, count: int) -> list[float]:
    """An array as a list; a number that is the same for all, so many times."""
    return values.tolist() if hasattr(values, "tolist") else [values] * count


def _confidences(
    candidates: Sequence[Candidate], columns: Mapping[str, Any], question: Mapping[str, float], reached: list[float]
) -> list[float]:
    """How likely each passage is relevant at all; where there is no vector, by a table of its own."""
    import numpy as np  # noqa: PLC0415

    found = _confidence_features(columns, question, np.array(reached), max(reached))
    near = ["cosine" in c.signals for c in candidates]
    by: dict[bool, list[float]] = {}
    for one in set(near):
        table = CONFIDENCE if one else CONFIDENCE_WORDS
        by[one] = _listed(sum([weight * found[name] for name, weight in table.items()]), len(near))
    return [sigmoid(by[one][i]) for i, one in enumerate(near)]
