"""The index as one SQLite file: chunks, postings of our own terms, vectors as BLOBs keyed by content and model."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import apsw

from recollect.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from recollect.ports import Nearest, Scored, Stored, Vectors
from recollect.store.history import HistoryTables
from recollect.store.keywords import KeywordTables, stem_of, texts_of
from recollect.store.kin import KinTables
from recollect.store.lock import locked
from recollect.store.matrix import SMALL_DIM, Matrix, to_blob
from recollect.store.numbers import code
from recollect.store.pages import RESERVED_BYTES, checking_vfs
from recollect.store.recent import AT_ONCE, Recent
from recollect.store.rows import CHUNK, as_json, chunk_of, hash_kept, in_parts, iso, path_matcher
from recollect.store.schema import APPLICATION_ID, MIGRATIONS
from recollect.store.segments import VectorTables
from recollect.types import Chunk, Document, Facts, Filters

BUSY_TIMEOUT_MS = 10_000
MOUNTS = Path("/proc/self/mounts")
_NETWORK_FILE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "afs", "fuse.sshfs", "fuse.rclone", "ceph", "glusterfs")
_OPEN_AGAIN_S = 0.02
_LEFT_BEHIND_S = 3600.0
_PLAUSIBLE_VERSION = 1000
_COUNTED = ("generation", "chunks", "place", "judged", "stale")
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name, type"
_FILTERS = 16
_FACTS = (
    "path", "source", "size", "mtime_ns", "synced_ns", "digest", "name", "title", "date", "evergreen", "importance",
    "pinned", "supersedes", "tail",
)  # fmt: skip
_PUT_DOCUMENT = (
    f"INSERT INTO documents ({', '.join(_FACTS)}) VALUES ({', '.join('?' * len(_FACTS))})"
    f" ON CONFLICT (path) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _FACTS)} RETURNING id"
)
_KEPT_BYTES = f"(CASE WHEN m.dim < {SMALL_DIM} THEN 4 * m.dim ELSE m.dim END)"


class Allowed(frozenset[int]):
    """Rows that pass a filter, as a set and, sorted, as an array."""

    @cached_property
    def rows(self) -> Any:
        """The rows in ascending order."""
        import numpy as np  # noqa: PLC0415

        return np.sort(np.fromiter(self, dtype=np.int64, count=len(self)))


@contextlib.contextmanager
def _translated(path: str) -> Iterator[None]:  # noqa: C901 - one branch for each kind of error
    """SQLite's errors as ours, each with the sentence that helps."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamagedError(
            f"the index {path} is damaged: {error}", hint="recollect index --force builds it anew"
        ) from error
    except apsw.ConstraintError as error:  # such as a counter that stands behind what it counts
        raise StoreDamagedError(
            f"the index {path} contradicts itself: {error}", hint="recollect index --force builds it anew"
        ) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusyError(
            f"another process has been writing to {path} for too long", hint="wait for it, or end it, and try again"
        ) from error
    except apsw.FullError as error:
        raise StoreError(
            "the disk is full", hint=f"free some space where {path} is; nothing was half written"
        ) from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise StoreError(f"{path} cannot be written", hint="check its permissions, or set index.path") from error
    except apsw.CantOpenError as error:
        raise StoreError(f"{path} cannot be opened", hint="check that the folder exists and is readable") from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:  # the checksum of a page
            raise StoreDamagedError(
                f"the index {path} is damaged: a page is not what was written", hint="recollect index --force"
            ) from error
        raise StoreError(f"reading or writing {path} failed: {error}", hint="check the disk it is on") from error
    except apsw.ConnectionClosedError as error:
        raise StoreError("the memory is closed", hint="open it again") from error
    except apsw.SQLError as error:
        if str(error).startswith(("no such table", "vtable constructor failed")):
            raise StoreDamagedError(
                f"the index {path} lacks a part: {error}", hint="recollect index --force builds it anew"
            ) from error
        # SQL that is wrong is our fault, not the file's: it must not cost the index.
        raise StoreError(f"the index did not understand a question: {error}", hint="please report it") from error


