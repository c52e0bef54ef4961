"""Which chunks have a word: lists of postings, built, merged and checked in memory.

A segment is a range of chunks that is never changed, only replaced. Its chunks are counted from 0
to at most 65,535, so that a posting is two bytes of place (which chunk) and mostly one of code (how
often).

    key   (number of a word) << 1 | (1 for the field of exact forms, 0 for head and body)
    code  (count in the body, or of the exact form) << 1 | (1 if the word is in the head)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.store.sqlite.varint import pack, unpack

MOST_ROWS = 1 << 16
# postings; of the sizes that were tried, this one takes the fewest bytes in SQLite's pages
PAGE = 4096
_USUAL = 2  # the code of a word that is there once, in the body
_WIDTHS: tuple[tuple[int, Any], ...] = (
    (1 << 8, np.uint8),
    (1 << 16, np.uint16),
    (1 << 32, np.uint32),
)

Ints = NDArray[np.int64]
Codes = NDArray[Any]
Page = tuple[NDArray[np.uint16], Codes]


@dataclass(frozen=True)
class Segment:
    """Chunks in ascending order of rows with their lengths, and where the postings of each key
    end.
    """

    rows: Ints
    lengths: Ints
    keys: NDArray[np.uint32]
    ends: NDArray[np.uint32]

    def spans(self, keys: Ints) -> tuple[Ints, Ints]:
        """Where the postings of each key begin and end; the same number where there are none."""
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
class StoredSegment:
    """A segment with its number in the store (0: only in memory) and the bytes of a code in it."""

    number: int
    segment: Segment
    width: int = 1


@dataclass(frozen=True)
class FullSegment(Segment):
    """A segment with all of its postings."""

    places: NDArray[np.uint16]
    codes: Codes

    def same(self, other: FullSegment) -> bool:
        """Whether both have the same rows and postings."""
        return all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )


def build(rows: Ints, numbers: Ints, counts: Ints) -> FullSegment:
    """A segment of rows from the numbers of their words; `counts` has three for each row: head,
    body and exact.
    """
    each = counts.reshape(-1, 3)
    place = np.repeat(np.arange(len(rows), dtype=np.uint16), each.sum(axis=1))
    part = np.repeat(np.tile(np.arange(3, dtype=np.uint8), len(rows)), counts)
    keyed = (numbers * 2 + (part == 2)).astype(np.uint32)
    order = _order(keyed)
    # key and place as one number; equal ones are adjacent
    pairs = keyed[order].astype(np.int64) << 16 | place[order]
    first = (
        np.flatnonzero(np.diff(pairs, prepend=-1)) if len(pairs) else np.zeros(0, dtype=np.int64)
    )
    total = np.diff(first, append=len(pairs))
    in_head = np.add.reduceat((part == 0)[order], first, dtype=np.int64) if len(first) else first
    codes = (total - in_head) * 2 + (in_head > 0)
    pairs = pairs[first]
    keys = pairs >> 16
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = np.append(starts[1:], len(pairs)) if len(starts) else starts
    return FullSegment(
        rows,
        each[:, 1].copy(),
        keys[starts].astype(np.uint32),
        ends.astype(np.uint32),
        (pairs & 0xFFFF).astype(np.uint16),
        _narrow(codes),
    )


def _order(keys: NDArray[np.uint32]) -> NDArray[np.intp]:
    """The stable order by key: by the low half and then the high half, which numpy sorts by
    radix.
    """
    low = np.argsort(keys.astype(np.uint16), kind="stable")
    high = (keys >> 16).astype(np.uint16)[low]
    return low[np.argsort(high, kind="stable")] if high.any() else low


def merge(parts: Sequence[tuple[FullSegment, NDArray[np.bool_]]]) -> FullSegment:
    """One segment of several whose rows ascend from each to the next, without the rows that a mask
    leaves out.
    """
    rows, lengths, keys, counts, places, codes = [], [], [], [], [], []
    before = 0
    for segment, alive in parts:
        if alive.all():
            there: Any = slice(None)
            moved, count = segment.places.astype(np.int64) + before, segment.counts
        else:
            there = alive[segment.places]
            moved = (np.cumsum(alive) - 1 + before)[segment.places[there]]
            seen: Ints = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(there)))
            ends = segment.ends.astype(np.int64)
            count = seen[ends] - seen[ends - segment.counts]
        rows.append(segment.rows[alive])
        lengths.append(segment.lengths[alive])
        keys.append(segment.keys)
        counts.append(count)
        places.append(moved)
        codes.append(segment.codes[there].astype(np.uint32))
        before += len(rows[-1])
    # All lists of one key, one after the other: `gather` tells where each posting is in the
    # concatenated lists.
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
    return FullSegment(
        np.concatenate(rows),
        np.concatenate(lengths),
        sorted_keys[first],
        np.cumsum(per_key).astype(np.uint32),
        np.concatenate(places)[gather].astype(np.uint16),
        _narrow(np.concatenate(codes)[gather]),
    )


def _narrow(codes: Codes) -> Codes:
    """The same codes in as few bytes each as the largest needs."""
    most = int(codes.max()) if len(codes) else 0
    return codes.astype(next(kind for limit, kind in _WIDTHS if most < limit))


def to_blobs(segment: Segment) -> tuple[bytes, bytes, bytes, bytes]:
    """Rows, lengths, keys and ends as they are kept: as differences, mostly of one byte (see
    `pack`).
    """
    return _steps(segment.rows), pack(segment.lengths), _steps(segment.keys), _steps(segment.ends)


def _steps(ascending: NDArray[Any]) -> bytes:
    steps = ascending.astype(np.int64)
    steps[1:] -= steps[:-1].copy()
    return pack(steps)


def from_blobs(rows: bytes, lengths: bytes, keys: bytes, ends: bytes) -> Segment:
    """The segment that `to_blobs` was given; ValueError where the blobs cannot belong together."""
    narrow = ascending(keys).astype(np.uint32), ascending(ends).astype(np.uint32)
    segment = Segment(ascending(rows), unpack(lengths), *narrow)
    if len(segment.rows) != len(segment.lengths) or len(segment.keys) != len(segment.ends):
        raise ValueError("the parts of a segment differ in length")
    return segment


def ascending(blob: bytes) -> Ints:
    """Rows, keys or ends that are kept as differences."""
    return np.cumsum(unpack(blob))


def to_pages(segment: FullSegment) -> list[bytes]:
    """The postings in pages, which are read at once."""
    places, codes = segment.places, segment.codes
    return [_page(places[i : i + PAGE], codes[i : i + PAGE]) for i in range(0, len(places), PAGE)]


def _page(places: NDArray[np.uint16], codes: Codes) -> bytes:
    """A count (2 bytes), the places (2 bytes each), a bit for each code that is not the usual one,
    and those codes.
    """
    other = codes != _USUAL
    others: bytes = codes[other].astype(codes.dtype.newbyteorder("<")).tobytes()
    start = len(places).to_bytes(2, "little") + places.astype("<u2").tobytes()
    return start + np.packbits(other).tobytes() + others


def from_page(page: bytes, width: int) -> Page:
    """Places and codes of a page."""
    kind: np.dtype[Any] = np.dtype(f"<u{width}")
    count = int.from_bytes(page[:2], "little")
    bits, others = 2 + 2 * count, 2 + 2 * count + (count + 7) // 8
    other = np.unpackbits(
        np.frombuffer(page, dtype=np.uint8, count=others - bits, offset=bits), count=count
    )
    codes = np.full(count, _USUAL, dtype=kind)
    codes[other.view(bool)] = np.frombuffer(page, dtype=kind, offset=others)
    return np.frombuffer(page, dtype="<u2", count=count, offset=2), codes
