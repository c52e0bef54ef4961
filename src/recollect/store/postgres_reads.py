"""Reading chunks from PostgreSQL: by row, id, path, name and day, and which of them pass a filter."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.ports import FieldTerms, Scored
from recollect.store.rows import CHUNK, chunk_of, path_matcher
from recollect.types import Chunk, Filters

_DAY = "coalesce(substr(c.time, 1, 10), d.date, substr(d.changed, 1, 10))"
Passing = tuple[str, dict[str, Any]]


class ChunkTables:
    """The part of a PostgreSQL store that finds and reads chunks."""

    _w: int

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...

    @property
    def _join(self) -> str:
        """Chunks of this workspace beside their documents."""
        return f"chunks c JOIN documents d ON d.workspace = {self._w} AND d.id = c.document AND c.workspace = {self._w}"

    def _passing(self, filters: Filters) -> Passing | None:
        """What a chunk `c` and its document `d` must satisfy, or None; an undated file counts by its last change."""
        if not filters:
            return None
        where: list[str] = []
        values: dict[str, Any] = {}
        for column, wanted in (("d.source", filters.source), ("c.origin", filters.origin)):
            if wanted:
                where.append(f"{column} = %({column[2:]})s")
                values[column[2:]] = wanted
        for sign, name, bound in ((">=", "since", filters.since), ("<=", "until", filters.until)):
            if bound:
                where.append(f"{_DAY} {sign} %({name})s")
                values[name] = bound.isoformat()
        if filters.as_of:  # what has no date stays: when it was written is not known
            where.append("coalesce(substr(c.time, 1, 10), d.date, '') <= %(as_of)s")
            values["as_of"] = filters.as_of.isoformat()
        if filters.path:
            where.append("c.document = ANY(%(documents)s::bigint[])")
            values["documents"] = self._documents_at(filters.path)
        return " AND ".join(where), values

    def _documents_at(self, pattern: str) -> list[int]:
        """Documents that a path filter means; the part before its first wild card narrows what is looked at."""
        matches = path_matcher(pattern)
        plain = unicodedata.normalize("NFC", pattern.removeprefix("./").rstrip("/"))
        begin = "" if plain == "." else re.split(r"[*?\[]", plain)[0]
        found = self._all(
            f"SELECT id, path FROM documents WHERE workspace = {self._w} AND starts_with(path, %s)", (begin,)
        )
        return [number for number, path in found if matches(path)]

    def _allowed(self, filters: Filters) -> Any:
        """Whether the chunk of a row of `copies b` or `replaced b` passes, as SQL with its values."""
        passing = self._passing(filters)
        return passing and (
            f" AND EXISTS (SELECT 1 FROM {self._join} WHERE c.row = b.row AND {passing[0]})",
            passing[1],
        )

    def _best(self, sql: str, by: str, values: Mapping[str, Any], limit: int) -> list[Scored]:
        """The first `limit` of a question's rows and scores, equal ones by row; who of those that tie at the border
        gets in is decided by id.
        """
        order = f"{sql} ORDER BY {by} DESC"
        # A heap of the first few is much cheaper than a sort of all, which only a tie needs.
        found = self._all(f"{order}, 1 LIMIT %(most)s", {**values, "most": limit + 1})
        if len(found) <= limit or found[limit - 1][1] > found[limit][1]:
            return [Scored(row, score) for row, score in found[:limit]]
        found = self._all(f"{order} FETCH FIRST %(most)s ROWS WITH TIES", {**values, "most": limit})
        border = found[-1][1]
        tied = [row for row, score in found if score == border]
        ids = f"SELECT row, id FROM chunks WHERE workspace = {self._w} AND row = ANY(%s::bigint[]) ORDER BY id"
        kept = {row for row, _ in self._all(ids, (tied,))[: limit - len(found) + len(tied)]}
        return sorted(
            (Scored(row, score) for row, score in found if score > border or row in kept),
            key=lambda s: (-s.score, s.row),
        )

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file (score 2) or by day (score 1, a longer span less)."""
        found: dict[int, float] = {}
        passing = self._passing(filters)
        only, given = (f" AND {passing[0]}", passing[1]) if passing else ("", {})

        def add(where: str, score: float, **values: Any) -> None:
            sql = f"SELECT c.row FROM {self._join} WHERE {where}{only} ORDER BY d.path, c.start_line LIMIT %(limit)s"
            for (row,) in self._all(sql, {**given, **values, "limit": limit}):
                found[row] = max(found.get(row, 0.0), score)

        for name in names:
            add("d.name = %(name)s", 2.0, name=name)
        for start, end in days:
            length = (dt.date.fromisoformat(end) - dt.date.fromisoformat(start)).days + 1
            span = {"start": start, "end": end}
            add("d.date BETWEEN %(start)s AND %(end)s AND c.time IS NULL", 1.0 / length**0.5, **span)
            add("c.time BETWEEN %(start)s AND %(end)s || 'T99'", 1.0 / length**0.5, **span)
        order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(row, score) for row, score in order[:limit]]

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Whole chunks by row."""
        if not rows:
            return {}
        found = {c.row: c for c in self._chunks_where("c.row = ANY(%s::bigint[])", (list(rows),))}
        return {row: found[row] for row in sorted(found)}

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        """Chunks whose id begins with a prefix, at most ten."""
        return self._chunks_where("c.id >= %s AND c.id < %s || chr(1114111) ORDER BY c.id LIMIT 10", (prefix, prefix))

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of a document in order of their lines."""
        return self._chunks_where("d.path = %s ORDER BY c.start_line, c.end_line, c.row", (path,))

    def _chunks_where(self, where: str, values: Sequence[Any]) -> list[Chunk]:
        found = self._all(
            f"SELECT {CHUNK} FROM {self._join} WHERE {where}",
            values,
        )
        return [chunk_of(r) for r in found]

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        """The indexed terms of chunks by row."""
        sql = f"SELECT row, head, body, exact FROM chunks WHERE workspace = {self._w} AND row = ANY(%s::bigint[])"
        return {r[0]: FieldTerms(r[1], r[2], r[3]) for r in self._all(sql, (list(rows),))} if rows else {}

    def says(self, line: str) -> bool:
        """Whether any passage holds a text as it is."""
        return bool(
            self._all(f"SELECT 1 FROM chunks WHERE workspace = {self._w} AND strpos(text, %s) > 0 LIMIT 1", (line,))
        )
