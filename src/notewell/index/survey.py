"""Why an answer is empty or poor, and what would help: every hint about what is not read is made
here.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from notewell.sources.inventory import SourceState
from notewell.types import Notice

FOUND_S = 0.5  # for a look at what is not read
_STALE_S = 20.0
_WRITE = (
    'write a Markdown file here, run: notewell remember "TEXT", or name the folder of your '
    "notes with -w"
)


class Survey:
    """What there is to read for one workspace; a look that is some seconds old is enough for
    hints.
    """

    def __init__(self, root: Path, look: Callable[[float], Iterable[SourceState]]) -> None:
        self._root, self._look = root, look
        self._looked_at, self._states = -_STALE_S, list[SourceState]()
        self._looking = threading.Lock()

    def states(self, *, within_s: float = FOUND_S) -> list[SourceState]:
        """Every source that is read or could be, with what there is of it; bounded in time."""
        if time.monotonic() - self._looked_at > _STALE_S:
            self._states = list(self._look(within_s))
            self._looked_at = time.monotonic()
        return self._states

    def latest(self) -> list[SourceState]:
        """The latest look, without waiting for one: if that is old, another begins in the
        background.
        """
        if time.monotonic() - self._looked_at > _STALE_S:
            threading.Thread(target=self._look_again, name="notewell-survey", daemon=True).start()
        return self._states

    def _look_again(self) -> None:
        if self._looking.acquire(blocking=False):
            # a hint is not worth a report, and the next look may succeed
            with contextlib.suppress(OSError):
                self.states()
            self._looking.release()

    def lacking(self, *, empty: bool) -> list[Notice]:
        """Why an answer may be empty or poor: no notes at all, and what is not read."""
        states = self.states()
        return [*([no_notes(self._root, states)] if empty else []), *not_read(states)]


def not_read(states: Sequence[SourceState]) -> list[Notice]:
    """What was found and is not read."""
    return [_not_read(state) for state in states if not state.read and state.documents]


def _not_read(state: SourceState) -> Notice:
    verbs = ("was", "is") if state.documents == 1 else ("were", "are")
    message = f"{state.amount} {verbs[0]} found and {verbs[1]} not read: {state.about}"
    return Notice(f"{state.name.replace('-', '_')}_not_read", message, f"run: {state.command}")


def no_notes(root: Path, states: Sequence[SourceState]) -> Notice:
    """That there is nothing to search, and the one thing that helps most."""
    waiting = next((s.command for s in states if not s.read and s.documents), "")
    left_out = next((s.command for s in states if s.name == "memory" and not s.read), "")
    help_ = left_out or (f"run: {waiting}" if waiting else _WRITE)
    return Notice("no_notes", f"there are no notes in {root}", help_)
