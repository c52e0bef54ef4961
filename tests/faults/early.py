"""Small indexes that do what large ones do: after a few rows keywords are sealed and merged, and
vectors packed.
"""

from __future__ import annotations

from collections.abc import Callable

from notewell.store.sqlite import sizes

SMALL = sizes.SegmentSizes(
    seal_rows=24,
    merged=3,
    small_rows=100,
    check_dropped=16,
    unsealed_parts=2,
    vectors=40,  # of 256 bytes each: they do not fit into one page
    loose_vectors=40,
)


def seal_early(put: Callable[[object, str, object], None] = setattr) -> None:
    """Sets small sizes for this process and those that it forks; only they can read an index that
    was made so.
    """
    put(sizes, "DEFAULT_SIZES", SMALL)
