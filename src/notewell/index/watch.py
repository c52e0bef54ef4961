"""Noticing changes: a watch that syncs when notes change, and a feed from other machines.

Where there are no notifications, a watch looks regularly. A tree has one watch, however many
folders it holds. Of the root only its entries are watched, so that a repository around the notes
costs nothing; a folder that appears there later gets its watch then.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from notewell.errors import NotewellError, StoreError
from notewell.settings import Settings
from notewell.sources.source import NoteFiles, Source, Watchable
from notewell.sources.tree_walk import IGNORED_FOLDERS
from notewell.store.nearest import FOLDER
from notewell.store.network_fs import on_network
from notewell.store.ports import Shared
from notewell.types import Notice, SyncReport

POLL_S = 2.0
_SWEEP_S = 60.0
_AGAIN_S = 1.0
_LISTEN_S = 5.0
MOST_FOLDERS = 2_000


@dataclass(frozen=True, slots=True)
class Watched:
    """Folders to watch: `flat` for their own entries alone, `deep` with all below them."""

    flat: tuple[str, ...]
    deep: tuple[str, ...]


def note_folders(root: str) -> list[str] | None:
    """The folders of a tree that may hold notes, itself first; None if there are too many or it
    cannot be read.
    """
    found = [root]
    for folder in found:
        try:
            with os.scandir(folder) as entries:
                inner = [
                    e
                    for e in entries
                    if not e.name.startswith(".") and e.name not in IGNORED_FOLDERS
                ]
                found += [e.path for e in inner if e.is_dir(follow_symlinks=False)]
        except OSError:
            return None
        if len(found) > MOST_FOLDERS:
            return None
    return found


def watched(root: Path, extra_paths: Sequence[str], *, whole: bool = False) -> Watched:
    """The folders of a workspace to watch, of those that exist now; if all of it is, each of its
    folders by itself.
    """
    flat = {str(root)}
    if whole:
        if (folders := note_folders(str(root))) is None:
            return Watched((), (str(root),))
        flat.update(folders)
    deep = {
        entry.path
        for entry in os.scandir(root)
        if entry.name.casefold() == "memory" and entry.is_dir()
    }
    for pattern in extra_paths:
        parts = os.path.join(root, os.path.expanduser(pattern)).split("/")
        magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        folder = os.path.normpath("/".join(parts[:magic]) or "/")
        if os.path.isdir(folder):
            deep.add(folder)
            continue
        folder = os.path.dirname(folder)  # the folder of a file, or the nearest one that exists
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        flat.add(folder)
    inner = {
        d
        for d in deep
        if any(d != other and d.startswith(other.rstrip("/") + "/") for other in deep)
    }
    return Watched(tuple(sorted(flat)), tuple(sorted(deep - inner)))


@dataclass(frozen=True, slots=True)
class Places:
    """Where the files of a workspace are that a watch or a probe looks after."""

    root: Path
    settings: Settings
    files: NoteFiles
    sources: Sequence[Source]

    def watched(self) -> Watched:
        """Folders that hold what is indexed: notes, extra paths, images and sound, and the files of
        agents.
        """
        own = self.settings
        return watched(
            self.root,
            (*own.extra_paths, *own.multimodal.paths, *own.documents.paths, *self.trees()),
            whole=self.whole(),
        )

    def of_index(self, index: Path | None) -> Path:
        """The folder of the index, or where it will be: what changes there is our own work."""
        return index.parent if index else self.root / FOLDER

    def trees(self) -> list[str]:
        """Folders and files outside the notes that sources read."""
        return [
            tree
            for source in self.sources
            if isinstance(source, Watchable)
            for tree in source.trees()
        ]

    def whole(self) -> bool:
        """Whether all folders of the workspace may hold notes."""
        return "memory" in self.settings.sources and self.files.mode != "never"


class Watch:
    """Syncs in a background thread when something changed; `callback` gets each report that did
    something.
    """

    def __init__(
        self,
        folders: Callable[[], Watched],
        sync: Callable[[], SyncReport],
        callback: Callable[[SyncReport], None] | None = None,
        *,
        poll_s: float = 0.0,
        debounce_s: float = 0.3,
        ignored: Path | None = None,
    ) -> None:
        self.poll_s = poll_s
        self.notices: tuple[Notice, ...] = ()
        self._folders = folders
        self._sync = sync
        self._callback = callback
        self._debounce_ms = max(1, int(debounce_s * 1000))
        self._ignored = os.path.realpath(ignored) if ignored else ""
        self._stop = threading.Event()
        self._dirty = threading.Event()
        self._first = threading.Event()
        self._thread: threading.Thread | None = None
        self._listeners: list[_Listener] = []

    def start(self) -> Self:
        """Starts to watch; the first sync is under way when this returns."""
        if self._thread is not None:
            raise StoreError("this watch has been started", hint="make another one")
        self._choose()
        self._listen()
        self._dirty.set()
        self._thread = threading.Thread(target=self._run, name="notewell-watch", daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops the watch after the sync that is under way."""
        self._stop.set()
        self._dirty.set()
        for listener in self._listeners:
            listener.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def wait_first(self, timeout_s: float) -> bool:
        """Waits until the first sync is done."""
        return self._first.wait(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether it is still watching."""
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def _choose(self) -> None:
        """Falls back to a regular look if the system would not report changes."""
        if self.poll_s > 0:
            return
        folders = self._folders()
        if any(on_network(Path(p)) for p in (*folders.flat, *folders.deep)):
            self._poll_instead("notes on a network file system send no notifications")
            return
        try:
            import watchfiles  # noqa: F401, PLC0415
        except ImportError:
            self._poll_instead("the package watchfiles is not installed")

    def _poll_instead(self, reason: str) -> None:
        self.poll_s = POLL_S
        hint = "pip install 'notewell[watch]'" if "installed" in reason else ""
        self.notices = (
            *self.notices,
            Notice("polling", f"{reason}: looking every {POLL_S:g} s", hint),
        )

    def _listen(self) -> None:
        """Starts one flat and one deep watch, again only if the folders have changed."""
        if self.poll_s > 0:
            return
        folders = self._folders()
        wanted = [
            (paths, deep) for paths, deep in ((folders.flat, False), (folders.deep, True)) if paths
        ]
        if [
            (listener.paths, listener.deep) for listener in self._listeners if listener.alive
        ] == wanted:
            return
        old, self._listeners = self._listeners, []
        try:
            for paths, deep in wanted:
                self._listeners.append(
                    _Listener(paths, self._changed, deep=deep, debounce_ms=self._debounce_ms)
                )
        except OSError as error:
            for listener in self._listeners:
                listener.close()
            self._listeners = []
            self._poll_instead(f"the system gives no notifications ({error})")
        for listener in old:
            listener.close()

    def _changed(self, changed: Sequence[str]) -> None:
        own = self._ignored.rstrip(os.sep) + os.sep
        if any(not self._ignored or not (p + os.sep).startswith(own) for p in changed):
            self._dirty.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._dirty.wait(self.poll_s or _SWEEP_S)
            if self._stop.is_set():
                return
            self._dirty.clear()
            try:
                self._listen()
                report = self._sync()
            except (NotewellError, OSError) as error:
                # Another process may be indexing, or a disk may be away for a while: try again.
                hint = error.hint if isinstance(error, NotewellError) else ""
                report = SyncReport(
                    notices=(Notice("not_synced", str(error), hint),), complete=False
                )
                self._stop.wait(_AGAIN_S)
                self._dirty.set()
            if report.pending and report.embedded:
                # vectors are made in slices, so that a change in between is seen soon
                self._dirty.set()
            if self._callback is not None and (not self._first.is_set() or _did_something(report)):
                self._callback(report)
            self._first.set()


def _did_something(report: SyncReport) -> bool:
    codes = {notice.code for notice in report.notices}
    return bool(
        report.added or report.changed or report.dropped or report.embedded or "not_synced" in codes
    )


class _Listener:
    """A system watch over some folders, and the thread that listens to it."""

    def __init__(
        self,
        paths: tuple[str, ...],
        changed: Callable[[Sequence[str]], None],
        *,
        deep: bool,
        debounce_ms: int,
    ) -> None:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - the generator around it hides when it is ready

        self.paths = paths
        self.deep = deep
        self._changed = changed
        self._debounce_ms = debounce_ms
        self._closed = threading.Event()
        self._notify: Any = RustNotify(list(paths), False, False, 0, deep, True)  # noqa: FBT003 - its own order
        self._thread = threading.Thread(target=self._run, name="notewell-listener", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        with self._notify as notify:
            while not self._closed.is_set():
                # A change is passed on after this long without another.
                found = notify.watch(
                    self._debounce_ms, min(50, self._debounce_ms), 200, self._closed
                )
                if found in ("signal", "stop"):
                    return
                if found != "timeout":
                    self._changed([path for _, path in found])


class ChangeFeed:
    """Calls back with the generation after a change by anybody in a shared store; some may be
    reported as one.
    """

    def __init__(self, store: Shared, callback: Callable[[int], None]) -> None:
        self._store = store
        self._callback = callback
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notewell-changes", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout_s: float) -> bool:
        """Waits for the first look: every later change is reported."""
        return self._ready.wait(timeout_s)

    def close(self) -> None:
        """Stops it, without waiting for a listen that is under way."""
        self._stop.set()

    def _run(self) -> None:
        known: int | None = None
        while not self._stop.is_set():
            try:
                now = self._store.generation  # a change between two waits is seen here
                if known is not None and now != known and not self._stop.is_set():
                    self._callback(now)
                known = now
                self._ready.set()
                # a change since then ends the wait at once
                self._store.listen(_LISTEN_S, since=now)
            except StoreError:
                self._stop.wait(_AGAIN_S)


def load_numpy() -> None:
    """Loads it before several threads need it: two that load it at once may find half of it."""
    import numpy  # noqa: F401, ICN001, PLC0415
