"""The windows of one passage as bytes, and the nearest of them to a question.

Windows are the vectors of parts of a passage. They are only read for passages that a leg has found,
never scanned, so they are kept coarse: four bits for each of the first dimensions, which a model
trains to mean something by themselves.

    version (1 byte), dimensions (2 bytes)
    for every window: from which character (2), to which (2), scale (2),
        codes (half a byte a dimension)

Characters are those of the text that the model was given. Code `c` means `c - 7.5`. A byte has
dimension `i` in its low half and `i + dimensions / 2` in its high half; the scale makes the product
of a window with itself exactly 1. Bytes that make no sense are read as no windows.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.store.rotation import rotated
from notewell.store.values import Windows
from notewell.types import Vectors

_VERSION = 1
_HEAD = struct.Struct("<BH")
_MOST = 0xFFFF
_CENTRE = 7.5
# of the deviation: with sixteen even steps the least error for numbers that are spread as these are
_STEP = 0.335
_NO_WINDOWS = Windows(*(np.empty(0, dtype=kind) for kind in (int, float, int, int)))


def pack(windows: Vectors, spans: Sequence[tuple[int, int]], dims: int) -> bytes:
    """Windows by their first dimensions, each with the characters that it covers; one without
    direction is left out.
    """
    vectors = np.asarray(windows, dtype=np.float32)
    dims = min(dims, vectors.shape[1], _MOST) // 2 * 2
    vectors = vectors[:, :dims]
    norms = np.linalg.norm(vectors, axis=1)
    some = norms > 1e-9
    if not some.any():
        return b""
    unit = rotated(vectors[some] / norms[some, None])
    levels = np.clip(np.floor(unit * (dims**0.5 / _STEP)), -8, 7)
    out = np.empty(len(unit), dtype=_layout(dims))
    places = np.clip(np.asarray(spans, dtype=np.int64).reshape(-1, 2)[some], 0, _MOST)
    out["start"], out["end"] = places[:, 0], places[:, 1]
    out["scale"] = 1.0 / np.einsum("ij,ij->i", levels + 0.5, unit)
    codes = (levels + 8).astype(np.uint8)
    out["codes"] = codes[:, : dims // 2] | codes[:, dims // 2 :] << 4
    return _HEAD.pack(_VERSION, dims) + out.tobytes()


def nearest(passages: Sequence[bytes], vector: Vectors) -> Windows:
    """For every passage that has windows, the one with the largest cosine to a question, and the
    first of equals.
    """
    known = KnownWindows()
    known.add(range(len(passages)), passages)
    return known.nearest(range(len(passages)), vector)


class KnownWindows:
    """The windows of passages that were read, next to each other: those of many passages are
    compared at once.

    Threads share it: what is there never changes, and what is added is seen when all of it is
    there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # by their head: one model makes windows of one size
        self._tables: dict[bytes, NDArray[Any]] = {}
        self._used: Counter[bytes] = Counter()
        # The keys in ascending order; which table each passage is in, from where on, and how many
        # windows it has.
        self._places: tuple[NDArray[Any], ...] = tuple(np.zeros((4, 0), dtype=np.int64))

    def __len__(self) -> int:
        return len(self._places[0])

    def lacks(self, keys: Sequence[int]) -> list[int]:
        """Those of some passages that were not added."""
        known, wanted = self._places[0], np.asarray(keys, dtype=np.int64)
        if not len(known):
            return list(keys)
        at = np.searchsorted(known, wanted)
        there = known.take(at, mode="clip") == wanted
        return [] if there.all() else [keys[n] for n in np.flatnonzero(~there).tolist()]

    def add(self, keys: Sequence[int], passages: Sequence[bytes]) -> None:
        """Adds passages as they are kept; one without windows has no bytes, and bytes that make no
        sense are none.
        """
        if not len(keys):
            return
        with self._lock:
            new = np.zeros((4, len(keys)), dtype=np.int64)
            new[0] = keys
            for head in {kept[: _HEAD.size] for kept in passages}:
                if dims := _dims(head):
                    self._put(head, _layout(dims), passages, new)
            order = np.argsort(both := np.concatenate((self._places[0], new[0])), kind="stable")
            others = (
                np.concatenate(each).take(order)
                for each in zip(self._places[1:], new[1:], strict=True)
            )
            self._places = both.take(order), *others

    def _put(
        self, head: bytes, layout: np.dtype[Any], passages: Sequence[bytes], places: NDArray[Any]
    ) -> None:
        """Adds the windows of those passages that have this head to its table, and their places to
        the columns.
        """
        size, least = layout.itemsize, len(head)
        mine = [
            n
            for n, kept in enumerate(passages)
            if kept[:least] == head and not (len(kept) - least) % size
        ]
        windows = np.frombuffer(b"".join([passages[n][least:] for n in mine]), dtype=layout)
        table = self._tables.setdefault(head, np.empty(0, dtype=layout))
        start = self._used[head]
        if start + len(windows) > len(table):
            grown = np.empty(max(start + len(windows), 3 * len(table) // 2), dtype=layout)
            grown[:start] = table[:start]
            table = self._tables[head] = grown
        table[start : start + len(windows)] = windows
        self._used[head] += len(windows)
        counts = np.array([len(passages[n]) // size for n in mine], dtype=np.int64)
        places[1, mine], places[3, mine] = list(self._tables).index(head), counts
        places[2, mine] = start + np.cumsum(counts) - counts

    def nearest(self, keys: Sequence[int], vector: Vectors) -> Windows:
        """For those of some passages that have windows, the nearest of them to a question, and the
        first of equals.
        """
        known, *columns = self._places
        at = np.searchsorted(known, np.asarray(keys, dtype=np.int64))
        which, starts, counts = (column.take(at) for column in columns)
        found = [_NO_WINDOWS]
        for number, (head, table) in enumerate(list(self._tables.items())):
            mine = np.flatnonzero((counts > 0) & (which == number))
            if len(mine) and (dims := _dims(head)) <= len(vector):
                some, of_each = starts.take(mine), counts.take(mine)
                before = np.cumsum(of_each) - of_each
                windows = table.take(np.repeat(some - before, of_each) + np.arange(of_each.sum()))
                found.append(_best(mine, of_each, windows, vector[:dims]))
        return (
            found[-1]
            if len(found) <= 2
            else Windows(*map(np.concatenate, zip(*found[1:], strict=True)))
        )


def _dims(head: bytes) -> int:
    """How many dimensions the windows after this head have; 0 where it makes no sense."""
    version, dims = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
    return int(dims) if version == _VERSION and not dims % 2 else 0


@lru_cache(maxsize=8)
def _layout(dims: int) -> np.dtype[Any]:
    """The bytes of one window."""
    return np.dtype(
        [("start", "<u2"), ("end", "<u2"), ("scale", "<f2"), ("codes", "u1", (dims // 2,))]
    )


def _best(
    passages: NDArray[Any], counts: NDArray[Any], table: NDArray[Any], vector: Vectors
) -> Windows:
    """The nearest window of each passage; the table has so many of each, one after the other."""
    cosines = _cosines(table, vector)
    starts = np.cumsum(counts) - counts
    best = np.maximum.reduceat(cosines, starts)
    hits = np.flatnonzero(cosines == np.repeat(best, counts))
    first = hits.take(np.searchsorted(hits, starts))
    return Windows(passages, best, table["start"].take(first), table["end"].take(first))


def _cosines(table: NDArray[Any], vector: Vectors) -> NDArray[Any]:
    """The cosine of every window, to six decimals like those of whole passages; a damaged scale
    makes it -1.
    """
    norm = float(np.linalg.norm(vector))
    asked = rotated(vector / np.float32(norm or 1.0))
    half, codes = len(asked) // 2, np.ascontiguousarray(table["codes"])
    low, high = (codes & 15).astype(np.float32), (codes >> 4).astype(np.float32)
    scale = table["scale"].astype(np.float32)
    good = (scale > 0) & (scale < 1)
    dots = (low @ asked[:half] + high @ asked[half:] - _CENTRE * asked.sum()) * np.where(
        good, scale, 0
    )
    return np.where(good, np.clip(dots, -1.0, 1.0), -1.0).round(6)
