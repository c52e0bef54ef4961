"""Links and time in PostgreSQL: edges as they were written, and passages in the order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from notewell.store.postgres.chunks import CHUNKS, ChunkReader
from notewell.store.postgres.connection import Connection, unnest, writes
from notewell.store.values import DayCount, Moment
from notewell.text.link_syntax import link_key
from notewell.types import Edge, End, Filters

_COLUMNS = "kind, start_name, start_anchor, start_key, end_name, end_anchor, end_key"
_EDGES = (
    "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor"
    " FROM edges e JOIN documents d ON d.workspace = $w AND d.id = e.document"
    " WHERE e.workspace = $w"
)
_ORDER = ("coalesce(c.time, d.date, d.changed)", "d.path", "c.start_line", "c.id")
_MOMENTS = (
    f"SELECT {', '.join(_ORDER)}, c.row,"
    " CASE WHEN c.time IS NOT NULL THEN 'time' WHEN d.date IS NOT NULL THEN 'date' ELSE 'file' END"
    f" FROM {CHUNKS}"
)


class History:
    """The part of a PostgreSQL store that holds links and the order of chunks in time."""

    def __init__(self, connection: Connection, chunks: ChunkReader) -> None:
        self._db, self._chunks = connection, chunks

    @writes
    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        if change := self._db.waiting().get(path):
            change.edges = edges  # written together with the document
            return
        found = self._db.all("SELECT id FROM documents WHERE workspace = $w AND path = %s", (path,))
        if found:
            self.replace({found[0][0]: edges}, known=True)

    def replace(self, edges: Mapping[int, Sequence[Edge]], *, known: bool) -> None:
        """Writes the edges of documents in place of those before, if any are `known`; inside a
        transaction.
        """
        if known:
            sql = "DELETE FROM edges WHERE workspace = $w AND document = ANY(%s::bigint[])"
            self._db.run(sql, (list(edges),))
        made = [
            (
                document,
                e.kind,
                e.start.name,
                e.start.anchor,
                link_key(e.start.name),
                e.end.name,
                e.end.anchor,
                link_key(e.end.name),
            )
            for document, some in edges.items()
            for e in some
        ]
        if made:
            source, values = unnest("bigint text text text text text text text", made)
            self._db.run(
                f"INSERT INTO edges (workspace, document, {_COLUMNS})"
                f" SELECT $w, document, {_COLUMNS}"
                f" FROM {source} WITH ORDINALITY u (document, {_COLUMNS}, n) ORDER BY n",
                values,
            )

    def edges_of(self, path: str) -> list[Edge]:
        return self._edges("d.path = %s ORDER BY e.number", path)

    def edges_like(self, kind: str) -> list[Edge]:
        return self._edges("e.kind = %s ORDER BY d.path, e.number", kind)

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        return self._edges("e.start_key = ANY(%s::text[]) ORDER BY d.path, e.number", list(keys))

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        return self._edges("e.end_key = ANY(%s::text[]) ORDER BY d.path, e.number", list(keys))

    def _edges(self, condition: str, value: Any) -> list[Edge]:
        rows = self._db.all(f"{_EDGES} AND {condition}", (value,))
        return [Edge(r[0], End(r[1], r[2]), End(r[3], r[4])) for r in rows]

    def moments(
        self,
        filters: Filters,
        *,
        limit: int,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> list[Moment]:
        """A chunk counts by its own time, else by its document's day, else by its file's last
        change.
        """
        where, values = self._chunks.passing(filters)
        conditions = [where or "true"]
        values["limit"] = None if limit < 0 else limit
        for sign, key, bound in ((">", "after", after), ("<", "before", before)):
            if bound is not None:
                conditions.append(
                    f"({', '.join(_ORDER)}) {sign} ({', '.join(f'%({key}{n})s' for n in range(4))})"
                )
                values |= {
                    f"{key}{n}": v
                    for n, v in enumerate((bound.when, bound.path, bound.line, bound.id))
                }
        back = after is None
        order = ", ".join(column + (" DESC" if back else "") for column in _ORDER)
        rows = self._db.all(
            f"{_MOMENTS} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT %(limit)s", values
        )
        found = [Moment(*r) for r in rows]
        return found[::-1] if back else found

    def days(self, filters: Filters) -> list[DayCount]:
        where, values = self._chunks.passing(filters)
        rows = self._db.all(
            f"SELECT substr({_ORDER[0]}, 1, 10) AS day, count(DISTINCT d.id), count(*)"
            f" FROM {CHUNKS} WHERE {where or 'true'} GROUP BY 1 ORDER BY 1",
            values,
        )
        return [DayCount(*r) for r in rows]

    def moment(self, row: int) -> Moment | None:
        found = self._db.all(f"{_MOMENTS} WHERE c.row = %s", (row,))
        return Moment(*found[0]) if found else None
