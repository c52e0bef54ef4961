"""Whether the notes are as they were at the last look, without looking again.

Linux queues a notification before a write returns, so an empty queue proves that nothing in the watched folders has
changed. That holds for plain folders of this machine alone: with links, further paths, or another system, the answer
is no, and the files are looked at as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
import time
from pathlib import Path

from recollect.store.sqlite import on_network

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED = 0x2, 0x4, 0x8, 0xC0
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x100, 0x200, 0x400, 0x800, 0x1000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_HEAD = struct.Struct("iIII")
_MOST_FOLDERS = 2_000
_SWEEP_S = 5.0  # however still it is: a look now and then costs little


class Still:
    """Notifications of the folders that hold the notes of one workspace; safe to ask from any thread."""

    def __init__(self, root: Path, *, ignored: Path) -> None:
        self._root = str(root)
        self._ignored = os.fsencode(ignored.name)  # the folder of the index, which every sync writes to
        self._lock = threading.Lock()
        self._handle = -1
        self._armed_at = -_SWEEP_S
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" and not on_network(root) else None

    def still(self) -> bool:
        """Whether nothing has changed since `arm` was last called; once it says no, it does so until then."""
        with self._lock:
            if self._handle < 0 or time.monotonic() - self._armed_at > _SWEEP_S or self._heard():
                self._drop()
                return False
            return True

    def arm(self) -> None:
        """Begins to listen; call it before looking at the files, so that what changes meanwhile is heard."""
        with self._lock:
            self._drop()
            if self._libc is None:
                return
            handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if handle < 0:
                return
            self._handle = handle
            folders = self._folders()
            if folders is None or not all(self._watch(f) for f in folders):
                self._drop()
                return
            self._armed_at = time.monotonic()

    def close(self) -> None:
        """Stops listening."""
        with self._lock:
            self._drop()

    def _folders(self) -> list[str] | None:
        """The root and all folders of notes, or None where a link or their number makes it unsafe to rely on them."""
        found = [self._root]
        todo = [self._root]
        try:
            while todo:
                folder = todo.pop()
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            return None
                        if not entry.is_dir(follow_symlinks=False) or entry.name.startswith("."):
                            continue
                        if folder != self._root or entry.name.casefold() == "memory":
                            found.append(entry.path)
                            todo.append(entry.path)
                if len(found) > _MOST_FOLDERS:
                    return None
        except OSError:
            return None
        return found

    def _watch(self, folder: str) -> bool:
        return self._libc is not None and self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _MASK) >= 0

    def _heard(self) -> bool:
        """Whether anything but the index's own folder is in the queue."""
        try:
            data = os.read(self._handle, 1 << 16)
        except BlockingIOError:
            return False
        except OSError:
            return True
        place = 0
        while place < len(data):
            _, _, _, size = _HEAD.unpack_from(data, place)
            name = data[place + _HEAD.size : place + _HEAD.size + size].rstrip(b"\0")
            if name != self._ignored:
                return True
            place += _HEAD.size + size
        return len(data) > (1 << 15)  # there may be more to read

    def _drop(self) -> None:
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.close(self._handle)
        self._handle = -1
