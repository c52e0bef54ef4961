"""A SQLite file: opened and checked, read by many threads, written in one transaction at a time."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import get_ident
from typing import Any, NamedTuple

import apsw

from notewell.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from notewell.opener import beside
from notewell.store.network_fs import on_network
from notewell.store.rows import in_parts
from notewell.store.sqlite import schema
from notewell.store.sqlite.checksum_vfs import RESERVED_BYTES, checking_vfs
from notewell.store.sqlite.error_translation import reraise, translated
from notewell.store.sqlite.read_cache import ReadCache

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]

BUSY_TIMEOUT_MS = 10_000
_OPEN_AGAIN_S = 0.02
_LEFT_BEHIND_S = 3600.0
# counters that change with anything that is in a `ReadCache`
_CACHE_STAMP = ("chunks", "documents", "judged")


class _Scope(NamedTuple):
    """One use of `reading`: all of `meta`, the cache for the state that it names, and what was read
    once.
    """

    meta: Mapping[str, Any]
    cache: ReadCache
    once: dict[tuple[str, str], list[Row]]


class _Thread(threading.local):
    """What a thread has for itself: a connection to read with, and the scope of its `reading`."""

    db: apsw.Connection | None = None
    scope: _Scope | None = None


class Connection:
    """One connection that writes, and one to read for every thread; all parts of a store share it.

    Inside a transaction a part sets `chunks_changed`, `vectors_changed` or `documents_changed`,
    which are counted when it commits. `before_commit` and `after_rollback` are called at the end of
    every transaction.
    """

    def __init__(
        self, path: Path | None, *, read_only: bool = False, vfs: str | None = None
    ) -> None:
        self.name = str(path) if path else ":memory:"
        self.file = path
        self.read_only = read_only
        self.lock = threading.RLock()
        self.before_commit: list[Callable[[], None]] = []
        self.after_rollback: list[Callable[[], None]] = []
        self.chunks_changed = self.vectors_changed = self.documents_changed = False
        self._vfs = vfs or (checking_vfs() if path else None)
        self._readers: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._thread = _Thread()
        self._cache = ReadCache(())
        self._writer = 0  # the thread whose transaction is open
        self._closed = False
        self._reading = 0
        self._no_readers = threading.Condition()
        with translated(self.name):
            if path and not read_only and not path.exists():
                _create(path, self._vfs)
            # An empty file is filled in place. Two processes may do that at once, and SQLite does
            # not wait there.
            until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
            while not self._open(last_try=time.monotonic() >= until):
                time.sleep(_OPEN_AGAIN_S)

    def _open(self, *, last_try: bool) -> bool:
        """Opens and prepares the file; False where another process does so, which on the last try
        is an error.
        """
        self.db = self._connect()
        try:
            schema.check_version(self.db, self.name)
            self._prepare()
            self._migrate()
            self._inodes = self._inodes_now()
            self._distrust_a_copy()
        except (apsw.BusyError, StoreBusyError):
            self.db.close()
            if last_try:
                raise
            return False
        except BaseException:
            self.db.close()
            raise
        return True

    def _connect(self) -> apsw.Connection:
        if self.file is None:
            db = apsw.Connection(":memory:")
        elif self.read_only:
            db = self._connect_read_only()
        else:
            try:
                if not self.file.exists():
                    os.close(beside(self.file).open(self.file, os.O_CREAT | os.O_RDWR))
            except OSError as error:
                raise _cannot_create(self.file, error) from error
            db = apsw.Connection(self.name, vfs=self._vfs)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        db.execute("PRAGMA trusted_schema = OFF")  # the file may have come with a repository
        return db

    def _connect_read_only(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        uri = Path(self.name).absolute().as_uri()
        db = apsw.Connection(uri + "?mode=ro", flags=flags, vfs=self._vfs)
        db.set_busy_timeout(BUSY_TIMEOUT_MS)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except apsw.CantOpenError:
            wal = Path(f"{self.name}-wal")
            if wal.exists() and wal.stat().st_size:
                raise  # immutable would silently ignore what the WAL holds
            db = apsw.Connection(uri + "?immutable=1", flags=flags, vfs=self._vfs)
            db.set_busy_timeout(BUSY_TIMEOUT_MS)
        return db

    def _prepare(self) -> None:
        """Sets up the writing connection; only after the version check, so that a newer file is
        left alone.
        """
        self.db.execute(
            "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000"
        ).fetchall()
        if self.file is not None and not self.read_only:
            # for a new file; five vectors of 384 fill such a page
            self.db.execute("PRAGMA page_size = 8192")
            if self._vfs:
                # for a new file, else with the next VACUUM
                self.db.reserve_bytes("main", RESERVED_BYTES)
            mode = "delete" if on_network(self.file.parent) else "wal"
            self.db.execute(f"PRAGMA journal_mode = {mode}").fetchall()
            self.db.execute(
                "PRAGMA synchronous = NORMAL" if mode == "wal" else "PRAGMA synchronous = FULL"
            )

    def _migrate(self) -> None:
        if schema.version_of(self.db) == len(schema.MIGRATIONS):
            return
        if self.read_only:
            raise StoreVersionError(
                f"the index {self.name} is of an older version", hint="run: notewell index"
            )
        with self.writing():
            schema.migrate(self.db, self.name)

    def _distrust_a_copy(self) -> None:
        """A file that was made elsewhere, by a copy or a clone, is trusted only after every note
        was read again.
        """
        inode = str(self._inodes[0]) if self._inodes else ""
        if not inode or self.read_only or self._made_as() == inode:
            return
        if not schema.is_expected(self.db):  # a trigger could undo the reading
            raise StoreDamagedError(
                f"the index {self.name} holds tables that are not ours", hint="it is rebuilt"
            )
        with self.writing():
            if self._made_as() != inode:  # unless another process has been faster
                # The time of an earlier change of the analysis would claim that notes were read
                # since.
                self.db.execute(
                    "DELETE FROM meta WHERE key IN ('analysis', 'analysis_since', 'remarks')"
                )
                self.db.execute("INSERT OR REPLACE INTO meta VALUES ('inode', ?)", (inode,))

    def _made_as(self) -> str:
        """The inode that the file had when it was last trusted."""
        found = self.own("SELECT value FROM meta WHERE key = 'inode'")
        return str(found[0][0]) if found else ""

    def _inodes_now(self) -> list[tuple[int, int] | None]:
        """The inodes of the index and its WAL at this moment; none for an index in memory."""
        return [inode_of(self.name + end) for end in ("", "-wal")] if self.file else []

    @property
    def inode(self) -> tuple[int, int] | None:
        """The inode of the file that was opened."""
        return self._inodes[0] if self._inodes else None

    def swapped(self) -> bool:
        """Whether the file of this name is no longer the one that is open; losing only the WAL is
        damage.
        """
        now = self._inodes_now()
        if now[:1] != self._inodes[:1]:
            return True
        if not self.read_only and now[1:] != self._inodes[1:] and any(self._inodes[1:]):
            raise StoreDamagedError(
                f"the WAL of {self.name} was removed", hint="the index rebuilds itself"
            )
        return False

    def abandon(self) -> None:
        """Closes a file that was swapped; a WAL that it left behind must not be read into the new
        one.
        """
        self.close()
        if self._inodes_now()[1:] == self._inodes[1:]:
            for end in ("-wal", "-shm"):
                with contextlib.suppress(OSError):
                    os.unlink(self.name + end)

    def close(self) -> None:
        """Closes every connection once its reader is done; the last one folds the WAL into the
        file.
        """
        with self._no_readers:
            self._closed = True
            self._no_readers.wait_for(lambda: not self._reading)
        with self.lock:
            for reader in list(self._readers):
                reader.close()
            # A disk that fails now keeps the WAL from being folded in, but loses nothing that was
            # committed.
            with contextlib.suppress(apsw.FullError, apsw.IOError):
                self.db.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        with self.lock, translated(self.name):
            if self._writer:
                yield
                return
            self.db.execute("BEGIN IMMEDIATE")
            self._writer = get_ident()
            self.chunks_changed = self.vectors_changed = self.documents_changed = False
            try:
                yield
                for finish in self.before_commit:
                    finish()
                either = self.chunks_changed or self.vectors_changed
                changed = {
                    "generation": either,
                    "chunks": self.chunks_changed,
                    "documents": self.documents_changed,
                }
                for counter in filter(changed.get, changed):
                    self.count_change(counter)
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                for forget in self.after_rollback:
                    forget()
                raise
            finally:
                self._writer = 0

    def count_change(self, counter: str) -> None:
        """Adds one to a counter in `meta`; inside a transaction."""
        self.db.execute("UPDATE meta SET value = value + 1 WHERE key = ?", (counter,))

    def is_writing(self) -> bool:
        """Whether this thread is in a transaction, whose changes it sees and other threads do
        not.
        """
        return self._writer == get_ident()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything that this thread reads inside is of one moment; uses nest."""
        if self.file is None or self._writer == get_ident():
            with self.lock:
                yield
            return
        with translated(self.name):
            db = self._begin_reading()
            try:
                if db.in_transaction:
                    yield
                    return
                db.execute("BEGIN")
                try:
                    yield
                finally:
                    _end(db)
            finally:
                self._end_reading()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """A snapshot for which the values of `meta` and the state of the cache are read once."""
        if self._is_reading():
            yield  # inside another one, which is what most uses are
            return
        with self.snapshot():
            outer = self._thread.scope
            if outer is None and self._writer != get_ident():
                meta: dict[str, Any] = dict(self.all("SELECT key, value FROM meta"))
                self._thread.scope = _Scope(
                    meta, self._cache_for(tuple(map(meta.get, _CACHE_STAMP))), {}
                )
            try:
                yield
            finally:
                self._thread.scope = outer

    def _is_reading(self) -> bool:
        """Whether this thread is inside `reading`, and no error has ended its snapshot."""
        db = self._thread.db
        return self._scope() is not None and (
            self.file is None or (db is not None and db.in_transaction)
        )

    def meta(self) -> Mapping[str, Any]:
        """All values of `meta` by key; inside `reading` they are not read again."""
        scope = self._scope()
        return scope.meta if scope else dict(self.all("SELECT key, value FROM meta"))

    def values(self, *keys: str) -> tuple[Any, ...]:
        """Some values of `meta`, None for what is not there; inside `reading` they are not read
        again.
        """
        if scope := self._scope():
            return tuple(map(scope.meta.get, keys))
        marks = ",".join("?" * len(keys))
        meta: dict[str, Any] = dict(
            self.all(f"SELECT key, value FROM meta WHERE key IN ({marks})", keys)
        )
        return tuple(map(meta.get, keys))

    def _scope(self) -> _Scope | None:
        """What this thread has read once in its `reading`; a transaction reads for itself."""
        return None if self._writer == get_ident() else self._thread.scope

    def cache(self) -> ReadCache | None:
        """What was read of the index as it is now; None in a transaction, which sees what nobody
        else may.
        """
        if self._writer == get_ident():
            return None
        scope = self._thread.scope
        return self._cache_for(self.values(*_CACHE_STAMP)) if scope is None else scope.cache

    def _cache_for(self, stamp: tuple[Any, ...]) -> ReadCache:
        cache = self._cache
        if cache.stamp != stamp or cache.full:
            cache = self._cache = ReadCache(stamp)
        return cache

    def clear_cache(self) -> None:
        """Forgets what was read."""
        self._cache = ReadCache(())

    def all(self, sql: str, values: Values = ()) -> list[Row]:
        """All rows of a query: from this thread's transaction where it has one, else from its
        reading connection.
        """
        try:
            if self.file is None or self._writer == get_ident():
                with self.lock:
                    return self.db.execute(sql, values).fetchall()
            db = self._begin_reading()
            try:
                return db.execute(sql, values).fetchall()
            finally:
                self._end_reading()
        except apsw.Error as error:
            reraise(error, self.name)

    def once(self, sql: str, value: str) -> list[Row]:
        """All rows of a small query with one value; inside `reading` it is not asked again."""
        scope = self._scope()
        if scope is None:
            return self.all(sql, (value,))
        found = scope.once.get((sql, value))
        if found is None:
            found = scope.once[sql, value] = self.all(sql, (value,))
        return found

    def all_in(
        self, sql: str, values: Sequence[Any], *, before: Sequence[Any] = (), most: int = 900
    ) -> list[Row]:
        """All rows of a query that has `{}` where a list of values goes, as many at a time as
        SQLite takes.
        """
        rows: list[Row] = []
        for part in in_parts(values, most):
            rows += self.all(sql.format(",".join("?" * len(part))), (*before, *part))
        return rows

    def own(self, sql: str, values: Values = ()) -> list[Row]:
        """All rows of a query by the writing connection; errors are translated by `writing`."""
        with self.lock:
            return self.db.execute(sql, values).fetchall()

    def _begin_reading(self) -> apsw.Connection:
        """This thread's own connection, so that searches never wait for each other; `close` waits
        for its end.
        """
        with self._no_readers:
            if self._closed:
                raise StoreError("the memory is closed", hint="open it again")
            self._reading += 1
        db = self._thread.db
        if db is None:
            try:
                with self.lock:
                    db = self._thread.db = self._connect_read_only()
                    db.execute("PRAGMA cache_size = -16000")
                    self._readers.add(db)  # weakly: a thread that ends takes its connection with it
            except BaseException:
                self._end_reading()
                raise
        return db

    def _end_reading(self) -> None:
        with self._no_readers:
            self._reading -= 1
            self._no_readers.notify_all()

    def verdict(self, check: str, table: str = "1") -> str:
        """The first thing that SQLite finds wrong, in one table if it is named, or "ok"."""
        if self.file is None:
            return str(self.own(f"PRAGMA {check}({table})")[0][0])
        with translated(self.name):
            db = self._connect_read_only()
            try:
                return str(db.execute(f"PRAGMA {check}({table})").fetchall()[0][0])
            finally:
                db.close()


def _end(db: apsw.Connection) -> None:
    if db.in_transaction:  # else an error has ended it
        db.execute("COMMIT")


def inode_of(path: str | Path) -> tuple[int, int] | None:
    """The device and inode of the file that has this name now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _cannot_create(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be created: {error.strerror}", hint="check the folder, or set index.path"
    )


def _create(path: Path, vfs: str | None) -> None:
    """Makes a new index next to its path and renames it in one step: nobody ever opens one that is
    half made.
    """
    for old in path.parent.glob(f"{path.name}.*.new*"):
        with contextlib.suppress(OSError):  # left by a process that was killed
            if old.stat().st_mtime < time.time() - _LEFT_BEHIND_S:
                old.unlink()
    new = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")
    try:
        beside(new).create(new, b"", mode=0o600)
        Connection(new, vfs=vfs).close()
        if not os.path.exists(f"{new}-wal"):  # all of it is in the one file
            # Another process may have been faster; without hard links the index is made in place.
            with contextlib.suppress(OSError):
                os.link(new, path)
    except OSError as error:
        raise _cannot_create(path, error) from error
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):
                os.unlink(f"{new}{end}")
