"""Documents and the chunks they were cut into."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from notewell.store.rows import as_json, hash_kept, iso
from notewell.store.sqlite.chunks import ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.keyword_segments import KeywordSegments
from notewell.store.sqlite.relations import Relations
from notewell.store.values import ChunkWords, Listed, Scored, Stored
from notewell.text.link_syntax import UUID
from notewell.text.note_files import stem_of
from notewell.types import Chunk, Document, Facts, Filters

_COLUMNS = (
    "path",
    "source",
    "size",
    "mtime_ns",
    "synced_ns",
    "digest",
    "name",
    "title",
    "date",
    "evergreen",
    "importance",
    "pinned",
    "supersedes",
    "tail",
)
_PUT_DOCUMENT = (
    f"INSERT INTO documents ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
    " ON CONFLICT (path) DO UPDATE SET"
    f" {', '.join(f'{name} = excluded.{name}' for name in _COLUMNS)} RETURNING id"
)


class Documents:
    """The part of a SQLite store that keeps documents and chunks."""

    def __init__(
        self,
        connection: Connection,
        chunks: ChunkReader,
        segments: KeywordSegments,
        relations: Relations,
    ) -> None:
        self._connection, self._db = connection, connection.db
        self._all, self._all_in, self._own = connection.all, connection.all_in, connection.own
        self._chunks, self._segments, self._relations = chunks, segments, relations
        self.chunks = chunks.chunks

    def stored(self, paths: Sequence[str] | None = None) -> dict[str, Stored]:
        sql = "SELECT path, source, size, mtime_ns, synced_ns, digest, tail FROM documents"
        rows = (
            self._all(sql) if paths is None else self._all_in(f"{sql} WHERE path IN ({{}})", paths)
        )
        # a third of the time of a call of the class, for a hundred thousand rows
        new = tuple.__new__
        return {row[0]: new(Stored, row) for row in rows}

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
        with self._connection.writing():
            self._connection.chunks_changed = True
            number = self._put_document(document, digest, facts, tail)
            rows = self._own(
                "SELECT id, heading, text, row FROM chunks WHERE document = ?", (number,)
            )
            if not rows:
                self._insert(number, chunks, words)
                return
            old: dict[tuple[Any, ...], int] = {r[:3]: r[3] for r in rows}
            keys = [(c.id, as_json(c.heading), c.text) for c in chunks]
            new = set() if fresh else set(keys)
            self._delete_rows([row for key, row in old.items() if key not in new])
            unchanged = old.keys() & new
            kept = [(key, c) for key, c in zip(keys, chunks, strict=True) if key in unchanged]
            self._db.executemany(
                (
                    "UPDATE chunks SET start_line = ?, end_line = ?, time = ?, origin = ? WHERE "
                    "row = ?"
                ),
                [(c.start_line, c.end_line, iso(c.time), c.origin, old[key]) for key, c in kept],
            )
            new_ones = [n for n, key in enumerate(keys) if key not in unchanged]
            self._insert(number, [chunks[n] for n in new_ones], [words[n] for n in new_ones])

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
        with self._connection.writing():
            number = self._put_document(document, digest, facts, tail)
            sql = "SELECT row FROM chunks WHERE document = ? AND id IN ({})"
            self._delete_rows([r[0] for r in self._all_in(sql, drop, before=(number,))])
            if chunks or drop:
                self._connection.chunks_changed = True
            self._insert(number, chunks, words)

    def _put_document(self, document: Document, digest: str, facts: Facts, tail: str) -> int:
        supersedes = json.dumps(facts.supersedes) if facts.supersedes else "[]"
        found = self._own(
            _PUT_DOCUMENT,
            (
                document.path,
                document.source,
                document.size,
                document.mtime_ns,
                time.time_ns(),
                digest,
                stem_of(document.path).casefold(),
                facts.title,
                facts.date.isoformat() if facts.date else None,
                facts.evergreen,
                facts.importance,
                facts.pinned,
                supersedes,
                tail,
            ),
        )
        self._connection.documents_changed = True
        return int(found[0][0])

    def _insert(self, document: int, chunks: Sequence[Chunk], words: Sequence[ChunkWords]) -> None:
        """Adds chunks with their terms."""
        if chunks:
            rows = self._segments.take_rows(len(chunks))
            self._db.executemany(
                "INSERT INTO chunks VALUES (?,?,?,?,?,?,?,?,?,?)",
                [
                    (
                        row,
                        c.id,
                        document,
                        c.start_line,
                        c.end_line,
                        as_json(c.heading),
                        c.text,
                        hash_kept(c.content_hash),
                        iso(c.time),
                        c.origin,
                    )
                    for row, c in zip(rows, chunks, strict=True)
                ],
            )
            self._segments.put(rows, words)
        self._maintain()

    def _delete_rows(self, rows: Sequence[int]) -> None:
        self._segments.drop(rows)
        self._db.executemany("DELETE FROM chunks WHERE row = ?", [(row,) for row in rows])

    def _maintain(self) -> None:
        if self._segments.maintain():
            self._relations.sweep_traits()

    def touch(self, documents: Sequence[Document]) -> None:
        with self._connection.writing():
            self._connection.documents_changed = True
            self._db.executemany(
                "UPDATE documents SET size = ?, mtime_ns = ?, synced_ns = ? WHERE path = ?",
                [(d.size, d.mtime_ns, time.time_ns(), d.path) for d in documents],
            )

    def drop(self, paths: Sequence[str]) -> None:
        with self._connection.writing():
            for path in paths:
                if found := self._own("SELECT id FROM documents WHERE path = ?", (path,)):
                    self._connection.chunks_changed = True
                    rows = self._own("SELECT row FROM chunks WHERE document = ?", found[0])
                    self._delete_rows([r[0] for r in rows])
                    self._db.execute("DELETE FROM documents WHERE id = ?", found[0])
            self._maintain()

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        rows = self._all(
            "SELECT row FROM chunks WHERE id >= ? AND id < ? LIMIT 10", (prefix, prefix + "\uffff")
        )
        return self._chunks.read([r[0] for r in rows])

    def chunks_of(self, path: str) -> list[Chunk]:
        rows = self._all(
            "SELECT c.row FROM chunks c JOIN documents d ON c.document = d.id WHERE d.path = ?",
            (path,),
        )
        return sorted(
            self._chunks.read([r[0] for r in rows]), key=lambda c: (c.start_line, c.end_line)
        )

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file (score 2) or by day (score 1, less for a longer
        span).
        """
        found: dict[int, float] = {}
        allowed = self._chunks.allowed(filters)

        def add(where: str, values: Sequence[Any], score: float) -> None:
            sql = (
                f"SELECT c.row FROM documents d JOIN chunks c ON c.document = d.id WHERE {where}"
                " ORDER BY d.path, c.start_line LIMIT ?"
            )
            for (row,) in self._all(sql, (*values, limit if allowed is None else -1)):
                if allowed is None or row in allowed:
                    found[row] = max(found.get(row, 0.0), score)

        # Most words of a question name no file, so all are looked up at once.
        for (name,) in self._all_in(
            "SELECT DISTINCT name FROM documents WHERE name IN ({})", names
        ):
            add("d.name = ?", (name,), 2.0)
        for start, end in days:
            length = (dt.date.fromisoformat(end) - dt.date.fromisoformat(start)).days + 1
            add("d.date BETWEEN ? AND ? AND c.time IS NULL", (start, end), 1.0 / length**0.5)
            add("c.time BETWEEN ? AND ?", (start, f"{end}T99"), 1.0 / length**0.5)
        order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(row, score) for row, score in order[:limit]]

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        return dict(self._all_in("SELECT path, mtime_ns FROM documents WHERE path IN ({})", paths))

    def tails(self, paths: Sequence[str]) -> dict[str, str]:
        return dict(self._all_in("SELECT path, tail FROM documents WHERE path IN ({})", paths))

    def paths_named(self, key: str) -> list[str]:
        rows = self._all("SELECT path FROM documents WHERE name = ?", (key,))
        if not rows and UUID.match(key):
            rows = self._all("SELECT path FROM documents WHERE name LIKE '%' || ?", (key,))
        return sorted((r[0] for r in rows), key=lambda p: (p.count("/"), p))

    def path_with(self, content: str) -> tuple[str, str] | None:
        rows = self._all(
            "SELECT d.path, c.id FROM chunks c JOIN documents d ON d.id = c.document"
            " WHERE c.content_hash = ?"
            " UNION SELECT path, '' FROM documents WHERE digest = ? ORDER BY 1 LIMIT 1",
            (hash_kept(content), content),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    def sources(self) -> list[tuple[str, int, int]]:
        rows = self._all(
            "SELECT d.source, count(*),"
            " sum((SELECT count(*) FROM chunks c WHERE c.document = d.id))"
            " FROM documents d GROUP BY d.source ORDER BY d.source"
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def listed(self, filters: Filters) -> list[Listed]:
        where, values = self._chunks.only(filters)
        rows = self._all(
            "SELECT d.path, d.source, d.title, d.date, d.mtime_ns, n, first, last, d.pinned"
            " FROM (SELECT c.document, count(*) AS n, min(c.row) AS first, max(c.row) AS last"
            f" FROM chunks c{where} GROUP BY c.document)"
            " JOIN documents d ON d.id = document ORDER BY d.path",
            values,
        )
        return list(map(Listed._make, rows))

    def headings(self, filters: Filters) -> list[tuple[tuple[str, ...], int]]:
        where, values = self._chunks.only(filters)
        counts = Counter(
            heading for (heading,) in self._all(f"SELECT c.heading FROM chunks c{where}", values)
        )
        paths = json.loads(f"[{','.join(counts)}]")  # at once: few notes share a heading
        return list(zip(map(tuple, paths), counts.values(), strict=True))

    def texts_with(self, part: str, filters: Filters, limit: int) -> list[tuple[str, str]]:
        where, values = self._chunks.only(filters)
        has = f"{' AND' if where else ' WHERE'} instr(c.text, ?)"
        sql = (
            f"SELECT d.path, c.text FROM chunks c JOIN documents d ON d.id = c.document{where}{has}"
        )
        return self._all(f"{sql} ORDER BY c.row DESC LIMIT ?", (*values, part, limit))

    def says(self, line: str) -> bool:
        return bool(self._all("SELECT 1 FROM chunks WHERE instr(text, ?) LIMIT 1", (line,)))
