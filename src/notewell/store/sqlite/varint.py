"""Integers in few bytes: seven bits to a byte for words, one byte for most in a list; and
checksums.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from notewell.store.lazy import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

_MOST_BYTES = 5
_MASKS = (
    0,
    0xFF,
    0xFFFF,
    0xFFFFFF,
    0xFFFFFFFF,
    0xFFFFFFFF,
)  # the bytes of a number of so many bytes, at most four
_PADDING = bytes(3)  # so that four bytes can be read from where any number starts
_LARGE = 255


def encode(number: int) -> bytes:
    """A number from 0 on as a varint: the low seven bits first; every byte but the last has its
    high bit set.
    """
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode(blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The varints of all blobs, one after the other, and how many each blob has; ValueError where
    one is damaged.
    """
    sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    data = np.frombuffer(b"".join((*blobs, _PADDING)), dtype=np.uint8)
    ends = np.flatnonzero(data[: -len(_PADDING)] < 128)  # the last byte of each number
    blob_ends = np.cumsum(sizes)
    seen = np.searchsorted(ends, blob_ends)
    full = sizes > 0
    if full.any() and not (len(ends) and np.array_equal(ends[seen[full] - 1], blob_ends[full] - 1)):
        raise ValueError("a list of numbers ends inside a number")
    lengths = np.diff(ends, prepend=-1)
    if lengths.max(initial=0) > _MOST_BYTES:
        raise ValueError("a number is too long")
    # Read four bytes from the start of each number, through an overlapping view, and mask those of
    # the next number. Then close the gap that the high bit of each byte leaves: the nth byte moves
    # n places to the right.
    windows = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    raw = windows.take(ends - lengths + 1) & np.asarray(_MASKS, dtype=np.uint32).take(lengths)
    low = (raw & 127) | (raw >> 1 & 127 << 7) | (raw >> 2 & 127 << 14) | (raw >> 3 & 127 << 21)
    numbers = low.astype(np.int64)
    longest = np.flatnonzero(lengths == _MOST_BYTES)  # the fifth byte has bits 28 to 34
    numbers[longest] |= data[ends[longest]].astype(np.int64) << 28
    return numbers, np.diff(seen, prepend=0)


def numbers_in(blob: bytes) -> list[int]:
    """The varints of one blob, without numpy; ValueError where it is damaged."""
    found: list[int] = []
    value = shift = 0
    for byte in blob:
        value |= (byte & 127) << shift
        if byte < 128:
            found.append(value)
            value = shift = 0
        elif (shift := shift + 7) == 7 * _MOST_BYTES:
            raise ValueError("a number is too long")
    if shift:
        raise ValueError("a list of numbers ends inside a number")
    return found


def pack(values: NDArray[np.int64]) -> bytes:
    """Numbers from 0 on: how many (4 bytes), one byte for each (255: it is larger), the larger ones
    (8 bytes each).
    """
    large = values[values >= _LARGE].astype("<u8")
    return (
        len(values).to_bytes(4, "little")
        + np.minimum(values, _LARGE).astype(np.uint8).tobytes()
        + large.tobytes()
    )


def unpack(blob: bytes) -> NDArray[np.int64]:
    """The numbers that `pack` was given; ValueError where the blob is damaged."""
    count = int.from_bytes(blob[:4], "little")
    values = np.frombuffer(blob, dtype=np.uint8, count=count, offset=4).astype(np.int64)
    large = np.frombuffer(blob, dtype="<u8", offset=4 + count)
    at = np.flatnonzero(values == _LARGE)
    if len(at) != len(large):
        raise ValueError("a list of numbers is incomplete")
    values[at] = large
    return values


def checksum(*blobs: bytes) -> int:
    """A CRC over several blobs."""
    crc = 0
    for blob in blobs:
        crc = zlib.crc32(blob, crc)
    return crc
