"""Vectors on disk and how they get into memory: many at once from segments, and what changed since one by one.

A new vector stands in its row of `vectors`. When enough of them wait they move into segments, which load ten times as
fast, and their rows say where they went (`place`). Which passage has which vector is kept as one map for each model
(`packs`); entries of `moved` say what changed after it, so that nobody who has vectors in memory loads them all again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreDamagedError
from recollect.ports import Vectors
from recollect.store.matrix import SMALL_DIM, Matrix, Part, scales_of, to_blob, to_vector
from recollect.store.numbers import packed, unpacked
from recollect.store.rows import hash_kept, in_parts

if TYPE_CHECKING:
    import apsw

SEGMENT = 1024  # vectors; a place is the segment's number times this, and where in it
LOOSE = 4 * SEGMENT  # so many wait in rows of their own
_TAIL_SHARE = 0.1  # of what is packed; after more changes than that everything is read anew
_LIVE_SHARE = 0.75  # a segment with fewer vectors that are still wanted is dissolved


class VectorTables:
    """The part of a SQLite store that has vectors in memory."""

    path: str
    read_only: bool
    _db: apsw.Connection
    _matrices: dict[str, Matrix]

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _stamp(self, model: str) -> tuple[int, int]: ...
        def _snapshot(self) -> AbstractContextManager[Callable[..., list[tuple[Any, ...]]]]: ...
        def writing(self) -> AbstractContextManager[None]: ...  # noqa: D102

    def vectors_of(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of this model by content hash."""
        marks = ",".join("?" * len(hashes))
        with self._snapshot():
            found = self._all(
                "SELECT v.content_hash, m.dim, v.place, v.vector FROM vectors v JOIN models m ON m.id = v.model"
                f" WHERE m.name = ? AND v.hash IN ({marks})",
                (model, *map(hash_kept, hashes)),
            )
            blobs = self._blobs([r[2:] for r in found], found[0][1]) if found else []
        return {r[0]: to_vector(blob, r[1]) for r, blob in zip(found, blobs, strict=True)}

    def _matrix(self, model: str) -> Matrix:
        """The vectors of a model as they are now; of a known matrix only what changed is looked up."""
        known = self._matrices.get(model)
        if known is not None and known.stamp == self._stamp(model):
            return known
        try:
            with self._snapshot():
                stamp = self._stamp(model)
                matrix = self._followed(replace(known, stamp=stamp), model) if known is not None else None
                if matrix is None:
                    matrix = self._loaded(model, stamp)
        except ValueError as error:
            raise StoreDamagedError(
                f"vectors of {model} in {self.path} differ in length", hint="recollect index --force builds it anew"
            ) from error
        self._matrices[model] = matrix
        return matrix

    def _followed(self, known: Matrix, model: str) -> Matrix | None:
        """A matrix with the changes since it was made, or None where they are too many or not on record."""
        last = self._last()
        if last == known.seq:
            return known
        touched = self._touched_since(known.seq)
        room = max(2 * LOOSE, _TAIL_SHARE * len(known.base.rows))
        if touched is None or not known.dim or len(touched) + len(known.tail.rows) > room:
            return None
        found = self._vectors_at(model, touched)
        if any(dim != known.dim for _, dim, _, _ in found):
            return None
        part = Part.of([r[0] for r in found], self._blobs([r[2:] for r in found], known.dim), known.dim)
        return known.changed(known.stamp, last, touched, part)

    def _touched_since(self, seq: int) -> list[int] | None:
        """Rows whose vector may be another than at an entry of `moved`; None where that may be all of them."""
        if seq < self._cleared():
            return None
        rows = [r[0] for r in self._all("SELECT DISTINCT row FROM moved WHERE seq > ?", (seq,))]
        return None if 0 in rows else rows

    def _last(self) -> int:
        return max(int(self._all("SELECT coalesce(max(seq), 0) FROM moved")[0][0]), self._cleared())

    def _cleared(self) -> int:
        """The last entry of `moved` that is gone from it because every map has seen it."""
        found = self._all("SELECT value FROM meta WHERE key = 'moved'")
        return int(found[0][0]) if found else 0

    def _vectors_at(self, model: str, rows: Sequence[int]) -> list[tuple[int, int, int | None, bytes]]:
        """Row, dimensions, place and own bytes of each vector of these passages.

        (CROSS keeps SQLite from walking all vectors for a few passages.)
        """
        out: list[Any] = []
        for part in in_parts(rows):
            out += self._all(
                "SELECT c.row, m.dim, v.place, v.vector FROM chunks c CROSS JOIN models m ON m.name = ?"
                " CROSS JOIN vectors v ON v.model = m.id AND v.hash = c.content_hash"
                f" WHERE c.row IN ({','.join('?' * len(part))})",
                (model, *part),
            )
        return sorted(out)

    def _blobs(self, found: Sequence[tuple[Any, ...]], dim: int) -> list[bytes]:
        """The bytes of vectors that are given by place, or by their own bytes where they have none."""
        whole = {n: self._segment(n)[0] for n in {place // SEGMENT for place, _ in found if place is not None}}
        out: list[bytes] = []
        for place, own in found:
            at = 0 if place is None else place % SEGMENT * dim
            out.append(own if place is None else whole[place // SEGMENT][at : at + dim])
        return out

    def _segment(self, number: int) -> tuple[bytes, bytes]:
        """The codes and scales of a segment; raises StoreDamagedError where they are not what was written."""
        found = self._all("SELECT codes, scales, checksum FROM segments WHERE id = ?", (number,))
        if not found or _checksum(found[0][:2]) != found[0][2]:
            raise StoreDamagedError(f"a segment of vectors in {self.path} is damaged", hint="it is made anew by itself")
        return found[0][0], found[0][1]

    def _loaded(self, model: str, stamp: tuple[int, int]) -> Matrix:
        """A model's vectors from its segments and from rows of their own."""
        found = self._all("SELECT id, dim FROM models WHERE name = ?", (model,))
        number, dim = found[0] if found else (0, 0)
        seq = self._last()
        own = self._all(
            "SELECT c.row, v.vector FROM vectors v CROSS JOIN chunks c ON c.content_hash = v.hash"
            " WHERE v.model = ? AND v.place IS NULL ORDER BY c.row",
            (number,),
        )
        loose = Part.of([r[0] for r in own], [r[1] for r in own], dim)
        sizes = self._all("SELECT id, length(scales) / 4 FROM segments WHERE model = ? ORDER BY id", (number,))
        if not sizes:
            return Matrix(stamp, seq, dim, loose, Part.of([], [], dim))
        known = self._map(number)
        if known is not None:
            start = Matrix(stamp, known[0], dim, self._base(sizes, dim, *known[1:]), loose)
            whole = self._followed(start, model)
            if whole is not None:
                return whole
        return Matrix(stamp, seq, dim, self._base(sizes, dim, *self._mapped(number)), loose)

    def _base(self, sizes: Sequence[tuple[Any, ...]], dim: int, rows: Any, places: Any) -> Part:
        """All segments, given with their sizes, as one part with the rows that have a place in them."""
        import numpy as np  # noqa: PLC0415

        ids = np.array([n for n, _ in sizes])
        starts = np.concatenate([[0], np.cumsum([size for _, size in sizes])])
        codes = np.empty((starts[-1], dim), dtype=np.int8)
        scales = np.empty(starts[-1], dtype=np.float32)
        for n, start, end in zip(ids.tolist(), starts[:-1], starts[1:], strict=True):
            code, scale = self._segment(n)
            codes[start:end] = np.frombuffer(code, dtype=np.int8).reshape(-1, dim)
            scales[start:end] = np.frombuffer(scale, dtype="<f4")
        which = np.minimum(np.searchsorted(ids, places // SEGMENT), len(ids) - 1)
        slots = starts[which] + places % SEGMENT
        there = (ids[which] == places // SEGMENT) & (slots < starts[which + 1])
        rows, slots = rows[there], slots[there]
        straight = len(slots) == len(codes) and bool((slots == np.arange(len(slots))).all())
        return Part(rows, codes, scales, None if straight else slots)

    def _map(self, number: int) -> tuple[int, Any, Any] | None:
        """The map of a model: as of which entry of `moved`, rows and their places; None where it cannot be believed."""
        import numpy as np  # noqa: PLC0415

        found = self._all("SELECT rows, places, checksum, seq FROM packs WHERE model = ?", (number,))
        if not found or _checksum(found[0][:2]) != found[0][2]:
            return None
        steps = unpacked(found[0][1])
        return found[0][3], np.cumsum(unpacked(found[0][0])), np.cumsum(steps >> 1 ^ -(steps & 1))

    def _mapped(self, number: int) -> tuple[Any, Any]:
        """The map of a model made from the rows themselves, which takes long where there are many."""
        import numpy as np  # noqa: PLC0415

        found = self._all(
            "SELECT c.row, v.place FROM chunks c CROSS JOIN vectors v"
            " ON v.model = ? AND v.hash = c.content_hash WHERE v.place IS NOT NULL ORDER BY c.row",
            (number,),
        )
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def pack(self) -> bool:
        """Moves vectors that wait into segments and brings maps up to date where that is due; says whether it was."""
        if self.read_only:
            return False
        models = self._all("SELECT id, name, dim FROM models")
        with self.writing():
            done = [self._packed(*model, share=0.0) for model in models]
            self._forget_moves()
        return any(done)

    def _packed(self, number: int, name: str, dim: int, *, share: float = _TAIL_SHARE) -> bool:
        """The same for one model, inside a transaction; a map may be behind by a share of its length."""
        sealed = self._sealed(number, dim) if dim >= SMALL_DIM else 0
        known = self._all("SELECT seq, length(rows) FROM packs WHERE model = ?", (number,))
        seq, rows = known[0] if known else (-1, 0)
        if known and self._last() - seq <= max(2 * LOOSE, share * rows):
            return bool(sealed)
        if not self._all("SELECT 1 FROM segments WHERE model = ? LIMIT 1", (number,)):
            return bool(sealed)
        self._write_map(number, name)
        return True

    def _sealed(self, number: int, dim: int) -> int:
        """Moves vectors that wait, if they are many, into segments; what does not fill one goes on waiting."""
        where = "FROM vectors WHERE model = ? AND place IS NULL"
        if self._all(f"SELECT count(*) {where}", (number,))[0][0] < LOOSE:
            return 0
        import numpy as np  # noqa: PLC0415 - a sync that finds nothing to do has no use for it

        sealed = 0
        while (
            len(found := self._all(f"SELECT vector, row, hash {where} ORDER BY row LIMIT {SEGMENT}", (number,)))
            == SEGMENT
        ):
            codes = np.frombuffer(b"".join(r[0] for r in found), dtype=np.int8).reshape(SEGMENT, dim)
            blobs = codes.tobytes(), scales_of(codes).astype("<f4").tobytes()
            self._db.execute(
                "INSERT INTO segments (model, codes, scales, checksum) VALUES (?, ?, ?, ?)",
                (number, *blobs, _checksum(blobs)),
            )
            first = self._db.last_insert_rowid() * SEGMENT
            # Written anew: SQLite does not join pages of which an UPDATE leaves little.
            self._db.executemany("DELETE FROM vectors WHERE row = ?", [(row,) for _, row, _ in found])
            self._db.executemany(
                "INSERT INTO vectors (row, hash, model, vector, place) VALUES (?, ?, ?, x'', ?)",
                [(row, key, number, first + i) for i, (_, row, key) in enumerate(found)],
            )
            sealed += SEGMENT
        return sealed

    def _write_map(self, number: int, name: str) -> None:
        """Writes a model's map as of now: the old one with what changed since, or a new one."""
        import numpy as np  # noqa: PLC0415

        last = self._last()
        known = self._map(number)
        touched = self._touched_since(known[0]) if known is not None else None
        if known is None or touched is None or len(touched) > len(known[1]):
            rows, places = self._mapped(number)
        else:
            keep = ~np.isin(known[1], np.asarray(touched, dtype=np.int64))
            found = [(row, place) for row, _, place, _ in self._vectors_at(name, touched) if place is not None]
            pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
            rows, places = np.concatenate([known[1][keep], pairs[:, 0]]), np.concatenate([known[2][keep], pairs[:, 1]])
            order = np.argsort(rows, kind="stable")
            rows, places = rows[order], places[order]
        # Both mostly go up by one; a place may also be before the last one, so the sign is the lowest bit.
        steps = np.diff(places, prepend=0)
        blobs = packed(np.diff(rows, prepend=0)), packed(steps << 1 ^ steps >> 63)
        self._db.execute(
            "INSERT OR REPLACE INTO packs VALUES (?, ?, ?, ?, ?)", (number, last, _checksum(blobs), *blobs)
        )

    def _forget_moves(self) -> None:
        """Drops entries of `moved` that every map has seen; where there is no map, a long record of them."""
        seen = self._all("SELECT min(seq) FROM packs")[0][0]
        last = self._last()
        if seen is None:
            seen = last if last - self._cleared() > 4 * LOOSE else 0
        if seen > self._cleared():
            self._db.execute("DELETE FROM moved WHERE seq <= ?", (seen,))
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('moved', ?)", (seen,))

    def _dissolve(self, live_share: float = _LIVE_SHARE) -> None:
        """Takes vectors that are still wanted out of segments of which a smaller share is; inside a transaction."""
        import numpy as np  # noqa: PLC0415

        for number, dim in self._all("SELECT DISTINCT m.id, m.dim FROM models m JOIN segments s ON s.model = m.id"):
            sql = "SELECT row, place FROM vectors WHERE model = ? AND place IS NOT NULL ORDER BY place"
            rows, places = np.array(self._all(sql, (number,)), dtype=np.int64).reshape(-1, 2).T
            sizes = self._all("SELECT id, length(scales) / 4 FROM segments WHERE model = ?", (number,))
            for n, size in sizes:
                start, end = np.searchsorted(places, (n * SEGMENT, (n + 1) * SEGMENT))
                if end - start >= live_share * size:
                    continue
                blobs = self._blobs([(int(place), b"") for place in places[start:end]], dim)
                self._db.executemany(
                    "UPDATE vectors SET place = NULL, vector = ? WHERE row = ?",
                    list(zip(blobs, rows[start:end].tolist(), strict=True)),
                )
                self._db.execute("DELETE FROM segments WHERE id = ?", (n,))
                self._db.execute("DELETE FROM packs WHERE model = ?", (number,))

    def _code_floats(self) -> None:
        """Makes bytes of the vectors that an older version kept as floats; inside a transaction."""
        import numpy as np  # noqa: PLC0415

        sql = (
            "SELECT v.row, v.vector FROM vectors v JOIN models m ON m.id = v.model"
            " WHERE v.row > ? AND m.dim >= ? AND length(v.vector) = 4 * m.dim ORDER BY v.row LIMIT ?"
        )
        row = 0
        while found := self._all(sql, (row, SMALL_DIM, LOOSE)):
            self._db.executemany(
                "UPDATE vectors SET vector = ? WHERE row = ?",
                [(to_blob(np.frombuffer(vector, dtype="<f4")), number) for number, vector in found],
            )
            row = found[-1][0]

    def _read_anew(self) -> None:
        """Lets all who have vectors in memory read them anew; inside a transaction."""
        self._db.execute("DELETE FROM packs")
        self._db.execute("INSERT INTO moved (row) VALUES (0)")

    def _segment_faults(self) -> list[str]:
        """What of the segments does not agree with the rest, a sentence each."""
        try:
            for (number,) in self._all("SELECT id FROM segments"):
                self._segment(number)
        except StoreDamagedError as error:
            return [str(error)]
        count = self._all(
            "SELECT count(*) FROM vectors v LEFT JOIN segments s ON s.id = v.place / ?1 AND s.model = v.model"
            " WHERE v.place IS NOT NULL AND v.place % ?1 >= coalesce(length(s.scales) / 4, 0)",
            (SEGMENT,),
        )[0][0]
        return [f"{count} vectors are in no segment"] if count else []


def _checksum(blobs: Sequence[bytes]) -> int:
    out = 0
    for blob in blobs:
        out = zlib.crc32(blob, out)
    return out
