"""A SQLite database of another program, read without a lock and without a trace.

No lock is taken, no file is created, and what the program has not yet moved out of its WAL is seen.
Nobody waits for us; if the program writes at that very moment, the read is refused and made again
with the next sync.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from stat import S_ISREG
from typing import Any
from urllib.parse import quote

_NO_LOCKS = "win32-none" if os.name == "nt" else "unix-none"
_LIBRARIES = ("compression.zstd", "backports.zstd", "zstandard")
_MOST_BYTES = 64_000_000  # of one record: a bomb is not unpacked
WRITTEN = "its program is writing to it; it is read again with the next sync"


@functools.cache
def _reading_only() -> str:
    """The name of a file system that opens databases and WALs for reading alone and deletes
    nothing.

    SQLite would open a WAL for writing even then, and delete it when it closes one in which it
    finds nothing.
    """
    import apsw  # noqa: PLC0415 - few workspaces have such a source

    name, writes = "notewell-reading", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    guarded = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL

    class ReadingOnly(apsw.VFS):
        def xDelete(self, filename: str, _syncdir: bool) -> None:  # noqa: FBT001, N802
            raise apsw.ReadOnlyError(f"{filename} is not ours to delete")

        def xOpen(self, file: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
            if flags[0] & guarded:
                flags[0] = (
                    flags[0] & ~(writes | apsw.SQLITE_OPEN_DELETEONCLOSE)
                ) | apsw.SQLITE_OPEN_READONLY
            return apsw.VFSFile(_NO_LOCKS, file, flags)

    _kept_alive.append(ReadingOnly(name, base=_NO_LOCKS))
    return name


_kept_alive: list[object] = []


class ForeignDb:
    """An open database of another program; whatever is wrong with it is an OSError with the
    reason.
    """

    def __init__(self, file: str) -> None:
        import apsw  # noqa: PLC0415

        self.file = file
        self._before = _stamp(file)
        if not S_ISREG(os.stat(file).st_mode) or not _size(file):
            raise OSError("not a database that can be read: it is empty, or not a file")
        # With an empty WAL, or none, it is read as a file that nobody changes: no WAL is looked for
        # then.
        still = "" if _size(f"{file}-wal") else "&immutable=1"
        address = f"file:{quote(os.path.abspath(file))}?mode=ro{still}"
        try:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            self._connection = apsw.Connection(address, flags=flags, vfs=_reading_only())
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            # Then the index of the WAL is in our memory instead of a file beside the database.
            for setting in ("locking_mode = exclusive", "temp_store = memory"):
                self._connection.execute(f"PRAGMA {setting}").fetchall()
        except apsw.Error as error:
            raise OSError(f"not a database that can be read: {error}") from error

    def __enter__(self) -> ForeignDb:
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query; OSError if the database is damaged, or was written to while it was
        read.
        """
        import apsw  # noqa: PLC0415

        try:
            yield from self._connection.execute(sql, tuple(values))
        except (apsw.Error, UnicodeDecodeError) as error:  # a text that is not UTF-8 is damage too
            reason = WRITTEN if self.is_old() else str(error)
            raise OSError(reason) from error

    def check(self) -> None:
        """OSError if the program wrote to it since it was opened: what was read may be half old and
        half new.
        """
        if self.is_old():
            raise OSError(WRITTEN)

    def is_old(self) -> bool:
        """Whether the program wrote to it since it was opened."""
        return _stamp(self.file) != self._before

    def lacks(self, layout: Mapping[str, Sequence[str]]) -> str:
        """The tables and columns of a layout that are not there."""
        missing = []
        for table, columns in layout.items():
            there = {row[0] for row in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}
            if not there:
                missing.append(table)
            missing += [f"{table}.{column}" for column in columns if there and column not in there]
        return ", ".join(missing)

    def has(self, table: str) -> bool:
        """Whether there is a table with at least one row."""
        return (
            not self.lacks({table: ()})
            and next(self.rows(f'SELECT 1 FROM "{table}" LIMIT 1'), None) is not None
        )


def _stamp(file: str) -> tuple[tuple[int, int], ...]:
    """Size and time of a database and of its WAL."""
    found = []
    for end in ("", "-wal", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            stat = os.stat(file + end)
            found.append((stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except FileNotFoundError:
        return 0


def unpacker() -> Any:
    """The module that unpacks zstd, or None if none is installed."""
    import importlib  # noqa: PLC0415

    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return None


def unpacked(data: bytes) -> bytes:
    """What was packed with zstd; ValueError if it is damaged or far too large."""
    module = unpacker()
    try:
        one = module.ZstdDecompressor()
        if module.__name__ == "zstandard":
            found = one.stream_reader(io.BytesIO(data)).read(_MOST_BYTES + 1)
        else:
            found = one.decompress(data, _MOST_BYTES + 1)
    except Exception as error:
        raise ValueError(f"cannot be unpacked: {error}") from error
    if not 0 < len(found) <= _MOST_BYTES:
        raise ValueError("cannot be unpacked: nothing, or far too much")
    return bytes(found)
