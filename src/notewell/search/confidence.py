"""How likely a passage is relevant at all, from evidence that means the same in every collection.

    confidence = how likely anything answers · how likely it is this passage, if anything does

The order says which passage is best; this says whether it is any good. A question that nothing
answers has a best passage too, often far ahead, so the first part looks at all together: how far
the nearest meaning is above the mean of all, which chance brings the further the more passages
there are, and how many rare words the first have. A question in another language than the notes
shares no word with what answers it, so words add to that and their lack takes little. The second
part knows how far a passage is behind, and that passages of one file answer together, turns of a
talk alone.

`tools/confidence.py` fits the tables and tells how they do on a set left out; `day` is given, as
only one set has days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from notewell.search.fusion import logit, sigmoids
from notewell.text.words import foreign_share
from notewell.types import Candidate, Chunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

ANSWERED: Mapping[str, float] = {
    "bias": 9.17,
    "meaning": 4.48,
    "standing": -1.2,
    "size": -0.5,
    "matched": 1.46,
}
ANSWERED_WORDS: Mapping[str, float] = {"bias": -0.49, "matched": 0.87, "covered": 3.96}
CONFIDENCE: Mapping[str, float] = {
    "bias": -0.09,
    "behind": -0.58,
    "far": -0.18,
    "place": -1.5,
    "inner": -1.5,
    "rich": 0.39,
    "focus": 0.58,
    "names": 0.25,
    "script": 0.6,
    "day": 3.0,
}
CONFIDENCE_WORDS: Mapping[str, float] = {
    "bias": -1.71,
    "behind": -0.7,
    "far": -0.18,
    "place": -1.61,
    "inner": -1.73,
    "rich": 0.5,
    "focus": 1.75,
    "names": 0.96,
    "script": 0.91,
    "day": 3.0,
}

# what is further down is hardly shown, and its text is not looked at
_FIRST, _SEEN, _LAST_PLACE = (6, 20, 9)
_NEAR, _MANY, _SMALL = 0.05, 4.0, 3.7  # of a few passages the nearest tells no more than of forty
_START, _HALF, _SURE = 100, 0.5, 40.0
_TURN = ":**"  # how conversations are written: **Name:** what was said


def features(
    candidates: Sequence[Candidate], totals: Sequence[float], question: str
) -> dict[str, Column | float]:
    """What the confidence of each passage is made of; the passages are in order, with the sums that
    order them.

    Of all: the nearest `meaning`, how far it is `standing` out, the `size` of the collection, and
    of the first six the most that is `matched`, up to four words, and beyond (`rich`), that is
    `covered`, and the best `focus`. Of each, by the first passage of its file: how far its sum is
    `behind` the best, and its `place`, up to the tenth, as a question may have many answers. Of
    each alone: how far a turn is behind the first of its talk (`inner`), `names`, `script` (another
    than that of the question) and `day`.
    """
    import numpy as np  # noqa: PLC0415

    own, chunks = [c.signals for c in candidates], [c.chunk for c in candidates]
    first, on_day = own[:_FIRST], any(s.date for s in own)
    matched = max(s.matched for s in first)
    far, places, inner = zip(*_by_file(chunks, totals), strict=True)
    script = [float(other_script(chunk.text, question)) for chunk in chunks[:_SEEN]]
    return {
        "bias": 1.0,
        "meaning": float(np.log(_NEAR + max(0.0, *(s.lift or 0.0 for s in own)))),
        "standing": max(s.z or 0.0 for s in own) / own[0].noise,
        "size": max(_SMALL, own[0].noise ** 2 / 2.0),  # see `candidates_of`
        "matched": min(_MANY, matched),
        "rich": float(np.log1p(max(0.0, matched - _MANY))),
        "covered": max(s.cover for s in first),
        "focus": max(s.focus for s in first),
        "behind": np.log1p(far),
        "far": np.array(far),
        "place": np.log1p(places),
        "inner": np.log1p(inner),
        "names": np.array([s.names for s in own]),
        "script": np.array([*script, *[0.0] * (len(own) - len(script))]),
        "day": np.array([0.0 if s.date is None or not on_day else 2.0 * s.date - 1.0 for s in own]),
    }


def _by_file(
    chunks: Sequence[Chunk], totals: Sequence[float]
) -> Iterator[tuple[float, int, float]]:
    """How far the first of each passage's file is behind, its place, and how far a turn is behind
    that first one.
    """
    files: dict[str, tuple[int, float]] = {}
    spoken = {chunk.path for chunk in chunks[:_SEEN] if _TURN in chunk.text}
    top = max(totals)
    for chunk, total in zip(chunks, totals, strict=True):
        place, best = files.setdefault(chunk.path, (min(len(files), _LAST_PLACE), total))
        yield top - best, place, max(0.0, best - total) if chunk.path in spoken else 0.0


def confidences(
    candidates: Sequence[Candidate], totals: Sequence[float], question: str
) -> list[float]:
    """How likely each passage is relevant at all; one without a vector has the tables for words
    alone.
    """
    import numpy as np  # noqa: PLC0415

    known = features(candidates, totals, question)

    def likely(table: Mapping[str, float]) -> Any:
        logit: Any = sum([weight * known[name] for name, weight in table.items()])
        return 1.0 / (1.0 + np.exp(-np.clip(logit, -_SURE, _SURE)))

    has_vector = [c.signals.cosine is not None for c in candidates]
    sure = likely(ANSWERED) * likely(CONFIDENCE)
    if not all(has_vector):
        sure = np.where(has_vector, sure, likely(ANSWERED_WORDS) * likely(CONFIDENCE_WORDS))
    return [float(x) for x in np.broadcast_to(sure, len(candidates))]


def other_script(text: str, question: str) -> bool:
    """Whether a passage is in another script than the question, so that words cannot tell what it
    lacks.
    """
    if text.isascii() and question.isascii():
        return False
    return abs(foreign_share(text[:_START]) - foreign_share(question)) > _HALF


def instead(one: Candidate, other: Candidate) -> Candidate:
    """The one where it takes the place of another: as likely at least, and not less for being from
    before a period.
    """
    known = one.signals
    if known.confidence is None:
        return one
    own = logit(known.confidence) + (
        0.0 if known.date is None else 2.0 * CONFIDENCE["day"] * (1.0 - known.date)
    )
    return replace(one, signals=known._replace(confidence=max(*sigmoids([own]), other.confidence)))
