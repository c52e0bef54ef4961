"""The folder of a workspace for what notewell keeps in it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from notewell.errors import StoreError
from notewell.opener import beside
from notewell.store.nearest import FOLDER


def own_folder(root: Path) -> Path | None:
    """The folder of a workspace for what notewell keeps there, which need not exist; None where it
    is a link.
    """
    folder = root / FOLDER
    return None if folder.is_symlink() else folder


def make_own_folder(root: Path) -> Path:
    """That folder, made if it is missing, and left out by git."""
    folder = root / FOLDER
    _refuse_odd(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        beside(folder).create(folder / ".gitignore", b"*\n")
    return folder


def _refuse_odd(folder: Path) -> None:
    """A cloned repository can hold links: what we write next to the index must not overwrite other
    files.
    """
    found = [folder] if folder.is_symlink() else []
    odd: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                found.append(folder / entry.name)
            elif not entry.is_file() and not entry.is_dir():
                odd.append(entry.path)
    hint = "delete it, or set index.path in your own settings"
    if found:
        raise StoreError(
            f"{found[0]} is a link, so what is written there could overwrite any file", hint=hint
        )
    if odd:
        raise StoreError(
            f"{odd[0]} is a pipe, a socket or a device, not a file of an index", hint=hint
        )