def on_network(path: Path) -> bool:
    """Whether a path lies on a file system where SQLite's WAL is unsafe."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    best, kind = "", ""
    where = str(path.resolve())
    for line in mounts:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        place = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), parts[1])
        if (where + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(best):
            best, kind = place, parts[2]
    return kind.startswith(_NETWORK_FILE_SYSTEMS)


class SqliteStore(KeywordTables, VectorTables, KinTables, HistoryTables):
    """One file, one writer at a time, as many readers as there are threads and processes."""

    def __init__(self, path: Path | None, *, read_only: bool = False, vfs: str | None = None) -> None:
        self.path = self.name = str(path) if path else ":memory:"
        self.read_only = read_only
        self._vfs = vfs or (checking_vfs() if path else None)
        self._file = path
        self._lock = threading.RLock()
        self._readers: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._local = threading.local()
        super().__init__()
        self._matrices: dict[str, Matrix] = {}
        self._missing: dict[str, tuple[tuple[int, int], list[int]]] = {}
        self._passed: dict[Filters, tuple[tuple[Any, ...], Allowed]] = {}
        self._lately = Recent(())
        self._writer = 0  # the thread whose transaction is open
        self._changed = False
        self._moved = False
        self._touches = False
        self._closed = False
        self._reading = 0
        self._quiet = threading.Condition()
        with _translated(self.path):
            if path and not read_only and not path.exists():
                _appear(path, self._vfs)
            # An empty file is made an index in place, where two processes meet and SQLite does not wait.
            until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
            while not self._opened(last=time.monotonic() >= until):
                time.sleep(_OPEN_AGAIN_S)

    def _opened(self, *, last: bool) -> bool:
        """Opens and prepares the file; False where another process is at it, which on the `last` try is an error."""
        self._db = self._connect()
        try:
            self._check_version()
            self._prepare()
            self._migrate()
            self._places = self._inodes()
            self._settle_in()
        except (apsw.BusyError, StoreBusyError):
            self._db.close()
            if last:
                raise
            return False
        except BaseException:
            self._db.close()
            raise
        return True

    def _connect(self) -> apsw.Connection:
        if self._file is None:
            db = apsw.Connection(":memory:")
        elif self.read_only:
            db = self._connect_read_only(self._file, self._vfs)
        else:
            try:
                if not self._file.exists():
                    os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                raise StoreError(
                    f"{self.path} cannot be made: {error.strerror}", hint="check the folder, or set index.path"
                ) from error
            db = apsw.Connection(self.path, vfs=self._vfs)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.execute("PRAGMA trusted_schema = OFF")  # the file may have come with a repository
        return db

    def _inodes(self) -> list[tuple[int, int] | None]:
        """Which files the index and its WAL are now."""
        found: list[tuple[int, int] | None] = []
        for end in ("", "-wal") if self._file else ():
            with contextlib.suppress(OSError):
                status = os.stat(self.path + end)
                found.append((status.st_dev, status.st_ino))
                continue
            found.append(None)
        return found

    @property
    def inode(self) -> tuple[int, int] | None:
        """Which file was opened."""
        return self._places[0] if self._places else None

    def swapped(self) -> bool:
        """Whether the file of this name is no longer the one that is open; losing the WAL alone is damage."""
        now = self._inodes()
        if now[:1] != self._places[:1]:
            return True
        if not self.read_only and now[1:] != self._places[1:] and any(self._places[1:]):
            raise StoreDamagedError(f"the WAL of {self.path} was taken away", hint="it is made anew by itself")
        return False

    def _prepare(self) -> None:
        """Settings of the writing connection; only after the version check, so that a newer file is left alone."""
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.execute("PRAGMA temp_store = MEMORY")
        self._db.execute("PRAGMA cache_size = -16000")
        if self._file is not None and not self.read_only:
            self._db.execute("PRAGMA page_size = 8192")  # of a new file; five vectors of 384 fill such a page
            if self._vfs:
                self._db.reserve_bytes("main", RESERVED_BYTES)  # of a new file; of an older one with its next VACUUM
            mode = "delete" if on_network(self._file.parent) else "wal"
            self._db.execute(f"PRAGMA journal_mode = {mode}").fetchall()
            self._db.execute("PRAGMA synchronous = NORMAL" if mode == "wal" else "PRAGMA synchronous = FULL")

    @staticmethod
    def _connect_read_only(file: Path, vfs: str | None) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        uri = file.absolute().as_uri()
        db = apsw.Connection(uri + "?mode=ro", flags=flags, vfs=vfs)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except apsw.CantOpenError:
            wal = Path(f"{file}-wal")
            if wal.exists() and wal.stat().st_size:
                raise  # immutable would silently ignore what the WAL holds
            db = apsw.Connection(uri + "?immutable=1", flags=flags, vfs=vfs)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
        return db

    def _check_version(self) -> None:
        try:
            version = self._one("PRAGMA user_version")
        except apsw.IOError:
            # The first page is not what its checksum says. Where it names a later version, that one may have been
            # written without checksums: it is left alone, as any newer file.
            version = self._raw_version()
            if not len(MIGRATIONS) < version < _PLAUSIBLE_VERSION:
                raise
        else:
            if version and self._one("PRAGMA application_id") != APPLICATION_ID:
                raise StoreError(f"{self.path} is a database of another program", hint="set index.path to another file")
        if version > len(MIGRATIONS):
            raise StoreVersionError(
                f"the index {self.path} was written by a newer recollect"
                f" (schema {version}, this one knows {len(MIGRATIONS)})",
                hint="upgrade recollect, or keep a second index with index.path",
            )

    def _settle_in(self) -> None:
        """A file that was made elsewhere, by a copy or a clone, is believed only after every note was read again."""
        place = str(self._places[0]) if self._places else ""
        if place and not self.read_only and self._one("SELECT value FROM meta WHERE key = 'place'") != place:
            if self._db.execute(_SCHEMA).fetchall() != _expected_schema(MIGRATIONS):  # a trigger could undo the reading
                raise StoreDamagedError(f"the index {self.path} holds what is not ours", hint="it is made anew")
            with self.writing():
                if self._one("SELECT value FROM meta WHERE key = 'place'") != place:  # unless another has been faster
                    # The time of an earlier change of the analysis would tell that notes were read since.
                    self._db.execute("DELETE FROM meta WHERE key IN ('analysis', 'analysis_since')")
                    self._db.execute("INSERT OR REPLACE INTO meta VALUES ('place', ?)", (place,))

    def _raw_version(self) -> int:
        """The version as it stands in the header of the file, if the file says that it is ours."""
        with open(self.path, "rb") as file:
            head = file.read(100)
        return int.from_bytes(head[60:64]) if int.from_bytes(head[68:72]) == APPLICATION_ID else 0

    def _migrate(self) -> None:
        if self._one("PRAGMA user_version") == len(MIGRATIONS):
            return
        if self.read_only:
            raise StoreVersionError(f"the index {self.path} is of an older version", hint="run: recollect index")
        _migrating(self._db)
        with self.writing():
            version = self._one("PRAGMA user_version")  # another process may have been faster
            if not version and self._one("SELECT count(*) FROM sqlite_master"):
                raise StoreError(f"{self.path} is a database of another program", hint="set index.path to another file")
            for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
                self._db.execute(script).fetchall()
                self._db.execute(f"PRAGMA user_version = {number}")
            if version:
                self._code_floats()
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._tend()
        if version and self._vfs and self._one("PRAGMA checksum_verification") != "1":
            # A file from before there were checksums gets them with the first migration; if not now, with the next.
            with contextlib.suppress(apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError):
                self._db.execute("VACUUM")

    def close(self) -> None:
        """Closes every connection once its reader is done; the WAL is folded into the file by the last one."""
        with self._quiet:
            self._closed = True
            self._quiet.wait_for(lambda: not self._reading)
        with self._lock:
            for reader in list(self._readers):
                reader.close()
            # A disk that fails now keeps the WAL from being folded in, and takes nothing that was committed.
            with contextlib.suppress(apsw.FullError, apsw.IOError):
                self._db.close()

    def abandon(self) -> None:
        """Closes a store whose file was swapped; a WAL of it that was left behind must not be read into the new one."""
        self.close()
        if self._inodes()[1:] == self._places[1:]:
            for end in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(self.path + end)

    @property
    def file(self) -> Path | None:
        """The file that it is; None for one in memory."""
        return self._file

    def exclusive(self, wait_s: float) -> contextlib.AbstractContextManager[bool]:
        """Yields whether no other process indexes: a lock on a file beside the index."""
        return locked(self._file.with_suffix(".lock") if self._file else None, wait_s=wait_s)

    def embedding(self, wait_s: float) -> contextlib.AbstractContextManager[bool]:
        """Yields whether no other process makes vectors, under a lock of its own."""
        return locked(self._file.with_suffix(".embed.lock") if self._file else None, wait_s=wait_s)

    def lag_s(self) -> None:
        """A file is behind nothing."""

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction that takes the write lock at once; nested uses join it."""
        with self._lock, _translated(self.path):
            if self._writer:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            self._writer = threading.get_ident()
            self._changed = self._moved = self._touches = False
            try:
                yield
                self._flush_words()
                if self._changed or self._moved:
                    self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
                if self._moved:
                    self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'chunks'")
                if self._touches:
                    self._db.execute(
                        "INSERT INTO meta VALUES ('touched', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1"
                    )
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._forget_words()
                raise
            finally:
                self._writer = 0

    def _mine(self) -> bool:
        """Whether this thread is in a transaction of its own, whose changes it then sees; the others do not."""
        return self._writer == threading.get_ident()

    def _reader(self) -> apsw.Connection:
        """A connection of this thread's own, so that searches never wait for one another."""
        if self._file is None:
            return self._db
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            with self._lock:
                db = self._local.db = self._connect_read_only(self._file, self._vfs)
                db.execute("PRAGMA cache_size = -16000")
                self._readers.add(db)  # weakly: a thread that ends takes its connection with it
        return db

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
        """Everything that this thread reads inside, with what is given or otherwise, is of one moment; uses nest."""
        if self._file is None or self._mine():
            with self._lock:
                yield self._all
            return
        with _translated(self.path):
            with self._quiet:
                if self._closed:
                    raise StoreError("the memory is closed", hint="open it again")
                self._reading += 1
            try:
                db = self._reader()
                if db.in_transaction:
                    yield self._all
                    return
                db.execute("BEGIN")
                try:
                    yield self._all
                finally:
                    _end(db)
            finally:
                self._done_reading()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """What this thread reads inside is of one moment, and which one that is, is looked up once."""
        with self._snapshot():
            before = self._moment()
            self._local.moment = before or self._recent()
            try:
                yield
            finally:
                self._local.moment = before

    def _moment(self) -> Recent | None:
        found: Recent | None = getattr(self._local, "moment", None)
        return found

    def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        with _translated(self.path):
            if self._file is None or self._mine():
                with self._lock:
                    return self._db.execute(sql, values).fetchall()
            with self._quiet:
                if self._closed:
                    raise StoreError("the memory is closed", hint="open it again")
                self._reading += 1
            try:
                return self._reader().execute(sql, values).fetchall()
            finally:
                self._done_reading()

    def _done_reading(self) -> None:
        with self._quiet:
            self._reading -= 1
            self._quiet.notify_all()

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        with self._lock:
            row = self._db.execute(sql, tuple(values)).fetchone()
        return row[0] if row else None

    @property
    def generation(self) -> int:
        """A number that grows with every committed change of chunks or vectors, by whichever process."""
        found = self._all("SELECT value FROM meta WHERE key = 'generation'")
        return int(found[0][0])

    def _stamp(self, model: str) -> tuple[int, int]:
        """Grows when chunks change or vectors of this model do, and not when another model fills in."""
        found = self._all(
            "SELECT (SELECT value FROM meta WHERE key = 'chunks'),"
            " coalesce((SELECT changed FROM models WHERE name = ?), -1)",
            (model,),
        )
        return found[0][0], found[0][1]

    def documents(self) -> dict[str, Stored]:
        """What is indexed, by path."""
        rows = self._all("SELECT path, source, size, mtime_ns, synced_ns, digest, tail FROM documents")
        return {r[0]: Stored(*r) for r in rows}

    def put(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, fresh: bool = False,
        tail: str = "",
    ) -> None:  # fmt: skip
        """Replaces a document; chunks that are as they were keep their row and terms, unless all is made `fresh`."""
        with self.writing():
            self._moved = True
            number = self._put_document(document, digest, facts, tail)
            rows = self._own("SELECT id, heading, text, row FROM chunks WHERE document = ?", (number,))
            if not rows:
                self._insert(number, chunks)
                return
            old: dict[tuple[Any, ...], int] = {r[:3]: r[3] for r in rows}
            keys = [(c.id, as_json(c.heading), c.text) for c in chunks]
            new = set() if fresh else set(keys)
            self._drop_rows([row for key, row in old.items() if key not in new])
            stay = set() if fresh else old.keys() & new
            self._db.executemany(
                "UPDATE chunks SET start_line = ?, end_line = ?, time = ?, origin = ? WHERE row = ?",
                [
                    (c.start_line, c.end_line, iso(c.time), c.origin, old[key])
                    for key, c in zip(keys, chunks, strict=True)
                    if key in stay
                ],
            )
            self._insert(number, [c for key, c in zip(keys, chunks, strict=True) if key not in stay])

    def extend(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, drop: Sequence[str] = (),
        tail: str = "",
    ) -> None:  # fmt: skip
        """Adds chunks to a document and takes away those of the ids in `drop`; the others are not looked at."""
        with self.writing():
            number = self._put_document(document, digest, facts, tail)
            for part in in_parts(drop):
                marks = ",".join("?" * len(part))
                rows = self._all(f"SELECT row FROM chunks WHERE id IN ({marks}) AND document = ?", (*part, number))
                self._drop_rows([r[0] for r in rows])
            self._moved = self._moved or bool(chunks) or bool(drop)
            self._insert(number, chunks)

    def _put_document(self, document: Document, digest: str, facts: Facts, tail: str) -> int:
        supersedes = json.dumps(facts.supersedes) if facts.supersedes else "[]"
        found = self._own(
            _PUT_DOCUMENT,
            (
                document.path, document.source, document.size, document.mtime_ns, time.time_ns(), digest,
                stem_of(document.path).casefold(), facts.title, facts.date.isoformat() if facts.date else None,
                facts.evergreen, facts.importance, facts.pinned, supersedes, tail,
            ),
        )  # fmt: skip
        self._touched()
        return int(found[0][0])

    def _insert(self, document: int, chunks: Sequence[Chunk]) -> None:
        """Adds chunks with their terms."""
        if chunks:
            rows = self._take_rows(len(chunks))
            self._db.executemany(
                "INSERT INTO chunks"
                " (row, id, document, start_line, end_line, heading, text, content_hash, time, origin)"
                " VALUES (?,?,?,?,?,?,?,?,?,?)",
                [
                    (
                        row, c.id, document, c.start_line, c.end_line, as_json(c.heading),
                        c.text, hash_kept(c.content_hash), iso(c.time), c.origin,
                    )
                    for row, c in zip(rows, chunks, strict=True)
                ],
            )  # fmt: skip
            self._put_terms(rows, [texts_of(c) for c in chunks])
        self._tend()

    def _drop_rows(self, rows: Sequence[int]) -> None:
        self._drop_terms(rows)
        self._db.executemany("DELETE FROM chunks WHERE row = ?", [(row,) for row in rows])

    def touch(self, documents: Sequence[Document]) -> None:
        """Notes a new stat for documents whose content did not change."""
        with self.writing():
            self._touched()
            for document in documents:
                self._db.execute(
                    "UPDATE documents SET size = ?, mtime_ns = ?, synced_ns = ? WHERE path = ?",
                    (document.size, document.mtime_ns, time.time_ns(), document.path),
                )

    def _touched(self) -> None:
        """Counts, at the end of a transaction, changes of documents: filters choose by them."""
        self._touches = True

    def drop(self, paths: Sequence[str]) -> None:
        """Removes documents with their chunks and terms; vectors stay, for text that comes back elsewhere."""
        with self.writing():
            for path in paths:
                found = self._db.execute("SELECT id FROM documents WHERE path = ?", (path,)).fetchone()
                if found:
                    self._moved = True
                    rows = self._all("SELECT row FROM chunks WHERE document = ?", found)
                    self._drop_rows([r[0] for r in rows])
                    self._db.execute("DELETE FROM documents WHERE id = ?", found)
            self._tend()

    def _allowed(self, filters: Filters) -> Allowed | None:
        """Rows that pass the filters, or None when there are none; an undated file counts by its last change."""
        if not filters:
            return None
        stamp = tuple(self._all("SELECT value FROM meta WHERE key IN ('generation', 'touched') ORDER BY key"))
        if self._mine():  # what is not committed is not remembered for others
            return Allowed(self._passing(filters))
        known = self._passed.get(filters)
        if known is None or known[0] != stamp:
            if len(self._passed) >= _FILTERS:
                self._passed.clear()
            known = self._passed[filters] = (stamp, Allowed(self._passing(filters)))
        return known[1]

    def _passing(self, filters: Filters) -> list[int]:
        where, values = ["1"], []
        for column, wanted in (("d.source", filters.source), ("c.origin", filters.origin)):
            if wanted:
                where.append(f"{column} = ?")
                values.append(wanted)
        day = "coalesce(substr(c.time, 1, 10), d.date, date(d.mtime_ns / 1000000000, 'unixepoch', 'localtime'))"
        for sign, bound in ((">=", filters.since), ("<=", filters.until)):
            if bound:
                where.append(f"{day} {sign} ?")
                values.append(bound.isoformat())
        if filters.as_of:  # what has no date stays: when it was written is not known
            where.append("coalesce(substr(c.time, 1, 10), d.date, '') <= ?")
            values.append(filters.as_of.isoformat())
        if filters.path:
            matches = path_matcher(filters.path)
            where.append("d.id IN (SELECT value FROM json_each(?))")
            values.append(json.dumps([n for n, path in self._all("SELECT id, path FROM documents") if matches(path)]))
        rows = self._all(
            f"SELECT c.row FROM documents d JOIN chunks c ON c.document = d.id WHERE {' AND '.join(where)}", values
        )
        return [r[0] for r in rows]

    def _first(self, found: Sequence[Scored], limit: int) -> list[Scored]:
        """The first `limit`; of those that tie at the border, the ones with the smallest ids, not the oldest rows."""
        if len(found) <= limit or found[limit - 1].score > found[limit].score:
            return list(found[:limit])
        border = found[limit - 1].score
        above = [s for s in found if s.score > border]
        tied = [s for s in found if s.score == border]
        ids: dict[int, str] = {}
        for part in in_parts([s.row for s in tied]):
            marks = ",".join("?" * len(part))
            ids.update((r[0], r[1]) for r in self._all(f"SELECT row, id FROM chunks WHERE row IN ({marks})", part))
        tied.sort(key=lambda s: ids.get(s.row, ""))
        return [*above, *tied[: limit - len(above)]]

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        """The best rows by cosine among those that have a vector of this model."""
        allowed = self._allowed(filters)
        found = self._matrix(model).nearest(vector, limit, None if allowed is None else allowed.rows)
        return replace(found, rows=tuple(self._first(found.rows, limit)))

    def cosines(self, model: str, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector of this model."""
        return self._matrix(model).cosines(vector, rows)

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file (score 2) or by day (score 1, a longer span less)."""
        found: dict[int, float] = {}
        allowed = self._allowed(filters)

        def add(where: str, values: Sequence[Any], score: float) -> None:
            sql = (
                f"SELECT c.row FROM documents d JOIN chunks c ON c.document = d.id WHERE {where}"
                " ORDER BY d.path, c.start_line LIMIT ?"
            )
            for (row,) in self._all(sql, (*values, limit if allowed is None else -1)):
                if allowed is None or row in allowed:
                    found[row] = max(found.get(row, 0.0), score)

        for part in in_parts(names):  # most words of a question name no file, so they are looked for at once
            marks = ",".join("?" * len(part))
            for (name,) in self._all(f"SELECT DISTINCT name FROM documents WHERE name IN ({marks})", part):
                add("d.name = ?", (name,), 2.0)
        for start, end in days:
            length = (dt.date.fromisoformat(end) - dt.date.fromisoformat(start)).days + 1
            add("d.date BETWEEN ? AND ? AND c.time IS NULL", (start, end), 1.0 / length**0.5)
            add("c.time BETWEEN ? AND ?", (start, f"{end}T99"), 1.0 / length**0.5)
        order = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(row, score) for row, score in order[:limit]]

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Whole chunks by row."""
        kept = self._recent() if 0 < len(rows) <= AT_ONCE else None
        if kept is None:
            return {c.row: c for c in self._chunks_where("c.row", rows)}
        known = kept.chunks
        if todo := [row for row in rows if row not in known]:
            known.update((c.row, c) for c in self._chunks_where("c.row", todo))
        return {row: known[row] for row in sorted(set(rows)) if row in known}

    def _recent(self) -> Recent | None:
        """What was read lately of the index as it is now; None in a transaction, which sees what nobody else may."""
        if self._mine():
            return None
        if moment := self._moment():
            return moment
        sql = "SELECT key, value FROM meta WHERE key IN ('chunks', 'touched', 'judged') ORDER BY key"
        stamp = tuple(self._all(sql))
        kept = self._lately
        if kept.stamp != stamp or kept.full:
            kept = self._lately = Recent(stamp)
        return kept

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        """Chunks whose id begins with a prefix, at most ten."""
        rows = self._all("SELECT row FROM chunks WHERE id >= ? AND id < ? LIMIT 10", (prefix, prefix + "\uffff"))
        return self._chunks_where("c.row", [r[0] for r in rows])

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of a document in order of their lines."""
        rows = self._all("SELECT c.row FROM chunks c JOIN documents d ON c.document = d.id WHERE d.path = ?", (path,))
        return sorted(self._chunks_where("c.row", [r[0] for r in rows]), key=lambda c: (c.start_line, c.end_line))

    def _chunks_where(self, column: str, values: Sequence[Any]) -> list[Chunk]:
        out: list[Chunk] = []
        for part in in_parts(values):
            marks = ",".join("?" * len(part))
            out.extend(
                chunk_of(r)
                for r in self._all(
                    f"SELECT {CHUNK} FROM chunks c JOIN documents d ON d.id = c.document WHERE {column} IN ({marks})",
                    part,
                )
            )
        return out

    def missing(self, model: str) -> list[int]:
        """One row for every text without a vector of this model, notes before sessions, the newest first."""
        stamp = self._stamp(model)
        known = self._missing.get(model)
        if known is None or known[0] != stamp:
            rows = self._all(
                "SELECT max(c.row) FROM chunks c JOIN documents d ON d.id = c.document"
                " WHERE NOT EXISTS (SELECT 1 FROM vectors v"
                " WHERE v.model = (SELECT id FROM models WHERE name = :model) AND v.hash = c.content_hash)"
                " AND NOT EXISTS (SELECT 1 FROM refused r"
                " WHERE r.model = (SELECT id FROM models WHERE name = :model) AND r.content_hash = c.content_hash)"
                " GROUP BY c.content_hash ORDER BY min(d.source = 'sessions'), max(coalesce(d.date, '~')) DESC, 1 DESC",
                {"model": model},
            )
            known = self._missing[model] = (stamp, [r[0] for r in rows])
        return known[1]

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector of this model, and how many there are."""
        total = self._all("SELECT count(*) FROM chunks")[0][0]
        have = self._all(
            "SELECT count(*) FROM chunks c JOIN vectors v ON v.hash = c.content_hash"
            " WHERE v.model = (SELECT id FROM models WHERE name = ?)",
            (model,),
        )[0][0]
        return have, total

    def put_vectors(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Keeps vectors under (content hash, model)."""
        if not vectors:
            return
        with self.writing():
            self._changed = True
            dim = len(next(iter(vectors.values())))
            number, known = self._model(model, dim)
            if known != dim:
                raise StoreError(
                    f"{model} gave {dim} dimensions, the index has {known} of it",
                    hint="a model changed under its name: delete the index file, it comes back by itself",
                )
            self._db.executemany(
                "INSERT OR REPLACE INTO vectors (hash, model, vector) VALUES (?, ?, ?)",
                [(hash_kept(key), number, to_blob(vector)) for key, vector in vectors.items()],
            )
            self._packed(number, model, dim)

    def _model(self, name: str, dim: int) -> tuple[int, int]:
        """The row of a model and its dimensions (0: no vector yet), noted as changed."""
        self._db.execute("INSERT OR IGNORE INTO models (name, dim) VALUES (?, ?)", (name, dim))
        self._db.execute("UPDATE models SET dim = ? WHERE name = ? AND dim = 0", (dim, name))
        self._note(name)
        rows: list[Any] = self._db.execute("SELECT id, dim FROM models WHERE name = ?", (name,)).fetchall()
        return rows[0][0], rows[0][1]

    def _note(self, model: str) -> None:
        """Counts a change of a model's vectors; a model that was pruned and comes back never counts from the start."""
        self._db.execute(
            "UPDATE models SET changed ="
            " 1 + max(changed, (SELECT value FROM meta WHERE key = 'generation')) WHERE name = ?",
            (model,),
        )

    def dims(self) -> dict[str, int]:
        """The dimensions of every model that has been used."""
        return {r[0]: r[1] for r in self._all("SELECT name, dim FROM models WHERE dim > 0")}

    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        """Remembers texts, by content hash, that a model refused: they are no longer missing."""
        with self.writing():
            self._changed = True
            number, _ = self._model(model, 0)
            self._db.executemany(
                "INSERT OR REPLACE INTO refused (model, content_hash, reason) VALUES (?, ?, ?)",
                [(number, hash_kept(key), reason) for key, reason in reasons.items()],
            )

    def forgive(self, model: str) -> None:
        """Forgets what a model refused, so that it is tried again."""
        with self.writing():
            self._changed = True
            self._note(model)
            self._db.execute("DELETE FROM refused WHERE model = (SELECT id FROM models WHERE name = ?)", (model,))

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        """Path, first line and reason of every chunk that a model refused."""
        rows = self._all(
            "SELECT d.path, c.start_line, r.reason FROM refused r JOIN chunks c ON c.content_hash = r.content_hash"
            " JOIN documents d ON d.id = c.document WHERE r.model = (SELECT id FROM models WHERE name = ?)"
            " ORDER BY d.path, c.start_line",
            (model,),
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def idle(self) -> tuple[int, int]:
        """How many vectors are of text that is in no document now, and their bytes."""
        rows = self._all(
            f"SELECT count(*), coalesce(sum({_KEPT_BYTES}), 0) FROM vectors v JOIN models m ON m.id = v.model"
            " WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.content_hash = v.hash)"
        )
        return rows[0][0], rows[0][1]

    def trim(self, most_bytes: int) -> int:
        """Drops the oldest vectors of text that is in no document now until they fit, and says how many went."""
        if self.idle()[1] <= most_bytes:
            return 0
        with self.writing():
            rows = self._all(
                f"SELECT v.row, {_KEPT_BYTES} FROM vectors v JOIN models m ON m.id = v.model"
                " WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.content_hash = v.hash) ORDER BY v.row"
            )
            excess = sum(size for _, size in rows) - most_bytes
            gone: list[tuple[int]] = []
            for row, size in rows:
                if excess <= 0:
                    break
                gone.append((row,))
                excess -= size
            self._db.executemany("DELETE FROM vectors WHERE row = ?", gone)
            self._dissolve()
        return len(gone)

    def prune(self, keep: Iterable[str]) -> int:
        """Drops vectors of all other models and of text that is in no document now, and gives their room back."""
        names = sorted(set(keep))
        others = f"SELECT id FROM models WHERE name NOT IN ({','.join('?' * len(names))})"
        with self.writing():
            before = self._one("SELECT count(*) FROM vectors")
            self._changed = True
            self._db.execute(f"DELETE FROM vectors WHERE model IN ({others})", names)
            self._db.execute(
                "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.content_hash = vectors.hash)"
            )
            self._db.execute(f"DELETE FROM refused WHERE model IN ({others})", names)
            self._db.execute(f"DELETE FROM models WHERE name NOT IN ({','.join('?' * len(names))})", names)
            self._dissolve()
            self._read_anew()
            gone = int(before) - int(self._one("SELECT count(*) FROM vectors"))
            self._matrices = {name: m for name, m in self._matrices.items() if name in names}
        if gone and self._file is not None:
            with contextlib.suppress(apsw.BusyError, apsw.LockedError, apsw.FullError), self._lock:
                self._db.execute("VACUUM")  # a reader at work only means that the room is given back another time
        return gone

    def audit(self) -> list[str]:
        """What of the index does not agree with the rest of it, a sentence each; reads all of it."""
        faults: list[str] = []
        try:
            self.check()
            if (found := self._verdict("integrity_check")) != "ok":  # indexes and their tables agree
                return [f"the index {self.path} is damaged: {found}"]
        except StoreDamagedError as error:
            return [str(error)]
        for sql, sentence in (
            (
                "SELECT count(*) FROM chunks WHERE document NOT IN (SELECT id FROM documents)",
                "passages belong to no file",
            ),
            ("SELECT count(*) FROM vectors WHERE model NOT IN (SELECT id FROM models)", "vectors belong to no model"),
            ("SELECT count(*) FROM pragma_foreign_key_check", "rows speak of what is gone"),
            (
                (
                    "SELECT count(*) FROM chunks WHERE row NOT IN (SELECT row FROM copies)"
                    " AND row NOT IN (SELECT row FROM unjudged)"
                ),
                "passages were never compared with others and do not wait for it",
            ),
            ("SELECT count(*) FROM forms WHERE form NOT IN (SELECT form FROM copies)", "traits are of no passage"),
            (
                (
                    "SELECT count(*) FROM conflicts WHERE one NOT IN (SELECT form FROM copies)"
                    " OR other NOT IN (SELECT form FROM copies)"
                ),
                "contradictions are of no passage",
            ),
        ):
            count = self._all(sql)[0][0]
            if count:
                faults.append(f"{count} {sentence}")
        faults += self._segment_faults()
        try:
            faults += self._audit_words()
        except StoreDamagedError as error:
            faults.append(str(error))
        return faults

    def says(self, line: str) -> bool:
        """Whether any passage holds a text as it is."""
        return bool(self._all("SELECT 1 FROM chunks WHERE instr(text, ?) LIMIT 1", (line,)))

    def scrub(self) -> tuple[int, bool]:
        """Drops vectors that no chunk has and leaves no byte of deleted text in the file or its WAL.

        Returns how many vectors went, and False where another reader kept the WAL from being emptied.
        """
        with self._lock, _translated(self.path):
            self._db.execute("PRAGMA secure_delete = ON").fetchall()
            with self.writing():
                self._moved = True
                self._db.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT content_hash FROM chunks)")
                gone = self._db.changes()
                self._dissolve(live_share=1.0)  # segments with a forgotten vector are made again without it
                self._scrub_words()
                self._sweep_traits(all_of_them=True)
            self._matrices.clear()
            self._lately = Recent(())
            self._db.execute("VACUUM")
            if self._file is None:
                return gone, True
            busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            return gone, not busy

    def models(self) -> list[tuple[str, int, int]]:
        """Each model with its dimensions and how many vectors are kept of it."""
        rows = self._all(
            "SELECT m.name, m.dim, (SELECT count(*) FROM vectors v WHERE v.model = m.id) FROM models m ORDER BY m.name"
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def counts(self) -> dict[str, int]:
        """How many documents, chunks and vectors there are, and the bytes of the file with its WAL."""
        documents, chunks, vectors = self._all(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks), (SELECT count(*) FROM vectors)"
        )[0]
        size = sum(
            Path(self.path + end).stat().st_size
            for end in ("", "-wal")
            if self._file and Path(self.path + end).exists()
        )
        return {"documents": documents, "chunks": chunks, "vectors": vectors, "bytes": size}

    def sources(self) -> list[tuple[str, int, int]]:
        """Each source with how many documents and chunks there are of it."""
        rows = self._all(
            "SELECT d.source, count(*), sum((SELECT count(*) FROM chunks c WHERE c.document = d.id))"
            " FROM documents d GROUP BY d.source ORDER BY d.source"
        )
        return [(r[0], r[1], r[2]) for r in rows]

    def _verdict(self, check: str) -> str:
        """The first thing that SQLite finds wrong, or ok."""
        if self._file is None:
            return str(self._one(f"PRAGMA {check}(1)"))
        with _translated(self.path):
            db = self._connect_read_only(self._file, self._vfs)
            try:
                return str(db.execute(f"PRAGMA {check}(1)").fetchall()[0][0])
            finally:
                db.close()

    def check(self) -> None:
        """Reads the whole file and raises StoreDamagedError where it is not sound."""
        found = self._verdict("quick_check")
        if found != "ok":
            raise StoreDamagedError(f"the index {self.path} is damaged: {found}", hint="it is made anew by itself")
        short = self._all(
            "SELECT 1 FROM vectors v JOIN models m ON m.id = v.model"
            f" WHERE length(v.vector) != {_KEPT_BYTES} * (v.place IS NULL) LIMIT 1"
        )
        if short:
            raise StoreDamagedError(f"the index {self.path} has broken vectors", hint="it is made anew by itself")

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None."""
        found = self._all("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    def remembered(self) -> dict[str, Any]:
        """All values that `set_meta` was given, by key."""
        return {key: value for key, value in self._all("SELECT key, value FROM meta") if key not in _COUNTED}

    def set_meta(self, key: str, value: str | int) -> None:
        """Remembers a value."""
        with self.writing():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


@lru_cache(maxsize=1)
def _expected_schema(migrations: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The schema that the migrations make."""
    db = apsw.Connection(":memory:")
    try:
        _migrating(db)
        for script in migrations:
            db.execute(script).fetchall()
        return db.execute(_SCHEMA).fetchall()
    finally:
        db.close()


