"""Cline: a folder a conversation; what is beside it names where it was held.

Since 3.0 of its command line `sessions/<id>/<id>.messages.json` with `<id>.json` beside it, before
that `tasks/<id>/api_conversation_history.json` with one list of all tasks.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from notewell.opener import ANYWHERE, MOST_KEPT_BYTES
from notewell.sources.sessions.keeper import Files, Where

_EXTENSION = "saoudrizwan.claude-dev"
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_WHERE = ("cwdOnTaskInitialization", "shadowGitConfigWorkTree")


def _homes(where: Where) -> Sequence[str]:
    data = (
        where.home("CLINE_DATA_DIR")
        if where.env.get("CLINE_DATA_DIR")
        else where.home("", ".cline", "data")
    )
    settings = [
        where.config(),
        where.home("", "Library", "Application Support"),
        *([where.env["APPDATA"]] if where.env.get("APPDATA") else []),
    ]
    editors = [
        os.path.join(base, editor, "User", "globalStorage", _EXTENSION)
        for base in settings
        for editor in _EDITORS
    ]
    server = where.home("", ".vscode-server", "data", "User", "globalStorage", _EXTENSION)
    return [data, *editors, server]


def _globs(where: Where) -> Iterator[str]:
    for home in _homes(where):
        if os.path.isdir(home):
            yield os.path.join(glob.escape(home), "sessions", "*", "*.messages.json")
            yield os.path.join(glob.escape(home), "tasks", "*", "api_conversation_history.json")


def _about(location: str) -> tuple[str, str]:
    """The folder and the title of a conversation, from the files beside it."""
    folder, name = os.path.split(location)
    if name.endswith(".messages.json"):
        said = _json(os.path.join(folder, f"{name.removesuffix('.messages.json')}.json"))
        found = said if isinstance(said, dict) else {}
        named = found.get("metadata")
        return _text(found, "workspace_root", "cwd"), _text(
            named if isinstance(named, dict) else {}, "title"
        )
    task = os.path.basename(folder)
    tasks = _json(
        os.path.join(os.path.dirname(os.path.dirname(folder)), "state", "taskHistory.json")
    )
    one = (
        next((t for t in tasks if isinstance(t, dict) and t.get("id") == task), {})
        if isinstance(tasks, list)
        else {}
    )
    return _text(one, *_WHERE), _text(one, "task")


def _json(file: str) -> Any:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return json.loads(ANYWHERE.read(file, most=MOST_KEPT_BYTES))
    return None


def _text(values: dict[str, Any], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := values.get(key), str) and value), "")


CLINE = Files(
    "Cline",
    "3.17 to 3.89 in editors, 3.0 on the command line",
    homes=_homes,
    globs=_globs,
    about=_about,
)
