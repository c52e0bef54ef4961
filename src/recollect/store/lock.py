"""One writer across processes: an advisory lock on a file beside the index, freed by the system when a process dies.

And what keeps the names of files through a loss of power.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import StoreError


def _try(handle: int) -> bool:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl  # noqa: PLC0415

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A file system without locks is no reason to stand still: SQLite keeps its writers apart by itself.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def settle(folder: str | Path) -> None:
    """Makes a rename or a new file survive a loss of power, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def locked(path: Path | None, *, wait_s: float) -> Iterator[bool]:
    """Yields whether the lock was taken within `wait_s`; an index in memory needs none."""
    if path is None:
        yield True
        return
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", hint="check the disk and its folder") from error
    try:
        until = time.monotonic() + wait_s
        taken = _try(handle)
        pause = 0.002
        while not taken and time.monotonic() < until:
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(0.05, pause * 2)
            taken = _try(handle)
        yield taken
    finally:
        os.close(handle)
