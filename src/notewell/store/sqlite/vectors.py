"""Vectors by content hash and model, and finding chunks by them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from notewell.errors import StoreDamagedError, StoreError
from notewell.store.lazy import LazyModule
from notewell.store.rows import hash_kept, hash_of
from notewell.store.sqlite.chunks import ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.error_translation import REBUILD
from notewell.store.sqlite.sizes import MODEL_CHANGED, SMALL_DIM, SegmentSizes
from notewell.store.sqlite.vector_segments import TAIL_SHARE, VectorSegments
from notewell.store.values import Nearest, Windows
from notewell.types import Filters, Vectors

if TYPE_CHECKING:
    from notewell.store import window_codes
    from notewell.store.sqlite import vector_matrix
    from notewell.store.sqlite.vector_matrix import Matrix
    from notewell.store.window_codes import KnownWindows
else:
    vector_matrix = LazyModule("notewell.store.sqlite.vector_matrix")
    window_codes = LazyModule("notewell.store.window_codes")

_MOST_CACHED = 16_384  # windows of so many chunks take some ten megabytes
VECTOR_BYTES = f"(CASE WHEN m.dim < {SMALL_DIM} THEN 4 * m.dim ELSE m.dim END)"
_WITH_WINDOWS = (
    "vectors v JOIN models m ON m.id = v.model"
    " LEFT JOIN windows w ON w.model = v.model AND w.content_hash = v.content_hash"
)
_KEPT_BYTES = f"{VECTOR_BYTES} + coalesce(length(w.codes), 0)"
_UNUSED = "NOT EXISTS (SELECT 1 FROM chunks c WHERE c.content_hash = v.content_hash)"
_TABLES = (
    "models",
    "vectors",
    "windows",
    "vector_segments",
    "vector_maps",
    "vector_log",
    "refused",
)
_MODEL = "(SELECT id FROM models WHERE name = ?1)"


class VectorTable:
    """The part of a SQLite store that keeps vectors, and has those of a model in memory."""

    def __init__(self, connection: Connection, chunks: ChunkReader, sizes: SegmentSizes) -> None:
        self._connection, self._db = connection, connection.db
        self._all, self._chunks = connection.all, chunks
        self._segments = VectorSegments(connection, sizes)
        self._matrices: dict[str, Matrix] = {}
        self._windows: dict[str, tuple[tuple[int, int], KnownWindows]] = {}
        self._missing: dict[str, tuple[tuple[int, int], list[int]]] = {}

    def audit(self) -> list[str]:
        name = self._connection.name
        try:
            found = [self._connection.verdict("quick_check", table) for table in _TABLES]
            faults = [f"the vectors of {name} are damaged: {one}" for one in found if one != "ok"]
            expected = f"{VECTOR_BYTES} * (v.slot IS NULL)"
            joined = "vectors v JOIN models m ON m.id = v.model"
            if self._all(f"SELECT 1 FROM {joined} WHERE length(v.vector) != {expected} LIMIT 1"):
                faults.append(f"the index {name} has broken vectors")
            return faults + self._segments.audit()
        except StoreDamagedError as error:
            return [str(error)]

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        allowed = self._chunks.allowed(filters)
        found = self.matrix(model).nearest(vector, limit, None if allowed is None else allowed.rows)
        return replace(found, rows=self._chunks.first(found.rows, limit))

    def cosines(self, model: str, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        return self.matrix(model).cosines(vector, rows)

    def windows(self, model: str, rows: Sequence[int]) -> dict[int, bytes]:
        sql = (
            f"SELECT c.row, w.codes FROM chunks c CROSS JOIN windows w ON w.model = {_MODEL}"
            " AND w.content_hash = c.content_hash WHERE c.row IN ({})"
        )
        return dict(self._connection.all_in(sql, rows, before=(model,)))

    def nearest_windows(self, model: str, vector: Vectors, rows: Sequence[int]) -> Windows:
        now, is_writing = self._stamp(model), self._connection.is_writing()
        stamp, known = self._windows.get(model, (now, None))
        if known is None or stamp != now or len(known) > _MOST_CACHED or is_writing:
            known = window_codes.KnownWindows()
        if todo := known.lacks(rows):
            found = self.windows(model, todo)
            known.add(todo, [found.get(row, b"") for row in todo])
            if not is_writing:
                self._windows[model] = now, known
        return known.nearest(rows, vector)

    def by_hash(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        marks = ",".join("?" * len(hashes))
        with self._connection.snapshot():
            found = self._all(
                "SELECT v.content_hash, m.dim, v.slot, v.vector"
                " FROM vectors v JOIN models m ON m.id = v.model"
                f" WHERE m.name = ? AND v.content_hash IN ({marks})",
                (model, *map(hash_kept, hashes)),
            )
            blobs = self._segments.blobs([r[2:] for r in found], found[0][1]) if found else []
        return {
            hash_of(r[0]): vector_matrix.to_vector(blob, r[1])
            for r, blob in zip(found, blobs, strict=True)
        }

    def matrix(self, model: str) -> Matrix:
        """The vectors of a model as they are now; only what changed since the last call is read."""
        known = self._matrices.get(model)
        if known is not None and known.stamp == self._stamp(model):
            return known
        try:
            with self._connection.snapshot():
                stamp = self._stamp(model)
                matrix = (
                    self._followed(replace(known, stamp=stamp), model)
                    if known is not None
                    else None
                )
                if matrix is None:
                    matrix = self._loaded(model, stamp)
        except ValueError as error:
            message = f"vectors of {model} in {self._connection.name} differ in length"
            raise StoreDamagedError(message, hint=REBUILD) from error
        self._matrices[model] = matrix
        return matrix

    def forget(self) -> None:
        """Forgets the vectors that are in memory."""
        self._matrices.clear()
        self._windows.clear()

    def _stamp(self, model: str) -> tuple[int, int]:
        """Grows when chunks or vectors of this model change, but not when another model gets
        vectors.
        """
        chunks = "(SELECT value FROM meta WHERE key = 'chunks')"
        sql = f"SELECT {chunks}, coalesce((SELECT changed FROM models WHERE name = ?), -1)"
        (found,) = self._connection.once(sql, model)
        return found[0], found[1]

    def _followed(self, known: Matrix, model: str) -> Matrix | None:
        """A matrix with the changes since it was made, or None where they are too many or not in
        the log.
        """
        last = self._segments.last_entry()
        if last == known.seq:
            return known
        changed = self._segments.changed_since(known.seq)
        room = max(2 * self._segments.loose, TAIL_SHARE * len(known.base.rows))
        if changed is None or not known.dim or len(changed) + len(known.tail.rows) > room:
            return None
        found = self._segments.vectors_of(model, changed)
        if any(dim != known.dim for _, dim, _, _ in found):
            return None
        blobs = self._segments.blobs([r[2:] for r in found], known.dim)
        return known.changed(
            known.stamp,
            last,
            changed,
            vector_matrix.Part.of([r[0] for r in found], blobs, known.dim),
        )

    def _loaded(self, model: str, stamp: tuple[int, int]) -> Matrix:
        """All vectors of a model, from its segments and from rows that are in none."""
        found = self._all("SELECT id, dim FROM models WHERE name = ?", (model,))
        number, dim = found[0] if found else (0, 0)
        seq = self._segments.last_entry()
        joined = "vectors v CROSS JOIN chunks c ON c.content_hash = v.content_hash"
        sql = (
            f"SELECT c.row, v.vector FROM {joined} WHERE v.model = ? AND v.slot IS NULL ORDER "
            "BY c.row"
        )
        own = self._all(sql, (number,))
        loose = vector_matrix.Part.of([r[0] for r in own], [r[1] for r in own], dim)
        sizes = self._segments.sizes_of(number)
        if not sizes:
            return vector_matrix.Matrix(stamp, seq, dim, loose, vector_matrix.Part.of([], [], dim))
        known = self._segments.read_map(number)
        if known is not None:
            start = vector_matrix.Matrix(
                stamp, known[0], dim, self._segments.load(sizes, dim, *known[1:]), loose
            )
            matrix = self._followed(start, model)
            if matrix is not None:
                return matrix
        base = self._segments.load(sizes, dim, *self._segments.make_map(number))
        return vector_matrix.Matrix(stamp, seq, dim, base, loose)

    def missing(self, model: str) -> list[int]:
        """One row for every text without a vector of this model, notes before sessions, the newest
        first.
        """
        stamp = self._stamp(model)
        known = self._missing.get(model)
        if known is None or known[0] != stamp:
            same = f"x.model = {_MODEL} AND x.content_hash = c.content_hash"
            rows = self._all(
                "SELECT max(c.row) FROM chunks c JOIN documents d ON d.id = c.document"
                f" WHERE NOT EXISTS (SELECT 1 FROM vectors x WHERE {same})"
                f" AND NOT EXISTS (SELECT 1 FROM refused x WHERE {same})"
                " GROUP BY c.content_hash"
                " ORDER BY min(d.source = 'sessions'), max(coalesce(d.date, '~')) DESC, 1 DESC",
                (model,),
            )
            known = self._missing[model] = (stamp, [r[0] for r in rows])
        return known[1]

    def coverage(self, model: str) -> tuple[int, int]:
        have = "count(*) FROM chunks c JOIN vectors v ON v.content_hash = c.content_hash"
        total = self._all("SELECT count(*) FROM chunks")[0][0]
        return self._all(f"SELECT {have} WHERE v.model = {_MODEL}", (model,))[0][0], total

    def put_vectors(
        self,
        model: str,
        vectors: Mapping[str, Vectors],
        *,
        windows: Mapping[str, bytes] | None = None,
    ) -> None:
        if not vectors:
            return
        with self._connection.writing():
            self._connection.vectors_changed = True
            dim = len(next(iter(vectors.values())))
            number, known = self._model(model, dim)
            if known != dim:
                raise StoreError(
                    f"{model} gave {dim} dimensions, the index has {known} of it",
                    hint=MODEL_CHANGED,
                )
            self._db.executemany(
                "INSERT OR REPLACE INTO vectors (content_hash, model, vector) VALUES (?, ?, ?)",
                [
                    (hash_kept(key), number, vector_matrix.to_blob(vector))
                    for key, vector in vectors.items()
                ],
            )
            keys = {key: hash_kept(key) for key in vectors}
            self._db.executemany(
                "DELETE FROM windows WHERE model = ? AND content_hash = ?",
                [(number, kept) for kept in keys.values()],
            )
            self._db.executemany(
                "INSERT INTO windows (model, content_hash, codes) VALUES (?, ?, ?)",
                [
                    (number, keys[key], codes)
                    for key, codes in (windows or {}).items()
                    if key in keys
                ],
            )
            self._segments.pack(number, model, dim)

    def _model(self, name: str, dim: int) -> tuple[int, int]:
        """The number of a model and its dimensions (0: no vector yet), counted as changed."""
        self._db.execute("INSERT OR IGNORE INTO models (name, dim) VALUES (?, ?)", (name, dim))
        self._db.execute("UPDATE models SET dim = ? WHERE name = ? AND dim = 0", (dim, name))
        self._count_change(name)
        rows = self._connection.own("SELECT id, dim FROM models WHERE name = ?", (name,))
        return rows[0][0], rows[0][1]

    def _count_change(self, model: str) -> None:
        """Counts a change of a model's vectors; a pruned model that comes back never counts from
        the start.
        """
        changed = "1 + max(changed, (SELECT value FROM meta WHERE key = 'generation'))"
        self._db.execute(f"UPDATE models SET changed = {changed} WHERE name = ?", (model,))

    def dims(self) -> dict[str, int]:
        return {r[0]: r[1] for r in self._all("SELECT name, dim FROM models WHERE dim > 0")}

    def models(self) -> list[tuple[str, int, int]]:
        count = "(SELECT count(*) FROM vectors v WHERE v.model = m.id)"
        rows = self._all(f"SELECT m.name, m.dim, {count} FROM models m ORDER BY m.name")
        return [(r[0], r[1], r[2]) for r in rows]

    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        with self._connection.writing():
            self._connection.vectors_changed = True
            number, _ = self._model(model, 0)
            self._db.executemany(
                "INSERT OR REPLACE INTO refused (model, content_hash, reason) VALUES (?, ?, ?)",
                [(number, hash_kept(key), reason) for key, reason in reasons.items()],
            )

    def forgive(self, model: str) -> None:
        with self._connection.writing():
            self._connection.vectors_changed = True
            self._count_change(model)
            self._db.execute(f"DELETE FROM refused WHERE model = {_MODEL}", (model,))

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        rows = self._all(
            "SELECT d.path, c.start_line, r.reason FROM refused r"
            " JOIN chunks c ON c.content_hash = r.content_hash"
            " JOIN documents d ON d.id = c.document"
            f" WHERE r.model = {_MODEL} ORDER BY d.path, c.start_line",
            (model,),
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def idle(self) -> tuple[int, int]:
        rows = self._all(
            f"SELECT count(*), coalesce(sum({_KEPT_BYTES}), 0) FROM {_WITH_WINDOWS} WHERE {_UNUSED}"
        )
        return rows[0][0], rows[0][1]

    def trim(self, most_bytes: int) -> int:
        if self.idle()[1] <= most_bytes:
            return 0
        with self._connection.writing():
            # the bytes of this one and of all newer ones
            left = f"sum({_KEPT_BYTES}) OVER (ORDER BY v.row DESC)"
            sql = (
                f"SELECT v.row, v.model, v.content_hash, {left} FROM {_WITH_WINDOWS} WHERE "
                f"{_UNUSED}"
            )
            gone = [key for *key, size in self._all(sql) if size > most_bytes]
            self._db.executemany("DELETE FROM vectors WHERE row = ?", [key[:1] for key in gone])
            self._db.executemany(
                "DELETE FROM windows WHERE model = ? AND content_hash = ?",
                [key[1:] for key in gone],
            )
            self._segments.dissolve()
        return len(gone)

    def prune(self, keep: Iterable[str]) -> int:
        """Deletes vectors of all other models and of text that is in no document now, and frees
        their space.
        """
        names = sorted(set(keep))
        others = f"SELECT id FROM models WHERE name NOT IN ({','.join('?' * len(names))})"
        with self._connection.writing():
            self._connection.vectors_changed = True
            self._db.execute(
                f"DELETE FROM vectors AS v WHERE model IN ({others}) OR {_UNUSED}", names
            )
            gone = self._db.changes()
            self._drop_windows()
            self._db.execute(f"DELETE FROM refused WHERE model IN ({others})", names)
            self._db.execute(f"DELETE FROM models WHERE id IN ({others})", names)
            self._segments.dissolve()
            self._segments.invalidate()
            self._matrices = {name: m for name, m in self._matrices.items() if name in names}
        if gone and self._connection.file is not None:
            with (
                contextlib.suppress(apsw.BusyError, apsw.LockedError, apsw.FullError),
                self._connection.lock,
            ):
                self._db.execute("VACUUM")  # if a reader is active, the space is freed another time
        return gone

    def _drop_windows(self) -> None:
        """Deletes the windows of vectors that are gone; inside a transaction."""
        same = "v.model = w.model AND v.content_hash = w.content_hash"
        self._db.execute(
            f"DELETE FROM windows AS w WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE {same})"
        )

    def pack(self) -> bool:
        """Moves waiting vectors into segments and updates maps where that is due; whether anything
        was done.
        """
        if self._connection.read_only:
            return False
        models = self._all("SELECT id, name, dim FROM models")
        with self._connection.writing():
            done = [self._segments.pack(*model, settled=True) for model in models]
            self._segments.trim_log()
        return any(done)

    def scrub(self) -> int:
        """Deletes vectors that no chunk has, also from segments, and returns how many; inside a
        transaction.
        """
        self._db.execute(
            "DELETE FROM vectors WHERE content_hash NOT IN (SELECT content_hash FROM chunks)"
        )
        gone = self._db.changes()
        self._drop_windows()
        # segments with a deleted vector are made again without it
        self._segments.dissolve(live_share=1.0)
        return gone
