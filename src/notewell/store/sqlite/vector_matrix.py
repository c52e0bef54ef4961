"""The vectors of one model in memory, one byte a dimension: all are scanned as integers, the best
scored exactly.

What was read at once is the base; what changed since is a small tail, so that a new note costs no
reload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.errors import StoreError
from notewell.store.rotation import rotated
from notewell.store.sqlite.sizes import MODEL_CHANGED, SMALL_DIM
from notewell.store.values import Nearest, ScoredRows
from notewell.types import Vectors

Codes = NDArray[Any]

EXACT_ROWS = 4096  # up to this many, scoring all exactly is as fast as a coarse scan
_BLOCK = 4096
_LANES = 256


def to_blob(vector: Vectors) -> bytes:
    """A unit vector as it is kept: one signed byte a dimension, or floats where there are few
    dimensions.
    """
    return (
        vector.astype("<f4").tobytes()
        if len(vector) < SMALL_DIM
        else _to_bytes(rotated(vector))[0].tobytes()
    )


def to_vector(blob: bytes, dim: int) -> Vectors:
    """A kept vector as unit floats again."""
    part = Part.of([0], [blob], dim)
    vector: Vectors = part.codes[0].astype("f4") * part.scales[0]
    return vector if dim < SMALL_DIM else rotated(vector, back=True)


def _to_bytes(vector: Vectors) -> tuple[NDArray[np.int8], float]:
    """The nearest signed bytes to a vector, and the factor that turns them back."""
    most = float(np.abs(vector).max()) or 1.0
    return np.rint(vector * (127.0 / most)).astype(np.int8), most / 127.0


@dataclass(frozen=True)
class Part:
    """Rows of the store in ascending order with their codes; a code times its scale is a unit
    vector.
    """

    rows: NDArray[np.int64]
    codes: Codes
    scales: NDArray[np.float32]
    slots: NDArray[np.int64] | None = (
        None  # the code of each row, if not in the order of the rows; some share one
    )

    @classmethod
    def of(cls, rows: Sequence[int], blobs: Sequence[bytes], dim: int) -> Part:
        """From vectors as they are kept; ValueError where one has the wrong length."""
        kind = np.dtype(np.int8 if dim >= SMALL_DIM else "<f4")
        if any(len(blob) != dim * kind.itemsize for blob in blobs):
            raise ValueError(f"a vector is not of {dim} dimensions")
        codes = np.frombuffer(b"".join(blobs), dtype=kind).reshape(len(blobs), dim)
        if kind != np.int8:
            codes = codes.astype(np.float32, copy=False)
        return cls(np.asarray(rows, dtype=np.int64), codes, scales_of(codes))

    @cached_property
    def centre(self) -> Vectors:
        """Roughly the mean of the unit vectors, from a sample of them."""
        some = slice(None, None, 1 + len(self.codes) // _BLOCK)
        mean: Vectors = (self.codes[some] * self.scales[some, None]).mean(axis=0)
        return mean

    def scan(self, vector: Vectors, *, coarse: bool) -> NDArray[Any]:
        """The cosine of every row, exact or `coarse`."""
        if coarse:
            import simsimd  # noqa: PLC0415

            asked, scale = _to_bytes(vector)
            dots = np.asarray(simsimd.cdist(asked[None], self.codes, metric="dot"))[0]
            dots *= self.scales
            dots *= scale
            # Vectors of a model share a direction, so rounding the question shifts all cosines by
            # about the same.
            dots += float((vector - asked * np.float32(scale)) @ self.centre)
            return dots if self.slots is None else dots[self.slots]  # type: ignore[no-any-return]
        out = np.empty(len(self.rows), dtype=np.float64)
        for i in range(0, len(out), _BLOCK):
            out[i : i + _BLOCK] = self.cosines(vector, slice(i, i + _BLOCK))
        return out

    def cosines(self, vector: Vectors, places: Any) -> Vectors:
        """Cosines to six decimals: the last bits depend on where in the matrix a row is, and ties
        must be ties.
        """
        if self.slots is not None:
            places = self.slots[places]
        some = isinstance(places, slice)
        # a quarter of the time of brackets
        codes = self.codes[places] if some else self.codes.take(places, axis=0)
        if codes.dtype != np.int8:
            return (codes @ vector).round(6)  # type: ignore[no-any-return]
        scales = self.scales[places] if some else self.scales.take(places)
        return ((codes.astype(np.float32) @ vector) * scales).round(6)  # type: ignore[no-any-return]

    def found(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each of these rows is, or -1."""
        if not len(self.rows):
            return np.full(len(rows), -1)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows.take(places) == rows, places, -1)

    def without(self, rows: NDArray[np.int64]) -> Part:
        """The same without some rows; their codes stay."""
        places = self.found(rows)
        places = places[places >= 0]
        if not len(places):
            return self
        slots = np.arange(len(self.rows)) if self.slots is None else self.slots
        return Part(np.delete(self.rows, places), self.codes, self.scales, np.delete(slots, places))

    def joined(self, other: Part) -> Part:
        """This and a part with other rows as one, whose codes are in the order of its rows."""
        if not len(other.rows):
            return self
        mine = slice(None) if self.slots is None else self.slots
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows, kind="stable")
        codes = np.concatenate([self.codes[mine], other.codes])[order]
        return Part(rows[order], codes, np.concatenate([self.scales[mine], other.scales])[order])


