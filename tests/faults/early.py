"""Small indexes that do what large ones do: after a few rows word lists are sealed and merged, and vectors packed."""

from __future__ import annotations

from collections.abc import Callable

from recollect.store import sealed, segments

SIZES = {
    sealed: {"SEAL_ROWS": 24, "_MERGED": 3, "_SMALL_ROWS": 100, "_LOOK_EVERY": 16, "_FRESH_PARTS": 2},
    segments: {"SEGMENT": 40, "LOOSE": 40},  # 40 vectors of 256 bytes do not fit into one page
}


def seal_early(put: Callable[[object, str, int], None] = setattr) -> None:
    """From now on in this process and those that it forks; an index that was made so is only for them."""
    for module, sizes in SIZES.items():
        for name, size in sizes.items():
            put(module, name, size)
