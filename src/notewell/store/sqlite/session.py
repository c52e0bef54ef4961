"""Values that a store remembers, and its health: what is counted, checked, audited and scrubbed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from notewell.errors import StoreDamagedError
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.error_translation import translated
from notewell.store.sqlite.keywords import Keywords
from notewell.store.sqlite.relations import Relations
from notewell.store.sqlite.schema import COUNTERS
from notewell.store.sqlite.vectors import VectorTable

_OWN_KEYS = frozenset((*COUNTERS, "inode"))
_FAULTS = {  # what must not be there, and the rows that would be it
    "passages belong to no file": "chunks WHERE document NOT IN (SELECT id FROM documents)",
    "passages have no keywords": "chunks WHERE row NOT IN (SELECT row FROM fields)",
    "keyword rows have no passage": "fields WHERE row NOT IN (SELECT row FROM chunks)",
    "vectors belong to no model": "vectors WHERE model NOT IN (SELECT id FROM models)",
    "windows belong to no vector": "windows WHERE (model, content_hash) NOT IN"
    " (SELECT model, content_hash FROM vectors)",
    "rows refer to something that is gone": "pragma_foreign_key_check",
    "passages were never compared with others and do not wait for it": "chunks"
    " WHERE row NOT IN (SELECT row FROM copies) AND row NOT IN (SELECT row FROM unjudged)",
    "traits belong to no passage": "forms WHERE form NOT IN (SELECT form FROM copies)",
    "contradictions belong to no passage": "conflicts"
    " WHERE one NOT IN (SELECT form FROM copies) OR other NOT IN (SELECT form FROM copies)",
}


class Session:
    """The part of a SQLite store that remembers values and looks after the whole file."""

    def __init__(
        self, connection: Connection, keywords: Keywords, vectors: VectorTable, relations: Relations
    ) -> None:
        self._connection, self._all = connection, connection.all
        self._keywords, self._vectors, self._relations = keywords, vectors, relations

    def get_meta(self, key: str) -> Any:
        return self._connection.values(key)[0]

    def meta(self) -> Mapping[str, Any]:
        return self._connection.meta()

    def remembered(self) -> dict[str, Any]:
        return {
            key: value for key, value in self._connection.meta().items() if key not in _OWN_KEYS
        }

    def set_meta(self, key: str, value: str | int) -> None:
        with self._connection.writing():
            self._connection.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def counts(self) -> dict[str, int]:
        """The number of documents, chunks and vectors, and the bytes of the file with its WAL."""
        documents, chunks, vectors = self._all(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), (SELECT "
            "count(*) FROM vectors)"
        )[0]
        files = (
            [Path(self._connection.name + end) for end in ("", "-wal")]
            if self._connection.file
            else []
        )
        size = sum(file.stat().st_size for file in files if file.exists())
        return {"documents": documents, "chunks": chunks, "vectors": vectors, "bytes": size}

    def check(self) -> None:
        """Reads all of the file and raises StoreDamagedError where it is damaged."""
        name = self._connection.name
        found = self._connection.verdict("quick_check")
        if found != "ok":
            raise StoreDamagedError(
                f"the index {name} is damaged: {found}", hint="it rebuilds itself"
            )
        if faults := self._vectors.audit():
            raise StoreDamagedError("; ".join(faults), hint="it rebuilds itself")

    def audit(self) -> list[str]:
        try:
            self.check()
            if (
                found := self._connection.verdict("integrity_check")
            ) != "ok":  # indexes and their tables agree
                return [f"the index {self._connection.name} is damaged: {found}"]
        except StoreDamagedError as error:
            return [str(error)]
        counted = [
            (self._all(f"SELECT count(*) FROM {where}")[0][0], fault)
            for fault, where in _FAULTS.items()
        ]
        faults = [f"{count} {fault}" for count, fault in counted if count]
        try:
            faults += self._keywords.audit()
        except StoreDamagedError as error:
            faults.append(str(error))
        return faults

    def scrub(self) -> tuple[int, bool]:
        """Leaves no byte of deleted text in the file or its WAL; False where a reader keeps the WAL
        from being cut.
        """
        connection = self._connection
        with connection.lock, translated(connection.name):
            connection.db.execute("PRAGMA secure_delete = ON").fetchall()
            with connection.writing():
                connection.chunks_changed = True
                gone = self._vectors.scrub()
                self._keywords.scrub()
                self._relations.sweep_traits(all_of_them=True)
            self._vectors.forget()
            connection.clear_cache()
            connection.db.execute("VACUUM")
            if connection.file is None:
                return gone, True
            busy = connection.own("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
            return gone, not busy
