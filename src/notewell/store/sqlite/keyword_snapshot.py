"""The keyword index in memory as of one state of the file: segments, lengths, and which rows are
dead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.store.sqlite.postings import PAGE, Codes, FullSegment, Ints, Page, StoredSegment
from notewell.text.bm25 import K1, B

Places = NDArray[np.int32]
Fetch = Callable[[Sequence[tuple[int, int, int]]], dict[tuple[int, int], Page]]
"""Pages by segment and page number; asked for with the bytes of a code."""

_KEPT = 8_000_000  # postings that are kept in memory, five bytes each
_COUNTED = 50_000  # words whose number of chunks is remembered
_MASKS = 8


class KeywordSnapshot:
    """The keyword index at one moment; a place is the number of a chunk over all segments, dead
    ones included.
    """

    def __init__(
        self,
        stamp: int,
        segments: Sequence[StoredSegment],
        *,
        dead: Ints,
        last: int,
        sealed: int,
        fetch: Fetch,
    ) -> None:
        self.stamp, self.segments, self.last, self.sealed = stamp, segments, last, sealed
        self._fetch = fetch
        self.rows: Ints = _joined([h.segment.rows for h in segments])
        self.lengths: Ints = _joined([h.segment.lengths for h in segments])
        self.starts = np.concatenate(
            ([0], np.cumsum([len(h.segment.rows) for h in segments]))
        ).astype(np.int64)
        self.alive: NDArray[np.bool_] | None = None
        if len(dead) and len(self.rows):
            gone = np.zeros(len(self.rows), dtype=bool)
            for start, one in zip(self.starts, segments, strict=False):
                at = np.searchsorted(one.segment.rows, dead)
                at = at[at < len(one.segment.rows)]
                gone[start + at[np.isin(one.segment.rows[at], dead)]] = True
            self.alive = ~gone if gone.any() else None
        living = self.lengths if self.alive is None else self.lengths[self.alive]
        self.count = len(living)
        self.mean_length = int(living.sum()) / len(living) if len(living) else 0.0
        # What BM25 makes of each length; made once for all words of all questions.
        self.norms: NDArray[Any] = K1 * (1 - B + B * self.lengths / (self.mean_length or 1.0))
        self._lists: dict[int, tuple[Places, Codes]] = {}
        self._counts: dict[int, int] = {}
        self._sizes = 0
        self._masks: dict[Any, NDArray[np.bool_]] = {}

    def mask(self, filters: Any, allowed: Ints) -> NDArray[np.bool_]:
        """Which places pass a filter that allows some rows; the last filters are remembered."""
        known = self._masks.get(filters)
        if known is None:
            most = int(self.rows.max()) if len(self.rows) else 0
            passes = np.zeros(most + 1, dtype=bool)
            passes[allowed[allowed <= most]] = True
            known = passes[self.rows]
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            self._masks[filters] = known
        return known

    def found_in(self, keys: Sequence[int]) -> list[int]:
        """How many chunks have each key."""
        known = self._counts
        if todo := [key for key in keys if key not in known]:
            if len(known) + len(todo) > _COUNTED:
                known = self._counts = {key: known[key] for key in keys if key in known}
            known.update(zip(todo, self._counted(todo), strict=True))
        return [known[key] for key in keys]

    def _counted(self, keys: Sequence[int]) -> list[int]:
        if self.alive is not None:
            lists = self.lists(keys)
            return [len(lists[key][0]) for key in keys]
        wanted = np.asarray(keys, dtype=np.int64)
        spans = [one.segment.spans(wanted) for one in self.segments]
        return sum(
            (ends - starts for starts, ends in spans), np.zeros(len(keys), dtype=np.int64)
        ).tolist()

    def lists(self, keys: Iterable[int]) -> dict[int, tuple[Places, Codes]]:
        """The places that have each key, in ascending order, with their codes."""
        out = {key: self._lists[key] for key in keys if key in self._lists}
        todo = [key for key in dict.fromkeys(keys) if key not in out]
        if todo:
            made = self._gathered(todo)
            out |= made
            size = sum(len(places) for places, _ in made.values())
            if self._sizes + size > _KEPT:
                self._lists, self._sizes = {}, 0
            if size <= _KEPT:
                self._lists |= made
                self._sizes += size
        return out

    def _gathered(self, keys: Sequence[int]) -> dict[int, tuple[Places, Codes]]:
        wanted = np.asarray(keys, dtype=np.int64)
        spans = [
            tuple(ends.tolist() for ends in one.segment.spans(wanted)) for one in self.segments
        ]
        pages = self._fetch(
            [
                (one.number, page, one.width)
                for one, (starts, ends) in zip(self.segments, spans, strict=True)
                if one.number
                for start, end in zip(starts, ends, strict=True)
                if end > start
                for page in range(start // PAGE, (end - 1) // PAGE + 1)
            ]
        )
        out: dict[int, tuple[Places, Codes]] = {}
        for n, key in enumerate(keys):
            places: list[Any] = []
            codes: list[Codes] = []
            for offset, one, (starts, ends) in zip(
                self.starts.tolist(), self.segments, spans, strict=False
            ):
                for some, some_codes in _pieces(one, starts[n], ends[n], pages):
                    places.append(some.astype(np.int32) + np.int32(offset))
                    codes.append(some_codes)
            where: Places = np.concatenate(places) if places else np.zeros(0, dtype=np.int32)
            what: Codes = np.concatenate(codes) if codes else np.zeros(0, dtype=np.uint8)
            if self.alive is not None:
                there = self.alive[where]
                where, what = where[there], what[there]
            out[key] = (where, what)
        return out


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _pieces(
    one: StoredSegment, start: int, end: int, pages: dict[tuple[int, int], Page]
) -> Iterable[Page]:
    """The postings of a segment from `start` to `end`, page by page."""
    if isinstance(one.segment, FullSegment):
        if end > start:
            yield one.segment.places[start:end], one.segment.codes[start:end]
        return
    while start < end:
        number, inside = divmod(start, PAGE)
        places, codes = pages[one.number, number]
        some = min(end - start, PAGE - inside)
        yield places[inside : inside + some], codes[inside : inside + some]
        start += some
