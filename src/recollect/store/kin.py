"""What passages are to each other, in tables of their own: copies, groups of copies, conflicts and successors.

Everything is keyed by row or by form and goes with the chunk it speaks of, so a deleted newest copy makes the next one
visible by itself. Every look-up is by index and limited: none grows with the number of notes.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from recollect.ports import Copy, Judgement
from recollect.store.recent import AT_ONCE, Recent
from recollect.store.rows import in_parts
from recollect.types import Chunk, Filters, Relations

if TYPE_CHECKING:
    import apsw

_PER_TRAIT = 8
_IN_GROUP = 64
_STALE = 4096
_STALE_SHARE = 10
_IN = 400
# Each half is in the order of its index, so that the first ones are found without a look at the whole group.
_GROUP = (
    "SELECT row, id, standing FROM copies WHERE form = {0} AND joined IS NULL"
    " UNION ALL SELECT row, id, standing FROM copies WHERE joined = {0} ORDER BY standing DESC, id"
)
_IN_COMPANY = (
    "(k.joined NOTNULL OR EXISTS (SELECT 1 FROM copies WHERE joined = k.form)"
    " OR EXISTS (SELECT 1 FROM copies o WHERE o.form = k.form AND o.row <> k.row))"
)
_LINES = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?\Z")


class KinTables:
    """The part of a SQLite store that knows what passages are to each other."""

    _db: apsw.Connection

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _allowed(self, filters: Filters) -> frozenset[int] | None: ...
        def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]: ...  # noqa: D102
        def writing(self) -> AbstractContextManager[None]: ...  # noqa: D102

    def _recent(self) -> Recent | None:
        """What was read lately, where a store keeps that."""
        return None

    def unjudged(self, limit: int) -> list[int]:
        """Rows whose likeness to others was not looked at since they or their document changed, the oldest first."""
        return [r[0] for r in self._all("SELECT row FROM unjudged ORDER BY row LIMIT ?", (limit,))]

    def kin_of(self, form: bytes) -> bytes | None:
        """The group of a form, if any chunk has it."""
        found = self._all("SELECT kin FROM copies WHERE form = ? LIMIT 1", (form,))
        return found[0][0] if found else None

    def forms_of(self, kin: bytes, limit: int) -> dict[bytes, Chunk]:
        """The forms of a group, each with a chunk that has it."""
        found = self._all(
            "SELECT form, max(row) FROM copies WHERE joined = ?1 OR (form = ?1 AND joined IS NULL)"
            " GROUP BY form LIMIT ?2",
            (kin, limit),
        )
        return self._with_chunks(found)

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        """Forms that share a trait, the ones that share most first, the newer first among equals."""
        shared: Counter[bytes] = Counter()
        since: dict[bytes, int] = {}
        if not traits:
            return {}
        one = (
            "SELECT * FROM (SELECT coalesce(c.form, f.form), t.row FROM traits t LEFT JOIN copies c ON c.row = t.row"
            " LEFT JOIN forms f ON f.row = t.row WHERE t.trait = ? AND (c.form NOTNULL OR f.form NOTNULL)"
            " ORDER BY t.row DESC LIMIT ?)"
        )
        values = [value for trait in traits for value in (_kept(trait), _PER_TRAIT)]
        for form, row in self._all(" UNION ALL ".join([one] * len(traits)), values):
            shared[form] += 1
            since[form] = row
        best = sorted(shared, key=lambda f: (-shared[f], -since[f], f))[:limit]
        marks = ",".join("?" * len(best))
        found = dict(self._all(f"SELECT form, max(row) FROM copies WHERE form IN ({marks}) GROUP BY form", best))
        return self._with_chunks([(form, found[form]) for form in best if form in found])

    def _with_chunks(self, found: Iterable[tuple[Any, ...]]) -> dict[bytes, Chunk]:
        rows: dict[bytes, int] = dict(found)
        chunks = self.chunks(list(rows.values()))
        return {form: chunks[row] for form, row in rows.items() if row in chunks}

    def kin_known(self, forms: Sequence[bytes], traits: Sequence[int]) -> tuple[set[bytes], set[int]]:
        """Which of some forms any chunk or group has, and which of some traits any form has."""
        known: set[bytes] = set()
        for part in in_parts(sorted(forms), _IN):  # in the order of the index, so that no page of it is read twice
            asked = f"WITH asked (form) AS (VALUES {','.join(['(?)'] * len(part))}) SELECT form FROM asked"
            for column in ("form", "joined"):
                sql = f"{asked} WHERE EXISTS (SELECT 1 FROM copies c WHERE c.{column} = asked.form)"
                known.update(form for (form,) in self._all(sql, part))
        sql = (
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM traits t WHERE t.trait = value"
            " AND (t.row IN (SELECT row FROM copies) OR t.row IN (SELECT row FROM forms)))"
        )
        found = {trait for (trait,) in self._all(sql, (json.dumps(sorted(map(_kept, traits))),))}
        return known, {trait for trait in traits if _kept(trait) in found}

    def put_copies(self, copies: Sequence[Copy]) -> None:
        """Notes what chunks say and replace, what is new of their forms, and that they were judged."""
        rows = [(c.chunk.row,) for c in copies]
        copies = sorted(copies, key=lambda c: c.form)  # in the order of the indexes: each page of them is changed once
        traits = sorted((_kept(trait), c.chunk.row) for c in copies for trait in c.traits)
        pairs = [pair for c in copies for other in c.conflicts for pair in ((c.form, other), (other, c.form))]
        with self.writing():
            self._db.executemany("INSERT OR IGNORE INTO traits VALUES (?, ?)", traits)
            self._db.executemany("INSERT OR IGNORE INTO conflicts VALUES (?, ?)", pairs)
            self._db.executemany("DELETE FROM replaced WHERE row = ?", rows)
            self._db.executemany(
                "INSERT INTO copies VALUES (?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE SET"
                " form = excluded.form, joined = excluded.joined, standing = excluded.standing",
                [(c.chunk.row, c.form, None if c.kin == c.form else c.kin, c.standing, c.chunk.id) for c in copies],
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO replaced VALUES (?, ?, ?)",
                [(*replaced, c.chunk.row) for c in copies for replaced in c.replaces],
            )
            self._db.executemany("DELETE FROM unjudged WHERE row = ?", rows)
            self._judged()

    def _judged(self) -> None:
        """Counts changes of what passages are to each other; inside a transaction."""
        self._db.execute("INSERT INTO meta VALUES ('judged', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1")

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        """What was found out about chunks, by row; those that wait to be judged are left out."""
        out: dict[int, Judgement] = {}
        for part in in_parts(rows, _IN):
            marks = ",".join("?" * len(part))
            found = self._all(
                f"SELECT row, form, kin FROM copies WHERE row IN ({marks}) AND row NOT IN (SELECT row FROM unjudged)",
                part,
            )
            against: dict[bytes, list[bytes]] = defaultdict(list)
            forms = list({form for _, form, _ in found})
            sql = f"SELECT one, other FROM conflicts WHERE one IN ({','.join('?' * len(forms))}) ORDER BY other"
            for one, other in self._all(sql, forms):
                against[one].append(other)
            out.update((row, Judgement(form, kin, tuple(against[form]))) for row, form, kin in found)
        return out

    def join(self, form: bytes, kin: bytes) -> None:
        """Moves all chunks of a form to a group."""
        with self.writing():
            self._db.execute("UPDATE copies SET joined = nullif(?, form) WHERE form = ?", (kin, form))
            self._judged()

    def judge_anew(self) -> None:
        """Forgets every judgement; all chunks wait again."""
        with self.writing():
            for table in ("copies", "forms", "traits", "conflicts", "replaced"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("UPDATE meta SET value = 0 WHERE key = 'stale'")
            self._db.execute("INSERT OR IGNORE INTO unjudged SELECT row FROM chunks")
            self._judged()

    def _sweep_traits(self, *, all_of_them: bool = False) -> None:
        """Drops the traits of forms that went, once they are many or `all_of_them`: it takes a look at every trait."""
        stale, forms = self._all("SELECT value, (SELECT count(*) FROM copies) FROM meta WHERE key = 'stale'")[0]
        if stale > (0 if all_of_them else max(_STALE, forms // _STALE_SHARE)):
            self._db.execute(
                "DELETE FROM traits WHERE row NOT IN (SELECT row FROM copies UNION ALL SELECT row FROM forms)"
            )
            self._db.execute("UPDATE meta SET value = 0 WHERE key = 'stale'")

    def relations(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Relations]:
        """What passages that pass the filters are to these, by row; rows that have no relation are left out."""
        kept = None if filters or len(chunks) > AT_ONCE else self._recent()
        if kept is None:
            return self._related(chunks, filters)
        known = kept.kin
        if todo := [c for c in chunks if c.row not in known]:
            found = self._related(todo, filters)
            known.update((c.row, found.get(c.row)) for c in todo)
        return {c.row: one for c in chunks if (one := known[c.row]) is not None}

    def _related(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Relations]:
        """The same, from the tables; what one passage is told does not depend on which others are asked for."""
        by_row = {c.row: c for c in chunks}
        allowed = self._allowed(filters)
        newest = self._newest(list(by_row), allowed)
        disputed, replaced = self._all("SELECT EXISTS (SELECT 1 FROM conflicts), EXISTS (SELECT 1 FROM replaced)")[0]
        conflicts = self._conflicts(list(by_row), allowed) if disputed else {}
        if not (newest or conflicts or replaced):
            return {}
        heads = {*newest.values(), *(row for against in conflicts.values() for row, _ in against)}
        known = by_row | self.chunks([r for r in heads if r not in by_row])
        successors = self._successors(list(known.values()), allowed) if replaced else {}
        # What was replaced does not come back by an older copy of it, and nobody need be told that it says otherwise.
        gone = {row: by for row, by in successors.items() if not known[row].facts.pinned}
        for row, head in newest.items():
            if head in gone and gone[head] != row:
                successors.setdefault(row, gone[head])
        known |= self.chunks([r for r in set(successors.values()) if r not in known])
        out: dict[int, Relations] = {}
        for row in by_row:
            by = known.get(successors.get(row) or newest.get(row) or 0)
            copy = row not in successors and by is not None
            against = sorted(name for other, name in conflicts.get(row, ()) if other not in gone)
            if by or against:
                out[row] = Relations(by.id if by else "", by.citation if by else "", copy, tuple(against))
        return out

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        """The passages that are left out of answers because of this one, the oldest row first."""
        named = self._all(
            "SELECT c.row FROM replaced r JOIN chunks c ON c.id = r.target WHERE r.row = ?1 UNION"
            " SELECT c.row FROM replaced r JOIN documents d ON d.path = r.target JOIN chunks c ON c.document = d.id"
            " WHERE r.row = ?1 LIMIT ?2",
            (chunk.row, _IN_GROUP),
        )
        own = [chunk.row, *(row for (row,) in named)]
        marks = ",".join("?" * len(own))
        kin = f"IN (SELECT kin FROM copies WHERE row IN ({marks}))"
        sql = f"SELECT row FROM copies WHERE joined {kin} OR (form {kin} AND joined IS NULL) LIMIT ?"
        rows = {*own, *(row for (row,) in self._all(sql, (*own, *own, _IN_GROUP)))}
        others = self.chunks(sorted(rows - {chunk.row}))
        related = self.relations(list(others.values()), Filters())
        return [c for row, c in others.items() if row in related and related[row].superseded_by == chunk.id]

    def _newest(self, rows: Sequence[int], allowed: frozenset[int] | None) -> dict[int, int]:
        """The row that stands for a group, for those that another stands for."""
        out: dict[int, int] = {}
        for part in in_parts(rows, _IN):
            marks = ",".join("?" * len(part))
            found = self._all(
                f"SELECT k.row, (SELECT row FROM ({_GROUP.format('k.kin')} LIMIT 1)), k.kin"
                f" FROM copies k WHERE k.row IN ({marks}) AND {_IN_COMPANY}",
                part,
            )
            for row, best, kin in found:
                head = best
                if best != row and allowed is not None and best not in allowed:
                    head = next((r for r, _ in self._group(kin, _IN_GROUP) if r in allowed), row)
                if head != row:
                    out[row] = head
        return out

    def _group(self, kin: bytes, limit: int) -> list[tuple[int, str]]:
        """Rows and ids of a group, the one that stands for it first."""
        return [(r[0], r[1]) for r in self._all(f"{_GROUP.format('?1')} LIMIT ?2", (kin, limit))]

    def _conflicts(self, rows: Sequence[int], allowed: frozenset[int] | None) -> dict[int, list[tuple[int, str]]]:
        """Rows and ids of the newest passages that say otherwise."""
        out: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for part in in_parts(rows, _IN):
            marks = ",".join("?" * len(part))
            found = self._all(
                "SELECT k.row, (SELECT h.kin FROM copies h WHERE h.form = x.other LIMIT 1)"
                f" FROM copies k JOIN conflicts x ON x.one = k.form WHERE k.row IN ({marks})",
                part,
            )
            for row, kin in dict.fromkeys(found):
                group = self._group(kin, 1 if allowed is None else _IN_GROUP)
                head = next(((r, i) for r, i in group if r != row and (allowed is None or r in allowed)), None)
                if head:
                    out[row].append(head)
        return out

    def _successors(self, chunks: Sequence[Chunk], allowed: frozenset[int] | None) -> dict[int, int]:
        """The row that says it supersedes a chunk, its part of a note or the whole note; not if each says so."""
        claims = self._claims_on(list({name for c in chunks for name in (c.id, c.path)}), allowed)
        if not claims:
            return {}
        known = self.chunks(list({row for found in claims.values() for _, row in found}))
        mine = self._claims_of([c.row for c in chunks])
        out: dict[int, int] = {}
        for c in chunks:
            found = [(row, True) for _, row in claims.get(c.id, ())]
            found += [(row, bool(piece)) for piece, row in claims.get(c.path, ()) if _within(piece, c)]
            for row, precise in found:
                by = known.get(row)
                if by is None or row == c.row or mine[c.row] & {by.id, by.path}:
                    continue
                if precise or by.path != c.path:  # a note that names itself does not vanish
                    out[c.row] = row
                    break
        return out

    def _claims_on(self, names: Sequence[str], allowed: frozenset[int] | None) -> dict[str, list[tuple[str, int]]]:
        """Who says that it replaces what has one of these names: which part of it, and the row that says so."""
        claims: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for part in in_parts(names, _IN):
            marks = ",".join("?" * len(part))
            sql = f"SELECT target, part, row FROM replaced WHERE target IN ({marks}) ORDER BY row"
            for target, piece, row in self._all(sql, part):
                if allowed is None or row in allowed:
                    claims[target].append((piece, row))
        return claims

    def _claims_of(self, rows: Sequence[int]) -> dict[int, set[str]]:
        out: dict[int, set[str]] = defaultdict(set)
        for part in in_parts(rows, _IN):
            marks = ",".join("?" * len(part))
            for row, target in self._all(f"SELECT row, target FROM replaced WHERE row IN ({marks})", part):
                out[row].add(target)
        return out


def _kept(trait: int) -> int:
    """As much of a trait as is kept: passages that share no more than that are seldom, and are then compared."""
    return (trait & 0xFFFFFFFF) - (1 << 31)


def _within(part: str, chunk: Chunk) -> bool:
    """Whether a chunk is what follows `#` in a reference: lines that it touches, or a heading that it is under."""
    if not part:
        return True
    if lines := _LINES.match(part):
        first, last = int(lines[1]), int(lines[2] or lines[1])
        return chunk.start_line <= last and chunk.end_line >= first
    wanted = _slug(part)
    return any(_slug(title) == wanted for title in chunk.heading)


def _slug(title: str) -> str:
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")
