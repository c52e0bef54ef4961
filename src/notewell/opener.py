"""The one way to open a file in a workspace, for reading or writing; `tests/test_opener.py` finds
any other.

A clone can bring links, an archive also pipes and devices. So a file is opened step by step from a
folder that may be trusted, no step follows a link, and what was opened must be a regular file:
nothing can change between look and use.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG

OUTSIDE = "a symbolic link leads out of the workspace there"
NOT_REGULAR = "it is not a regular file"
HINT = "only a regular file inside the workspace is opened: look at what is there, and move it away"
MOST_SETTINGS_BYTES = 1_000_000
MOST_KEPT_BYTES = 200_000_000  # of what we write ourselves: links, tombstones, backups
_A_FOLDER = "it is a folder"
_FRESH = ".notewell-new"
_STEPWISE = os.open in os.supports_dir_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PLAIN = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_FOLDER = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_DIRECTORY", "O_CLOEXEC"))
_LINKS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)
_READ_BYTES = 1 << 20

# an open folder and a name in it; without one, the name is a whole path
_Place = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens regular files inside its homes, which are folders; a link may lead from one home into
    one.

    Without homes it opens any regular file: one that the user names. What it refuses is an OSError
    with the reason.
    """

    homes: tuple[str, ...] = ()

    def open(self, location: str | Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
        """The handle of a regular file."""
        with self._place(location) as (folder, name):
            try:
                handle = os.open(
                    name, flags | _PLAIN | (_NO_LINK if self.homes else 0), mode, dir_fd=folder
                )
            except OSError as error:
                if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
                    raise _refused(errno.EINVAL, NOT_REGULAR) from None
                if error.errno == errno.EISDIR:
                    raise _refused(errno.EISDIR, _A_FOLDER) from None
                raise
        kind = os.fstat(handle).st_mode
        if S_ISREG(kind):
            return handle
        os.close(handle)
        raise (
            _refused(errno.EISDIR, _A_FOLDER)
            if S_ISDIR(kind)
            else _refused(errno.EINVAL, NOT_REGULAR)
        )

    def file(self, location: str | Path) -> io.FileIO:
        """A file for reading; unbuffered, so that no more bytes are read than needed."""
        return io.FileIO(self.open(location), "rb")

    def read(self, location: str | Path, *, most: int, cut: bool = False) -> bytes:
        """All bytes of a file; one of more than `most` is refused, or with `cut` its first bytes
        are read.
        """
        with self.file(location) as file:
            size = os.fstat(file.fileno()).st_size
            parts, left = [], most + 1 if size <= most or cut else 0
            while left > 0 and (part := file.read(min(left, max(size + 1, 4096), _READ_BYTES))):
                parts.append(part)
                left -= len(part)
        if not left and not cut:
            raise _refused(errno.EFBIG, f"it is larger than {most:,} bytes")
        return b"".join(parts)[:most]

    def create(self, location: str | Path, data: bytes, *, mode: int = 0o666) -> None:
        """Makes a file; FileExistsError where there is one."""
        with os.fdopen(
            self.open(location, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb"
        ) as file:
            file.write(data)

    def replace(
        self,
        location: str | Path,
        data: bytes,
        *,
        mode: int,
        writer: str = "",
        settled: bool = True,
    ) -> None:
        """Creates or replaces a file, completely or not at all, and if it is to be `settled` waits
        for the disk.

        Under the caller's lock, or with a separate draft for each `writer`.
        """
        with self._place(location) as (folder, name):
            fresh = os.path.join(
                os.path.dirname(name), f".{os.path.basename(name)}{writer}{_FRESH}"
            )
            with contextlib.suppress(FileNotFoundError):
                # left by a process that was killed, or put there as a link
                os.unlink(fresh, dir_fd=folder)
            try:
                handle = os.open(
                    fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _PLAIN, mode, dir_fd=folder
                )
                fill(handle, data, mode=mode, settled=settled)
                os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(fresh, dir_fd=folder)
                raise
        if settled:
            settle(os.path.dirname(location))

    @contextlib.contextmanager
    def _place(self, location: str | Path) -> Iterator[_Place]:
        """The folder of a location, opened without following a link, and a name in it that is not a
        link either.
        """
        asked = os.path.abspath(location)
        if not self.homes or not _STEPWISE:
            yield None, self._inside(asked) if self.homes else asked
            return
        home = self._home(asked)
        found = _below(home, asked) if home is not None else None
        if found is None:  # there is a link on the way; its target is opened in the same way
            real = self._inside(asked)
            found = _below(self._home(real) or "", real)
        if found is None:
            raise _refused(errno.ENOTDIR, "a part of its path is not a folder")
        try:
            yield found
        finally:
            os.close(found[0])

    def leaves(self, location: str | Path) -> bool:
        """Whether a location is outside every home, now that its links are resolved."""
        return bool(self.homes) and self._home(os.path.realpath(location)) is None

    def _home(self, location: str) -> str | None:
        """The home of a location; for a home that is a file, its folder."""
        home = next((home for home in self.homes if is_in(location, home)), None)
        return os.path.dirname(home) if home == location else home

    def _inside(self, location: str) -> str:
        """The resolved location, if that is in a home."""
        real = os.path.realpath(location)
        if self._home(real) is None:
            raise _refused(errno.ELOOP, OUTSIDE)
        return real


ANYWHERE = Opener()


def inside(root: str | Path, *further: str) -> Opener:
    """The opener of a workspace, and of further folders that the user names."""
    return Opener(tuple(dict.fromkeys(os.path.realpath(folder) for folder in (root, *further))))


def beside(file: str | Path) -> Opener:
    """The opener of the folder of a file, such as the index."""
    return Opener((os.path.dirname(os.path.abspath(file)),))


def _refused(code: int, reason: str) -> OSError:
    return OSError(code, reason)


def _below(home: str, location: str) -> tuple[int, str] | None:
    """Opens the folder of a location from its home downwards; None if a link is on the way or at
    its end.
    """
    *folders, name = location[len(home.rstrip(os.sep)) + 1 :].split(os.sep)
    here = os.open(home, _FOLDER)
    try:
        for folder in folders:
            above, here = here, os.open(folder, _FOLDER | _NO_LINK, dir_fd=here)
            os.close(above)
        with contextlib.suppress(FileNotFoundError):
            if S_ISLNK(os.lstat(name, dir_fd=here).st_mode):
                os.close(here)
                return None
    except OSError as error:
        os.close(here)
        if error.errno in _LINKS:
            return None
        raise
    return here, name


def is_in(location: str, folder: str) -> bool:
    """Whether a location is a folder or something in it, by their names alone."""
    return location == folder or location.startswith(folder.rstrip(os.sep) + os.sep)


def fill(handle: int, data: bytes, *, mode: int, settled: bool = True) -> None:
    """Writes a new file, waits for the disk if it is to be `settled`, and closes it."""
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.chmod(file.fileno() if os.chmod in os.supports_fd else file.name, mode)
        if settled:
            os.fsync(file.fileno())


def settle(folder: str | Path) -> None:
    """Makes a rename or a new file survive a power cut, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
