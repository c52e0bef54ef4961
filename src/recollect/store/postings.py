"""Which passages have a word: lists of postings, made, merged and checked in memory.

A segment is a stretch of passages that is never changed, only replaced. Its passages are counted from 0 to 65,535 at
most, so that a posting is two bytes of place and mostly one of frequency. A key is a word's number, doubled, and one
more for the field of exact forms; a frequency is the count in the body, doubled, and one more if the word is in the
head.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.store.numbers import packed, unpacked

MOST_ROWS = 1 << 16
PAGE = (
    4096  # they fill a page of the file, and share another: with what SQLite adds, the fewest bytes of what was tried
)
_USUAL = 2  # the code of a word that stands there once, in the body
_WIDTHS: tuple[tuple[int, Any], ...] = ((1 << 8, np.uint8), (1 << 16, np.uint16), (1 << 32, np.uint32))

Ints = NDArray[np.int64]
Codes = NDArray[Any]


@dataclass(frozen=True)
class Segment:
    """Passages in ascending order of rows with their lengths, and where the postings of each key end."""

    rows: Ints
    lengths: Ints
    keys: NDArray[np.uint32]
    ends: NDArray[np.uint32]

    def spans(self, keys: Ints) -> tuple[Ints, Ints]:
        """Where the postings of some keys begin and end; the same place where there are none."""
        if not len(self.keys):
            none = np.zeros(len(keys), dtype=np.int64)
            return none, none
        at = np.searchsorted(self.keys, keys)
        there = at < len(self.keys)
        there &= self.keys[np.minimum(at, len(self.keys) - 1)] == keys
        at = np.where(there, at, 0)
        ends = self.ends[at].astype(np.int64)
        starts = np.where(at > 0, self.ends[at - 1], 0).astype(np.int64)
        return np.where(there, starts, 0), np.where(there, ends, 0)

    @cached_property
    def counts(self) -> Ints:
        """How many postings each key has."""
        return np.diff(self.ends, prepend=np.uint32(0)).astype(np.int64)


@dataclass(frozen=True)
class Whole(Segment):
    """A segment with all of its postings."""

    places: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    codes: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def same(self, other: Whole) -> bool:
        """Whether both say the same."""
        mine: tuple[NDArray[Any], ...] = (self.rows, self.lengths, self.keys, self.ends, self.places, self.codes)
        theirs: tuple[NDArray[Any], ...] = (
            other.rows,
            other.lengths,
            other.keys,
            other.ends,
            other.places,
            other.codes,
        )
        return all(map(np.array_equal, mine, theirs))


def built(rows: Ints, numbers: Ints, counts: Ints) -> Whole:
    """A segment of rows from their words: for each row those of head, body and exact, and how many of each."""
    each = counts.reshape(-1, 3)
    place = np.repeat(np.arange(len(rows), dtype=np.uint16), each.sum(axis=1))
    part = np.repeat(np.tile(np.arange(3, dtype=np.uint8), len(rows)), counts)
    keyed = (numbers * 2 + (part == 2)).astype(np.uint32)
    order = _order(keyed)
    said = keyed[order].astype(np.int64) << 16 | place[order]  # equal ones stand together
    first = np.flatnonzero(np.diff(said, prepend=-1)) if len(said) else np.zeros(0, dtype=np.int64)
    whole = np.diff(first, append=len(said))
    in_head = np.add.reduceat((part == 0)[order], first, dtype=np.int64) if len(first) else first
    codes = (whole - in_head) * 2 + (in_head > 0)
    said = said[first]
    keys = said >> 16
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(starts[1:], len(said)) if len(starts) else starts
    return Whole(
        rows, each[:, 1].copy(), keys[starts].astype(np.uint32), ends.astype(np.uint32),
        (said & 0xFFFF).astype(np.uint16), _narrow(codes),
    )  # fmt: skip


def _order(keys: NDArray[np.uint32]) -> NDArray[np.intp]:
    """The order by key, equal ones as they came: by half a key at a time, which numpy sorts without comparing."""
    low = np.argsort(keys.astype(np.uint16), kind="stable")
    high = (keys >> 16).astype(np.uint16)[low]
    return low[np.argsort(high, kind="stable")] if high.any() else low


def merged(parts: Sequence[tuple[Whole, NDArray[np.bool_] | None]]) -> Whole:
    """One segment of several whose rows ascend from each to the next, without the rows that a mask leaves out."""
    rows, lengths, keys, counts, places, codes = [], [], [], [], [], []
    before = 0
    for whole, alive in parts:
        if alive is None or alive.all():
            kept: Any = slice(None)
            there: Any = slice(None)
            moved = whole.places.astype(np.int64) + before
            count = whole.counts
            fewer = len(whole.rows)
        else:
            kept, there = alive, alive[whole.places]
            numbered = np.cumsum(alive) - 1 + before
            moved = numbered[whole.places[there]]
            seen: Ints = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(there)))
            ends = whole.ends.astype(np.int64)
            count = seen[ends] - seen[ends - whole.counts]
            fewer = int(alive.sum())
        rows.append(whole.rows[kept])
        lengths.append(whole.lengths[kept])
        keys.append(whole.keys)
        counts.append(count)
        places.append(moved)
        codes.append(whole.codes[there].astype(np.uint32))
        before += fewer
    all_keys, all_counts = np.concatenate(keys), np.concatenate(counts)
    starts = np.cumsum(all_counts) - all_counts
    order = np.argsort(all_keys, kind="stable")
    sorted_counts = all_counts[order]
    gather = np.repeat(starts[order] - (np.cumsum(sorted_counts) - sorted_counts), sorted_counts)
    gather += np.arange(len(gather))
    kept_order = order[sorted_counts > 0]
    sorted_keys = all_keys[kept_order]
    first = np.flatnonzero(np.diff(sorted_keys.astype(np.int64), prepend=-1))
    per_key = np.add.reduceat(all_counts[kept_order], first) if len(first) else first
    return Whole(
        np.concatenate(rows), np.concatenate(lengths), sorted_keys[first], np.cumsum(per_key).astype(np.uint32),
        np.concatenate(places)[gather].astype(np.uint16), _narrow(np.concatenate(codes)[gather]),
    )  # fmt: skip


def _narrow(codes: Codes) -> Codes:
    most = int(codes.max()) if len(codes) else 0
    return codes.astype(next(kind for limit, kind in _WIDTHS if most < limit))


def checksum(*blobs: bytes) -> int:
    """What tells that bytes are those that were written."""
    out = 0
    for blob in blobs:
        out = zlib.crc32(blob, out)
    return out


def to_blobs(segment: Segment) -> tuple[bytes, bytes, bytes, bytes]:
    """Rows, lengths, keys and ends as they are kept: mostly a byte each, for most are little above the one before."""
    return _steps(segment.rows), packed(segment.lengths), _steps(segment.keys), _steps(segment.ends)


def _steps(ascending: NDArray[Any]) -> bytes:
    steps = ascending.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return packed(steps)


def from_blobs(rows: bytes, lengths: bytes, keys: bytes, ends: bytes) -> Segment:
    """The other way; ValueError where they cannot belong together."""
    segment = Segment(rows_of(rows), unpacked(lengths), keys_of(keys), np.cumsum(unpacked(ends)).astype(np.uint32))
    if len(segment.rows) != len(segment.lengths) or len(segment.keys) != len(segment.ends):
        raise ValueError("the parts of a segment differ in length")
    return segment


def rows_of(blob: bytes) -> Ints:
    """The rows of a segment alone."""
    return np.cumsum(unpacked(blob))


def keys_of(blob: bytes) -> NDArray[np.uint32]:
    """The keys of a segment alone."""
    return np.cumsum(unpacked(blob)).astype(np.uint32)


def to_pages(whole: Whole) -> list[bytes]:
    """The postings in pieces of a size that is read at once."""
    return [_page(whole.places[i : i + PAGE], whole.codes[i : i + PAGE]) for i in range(0, len(whole.places), PAGE)]


def _page(places: NDArray[np.uint16], codes: Codes) -> bytes:
    """How many there are, where, which of them are not the commonest code, and what those are."""
    other = codes != _USUAL
    kind = codes.dtype.newbyteorder("<")
    count = len(places).to_bytes(2, "little")
    others: bytes = codes[other].astype(kind).tobytes()
    return b"".join((count, places.astype("<u2").tobytes(), np.packbits(other).tobytes(), others))


def from_page(page: bytes, width: int) -> tuple[NDArray[np.uint16], Codes]:
    """Places and codes of a piece."""
    kind: np.dtype[Any] = np.dtype(f"<u{width}")
    count = int.from_bytes(page[:2], "little")
    bits, others = 2 + 2 * count, 2 + 2 * count + (count + 7) // 8
    other = np.unpackbits(np.frombuffer(page, dtype=np.uint8, count=others - bits, offset=bits), count=count)
    codes = np.full(count, _USUAL, dtype=kind)
    codes[other.view(bool)] = np.frombuffer(page, dtype=kind, offset=others)
    return np.frombuffer(page, dtype="<u2", count=count, offset=2), codes
