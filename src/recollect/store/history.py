"""What notes say of one another and when, in the SQLite store: edges as they were written, and passages in time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from recollect.ports import Moment
from recollect.store.rows import hash_kept, in_parts
from recollect.text.links import UUID, link_key
from recollect.types import Edge, End, Filters

if TYPE_CHECKING:
    import apsw

_ORDER = (
    "coalesce(c.time, d.date, strftime('%Y-%m-%dT%H:%M:%S', d.mtime_ns / 1000000000, 'unixepoch', 'localtime'))",
    "d.path",
    "c.start_line",
    "c.id",
)
_MOMENTS = (
    f"SELECT {', '.join(_ORDER)}, c.row, CASE WHEN c.time IS NOT NULL THEN 'time' WHEN d.date IS NOT NULL THEN 'date'"
    " ELSE 'file' END FROM documents d JOIN chunks c ON c.document = d.id"
)


class HistoryTables:
    """The part of a SQLite store that knows of links and of time."""

    _db: apsw.Connection

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _allowed(self, filters: Filters) -> frozenset[int] | None: ...
        def writing(self) -> AbstractContextManager[None]: ...  # noqa: D102

    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        """Replaces the edges that a document makes; they go with it."""
        with self.writing():
            self._db.execute("DELETE FROM edges WHERE document = (SELECT id FROM documents WHERE path = ?)", (path,))
            if not edges:
                return
            found = self._db.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
            if not found:
                return
            self._db.executemany(
                "INSERT INTO edges VALUES (?,?,?,?,?,?,?,?)",
                [
                    (
                        found[0], e.kind, e.start.name, e.start.anchor, link_key(e.start.name),
                        e.end.name, e.end.anchor, link_key(e.end.name),
                    )
                    for e in edges
                ],
            )  # fmt: skip

    def edges_of(self, path: str) -> list[Edge]:
        """The edges that a document makes, as they were put."""
        rows = self._all(
            "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor FROM edges e"
            " JOIN documents d ON d.id = e.document WHERE d.path = ? ORDER BY e.rowid",
            (path,),
        )
        return [Edge(r[0], End(r[1], r[2]), End(r[3], r[4])) for r in rows]

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose start may be meant by one of these keys (see `link_key`), in the order they were made."""
        return self._edges("start_key", keys)

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose end may be meant by one of these keys, in the order they were made."""
        return self._edges("end_key", keys)

    def _edges(self, column: str, keys: Sequence[str]) -> list[Edge]:
        out: list[Edge] = []
        for part in in_parts(list(dict.fromkeys(keys))):
            marks = ",".join("?" * len(part))
            rows = self._all(
                "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor, d.path FROM edges e"
                f" JOIN documents d ON d.id = e.document WHERE e.{column} IN ({marks}) ORDER BY d.path, e.rowid",
                part,
            )
            out += [Edge(r[0], End(r[1], r[2]), End(r[3], r[4])) for r in rows]
        return out

    def paths_named(self, key: str) -> list[str]:
        """Paths of the documents that a name may mean (see `link_key`), the shortest first."""
        rows = self._all("SELECT path FROM documents WHERE name = ?", (key,))
        if not rows and UUID.match(key):
            rows = self._all("SELECT path FROM documents WHERE name LIKE '%' || ?", (key,))
        return sorted((r[0] for r in rows), key=lambda p: (p.count("/"), p))

    def path_with(self, content: str) -> tuple[str, str] | None:
        """Where content is now, by its hash: path and chunk id, or path and nothing for a whole document."""
        rows = self._all(
            "SELECT d.path, c.id FROM chunks c JOIN documents d ON d.id = c.document WHERE c.content_hash = ?"
            " UNION SELECT path, '' FROM documents WHERE digest = ? ORDER BY 1 LIMIT 1",
            (hash_kept(content), content),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        """When each of these files was last changed, as its file system says."""
        out: dict[str, int] = {}
        for part in in_parts(paths):
            marks = ",".join("?" * len(part))
            out |= dict(self._all(f"SELECT path, mtime_ns FROM documents WHERE path IN ({marks})", part))
        return out

    def moments(
        self, filters: Filters, *, limit: int, after: Moment | None = None, before: Moment | None = None
    ) -> list[Moment]:
        """The next passages in time after a moment, or the last before it, in order of time, path and line.

        A passage counts by its own time, else by its note's day, else by its file's last change.
        """
        where: list[str] = ["1"]
        values: list[Any] = []
        allowed = self._allowed(filters)
        if allowed is not None:
            where.append("c.row IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(allowed)))
        for sign, bound in ((">", after), ("<", before)):
            if bound is not None:
                where.append(f"({', '.join(_ORDER)}) {sign} (?, ?, ?, ?)")
                values += [bound.when, bound.path, bound.line, bound.id]
        back = after is None
        order = ", ".join(o + (" DESC" if back else "") for o in _ORDER)
        rows = self._all(f"{_MOMENTS} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?", (*values, limit))
        found = [Moment(*r) for r in rows]
        return found[::-1] if back else found

    def moment(self, row: int) -> Moment | None:
        """Where one passage stands in time."""
        found = self._all(f"{_MOMENTS} WHERE c.row = ?", (row,))
        return Moment(*found[0]) if found else None
