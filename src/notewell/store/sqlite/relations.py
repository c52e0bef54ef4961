"""Copies of chunks, groups of copies, contradictions, and what replaced what.

Everything is keyed by row or by form and is deleted with its chunk, so when the newest copy is
deleted the next one becomes visible by itself. Every look-up is by index and limited: none grows
with the number of notes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from notewell.store.resolve import RelationRows, names_of, resolve
from notewell.store.rows import in_parts
from notewell.store.sqlite.chunks import AllowedRows, ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.read_cache import AT_ONCE
from notewell.store.sqlite.sizes import DEFAULT_SIZES, SegmentSizes
from notewell.store.values import Copy, Judgement
from notewell.types import Chunk, Filters
from notewell.types import Relations as Related

_PER_TRAIT = 8
_IN_GROUP = 64
_STALE_SHARE = 10
_IN = 400
# Each half is in the order of its index, so that the first rows are found without reading all of
# the group.
_GROUP = (
    "SELECT row, id, standing FROM copies WHERE form = {0} AND joined IS NULL"
    " UNION ALL SELECT row, id, standing FROM copies WHERE joined = {0} ORDER BY standing DESC, id"
)
_HAS_COPIES = (
    "(k.joined NOTNULL OR EXISTS (SELECT 1 FROM copies WHERE joined = k.form)"
    " OR EXISTS (SELECT 1 FROM copies o WHERE o.form = k.form AND o.row <> k.row))"
)


class Relations:
    """The part of a SQLite store that keeps the relations between chunks."""

    def __init__(
        self, connection: Connection, chunks: ChunkReader, sizes: SegmentSizes = DEFAULT_SIZES
    ) -> None:
        self._connection, self._db = connection, connection.db
        self._all, self._all_in = connection.all, connection.all_in
        self._chunks, self._sizes = chunks, sizes

    def unjudged(self, limit: int) -> list[int]:
        return [r[0] for r in self._all("SELECT row FROM unjudged ORDER BY row LIMIT ?", (limit,))]

    def group_of(self, form: bytes) -> bytes | None:
        found = self._all("SELECT group_form FROM copies WHERE form = ? LIMIT 1", (form,))
        return found[0][0] if found else None

    def forms_of(self, group: bytes, limit: int) -> dict[bytes, Chunk]:
        of_group = "joined = ?1 OR (form = ?1 AND joined IS NULL)"
        sql = f"SELECT form, max(row) FROM copies WHERE {of_group} GROUP BY form LIMIT ?2"
        return self._with_chunks(self._all(sql, (group, limit)))

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        if not traits:
            return {}
        shared: Counter[bytes] = Counter()
        since: dict[bytes, int] = {}
        one = (
            "SELECT * FROM (SELECT coalesce(c.form, f.form), t.row FROM traits t"
            " LEFT JOIN copies c ON c.row = t.row LEFT JOIN forms f ON f.row = t.row"
            " WHERE t.trait = ? AND (c.form NOTNULL OR f.form NOTNULL)"
            " ORDER BY t.row DESC LIMIT ?)"
        )
        values = [value for trait in traits for value in (_stored_trait(trait), _PER_TRAIT)]
        for form, row in self._all(" UNION ALL ".join([one] * len(traits)), values):
            shared[form] += 1
            since[form] = row
        best = sorted(shared, key=lambda f: (-shared[f], -since[f], f))[:limit]
        marks = ",".join("?" * len(best))
        sql = f"SELECT form, max(row) FROM copies WHERE form IN ({marks}) GROUP BY form"
        rows: dict[bytes, int] = dict(self._all(sql, best))
        return self._with_chunks([(form, rows[form]) for form in best if form in rows])

    def _with_chunks(self, found: Iterable[tuple[Any, ...]]) -> dict[bytes, Chunk]:
        rows: dict[bytes, int] = dict(found)
        chunks = self._chunks.chunks(list(rows.values()))
        return {form: chunks[row] for form, row in rows.items() if row in chunks}

    def known_forms(
        self, forms: Sequence[bytes], traits: Sequence[int]
    ) -> tuple[set[bytes], set[int]]:
        known: set[bytes] = set()
        # in the order of the index, so that no page of it is read twice
        for part in in_parts(sorted(forms), _IN):
            asked = (
                f"WITH asked (form) AS (VALUES {','.join(['(?)'] * len(part))}) SELECT form "
                "FROM asked"
            )
            for column in ("form", "joined"):
                sql = f"{asked} WHERE EXISTS (SELECT 1 FROM copies c WHERE c.{column} = asked.form)"
                known.update(form for (form,) in self._all(sql, part))
        sql = (
            "SELECT value FROM json_each(?)"
            " WHERE EXISTS (SELECT 1 FROM traits t WHERE t.trait = value"
            " AND (t.row IN (SELECT row FROM copies) OR t.row IN (SELECT row FROM forms)))"
        )
        found = {
            trait for (trait,) in self._all(sql, (json.dumps(sorted(map(_stored_trait, traits))),))
        }
        return known, {trait for trait in traits if _stored_trait(trait) in found}

    def put_copies(self, copies: Sequence[Copy]) -> None:
        rows = [(c.chunk.row,) for c in copies]
        # in the order of the indexes: each page is changed once
        copies = sorted(copies, key=lambda c: c.form)
        traits = sorted((_stored_trait(trait), c.chunk.row) for c in copies for trait in c.traits)
        pairs = [
            pair
            for c in copies
            for other in c.conflicts
            for pair in ((c.form, other), (other, c.form))
        ]
        with self._connection.writing():
            self._db.executemany("INSERT OR IGNORE INTO traits VALUES (?, ?)", traits)
            self._db.executemany("INSERT OR IGNORE INTO conflicts VALUES (?, ?)", pairs)
            self._db.executemany("DELETE FROM replaced WHERE row = ?", rows)
            self._db.executemany(
                "INSERT INTO copies VALUES (?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET"
                " form = excluded.form, joined = excluded.joined, standing = excluded.standing",
                [
                    (
                        c.chunk.row,
                        c.form,
                        None if c.group == c.form else c.group,
                        c.standing,
                        c.chunk.id,
                    )
                    for c in copies
                ],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO replaced VALUES (?, ?, ?)",
                [(*replaced, c.chunk.row) for c in copies for replaced in c.replaces],
            )
            self._db.executemany("DELETE FROM unjudged WHERE row = ?", rows)
            self._connection.count_change("judged")

    def disputed(self, limit: int) -> list[int]:
        sql = (
            "SELECT row FROM copies WHERE form IN (SELECT one FROM conflicts) ORDER BY row DESC "
            "LIMIT ?"
        )
        return [row for (row,) in self._all(sql, (limit,))]

    def copied(self, limit: int) -> list[int]:
        many = "SELECT group_form FROM copies GROUP BY group_form HAVING count(*) > 1"
        sql = f"SELECT row FROM copies WHERE group_form IN ({many}) ORDER BY row DESC LIMIT ?"
        return [row for (row,) in self._all(sql, (limit,))]

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        sql = (
            "SELECT row, form, group_form FROM copies WHERE row IN ({}) AND row NOT IN (SELECT "
            "row FROM unjudged)"
        )
        found = self._all_in(sql, rows, most=_IN)
        against: dict[bytes, list[bytes]] = defaultdict(list)
        sql = "SELECT one, other FROM conflicts WHERE one IN ({}) ORDER BY other"
        for one, other in self._all_in(sql, list({form for _, form, _ in found}), most=_IN):
            against[one].append(other)
        return {row: Judgement(form, group, tuple(against[form])) for row, form, group in found}

    def join(self, form: bytes, group: bytes) -> None:
        with self._connection.writing():
            self._db.execute(
                "UPDATE copies SET joined = nullif(?, form) WHERE form = ?", (group, form)
            )
            self._connection.count_change("judged")

    def reset_judgements(self) -> None:
        with self._connection.writing():
            for table in ("copies", "forms", "traits", "conflicts", "replaced"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("UPDATE meta SET value = 0 WHERE key = 'stale_forms'")
            self._db.execute("INSERT OR IGNORE INTO unjudged SELECT row FROM chunks")
            self._connection.count_change("judged")

    def sweep_traits(self, *, all_of_them: bool = False) -> None:
        """Deletes traits of forms that are gone; it reads every trait, so it waits for many; inside
        a transaction.
        """
        stale, forms = self._all(
            "SELECT value, (SELECT count(*) FROM copies) FROM meta WHERE key = 'stale_forms'"
        )[0]
        if stale > (0 if all_of_them else max(self._sizes.stale_traits, forms // _STALE_SHARE)):
            used = "SELECT row FROM copies UNION ALL SELECT row FROM forms"
            self._db.execute(f"DELETE FROM traits WHERE row NOT IN ({used})")
            self._db.execute("UPDATE meta SET value = 0 WHERE key = 'stale_forms'")

    def related(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Related]:
        cache = None if filters or len(chunks) > AT_ONCE else self._connection.cache()
        if cache is None:
            return self._resolved(chunks, filters)
        known = cache.relations
        if todo := [c for c in chunks if c.row not in known]:
            found = self._resolved(todo, filters)
            known.update((c.row, found.get(c.row)) for c in todo)
        return {c.row: one for c in chunks if (one := known[c.row]) is not None}

    def _resolved(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Related]:
        """The same, from the tables."""
        by_row = {c.row: c for c in chunks}
        rows = list(by_row)
        allowed = self._chunks.allowed(filters)
        heads = self._heads(rows, allowed)
        disputed, replaced = self._all(
            "SELECT EXISTS (SELECT 1 FROM conflicts), EXISTS (SELECT 1 FROM replaced)"
        )[0]
        conflicts = self._conflicts(rows, allowed) if disputed else {}
        if not (heads or conflicts or replaced):
            return {}
        found = RelationRows(heads, conflicts)
        by_row |= self._chunks.chunks(found.others(rows))
        if replaced and (claims := self._claims_on(names_of(by_row.values()), allowed)):
            found = RelationRows(heads, conflicts, claims, self._claimed_by(list(by_row)))
            by_row |= self._chunks.chunks(found.claimants())
        return resolve(rows, found, by_row)

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        named = self._all(
            "SELECT c.row FROM replaced r JOIN chunks c ON c.id = r.target WHERE r.row = ?1 UNION"
            " SELECT c.row FROM replaced r JOIN documents d ON d.path = r.target"
            " JOIN chunks c ON c.document = d.id WHERE r.row = ?1 LIMIT ?2",
            (chunk.row, _IN_GROUP),
        )
        own = [chunk.row, *(row for (row,) in named)]
        marks = ",".join("?" * len(own))
        groups = f"IN (SELECT group_form FROM copies WHERE row IN ({marks}))"
        sql = (
            f"SELECT row FROM copies WHERE joined {groups} OR (form {groups} AND joined IS "
            "NULL) LIMIT ?"
        )
        rows = {*own, *(row for (row,) in self._all(sql, (*own, *own, _IN_GROUP)))}
        others = self._chunks.chunks(sorted(rows - {chunk.row}))
        related = self.related(list(others.values()), Filters())
        return [
            c
            for row, c in others.items()
            if row in related and related[row].superseded_by == chunk.id
        ]

    def _heads(self, rows: Sequence[int], allowed: AllowedRows | None) -> dict[int, int]:
        """The row that represents the group of each row, where that is another one."""
        sql = (
            "SELECT k.row,"
            f" (SELECT row FROM ({_GROUP.format('k.group_form')} LIMIT 1)), k.group_form"
            f" FROM copies k WHERE k.row IN ({{}}) AND {_HAS_COPIES}"
        )
        heads: dict[int, int] = {}
        for row, best, group in self._all_in(sql, rows, most=_IN):
            heads[row] = best
            if best != row and allowed is not None and best not in allowed:
                heads[row] = next(
                    (r for r, _ in self._group(group, _IN_GROUP) if r in allowed), row
                )
        return {row: head for row, head in heads.items() if head != row}

    def _group(self, group: bytes, limit: int) -> list[tuple[int, str]]:
        """Rows and ids of a group, the one that represents it first."""
        return [(r[0], r[1]) for r in self._all(f"{_GROUP.format('?1')} LIMIT ?2", (group, limit))]

    def _conflicts(
        self, rows: Sequence[int], allowed: AllowedRows | None
    ) -> dict[int, list[tuple[int, str]]]:
        """Rows and ids of the newest chunks that contradict each row."""
        sql = (
            "SELECT k.row, (SELECT h.group_form FROM copies h WHERE h.form = x.other LIMIT 1)"
            " FROM copies k JOIN conflicts x ON x.one = k.form WHERE k.row IN ({})"
        )
        conflicts: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for row, group in dict.fromkeys(self._all_in(sql, rows, most=_IN)):
            members = self._group(group, 1 if allowed is None else _IN_GROUP)
            head = next(
                ((r, i) for r, i in members if r != row and (allowed is None or r in allowed)), None
            )
            if head:
                conflicts[row].append(head)
        return conflicts

    def _claims_on(
        self, names: Sequence[str], allowed: AllowedRows | None
    ) -> dict[str, list[tuple[str, int]]]:
        """Which rows claim to replace what has one of these names, and which part of it."""
        claims: dict[str, list[tuple[str, int]]] = defaultdict(list)
        sql = "SELECT target, part, row FROM replaced WHERE target IN ({}) ORDER BY row"
        for target, part, row in self._all_in(sql, names, most=_IN):
            if allowed is None or row in allowed:
                claims[target].append((part, row))
        return claims

    def _claimed_by(self, rows: Sequence[int]) -> dict[int, set[str]]:
        claimed: dict[int, set[str]] = defaultdict(set)
        for row, target in self._all_in(
            "SELECT row, target FROM replaced WHERE row IN ({})", rows, most=_IN
        ):
            claimed[row].add(target)
        return claimed


def _stored_trait(trait: int) -> int:
    """The low 32 bits of a trait, as a signed number. Collisions are rare and only cost one extra
    comparison.
    """
    return (trait & 0xFFFFFFFF) - (1 << 31)
