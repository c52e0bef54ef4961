"""Reading chunks from PostgreSQL: by row, by filter, and the best of those that a statement
scores.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from notewell.store.lazy import LazyModule
from notewell.store.postgres.connection import Connection
from notewell.store.rows import CHUNK, chunk_of, path_matcher
from notewell.store.values import Scored
from notewell.types import Chunk, Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[Any]
else:
    np = LazyModule("numpy")

_FILTERED = 1000
_TIED = 2
CHUNKS = "chunks c JOIN documents d ON d.workspace = $w AND d.id = c.document AND c.workspace = $w"
_DAY = "coalesce(substr(c.time, 1, 10), d.date, substr(d.changed, 1, 10))"
Condition = tuple[str, dict[str, Any]]


class ChunkReader:
    """Reads chunks, and knows which of them pass a filter."""

    def __init__(self, connection: Connection) -> None:
        self._db, self._all = connection, connection.all

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by row, in ascending order."""
        if (scope := self._db.scope()) and scope.asked_rows.issuperset(rows):
            return {row: chunk_of(scope.rows[row]) for row in sorted(rows) if row in scope.rows}
        found = self.where("c.row = ANY(%s::bigint[])", list(rows)) if rows else []
        return {c.row: c for c in sorted(found, key=lambda c: c.row)}

    def where(self, condition: str, *values: Any) -> list[Chunk]:
        """Chunks `c` of documents `d` that satisfy a condition."""
        return [
            chunk_of(r)
            for r in self._all(f"SELECT {CHUNK} FROM {CHUNKS} WHERE {condition}", values)
        ]

    def passing(self, filters: Filters) -> Condition:
        """What a chunk `c` and its document `d` must satisfy to pass, with the values; "" if all
        do.

        An undated chunk counts by the last change of its file.
        """
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
        if filters.as_of:  # an undated chunk passes: nobody knows when it was written
            where.append("coalesce(substr(c.time, 1, 10), d.date, '') <= %(as_of)s")
            values["as_of"] = filters.as_of.isoformat()
        if filters.path:
            where.append("c.document = ANY(%(documents)s::bigint[])")
            values["documents"] = self._documents_at(filters.path)
        return " AND ".join(where), values

    def _documents_at(self, pattern: str) -> list[int]:
        """The documents that a path filter matches; only paths that start like the pattern are
        looked at.
        """
        scope = self._db.scope()
        if scope is not None and ("at", pattern) in scope.found:
            return list(scope.found["at", pattern])
        matches = path_matcher(pattern)
        plain = unicodedata.normalize("NFC", pattern.removeprefix("./").rstrip("/"))
        start = "" if plain == "." else re.split(r"[*?\[]", plain)[0]
        found = self._all(
            "SELECT id, path FROM documents WHERE workspace = $w AND starts_with(path, %s)",
            (start,),
        )
        numbers = [number for number, path in found if matches(path)]
        if scope is not None:
            scope.found["at", pattern] = numbers
        return numbers

    def first(self, rows: Column, scores: Column, limit: int, filters: Filters) -> list[Scored]:
        """The first `limit` of these rows by score, then by row, that pass; of a tie at the limit,
        the smallest ids.
        """
        where, values = self.passing(filters)
        if not where and len(rows) > limit:
            there = scores >= np.partition(scores, -limit)[-limit]
            rows, scores = rows[there], scores[there]
        order = np.lexsort((rows, -scores))
        found = [
            Scored(*one) for one in zip(rows[order].tolist(), scores[order].tolist(), strict=True)
        ]
        return self.limited(self._passing(found, limit, where, values) if where else found, limit)

    def _passing(
        self, found: list[Scored], limit: int, where: str, values: Mapping[str, Any]
    ) -> list[Scored]:
        """Those that pass, as many as are needed, asked for in growing parts."""
        sql = f"SELECT c.row FROM {CHUNKS} WHERE c.row = ANY(%(rows)s::bigint[]) AND {where}"
        passing: list[Scored] = []
        at, step = 0, _FILTERED
        while at < len(found) and (
            len(passing) < limit or passing[limit - 1].score == found[at].score
        ):
            some = found[at : at + step]
            rows = {row for (row,) in self._all(sql, {**values, "rows": [one.row for one in some]})}
            passing += [one for one in some if one.row in rows]
            at, step = at + step, 8 * step
        return passing

    def limited(self, found: list[Scored], limit: int) -> list[Scored]:
        """The first `limit` of what is in order by score and row; of a tie at the limit, the
        smallest ids.
        """
        if len(found) <= limit or found[limit - 1].score > found[limit].score:
            return found[:limit]
        last = found[limit - 1].score
        above, tied = (
            [one for one in found if one.score > last],
            [one for one in found if one.score == last],
        )
        if self._db.scope() and len(above) + len(tied) <= _TIED * limit:
            # a search reads the chunks anyway, and breaks the tie by their ids
            return [*above, *tied]
        taken = self._smallest_ids([one.row for one in tied], limit - len(above))
        return [*above, *(one for one in tied if one.row in taken)]

    def _smallest_ids(self, rows: list[int], count: int) -> set[int]:
        sql = (
            "SELECT row FROM chunks WHERE workspace = $w AND row = ANY(%s::bigint[]) ORDER BY "
            "id LIMIT %s"
        )
        return {row for (row,) in self._all(sql, (rows, count))}

    def best(self, sql: str, score: str, values: Mapping[str, Any], limit: int) -> list[Scored]:
        """The first `limit` rows of a statement by score, then by row; of a tie at the limit, the
        smallest ids.
        """
        ordered = f"{sql} ORDER BY {score} DESC"
        # The server finds the first few much faster than it sorts all of them, which only a tie at
        # the limit needs.
        found = self._all(f"{ordered}, 1 LIMIT %(most)s", {**values, "most": limit + 1})
        if len(found) <= limit or found[limit - 1][1] > found[limit][1]:
            return [Scored(row, score) for row, score in found[:limit]]
        found = self._all(
            f"{ordered} FETCH FIRST %(most)s ROWS WITH TIES", {**values, "most": limit}
        )
        last = found[-1][1]
        tied = [row for row, score in found if score == last]
        taken = self._smallest_ids(tied, limit - len(found) + len(tied))
        best = [Scored(row, score) for row, score in found if score > last or row in taken]
        return sorted(best, key=lambda s: (-s.score, s.row))
