"""Documents in PostgreSQL: replaced, extended and dropped whole, with their chunks and terms."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from recollect.ports import Stored
from recollect.store.rows import iso
from recollect.text.words import clean, index_terms
from recollect.types import Chunk, Document, Facts


class DocumentTables:
    """The part of a PostgreSQL store that keeps documents."""

    _w: int
    _local: Any
    _grown: dict[str, int]

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        def _put_terms(self, rows: Sequence[tuple[int, str, str, str]], lengths: Sequence[int]) -> None: ...
        def _drop_terms(self, gone: Sequence[tuple[Any, ...]]) -> None: ...
        def _forget_forms(self, forms: Sequence[bytes]) -> None: ...

    def documents(self) -> dict[str, Stored]:
        """What is indexed, by path."""
        rows = self._all(
            "SELECT path, source, size, mtime_ns, synced_ns, digest, tail FROM documents"
            f" WHERE workspace = {self._w} ORDER BY id"
        )
        return {r[0]: Stored(*r) for r in rows}

    def put(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, fresh: bool = False,
        tail: str = "",
    ) -> None:  # fmt: skip
        """Replaces a document; chunks that are as they were keep their row and terms, unless all is made `fresh`."""
        self._written(lambda: self._put(document, digest, facts, chunks, fresh=fresh, tail=tail))

    def _put(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, fresh: bool, tail: str
    ) -> None:
        self._local.moved = True
        number = self._put_document(document, digest, facts, tail)
        rows = self._all(
            f"SELECT id, heading, text, row FROM chunks WHERE workspace = {self._w} AND document = %s", (number,)
        )
        old: dict[tuple[Any, ...], int] = {r[:3]: r[3] for r in rows}
        keys = [(c.id, json.dumps(c.heading, ensure_ascii=False), c.text) for c in chunks]
        new = set() if fresh else set(keys)
        self._drop_rows([row for key, row in old.items() if key not in new])
        kept = [(old[k], c) for k, c in zip(keys, chunks, strict=True) if k in old and not fresh]
        self._insert(number, [c for k, c in zip(keys, chunks, strict=True) if k not in old or fresh])
        if kept:
            self._run(
                "UPDATE chunks c SET start_line = u.first, end_line = u.last, time = u.time, origin = u.origin"
                " FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[], %s::text[])"
                f" u (row, first, last, time, origin) WHERE c.workspace = {self._w} AND c.row = u.row AND"
                " (c.start_line, c.end_line, c.time, c.origin) IS DISTINCT FROM (u.first, u.last, u.time, u.origin)",
                (
                    [row for row, _ in kept], [c.start_line for _, c in kept], [c.end_line for _, c in kept],
                    [iso(c.time) for _, c in kept], [c.origin for _, c in kept],
                ),
            )  # fmt: skip

    def extend(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, drop: Sequence[str] = (),
        tail: str = "",
    ) -> None:  # fmt: skip
        """Adds chunks to a document and takes away those of the ids in `drop`; the others are not looked at."""

        def work() -> None:
            number = self._put_document(document, digest, facts, tail)
            if drop:
                rows = self._all(
                    f"SELECT row FROM chunks WHERE workspace = {self._w} AND id = ANY(%s::text[]) AND document = %s",
                    (list(drop), number),
                )
                self._drop_rows([r[0] for r in rows])
            self._insert(number, chunks)
            self._local.moved = self._local.moved or bool(chunks) or bool(drop)

        self._written(work)

    def _put_document(self, document: Document, digest: str, facts: Facts, tail: str) -> int:
        values = {
            "path": document.path,
            "source": document.source,
            "size": document.size,
            "mtime_ns": document.mtime_ns,
            "changed": _local_time(document.mtime_ns),
            "synced_ns": time.time_ns(),
            "digest": digest,
            "name": PurePosixPath(document.path).stem.casefold(),
            "title": facts.title,
            "date": facts.date.isoformat() if facts.date else None,
            "evergreen": facts.evergreen,
            "importance": facts.importance,
            "pinned": facts.pinned,
            "supersedes": json.dumps(facts.supersedes),
            "tail": tail,
        }
        judged = "date, evergreen, pinned, source, supersedes"
        before = self._all(
            f"SELECT {judged} FROM documents WHERE workspace = {self._w} AND path = %s", (document.path,)
        )
        after, number = self._all(
            f"INSERT INTO documents (workspace, {', '.join(values)})"
            f" VALUES ({self._w}, {', '.join(f'%({name})s' for name in values)})"
            f" ON CONFLICT (workspace, path) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in values)}"
            f" RETURNING ARRAY[{', '.join(f'({name})::text' for name in judged.split(', '))}], id",
            values,
        )[0]
        if before and [_as_text(value) for value in before[0]] != after:
            self._run(
                f"INSERT INTO unjudged SELECT {self._w}, row FROM chunks WHERE workspace = {self._w} AND document = %s"
                " ON CONFLICT DO NOTHING",
                (number,),
            )
        return int(number)

    def _insert(self, document: int, chunks: Sequence[Chunk]) -> None:
        """New chunks with their terms, in a handful of statements however many they are."""
        if not chunks:
            return
        fields = []
        for chunk in chunks:
            head, _ = index_terms(f"{' '.join(chunk.heading)} {PurePosixPath(chunk.path).stem}")
            body, exact = index_terms(chunk.text)
            fields.append((head, body, exact))
        lengths = [body.count(" ") + 1 for _, body, _ in fields]
        found = self._all(
            "INSERT INTO chunks (workspace, document, id, start_line, end_line, heading, text, content_hash, length,"
            f" time, origin, head, body, exact) SELECT {self._w}, %s, u.* FROM unnest(%s::text[], %s::int[], %s::int[],"
            " %s::text[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[],"
            " %s::text[]) u RETURNING id, row",
            (
                document, [c.id for c in chunks], [c.start_line for c in chunks], [c.end_line for c in chunks],
                [json.dumps(c.heading, ensure_ascii=False) for c in chunks], [c.text for c in chunks],
                [c.content_hash for c in chunks], lengths, [iso(c.time) for c in chunks], [c.origin for c in chunks],
                *([f[n] for f in fields] for n in range(3)),
            ),
        )  # fmt: skip
        rows = dict(found)
        self._grown["chunks"] = self._grown.get("chunks", 0) + len(rows)
        self._put_terms([(rows[clean(c.id)], *f) for c, f in zip(chunks, fields, strict=True)], lengths)
        self._run(
            f"INSERT INTO unjudged SELECT {self._w}, unnest(%s::bigint[]) ON CONFLICT DO NOTHING",
            (list(rows.values()),),
        )

    def _drop_rows(self, rows: Sequence[int]) -> None:
        if not rows:
            return
        where = f"workspace = {self._w} AND row = ANY(%s::bigint[])"
        forms = [r[0] for r in self._all(f"SELECT DISTINCT form FROM copies WHERE {where}", (list(rows),))]
        gone = self._all(f"DELETE FROM chunks WHERE {where} RETURNING row, head, body, exact, length", (list(rows),))
        self._drop_terms(gone)
        self._forget_forms(forms)

    def touch(self, documents: Sequence[Document]) -> None:
        """Notes a new stat for documents whose content did not change."""
        if documents:
            self._written(lambda: self._touch(documents))

    def _touch(self, documents: Sequence[Document]) -> None:
        self._run(
            "UPDATE documents d SET size = u.size, mtime_ns = u.mtime_ns, changed = u.changed, synced_ns = %s"
            " FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::text[]) u (path, size, mtime_ns, changed)"
            f" WHERE d.workspace = {self._w} AND d.path = u.path",
            (
                time.time_ns(), [d.path for d in documents], [d.size for d in documents],
                [d.mtime_ns for d in documents], [_local_time(d.mtime_ns) for d in documents],
            ),
        )  # fmt: skip

    def drop(self, paths: Sequence[str]) -> None:
        """Removes documents with their chunks and terms; vectors stay, for text that comes back elsewhere."""
        if paths:
            self._written(lambda: self._drop(paths))

    def _drop(self, paths: Sequence[str]) -> None:
        where = f"workspace = {self._w} AND path = ANY(%s::text[])"
        numbers = [r[0] for r in self._all(f"SELECT id FROM documents WHERE {where}", (list(paths),))]
        if numbers:
            self._local.moved = True
            of = f"SELECT row FROM chunks WHERE workspace = {self._w} AND document = ANY(%s::bigint[])"
            self._drop_rows([r[0] for r in self._all(of, (numbers,))])
            self._run(f"DELETE FROM documents WHERE {where}", (list(paths),))


def _local_time(mtime_ns: int) -> str:
    """When a file changed by the clock of the machine that read it, as days are counted there."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(mtime_ns // 1_000_000_000))


def _as_text(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else value
