"""A disk that fails when it is told to: under SQLite as a VFS of our own, under the note files as a
shim of `os`.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import apsw

from notewell.store.sqlite.checksum_vfs import checking_vfs

VFS = "broken-disk"


class Fate:
    """Counts every call that changes a disk, and fails the n-th, or all from the n-th on."""

    def __init__(self) -> None:
        self.calls = 0
        self.fail_at = 0
        self.for_good = False
        self.full = True
        self.struck: Counter[str] = Counter()

    def set(self, fail_at: int, *, full: bool, for_good: bool = False) -> None:
        self.calls, self.fail_at, self.full, self.for_good = 0, fail_at, full, for_good
        self.struck.clear()

    def strikes(self, what: str) -> bool:
        self.calls += 1
        due = bool(self.fail_at) and (
            self.calls == self.fail_at or (self.for_good and self.calls > self.fail_at)
        )
        self.struck[what] += due
        return due

    def step(self, what: str) -> None:
        """For SQLite."""
        if self.strikes(what):
            if self.full and what != "sync":
                raise apsw.FullError("made up")
            error = apsw.IOError("made up")
            number = apsw.SQLITE_IOERR_WRITE if what == "write" else apsw.SQLITE_IOERR_FSYNC
            vars(error)["extendedresult"] = number
            raise error

    def step_os(self, what: str) -> None:
        """For Python."""
        if self.strikes(what):
            number = errno.ENOSPC if self.full else errno.EIO
            raise OSError(number, os.strerror(number))


FATE = Fate()


class BrokenFile(apsw.VFSFile):
    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        FATE.step("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        FATE.step("sync")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        FATE.step("truncate")
        super().xTruncate(newsize)


class BrokenDisk(apsw.VFS):
    def __init__(self) -> None:
        self.under = checking_vfs() or ""
        super().__init__(VFS, self.under)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return BrokenFile(self.under, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        FATE.step("delete")
        super().xDelete(filename, syncdir)


@contextmanager
def broken_disk() -> Iterator[Fate]:
    """The VFS is there as long as this lasts."""
    disk = BrokenDisk()
    FATE.set(0, full=True)
    try:
        yield FATE
    finally:
        FATE.set(0, full=True)
        disk.unregister()


class _File:
    """An open file whose writes may fail halfway."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, data: bytes) -> int:
        if FATE.strikes("write"):
            self._inner.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC if FATE.full else errno.EIO, "made up")
        return int(self._inner.write(data))

    def flush(self) -> None:
        self._inner.flush()

    def fileno(self) -> int:
        return int(self._inner.fileno())

    def __enter__(self) -> _File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inner.close()


class BrokenOs:
    """`os` for a module that writes files; everything that is not named here is the real one."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, handle: int, data: bytes) -> int:
        if FATE.strikes("write"):
            if FATE.full:  # a full disk takes what still fits
                return os.write(handle, data[: len(data) // 2])
            raise OSError(errno.EIO, "made up")
        return os.write(handle, data)

    def fsync(self, handle: int) -> None:
        FATE.step_os("fsync")
        os.fsync(handle)

    def replace(self, old: str, new: str, **folders: Any) -> None:
        FATE.step_os("rename")
        os.replace(old, new, **folders)

    def unlink(self, path: str, **folder: Any) -> None:
        if not FATE.for_good:  # a disk that is full, or fails writes, lets files go
            FATE.step_os("unlink")
        os.unlink(path, **folder)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        FATE.step_os("mkdir")
        os.makedirs(path, exist_ok=exist_ok)

    def fdopen(self, handle: int, mode: str) -> _File:
        return _File(os.fdopen(handle, mode))
