"""Hearing of what other machines change in a store that many share, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from recollect.errors import StoreError

_WAIT_S = 5.0
_AGAIN_S = 1.0


class Heard(Protocol):
    """What hearing asks of a store."""

    @property
    def generation(self) -> int:
        """A number that grows with every committed change."""
        ...

    def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
        """The generation after the next change by anybody, or since that one; None when none came in time."""
        ...


class Hearing:
    """Calls back with the generation after a change by anybody; a server that is away is asked again until it is back.

    Changes that come close together may be told as one; none is left out.
    """

    def __init__(self, store: Heard, callback: Callable[[int], None]) -> None:
        self._store = store
        self._callback = callback
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-hearing", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout_s: float) -> bool:
        """Waits until it has looked for the first time: what comes after that is told."""
        return self._ready.wait(timeout_s)

    def close(self) -> None:
        """Ends it; a wait under way is not waited for."""
        self._stop.set()

    def _run(self) -> None:
        known: int | None = None
        while not self._stop.is_set():
            try:
                now = self._store.generation  # what came between two waits is seen here
                if known is not None and now != known and not self._stop.is_set():
                    self._callback(now)
                known = now
                self._ready.set()
                self._store.listen(_WAIT_S, since=now)  # a change since the look above ends it at once
            except StoreError:
                self._stop.wait(_AGAIN_S)
