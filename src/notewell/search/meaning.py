"""How near passages are to a question in meaning: by the whole passage, and by the window of it
that is nearest.

    meaning = (cosine of the whole + cosine of the nearest window) / 2

A long passage of which one part answers is far from the question as a whole; its nearest window is
not. A passage without windows, because it is short or because the index has none of it, counts by
its whole alone. All passages are scanned by their wholes; windows are read only for what a leg
found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from notewell.embed.embedder import QuestionVector
from notewell.store.ports import Store
from notewell.store.values import Nearest, Scored, ScoredRows, Windows, columns
from notewell.text.chunk import headings_length
from notewell.types import Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

_FEW = 16
_NO_PART: tuple[None, None] = (None, None)


class Meaning(NamedTuple):
    """The meaning of a passage to a question, and what it is made of.

    `z` is the meaning in deviations above the mean of all passages, `lift` how far it is from that
    of the others to 1.
    """

    cosine: float
    z: float
    whole: float
    lift: float
    part: float | None = None
    span: tuple[int, int] | None = None


class Measured(NamedTuple):
    """What the vector leg found, best first, and the meanings of that and of what other legs
    found.
    """

    leg: Sequence[Scored]
    meanings: Mapping[int, Meaning]


def measure(
    store: Store,
    asked: QuestionVector,
    nearest: Nearest,
    rows: Sequence[int],
    *,
    pool: int,
    windows: bool,
) -> Measured:
    """Chooses the leg's own rows among the nearest, and measures them and other rows that have a
    vector.

    It finds as many as the pool takes, with all that tie with the last. With `windows` those of all
    rows are read.
    """
    import numpy as np  # noqa: PLC0415

    found = columns(nearest.rows)
    known = found.rows.tolist()
    more = set(rows).difference(known)
    others = (
        store.vectors.cosines(asked.model, asked.vector, [row for row in rows if row in more])
        if more
        else {}
    )
    known += others
    cosine = whole = part = np.concatenate(
        (found.scores, np.array(list(others.values()), dtype=np.float64))
    )
    mean, deviation = nearest.mean, nearest.deviation
    best = store.vectors.nearest_windows(asked.model, asked.vector, known) if windows else None
    if best is not None and len(best.passages):
        part = whole.copy()
        part[best.passages] = best.cosines
        cosine = ((whole + part) / 2).round(6)
        mean, deviation = spread(nearest, whole, part)
    z = (cosine - mean) / deviation if deviation > 1e-9 else np.zeros(len(cosine))
    count = nearest.count
    # of few, each bends the mean
    rest = (mean * count - cosine) / (count - 1) if count > 1 else np.zeros(len(cosine))
    lift = (cosine - rest) / np.maximum(1e-9, 1.0 - rest)
    own = cosine[: len(found)]
    order = np.argsort(-own, kind="stable")
    if 0 < pool < len(order):
        order = order[own[order] >= own[order[pool - 1]]]
    leg = ScoredRows(found.rows.take(order), own.take(order))
    place = dict(zip(known, range(len(known)), strict=True))
    wanted = [row for row in {*leg.rows.tolist(), *rows} if row in place]
    at = np.array([place[row] for row in wanted], dtype=np.int64)
    halves = _halves(best, part, at) if best is not None else [_NO_PART] * len(wanted)
    measured = (column.take(at).tolist() for column in (cosine, z, whole, lift))
    values = zip(*measured, *zip(*halves, strict=True), strict=True) if wanted else ()
    # in the order of `Meaning`
    return Measured(leg, dict(zip(wanted, cast("Iterable[Meaning]", values), strict=True)))


def _halves(
    best: Windows, part: Column, at: NDArray[np.int64]
) -> list[tuple[float, tuple[int, int]] | tuple[None, None]]:
    """The cosine and the characters of the nearest window of each passage at some places, where it
    has one.
    """
    import numpy as np  # noqa: PLC0415

    nth = np.full(len(part), -1)
    nth[best.passages] = np.arange(len(best.passages))
    mine = nth.take(at)
    if not (mine >= 0).any():
        return [_NO_PART] * len(at)
    spans = zip(
        best.starts.take(mine, mode="wrap").tolist(),
        best.ends.take(mine, mode="wrap").tolist(),
        strict=True,
    )
    each = zip(mine.tolist(), part.take(at).tolist(), spans, strict=True)
    return [(value, span) if n >= 0 else _NO_PART for n, value, span in each]


def spread(nearest: Nearest, whole: Column, part: Column) -> tuple[float, float]:
    """Mean and deviation of the meanings of all passages, of which only some have been read.

    The wholes of all were scanned, so their mean and deviation are known. How the nearest window
    goes with the whole is seen in the passages that were read: a line, part = a + b · whole, with a
    scatter about it. Those were chosen by their whole, which does not bend that line, so it also
    holds for the rest: at the mean of all wholes it gives the mean of all parts, and its slope and
    scatter give their deviation. With few passages the slope is taken to be 1.
    """
    across, up = whole - whole.mean(), part - part.mean()
    width = float(across @ across)
    slope = (
        min(2.0, max(0.0, float(across @ up) / width))
        if len(whole) >= _FEW and width > 1e-9
        else 1.0
    )
    scatter = float(((up - slope * across) ** 2).mean())
    mean_part = float(part.mean()) + slope * (nearest.mean - float(whole.mean()))
    deviation = (((1.0 + slope) / 2 * nearest.deviation) ** 2 + scatter / 4) ** 0.5
    return round((nearest.mean + mean_part) / 2, 6), round(deviation, 6)


def near_text(candidate: Candidate) -> tuple[int, int] | None:
    """The characters of a passage's text that are nearest in meaning, without blanks around them,
    if that is known.
    """
    if candidate.near is None:
        return None
    text, before = candidate.chunk.text, headings_length(candidate.chunk.heading)
    start, end = candidate.near
    start, end = min(max(0, start - before), len(text)), min(max(0, end - before), len(text))
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    return (start, end) if end > start else None


def near_lines(candidate: Candidate) -> tuple[int, int] | None:
    """Their first and last line in the file; None where lines of the text are not lines of the
    file.
    """
    chunk, near = candidate.chunk, near_text(candidate)
    if near is None or chunk.text.count("\n") != chunk.end_line - chunk.start_line:
        return None
    first = chunk.start_line + chunk.text.count("\n", 0, near[0])
    return first, first + chunk.text.count("\n", *near)
