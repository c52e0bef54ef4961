"""Vectors in PostgreSQL: pgvector, under (content hash, model).

They are kept as they came, in single precision. A workspace is scanned exactly until it is large; then an HNSW index
over its own vectors alone, in half precision, finds candidates whose cosines are computed exactly. It is built after
the load, beside readers and writers, by `settle`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError
from recollect.ports import Vectors
from recollect.store.postgres_nearest import NearestTables
from recollect.store.postgres_pool import Pool
from recollect.store.postgres_schema import LOCKS

EXACT_UP_TO = 50_000
_MOST_DIMENSIONS = 4_000  # of a half precision index


class VectorTables(NearestTables):
    """The part of a PostgreSQL store that keeps vectors."""

    _pool: Pool
    _local: Any
    _missed: dict[str, tuple[list[tuple[Any, ...]], list[int]]]
    _grown: dict[str, int]
    name: str

    if TYPE_CHECKING:

        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        @property
        def _now(self) -> object: ...
        def _vacuum(self, *tables: str) -> bool: ...
        def _leaf(self, table: str) -> str: ...
        def writing(self, *, shared: bool = False) -> AbstractContextManager[None]: ...  # noqa: D102

    def vectors_of(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of this model by content hash."""
        import numpy as np  # noqa: PLC0415

        found = self._all(
            f"SELECT content_hash, vector_send(vector) FROM vectors WHERE workspace = {self._w} AND model ="
            f" (SELECT id FROM models WHERE workspace = {self._w} AND name = %s) AND content_hash = ANY(%s::text[])",
            (model, list(hashes)),
        )
        return {key: np.frombuffer(data, dtype=">f4", offset=4).astype(np.float32) for key, data in found}

    def pack(self) -> bool:
        """Nothing to do: the server keeps vectors as it reads them."""
        return False

    def put_vectors(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Keeps vectors under (content hash, model); several processes may do so at once."""
        if vectors:
            self._written(lambda: self._put_vectors(model, vectors), shared=True)

    def _put_vectors(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        self._local.changed = True
        dim = len(next(iter(vectors.values())))
        number, known = self._number_of(model, dim)
        if known != dim or any(len(vector) != dim for vector in vectors.values()):
            raise StoreError(
                f"{model} gave {dim} dimensions, the index has {known} of it",
                hint="a model changed under its name: recollect index --prune, then index again",
            )
        keys = sorted(vectors)  # all in one order: two that write the same never wait for each other in a circle
        self._run(
            "INSERT INTO vectors (workspace, model, content_hash, vector)"
            f" SELECT {self._w}, {number}, u.key, u.vector FROM unnest(%s::text[], %b::vector[]) u (key, vector)"
            " ON CONFLICT (workspace, model, content_hash) DO UPDATE SET vector = excluded.vector",
            (keys, [vectors[key] for key in keys]),
        )
        self._run(
            f"INSERT INTO unjudged SELECT {self._w}, row FROM chunks WHERE workspace = {self._w}"
            " AND content_hash = ANY(%s::text[]) ORDER BY row ON CONFLICT DO NOTHING",
            (keys,),
        )
        self._finished(number, keys)
        self._note(model)
        self._grown["vectors"] = self._grown.get("vectors", 0) + len(keys)

    def _finished(self, number: int, keys: Sequence[str]) -> None:
        self._run(
            f"DELETE FROM pending WHERE workspace = {self._w} AND model = {number} AND content_hash = ANY(%s::text[])",
            (list(keys),),
        )

    def _number_of(self, name: str, dim: int) -> tuple[int, int]:
        """The number of a model and its dimensions (0: no vector yet)."""
        find = f"SELECT id, dim FROM models WHERE workspace = {self._w} AND name = %s"
        found = self._all(find, (name,))
        if not found or (dim and not found[0][1]):
            self._run(
                f"INSERT INTO models (workspace, name, dim) VALUES ({self._w}, %s, %s)"
                " ON CONFLICT (workspace, name) DO UPDATE SET dim = excluded.dim WHERE models.dim = 0",
                (name, dim),
            )
            found = self._all(find, (name,))
        return found[0][0], found[0][1]

    def _note(self, model: str) -> None:
        """Counts a change of a model's vectors; a model that was pruned and comes back never counts from the start."""
        self._run(
            "UPDATE models SET changed = 1 + greatest(changed,"
            f" (SELECT generation FROM state WHERE workspace = {self._w})) WHERE workspace = {self._w} AND name = %s",
            (model,),
        )

    def missing(self, model: str) -> list[int]:
        """One row for every text without a vector of this model, notes before sessions, the newest first."""
        if self._now is not None:  # what this transaction has changed is not counted yet
            return [r[0] for r in self._all(self._missing_sql(), {"model": model})]
        stamp = self._all(
            f"SELECT moved, (SELECT changed FROM models WHERE workspace = {self._w} AND name = %s) FROM state"
            f" WHERE workspace = {self._w}",
            (model,),
        )
        known = self._missed.get(model)
        if known is None or known[0] != stamp:
            found = [r[0] for r in self._all(self._missing_sql(), {"model": model})]
            known = self._missed[model] = (stamp, found)
        return known[1]

    def _missing_sql(self) -> str:
        number = f"(SELECT id FROM models WHERE workspace = {self._w} AND name = %(model)s)"
        none = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.workspace = {self._w} AND t.model = {number}"
            " AND t.content_hash = c.content_hash)"
            for table in ("vectors", "refused")
        )
        return (
            f"SELECT max(c.row), c.content_hash FROM chunks c JOIN documents d ON d.workspace = {self._w}"
            f" AND d.id = c.document WHERE c.workspace = {self._w} AND {none} GROUP BY c.content_hash"
            " ORDER BY bool_and(d.source = 'sessions'), max(coalesce(d.date, '~')) DESC, 1 DESC"
        )

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector of this model, and how many there are."""
        found = self._all(
            f"SELECT count(*) FILTER (WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.workspace = {self._w} AND v.model ="
            f" (SELECT id FROM models WHERE workspace = {self._w} AND name = %s) AND"
            f" v.content_hash = c.content_hash)), count(*) FROM chunks c WHERE c.workspace = {self._w}",
            (model,),
        )
        return found[0][0], found[0][1]

    def dims(self) -> dict[str, int]:
        """The dimensions of every model that has been used."""
        return dict(self._all(f"SELECT name, dim FROM models WHERE workspace = {self._w} AND dim > 0 ORDER BY id"))

    def models(self) -> list[tuple[str, int, int]]:
        """Each model with its dimensions and how many vectors are kept of it."""
        rows = self._all(
            f"SELECT m.name, m.dim, (SELECT count(*) FROM vectors v WHERE v.workspace = {self._w} AND v.model = m.id)"
            f" FROM models m WHERE m.workspace = {self._w} ORDER BY m.name"
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        """Remembers texts, by content hash, that a model refused: they are no longer missing."""

        def work() -> None:
            self._local.changed = True
            number, _ = self._number_of(model, 0)
            keys = sorted(reasons)
            self._run(
                f"INSERT INTO refused SELECT {self._w}, {number}, * FROM unnest(%s::text[], %s::text[])"
                " ON CONFLICT (workspace, model, content_hash) DO UPDATE SET reason = excluded.reason",
                (keys, [reasons[key] for key in keys]),
            )
            self._finished(number, keys)
            self._note(model)

        self._written(work)

    def forgive(self, model: str) -> None:
        """Forgets what a model refused, so that it is tried again."""

        def work() -> None:
            self._local.changed = True
            self._note(model)
            self._run(
                f"DELETE FROM refused WHERE workspace = {self._w}"
                f" AND model = (SELECT id FROM models WHERE workspace = {self._w} AND name = %s)",
                (model,),
            )

        self._written(work)

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        """Path, first line and reason of every chunk that a model refused."""
        rows = self._all(
            f"SELECT d.path, c.start_line, r.reason FROM refused r JOIN chunks c ON c.workspace = {self._w}"
            f" AND c.content_hash = r.content_hash JOIN documents d ON d.workspace = {self._w} AND d.id = c.document"
            f" WHERE r.workspace = {self._w} AND r.model ="
            f" (SELECT id FROM models WHERE workspace = {self._w} AND name = %s) ORDER BY d.path, c.start_line",
            (model,),
        )
        return [(r[0], r[1], r[2]) for r in rows]

    @property
    def _idle_sql(self) -> str:
        return (
            f"FROM vectors v JOIN models m ON m.workspace = {self._w} AND m.id = v.model WHERE v.workspace = {self._w}"
            f" AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.workspace = {self._w}"
            " AND c.content_hash = v.content_hash)"
        )

    def idle(self) -> tuple[int, int]:
        """How many vectors are of text that is in no document now, and their bytes."""
        rows = self._all(f"SELECT count(*), coalesce(sum(m.dim), 0) * 4 {self._idle_sql}")
        return rows[0][0], int(rows[0][1])

    def trim(self, most_bytes: int) -> int:
        """Drops the oldest vectors of text that is in no document now until they fit, and says how many went."""
        if self.idle()[1] <= most_bytes:
            return 0

        def work() -> int:
            # What stands after it in age, and it, must not fit: then it goes.
            return self._run(
                f"DELETE FROM vectors g USING (SELECT v.model, v.content_hash,"
                f" sum(m.dim * 4) OVER (ORDER BY v.number DESC) AS bytes {self._idle_sql}) old"
                f" WHERE g.workspace = {self._w} AND g.model = old.model AND g.content_hash = old.content_hash"
                " AND old.bytes > %s",
                (most_bytes,),
            )

        return int(self._written(work))

    def prune(self, keep: Iterable[str]) -> int:
        """Drops vectors of all other models and of text that is in no document now, and gives their room back."""
        names = sorted(set(keep))
        mine = f"workspace = {self._w}"

        def work() -> int:
            self._local.changed = True
            theirs = f"(SELECT id FROM models WHERE {mine} AND name != ALL(%s::text[]))"
            gone = self._run(f"DELETE FROM vectors WHERE {mine} AND model IN {theirs}", (names,))
            gone += self._run(
                f"DELETE FROM vectors v WHERE v.{mine} AND NOT EXISTS (SELECT 1 FROM chunks c"
                f" WHERE c.{mine} AND c.content_hash = v.content_hash)"
            )
            for table in ("refused", "pending"):
                self._run(f"DELETE FROM {table} WHERE {mine} AND model IN {theirs}", (names,))
            self._run(f"DELETE FROM models WHERE {mine} AND name != ALL(%s::text[])", (names,))
            return gone

        others = self._all(f"SELECT id FROM models WHERE {mine} AND name != ALL(%s::text[])", (names,))
        gone = int(self._written(work))
        if gone and self._vacuum("vectors"):
            with contextlib.suppress(StoreError), self._pool.translated(), self._pool.use() as db:
                for (number,) in others:
                    db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS vectors_hnsw_{self._w}_{number}")
        return gone

    def settle(self, model: str) -> bool:
        """After a load: fresh statistics, and an HNSW index where the workspace is large; says whether it has one.

        Readers and writers go on meanwhile. Only the owner of the tables may; for others nothing happens.
        """
        known = self._model(model)
        if known is None or not self._vacuum("documents", "chunks", "postings", "terms", "vectors"):
            return bool(known and known.indexed)
        size = self._all(f"SELECT count(*) FROM vectors WHERE workspace = {self._w} AND model = %s", (known.number,))[
            0
        ][0]
        if known.indexed or size <= EXACT_UP_TO or known.dim > _MOST_DIMENSIONS:
            return known.indexed
        name = f"vectors_hnsw_{self._w}_{known.number}"
        build = (
            f"CREATE INDEX CONCURRENTLY {name} ON {self._leaf('vectors')} USING hnsw"
            f" ((vector::halfvec({known.dim})) halfvec_ip_ops) WHERE workspace = {self._w} AND model = {known.number}"
        )
        lock = f"advisory_lock({LOCKS + 2}, {self._w})"  # workers end at the same time, and one of them is enough
        with self._pool.translated(), self._pool.use() as db:
            if not (db.execute(f"SELECT pg_try_{lock}").fetchone() or (False,))[0]:
                return False
            db.execute("SET statement_timeout = 0")
            db.execute("SET maintenance_work_mem = '1GB'")
            try:
                # One that was left half built by a crash is of no use.
                db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
                db.execute(build)
            finally:
                db.execute("RESET statement_timeout")
                db.execute("RESET maintenance_work_mem")
                db.execute(f"SELECT pg_{lock.replace('lock', 'unlock', 1)}")
        return True
