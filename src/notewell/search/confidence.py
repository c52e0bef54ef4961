"""How likely a passage is relevant at all: a logistic regression on evidence that means the same in every collection.

The order says which passage is best; this says whether it is any good. A question that nothing answers has a best
passage too, and it is often far ahead, so the evidence is of another kind than that of the order: whether the best
passage has what the question names first, how many rare words the first passages have, which rare word or name is
missing in this one, how far the nearest meaning is above the mean of all, and last how far this passage is behind the
best.

`tools/confidence.py` fits the tables, and says how they do on a set that was left out. `day` is given, since only one
set could teach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from notewell.search.fusion import logit, sigmoids
from notewell.types import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

CONFIDENCE: Mapping[str, float] = {
    "bias": 0.86, "behind": -0.64, "far": -0.08, "place": -1.1, "focus": 0.15, "matched": 0.2, "lost": -0.64,
    "names": 0.29, "meaning": 0.5, "day": 3.0,
}  # fmt: skip
CONFIDENCE_WORDS: Mapping[str, float] = {
    "bias": 0.09, "behind": -0.58, "far": -0.09, "place": -1.38, "focus": 0.39, "matched": 0.59, "lost": -0.89,
    "names": 0.53, "day": 3.0,
}  # fmt: skip

_FIRST = 6
_LAST_PLACE = 9
_LITTLE, _NEAR = 0.1, 0.05


def features(candidates: Sequence[Candidate], totals: Sequence[float]) -> dict[str, Column | float]:
    """What the confidence of each passage is made of; the passages are in order, with the sums that order them.

    Of all passages together: `focus` of the best, the most that one of the first six has `matched`, and the nearest
    `meaning`, as logarithms, since little of one cannot be made up for by much of another. Of each: how much its sum is
    `behind` the best, as a logarithm and as it is, its `place` up to the tenth, since a question may have many answers,
    and what it has `lost`, its `names` and its `day`.
    """
    import numpy as np  # noqa: PLC0415

    count, own = len(candidates), [c.signals for c in candidates]
    far = max(totals) - np.array(totals)
    on_day = any(s.date for s in own)
    return {
        "bias": 1.0,
        "behind": np.log1p(far),
        "far": far,
        "place": np.log1p(np.minimum(np.arange(count), _LAST_PLACE)),
        "focus": float(np.log(_LITTLE + own[0].focus)),
        "matched": float(np.log(_LITTLE + max(s.matched for s in own[:_FIRST]))),
        "lost": np.array([s.lost for s in own]),
        "names": np.array([s.names for s in own]),
        "meaning": float(np.log(_NEAR + max(0.0, *(s.lift or 0.0 for s in own)))),
        "day": np.array([0.0 if s.date is None or not on_day else 2.0 * s.date - 1.0 for s in own]),
    }


def confidences(candidates: Sequence[Candidate], totals: Sequence[float]) -> list[float]:
    """How likely each passage is relevant at all; one without a vector has a table for words alone."""
    import numpy as np  # noqa: PLC0415

    known = features(candidates, totals)
    has_vector = [c.signals.cosine is not None for c in candidates]
    logits: dict[bool, list[float]] = {}
    for kind in set(has_vector):
        table = CONFIDENCE if kind else CONFIDENCE_WORDS
        logit: Any = sum([weight * known[name] for name, weight in table.items()])
        logits[kind] = np.broadcast_to(logit, len(candidates)).tolist()
    return sigmoids([logits[kind][i] for i, kind in enumerate(has_vector)])


def instead(one: Candidate, other: Candidate) -> Candidate:
    """The one where it takes the place of another: as likely at least, and not less for being from before a period."""
    known = one.signals
    if known.confidence is None:
        return one
    own = logit(known.confidence) + (0.0 if known.date is None else 2.0 * CONFIDENCE["day"] * (1.0 - known.date))
    return replace(one, signals=known._replace(confidence=max(*sigmoids([own]), other.confidence)))
