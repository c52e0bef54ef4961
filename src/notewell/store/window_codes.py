"""The windows of one passage as bytes, and the nearest of them to a question.

Windows are the vectors of parts of a passage. They are only read for passages that a leg has found, never scanned, so
they are kept coarse: four bits for each of the first dimensions, which a model trains to mean something by themselves.

    version (1 byte), dimensions (2 bytes)
    for every window: from which character (2), to which (2), scale (2), codes (half a byte a dimension)

Characters are those of the text that the model was given. Code `c` means `c - 7.5`. A byte has dimension `i` in
its low half and `i + dimensions / 2` in its high half; the scale makes the product of a window with itself exactly 1.
Bytes that make no sense are read as no windows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from notewell.store.rotation import rotated
from notewell.types import Vectors

_VERSION = 1
_HEAD = struct.Struct("<BH")
_MOST = 0xFFFF
_CENTRE = 7.5
_STEP = 0.335  # of the deviation: with sixteen even steps the least error for numbers that are spread as these are


class Windows(NamedTuple):
    """The nearest window of each passage, as columns: its passage, its cosine, and from and to which character."""

    keys: Sequence[int]
    cosines: NDArray[Any]
    starts: NDArray[Any]
    ends: NDArray[Any]


def pack(windows: Vectors, spans: Sequence[tuple[int, int]], dims: int) -> bytes:
    """Windows by their first dimensions, each with the characters that it covers; one without direction is left out."""
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


def nearest(passages: Mapping[int, bytes], vector: Vectors) -> Windows:
    """For every passage that has windows, the one with the largest cosine to a question, and the first of equals."""
    heads = {codes[: _HEAD.size] for codes in passages.values()}
    found = [Windows([], np.empty(0), np.empty(0, dtype=int), np.empty(0, dtype=int))]
    for head in heads:
        if 0 < (dims := _dims(head)) <= len(vector):
            some = passages if len(heads) == 1 else {k: v for k, v in passages.items() if v[: _HEAD.size] == head}
            size, least = _layout(dims).itemsize, _HEAD.size
            sound = {k: v[least:] for k, v in some.items() if len(v) > least and not (len(v) - least) % size}
            if sound:
                found.append(_nearest(sound, vector[:dims]))
    if len(found) <= 2:  # one model makes windows of one size
        return found[-1]
    columns = zip(*(one[1:] for one in found), strict=True)
    return Windows([key for one in found for key in one.keys], *map(np.concatenate, columns))


def _dims(head: bytes) -> int:
    """How many dimensions the windows after this head have; 0 where it makes no sense."""
    version, dims = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
    return int(dims) if version == _VERSION and not dims % 2 else 0


@lru_cache(maxsize=8)
def _layout(dims: int) -> np.dtype[Any]:
    """The bytes of one window."""
    return np.dtype([("start", "<u2"), ("end", "<u2"), ("scale", "<f2"), ("codes", "u1", (dims // 2,))])


def _nearest(bodies: Mapping[int, bytes], vector: Vectors) -> Windows:
    """The same for passages whose windows have the dimensions of the question."""
    layout = _layout(len(vector))
    counts = np.array(list(map(len, bodies.values()))) // layout.itemsize
    table = np.frombuffer(b"".join(bodies.values()), dtype=layout)
    cosines = _cosines(table, vector)
    starts = np.cumsum(counts) - counts
    best = np.maximum.reduceat(cosines, starts)
    hits = np.flatnonzero(cosines == np.repeat(best, counts))
    first = hits[np.searchsorted(hits, starts)]
    return Windows(list(bodies), best, table["start"][first].astype(int), table["end"][first].astype(int))


def _cosines(table: NDArray[Any], vector: Vectors) -> NDArray[Any]:
    """The cosine of every window, to six decimals like those of whole passages; a damaged scale makes it -1."""
    norm = float(np.linalg.norm(vector))
    asked = rotated(vector / np.float32(norm or 1.0))
    half = len(asked) // 2
    low, high = (table["codes"] & 15).astype(np.float32), (table["codes"] >> 4).astype(np.float32)
    scale = table["scale"].astype(np.float32)
    good = (scale > 0) & (scale < 1)
    dots = (low @ asked[:half] + high @ asked[half:] - _CENTRE * asked.sum()) * np.where(good, scale, 0)
    return np.where(good, np.clip(dots, -1.0, 1.0), -1.0).round(6)
