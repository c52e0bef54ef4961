"""Copies, contradictions and replacements in PostgreSQL: the tables; what follows from them is in
`store/resolve.py`.

Everything belongs to a row or a form and goes with its chunk, so that the next copy shows when the
newest is deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from notewell.store.postgres.chunks import CHUNKS, ChunkReader, Condition
from notewell.store.postgres.connection import Connection, unnest, writes
from notewell.store.resolve import RelationRows, resolve
from notewell.store.rows import CHUNK, chunk_of
from notewell.store.values import Copy, Judgement
from notewell.types import Chunk, Filters
from notewell.types import Relations as ChunkRelations

_PER_TRAIT = 8
_IN_GROUP = 64


class Relations:
    """The part of a PostgreSQL store that holds how chunks relate to each other."""

    def __init__(self, connection: Connection, chunks: ChunkReader) -> None:
        self._db, self._chunks = connection, chunks

    def unjudged(self, limit: int) -> list[int]:
        if self._db.scope() and not self._db.moment().unjudged:
            return []
        sql = "SELECT row FROM unjudged WHERE workspace = $w ORDER BY row LIMIT %s"
        return [row for (row,) in self._db.all(sql, (limit,))]

    def group_of(self, form: bytes) -> bytes | None:
        found = self._db.all(
            "SELECT group_form FROM copies WHERE workspace = $w AND form = %s LIMIT 1", (form,)
        )
        return found[0][0] if found else None

    def forms_of(self, group: bytes, limit: int) -> dict[bytes, Chunk]:
        sql = (
            "SELECT form, max(row) FROM copies WHERE workspace = $w AND group_form = %s GROUP "
            "BY 1 ORDER BY 1 LIMIT %s"
        )
        return self._with_chunks(self._db.all(sql, (group, limit)))

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        found = self._db.all(
            "SELECT t.form,"
            " (SELECT max(k.row) FROM copies k WHERE k.workspace = $w AND k.form = t.form)"
            " FROM unnest(%s::bigint[]) u (trait)"
            " CROSS JOIN LATERAL (SELECT form, since FROM traits t"
            " WHERE t.workspace = $w AND t.trait = u.trait"
            f" ORDER BY since DESC LIMIT {_PER_TRAIT}) t"
            " GROUP BY t.form ORDER BY count(*) DESC, max(t.since) DESC, t.form LIMIT %s",
            (list(traits), limit),
        )
        return self._with_chunks((form, row) for form, row in found if row is not None)

    def _with_chunks(self, found: Iterable[tuple[Any, ...]]) -> dict[bytes, Chunk]:
        rows: dict[bytes, int] = dict(found)
        chunks = self._chunks.chunks(list(rows.values()))
        return {form: chunks[row] for form, row in rows.items() if row in chunks}

    def known_forms(
        self, forms: Sequence[bytes], traits: Sequence[int]
    ) -> tuple[set[bytes], set[int]]:
        known = "EXISTS (SELECT 1 FROM {} WHERE workspace = $w AND {} = u)".format
        either = f"{known('copies', 'form')} OR {known('copies', 'group_form')}"
        found = self._db.all(f"SELECT u FROM unnest(%s::bytea[]) u WHERE {either}", (list(forms),))
        shared = f"SELECT u FROM unnest(%s::bigint[]) u WHERE {known('traits', 'trait')}"
        return {form for (form,) in found}, {
            trait for (trait,) in self._db.all(shared, (list(traits),))
        }

    def put_copies(self, copies: Sequence[Copy]) -> None:
        if copies:
            self._db.write(lambda: self._put_copies(copies))

    def _put_copies(self, copies: Sequence[Copy]) -> None:
        rows = [c.chunk.row for c in copies]
        pairs = {
            pair
            for c in copies
            for other in c.conflicts
            for pair in ((c.form, other), (other, c.form))
        }
        self._insert(
            "traits",
            "bigint bigint bytea",
            {(t, c.chunk.row, c.form) for c in copies for t in c.traits},
        )
        self._insert("conflicts", "bytea bytea", pairs)
        self._db.run(
            "DELETE FROM replaced WHERE workspace = $w AND row = ANY(%s::bigint[])", (rows,)
        )
        self._insert(
            "copies",
            "bigint bytea bytea text text",
            {(c.chunk.row, c.form, c.group, c.standing, c.chunk.id) for c in copies},
            "(workspace, row) DO UPDATE SET"
            " form = excluded.form, group_form = excluded.group_form, standing = excluded.standing",
        )
        self._insert(
            "replaced",
            "text text bigint",
            {(*pair, c.chunk.row) for c in copies for pair in c.replaces},
        )
        self._db.run(
            "DELETE FROM unjudged WHERE workspace = $w AND row = ANY(%s::bigint[])", (rows,)
        )

    def _insert(
        self, table: str, types: str, rows: Iterable[tuple[Any, ...]], known: str = "DO NOTHING"
    ) -> None:
        source, values = unnest(types, sorted(rows))
        self._db.run(
            f"INSERT INTO {table} SELECT $w, u.* FROM {source} u ON CONFLICT {known}", values
        )

    def disputed(self, limit: int) -> list[int]:
        sql = (
            "SELECT k.row FROM copies k WHERE k.workspace = $w AND EXISTS"
            " (SELECT 1 FROM conflicts x WHERE x.workspace = $w AND x.one = k.form)"
            " ORDER BY k.row DESC LIMIT %s"
        )
        return [row for (row,) in self._db.all(sql, (limit,))]

    def copied(self, limit: int) -> list[int]:
        sql = (
            "SELECT row FROM copies WHERE workspace = $w AND group_form IN"
            " (SELECT group_form FROM copies WHERE workspace = $w"
            " GROUP BY group_form HAVING count(*) > 1)"
            " ORDER BY row DESC LIMIT %s"
        )
        return [row for (row,) in self._db.all(sql, (limit,))]

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        found = self._db.all(
            "SELECT k.row, k.form, k.group_form, ARRAY(SELECT x.other FROM conflicts x"
            " WHERE x.workspace = $w AND x.one = k.form ORDER BY x.other)"
            " FROM copies k WHERE k.workspace = $w"
            " AND k.row = ANY(%s::bigint[]) AND NOT EXISTS"
            " (SELECT 1 FROM unjudged u WHERE u.workspace = $w AND u.row = k.row)",
            (list(rows),),
        )
        return {row: Judgement(form, group, tuple(others)) for row, form, group, others in found}

    @writes
    def join(self, form: bytes, group: bytes) -> None:
        self._db.run(
            "UPDATE copies SET group_form = %s WHERE workspace = $w AND form = %s", (group, form)
        )

    @writes
    def reset_judgements(self) -> None:
        for table in ("copies", "traits", "conflicts", "replaced"):
            self._db.run(f"DELETE FROM {table} WHERE workspace = $w")
        self._db.run(
            "INSERT INTO unjudged SELECT $w, row FROM chunks WHERE workspace = $w ON CONFLICT DO "
            "NOTHING"
        )

    def forget_forms(self, forms: Sequence[bytes]) -> None:
        """Drops what is known of those forms that no chunk has any more; inside a transaction."""
        if not forms:
            return
        sql = "SELECT DISTINCT form FROM copies WHERE workspace = $w AND form = ANY(%s::bytea[])"
        gone = list(set(forms).difference(form for (form,) in self._db.all(sql, (list(forms),))))
        if not gone:
            return
        for table, column in (("traits", "form"), ("conflicts", "one"), ("conflicts", "other")):
            self._db.run(
                f"DELETE FROM {table} WHERE workspace = $w AND {column} = ANY(%s::bytea[])", (gone,)
            )

    def related(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, ChunkRelations]:
        known = {c.row: c for c in chunks}
        if not known:
            return {}
        scope = self._db.scope()
        rows = (
            scope.found.get(("related", filters))
            if scope and scope.asked_rows.issuperset(known)
            else None
        )
        if rows is None:
            sql, values = self.relating(filters)
            rows = self._db.all(sql, {**values, "rows": list(known)})
        asked = frozenset(known)
        heads: dict[int, int] = {}
        conflicts: dict[int, list[tuple[int, str]]] = defaultdict(list)
        claims: dict[str, list[tuple[str, int]]] = defaultdict(list)
        claimed: dict[int, set[str]] = defaultdict(set)
        for kind, row, other, name, part, columns in rows:
            if kind in ("head", "against") and row not in asked:
                continue  # it was read ahead, and is not asked for
            if kind == "head":
                heads[row] = other
            elif kind == "against":
                conflicts[row].append((other, name))
            elif kind == "claim":
                claims[name].append((part, row))
            elif kind == "claimed":
                claimed[row].add(name)
            else:
                known[row] = chunk_of(tuple(columns))
        found = RelationRows(heads, conflicts, claims, claimed)
        more = [row for row in (*found.others(known), *found.claimants()) if row not in known]
        known |= self._chunks.chunks(more) if more else {}  # they are among what was read ahead
        return resolve([c.row for c in chunks], found, known)

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        found = self._db.all(
            "WITH own AS (SELECT %(row)s::bigint AS row UNION"
            " (SELECT c.row FROM replaced r"
            " JOIN chunks c ON c.workspace = $w AND c.id = r.target"
            " WHERE r.workspace = $w AND r.row = %(row)s"
            " UNION SELECT c.row FROM replaced r"
            " JOIN documents d ON d.workspace = $w AND d.path = r.target"
            " JOIN chunks c ON c.workspace = $w AND c.document = d.id"
            " WHERE r.workspace = $w AND r.row = %(row)s"
            f" LIMIT {_IN_GROUP}))"
            " SELECT row FROM own UNION"
            " (SELECT k.row FROM copies k WHERE k.workspace = $w AND k.group_form IN"
            " (SELECT m.group_form FROM copies m"
            " WHERE m.workspace = $w AND m.row IN (SELECT row FROM own))"
            f" LIMIT {_IN_GROUP})",
            {"row": chunk.row},
        )
        others = self._chunks.chunks([row for (row,) in found if row != chunk.row])
        related = self.related(list(others.values()), Filters())
        return [
            c
            for row, c in others.items()
            if row in related and related[row].superseded_by == chunk.id
        ]

    def _allowed(self, filters: Filters) -> Condition:
        """The filters as a condition on a row of `copies b` or `replaced b`; "" if all rows
        pass.
        """
        where, values = self._chunks.passing(filters)
        return (
            f" AND EXISTS (SELECT 1 FROM {CHUNKS} WHERE c.row = b.row AND {where})" if where else ""
        ), values

    def relating(self, filters: Filters) -> tuple[str, dict[str, Any]]:
        """One statement for all relations of rows, and the chunks of other rows that those name.

        It returns (kind, row, other row, name, part, columns of a chunk), in the order that claims
        are looked at.
        """
        moment = self._db.moment()
        disputed, replaced = moment.disputed, moment.replaced
        allowed, values = self._allowed(filters)
        only = f" AND (b.row = k.row OR (true{allowed}))" if allowed else ""
        best = (
            "FROM copies b WHERE b.workspace = $w AND b.group_form = {}{} ORDER BY b.standing "
            "DESC, b.id LIMIT 1"
        )
        tables = {
            "asked": "SELECT unnest(%(rows)s::bigint[]) AS row",
            # The row that represents the group of each row, where that is another: the best that
            # passes the filters.
            "heads": (
                "SELECT k.row, h.row AS other FROM asked"
                " JOIN copies k ON k.workspace = $w AND k.row = asked.row"
                f" CROSS JOIN LATERAL (SELECT b.row {best.format('k.group_form', only)}) h"
                " WHERE h.row != k.row"
            ),
        }
        arms = ["SELECT 'head', row, other, NULL, NULL, NULL::json FROM heads"]
        others = ["SELECT other AS row FROM heads"]
        if disputed:  # the newest chunks that contradict each row
            only = f" AND b.row != p.row{allowed}" if allowed else ""
            tables["against"] = (
                "SELECT p.row, h.row AS other, h.id FROM (SELECT DISTINCT k.row,"
                " (SELECT o.group_form FROM copies o"
                " WHERE o.workspace = $w AND o.form = x.other LIMIT 1) AS group_form"
                " FROM asked JOIN copies k ON k.workspace = $w AND k.row = asked.row"
                " JOIN conflicts x ON x.workspace = $w AND x.one = k.form) p"
                f" CROSS JOIN LATERAL (SELECT b.row, b.id {best.format('p.group_form', only)}) h"
                " WHERE h.row != p.row"
            )
            arms.append("SELECT 'against', row, other, id, NULL, NULL FROM against")
            others.append("SELECT other FROM against")
        # the claims to replace any of these and of the others, by their id or their path
        if replaced:
            tables["known"] = f"SELECT row FROM asked UNION {' UNION '.join(others)}"
            tables["names"] = f"SELECT c.id, d.path FROM known JOIN ({CHUNKS}) ON c.row = known.row"
            tables["claims"] = (
                "SELECT b.target, b.part, b.row FROM replaced b WHERE b.workspace = $w"
                " AND (b.target IN (SELECT id FROM names)"
                f" OR b.target IN (SELECT path FROM names)){allowed} ORDER BY b.row"
            )
            arms.append("SELECT 'claim', row, NULL, target, part, NULL FROM claims")
            arms.append(
                "SELECT 'claimed', r.row, NULL, r.target, NULL, NULL FROM known JOIN replaced r"
                " ON r.workspace = $w AND r.row = known.row WHERE EXISTS (SELECT 1 FROM claims)"
            )
            others.append("SELECT row FROM claims")
        arms.append(
            f"SELECT 'chunk', c.row, NULL, NULL, NULL, json_build_array({CHUNK}) FROM"
            f" (({' UNION '.join(others)}) EXCEPT SELECT row FROM asked) more"
            f" JOIN ({CHUNKS}) ON c.row = more.row"
        )
        made = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in tables.items())
        return f"WITH {made} {' UNION ALL '.join(arms)}", values
