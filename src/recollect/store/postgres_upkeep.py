"""How much a workspace holds in PostgreSQL, whether it agrees with itself, and what is given back to the server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreDamagedError, StoreError
from recollect.store.postgres_pool import Pool

_FIRST_LOOK = 200
_TOGETHER = (
    ("chunks", "documents"),
    ("chunks", "chunks"),
    ("chunks", "postings"),
    ("chunks", "terms"),
    ("vectors", "vectors"),
)


class UpkeepTables:
    """The part of a PostgreSQL store that counts, checks and cleans."""

    _w: int
    _local: Any
    _pool: Pool
    _grown: dict[str, int]
    _look_at: dict[str, int]
    name: str

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        def _audit_terms(self) -> list[str]: ...
        def _patient(self) -> contextlib.AbstractContextManager[None]: ...

    def counts(self) -> dict[str, int]:
        """How many documents, chunks and vectors there are, and about how many bytes the rows of the workspace take."""
        documents, chunks, vectors = self._all(
            f"SELECT (SELECT count(*) FROM documents WHERE workspace = {self._w}),"
            f" (SELECT count(*) FROM chunks WHERE workspace = {self._w}),"
            f" (SELECT count(*) FROM vectors WHERE workspace = {self._w})"
        )[0]
        return {"documents": documents, "chunks": chunks, "vectors": vectors, "bytes": self._bytes()}

    def _bytes(self) -> int:
        """The workspace's share, by its chunks, of the partitions that it is in."""
        found = self._all(
            "SELECT coalesce(sum(pg_total_relation_size(tableoid) * part / greatest(whole, part, 1)), 0)::bigint FROM ("
            + " UNION ALL ".join(
                "SELECT t.tableoid, count(*)::float8 AS part,"
                " (SELECT reltuples FROM pg_class c WHERE c.oid = t.tableoid) AS whole"
                f" FROM {table} t WHERE t.workspace = {self._w} GROUP BY t.tableoid"
                for table in ("chunks", "postings", "vectors")
            )
            + ") shares"
        )
        return int(found[0][0])

    def sources(self) -> list[tuple[str, int, int]]:
        """Each source with how many documents and chunks there are of it."""
        rows = self._all(
            "SELECT d.source, count(DISTINCT d.id), count(c.row) FROM documents d"
            f" LEFT JOIN chunks c ON c.workspace = {self._w} AND c.document = d.id WHERE d.workspace = {self._w}"
            " GROUP BY d.source ORDER BY d.source"
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def lag_s(self) -> float | None:
        """How far a replica is behind its primary, as far as it knows; None on a primary.

        One that has replayed all it received is behind nothing only as long as it still receives.
        """
        found = self._all(
            "SELECT CASE WHEN NOT pg_is_in_recovery() THEN NULL"
            " WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()"
            " AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0 ELSE extract(epoch FROM"
            " now() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())) END::float8"
        )
        return None if found[0][0] is None else float(found[0][0])

    def check(self) -> None:
        """Raises StoreDamagedError where vectors are not of their model's length."""
        bad = self._all(
            "SELECT 1 FROM vectors v JOIN models m ON m.workspace = v.workspace AND m.id = v.model"
            f" WHERE v.workspace = {self._w} AND m.workspace = {self._w} AND vector_dims(v.vector) != m.dim LIMIT 1"
        )
        if bad:
            raise StoreDamagedError(f"the index {self.name} has broken vectors", hint="recollect index --force")

    def audit(self) -> list[str]:
        """What of the workspace does not agree with the rest of it, a sentence each; reads all of it."""
        with self._patient():
            return self._audit()

    def _audit(self) -> list[str]:
        self.check()
        w = f"workspace = {self._w}"
        faults = self._audit_terms()

        def none(table: str, column: str, value: str) -> str:
            return f"NOT EXISTS (SELECT 1 FROM {table} o WHERE o.{w} AND o.{column} = {value})"

        for sql, sentence in (
            (
                f"SELECT count(*) FROM vectors t WHERE {w} AND {none('models', 'id', 't.model')}",
                "vectors have no model",
            ),
            (
                (
                    f"SELECT count(*) FROM chunks t WHERE {w} AND {none('copies', 'row', 't.row')}"
                    f" AND {none('unjudged', 'row', 't.row')}"
                ),
                "passages were never compared with others and do not wait for it",
            ),
            (
                f"SELECT count(*) FROM traits t WHERE {w} AND {none('copies', 'form', 't.form')}",
                "traits are of no passage",
            ),
            (
                (
                    f"SELECT count(*) FROM conflicts t WHERE {w} AND ({none('copies', 'form', 't.one')}"
                    f" OR {none('copies', 'form', 't.other')})"
                ),
                "contradictions are of no passage",
            ),
        ):
            if count := self._all(sql)[0][0]:
                faults.append(f"{count} {sentence}")
        return faults

    def scrub(self) -> tuple[int, bool]:
        """Drops vectors that no chunk has; what the server keeps of deleted rows goes with its next vacuum.

        Returns how many vectors went, and whether the tables were vacuumed at once, which only their owner may do.
        """

        def work() -> int:
            self._local.changed = True
            return self._run(
                f"DELETE FROM vectors v WHERE v.workspace = {self._w} AND NOT EXISTS (SELECT 1 FROM chunks c"
                f" WHERE c.workspace = {self._w} AND c.content_hash = v.content_hash)"
            )

        gone = self._written(work)
        return gone, self._vacuum("documents", "chunks", "postings", "terms", "vectors")

    def _vacuum(self, *tables: str) -> bool:
        """Gives the room of deleted rows back and counts anew; False where the role may not."""
        return self._maintain("VACUUM (ANALYZE, SKIP_LOCKED)", tables)

    def _freshen(self) -> None:
        """Has the server look at tables that grew: a plan for a workspace that it takes for empty is a slow one.

        It does so by itself, but not in the first minute, and that is when a new workspace is asked first.
        """
        tables = [t for many, t in _TOGETHER if self._grown.get(many, 0) >= self._look_at.get(many, _FIRST_LOOK)]
        for many in {many for many, t in _TOGETHER if t in tables}:
            self._look_at[many] = 4 * max(self._grown[many], self._look_at.get(many, _FIRST_LOOK))
        if tables:
            with contextlib.suppress(StoreError):
                self._maintain("ANALYZE (SKIP_LOCKED)", tables)

    def _maintain(self, verb: str, tables: Sequence[str]) -> bool:
        newer = self._all("SELECT current_setting('server_version_num')::int >= 170000")[0][0]
        may = "OR has_table_privilege('vectors', 'MAINTAIN')" if newer else ""
        owned = f"SELECT pg_has_role(relowner, 'MEMBER') {may} FROM pg_class WHERE oid = 'vectors'::regclass"
        if not self._all(owned)[0][0]:
            return False
        leaves = [leaf for table in tables if (leaf := self._leaf(table))]
        with self._pool.translated(), self._pool.use() as db:
            db.execute("SET statement_timeout = 0")
            try:
                for leaf in leaves:
                    db.execute(f"{verb} {leaf}")
            finally:
                db.execute("RESET statement_timeout")
        return True

    def _leaf(self, table: str) -> str:
        """The partition that this workspace's rows of a table are in, if there are any."""
        found = self._all(f"SELECT tableoid::regclass::text FROM {table} WHERE workspace = {self._w} LIMIT 1")
        return str(found[0][0]) if found else ""
