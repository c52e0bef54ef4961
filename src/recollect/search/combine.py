"""The default fusion: both legs by their real scores, each weighed by what the question at hand says of it.

    total = lexical weight · text relative to the best text · how much of the question the best text covers
          + vector weight  · cosine, in units of what chance alone would bring
          + coverage, nearness, headings, exact forms, the day asked for

The two weights are sums over the question's own evidence, never a constant of a corpus: how peaked the keyword
scores are, how rare the words that matched, how far the best cosine stands out. Keywords that cover little of a
question have little to say about it, whatever the weights. All numbers are in the tables below; they are fitted by
`recollect.eval.tuning` on all sets, and checked on the set left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recollect.search.fusion import ordered, sigmoid
from recollect.types import Candidate, Query

LEXICAL: Mapping[str, float] = {"always": -7.2, "peaked": 1.45, "rare": 38.0, "standing_out": -8.2}
VECTOR: Mapping[str, float] = {"always": 10.8, "peaked": -5.4, "rare": -4.4, "standing_out": 0.9}
OTHER: Mapping[str, float] = {"cover": 2.7, "near": 2.2, "head": 0.4, "exact": 0.8, "foreign": 1.4, "date": 10.0}
CONFIDENCE: Mapping[str, float] = {
    "bias": -4.0, "total": 0.4, "behind": 0.0, "cover": 0.0, "near": 0.0, "cosine": 0.0, "peaked": 0.0, "reached": 0.0,
    "standing_out": 0.0, "rare": 0.0, "foreign": 0.0,
}  # fmt: skip

_CENTRE, _SCALE = 8.0, 2.0
_DEPTH = 10


def question_evidence(candidates: Sequence[Candidate]) -> dict[str, float]:
    """What the pool as a whole says about the two legs for this question.

    `peaked`: how far the best keyword score is above the tenth, relative to it. `rare`: how rare the question's
    words are. `standing_out`: how far the best cosine is above chance. `reached`: the best keyword score.
    `covered`: the largest share of the question that one passage covers.
    """
    texts = sorted((c.signals.get("text", 0.0) for c in candidates), reverse=True)
    best = texts[0] if texts else 0.0
    tenth = texts[min(_DEPTH, len(texts)) - 1] if texts else 0.0
    shared = candidates[0].signals if candidates else {}
    nearest = max((c.signals.get("z", 0.0) for c in candidates), default=0.0)
    return {
        "always": 1.0,
        "peaked": (best - tenth) / best if best > 0 else 0.0,
        "rare": shared.get("rare", 0.0),
        "standing_out": max(0.0, nearest / shared.get("noise", 1.0) - 0.6) if shared.get("noise") else 0.0,
        "reached": best,
        "covered": max((c.signals.get("cover", 0.0) for c in candidates), default=0.0),
    }


def features(candidate: Candidate, question: Mapping[str, float]) -> dict[str, float]:
    """What the combination looks at, by the name its weight has in the tables."""
    s = candidate.signals
    foreign = s.get("foreign", 0.0)
    cosine = s.get("z", 0.0) / s.get("noise", 1.0)
    text = s.get("text", 0.0) / question["reached"] * question["covered"] if question["reached"] > 0 else 0.0
    found = {f"lexical·{name}": text * question[name] for name in LEXICAL}
    found |= {f"vector·{name}": cosine * (1.0 - foreign) * question[name] for name in VECTOR}
    found |= {name: s.get(name, 0.0) for name in OTHER}
    found["foreign"] = cosine * foreign
    return found


WEIGHTS: Mapping[str, float] = {
    **{f"lexical·{name}": weight for name, weight in LEXICAL.items()},
    **{f"vector·{name}": weight for name, weight in VECTOR.items()},
    **OTHER,
}


def confidence_features(candidate: Candidate, question: Mapping[str, float], total: float, best: float) -> dict[str, float]:
    """What the confidence looks at: how strong the passage is in itself, and how far under the best one."""
    s = candidate.signals
    return {
        "bias": 1.0,
        "total": total,
        "behind": best - total,
        "cover": s.get("cover", 0.0),
        "near": s.get("near", 0.0),
        "cosine": s.get("z", 0.0) / s.get("noise", 1.0) * (1.0 - s.get("foreign", 0.0)),
        "peaked": question["peaked"],
        "reached": question["reached"],
        "standing_out": question["standing_out"],
        "rare": question["rare"],
        "foreign": s.get("foreign", 0.0),
    }


@dataclass(frozen=True, slots=True)
class Combine:
    """Scores by the weights of the tables, and says how likely each passage is relevant at all."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Scores every candidate of every leg."""
        if not candidates:
            return []
        question = question_evidence(candidates)
        totals = [
            sum(WEIGHTS[name] * value for name, value in features(c, question).items()) for c in candidates
        ]
        best = max(totals)
        return ordered(
            replace(c, score=sigmoid((total - _CENTRE) / _SCALE), signals={**c.signals, "confidence": self._confidence(c, question, total, best)})
            for c, total in zip(candidates, totals, strict=True)
        )

    @staticmethod
    def _confidence(candidate: Candidate, question: Mapping[str, float], total: float, best: float) -> float:
        found = confidence_features(candidate, question, total, best)
        return sigmoid(sum(weight * found[name] for name, weight in CONFIDENCE.items()))
