"""What searches read of chunks, cached for one state of the index: questions come back to the same
chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from notewell.types import Chunk, Relations

if TYPE_CHECKING:
    from numpy.typing import NDArray

# numbers of terms; how many are in the head, in the body, exact forms
Terms = tuple["NDArray[Any]", int, int, int]
MOST = 16_384  # entries; a chunk takes about two kilobytes
# a caller that asks for more reads all of the index, and would only push out what questions need
AT_ONCE = 2_048


@dataclass(frozen=True, slots=True)
class ReadCache:
    """Chunks, their terms and relations by row, and the numbers of words (None: there is no such
    word).
    """

    # entries were read at or after it; a later state has another, so none is used when stale
    stamp: tuple[Any, ...]
    chunks: dict[int, Chunk] = field(default_factory=dict)
    terms: dict[int, Terms] = field(default_factory=dict)
    relations: dict[int, Relations | None] = field(default_factory=dict)
    words: dict[str, int | None] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether it is time to start with an empty cache."""
        return max(len(self.chunks), len(self.terms), len(self.relations), len(self.words)) > MOST