def _appear(path: Path, vfs: str | None) -> None:
    """Makes a new index beside its place and gives it its name in one step: nobody ever opens one that is half made."""
    for old in path.parent.glob(f"{path.name}.*.new*"):
        with contextlib.suppress(OSError):  # of a process that was killed
            if old.stat().st_mtime < time.time() - _LEFT_BEHIND_S:
                old.unlink()
    fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        SqliteStore(fresh, vfs=vfs).close()
        if not os.path.exists(f"{fresh}-wal"):  # all of it is in the one file
            # Another process may have been faster; where there are no hard links, it is made in place.
            with contextlib.suppress(OSError):
                os.link(fresh, path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made: {error.strerror}", hint="check the folder, or set index.path"
        ) from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(f"{fresh}{end}")


def _migrating(db: apsw.Connection) -> None:
    """Gives a connection what the migrations call."""
    words: dict[str, int] = {}

    def numbered(*values: Any) -> Any:
        return b"".join(code(words.setdefault(word, len(words) + 1)) for word in str(values[0]).split())

    def numbered_words(*_: Any) -> Any:
        return json.dumps(list(words))

    db.create_scalar_function("numbered", numbered, 1)
    db.create_scalar_function("numbered_words", numbered_words, 0)


def _end(db: apsw.Connection) -> None:
    """Ends a transaction of readings; an error may have done so already."""
    if db.in_transaction:
        db.execute("COMMIT")
