"""What is ours in a file of somebody else: put in, shown, taken out, with a copy of what was there
before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from notewell.errors import SettingsError, UsageError

BACKUP = ".notewell.bak"
_HINT = "fix it, or use --print"


@dataclass(frozen=True, slots=True)
class Edit:
    """How our part of a file gets in, and how it gets out of a text, given what was there before we
    came.

    Both take an empty text for a missing file; `drop` returns one when nothing but ours was there.
    """

    file: Path
    put: Callable[[str], str]
    drop: Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one file; without a text after it, the file goes."""

    name: str
    file: Path
    before: str
    after: str | None
    keep: str | None = None  # what was there without us, to be kept beside the file
    undo: bool = False  # whether a copy that was kept is no longer needed

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.before != (self.after or "") or (self.after is None and self.file.exists())

    @property
    def diff(self) -> str:
        """The change as `diff -u` shows it."""
        import difflib  # noqa: PLC0415

        parts = (
            self.before.splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
        )
        lines = difflib.unified_diff(*parts, str(self.file), str(self.file))
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def whole(file: Path, text: str, mark: str) -> Edit:
    """A file that is all ours, which the mark tells from one that is not."""
    return Edit(file, lambda _: text, lambda before, was: was if mark in before else before)


def joined(edits: Iterable[Edit]) -> list[Edit]:
    """The same edits, with those of one file made one."""
    made: dict[Path, Edit] = {}
    for one in edits:
        made[one.file] = _both(made[one.file], one) if one.file in made else one
    return list(made.values())


def _both(first: Edit, then: Edit) -> Edit:
    return Edit(
        first.file,
        lambda text: then.put(first.put(text)),
        lambda text, was: then.drop(first.drop(text, was), was),
    )


def read(file: Path) -> str:
    """The text of a file; empty if there is none."""
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=_HINT) from error


def planned(name: str, title: str, edit: Edit, *, undo: bool) -> Change:
    """The change that an edit makes of a file as it is now, or the one that takes it back."""
    file = Path(os.path.realpath(edit.file))
    before, kept = read(file), _kept(file)
    try:
        if not undo:
            without = edit.drop(before, "") if file.exists() and not kept.exists() else None
            # nothing is kept of a file that was all ours
            keep = without if without or without == before else None
            return Change(name, file, before, edit.put(before), keep=keep)
        was = read(kept)
        after = edit.drop(before, was)
        if kept.exists() and after == edit.drop(edit.put(was), was):
            after = was  # nobody changed anything else, so that it can come back to the byte
    except ValueError as error:
        raise SettingsError(
            f"the settings of {title} cannot be read: {error}", hint=f"{file}: {_HINT}"
        ) from error
    gone = not after.strip() and not kept.exists()
    return Change(name, file, before, None if gone else after, undo=True)


def write(one: Change) -> None:
    """Replaces or removes the file in one step, and keeps its mode; the copy of the old one appears
    or goes.
    """
    try:
        if one.after is None:
            one.file.unlink(missing_ok=True)
            _prune(one.file.parent)
        elif one.changes:
            _replace(one)
        if one.undo:
            _kept(one.file).unlink(missing_ok=True)
    except OSError as error:
        hint = "check its permissions, or use --print"
        raise UsageError(f"{one.file} cannot be written: {error.strerror}", hint=hint) from error


def _replace(one: Change) -> None:
    one.file.parent.mkdir(parents=True, exist_ok=True)
    mode = one.file.stat().st_mode & 0o777 if one.file.exists() else 0o600
    if one.keep is not None:
        _store(_kept(one.file), one.keep, mode)
    _store(one.file, one.after or "", mode)


def _store(file: Path, text: str, mode: int) -> None:
    import tempfile  # noqa: PLC0415

    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".notewell-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(text.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode)
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _kept(file: Path) -> Path:
    return file.with_name(file.name + BACKUP)


def _prune(folder: Path) -> None:
    """Removes the folders of a file that is gone if nothing is left in them; outside the user's
    home only our own.
    """
    home, ours = Path(os.path.realpath(os.path.expanduser("~"))), ("notewell", "skills", "plugins")
    while (
        (home in folder.parents or folder.name in ours)
        and folder.is_dir()
        and not any(folder.iterdir())
    ):
        folder.rmdir()
        folder = folder.parent
