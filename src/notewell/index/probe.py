"""A probe of which notes have changed since the last look, without a look at any of them."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from notewell.index.watch import MOST_FOLDERS, watched
from notewell.sources.tree_walk import IGNORED_FOLDERS
from notewell.store.network_fs import on_network

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED = 0x2, 0x4, 0x8, 0xC0
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _ONLY_FOLDERS = 0x100, 0x200, 0x400, 0x800, 0x1000000
_MASK = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
    | _ONLY_FOLDERS
)
_HEAD = struct.Struct("iIII")
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
# what says that more than a file changed
_MORE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW | _IGNORED | _IS_FOLDER
_UNRELIABLE = f"the notes are behind links, in over {MOST_FOLDERS:,} folders or not all to be read"
_NO_WATCH = "the system gives no more notifications (see fs.inotify.max_user_watches)"
_MOST_FILES = 500  # a look at everything is about as fast as at so many by name


class ChangeProbe:
    """Which notes of one workspace have changed since the last look, without looking; for any
    thread.

    Linux queues a notification before a write returns, so an empty queue proves that nothing in the
    watched folders has changed. Only for plain folders of this machine: with links or another
    system, everything may have.
    """

    def __init__(
        self,
        root: Path,
        *,
        ignored: Path,
        whole: Callable[[], bool] = lambda: False,
        trees: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        """`whole` says whether all folders of the root count, `trees` name folders and files
        elsewhere.
        """
        self._root = str(root)
        self._whole, self._trees = whole, trees
        # the folder of the index, which every sync writes to
        self._ignored = os.fsencode(ignored.name)
        self._lock = threading.Lock()
        self._handle = -1
        self._armed_at = 0.0
        self._folders: dict[int, str] = {}  # by the number of their watch
        self._changed: set[str] = set()
        # why every search looks at them; empty where none needs to
        self.doubt = "the files were not looked at yet"
        self._libc = None
        if sys.platform != "linux":
            self.doubt = "this system cannot prove that nothing has changed"
        elif on_network(root):
            self.doubt = "the notes are on a network file system"
        else:
            import ctypes  # noqa: PLC0415 - only for a process that stays

            self._libc = ctypes.CDLL(None, use_errno=True)

    def unchanged(self, *, within_s: float = 60.0) -> bool:
        """Whether nothing has changed since the last look, all of it `within_s`."""
        with self._lock:
            return self._listens(within_s) and not self._changed

    def take(self, *, within_s: float = 60.0) -> frozenset[str] | None:
        """The files that have changed, which the caller looks at now; None if anything may have,
        until the next `arm`.

        A caller that does not get to look at them has to `close` this.
        """
        with self._lock:
            if not self._listens(within_s):
                return None
            taken, self._changed = frozenset(self._changed), set()
            return taken

    def arm(self) -> None:
        """Begins to listen; call it before looking at the files, so that no change in between is
        missed.
        """
        with self._lock:
            self._drop()
            if self._libc is None:
                return
            self._handle = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            self.doubt = self._begin()
            if self.doubt:
                self._drop()
            self._armed_at = time.monotonic()

    def close(self) -> None:
        """Stops listening."""
        with self._lock:
            self._drop()

    def _begin(self) -> str:
        """Watches the root and all folders of notes, each before it is listed; returns why that is
        not reliable.
        """
        whole, elsewhere = self._whole(), watched(Path(self._root), self._trees())
        todo = [self._root, *elsewhere.deep]
        found = dict.fromkeys((*elsewhere.flat, *todo))
        if any(map(os.path.islink, found)):
            return _UNRELIABLE
        if not all(map(self._watch, found)):
            return _NO_WATCH
        while todo:
            folder = todo.pop()
            inner = _folders_in(folder, whole=whole)
            if inner is None or len(found) > MOST_FOLDERS:
                return _UNRELIABLE
            new = [path for path in inner if path not in found and (whole or folder != self._root)]
            if not all(map(self._watch, new)):
                return _NO_WATCH
            found.update(dict.fromkeys(new))
            todo += new
        return ""

    def _watch(self, folder: str) -> bool:
        if self._libc is None:
            return False
        number = self._libc.inotify_add_watch(self._handle, os.fsencode(folder), _MASK)
        if number >= 0:
            self._folders[number] = folder
        return bool(number >= 0)

    def _listens(self, within_s: float) -> bool:
        """Whether every change since the last look, which was `within_s`, is known by the name of
        its file.
        """
        known = (
            self._handle >= 0 and time.monotonic() - self._armed_at <= within_s and self._heard()
        )
        if not known:
            self._drop()
        return known

    def _heard(self) -> bool:
        """Notes the files that the queue names; False if more than a few files have changed."""
        while True:
            try:
                data = os.read(self._handle, 1 << 16)
            except BlockingIOError:
                return len(self._changed) <= _MOST_FILES
            except OSError:
                return False
            at = 0
            while at < len(data):
                # an inotify_event: the third is for pairs of moves
                number, what, _, size = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0")
                at += _HEAD.size + size
                if name == self._ignored:
                    continue
                if what & _MORE or not name or number not in self._folders:
                    return False
                self._changed.add(os.path.join(self._folders[number], os.fsdecode(name)))

    def _drop(self) -> None:
        if self._handle >= 0:
            with contextlib.suppress(OSError):
                os.close(self._handle)
        self._handle = -1
        self._folders, self._changed = {}, set()


def _folders_in(folder: str, *, whole: bool) -> list[str] | None:
    """The folders in a folder that may hold notes; None if there is a link, or if it cannot be
    read.
    """
    try:
        with os.scandir(folder) as found:
            entries = list(found)
            if any(entry.is_symlink() for entry in entries):
                return None
            inner = (
                e for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            )
            return [e.path for e in inner if not (whole and e.name in IGNORED_FOLDERS)]
    except OSError:
        return None
