"""Gemini CLI: a folder a project, named by a hash or a short name; a JSON or JSONL file a
conversation.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterator

from notewell.opener import ANYWHERE, MOST_SETTINGS_BYTES
from notewell.sources.sessions.keeper import Files, Where


def _home(where: Where) -> str:
    return os.path.join(where.home("GEMINI_CLI_HOME"), ".gemini")


def _globs(where: Where) -> Iterator[str]:
    home = _home(where)
    for folder in ("*",) if where.everyone else _folders(where, home):
        yield os.path.join(glob.escape(home), "tmp", folder, "chats", "*.json*")


def _folders(where: Where, home: str) -> Iterator[str]:
    """The hash of the path of a project, and its short name in `projects.json`."""
    yield hashlib.sha256(where.root.encode("utf-8", "surrogateescape")).hexdigest()
    try:
        data = ANYWHERE.read(os.path.join(home, "projects.json"), most=MOST_SETTINGS_BYTES)
        listed = json.loads(data).get("projects", {})
    except (OSError, ValueError, AttributeError, RecursionError):
        return
    short = listed.get(where.root) if isinstance(listed, dict) else None
    if isinstance(short, str) and short and "\0" not in short:
        yield glob.escape(short)


GEMINI_CLI = Files(
    "Gemini CLI", "0.5 to 0.61", homes=lambda where: [_home(where)], globs=_globs, by_project=True
)
