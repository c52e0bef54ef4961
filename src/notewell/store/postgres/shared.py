"""What PostgreSQL offers because many machines share it: claimed work, news of changes, roles, and
its health.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from notewell.errors import StoreError
from notewell.store.postgres.connection import Connection, writes
from notewell.store.postgres.moment import Model
from notewell.store.postgres.remains import remains
from notewell.store.postgres.roles import let_in, security
from notewell.store.postgres.schema import SCHEMA
from notewell.store.postgres.vectors import MISSING, MODEL, Vectors
from notewell.store.values import Figures, Finding, Remains, TableFigures, Verdict

EXACT_UP_TO = 50_000
POLL_S = 0.2
_MOST_DIMENSIONS = 4_000  # of an index in half precision
_BUILD_LOCK = 2
_LEAST_VECTOR = (0, 7, 0)  # has half precision
# has iterative scans, without which a filter can empty an approximate answer
_GOOD_VECTOR = (0, 8, 0)
_DEAD_SHARE, _DEAD_ROWS = 0.2, 10_000
_UNANALYZED_ROWS = 1_000
_FREE_CONNECTIONS = 10
_OWNS = "pg_has_role(relowner, 'USAGE')"
_LAG_S, _LAG_TOO_LONG_S = 1.0, 60.0


class Shared:
    """The part of a PostgreSQL store that a file does not have."""

    def __init__(self, connection: Connection, vectors: Vectors, *, workspace: str) -> None:
        self._db, self._vectors = connection, vectors
        self._workspace = workspace

    @property
    def generation(self) -> int:
        return self._db.state("generation")

    def admit(self, role: str, *, here: bool = True) -> None:
        with self._db.borrowed() as raw, raw.transaction():
            if here:
                members = "array_append(array_remove(members, %s::name), %s::name)"
                update = f"UPDATE workspaces SET members = {members} WHERE id = %s"
                if not raw.execute(update, (role, role, self._db.workspace)).rowcount:
                    raise StoreError(
                        f"only the owner of {self._workspace!r} can admit a role",
                        hint="ask the owner",
                    )
            let_in(raw, role, self._db.name)

    def expel(self, role: str) -> None:
        sql = "UPDATE workspaces SET members = array_remove(members, %s::name) WHERE id = %s"
        with self._db.borrowed() as raw:
            if not raw.execute(sql, (role, self._db.workspace)).rowcount:
                raise StoreError(
                    f"only the owner of {self._workspace!r} can expel a role", hint="ask the owner"
                )

    def claim(self, model: str, limit: int, lease_s: float) -> list[int]:
        """A vector that is put, a refusal or `release` ends a claim; no rows mean that nothing is
        left to do.
        """
        rows = self._db.write(lambda: self._take(model, limit, lease_s), shared=True)
        # When there was nothing to take and nothing to list, another worker listed the work between
        # the two.
        if len(rows) < limit and (self._list_missing(model) or not rows):
            rows += self._db.write(
                lambda: self._take(model, limit - len(rows), lease_s), shared=True
            )
        return rows

    def _take(self, model: str, limit: int, lease_s: float) -> list[int]:
        number, _ = self._vectors.number_of(model)
        mine = f"workspace = $w AND model = {number}"
        found = self._db.all(
            "WITH free AS (SELECT content_hash FROM pending"
            f" WHERE {mine} AND leased_until < clock_timestamp()"
            " ORDER BY position LIMIT %s FOR UPDATE SKIP LOCKED)"
            " UPDATE pending p SET leased_until = clock_timestamp() + make_interval(secs => %s)"
            f" FROM free WHERE p.workspace = $w AND p.model = {number}"
            " AND p.content_hash = free.content_hash"
            " RETURNING p.position, p.content_hash,"
            " (SELECT max(c.row) FROM chunks c"
            " WHERE c.workspace = $w AND c.content_hash = p.content_hash)",
            (limit, lease_s),
        )
        if gone := [key for _, key, row in found if row is None]:
            self._db.run(
                f"DELETE FROM pending WHERE {mine} AND content_hash = ANY(%s::text[])", (gone,)
            )
        return [row for _, _, row in sorted(r for r in found if r[2] is not None)]

    @writes
    def _list_missing(self, model: str) -> int:
        """Lists the texts that lack a vector, for workers to claim; not `shared`, so that one does
        so at a time.
        """
        number, _ = self._vectors.number_of(model)
        return self._db.run(
            "INSERT INTO pending (workspace, model, content_hash, position)"
            f" SELECT $w, {number}, m.content_hash, row_number() OVER ()"
            f" FROM ({MISSING}) m ON CONFLICT DO NOTHING",
            {"model": model},
        )

    def release(self, model: str, hashes: Sequence[str]) -> None:
        claimed = f"workspace = $w AND model = {MODEL} AND content_hash = ANY(%(hashes)s::text[])"
        sql = f"UPDATE pending SET leased_until = '-infinity' WHERE {claimed}"
        self._db.write(
            lambda: self._db.run(sql, {"model": model, "hashes": list(hashes)}), shared=True
        )

    def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
        before = self.generation if since is None else since
        if self._db.read_only:  # a replica cannot listen
            return self._poll(before, timeout_s)
        with self._db.pool.translated(), contextlib.closing(self._db.pool.connect()) as raw:
            raw.execute(f"LISTEN notewell_{self._db.workspace}")
            until = time.monotonic() + timeout_s
            # Looked at first, so that no change between the two is missed; and again, since any
            # role can notify.
            while (now := self.generation) <= before:
                if not any(raw.notifies(timeout=max(0.0, until - time.monotonic()), stop_after=1)):
                    return None
            return now

    def _poll(self, before: int, timeout_s: float) -> int | None:
        until = time.monotonic() + timeout_s
        while (now := self.generation) <= before:
            if (left_s := until - time.monotonic()) <= 0:
                return None
            time.sleep(min(POLL_S, left_s))
        return now

    def settle(self, model: str) -> bool:
        """Readers and writers go on; it does nothing for a role that may not maintain the tables.

        Only their owner can build an index; `health` tells the others what to ask for.
        """
        known = self._vectors.model(model)
        if known is None or not self._db.vacuum():
            return bool(known and known.indexed)
        build = self._graph(known)
        if (
            not build
            or not self._db.all(f"SELECT {_OWNS} FROM pg_class WHERE oid = 'vectors'::regclass")[0][
                0
            ]
        ):
            return known.indexed
        # Workers end at the same time, and one of them is enough.
        with self._db.locked(_BUILD_LOCK, 0.0) as taken:
            if not taken:
                return False
            with self._db.maintenance() as raw:
                # One that a crash left half built.
                raw.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self._name_of_graph(known)}")
                raw.execute(build)
        return True

    def _name_of_graph(self, known: Model) -> str:
        return f"vectors_hnsw_{self._db.workspace}_{known.number}"

    def _graph(self, known: Model) -> str:
        """The statement that builds the HNSW index of a model, or "" where it has one or none would
        pay.
        """
        count = f"SELECT count(*) FROM vectors WHERE workspace = $w AND model = {known.number}"
        if (
            known.indexed
            or known.dim > _MOST_DIMENSIONS
            or self._db.all(count)[0][0] <= EXACT_UP_TO
        ):
            return ""
        return (
            f"CREATE INDEX CONCURRENTLY {self._name_of_graph(known)}"
            f" ON {SCHEMA}.{self._db.partition('vectors')}"
            f" USING hnsw ((vector::halfvec({known.dim})) halfvec_ip_ops)"
            f" WHERE workspace = {self._db.workspace} AND model = {known.number}"
        )

    def remains(self, probes: Sequence[str]) -> Remains:
        return remains(self._db, probes)

    def figures(self) -> Figures:
        tables = self._db.all(
            "SELECT coalesce(p.relname, c.relname),"
            " sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)),"
            " sum(greatest(s.n_live_tup, 0)), sum(s.n_dead_tup) FROM pg_class c"
            " JOIN pg_stat_user_tables s ON s.relid = c.oid"
            " LEFT JOIN pg_inherits i ON i.inhrelid = c.oid"
            " LEFT JOIN pg_class p ON p.oid = i.inhparent"
            " WHERE c.relnamespace = 'notewell'::regnamespace AND c.relkind = 'r'"
            " GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        claimed = "count(*) FILTER (WHERE leased_until > clock_timestamp())"
        queue = self._db.all(f"SELECT count(*), {claimed} FROM pending WHERE workspace = $w")[0]
        replicas = self._db.all(  # without a state where the role may not see it
            "SELECT coalesce(application_name, ''),"
            " coalesce(extract(epoch FROM replay_lag), 0)::float8"
            " FROM pg_stat_replication WHERE state IS NOT NULL ORDER BY 1"
        )
        connections = self._db.all(
            "SELECT (SELECT count(*) FROM pg_stat_activity"
            " WHERE datid IS NOT NULL AND usesysid IS NOT NULL),"
            " current_setting('max_connections')::int"
        )[0]
        sizes = tuple(TableFigures(r[0], *map(int, r[1:])) for r in tables)
        approximate = tuple(self._vectors.indexed())
        return Figures(sizes, approximate, tuple(replicas), self._db.lag_s(), *queue, *connections)

    def health(self) -> list[Finding]:
        figures = self.figures()
        tables = [*self._indexes(figures), *self._bloat(), *self._statistics()]
        return [
            self._extension(),
            *tables,
            _connections(figures),
            *security(self._db.all, self._db.name),
            *_lags(figures),
        ]

    def _extension(self) -> Finding:
        server = self._db.all("SELECT current_setting('server_version')")[0][0]
        found = self._db.all("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        if not found:
            lacks = "pgvector is not installed in this database"
            return Finding("extension", "fail", lacks, "CREATE EXTENSION vector;")
        version = tuple(int(part) for part in str(found[0][0]).split(".")[:3])
        detail = f"pgvector {found[0][0]} on PostgreSQL {server}"
        if version >= _GOOD_VECTOR:
            return Finding("extension", "ok", detail)
        update = "install a newer pgvector, then: ALTER EXTENSION vector UPDATE;"
        if version < _LEAST_VECTOR:
            return Finding(
                "extension", "fail", f"{detail}: too old, at least 0.7 is needed", update
            )
        return Finding(
            "extension",
            "warn",
            f"{detail}: filters can empty an approximate answer before 0.8",
            update,
        )

    def _indexes(self, figures: Figures) -> Iterator[Finding]:
        """Only HNSW is used; an index of another kind, or a half-built one, costs writes and helps
        nobody.
        """
        rows = self._db.all(
            "SELECT c.relname, a.amname, i.indisvalid FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_class t ON t.oid = i.indrelid JOIN pg_am a ON a.oid = c.relam"
            " WHERE t.relnamespace = 'notewell'::regnamespace"
            " AND NOT (a.amname = 'hnsw' AND i.indisvalid)"
            " AND (a.amname IN ('hnsw', 'ivfflat') OR NOT i.indisvalid) ORDER BY 1"
        )
        for name, kind, valid in rows:
            fault = (
                f"is of the kind {kind}, and is not used"
                if valid
                else "is incomplete: its build was stopped"
            )
            yield Finding(
                "index type",
                "warn",
                f"{name} {fault}",
                f"DROP INDEX notewell.{name}; notewell index",
            )
        graphs = {name: self._graph(known) for name, known in self._db.moment().models.items()}
        for name, build in graphs.items():
            if build:
                slow = f"the vectors of {name} have no HNSW index, so each search reads them all"
                yield Finding(
                    "index type", "warn", slow, f"let the owner of the tables run: {build}"
                )
        if not rows and not any(graphs.values()):
            made = ", ".join(figures.approximate)
            yield Finding(
                "index type",
                "ok",
                f"HNSW for {made}" if made else "exact scans, right for its size",
            )

    def _bloat(self) -> Iterator[Finding]:
        rows = self._db.all(
            "SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables"
            " WHERE schemaname = 'notewell'"
            " AND n_dead_tup > %s AND n_dead_tup > %s * (n_live_tup + n_dead_tup)"
            " ORDER BY n_dead_tup DESC",
            (_DEAD_ROWS, _DEAD_SHARE),
        )
        for name, live, dead in rows[:5]:
            detail = f"{name} has {dead:,} dead rows next to {live:,}"
            yield Finding(
                "bloat",
                "warn",
                detail,
                f"VACUUM notewell.{name}; and let autovacuum run more often on it",
            )
        if not rows:
            yield Finding("bloat", "ok", "few dead rows")

    def _statistics(self) -> Iterator[Finding]:
        rows = self._db.all(
            "SELECT relname, n_mod_since_analyze FROM pg_stat_user_tables"
            " WHERE schemaname = 'notewell'"
            " AND n_mod_since_analyze > %s AND (last_analyze IS NULL AND last_autoanalyze IS NULL"
            " OR n_mod_since_analyze > n_live_tup / 2) ORDER BY 2 DESC",
            (_UNANALYZED_ROWS,),
        )
        for name, changed in rows[:5]:
            detail = f"{name} changed in {changed:,} rows since it was analyzed: plans are guesses"
            yield Finding("statistics", "warn", detail, f"ANALYZE notewell.{name};")
        if not rows:
            yield Finding("statistics", "ok", "every table is analyzed")


def _connections(figures: Figures) -> Finding:
    detail = f"{figures.connections} of {figures.most_connections} in use"
    if figures.most_connections - figures.connections >= _FREE_CONNECTIONS:
        return Finding("connections", "ok", detail)
    fix = "raise max_connections, or put a pooler in session mode in front of the server"
    return Finding("connections", "warn", detail, fix)


def _lags(figures: Figures) -> Iterator[Finding]:
    behind = [(name or "a replica", lag) for name, lag in figures.replicas]
    if figures.lag_s is not None:
        behind.append(("this replica", figures.lag_s))
    for name, lag in behind:
        verdict: Verdict = "fail" if lag > _LAG_TOO_LONG_S else "warn" if lag > _LAG_S else "ok"
        fix = (
            "" if verdict == "ok" else "check its disk and network; searches on it miss what is new"
        )
        yield Finding("replica", verdict, f"{name} is {lag:.1f} s behind", fix)
