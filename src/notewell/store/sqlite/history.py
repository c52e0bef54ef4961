"""Links between documents, and the order of chunks in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notewell.store.sqlite.chunks import ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.values import DayCount, Moment
from notewell.text.link_syntax import link_key
from notewell.types import Edge, End, Filters

_ORDER = (
    (
        "coalesce(c.time, d.date,"
        " strftime('%Y-%m-%dT%H:%M:%S', d.mtime_ns / 1000000000, 'unixepoch', 'localtime'))"
    ),
    "d.path",
    "c.start_line",
    "c.id",
)
_MOMENTS = (
    f"SELECT {', '.join(_ORDER)}, c.row,"
    " CASE WHEN c.time IS NOT NULL THEN 'time' WHEN d.date IS NOT NULL THEN 'date' ELSE 'file' END"
    " FROM documents d JOIN chunks c ON c.document = d.id"
)
_EDGES = (
    "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor"
    " FROM edges e JOIN documents d ON d.id = e.document"
)


class History:
    """The part of a SQLite store that keeps links and reads chunks in order of time."""

    def __init__(self, connection: Connection, chunks: ChunkReader) -> None:
        self._connection, self._db = connection, connection.db
        self._all, self._all_in = connection.all, connection.all_in
        self._chunks = chunks

    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        with self._connection.writing():
            found = self._connection.own("SELECT id FROM documents WHERE path = ?", (path,))
            if not found:
                return
            self._db.execute("DELETE FROM edges WHERE document = ?", found[0])
            self._db.executemany(
                "INSERT INTO edges VALUES (?,?,?,?,?,?,?,?)",
                [
                    (
                        found[0][0],
                        e.kind,
                        e.start.name,
                        e.start.anchor,
                        link_key(e.start.name),
                        e.end.name,
                        e.end.anchor,
                        link_key(e.end.name),
                    )
                    for e in edges
                ],
            )

    def edges_of(self, path: str) -> list[Edge]:
        return _edges(self._all(f"{_EDGES} WHERE d.path = ? ORDER BY e.rowid", (path,)))

    def edges_like(self, kind: str) -> list[Edge]:
        return _edges(self._all(f"{_EDGES} WHERE e.kind = ? ORDER BY d.path, e.rowid", (kind,)))

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        return self._edges_by("start_key", keys)

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        return self._edges_by("end_key", keys)

    def _edges_by(self, column: str, keys: Sequence[str]) -> list[Edge]:
        sql = f"{_EDGES} WHERE e.{column} IN ({{}}) ORDER BY d.path, e.rowid"
        return _edges(self._all_in(sql, list(dict.fromkeys(keys))))

    def moments(
        self,
        filters: Filters,
        *,
        limit: int,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> list[Moment]:
        """A chunk counts by its own time, else by the day of its note, else by the last change of
        its file.
        """
        only, allowed = self._chunks.only(filters)
        where, values = [only.removeprefix(" WHERE ") or "1"], list(allowed)
        for sign, bound in ((">", after), ("<", before)):
            if bound is not None:
                where.append(f"({', '.join(_ORDER)}) {sign} (?, ?, ?, ?)")
                values += [bound.when, bound.path, bound.line, bound.id]
        back = after is None
        order = ", ".join(o + (" DESC" if back else "") for o in _ORDER)
        rows = self._all(
            f"{_MOMENTS} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?", (*values, limit)
        )
        found = [Moment(*r) for r in rows]
        return found[::-1] if back else found

    def days(self, filters: Filters) -> list[DayCount]:
        where, values = self._chunks.only(filters)
        day = f"substr({_ORDER[0]}, 1, 10)"
        rows = self._all(
            f"SELECT {day}, count(DISTINCT d.id), count(*)"
            f" FROM documents d JOIN chunks c ON c.document = d.id{where}"
            " GROUP BY 1 ORDER BY 1",
            values,
        )
        return [DayCount(*r) for r in rows]

    def moment(self, row: int) -> Moment | None:
        found = self._all(f"{_MOMENTS} WHERE c.row = ?", (row,))
        return Moment(*found[0]) if found else None


def _edges(rows: Sequence[tuple[Any, ...]]) -> list[Edge]:
    return [Edge(r[0], End(r[1], r[2]), End(r[3], r[4])) for r in rows]
