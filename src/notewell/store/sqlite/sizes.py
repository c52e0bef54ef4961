"""How large the segments of the index get; tests use small ones, so that a few notes fill them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SegmentSizes:
    """When postings and vectors are moved into segments, and when segments are rewritten."""

    seal_rows: int = 4096  # new chunks that are sealed into a keyword segment together
    seal_many: int = 512  # new chunks of one transaction that are sealed at its end
    # a keyword segment with fewer rows than this is merged with its neighbours
    small_rows: int = 1 << 15
    merged: int = 16  # small neighbours that are merged into one segment
    unsealed_parts: int = 4  # parts that a snapshot keeps in memory before it joins them
    dead_share: int = 20  # segments are rewritten when more than 1/20 of all rows are dead
    check_dropped: int = 512  # dropped rows between two checks for dead rows and stale traits
    stale_traits: int = 4096  # forms without a chunk whose traits are swept together
    vectors: int = 1024  # vectors in a segment: part of the file format, the same in every process
    loose_vectors: int = (
        4096  # vectors that wait in their own rows before they are moved into segments
    )
    # postings of the words of a question that are all scored, without a look at which matter
    few_postings: int = 50_000


DEFAULT_SIZES = SegmentSizes()
MODEL_CHANGED = "a model changed under its name: delete the index file, it comes back by itself"
SMALL_DIM = (
    64  # below this, one byte a dimension is too coarse for a vector, and floats cost little
)
