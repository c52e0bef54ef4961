"""What notes say of one another and when, in PostgreSQL: edges as they were written, and passages in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.ports import Moment
from recollect.text.links import UUID, link_key
from recollect.types import Edge, End, Filters

_ORDER = ("coalesce(c.time, d.date, d.changed)", "d.path", "c.start_line", "c.id")


class PostgresHistory:
    """The part of a PostgreSQL store that knows of links and of time."""

    _w: int

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        def _passing(self, filters: Filters) -> tuple[str, dict[str, Any]] | None: ...
        @property
        def _join(self) -> str: ...

    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        """Replaces the edges that a document makes; they go with it."""

        def work() -> None:
            found = self._all(f"SELECT id FROM documents WHERE workspace = {self._w} AND path = %s", (path,))
            if not found:
                return
            self._run(f"DELETE FROM edges WHERE workspace = {self._w} AND document = %s", found[0])
            made = [
                (e.kind, e.start.name, e.start.anchor, link_key(e.start.name), e.end.name, e.end.anchor,
                 link_key(e.end.name))
                for e in edges
            ]  # fmt: skip
            if made:
                columns = "kind, start_name, start_anchor, start_key, end_name, end_anchor, end_key"
                self._run(
                    f"INSERT INTO edges (workspace, document, {columns}) SELECT {self._w}, %s, {columns} FROM"
                    f" unnest({', '.join(['%s::text[]'] * 7)}) WITH ORDINALITY u ({columns}, n) ORDER BY n",
                    (found[0][0], *(list(column) for column in zip(*made, strict=True))),
                )

        self._written(work)

    def edges_of(self, path: str) -> list[Edge]:
        """The edges that a document makes, as they were put."""
        rows = self._all(
            "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor FROM edges e JOIN documents d"
            f" ON d.workspace = {self._w} AND d.id = e.document WHERE e.workspace = {self._w} AND d.path = %s"
            " ORDER BY e.number",
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
        rows = self._all(
            "SELECT e.kind, e.start_name, e.start_anchor, e.end_name, e.end_anchor FROM edges e JOIN documents d"
            f" ON d.workspace = {self._w} AND d.id = e.document WHERE e.workspace = {self._w}"
            f" AND e.{column} = ANY(%s::text[]) ORDER BY d.path, e.number",
            (list(keys),),
        )
        return [Edge(r[0], End(r[1], r[2]), End(r[3], r[4])) for r in rows]

    def paths_named(self, key: str) -> list[str]:
        """Paths of the documents that a name may mean (see `link_key`), the shortest first."""
        rows = self._all(f"SELECT path FROM documents WHERE workspace = {self._w} AND name = %s", (key,))
        if not rows and UUID.match(key):
            ends = "right(name, length(%s)) = %s"
            rows = self._all(f"SELECT path FROM documents WHERE workspace = {self._w} AND {ends}", (key, key))
        return sorted((r[0] for r in rows), key=lambda p: (p.count("/"), p))

    def path_with(self, content: str) -> tuple[str, str] | None:
        """Where content is now, by its hash: path and chunk id, or path and nothing for a whole document."""
        rows = self._all(
            f"SELECT d.path, c.id FROM {self._join} WHERE c.content_hash = %s UNION"
            f" SELECT path, '' FROM documents WHERE workspace = {self._w} AND digest = %s ORDER BY 1, 2 LIMIT 1",
            (content, content),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        """When each of these files was last changed, as its file system says."""
        sql = f"SELECT path, mtime_ns FROM documents WHERE workspace = {self._w} AND path = ANY(%s::text[])"
        return dict(self._all(sql, (list(paths),)))

    @property
    def _moments(self) -> str:
        return (
            f"SELECT {', '.join(_ORDER)}, c.row, CASE WHEN c.time IS NOT NULL THEN 'time' WHEN d.date IS NOT NULL"
            f" THEN 'date' ELSE 'file' END FROM {self._join}"
        )

    def moments(
        self, filters: Filters, *, limit: int, after: Moment | None = None, before: Moment | None = None
    ) -> list[Moment]:
        """The next passages in time after a moment, or the last before it, in order of time, path and line.

        A passage counts by its own time, else by its note's day, else by its file's last change.
        """
        where = ["c.workspace = d.workspace"]
        values: dict[str, Any] = {"limit": None if limit < 0 else limit}
        if passing := self._passing(filters):
            where.append(passing[0])
            values |= passing[1]
        for sign, bound in ((">", after), ("<", before)):
            if bound is not None:
                key = "after" if bound is after else "before"
                where.append(f"({', '.join(_ORDER)}) {sign} ({', '.join(f'%({key}{n})s' for n in range(4))})")
                values |= {f"{key}{n}": v for n, v in enumerate((bound.when, bound.path, bound.line, bound.id))}
        back = after is None
        order = ", ".join(o + (" DESC" if back else "") for o in _ORDER)
        rows = self._all(f"{self._moments} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT %(limit)s", values)
        found = [Moment(*r) for r in rows]
        return found[::-1] if back else found

    def moment(self, row: int) -> Moment | None:
        """Where one passage stands in time."""
        found = self._all(f"{self._moments} WHERE c.row = %s", (row,))
        return Moment(*found[0]) if found else None
