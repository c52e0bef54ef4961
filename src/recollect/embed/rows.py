"""What every local model does with its rows: one text at a time, side by side, each row of length one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from recollect.errors import EmbedderError
from recollect.ports import Vectors

_In = TypeVar("_In")


def side_by_side(run: Callable[[_In], Any], items: Sequence[_In], *, threads: int) -> list[Any]:
    """The answer for each item, in order; `threads` of 0 means one for each core."""
    if len(items) < 2:
        return [run(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(threads or os.cpu_count() or 1, len(items))) as pool:
        return list(pool.map(run, items))


def unit_rows(rows: Sequence[Any], *, dim: int, name: str) -> Vectors:
    """Rows of length one; a text the model says nothing about gets a fixed row, a row of another size is an error."""
    import numpy as np  # noqa: PLC0415

    out = np.zeros((len(rows), dim), dtype=np.float32)
    for i, row in enumerate(rows):
        found = np.asarray(row, dtype=np.float32)
        if found.shape != (dim,):
            raise EmbedderError(
                f"{name} gave a vector of shape {found.shape} where {dim} numbers were expected",
                hint="its settings and its weights do not belong together: get both anew",
            )
        length = math.sqrt(float(found @ found))
        if not math.isfinite(length):
            raise EmbedderError(f"{name} gave a vector that is no number", hint="its file is damaged: get it anew")
        if length > 1e-12:
            out[i] = found / length
        else:
            out[i, 0] = 1.0
    return out


def pool(hidden: Any, how: str) -> Any:
    """One row out of a row for each token."""
    if how == "cls":
        return hidden[0]
    if how == "last":
        return hidden[-1]
    return hidden.max(axis=0) if how == "max" else hidden.mean(axis=0)
