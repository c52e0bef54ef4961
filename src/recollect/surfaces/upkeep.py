"""What a server does beside answering: it keeps the index warm, and tells of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from recollect.errors import EmbedderError
from recollect.memory import Memory
from recollect.types import SyncReport

Tell = Callable[..., None]
_EVERY_S = 0.2


class Upkeep:
    """A watch on the notes that also fills in vectors, slice by slice; what happens is told as events.

    Searches do not depend on it: each makes sure by itself that it misses nothing, and finds little left to do.
    """

    def __init__(self, memory: Memory, tell: Tell | None = None) -> None:
        self.memory = memory
        self._tell = tell or _nobody
        memory.stay()
        self._told_at = 0.0
        self._watch = memory.watch(self._synced, progress=self._progress)

    def __enter__(self) -> Self:
        # A model is loaded by its first question: that should be ours, not the user's.
        threading.Thread(target=self._warm_up, name="recollect-warm-up", daemon=True).start()
        self._watch.start()
        self.memory.hear(self._changed_elsewhere)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.stop(timeout_s=0.0)  # closing the memory waits for it, after it has let go of the models

    def _warm_up(self) -> None:
        model = self.memory.embedder
        if model is not None:
            try:
                model.embed(["ready"], "query")
            except EmbedderError:
                return  # the first search says what is wrong

    def _progress(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what == "vectors" or (now - self._told_at < _EVERY_S and done < total):
            return  # vectors come in slices, each of which counts from nought; the reports know the whole
        self._told_at = now
        self._tell("progress", what=what, done=done, total=total)

    def _changed_elsewhere(self, generation: int) -> None:
        """Somebody changed the index, maybe on another machine: what is shown may be out of date."""
        del generation
        self._tell("synced", added=0, changed_notes=0, dropped=0, pending=0, changed=True)

    def _synced(self, report: SyncReport) -> None:
        if report.embedded and report.model:
            done, total = self.memory.store.coverage(report.model)
            self._tell("progress", what="vectors", done=done, total=total)
        moved = bool(report.added or report.changed or report.dropped)
        if moved or not report.pending:
            self._tell(
                "synced", added=report.added, changed_notes=report.changed, dropped=report.dropped,
                pending=report.pending, changed=moved or bool(report.embedded),
            )  # fmt: skip


def _nobody(event: str, **facts: Any) -> None:
    """Nobody listens."""
    del event, facts
