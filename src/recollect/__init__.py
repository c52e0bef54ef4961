"""recollect: local-first memory search for AI agents and the people who run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recollect.errors import RecollectError
    from recollect.memory import Memory
    from recollect.types import Filters, Found, Hit

__all__ = ["Filters", "Found", "Hit", "Memory", "RecollectError", "__version__"]


def __getattr__(name: str) -> Any:
    """The public names, loaded when first asked for: `recollect --version` loads none."""
    homes = {"Memory": "memory", "RecollectError": "errors", "Filters": "types", "Found": "types", "Hit": "types"}
    if name not in homes:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"recollect.{homes[name]}"), name)
