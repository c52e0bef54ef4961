"""What one process learnt about a model that is away, for the next: a command that ends at once has no other memory.

Only numbers are kept, never a sentence: the file lies beside the index, which may come from somebody else.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.embed.breaker import MOST_QUOTA_PAUSE_S

_LOCK = threading.Lock()


class Memo:
    """A small file: by model, how often it failed in a row and until when it is left alone."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def read(self, model: str) -> tuple[int, float]:
        """Failures in a row and the seconds of rest that are left, 0 and 0 where all is well or nothing is known."""
        found: Any = self._all().get(model)
        try:
            failures, until = int(found[0]), float(found[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            return 0, 0.0
        left = until - self._clock()
        # Longer than anything rests: the clock has been set back since, and nobody knows how much of it is left.
        return (failures, left) if 0 < failures < 1000 and left <= MOST_QUOTA_PAUSE_S else (0, 0.0)

    def write(self, model: str, failures: int, rest_s: float) -> None:
        """Remembers a failure, or that all is well; a file that cannot be written only means asking again."""
        with _LOCK, contextlib.suppress(OSError):
            known = self._all()
            if failures:
                known[model] = [failures, self._clock() + rest_s]
            elif known.pop(model, None) is None:
                return
            draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(known, file)
            os.replace(draft, self._path)

    def _all(self) -> dict[str, Any]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
