"""GitHub Copilot CLI: a folder a conversation, with its events in a JSONL file that names where it
was held.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from notewell.sources.sessions.keeper import Files, Where


def _home(where: Where) -> str:
    return where.home("COPILOT_HOME", ".copilot")


def _globs(where: Where) -> Iterator[str]:
    state = os.path.join(glob.escape(_home(where)), "session-state")
    yield os.path.join(state, "*", "events.jsonl")
    yield os.path.join(state, "*.jsonl")  # before 1.0


COPILOT_CLI = Files(
    "Copilot CLI", "0.0.340 to 1.0.102", homes=lambda where: [_home(where)], globs=_globs
)
