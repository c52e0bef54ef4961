"""notewell: local-first memory search for AI agents and the people who run them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The runtime of our models would keep a number for this machine and report every start to its
# makers.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

if TYPE_CHECKING:
    from notewell.embed.embedder import Reranker
    from notewell.errors import NotewellError
    from notewell.memory import Memory
    from notewell.search.pipeline import Profile
    from notewell.search.profiles import adapted, profile
    from notewell.search.stages import Boost, Cut, Rerank
    from notewell.types import Candidate, Filters, Found, Hit, Notice, Query, Stage

__all__ = [
    "Boost",
    "Candidate",
    "Cut",
    "Filters",
    "Found",
    "Hit",
    "Memory",
    "NotewellError",
    "Notice",
    "Profile",
    "Query",
    "Rerank",
    "Reranker",
    "Stage",
    "__version__",
    "adapted",
    "profile",
]
_HOMES = {
    "embed.embedder": "Reranker",
    "errors": "NotewellError",
    "memory": "Memory",
    "search.pipeline": "Profile",
    "search.profiles": "adapted profile",
    "search.stages": "Boost Cut Rerank",
    "types": "Candidate Filters Found Hit Notice Query Stage",
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when first asked for: `notewell --version` loads none."""
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'notewell' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"notewell.{home}"), name)
