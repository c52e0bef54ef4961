"""Turns: searches that are under way, and work in the background that lets them go first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUIET_S, _LONGEST_S = 0.3, 2.0


class Turns:
    """Counts the searches of one process."""

    def __init__(self) -> None:
        self.searches = 0
        self._searched_at = -_QUIET_S
        self._counting = threading.Lock()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Counts a search while it runs."""
        with self._counting:
            self.searches += 1
            self._searched_at = time.monotonic()
        try:
            yield
        finally:
            with self._counting:
                self.searches -= 1

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Returns when nobody has searched for a moment, after a while in any case, or when all is
        over.
        """
        until = time.monotonic() + _LONGEST_S
        while not is_over() and time.monotonic() < min(until, self._searched_at + _QUIET_S):
            time.sleep(0.05)
