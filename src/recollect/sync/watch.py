"""Keeping the index warm: a watch on every tree of notes, or a regular look where there is no notification.

A tree has one watch, whatever it holds. The root is watched flat, so that a repository around the notes costs
nothing; a folder that appears there later gets its watch then.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recollect.errors import RecollectError, StoreError
from recollect.store.sqlite import on_network
from recollect.types import Notice, SyncReport

POLL_S = 2.0
_SWEEP_S = 60.0
_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Watched:
    """Folders to watch: `flat` for their own entries alone, `deep` with all below them."""

    flat: tuple[str, ...]
    deep: tuple[str, ...]


def watched(root: Path, extra_paths: Sequence[str]) -> Watched:
    """What of a workspace is to be watched, of what is there now."""
    flat = {str(root)}
    deep = {entry.path for entry in os.scandir(root) if entry.name.casefold() == "memory" and entry.is_dir()}
    for pattern in extra_paths:
        parts = os.path.join(root, os.path.expanduser(pattern)).split("/")
        magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        place = os.path.normpath("/".join(parts[:magic]) or "/")
        if os.path.isdir(place):
            deep.add(place)
            continue
        place = os.path.dirname(place)  # the folder of a file, or the nearest one to what is to come
        while not os.path.isdir(place):
            place = os.path.dirname(place)
        flat.add(place)
    inner = {d for d in deep if any(d != other and d.startswith(other.rstrip("/") + "/") for other in deep)}
    return Watched(tuple(sorted(flat)), tuple(sorted(deep - inner)))


class Watch:
    """Syncs when something changed, in a thread of its own; `callback` gets each report that did something."""

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
        self._ears: list[_Ear] = []

    def start(self) -> Self:
        """Begins to watch; the first sync is under way when this returns."""
        if self._thread is not None:
            raise StoreError("this watch has been started", hint="make another one")
        self._choose()
        self._listen()
        self._dirty.set()
        self._thread = threading.Thread(target=self._run, name="recollect-watch", daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout_s: float = 30.0) -> None:
        """Ends the watch after the sync that is under way."""
        self._stop.set()
        self._dirty.set()
        for ear in self._ears:
            ear.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def wait_first(self, timeout_s: float) -> bool:
        """Waits until the first sync is done."""
        return self._first.wait(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether it still watches."""
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _choose(self) -> None:
        """Looks regularly where the system would not tell of changes."""
        if self.poll_s > 0:
            return
        places = self._folders()
        reason = ""
        if any(on_network(Path(p)) for p in (*places.flat, *places.deep)):
            reason = "notes on a network file system send no notifications"
        else:
            try:
                import watchfiles  # noqa: F401, PLC0415
            except ImportError:
                reason = "the package watchfiles is not installed"
        if reason:
            self._poll_instead(reason)

    def _poll_instead(self, reason: str) -> None:
        self.poll_s = POLL_S
        hint = "pip install 'recollect[watch]'" if "installed" in reason else ""
        self.notices = (*self.notices, Notice("polling", f"{reason}: looking every {POLL_S:g} s", hint))

    def _listen(self) -> None:
        """One watch flat, one deep; again only when the folders are others than before."""
        if self.poll_s > 0:
            return
        places = self._folders()
        wanted = [(places.flat, False), (places.deep, True)]
        if [(ear.paths, ear.deep) for ear in self._ears if ear.alive] == [w for w in wanted if w[0]]:
            return
        old, self._ears = self._ears, []
        try:
            for paths, deep in wanted:
                if paths:
                    self._ears.append(_Ear(paths, self._heard, deep=deep, debounce_ms=self._debounce_ms))
        except OSError as error:
            for ear in self._ears:
                ear.close()
            self._ears = []
            self._poll_instead(f"no notifications to be had ({error})")
        for ear in old:
            ear.close()

    def _heard(self, changed: Sequence[str]) -> None:
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
            except (RecollectError, OSError) as error:
                # Another process may be indexing, or a disk may be away for a while: the next look may work.
                hint = error.hint if isinstance(error, RecollectError) else ""
                report = SyncReport(notices=(Notice("not_synced", str(error), hint),), complete=False)
                self._stop.wait(_AGAIN_S)
                self._dirty.set()
            if report.pending and report.embedded:
                self._dirty.set()  # vectors come in slices, so that a change in between is seen soon
            if self._callback is not None and (not self._first.is_set() or _did_something(report)):
                self._callback(report)
            self._first.set()


def _did_something(report: SyncReport) -> bool:
    codes = {notice.code for notice in report.notices}
    return bool(report.added or report.changed or report.dropped or report.embedded or "not_synced" in codes)


class _Ear:
    """One system watch over some folders and the thread that listens to it."""

    def __init__(
        self, paths: tuple[str, ...], heard: Callable[[Sequence[str]], None], *, deep: bool, debounce_ms: int
    ) -> None:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415 - the generator around it hides when it is ready

        self.paths = paths
        self.deep = deep
        self._heard = heard
        self._debounce_ms = debounce_ms
        self._closed = threading.Event()
        self._notify: Any = RustNotify(list(paths), False, False, 0, deep, True)  # noqa: FBT003 - its own order
        self._thread = threading.Thread(target=self._run, name="recollect-ear", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        with self._notify as notify:
            while not self._closed.is_set():
                # A step is how long it must be still before a change is passed on.
                found = notify.watch(self._debounce_ms, min(50, self._debounce_ms), 200, self._closed)
                if found in ("signal", "stop"):
                    return
                if found != "timeout":
                    self._heard([path for _, path in found])
