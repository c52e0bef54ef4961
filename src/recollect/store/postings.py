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

MOST_ROWS = 1 << 16
PAGE = 2704  # three bytes each and what SQLite adds fill a page of the file; a few more would take two
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
    place = np.repeat(np.arange(len(rows), dtype=np.int64), each.sum(axis=1))
    part = np.repeat(np.tile(np.arange(3, dtype=np.int64), len(rows)), counts)
    # Key, place and whether it is of the head, in one number: sorted, equal ones stand together.
    merged = np.sort((numbers * 2 + (part == 2)) << 17 | place << 1 | (part == 0))
    said = merged >> 1
    first = np.flatnonzero(np.diff(said, prepend=-1)) if len(said) else np.zeros(0, dtype=np.int64)
    whole = np.diff(first, append=len(said))
    in_head = np.add.reduceat(merged & 1, first) if len(first) else first
    codes = (whole - in_head) * 2 + (in_head > 0)
    said = said[first]
    keys, starts = np.unique(said >> 16, return_index=True)
    ends = np.append(starts[1:], len(said)) if len(keys) else starts
    return Whole(
        rows, each[:, 1].copy(), keys.astype(np.uint32), ends.astype(np.uint32), (said & 0xFFFF).astype(np.uint16),
        _narrow(codes),
    )  # fmt: skip


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
    """Rows, lengths, keys and ends as they are kept."""
    return (
        segment.rows.astype("<i8").tobytes(), segment.lengths.astype("<u4").tobytes(),
        segment.keys.astype("<u4").tobytes(), segment.ends.astype("<u4").tobytes(),
    )  # fmt: skip


def to_pages(whole: Whole) -> list[bytes]:
    """The postings in pieces of a size that is read at once."""
    kind = whole.codes.dtype.newbyteorder("<")
    return [
        whole.places[i : i + PAGE].astype("<u2").tobytes() + whole.codes[i : i + PAGE].astype(kind).tobytes()
        for i in range(0, len(whole.places), PAGE)
    ]


def from_blobs(rows: bytes, lengths: bytes, keys: bytes, ends: bytes) -> Segment:
    """The other way; ValueError where they cannot belong together."""
    segment = Segment(
        np.frombuffer(rows, dtype="<i8"), np.frombuffer(lengths, dtype="<u4").astype(np.int64),
        np.frombuffer(keys, dtype="<u4"), np.frombuffer(ends, dtype="<u4"),
    )  # fmt: skip
    if len(segment.rows) != len(segment.lengths) or len(segment.keys) != len(segment.ends):
        raise ValueError("the parts of a segment differ in length")
    return segment


def from_page(page: bytes, width: int) -> tuple[NDArray[np.uint16], Codes]:
    """Places and codes of a piece."""
    kind: np.dtype[Any] = np.dtype(f"<u{width}")
    count = len(page) // (2 + width)
    return np.frombuffer(page, dtype="<u2", count=count), np.frombuffer(page, dtype=kind, offset=2 * count)
