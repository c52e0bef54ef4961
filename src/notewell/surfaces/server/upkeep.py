"""Keeps the index up to date while a server runs, and tells its clients about it: progress, changed
notes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

from notewell.errors import EmbedderError, StoreError
from notewell.memory import Memory
from notewell.types import SyncReport

Tell = Callable[..., None]
Event = dict[str, Any]
_EVERY_S = 0.2
_WAITING = 100
STILL_HERE_S = 15.0


class Upkeep:
    """Watches the notes and makes missing vectors, slice by slice; `tell` gets each event.

    Searches do not depend on it: each checks the files itself, but then finds little left to do.
    """

    def __init__(self, memory: Memory, tell: Tell | None = None) -> None:
        self.memory = memory
        self._tell = tell or (lambda _event, **_facts: None)
        memory.keep_warm()
        self._told_at = 0.0
        self._watch = memory.watch(self._synced, progress=self._progress)

    def __enter__(self) -> Self:
        # The first question loads the model; it should be ours, not the user's.
        threading.Thread(target=self._warm_up, name="notewell-warm-up", daemon=True).start()
        self._watch.start()
        self.memory.on_change(self._changed_elsewhere)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(StoreError):
            self.memory.searcher.record_shown()
        # closing the memory waits for the watch, after it has released the models
        self._watch.stop(timeout_s=0.0)

    def _warm_up(self) -> None:
        model = self.memory.embedder
        if model is not None:
            try:
                # the first alone would not load all of a vocabulary
                model.embed(["ready", "steady"], "query")
            except EmbedderError:
                return  # the first search reports what is wrong

    def _progress(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what == "vectors" or (now - self._told_at < _EVERY_S and done < total):
            return  # each slice of vectors counts from 0; the reports have the totals
        self._told_at = now
        self._tell("progress", what=what, done=done, total=total)

    def _changed_elsewhere(self, _generation: int) -> None:
        """Another process or machine changed the index, so what clients show may be out of date."""
        self._tell("synced", added=0, changed_notes=0, dropped=0, pending=0, changed=True)

    def _synced(self, report: SyncReport) -> None:
        if report.embedded and report.model:
            done, total = self.memory.store.vectors.coverage(report.model)
            self._tell("progress", what="vectors", done=done, total=total)
        moved = bool(report.added or report.changed or report.dropped)
        if moved or not report.pending:
            self._tell(
                "synced",
                added=report.added,
                changed_notes=report.changed,
                dropped=report.dropped,
                pending=report.pending,
                changed=moved or bool(report.embedded),
            )


class Events:
    """A queue per listener in the server's loop; any thread may add events, and a slow listener
    loses the oldest.
    """

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[Event | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._closed = False

    def tell(self, event: str, **facts: Any) -> None:
        """Sends an event to all listeners."""
        self._send({"event": event, **facts})

    def close(self) -> None:
        """Ends all listeners."""
        self._closed = True
        self._send(None)

    def _send(self, event: Event | None) -> None:
        with self._lock:
            listeners = list(self._listeners.items())
        for queue, loop in listeners:
            loop.call_soon_threadsafe(_put, queue, event)

    async def listen(self) -> AsyncIterator[Event]:
        """Events from now on; an empty one now and then, so that a broken connection is noticed."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_WAITING)
        with self._lock:
            self._listeners[queue] = asyncio.get_running_loop()
        try:
            while not self._closed:
                try:
                    event = await asyncio.wait_for(queue.get(), STILL_HERE_S)
                except TimeoutError:
                    event = {}
                if event is None:
                    return
                yield event
        finally:
            with self._lock:
                del self._listeners[queue]


def _put(queue: asyncio.Queue[Event | None], event: Event | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(event)
