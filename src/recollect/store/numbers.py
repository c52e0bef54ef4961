"""Words as numbers, seven bits to a byte: short for the words that came first, which are the common ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 5


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
    data = np.frombuffer(b"".join(blobs), dtype=np.uint8)
    last = data < 128
    blob_ends = np.cumsum(sizes)
    if not last[blob_ends[sizes > 0] - 1].all():
        raise ValueError("a list of numbers ends within one")
    seen = np.concatenate(([0], np.cumsum(last)))
    counts = seen[blob_ends] - seen[blob_ends - sizes]
    ends = np.flatnonzero(last)
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    lengths = ends - starts + 1
    out = (data[starts] & 127).astype(np.int64)
    longest = int(lengths.max()) if len(lengths) else 0
    if longest > _MOST:
        raise ValueError("a number is longer than any")
    for place in range(1, longest):
        longer = np.flatnonzero(lengths > place)
        out[longer] |= (data[starts[longer] + place] & 127).astype(np.int64) << (7 * place)
    return out, counts
