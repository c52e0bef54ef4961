"""Documents in PostgreSQL: put, extended and dropped as a unit, with their chunks and terms; and
reading chunks.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from notewell.store.postgres.chunks import CHUNKS, ChunkReader
from notewell.store.postgres.connection import Connection, unnest, writes
from notewell.store.postgres.history import History
from notewell.store.postgres.keywords import Keywords
from notewell.store.postgres.relations import Relations
from notewell.store.rows import as_json, iso
from notewell.store.values import ChunkWords, Listed, Scored, Stored
from notewell.text.link_syntax import UUID
from notewell.text.words import clean
from notewell.types import Chunk, Document, Edge, Facts, Filters

_JUDGED_BY = ("date", "evergreen", "pinned", "source", "supersedes")


_DOCUMENT = {
    "path": "text",
    "source": "text",
    "name": "text",
    "tail": "text",
    "digest": "text",
    "size": "bigint",
    "mtime_ns": "bigint",
    "changed": "text",
    "synced_ns": "bigint",
    "title": "text",
    "date": "text",
    "importance": "float8",
    "evergreen": "boolean",
    "pinned": "boolean",
    "supersedes": "text",
}
_CHUNK = {
    "document": "bigint",
    "id": "text",
    "start_line": "integer",
    "end_line": "integer",
    "heading": "text",
    "text": "text",
    "content_hash": "text",
    "length": "integer",
    "time": "text",
    "origin": "text",
    "head": "text",
    "body": "text",
    "exact": "text",
}
_AT_ONCE = 2000
_TAIL_AT = 22  # where a row that was read ahead has it


@dataclass(slots=True)
class _Change:
    """A document that waits to be written; `drop` has the ids of chunks to drop where the others
    stay.
    """

    document: Document
    digest: str
    facts: Facts
    tail: str
    chunks: Sequence[Chunk]
    words: Sequence[ChunkWords]
    fresh: bool = False
    drop: Sequence[str] | None = None
    edges: Sequence[Edge] | None = None

    def columns(self) -> tuple[Any, ...]:
        """The values of `_DOCUMENT`."""
        one, facts = self.document, self.facts
        return (
            one.path,
            one.source,
            PurePosixPath(one.path).stem.casefold(),
            self.tail,
            self.digest,
            one.size,
            one.mtime_ns,
            _local_time(one.mtime_ns),
            time.time_ns(),
            facts.title,
            facts.date.isoformat() if facts.date else None,
            facts.importance,
            facts.evergreen,
            facts.pinned,
            json.dumps(facts.supersedes),
        )


class Documents:
    """The part of a PostgreSQL store that holds documents and their chunks."""

    def __init__(
        self,
        connection: Connection,
        chunks: ChunkReader,
        keywords: Keywords,
        relations: Relations,
        history: History,
    ) -> None:
        self._db = connection
        self._reader, self._keywords, self._relations, self._history = (
            chunks,
            keywords,
            relations,
            history,
        )
        self.chunks = chunks.chunks

    def stored(self, paths: Sequence[str] | None = None) -> dict[str, Stored]:
        sql = (
            "SELECT path, source, size, mtime_ns, synced_ns, digest, tail FROM documents WHERE "
            "workspace = $w"
        )
        some = "" if paths is None else " AND path = ANY(%(paths)s)"
        rows = self._db.all(f"{sql}{some} ORDER BY id", {"paths": list(paths or ())})
        return {r[0]: Stored(*r) for r in rows}

    @writes
    def put(
        self,
        document: Document,
        digest: str,
        facts: Facts,
        chunks: Sequence[Chunk],
        *,
        words: Sequence[ChunkWords],
        fresh: bool = False,
        tail: str = "",
    ) -> None:
        self._db.count_change(chunks=True)
        self._put_off(_Change(document, digest, facts, tail, chunks, words, fresh=fresh))

    @writes
    def extend(
        self,
        document: Document,
        digest: str,
        facts: Facts,
        chunks: Sequence[Chunk],
        *,
        words: Sequence[ChunkWords],
        drop: Sequence[str] = (),
        tail: str = "",
    ) -> None:
        if chunks or drop:
            self._db.count_change(chunks=True)
        self._put_off(_Change(document, digest, facts, tail, chunks, words, drop=drop))

    def _put_off(self, change: _Change) -> None:
        """Leaves a document to the end of the transaction, or to the next read, so that many are
        written at once.
        """
        waiting, path = self._db.waiting(), clean(change.document.path)
        if path in waiting or sum(len(one.chunks) for one in waiting.values()) >= _AT_ONCE:
            self._db.run("SELECT 1")  # any statement writes what waits
        self._db.put_off(path, change, self._write)

    def _write(self, changes: dict[str, _Change]) -> None:
        """Writes documents, their chunks, terms and edges, in a dozen statements however many they
        are.
        """
        numbers, known = self._write_documents(changes)
        old = self._old_chunks({numbers[path]: changes[path] for path in known})
        gone: list[int] = []
        same: list[tuple[Any, ...]] = []
        new: list[tuple[int, Chunk, ChunkWords]] = []
        for path, change in changes.items():
            before = old.get(numbers[path], {})
            keys = [(c.id, as_json(c.heading), c.text) for c in change.chunks]
            kept = before.keys() & keys if change.drop is None and not change.fresh else set()
            gone += [row for key, row in before.items() if key not in kept]
            for key, c, words in zip(keys, change.chunks, change.words, strict=True):
                if key in kept:
                    same.append((before[key], c.start_line, c.end_line, iso(c.time), c.origin))
                else:
                    new.append((numbers[path], c, words))
        self._drop_rows(gone)
        self._insert(new)
        if same:
            source, values = unnest("bigint int int text text", same)
            self._db.run(
                "UPDATE chunks c SET start_line = u.first, end_line = u.last,"
                " time = u.time, origin = u.origin"
                f" FROM {source} u (row, first, last, time, origin)"
                " WHERE c.workspace = $w AND c.row = u.row AND"
                " (c.start_line, c.end_line, c.time, c.origin)"
                " IS DISTINCT FROM (u.first, u.last, u.time, u.origin)",
                values,
            )
        edges = {
            numbers[path]: change.edges
            for path, change in changes.items()
            if change.edges is not None
        }
        if edges:
            self._history.replace(edges, known=bool(known))

    def _old_chunks(
        self, changes: Mapping[int, _Change]
    ) -> dict[int, dict[tuple[str, str, str], int]]:
        """The rows of the chunks that documents have and that a change may drop, by document and
        content.
        """
        sql = (
            "SELECT document, id, heading, text, row FROM chunks"
            " WHERE workspace = $w AND document = ANY(%s::bigint[])"
            " AND (id = ANY(%s::text[]) OR document = ANY(%s::bigint[]))"
        )
        dropped = [one for change in changes.values() for one in change.drop or ()]
        replaced = [number for number, change in changes.items() if change.drop is None]
        found: dict[int, dict[tuple[str, str, str], int]] = {}
        for number, *key, row in (
            self._db.all(sql, (list(changes), dropped, replaced)) if changes else ()
        ):
            if number in replaced or key[0] in (changes[number].drop or ()):
                found.setdefault(number, {})[key[0], key[1], key[2]] = row
        return found

    def _write_documents(self, changes: Mapping[str, _Change]) -> tuple[dict[str, int], list[str]]:
        """The number of each document by path, and the paths that were there before."""
        judged_by = f"ARRAY[{', '.join(f'({name})::text' for name in _JUDGED_BY)}]"
        sql = (
            f"SELECT path, {judged_by} FROM documents WHERE workspace = $w AND path = "
            "ANY(%s::text[])"
        )
        before: dict[str, list[str]] = dict(self._db.all(sql, (list(changes),)))
        source, values = unnest(
            " ".join(_DOCUMENT.values()), [one.columns() for one in changes.values()]
        )
        found = self._db.all(
            f"INSERT INTO documents (workspace, {', '.join(_DOCUMENT)})"
            f" SELECT $w, u.* FROM {source} u"
            " ON CONFLICT (workspace, path) DO UPDATE SET"
            f" {', '.join(f'{name} = excluded.{name}' for name in _DOCUMENT)}"
            f" RETURNING path, id, {judged_by}",
            values,
        )
        again = [
            number for path, number, after in found if path in before and before[path] != after
        ]
        if again:
            self._judge_again(
                "SELECT row FROM chunks WHERE workspace = $w AND document = ANY(%s::bigint[])",
                again,
            )
        return {path: number for path, number, _ in found}, list(before)

    def _judge_again(self, rows: str, value: Any) -> None:
        self._db.run(
            f"INSERT INTO unjudged SELECT $w, row FROM ({rows}) r (row) ON CONFLICT DO NOTHING",
            (value,),
        )

    def _insert(self, chunks: Sequence[tuple[int, Chunk, ChunkWords]]) -> None:
        """Adds new chunks (document, chunk, words) with their terms."""
        if not chunks:
            return
        terms = [words.fields() for _, _, words in chunks]
        lengths = [max(1, len(t.body)) for t in terms]
        made = (
            (
                document,
                clean(c.id),
                c.start_line,
                c.end_line,
                clean(as_json(c.heading)),
                clean(c.text),
                clean(c.content_hash),
                length,
                iso(c.time),
                clean(c.origin),
                *(clean(" ".join(field)) for field in (t.head, t.body, t.exact)),
            )
            for (document, c, _), t, length in zip(chunks, terms, lengths, strict=True)
        )
        table = self._db.copy("chunks", _CHUNK, made)
        names = ", ".join(_CHUNK)
        sql = (
            f"INSERT INTO chunks (workspace, {names}) SELECT $w, {names} FROM {table} RETURNING "
            "id, row"
        )
        rows: dict[str, int] = dict(self._db.all(sql))
        self._db.grew("chunks", len(rows))
        placed = zip((rows[clean(c.id)] for _, c, _ in chunks), terms, lengths, strict=True)
        self._keywords.put(list(placed))
        self._judge_again("SELECT unnest(%s::bigint[])", list(rows.values()))

    def _drop_rows(self, rows: Sequence[int]) -> None:
        if not rows:
            return
        where = "workspace = $w AND row = ANY(%s::bigint[])"
        forms = [
            form
            for (form,) in self._db.all(
                f"SELECT DISTINCT form FROM copies WHERE {where}", (list(rows),)
            )
        ]
        gone = self._db.all(
            f"DELETE FROM chunks WHERE {where} RETURNING row, head, body, exact, length",
            (list(rows),),
        )
        self._keywords.drop(gone)
        self._relations.forget_forms(forms)

    def touch(self, documents: Sequence[Document]) -> None:
        stats = [(d.path, d.size, d.mtime_ns, _local_time(d.mtime_ns)) for d in documents]
        source, values = unnest("text bigint bigint text", stats)
        sql = (
            "UPDATE documents d SET size = u.size, mtime_ns = u.mtime_ns,"
            " changed = u.changed, synced_ns = %s"
            f" FROM {source} u (path, size, mtime_ns, changed)"
            " WHERE d.workspace = $w AND d.path = u.path"
        )
        if documents:
            self._db.write(lambda: self._db.run(sql, [time.time_ns(), *values]))

    def drop(self, paths: Sequence[str]) -> None:
        if paths:
            self._db.write(lambda: self._drop(list(paths)))

    def _drop(self, paths: list[str]) -> None:
        where = "workspace = $w AND path = ANY(%s::text[])"
        if numbers := [
            number
            for (number,) in self._db.all(f"SELECT id FROM documents WHERE {where}", (paths,))
        ]:
            self._db.count_change(chunks=True)
            of = "SELECT row FROM chunks WHERE workspace = $w AND document = ANY(%s::bigint[])"
            self._drop_rows([row for (row,) in self._db.all(of, (numbers,))])
            self._db.run(f"DELETE FROM documents WHERE {where}", (paths,))

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        return self._reader.where(
            "c.id >= %s AND c.id < %s || chr(1114111) ORDER BY c.id LIMIT 10", prefix, prefix
        )

    def chunks_of(self, path: str) -> list[Chunk]:
        return self._reader.where("d.path = %s ORDER BY c.start_line, c.end_line, c.row", path)

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file (score 2) or by day (score 1, less for a longer
        span).
        """
        scope = self._db.scope()
        found = (
            scope.found.get(("named", tuple(names), tuple(days), limit, filters)) if scope else None
        )
        if found is None:
            asked = self.named(names, days, limit, filters)
            found = self._db.all(*asked) if asked else []
        day = dt.date.fromisoformat
        worth = [2.0, *((1 + (day(end) - day(start)).days) ** -0.5 for start, end in days)]
        scores: dict[int, float] = {}
        for number, row in found:
            scores[row] = max(scores.get(row, 0.0), worth[number])
        order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(row, score) for row, score in order[:limit]]

    def named(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> tuple[str, dict[str, Any]] | None:
        """The statement for what names a chunk (0: a name; 1, 2, …: a day) and its row; None if
        nothing does.
        """
        if not names and not days:
            return None
        where, values = self._reader.passing(filters)
        only = f" AND {where}" if where else ""

        def first_rows(given: str, number: str, condition: str) -> str:
            return (
                f"SELECT {number}::integer, f.row FROM {given}"
                f" CROSS JOIN LATERAL (SELECT c.row FROM {CHUNKS}"
                f" WHERE {condition}{only} ORDER BY d.path, c.start_line LIMIT %(limit)s) f"
            )

        spans = "unnest(%(starts)s::text[], %(ends)s::text[]) WITH ORDINALITY u (first, last, n)"
        arms = (
            [first_rows("unnest(%(names)s::text[]) u (name)", "0", "d.name = u.name")]
            if names
            else []
        )
        if days:
            arms.append(
                first_rows(spans, "u.n", "d.date BETWEEN u.first AND u.last AND c.time IS NULL")
            )
            arms.append(first_rows(spans, "u.n", "c.time BETWEEN u.first AND u.last || 'T99'"))
        starts, ends = [start for start, _ in days], [end for _, end in days]
        values |= {"names": list(names), "limit": limit, "starts": starts, "ends": ends}
        return " UNION ALL ".join(arms), values

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        sql = "SELECT path, mtime_ns FROM documents WHERE workspace = $w AND path = ANY(%s::text[])"
        return dict(self._db.all(sql, (list(paths),)))

    def tails(self, paths: Sequence[str]) -> dict[str, str]:
        if scope := self._db.scope():
            read = {r[2]: r[_TAIL_AT] for r in scope.rows.values() if r[_TAIL_AT] is not None}
            if read.keys() >= set(paths):
                return {path: read[path] for path in paths}
        sql = "SELECT path, tail FROM documents WHERE workspace = $w AND path = ANY(%s::text[])"
        return dict(self._db.all(sql, (list(paths),)))

    def paths_named(self, key: str) -> list[str]:
        named = "SELECT path FROM documents WHERE workspace = $w AND "
        paths = [path for (path,) in self._db.all(f"{named} name = %s", (key,))]
        if not paths and UUID.match(key):
            paths = [
                path
                for (path,) in self._db.all(f"{named} right(name, length(%s)) = %s", (key, key))
            ]
        return sorted(paths, key=lambda p: (p.count("/"), p))

    def path_with(self, content: str) -> tuple[str, str] | None:
        rows = self._db.all(
            f"SELECT d.path, c.id FROM {CHUNKS} WHERE c.content_hash = %s UNION"
            " SELECT path, '' FROM documents WHERE workspace = $w AND digest = %s"
            " ORDER BY 1, 2 LIMIT 1",
            (content, content),
        )
        return rows[0] if rows else None

    def sources(self) -> list[tuple[str, int, int]]:
        return self._db.all(
            "SELECT d.source, count(DISTINCT d.id), count(c.row) FROM documents d"
            " LEFT JOIN chunks c ON c.workspace = $w AND c.document = d.id WHERE d.workspace = $w"
            " GROUP BY d.source ORDER BY d.source"
        )

    def listed(self, filters: Filters) -> list[Listed]:
        where, values = self._reader.passing(filters)
        rows = self._db.all(
            "SELECT d.path, d.source, d.title, d.date, d.mtime_ns,"
            " count(*), min(c.row), max(c.row), d.pinned"
            f" FROM {CHUNKS} WHERE {where or 'true'}"
            " GROUP BY d.path, d.source, d.title, d.date, d.mtime_ns, d.pinned ORDER BY d.path",
            values,
        )
        return list(map(Listed._make, rows))

    def headings(self, filters: Filters) -> list[tuple[tuple[str, ...], int]]:
        where, values = self._reader.passing(filters)
        rows = self._db.all(
            (
                f"SELECT c.heading, count(*) FROM {CHUNKS} WHERE {where or 'true'}"
                " GROUP BY c.heading ORDER BY c.heading"
            ),
            values,
        )
        # at once: few notes share a heading
        paths = json.loads(f"[{','.join(heading for heading, _ in rows)}]")
        return [(tuple(path), count) for path, (_, count) in zip(paths, rows, strict=True)]

    def texts_with(self, part: str, filters: Filters, limit: int) -> list[tuple[str, str]]:
        where, values = self._reader.passing(filters)
        sql = (
            f"SELECT d.path, c.text FROM {CHUNKS}"
            f" WHERE {where or 'true'} AND strpos(c.text, %(part)s) > 0"
            " ORDER BY c.row DESC LIMIT %(limit)s"
        )
        return list(self._db.all(sql, {**values, "part": part, "limit": limit}))

    def says(self, line: str) -> bool:
        sql = "SELECT 1 FROM chunks WHERE workspace = $w AND strpos(text, %s) > 0 LIMIT 1"
        return bool(self._db.all(sql, (line,)))


def _local_time(mtime_ns: int) -> str:
    """When a file changed, by the clock of the machine that read it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(mtime_ns // 1_000_000_000))
