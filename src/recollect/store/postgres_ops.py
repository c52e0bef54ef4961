"""What operators ask of an index in PostgreSQL: figures of tables and replicas, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.ports import Figures, Finding, TableFigures, Verdict

_LEAST_VECTOR = (0, 7, 0)  # half precision
_GOOD_VECTOR = (0, 8, 0)  # iterative scans, without which a filter empties an approximate answer
_DEAD_SHARE, _DEAD_ROWS = 0.2, 10_000
_UNANALYSED_ROWS = 1_000
_FREE_CONNECTIONS = 10
_LAG_S, _LAG_TOO_LONG_S = 1.0, 60.0


class OperatedTables:
    """The part of a PostgreSQL store that is read by operators."""

    _w: int

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def lag_s(self) -> float | None: ...  # noqa: D102

    def figures(self) -> Figures:
        """What the whole database takes, how far replicas are behind, and what waits to be embedded here."""
        tables = self._all(
            "SELECT coalesce(p.relname, c.relname), sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)),"
            " sum(greatest(s.n_live_tup, 0)), sum(s.n_dead_tup) FROM pg_class c"
            " JOIN pg_stat_user_tables s ON s.relid = c.oid"
            " LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent"
            " WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r' GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        waiting, claimed = self._all(
            "SELECT count(*), count(*) FILTER (WHERE leased_until > clock_timestamp()) FROM pending"
            f" WHERE workspace = {self._w}"
        )[0]
        replicas = self._all(
            "SELECT coalesce(application_name, ''), coalesce(extract(epoch FROM replay_lag), 0)::float8"
            " FROM pg_stat_replication WHERE state IS NOT NULL ORDER BY 1"  # hidden from roles that may not see them
        )
        used, most = self._all(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL AND usesysid IS NOT NULL),"
            " current_setting('max_connections')::int"
        )[0]
        return Figures(
            tables=tuple(TableFigures(r[0], int(r[1]), int(r[2]), int(r[3]), int(r[4])) for r in tables),
            approximate=tuple(self._approximates()),
            replicas=tuple((name, lag) for name, lag in replicas),
            lag_s=self.lag_s(),
            waiting=waiting,
            claimed=claimed,
            connections=used,
            most_connections=most,
        )

    def _approximates(self) -> list[str]:
        """The models of this workspace that have an HNSW index which is whole."""
        rows = self._all(
            "SELECT m.name FROM models m JOIN pg_class c ON c.relnamespace = 'recollect'::regnamespace"
            f" AND c.relname = 'vectors_hnsw_{self._w}_' || m.id JOIN pg_index i ON i.indexrelid = c.oid"
            f" WHERE m.workspace = {self._w} AND i.indisvalid ORDER BY 1"
        )
        return [r[0] for r in rows]

    def health(self) -> list[Finding]:
        """What of the server and its tables is well or wrong, each with what mends it."""
        checks = (
            self._extension, self._indexes, self._bloat, self._analysed, self._connections, self._security, self._lag,
        )  # fmt: skip
        return [finding for check in checks for finding in check()]

    def _extension(self) -> Iterator[Finding]:
        version = self._all("SELECT current_setting('server_version')")[0][0]
        found = self._all("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        if not found:
            yield Finding("extension", "fail", "pgvector is not installed in this database", "CREATE EXTENSION vector;")
            return
        have = tuple(int(part) for part in str(found[0][0]).split(".")[:3])
        detail = f"pgvector {found[0][0]} on PostgreSQL {version}"
        update = "install a newer pgvector, then: ALTER EXTENSION vector UPDATE;"
        if have < _LEAST_VECTOR:
            yield Finding("extension", "fail", f"{detail}: too old, 0.7 is the least", update)
        elif have < _GOOD_VECTOR:
            yield Finding("extension", "warn", f"{detail}: filters can empty an approximate answer before 0.8", update)
        else:
            yield Finding("extension", "ok", detail)

    def _indexes(self) -> Iterator[Finding]:
        """HNSW is the one index that is used; one half built or of another kind costs writes and helps nobody."""
        rows = self._all(
            "SELECT c.relname, a.amname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_class t ON t.oid = i.indrelid JOIN pg_am a ON a.oid = c.relam"
            " WHERE t.relnamespace = 'recollect'::regnamespace AND NOT (a.amname = 'hnsw' AND i.indisvalid)"
            " AND (a.amname IN ('hnsw', 'ivfflat') OR NOT i.indisvalid) ORDER BY 1"
        )
        for name, kind, valid in rows:
            fault = "is not whole: its building was stopped" if not valid else f"is of the kind {kind}, and is not used"
            yield Finding("index type", "warn", f"{name} {fault}", f"DROP INDEX recollect.{name}; recollect index")
        if not rows:
            made = self._approximates()
            detail = f"HNSW for {', '.join(made)}" if made else "exact scans, as a workspace of this size has them"
            yield Finding("index type", "ok", detail)

    def _bloat(self) -> Iterator[Finding]:
        rows = self._all(
            "SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE schemaname = 'recollect'"
            " AND n_dead_tup > %s AND n_dead_tup > %s * (n_live_tup + n_dead_tup) ORDER BY n_dead_tup DESC",
            (_DEAD_ROWS, _DEAD_SHARE),
        )
        for name, live, dead in rows[:5]:
            detail = f"{name} has {dead:,} dead rows beside {live:,}"
            yield Finding("bloat", "warn", detail, f"VACUUM recollect.{name}; and let autovacuum run more often on it")
        if not rows:
            yield Finding("bloat", "ok", "few dead rows")

    def _analysed(self) -> Iterator[Finding]:
        rows = self._all(
            "SELECT relname, n_mod_since_analyze FROM pg_stat_user_tables WHERE schemaname = 'recollect'"
            " AND n_mod_since_analyze > %s AND (last_analyze IS NULL AND last_autoanalyze IS NULL"
            " OR n_mod_since_analyze > n_live_tup / 2) ORDER BY 2 DESC",
            (_UNANALYSED_ROWS,),
        )
        for name, changed in rows[:5]:
            detail = f"{name} changed in {changed:,} rows since it was analysed: plans are guesses"
            yield Finding("statistics", "warn", detail, f"ANALYZE recollect.{name};")
        if not rows:
            yield Finding("statistics", "ok", "every table is analysed")

    def _connections(self) -> Iterator[Finding]:
        one = self.figures()
        detail = f"{one.connections} of {one.most_connections} in use"
        if one.most_connections - one.connections < _FREE_CONNECTIONS:
            mend = "raise max_connections, or put a pooler in session mode before the server"
            yield Finding("connections", "warn", detail, mend)
        else:
            yield Finding("connections", "ok", detail)

    def _security(self) -> Iterator[Finding]:
        role, superuser, bypass = self._all(
            "SELECT current_user::text, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )[0]
        open_to_all = [
            r[0]
            for r in self._all(
                "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind IN ('r', 'p')"
                " AND relname != 'versions' AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1"
            )
        ]
        if open_to_all:
            names = ", ".join(open_to_all[:3]) + (", …" if len(open_to_all) > 3 else "")
            mend = f"ALTER TABLE recollect.{open_to_all[0]} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
            yield Finding("row security", "fail", f"off for {names}: agents can read one another's rows", mend)
        else:
            yield Finding("row security", "ok", "on for every table")
        if superuser or bypass:
            kind = "a superuser" if superuser else "a role with BYPASSRLS"
            mend = "CREATE ROLE agent LOGIN NOSUPERUSER NOBYPASSRLS; and connect as it"
            yield Finding("role", "warn", f"{role} is {kind}: row security does not hold for it", mend)
        else:
            yield Finding("role", "ok", f"{role}, which row security holds for")

    def _lag(self) -> Iterator[Finding]:
        one = self.figures()
        behind = [(name or "a replica", lag) for name, lag in one.replicas]
        if one.lag_s is not None:
            behind.append(("this replica", one.lag_s))
        for name, lag in behind:
            verdict: Verdict = "fail" if lag > _LAG_TOO_LONG_S else "warn" if lag > _LAG_S else "ok"
            mend = "" if verdict == "ok" else "look at its disk and network; searches on it miss what is new"
            yield Finding("replica", verdict, f"{name} is {lag:.1f} s behind", mend)
