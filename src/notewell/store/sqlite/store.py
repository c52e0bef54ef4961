"""The index as one SQLite file, put together from its parts."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from notewell.store.lock import locked
from notewell.store.sqlite import sizes as sizes_
from notewell.store.sqlite.chunks import ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.documents import Documents
from notewell.store.sqlite.history import History
from notewell.store.sqlite.keyword_segments import KeywordSegments
from notewell.store.sqlite.keywords import Keywords
from notewell.store.sqlite.relations import Relations
from notewell.store.sqlite.session import Session
from notewell.store.sqlite.sizes import SegmentSizes
from notewell.store.sqlite.vectors import VectorTable


class SqliteStore:
    """One file, one writer at a time, as many readers as there are threads and processes."""

    shared = None  # a file has one writer at a time, so there is no work to share
    ahead = None  # a read costs microseconds
    asking = staticmethod(nullcontext)

    def __init__(
        self,
        path: Path | None,
        *,
        read_only: bool = False,
        vfs: str | None = None,
        sizes: SegmentSizes | None = None,
    ) -> None:
        sizes = sizes or sizes_.DEFAULT_SIZES
        self.connection = connection = Connection(path, read_only=read_only, vfs=vfs)
        self.name, self.file, self.read_only = connection.name, path, read_only
        chunks = ChunkReader(connection)
        segments = KeywordSegments(connection, sizes)
        self.relations = Relations(connection, chunks, sizes)
        self.documents = Documents(connection, chunks, segments, self.relations)
        self.keywords = Keywords(connection, chunks, segments, sizes)
        self.vectors = VectorTable(connection, chunks, sizes)
        self.history = History(connection, chunks)
        session = Session(connection, self.keywords, self.vectors, self.relations)
        # Bound once: a search and an index run make thousands of these calls.
        self.writing, self.reading, self.close = (
            connection.writing,
            connection.reading,
            connection.close,
        )
        self.swapped, self.abandon = connection.swapped, connection.abandon
        self.get_meta, self.set_meta = session.get_meta, session.set_meta
        self.meta, self.remembered = session.meta, session.remembered
        self.counts, self.check, self.audit, self.scrub = (
            session.counts,
            session.check,
            session.audit,
            session.scrub,
        )

    @property
    def inode(self) -> tuple[int, int] | None:
        return self.connection.inode

    @property
    def generation(self) -> int:
        return int(self.get_meta("generation"))

    def exclusive(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether no other process indexes: a lock on a file next to the index."""
        return locked(self.file.with_suffix(".lock") if self.file else None, wait_s=wait_s)

    def embedding(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether no other process makes vectors, by a second lock."""
        return locked(self.file.with_suffix(".embed.lock") if self.file else None, wait_s=wait_s)

    def lag_s(self) -> None:
        """A file is never behind another one."""
