"""Patterns that are compiled when they are first used: most commands need few of them, and large ones take time."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, found)  # from now on no detour
        return found


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As good as `re.compile(pattern, flags)`, but an error in the pattern shows when it is used."""
    return cast("re.Pattern[str]", _Late(pattern, flags))
