"""Codex: JSONL rollouts by day for all projects; the first line names the folder."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from notewell.sources.sessions.keeper import Files, Where


def _home(where: Where) -> str:
    return where.home("CODEX_HOME", ".codex")


def _globs(where: Where) -> Iterator[str]:
    for folder in ("sessions", "archived_sessions"):
        yield os.path.join(glob.escape(_home(where)), folder, "**", "rollout-*.jsonl")


CODEX = Files("Codex", "0.40 to 0.166", homes=lambda where: [_home(where)], globs=_globs)
