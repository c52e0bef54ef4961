"""Chunks by row, and which rows pass a filter: what every part of the store reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from notewell.store.rows import CHUNK, chunk_of, path_matcher
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.read_cache import AT_ONCE
from notewell.store.values import Scored, columns
from notewell.types import Chunk, Filters

_MOST_FILTERS = 16


class AllowedRows(frozenset[int]):
    """Rows that pass a filter, as a set and as a sorted array."""

    @cached_property
    def rows(self) -> Any:
        """The rows in ascending order."""
        import numpy as np  # noqa: PLC0415

        return np.sort(np.fromiter(self, dtype=np.int64, count=len(self)))


class ChunkReader:
    """Reads chunks, and remembers the rows that recent filters allow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._all, self._all_in = connection.all, connection.all_in
        self._allowed: dict[Filters, tuple[tuple[Any, ...], AllowedRows]] = {}

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        cache = self._connection.cache() if 0 < len(rows) <= AT_ONCE else None
        if cache is None:
            return {c.row: c for c in self.read(rows)}
        known, wanted = cache.chunks, sorted(set(rows))
        found = {
            row: chunk
            for row, chunk in zip(wanted, map(known.get, wanted), strict=True)
            if chunk is not None
        }
        if len(found) < len(wanted):
            known.update((c.row, c) for c in self.read([row for row in wanted if row not in found]))
            found = {row: known[row] for row in wanted if row in known}
        return found

    def read(self, rows: Sequence[int]) -> list[Chunk]:
        """Chunks by row, from the tables."""
        sql = (
            f"SELECT {CHUNK} FROM chunks c JOIN documents d ON d.id = c.document WHERE c.row IN "
            "({})"
        )
        return [chunk_of(found) for found in self._all_in(sql, rows)]

    def allowed(self, filters: Filters) -> AllowedRows | None:
        """Rows that pass the filters, or None for all; an undated file counts by its last
        change.
        """
        if not filters:
            return None
        if self._connection.is_writing():  # uncommitted rows are not remembered for others
            return AllowedRows(self._passing(filters))
        stamp = self._connection.values("generation", "documents")
        known = self._allowed.get(filters)
        if known is None or known[0] != stamp:
            if len(self._allowed) >= _MOST_FILTERS:
                self._allowed.clear()
            known = self._allowed[filters] = (stamp, AllowedRows(self._passing(filters)))
        return known[1]

    def only(self, filters: Filters) -> tuple[str, tuple[Any, ...]]:
        """The filters as a condition on the rows of `chunks c`, with its values; "" for all."""
        allowed = self.allowed(filters)
        if allowed is None:
            return "", ()
        return " WHERE c.row IN (SELECT value FROM json_each(?))", (json.dumps(sorted(allowed)),)

    def _passing(self, filters: Filters) -> list[int]:
        day = (
            "coalesce(substr(c.time, 1, 10), d.date, date(d.mtime_ns / 1000000000, 'unixepoch', "
            "'localtime'))"
        )
        conditions: dict[str, Any] = {
            "d.source = ?": filters.source,
            "c.origin = ?": filters.origin,
            f"{day} >= ?": filters.since and filters.since.isoformat(),
            f"{day} <= ?": filters.until and filters.until.isoformat(),
            # An undated chunk stays: nobody knows when it was written.
            "coalesce(substr(c.time, 1, 10), d.date, '') <= ?": filters.as_of
            and filters.as_of.isoformat(),
        }
        if filters.path:
            matches = path_matcher(filters.path)
            found = [n for n, path in self._all("SELECT id, path FROM documents") if matches(path)]
            conditions["d.id IN (SELECT value FROM json_each(?))"] = json.dumps(found)
        conditions = {where: value for where, value in conditions.items() if value}
        sql = (
            "SELECT c.row FROM documents d JOIN chunks c ON c.document = d.id WHERE "
            f"{' AND '.join(conditions) or '1'}"
        )
        return [r[0] for r in self._all(sql, list(conditions.values()))]

    def first(self, found: Sequence[Scored], limit: int) -> Sequence[Scored]:
        """The first `limit`; of those that tie with the last, the ones with the smallest ids, not
        the oldest rows.
        """
        scores = columns(found).scores
        if len(scores) <= limit or scores[limit - 1] > scores[limit]:
            return found[:limit]
        border = found[limit - 1].score
        above = [s for s in found if s.score > border]
        tied = [s for s in found if s.score == border]
        ids: dict[int, str] = dict(
            self._all_in("SELECT row, id FROM chunks WHERE row IN ({})", [s.row for s in tied])
        )
        tied.sort(key=lambda s: ids.get(s.row, ""))
        return [*above, *tied[: limit - len(above)]]
