"""Claude Code: a folder a project, a JSONL file a conversation."""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Iterator

from notewell.opener import ANYWHERE, MOST_SETTINGS_BYTES
from notewell.sources.sessions.keeper import Files, Where

_USUAL_DAYS = 30


def _home(where: Where) -> str:
    return where.home("CLAUDE_CONFIG_DIR", ".claude")


def _globs(where: Where) -> Iterator[str]:
    project = "*" if where.everyone else glob.escape(where.slug)
    yield os.path.join(glob.escape(_home(where)), "projects", project, "*.jsonl")


def deleted_after_days(where: Where) -> int | None:
    """After how many days the program deletes its conversations; None if it has none of this
    workspace.
    """
    home = _home(where)
    if not os.path.isdir(os.path.join(home, "projects", where.slug)):
        return None
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        said = json.loads(
            ANYWHERE.read(os.path.join(home, "settings.json"), most=MOST_SETTINGS_BYTES)
        )
        days = said.get("cleanupPeriodDays")
        if isinstance(days, int) and not isinstance(days, bool) and days >= 0:
            return days
    return _USUAL_DAYS


CLAUDE_CODE = Files(
    "Claude Code", "1.0 to 2.1", homes=lambda where: [_home(where)], globs=_globs, by_project=True
)
