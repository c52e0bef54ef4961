"""Vectors in PostgreSQL: pgvector, by content hash and model.

They are stored as they came, in single precision. A small workspace is scanned exactly. A large one
has an HNSW index over its own vectors, in half precision, which finds candidates whose cosines are
then computed exactly. The index is built after a load, next to readers and writers, by
`Shared.settle`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence

from notewell.errors import StoreError
from notewell.store.postgres.chunks import CHUNKS, ChunkReader
from notewell.store.postgres.connection import Connection, Rows, unnest, writes
from notewell.store.postgres.moment import INDEXED, Model
from notewell.store.values import Nearest, Scored, Windows
from notewell.types import Filters
from notewell.types import Vectors as Floats

FEW = 20_000
_NOTHING = "SELECT NULL::bigint, NULL::float8, NULL::float8 WHERE false"
SAMPLE = 2_000
_LARGE = 4 * SAMPLE
_MODEL_CHANGED = "a model changed under its name: notewell index --prune, then index again"
COSINE_AT, WINDOWS_AT = 20, 21  # where a row that was read ahead has them
COSINE = "round(-(v.vector <#> %(vector)s) * 1e6)"  # in millionths: scores have six places
MODEL = "(SELECT id FROM models WHERE workspace = $w AND name = %(model)s)"
_IN_NO_CHUNK = (
    "NOT EXISTS (SELECT 1 FROM chunks c WHERE c.workspace = $w AND c.content_hash = v.content_hash)"
)
_UNUSED = (
    "FROM vectors v JOIN models m ON m.workspace = $w AND m.id = v.model"
    " LEFT JOIN windows w ON w.workspace = $w"
    " AND w.model = v.model AND w.content_hash = v.content_hash"
    f" WHERE v.workspace = $w AND {_IN_NO_CHUNK}"
)
_KEPT_BYTES = "m.dim * 4 + coalesce(length(w.codes), 0)"


def _lacks(table: str) -> str:
    return (
        f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.workspace = $w AND t.model = {MODEL}"
        " AND t.content_hash = c.content_hash)"
    )


# The text of each content hash is embedded once: notes before sessions, the newest first.
MISSING = (
    f"SELECT max(c.row), c.content_hash FROM {CHUNKS}"
    f" WHERE {_lacks('vectors')} AND {_lacks('refused')}"
    " GROUP BY c.content_hash"
    " ORDER BY bool_and(d.source = 'sessions'), max(coalesce(d.date, '~')) DESC, 1 DESC"
)


class Vectors:
    """The part of a PostgreSQL store that holds vectors and finds chunks by them."""

    def __init__(self, connection: Connection, chunks: ChunkReader) -> None:
        self._db, self._chunks = connection, chunks
        self._missing: dict[str, tuple[object, list[int]]] = {}

    def by_hash(self, model: str, hashes: Sequence[str]) -> dict[str, Floats]:
        import numpy as np  # noqa: PLC0415

        found = self._db.all(
            "SELECT content_hash, vector_send(vector) FROM vectors"
            f" WHERE workspace = $w AND model = {MODEL}"
            " AND content_hash = ANY(%(hashes)s::text[])",
            {"model": model, "hashes": list(hashes)},
        )
        return {
            key: np.frombuffer(data, dtype=">f4", offset=4).astype(np.float32)
            for key, data in found
        }

    def pack(self) -> bool:
        """Does nothing: the server stores vectors as it reads them."""
        return False

    def windows(self, model: str, rows: Sequence[int]) -> dict[int, bytes]:
        scope = self._db.scope()
        if scope and scope.asked[::2] == (model, True) and scope.asked_rows.issuperset(rows):
            read = ((row, scope.rows[row][WINDOWS_AT]) for row in rows if row in scope.rows)
            return {row: codes for row, codes in read if codes is not None}
        own = (
            f"FROM windows w WHERE w.workspace = $w AND w.model = {MODEL} AND w.content_hash = "
            "c.content_hash"
        )
        # one by one: a join would read all windows where the planner expects few
        found = self._db.all(
            "SELECT c.row, w.codes FROM chunks c"
            f" CROSS JOIN LATERAL (SELECT w.codes {own} OFFSET 0) w"
            " WHERE c.workspace = $w AND c.row = ANY(%(rows)s::bigint[])",
            {"model": model, "rows": [int(row) for row in rows]},
        )
        return dict(found)

    def nearest_windows(self, model: str, vector: Floats, rows: Sequence[int]) -> Windows:
        from notewell.store import window_codes  # noqa: PLC0415 - it loads numpy

        found = self.windows(model, rows)
        return window_codes.nearest([found.get(row, b"") for row in rows], vector)

    def put_vectors(
        self,
        model: str,
        vectors: Mapping[str, Floats],
        *,
        windows: Mapping[str, bytes] | None = None,
    ) -> None:
        """Stores vectors by content hash; several processes may do so at once."""
        if vectors:
            self._db.write(lambda: self._put(model, vectors, windows or {}), shared=True)

    def _put(self, model: str, vectors: Mapping[str, Floats], windows: Mapping[str, bytes]) -> None:
        dim = len(next(iter(vectors.values())))
        number, known = self.number_of(model, dim)
        if known != dim or any(len(vector) != dim for vector in vectors.values()):
            raise StoreError(
                f"{model} returned {dim} dimensions, its vectors have {known}", hint=_MODEL_CHANGED
            )
        # in the same order for all, so that two writers of the same never deadlock
        keys = sorted(vectors)
        self._db.run(
            "INSERT INTO vectors (workspace, model, content_hash, vector)"
            f" SELECT $w, {number}, u.key, u.vector"
            " FROM unnest(%s::text[], %b::vector[]) u (key, vector)"
            " ON CONFLICT (workspace, model, content_hash) DO UPDATE SET vector = excluded.vector",
            (keys, [vectors[key] for key in keys]),
        )
        self._put_windows(number, {key: windows.get(key) for key in keys})
        self._db.run(
            "INSERT INTO unjudged SELECT $w, row FROM chunks WHERE workspace = $w"
            " AND content_hash = ANY(%s::text[]) ORDER BY row ON CONFLICT DO NOTHING",
            (keys,),
        )
        self._done(model, number, keys)
        self._db.grew("vectors", len(keys))

    def _put_windows(self, number: int, windows: Mapping[str, bytes | None]) -> None:
        none = [key for key, codes in windows.items() if codes is None]
        gone = (
            f"DELETE FROM windows WHERE workspace = $w AND model = {number} AND content_hash = "
            "ANY(%s::text[])"
        )
        self._db.run(gone, (none,))
        if some := [(key, codes) for key, codes in windows.items() if codes is not None]:
            source, values = unnest("text bytea", some)
            self._db.run(
                "INSERT INTO windows (workspace, model, content_hash, codes)"
                f" SELECT $w, {number}, * FROM {source}"
                " ON CONFLICT (workspace, model, content_hash)"
                " DO UPDATE SET codes = excluded.codes",
                values,
            )

    def _done(self, model: str, number: int, keys: list[str]) -> None:
        """Ends the claims on texts that were embedded or refused, and counts the change."""
        mine = f"workspace = $w AND model = {number}"
        self._db.run(
            f"DELETE FROM pending WHERE {mine} AND content_hash = ANY(%s::text[])", (keys,)
        )
        self._count_change(model)

    def _count_change(self, model: str) -> None:
        """Counts a change of a model's vectors; the count of one that was pruned and comes back is
        never used again.
        """
        self._db.count_change()
        self._db.run(
            "UPDATE models SET changed = 1 + greatest(changed,"
            " (SELECT generation FROM state WHERE workspace = $w))"
            " WHERE workspace = $w AND name = %s",
            (model,),
        )

    def number_of(self, name: str, dim: int = 0) -> tuple[int, int]:
        """The number of a model, which may be new, and its dimensions (0: no vector yet); inside a
        transaction.
        """
        find = "SELECT id, dim FROM models WHERE workspace = $w AND name = %s"
        found = self._db.all(find, (name,))
        if not found or (dim and not found[0][1]):
            self._db.run(
                "INSERT INTO models (workspace, name, dim) VALUES ($w, %s, %s)"
                " ON CONFLICT (workspace, name)"
                " DO UPDATE SET dim = excluded.dim WHERE models.dim = 0",
                (name, dim),
            )
            found = self._db.all(find, (name,))
        return found[0]

    def missing(self, model: str) -> list[int]:
        """One row for every text without a vector of this model, notes before sessions, the newest
        first.
        """
        if self._db.is_writing():  # what this transaction changed is not counted yet
            return [row for row, _ in self._db.all(MISSING, {"model": model})]
        moment = self._db.moment()
        stamp = moment.moved, moment.models.get(model)
        if model not in self._missing or self._missing[model][0] != stamp:
            rows = [row for row, _ in self._db.all(MISSING, {"model": model})]
            self._missing[model] = (stamp, rows)
        return self._missing[model][1]

    def coverage(self, model: str) -> tuple[int, int]:
        lacking = f"count(*) FILTER (WHERE {_lacks('vectors')})"
        sql = f"SELECT count(*) - {lacking}, count(*) FROM chunks c WHERE c.workspace = $w"
        return self._db.all(sql, {"model": model})[0]

    def dims(self) -> dict[str, int]:
        return {name: model.dim for name, model in self._db.moment().models.items() if model.dim}

    def models(self) -> list[tuple[str, int, int]]:
        return self._db.all(
            "SELECT m.name, m.dim,"
            " (SELECT count(*) FROM vectors v WHERE v.workspace = $w AND v.model = m.id)"
            " FROM models m WHERE m.workspace = $w ORDER BY m.name"
        )

    @writes
    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        number, _ = self.number_of(model)
        source, values = unnest("text text", sorted(reasons.items()))
        self._db.run(
            f"INSERT INTO refused SELECT $w, {number}, * FROM {source}"
            " ON CONFLICT (workspace, model, content_hash) DO UPDATE SET reason = excluded.reason",
            values,
        )
        self._done(model, number, list(reasons))

    @writes
    def forgive(self, model: str) -> None:
        self._count_change(model)
        self._db.run(
            f"DELETE FROM refused WHERE workspace = $w AND model = {MODEL}", {"model": model}
        )

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        return self._db.all(
            f"SELECT d.path, c.start_line, r.reason FROM {CHUNKS}"
            " JOIN refused r ON r.workspace = $w AND r.content_hash = c.content_hash"
            f" WHERE r.model = {MODEL} ORDER BY d.path, c.start_line",
            {"model": model},
        )

    def idle(self) -> tuple[int, int]:
        rows = self._db.all(f"SELECT count(*), coalesce(sum({_KEPT_BYTES}), 0) {_UNUSED}")
        return rows[0][0], int(rows[0][1])

    def trim(self, most_bytes: int) -> int:
        if self.idle()[1] <= most_bytes:
            return 0
        # One is dropped if it and all that are newer do not fit.
        old = (
            f"SELECT v.model, v.content_hash, sum({_KEPT_BYTES}) OVER (ORDER BY v.number DESC) "
            f"AS bytes {_UNUSED}"
        )
        sql = (
            f"DELETE FROM vectors g USING ({old}) old"
            " WHERE g.workspace = $w AND g.model = old.model"
            " AND g.content_hash = old.content_hash AND old.bytes > %s"
        )
        return self._db.write(lambda: self._db.run(sql, (most_bytes,)))

    def prune(self, keep: Iterable[str]) -> int:
        """Drops vectors of all models but these, and of text that is in no document now, and frees
        their space.
        """
        gone, models = self._prune(sorted(set(keep)))
        if gone and self._db.vacuum(["vectors", "windows"]):
            with contextlib.suppress(StoreError), self._db.borrowed() as raw:
                for number in models:
                    raw.execute(
                        "DROP INDEX CONCURRENTLY IF EXISTS "
                        f"vectors_hnsw_{self._db.workspace}_{number}"
                    )
        return gone

    @writes
    def _prune(self, keep: list[str]) -> tuple[int, list[int]]:
        others = self._db.all(
            "SELECT id FROM models WHERE workspace = $w AND name != ALL(%s::text[])", (keep,)
        )
        models = [number for (number,) in others]
        gone = self.drop_unused()
        for table, column in (
            ("vectors", "model"),
            ("refused", "model"),
            ("pending", "model"),
            ("models", "id"),
        ):
            done = self._db.run(
                f"DELETE FROM {table} WHERE workspace = $w AND {column} = ANY(%s::int[])", (models,)
            )
            gone += done if table == "vectors" else 0
        return gone, models

    def drop_unused(self) -> int:
        """Drops vectors of text that is in no document now; inside a transaction."""
        self._db.count_change()
        return self._db.run(f"DELETE FROM vectors v WHERE v.workspace = $w AND {_IN_NO_CHUNK}")

    def audit(self) -> list[str]:
        joined = (
            "vectors v JOIN models m ON m.workspace = $w AND m.id = v.model WHERE v.workspace = $w"
        )
        broken = self._db.all(f"SELECT 1 FROM {joined} AND vector_dims(v.vector) != m.dim LIMIT 1")
        return [f"the index {self._db.name} has broken vectors"] if broken else []

    def model(self, name: str) -> Model | None:
        """A model by its name."""
        return self._db.moment().models.get(name)

    def asked(self, name: str, vector: Floats) -> Model | None:
        """A model that has vectors; StoreError if a question does not have their dimensions."""
        known = self.model(name)
        if known is None or not known.dim:
            return None
        if len(vector) != known.dim:
            raise StoreError(
                f"the question has {len(vector)} dimensions, the index {known.dim}",
                hint=_MODEL_CHANGED,
            )
        return known

    def indexed(self) -> list[str]:
        """The models that have a complete HNSW index."""
        rows = self._db.all(
            f"SELECT m.name FROM models m WHERE m.workspace = $w AND {INDEXED} ORDER BY 1"
        )
        return [name for (name,) in rows]

    def nearest(self, model: str, vector: Floats, limit: int, filters: Filters) -> Nearest:
        known = self.asked(model, vector)
        if known is None:
            return Nearest(())
        where, given = self._chunks.passing(filters)
        values = {"vector": vector, **given}
        few = False
        if known.indexed and where:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {CHUNKS} WHERE {where} LIMIT {FEW + 1}) f"
            few = self._db.all(sql, given)[0][0] <= FEW
        quick = limit > 0 and not few and (known.indexed or not where)
        first = _quick(known, limit, where) if quick else _NOTHING
        spread = _spread(known, large=known.chunks > _LARGE)
        found = self._db.all(
            f"SELECT s.*, q.* FROM ({spread}) s LEFT JOIN LATERAL ({first}) q ON true", values
        )
        mean, deviation, sampled, taken = found[0][:4]
        rows = (
            self._certain([r[4:] for r in found if r[4] is not None], limit, known)
            if quick
            else None
        )
        if rows is None:
            rows = self._chunks.best(_every(known, where, few=few), "x", values, limit)
        count = sampled if taken < SAMPLE else known.chunks
        return Nearest(
            tuple(rows), round((mean or 0) / 1e6, 6), round((deviation or 0) / 1e6, 6), count
        )

    def _certain(self, found: Rows, limit: int, model: Model) -> list[Scored] | None:
        """The first `limit` if no other row can belong among them, else None; the order of an index
        is trusted.
        """
        found.sort(key=lambda f: (-f[1], f[0]))
        least = found[0][2] if found else float("-inf")
        # An index may stop before it has seen all, so fewer rows than asked for are then not all of
        # them.
        if len(found) < limit:
            return (
                [Scored(row, x) for row, x, _ in found]
                if not model.indexed and least == float("-inf")
                else None
            )
        last = found[limit - 1][1]
        if last <= least and not model.indexed:
            return None
        return self._chunks.limited([Scored(row, x) for row, x, _ in found if x >= last], limit)

    def cosines(self, model: str, vector: Floats, rows: Sequence[int]) -> dict[int, float]:
        scope = self._db.scope()
        if (
            scope
            and scope.asked[0] == model
            and scope.asked[1] is vector
            and scope.asked_rows.issuperset(rows)
        ):
            read = ((row, scope.rows[row][COSINE_AT]) for row in rows if row in scope.rows)
            return {row: x / 1e6 for row, x in read if x is not None}
        known = self.asked(model, vector) if rows else None
        if known is None:
            return {}
        found = self._db.all(
            f"SELECT c.row, {COSINE} FROM chunks c JOIN vectors v ON v.workspace = $w"
            f" AND v.model = {known.number} AND v.content_hash = c.content_hash"
            " WHERE c.workspace = $w AND c.row = ANY(%(rows)s::bigint[])",
            {"vector": vector, "rows": [int(row) for row in rows]},
        )
        return {row: x / 1e6 for row, x in found}


def _every(model: Model, where: str, *, few: bool) -> str:
    """The cosine of every row that passes; where those are `few`, only their vectors are read."""
    mine = f"v.workspace = $w AND v.model = {model.number}"
    if few and where:
        return (
            f"SELECT c.row, v.x / 1e6 AS x FROM {CHUNKS}"
            f" CROSS JOIN LATERAL (SELECT {COSINE} AS x FROM vectors v"
            f" WHERE {mine} AND v.content_hash = c.content_hash OFFSET 0) v"
            f" WHERE {where}"
        )
    join = "chunks c ON c.workspace = $w AND c.content_hash = v.content_hash"
    if where:
        join += f" JOIN documents d ON d.workspace = $w AND d.id = c.document WHERE {where}"
    return (
        f"SELECT c.row, v.x / 1e6 AS x FROM (SELECT v.content_hash, {COSINE} AS x FROM vectors v"
        f" WHERE {mine} OFFSET 0) v JOIN {join}"
    )


def _quick(model: Model, limit: int, where: str) -> str:
    """The best vectors first and then their rows: less work than rows for all, where that is
    enough.

    A filter is tested on each vector as the index returns it, so that the index goes on until there
    are enough.
    """
    # Some vectors are of no passage now, and some of several; a scan of all gives more at no cost.
    most = limit + limit // 10 + 20 if model.indexed else 2 * limit + 100
    cast = f"::halfvec({model.dim})" if model.indexed else ""
    rows = f"FROM {CHUNKS} WHERE c.content_hash = v.content_hash" + (
        f" AND {where}" if where else ""
    )
    only = f" AND (SELECT true {rows} LIMIT 1)" if where else ""
    return (
        f"WITH best AS MATERIALIZED (SELECT v.content_hash, {COSINE} AS x"
        " FROM (SELECT v.content_hash, v.vector FROM vectors v"
        f" WHERE v.workspace = $w AND v.model = {model.number}{only}"
        f" ORDER BY v.vector{cast} <#> %(vector)s{cast} LIMIT {most}) v)"
        " SELECT c.row, v.x / 1e6 AS x,"
        f" (SELECT CASE WHEN count(*) < {most} THEN '-infinity' ELSE min(x) / 1e6 END"
        " FROM best) AS least"
        f" FROM best v CROSS JOIN LATERAL (SELECT c.row {rows} OFFSET 0) c"
    )


def _spread(model: Model, *, large: bool) -> str:
    """Mean and deviation of the cosines of a question, by a sample: the first content hashes are as
    good as random.

    Also how many chunks the sample has, and how many vectors it was taken from. In a `large`
    workspace a vector whose text is in no document now may be in it: it is as good as another.
    """
    used = (
        " JOIN (SELECT c.content_hash FROM chunks c WHERE c.workspace = $w"
        " AND c.content_hash <= (SELECT max(content_hash) FROM taken) OFFSET 0) c"
        " USING (content_hash)"
    )
    return (
        f"WITH taken AS MATERIALIZED (SELECT v.content_hash, {COSINE} AS x FROM vectors v"
        f" WHERE v.workspace = $w AND v.model = {model.number}"
        f" ORDER BY v.content_hash LIMIT {SAMPLE})"
        " SELECT avg(x) AS mean, stddev_pop(x) AS deviation, count(*) AS sampled,"
        " (SELECT count(*) FROM taken) AS taken"
        f" FROM taken{'' if large else used}"
    )
