"""What a keyword search has in memory, as of one change of the index: segments, lengths, and which rows are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.store.postings import PAGE, Codes, Ints, Segment, Whole

Places = NDArray[np.int32]
Page = tuple[NDArray[np.uint16], Codes]
Fetch = Callable[[Sequence[tuple[int, int, int]]], dict[tuple[int, int], Page]]
"""Pages by segment and number; asked for by segment, number and the bytes of a code."""

_KEPT = 8_000_000  # postings of words that were asked for, five bytes each
_MASKS = 8


@dataclass(frozen=True)
class Held:
    """A segment by its number in the store and the bytes of a code there, or one that is only in memory (0)."""

    number: int
    segment: Segment
    width: int = 1


class Lexicon:
    """The keyword index at one moment. Places count all passages of all segments, those that are gone too."""

    def __init__(self, stamp: int, held: Sequence[Held], *, dead: Ints, last: int, sealed: int, fetch: Fetch) -> None:
        self.stamp, self.held, self.last, self.sealed = stamp, held, last, sealed
        self._fetch = fetch
        self.rows: Ints = _joined([h.segment.rows for h in held])
        self.lengths: Ints = _joined([h.segment.lengths for h in held])
        self.starts = np.concatenate(([0], np.cumsum([len(h.segment.rows) for h in held]))).astype(np.int64)
        self.alive: NDArray[np.bool_] | None = None
        if len(dead) and len(self.rows):
            gone = np.zeros(len(self.rows), dtype=bool)
            for start, one in zip(self.starts, held, strict=False):
                at = np.searchsorted(one.segment.rows, dead)
                at = at[at < len(one.segment.rows)]
                gone[start + at[np.isin(one.segment.rows[at], dead)]] = True
            self.alive = ~gone if gone.any() else None
        living = self.lengths if self.alive is None else self.lengths[self.alive]
        self.count = len(living)
        self.mean_length = int(living.sum()) / len(living) if len(living) else 0.0
        self._lists: dict[int, tuple[Places, Codes]] = {}
        self._sizes = 0
        self._masks: dict[Any, NDArray[np.bool_]] = {}

    def living(self, one: int) -> NDArray[np.bool_] | None:
        """Which rows of a segment are not gone, or None for all."""
        return None if self.alive is None else self.alive[self.starts[one] : self.starts[one + 1]]

    def mask(self, filters: Any, allowed: Ints) -> NDArray[np.bool_]:
        """Which places pass a filter that allows some rows, remembered under its name."""
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
        """In how many passages each key stands."""
        if self.alive is not None:
            lists = self.lists(keys)
            return [len(lists[key][0]) for key in keys]
        total = np.zeros(len(keys), dtype=np.int64)
        wanted = np.asarray(keys, dtype=np.int64)
        for one in self.held:
            starts, ends = one.segment.spans(wanted)
            total += ends - starts
        return [int(n) for n in total]

    def lists(self, keys: Iterable[int]) -> dict[int, tuple[Places, Codes]]:
        """The places where each key stands, ascending, with its codes."""
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
        spans = [tuple(ends.tolist() for ends in one.segment.spans(wanted)) for one in self.held]
        pages = self._fetch(
            [
                (one.number, page, one.width)
                for one, (starts, ends) in zip(self.held, spans, strict=True)
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
            for offset, one, (starts, ends) in zip(self.starts.tolist(), self.held, spans, strict=False):
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


def _pieces(one: Held, start: int, end: int, pages: dict[tuple[int, int], Page]) -> Iterable[Page]:
    """The postings of a segment between two places of its list."""
    if isinstance(one.segment, Whole):
        if end > start:
            yield one.segment.places[start:end], one.segment.codes[start:end]
        return
    while start < end:
        number, inside = divmod(start, PAGE)
        places, codes = pages[one.number, number]
        some = min(end - start, PAGE - inside)
        yield places[inside : inside + some], codes[inside : inside + some]
        start += some
