"""A file system that does not tell letters of two cases, nor Unicode forms, apart, as those of
macOS and Windows.

    python -m tests.systems.folding SOURCE MOUNT

It keeps names as they were written first, and needs libfuse 2 and the right to mount.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from errno import ENOENT
from typing import Any

import fuse

_STAT = (
    "st_atime",
    "st_ctime",
    "st_gid",
    "st_ino",
    "st_mode",
    "st_mtime",
    "st_nlink",
    "st_size",
    "st_uid",
)
_SPACE = (
    "f_bavail",
    "f_bfree",
    "f_blocks",
    "f_bsize",
    "f_favail",
    "f_ffree",
    "f_files",
    "f_flag",
    "f_frsize",
)


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


class Folding(fuse.Operations):  # type: ignore[misc]
    """Every operation on the file whose folded name is the folded name that was asked for."""

    def __init__(self, source: str) -> None:
        self.source = os.path.realpath(source)

    def real(self, path: str) -> str:
        place = self.source
        for part in filter(None, path.split("/")):
            same = (
                [n for n in os.listdir(place) if folded(n) == folded(part)]
                if os.path.isdir(place)
                else []
            )
            place = os.path.join(place, same[0] if same else part)
        return place

    def access(self, path: str, amode: int) -> None:
        if not os.access(self.real(path), amode):
            raise fuse.FuseOSError(ENOENT)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self.real(path))
        return {key: getattr(found, key) for key in _STAT}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self.real(path))]

    def open(self, path: str, flags: int) -> int:
        return os.open(self.real(path), flags)

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        os.truncate(self.real(path), length)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        os.fsync(fh)

    def release(self, path: str, fh: int) -> None:
        os.close(fh)

    def rename(self, old: str, new: str) -> None:
        os.rename(
            self.real(old), os.path.join(os.path.dirname(self.real(new)), os.path.basename(new))
        )

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self.real(path), mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(self.real(path))

    def unlink(self, path: str) -> None:
        os.unlink(self.real(path))

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self.real(path), mode)

    def utimens(self, path: str, times: tuple[float, float] | None = None) -> None:
        os.utime(self.real(path), times)

    def statfs(self, path: str) -> dict[str, Any]:
        found = os.statvfs(self.real(path))
        return {key: getattr(found, key) for key in _SPACE}


if __name__ == "__main__":
    fuse.FUSE(Folding(sys.argv[1]), sys.argv[2], foreground=True, use_ino=True)
