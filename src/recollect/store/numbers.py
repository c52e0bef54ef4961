"""Numbers in few bytes: words, seven bits to a byte, and lists of which most are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 5
_MASKS = (0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
_PADDING = bytes(3)
_LARGE = 255


def code(number: int) -> bytes:
    """A number from 0 on; the last byte of it is the only one under 128."""
    if number < 128:
        return bytes((number,))
    if number < 1 << 14:
        return bytes((number & 127 | 128, number >> 7))
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
    wide = out.astype(np.int64)
    longest = np.flatnonzero(lengths == _MOST)
    wide[longest] |= data[ends[longest]].astype(np.int64) << 28
    return wide, np.diff(seen, prepend=0)


def packed(values: NDArray[np.int64]) -> bytes:
    """Numbers from 0 on: how many there are, a byte for each, and those that are too large for it, in order."""
    import numpy as np  # noqa: PLC0415

    large = values[values >= _LARGE].astype("<u8")
    return len(values).to_bytes(4, "little") + np.minimum(values, _LARGE).astype(np.uint8).tobytes() + large.tobytes()


def unpacked(blob: bytes) -> NDArray[np.int64]:
    """The other way; ValueError where it is no such list."""
    import numpy as np  # noqa: PLC0415

    count = int.from_bytes(blob[:4], "little")
    values = np.frombuffer(blob, dtype=np.uint8, count=count, offset=4).astype(np.int64)
    large = np.frombuffer(blob, dtype="<u8", offset=4 + count)
    at = np.flatnonzero(values == _LARGE)
    if len(at) != len(large):
        raise ValueError("a list of numbers lacks some")
    values[at] = large
    return values
