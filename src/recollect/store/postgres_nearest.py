"""The nearest vectors in PostgreSQL: exactly while a workspace is small, by its HNSW index once it has one.

The index brings candidates in half precision; their cosines are computed from what was stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError
from recollect.ports import Nearest, Scored, Vectors
from recollect.types import Filters

FEW = 20_000
SAMPLE = 2_000
Passing = tuple[str, dict[str, Any]]
_COSINE = "round(-(v.vector <#> %(vector)s) * 1e6)"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model as the database knows it; `indexed` once its HNSW index is whole."""

    number: int
    dim: int
    changed: int
    indexed: bool


class NearestTables:
    """The part of a PostgreSQL store that finds the nearest vectors."""

    _w: int

    if TYPE_CHECKING:

        def _together(self, *asked: tuple[str, Mapping[str, Any]]) -> list[list[tuple[Any, ...]]]: ...
        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _passing(self, filters: Filters) -> Passing | None: ...
        @property
        def _join(self) -> str: ...
        def _best(self, sql: str, by: str, values: Mapping[str, Any], limit: int) -> list[Scored]: ...

    def _model(self, name: str) -> KnownModel | None:
        found = self._all(
            "SELECT m.id, m.dim, m.changed, coalesce((SELECT i.indisvalid FROM pg_class c JOIN pg_index i"
            " ON i.indexrelid = c.oid WHERE c.relnamespace = 'recollect'::regnamespace"
            f" AND c.relname = 'vectors_hnsw_{self._w}_' || m.id), false)"
            f" FROM models m WHERE m.workspace = {self._w} AND m.name = %s",
            (name,),
        )
        return KnownModel(*found[0]) if found else None

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        """The best rows by cosine among those that have a vector of this model."""
        known = self._model(model)
        if known is None or not known.dim:
            return Nearest(())
        values: dict[str, Any] = {"vector": self._question(known, vector)}
        passing = self._passing(filters)
        spread = (self._spread(known), values)
        every, few = values | (passing[1] if passing else {}), False
        if known.indexed and passing:
            few = self._all(f"SELECT count(*) FROM (SELECT 1 FROM {self._join} WHERE {passing[0]} LIMIT {FEW + 1}) f",
                            passing[1])[0][0] <= FEW  # fmt: skip
        if limit > 0 and not few and (known.indexed or not passing):
            found, (told,) = self._together((self._quick(known, limit, passing), every), spread)
            rows = _certain(found, limit, wanted=known.indexed)
        else:
            rows, told = None, self._all(*spread)[0]
        if rows is None:
            rows = self._best(self._each(known, passing, few=few), "x", every, limit)
        mean, deviation, sampled, count = told
        count = sampled if sampled < SAMPLE else count
        return Nearest(tuple(rows), round((mean or 0) / 1e6, 6), round((deviation or 0) / 1e6, 6), count)

    def _each(self, model: KnownModel, passing: Passing | None, *, few: bool) -> str:
        """The cosine of every row, or of every row that passes; where those are `few`, only theirs are read."""
        mine = f"v.workspace = {self._w} AND v.model = {model.number}"
        if few and passing:
            return (
                f"SELECT c.row, v.x / 1e6 AS x FROM {self._join} CROSS JOIN LATERAL (SELECT {_COSINE} AS x"
                f" FROM vectors v WHERE {mine} AND v.content_hash = c.content_hash OFFSET 0) v WHERE {passing[0]}"
            )
        join = f"chunks c ON c.workspace = {self._w} AND c.content_hash = v.content_hash"
        if passing:
            join += f" JOIN documents d ON d.workspace = {self._w} AND d.id = c.document WHERE {passing[0]}"
        return (
            f"SELECT c.row, v.x / 1e6 AS x FROM (SELECT v.content_hash, {_COSINE} AS x FROM vectors v"
            f" WHERE {mine} OFFSET 0) v JOIN {join}"
        )

    def _quick(self, model: KnownModel, limit: int, passing: Passing | None) -> str:
        """The best vectors first and their rows after: less work than rows for all, where that is enough.

        A filter is asked for each vector as the index brings it, so that the index goes on until there are enough.
        """
        most = 2 * limit + 100
        cast = f"::halfvec({model.dim})" if model.indexed else ""
        rows = f"FROM {self._join} WHERE c.content_hash = v.content_hash" + (f" AND {passing[0]}" if passing else "")
        only = f" AND (SELECT true {rows} LIMIT 1)" if passing else ""
        return (
            f"WITH best AS MATERIALIZED (SELECT v.content_hash, {_COSINE} AS x FROM (SELECT v.content_hash, v.vector"
            f" FROM vectors v WHERE v.workspace = {self._w} AND v.model = {model.number}{only}"
            f" ORDER BY v.vector{cast} <#> %(vector)s{cast} LIMIT {most}) v)"
            f" SELECT c.row, v.x / 1e6, (SELECT CASE WHEN count(*) < {most} THEN '-infinity' ELSE min(x) / 1e6 END"
            f" FROM best) FROM best v CROSS JOIN LATERAL (SELECT c.row {rows} OFFSET 0) c ORDER BY 2 DESC, 1"
        )

    def _spread(self, model: KnownModel) -> str:
        """How cosines of a question spread, as a sample says: content hashes are as good as random."""
        return (
            f"SELECT avg(x), stddev_pop(x), count(*), (SELECT chunks FROM state WHERE workspace = {self._w})"
            f" FROM (SELECT {_COSINE} AS x FROM vectors v JOIN LATERAL (SELECT 1 FROM chunks c"
            f" WHERE c.workspace = {self._w} AND c.content_hash = v.content_hash) c ON true WHERE"
            f" v.workspace = {self._w} AND v.model = {model.number} ORDER BY v.content_hash LIMIT {SAMPLE}) sample"
        )

    def cosines(self, model: str, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector of this model."""
        known = self._model(model) if rows else None
        if known is None or not known.dim:
            return {}
        found = self._all(
            f"SELECT c.row, {_COSINE} FROM chunks c JOIN vectors v ON v.workspace = {self._w}"
            f" AND v.model = {known.number} AND v.content_hash = c.content_hash"
            f" WHERE c.workspace = {self._w} AND c.row = ANY(%(rows)s::bigint[])",
            {"vector": self._question(known, vector), "rows": [int(row) for row in rows]},
        )
        return {row: x / 1e6 for row, x in found}

    def _question(self, model: KnownModel, vector: Vectors) -> Vectors:
        if len(vector) != model.dim:
            raise StoreError(
                f"the question has {len(vector)} dimensions, the index {model.dim}",
                hint="a model changed under its name: recollect index --prune, then index again",
            )
        return vector


def _certain(found: Sequence[tuple[Any, ...]], limit: int, *, wanted: bool) -> list[Scored] | None:
    """The first `limit` where it is certain that no other row belongs among them; `wanted` takes what an index says."""
    last = found[limit - 1][1] if len(found) >= limit else None
    # An index may end before all were seen: fewer than asked for are not all of them.
    whole = not wanted and (not found or found[0][2] == float("-inf"))
    tied = len(found) > limit and last == found[limit][1]
    if tied or not (whole or (last is not None and (wanted or last > found[0][2]))):
        return None
    return [Scored(row, x) for row, x, _ in found[:limit]]
