"""Words as numbers, seven bits to a byte: short for the words that came first, which are the common ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 4  # bytes: 268 million words
_MASKS = (0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF)
_PADDING = bytes(3)


def code(number: int) -> bytes:
    """A number from 0 on; the last byte of it is the only one under 128."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def decoded(blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of all blobs, one after the other, and how many each holds; ValueError where one is no such list."""
    import numpy as np  # noqa: PLC0415

    sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    data = np.frombuffer(b"".join((*blobs, _PADDING)), dtype=np.uint8)
    ends = np.flatnonzero(data[: -len(_PADDING)] < 128)
    blob_ends = np.cumsum(sizes)
    seen = np.searchsorted(ends, blob_ends)
    full = sizes > 0
    if full.any() and not (len(ends) and np.array_equal(ends[seen[full] - 1], blob_ends[full] - 1)):
        raise ValueError("a list of numbers ends within one")
    lengths = np.diff(ends, prepend=-1)
    if lengths.max(initial=0) > _MOST:
        raise ValueError("a number is longer than any")
    # Four bytes from where each number begins, without those that are of the next.
    every = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    raw = every.take(ends - lengths + 1) & np.asarray(_MASKS, dtype=np.uint32).take(lengths)
    out = (raw & 127) | (raw >> 1 & 127 << 7) | (raw >> 2 & 127 << 14) | (raw >> 3 & 127 << 21)
    return out.astype(np.int64), np.diff(seen, prepend=0)
