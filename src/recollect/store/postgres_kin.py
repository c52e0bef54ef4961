"""What passages are to each other, in PostgreSQL: the questions; what follows from the answers is in `kin.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.ports import Copy, Judgement, Vectors
from recollect.store.kin import KinTables
from recollect.types import Chunk, Filters

_PER_TRAIT = 8
_IN_GROUP = 64


class PostgresKin(KinTables):
    """The part of a PostgreSQL store that knows what passages are to each other."""

    _w: int

    if TYPE_CHECKING:

        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        def vectors_of(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]: ...  # noqa: D102

    def unjudged(self, limit: int) -> list[int]:
        """Rows whose likeness to others was not looked at since they or their document changed, the oldest first."""
        sql = f"SELECT row FROM unjudged WHERE workspace = {self._w} ORDER BY row LIMIT %s"
        return [r[0] for r in self._all(sql, (limit,))]

    def kin_of(self, form: bytes) -> bytes | None:
        """The group of a form, if any chunk has it."""
        found = self._all(f"SELECT kin FROM copies WHERE workspace = {self._w} AND form = %s LIMIT 1", (form,))
        return found[0][0] if found else None

    def forms_of(self, kin: bytes, limit: int) -> dict[bytes, Chunk]:
        """The forms of a group, each with a chunk that has it."""
        sql = (
            f"SELECT form, max(row) FROM copies WHERE workspace = {self._w} AND kin = %s"
            " GROUP BY form ORDER BY form LIMIT %s"
        )
        return self._with_chunks(self._all(sql, (kin, limit)))

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        """Forms that share a trait, the ones that share most first, the newer first among equals."""
        found = self._all(
            f"SELECT t.form, (SELECT max(k.row) FROM copies k WHERE k.workspace = {self._w} AND k.form = t.form)"
            " FROM unnest(%s::bigint[]) u (trait) CROSS JOIN LATERAL (SELECT form, since FROM traits t"
            f" WHERE t.workspace = {self._w} AND t.trait = u.trait ORDER BY since DESC LIMIT {_PER_TRAIT}) t"
            " GROUP BY t.form ORDER BY count(*) DESC, max(t.since) DESC, t.form LIMIT %s",
            (list(traits), limit),
        )
        return self._with_chunks([(form, row) for form, row in found if row is not None])

    def kin_known(self, forms: Sequence[bytes], traits: Sequence[int]) -> tuple[set[bytes], set[int]]:
        """Which of some forms any chunk or group has, and which of some traits any form has."""
        mine = f"workspace = {self._w}"
        found = self._all(
            "SELECT f FROM unnest(%s::bytea[]) f"
            f" WHERE EXISTS (SELECT 1 FROM copies WHERE {mine} AND form = f)"
            f" OR EXISTS (SELECT 1 FROM copies WHERE {mine} AND kin = f)",
            (list(forms),),
        )
        there = self._all(
            f"SELECT t FROM unnest(%s::bigint[]) t WHERE EXISTS (SELECT 1 FROM traits WHERE {mine} AND trait = t)",
            (list(traits),),
        )
        return {r[0] for r in found}, {r[0] for r in there}

    def put_copies(self, copies: Sequence[Copy]) -> None:
        """Notes what chunks say and replace, what is new of their forms, and that they were judged."""
        rows = [c.chunk.row for c in copies]
        traits = sorted({(trait, c.chunk.row, c.form) for c in copies for trait in c.traits})
        pairs = sorted({p for c in copies for other in c.conflicts for p in ((c.form, other), (other, c.form))})
        replaced = sorted({(*pair, c.chunk.row) for c in copies for pair in c.replaces})
        mine = f"workspace = {self._w}"

        def work() -> None:
            self._run(
                f"INSERT INTO traits SELECT {self._w}, u.* FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[]) u"
                " ON CONFLICT DO NOTHING",
                _columns(traits, 3),
            )
            self._run(
                f"INSERT INTO conflicts SELECT {self._w}, u.* FROM unnest(%s::bytea[], %s::bytea[]) u"
                " ON CONFLICT DO NOTHING",
                _columns(pairs, 2),
            )
            self._run(f"DELETE FROM replaced WHERE {mine} AND row = ANY(%s::bigint[])", (rows,))
            self._run(
                f"INSERT INTO copies SELECT {self._w}, u.*"
                " FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[], %s::text[], %s::text[]) u"
                " ON CONFLICT (workspace, row) DO UPDATE SET"
                " form = excluded.form, kin = excluded.kin, standing = excluded.standing",
                _columns([(c.chunk.row, c.form, c.kin, c.standing, c.chunk.id) for c in copies], 5),
            )
            self._run(
                f"INSERT INTO replaced SELECT {self._w}, u.* FROM unnest(%s::text[], %s::text[], %s::bigint[]) u"
                " ON CONFLICT DO NOTHING",
                _columns(replaced, 3),
            )
            self._run(f"DELETE FROM unjudged WHERE {mine} AND row = ANY(%s::bigint[])", (rows,))

        if copies:
            self._written(work)

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        """What was found out about chunks, by row; those that wait to be judged are left out."""
        found = self._all(
            f"SELECT k.row, k.form, k.kin, ARRAY(SELECT x.other FROM conflicts x WHERE x.workspace = {self._w}"
            f" AND x.one = k.form ORDER BY x.other) FROM copies k WHERE k.workspace = {self._w}"
            " AND k.row = ANY(%s::bigint[]) AND NOT EXISTS"
            f" (SELECT 1 FROM unjudged u WHERE u.workspace = {self._w} AND u.row = k.row)",
            (list(rows),),
        )
        return {row: Judgement(form, kin, tuple(others)) for row, form, kin, others in found}

    def join(self, form: bytes, kin: bytes) -> None:
        """Moves all chunks of a form to a group."""
        sql = f"UPDATE copies SET kin = %s WHERE workspace = {self._w} AND form = %s"
        self._written(lambda: self._run(sql, (kin, form)))

    def judge_anew(self) -> None:
        """Forgets every judgement; all chunks wait again."""

        def work() -> None:
            for table in ("copies", "traits", "conflicts", "replaced"):
                self._run(f"DELETE FROM {table} WHERE workspace = {self._w}")
            self._run(
                f"INSERT INTO unjudged SELECT {self._w}, row FROM chunks WHERE workspace = {self._w}"
                " ON CONFLICT DO NOTHING"
            )

        self._written(work)

    def _forget_forms(self, forms: Sequence[bytes]) -> None:
        """What was known of forms that no passage has any more."""
        if not forms:
            return
        mine = f"workspace = {self._w}"
        left = {
            r[0]
            for r in self._all(
                f"SELECT DISTINCT form FROM copies WHERE {mine} AND form = ANY(%s::bytea[])", (list(forms),)
            )
        }
        gone = [form for form in forms if form not in left]
        if gone:
            self._run(f"DELETE FROM traits WHERE {mine} AND form = ANY(%s::bytea[])", (gone,))
            for side in ("one", "other"):
                self._run(f"DELETE FROM conflicts WHERE {mine} AND {side} = ANY(%s::bytea[])", (gone,))

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        """The passages that are left out of answers because of this one, the oldest row first."""
        w = self._w
        found = self._all(
            "WITH own AS (SELECT %(row)s::bigint AS row UNION (SELECT c.row FROM replaced r JOIN chunks c"
            f" ON c.workspace = {w} AND c.id = r.target WHERE r.workspace = {w} AND r.row = %(row)s UNION"
            f" SELECT c.row FROM replaced r JOIN documents d ON d.workspace = {w} AND d.path = r.target"
            f" JOIN chunks c ON c.workspace = {w} AND c.document = d.id WHERE r.workspace = {w} AND r.row = %(row)s"
            f" LIMIT {_IN_GROUP})) SELECT row FROM own UNION (SELECT k.row FROM copies k WHERE k.workspace = {w}"
            f" AND k.kin IN (SELECT m.kin FROM copies m WHERE m.workspace = {w} AND m.row IN (SELECT row FROM own))"
            f" LIMIT {_IN_GROUP})",
            {"row": chunk.row},
        )
        others = self.chunks(sorted({r[0] for r in found} - {chunk.row}))
        related = self.relations(list(others.values()), Filters())
        return [c for row, c in others.items() if row in related and related[row].superseded_by == chunk.id]

    def _newest(self, rows: Sequence[int], allowed: Any) -> dict[int, int]:
        """The row that stands for a group, for those that another stands for: itself, or the best that may be seen."""
        only = f" AND (b.row = k.row OR (true{allowed[0]}))" if allowed else ""
        found = self._all(
            f"SELECT k.row, h.row FROM copies k CROSS JOIN LATERAL (SELECT b.row FROM copies b"
            f" WHERE b.workspace = {self._w} AND b.kin = k.kin{only} ORDER BY b.standing DESC, b.id LIMIT 1) h"
            f" WHERE k.workspace = {self._w} AND k.row = ANY(%(rows)s::bigint[]) AND h.row != k.row",
            {"rows": list(rows), **(allowed[1] if allowed else {})},
        )
        return dict(found)

    def _conflicts(self, rows: Sequence[int], allowed: Any) -> dict[int, list[tuple[int, str]]]:
        """Rows and ids of the newest passages that say otherwise."""
        only = f" AND b.row != p.row{allowed[0]}" if allowed else ""
        w = self._w
        found = self._all(
            "SELECT p.row, h.row, h.id FROM (SELECT DISTINCT k.row, (SELECT o.kin FROM copies o"
            f" WHERE o.workspace = {w} AND o.form = x.other LIMIT 1) AS kin FROM copies k JOIN conflicts x"
            f" ON x.workspace = {w} AND x.one = k.form WHERE k.workspace = {w} AND k.row = ANY(%(rows)s::bigint[])) p"
            f" CROSS JOIN LATERAL (SELECT b.row, b.id FROM copies b WHERE b.workspace = {w} AND b.kin = p.kin{only}"
            " ORDER BY b.standing DESC, b.id LIMIT 1) h WHERE h.row != p.row ORDER BY p.row, h.row",
            {"rows": list(rows), **(allowed[1] if allowed else {})},
        )
        out: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for row, other, name in found:
            out[row].append((other, name))
        return out

    def _claims_on(self, names: Sequence[str], allowed: Any) -> dict[str, list[tuple[str, int]]]:
        only = allowed[0] if allowed else ""
        found = self._all(
            f"SELECT b.target, b.part, b.row FROM replaced b WHERE b.workspace = {self._w}"
            f" AND b.target = ANY(%(names)s::text[]){only} ORDER BY b.row",
            {"names": list(names), **(allowed[1] if allowed else {})},
        )
        claims: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for target, piece, row in found:
            claims[target].append((piece, row))
        return claims

    def _claims_of(self, rows: Sequence[int]) -> dict[int, set[str]]:
        out: dict[int, set[str]] = defaultdict(set)
        sql = f"SELECT row, target FROM replaced WHERE workspace = {self._w} AND row = ANY(%s::bigint[])"
        for row, target in self._all(sql, (list(rows),)):
            out[row].add(target)
        return out


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[list[Any]]:
    """Rows as so many columns, as `unnest` takes them."""
    return [[row[n] for row in rows] for n in range(count)]
