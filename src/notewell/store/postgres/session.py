"""A session in PostgreSQL: values that are remembered, counting what a workspace holds, and
checking that it agrees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from notewell.errors import StoreDamagedError
from notewell.store.postgres.connection import Connection, writes
from notewell.store.postgres.keywords import Keywords
from notewell.store.postgres.schema import TABLES
from notewell.store.postgres.vectors import Vectors

_COUNTERS = {"generation": "generation", "chunks": "moved"}
_MINE = "WHERE workspace = $w"


def _none(table: str, column: str, value: str) -> str:
    return f"NOT EXISTS (SELECT 1 FROM {table} o WHERE o.workspace = $w AND o.{column} = {value})"


# What an audit finds, and the statement that counts it.
_FAULTS = {
    "counts of passages are wrong": "SELECT count(*) FROM state s,"
    f" (SELECT count(*) AS n, coalesce(sum(length), 0) AS long FROM chunks {_MINE}) c"
    " WHERE s.workspace = $w AND (s.chunks, s.length) IS DISTINCT FROM (c.n, c.long)",
    (
        "vectors have no model"
    ): f"SELECT count(*) FROM vectors t {_MINE} AND {_none('models', 'id', 't.model')}",
    (
        "passages were never compared with others and do not wait for it"
    ): f"SELECT count(*) FROM chunks t {_MINE}"
    f" AND {_none('copies', 'row', 't.row')} AND {_none('unjudged', 'row', 't.row')}",
    (
        "traits belong to no passage"
    ): f"SELECT count(*) FROM traits t {_MINE} AND {_none('copies', 'form', 't.form')}",
    "contradictions belong to no passage": f"SELECT count(*) FROM conflicts t {_MINE}"
    f" AND ({_none('copies', 'form', 't.one')} OR {_none('copies', 'form', 't.other')})",
}


class Session:
    """The part of a PostgreSQL store that remembers, counts and checks."""

    def __init__(self, connection: Connection, keywords: Keywords, vectors: Vectors) -> None:
        self._db, self._keywords, self._vectors = connection, keywords, vectors

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None, read once for a search; the counter of chunks is read again
        each time.

        The first time it may be as old as those values: what changed since then is seen the next
        time.
        """
        scope = self._db.scope()
        if scope is None:
            return self._db.state(_COUNTERS[key]) if key in _COUNTERS else self._value(key)
        moment = self._db.moment()
        if key == "chunks":
            counted, scope.counted = scope.counted, False
            return scope.moved if counted else self._db.state("moved")
        if key == "generation":
            # it is gone: an error
            return moment.generation if moment.generation >= 0 else self._db.state("generation")
        return self._value(key) if key in moment.long else moment.meta.get(key)

    def _value(self, key: str) -> Any:
        found = self._db.all(f"SELECT value FROM meta {_MINE} AND key = %s", (key,))
        return json.loads(found[0][0]) if found else None

    def meta(self) -> Mapping[str, Any]:
        moment = self._db.moment()
        counted = {"generation": moment.generation, "chunks": moment.moved}
        return {**moment.meta, **{key: self._value(key) for key in moment.long}, **counted}

    def remembered(self) -> dict[str, Any]:
        return {key: value for key, value in sorted(self.meta().items()) if key not in _COUNTERS}

    @writes
    def set_meta(self, key: str, value: str | int) -> None:
        update = "ON CONFLICT (workspace, key) DO UPDATE SET value = excluded.value"
        self._db.run(f"INSERT INTO meta VALUES ($w, %s, %s) {update}", (key, json.dumps(value)))

    def counts(self) -> dict[str, int]:
        """The numbers of documents, chunks and vectors, and about how many bytes the rows of the
        workspace take.
        """
        names = ("documents", "chunks", "vectors")
        found = self._db.all(
            f"SELECT {', '.join(f'(SELECT count(*) FROM {name} {_MINE})' for name in names)}"
        )[0]
        return {**dict(zip(names, found, strict=True)), "bytes": self._bytes()}

    def _bytes(self) -> int:
        """The workspace's share, by its number of rows, of the partitions that it is in."""
        shares = " UNION ALL ".join(
            "SELECT t.tableoid, count(*)::float8 AS part,"
            " (SELECT reltuples FROM pg_class c WHERE c.oid = t.tableoid) AS whole"
            f" FROM {table} t WHERE t.workspace = $w GROUP BY t.tableoid"
            for table in ("chunks", "postings", "vectors", "windows")
        )
        share = "pg_total_relation_size(tableoid) * part / greatest(whole, part, 1)"
        return int(
            self._db.all(f"SELECT coalesce(sum({share}), 0)::bigint FROM ({shares}) shares")[0][0]
        )

    def check(self) -> None:
        """Raises StoreDamagedError if vectors do not have the dimensions of their model."""
        if faults := self._vectors.audit():
            raise StoreDamagedError("; ".join(faults), hint="notewell index")

    def audit(self) -> list[str]:
        with self._db.reading_all():
            self.check()
            words = self._keywords.audit()
            found = {fault: self._db.all(sql)[0][0] for fault, sql in _FAULTS.items()}
        return [*words, *(f"{count} {fault}" for fault, count in found.items() if count)]

    def scrub(self) -> tuple[int, bool]:
        """Vacuums the tables and their indexes if the role may; if not, the server does so
        later.
        """
        gone = self._db.write(self._vectors.drop_unused)
        # Without INDEX_CLEANUP the server leaves the entries of a few deleted rows in the indexes.
        return gone, self._db.vacuum(TABLES, options="ANALYZE, INDEX_CLEANUP ON, SKIP_LOCKED")
