"""One writer across processes: a lock on a file next to the index, which the system frees when a
process dies.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from notewell.errors import StoreError
from notewell.opener import beside
from notewell.store.nearest import made_mine

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05


@contextlib.contextmanager
def locked(path: Path | None, *, wait_s: float) -> Iterator[bool]:
    """Yields whether the lock was taken within `wait_s`, also against this same thread; a path of
    None needs none.
    """
    if path is None:
        yield True
        return
    until = time.monotonic() + wait_s
    handle = _open(path)
    try:
        while (taken := _within(handle, until)) and _is_gone(handle, path):
            old, handle = handle, _open(path)
            os.close(old)
        yield taken
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    try:
        return beside(path).open(path, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        hint = made_mine(path, path.parent) or "check the disk and its folder"
        raise StoreError(f"{path} cannot be written: {error.strerror}", hint=hint) from error


def _within(handle: int, until: float) -> bool:
    pause = _FIRST_PAUSE_S
    while not (taken := _try(handle)) and (left := until - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(_LONGEST_PAUSE_S, pause * 2)
    return taken


def _is_gone(handle: int, path: Path) -> bool:
    """Whether the file was removed, as its last holder may do: another one may lock a new file by
    then.
    """
    held = os.fstat(handle)
    if held.st_nlink:
        return False
    try:
        return not os.path.samestat(held, os.stat(path))
    except FileNotFoundError:
        return True


def _try(handle: int) -> bool:
    from filelock import lock_descriptor  # noqa: PLC0415 - not every command needs a lock

    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        # A file system without locks must not stop us: SQLite keeps its writers apart by itself.
        return True
