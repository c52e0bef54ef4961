"""One writer across processes: a lock on a file next to the index, which the system frees when a process dies."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from notewell.errors import StoreError
from notewell.opener import beside

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05


@contextlib.contextmanager
def locked(path: Path | None, *, wait_s: float) -> Iterator[bool]:
    """Yields whether the lock was taken within `wait_s`, also against this same thread; a path of None needs none."""
    if path is None:
        yield True
        return
    try:
        handle = beside(path).open(path, os.O_CREAT | os.O_RDWR)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}", hint="check the disk and its folder") from error
    try:
        until = time.monotonic() + wait_s
        pause = _FIRST_PAUSE_S
        while not (taken := _try(handle)) and (left := until - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause = min(_LONGEST_PAUSE_S, pause * 2)
        yield taken
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    from filelock import lock_descriptor  # noqa: PLC0415 - not every command needs a lock

    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        # A file system without locks must not stop us: SQLite keeps its writers apart by itself.
        return True