def scales_of(codes: Codes) -> NDArray[np.float32]:
    """The factors that make a unit vector of each row of codes."""
    out = np.ones(len(codes), dtype=np.float32)
    if codes.dtype == np.int8:
        for i in range(0, len(codes), _BLOCK):
            block = codes[i : i + _BLOCK].astype(np.float32)
            norms = np.sqrt(np.einsum("ij,ij->i", block, block))
            out[i : i + _BLOCK] = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    return out


@dataclass(frozen=True)
class Matrix:
    """All vectors of a model as of one stamp of the store: a base without the rows that changed
    since, and a tail.
    """

    stamp: tuple[int, int]
    seq: int  # the last entry of the store's log of changes that it has seen
    dim: int
    base: Part
    tail: Part

    @cached_property
    def coarse(self) -> bool:
        """Whether a coarse scan and a second, exact look at the best is faster."""
        return (
            self.base.codes.itemsize == 1
            and len(self.base.codes) + len(self.tail.codes) > EXACT_ROWS
        )

    def nearest(self, vector: Vectors, limit: int, allowed: NDArray[np.int64] | None) -> Nearest:
        """The best rows with all that tie with the last, and the mean and deviation of all cosines
        of this question.
        """
        vector = self._asked(vector)
        total, summed, squared, bound = 0, 0.0, 0.0, -np.inf
        near: list[tuple[NDArray[np.int64], Vectors]] = []
        for part in (self.base, self.tail):
            if not len(part.rows):
                continue
            cosines = part.scan(vector, coarse=self.coarse)
            total += len(cosines)
            summed += float(cosines.sum())
            squared += float(cosines @ cosines)
            among = None if allowed is None else np.flatnonzero(np.isin(part.rows, allowed))
            count = max(2 * limit, limit + 100) if self.coarse else limit
            places = (
                _best(cosines, count, bound)
                if among is None
                else among[_best(cosines[among], count, bound)]
            )
            if len(places) >= count > 0:  # the next part has to be as near
                bound = float(cosines.take(places).min())
            near.append((part.rows.take(places), part.cosines(vector, places)))
        if not total:
            return Nearest(())
        # To six decimals, like the cosines: an answer must not depend on the order in which notes
        # were indexed.
        mean = summed / total
        deviation = max(0.0, squared / total - mean * mean) ** 0.5
        rows, best = (np.concatenate(each) for each in zip(*near, strict=True))
        if limit < len(rows):
            least = (
                np.partition(best, len(best) - limit)[len(best) - limit] if limit > 0 else np.inf
            )
            top = np.flatnonzero(best >= least)
            rows, best = rows.take(top), best.take(top)
        order = np.lexsort((rows, -best))
        found = ScoredRows(rows.take(order), best.take(order).astype(np.float64))
        return Nearest(found, round(mean, 6), round(deviation, 6), total)

    def cosines(self, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector."""
        out: dict[int, float] = {}
        if not rows or not (len(self.base.rows) or len(self.tail.rows)):
            return out
        vector = self._asked(vector)
        wanted = np.asarray(rows, dtype=np.int64)
        for part in (self.base, self.tail):
            places = part.found(wanted)
            here = places >= 0
            out.update(
                zip(wanted[here].tolist(), part.cosines(vector, places[here]).tolist(), strict=True)
            )
        return out

    def changed(self, stamp: tuple[int, int], seq: int, rows: Sequence[int], found: Part) -> Matrix:
        """The same with changed rows read again: those that are not in `found` have no vector
        now.
        """
        gone = np.asarray(rows, dtype=np.int64)
        return Matrix(
            stamp, seq, self.dim, self.base.without(gone), self.tail.without(gone).joined(found)
        )

    def _asked(self, vector: Vectors) -> Vectors:
        """The vector of a question in the form that is compared."""
        if len(vector) != self.dim and (len(self.base.rows) or len(self.tail.rows)):
            raise StoreError(
                f"the question has {len(vector)} dimensions, the index {self.dim}",
                hint=MODEL_CHANGED,
            )
        return rotated(vector) if self.dim >= SMALL_DIM else vector


def _best(values: NDArray[Any], count: int, bound: float) -> NDArray[Any]:
    """Places of the largest values from a bound on, with all that tie with the last."""
    if count <= 0:
        return np.arange(0)
    whole = len(values) // _LANES
    # the best of each column give a lower bound, so that few values have to be sorted
    if whole > 8 * count:
        tops = values[: whole * _LANES].reshape(_LANES, whole).max(axis=0)
        bound = max(bound, np.partition(tops, whole - count)[whole - count])
    some: NDArray[Any] = (
        np.flatnonzero(values >= bound) if bound > -np.inf else np.arange(len(values))
    )
    if count >= len(some):
        return some
    among = values.take(some) if bound > -np.inf else values
    best: NDArray[Any] = some[among >= np.partition(among, len(among) - count)[len(among) - count]]
    return best
