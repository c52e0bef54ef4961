"""Which workspace a folder belongs to; it loads next to nothing, for commands that another process answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = ".notewell"
MARKERS = (FOLDER, "memory")


def find_workspace(start: Path | None, env: Mapping[str, str]) -> Path:
    """`NOTEWELL_WORKSPACE`, else the nearest folder upwards that looks like a workspace, else `start`.

    Without `start` it begins in the current folder; WorkspaceError if that was deleted.
    """
    if named := env.get("NOTEWELL_WORKSPACE"):
        return Path(named)
    try:
        start = start or Path.cwd()
    except FileNotFoundError:
        from notewell.errors import WorkspaceError  # noqa: PLC0415 - hardly ever

        hint = "change into another one, or name the folder of your notes with -w"
        raise WorkspaceError("the current folder does not exist any more", hint=hint) from None
    return next((folder for folder in (start, *start.parents) if is_marked(folder)), start)


def is_marked(folder: Path) -> bool:
    """Whether a folder is a workspace for itself and all below it."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return any(n in MARKERS and (folder / n).is_dir() for n in names) or any(n.casefold() == "memory.md" for n in names)


def noted_workspace(named: str, folder: str, env: Mapping[str, str]) -> Path | None:
    """The workspace that is named or that a folder is in; None where nobody has notes or an index yet."""
    if named:
        return Path(named)
    found = find_workspace(Path(folder or os.getcwd()), env)
    if env.get("NOTEWELL_WORKSPACE"):
        return found
    try:
        names = {name.casefold() for name in os.listdir(found)}
    except OSError:
        return None
    return found if names & {*MARKERS, "memory.md", "notewell.toml"} else None
