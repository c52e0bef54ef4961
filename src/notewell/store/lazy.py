"""Modules that are loaded when they are first used: many commands need no numpy, which takes longer
than they do.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until something of it is needed; each name is looked up in it once."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        found = self.__dict__[attribute] = getattr(import_module(self._name), attribute)
        return found
