"""The vectors of one model in memory: exact cosine over all of them with one matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError
from recollect.ports import Nearest, Scored, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of the store in ascending order and their unit vectors, as of one stamp of the store."""

    stamp: tuple[int, int]
    rows: NDArray[np.int64]
    vectors: Vectors

    def nearest(self, vector: Vectors, limit: int, allowed: set[int] | None) -> Nearest:
        """The best rows with all that tie with the last, and the mean and deviation of all cosines of this question."""
        import numpy as np  # noqa: PLC0415

        if not len(self.rows):
            return Nearest(())
        cosines = self._times(self.vectors, vector)
        # To six places, like the cosines: an answer must not depend on the order in which notes were indexed.
        mean = round(float(cosines.mean(dtype=np.float64)), 6)
        deviation = round(float(cosines.std(dtype=np.float64)), 6)
        rows: Any = self.rows
        if allowed is not None:
            keep = np.isin(rows, np.fromiter(allowed, dtype=np.int64, count=len(allowed)))
            rows, cosines = rows[keep], cosines[keep]
        count = min(limit, len(rows))
        if count < len(rows):
            cut = np.partition(cosines, len(cosines) - count)[len(cosines) - count] if count else np.inf
            top = np.flatnonzero(cosines >= cut)
        else:
            top = np.arange(len(rows))
        order = top[np.lexsort((rows[top], -cosines[top]))] if count else top[:0]
        scored = tuple(Scored(int(rows[i]), float(cosines[i])) for i in order)
        return Nearest(scored, mean, deviation, len(self.rows))

    def cosines(self, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector."""
        import numpy as np  # noqa: PLC0415

        if not rows or not len(self.rows):
            return {}
        wanted = np.asarray(rows, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        found = self.rows[places] == wanted
        values = self._times(self.vectors[places[found]], vector)
        return {int(r): float(v) for r, v in zip(wanted[found], values, strict=True)}

    @staticmethod
    def _times(vectors: Vectors, vector: Vectors) -> Vectors:
        """Cosines to six places: the last bits depend on where in the matrix a row stands, and ties must be ties."""
        if vectors.shape[1] != len(vector):
            raise StoreError(
                f"the question has {len(vector)} dimensions, the index {vectors.shape[1]}",
                hint="a model changed under its name: delete the index file, it comes back by itself",
            )
        cosines: Vectors = (vectors @ vector).round(6)
        return cosines
