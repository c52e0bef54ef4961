"""What searches read of passages lately, kept as of one state of the index: questions come back to the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.types import Chunk, Relations

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 16_384  # passages, some two kilobytes each
AT_ONCE = 2_048  # who asks for more reads the whole index, and would only push out what questions need


@dataclass(frozen=True, slots=True)
class Recent:
    """Passages, their terms and their relations by row, and numbers of words (None: there is no such word).

    Whatever is here was read after the stamp was, so it is of that state or of a later one with another stamp.
    """

    stamp: tuple[Any, ...]
    chunks: dict[int, Chunk] = field(default_factory=dict)
    terms: dict[int, tuple[NDArray[Any], int, int, int]] = field(default_factory=dict)
    kin: dict[int, Relations | None] = field(default_factory=dict)
    words: dict[str, int | None] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return max(len(self.chunks), len(self.terms), len(self.kin), len(self.words)) > MOST
