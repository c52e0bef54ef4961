"""Changes that can be taken back: what each one wrote into which lines, in a small file beside the
index.

What a change removed for good, by forgetting, is not written down again: that is in the backup
which forgetting makes.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from notewell.opener import MOST_KEPT_BYTES, beside
from notewell.text.forgotten import Forgotten
from notewell.text.note_edit import keep_ends

MOST_CHANGES = 50
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines that were replaced, with the lines above and below; `first` and `last` tell where the
    old ones were.

    `old` is None where only a backup has them.
    """

    at: int
    first: int
    last: int
    old: tuple[str, ...] | None
    new: tuple[str, ...]
    above: str | None
    below: str | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a change did to one file: `after` is the hash of what it left, empty if it deleted the
    file.

    `backup` is the name of a file in the folder of backups.
    """

    path: str
    created: bool
    after: str
    hunks: tuple[Hunk, ...]
    backup: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change that can be taken back; `receipt` is that of what was forgotten."""

    id: str
    when: str
    action: str
    summary: str
    files: tuple[FileChange, ...]
    receipt: str = ""


def hash_of(data: bytes | None) -> str:
    """The hash of the bytes of a file; empty for one that does not exist."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def hunks(before: str, after: str, *, keep_old: bool) -> tuple[Hunk, ...]:
    """Where two texts differ."""
    old, new = keep_ends(before), keep_ends(after)
    found = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple(
        Hunk(
            j1,
            i1,
            i2,
            tuple(old[i1:i2]) if keep_old else None,
            tuple(new[j1:j2]),
            new[j1 - 1] if j1 else None,
            new[j2] if j2 < len(new) else None,
        )
        for kind, i1, i2, j1, j2 in found
        if kind != "equal"
    )


def taken_back(text: str, change: FileChange, *, exact: bool, backup: str = "") -> str | None:
    """A text without a change, whose lines may have moved unless it is `exact`; None if they are
    not as written.
    """
    lines, saved = keep_ends(text), keep_ends(backup)
    for hunk in reversed(change.hunks):
        at = hunk.at if exact else _place(lines, hunk)
        if at is None:
            return None
        old = saved[hunk.first : hunk.last] if hunk.old is None else list(hunk.old)
        if old and at + len(hunk.new) < len(lines) and not old[-1].endswith(("\n", "\r")):
            old[-1] += "\n"  # it was the last line, and others have written below it
        lines[at : at + len(hunk.new)] = old
    return "".join(lines)


def _place(lines: Sequence[str], hunk: Hunk) -> int | None:
    """Where the lines that a change wrote are now; None where that is not certain."""
    size = len(hunk.new)
    found = [at for at in range(len(lines) - size + 1) if tuple(lines[at : at + size]) == hunk.new]
    if not size or len(found) > 1:
        found = [at for at in found if _beside(lines, at, size, hunk)]
    return found[0] if len(found) == 1 else None


def _beside(lines: Sequence[str], at: int, size: int, hunk: Hunk) -> bool:
    above = lines[at - 1] if at else None
    below = lines[at + size] if at + size < len(lines) else None
    return above == hunk.above and below == hunk.below


class UndoLog:
    """The changes of a workspace that can be taken back, in a folder that only its owner can
    read.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def add(self, change: Change) -> bool:
        """Writes a change down; the oldest go when there are many. False where there is no place
        for it.
        """
        if self.folder is None:
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self.folder / f"{change.id}.json"
        beside(place).replace(place, json.dumps(asdict(change)).encode(), mode=0o600)
        for old in self._files()[MOST_CHANGES:]:
            old.unlink(missing_ok=True)
        return True

    def all(self) -> list[Change]:
        """Every change, the newest first."""
        return [change for place in self._files() if (change := _read(place))]

    def find(self, name: str) -> Change | None:
        """The change of this id."""
        return next((change for change in self.all() if change.id == name), None)

    def remove(self, name: str) -> None:
        """Forgets a change, as it was taken back."""
        if self.folder is not None and name.isalnum() and len(name) <= _LONGEST_NAME:
            (self.folder / f"{name}.json").unlink(missing_ok=True)

    def forget(self, gone: Forgotten) -> None:
        """Drops every change whose lines hold forgotten text, so that nothing of it stays here."""
        for change in self.all():
            for file in change.files:
                said = "".join(line for h in file.hunks for line in _said(h))
                if gone.in_any_note.has(said, file.path):
                    self.remove(change.id)

    def _files(self) -> list[Path]:
        with contextlib.suppress(OSError):
            if self.folder is not None:
                found = [
                    e for e in os.scandir(self.folder) if e.name.endswith(".json") and e.is_file()
                ]
                return [
                    Path(e.path)
                    for e in sorted(found, key=lambda e: (-e.stat().st_mtime_ns, e.name))
                ]
        return []


def _said(hunk: Hunk) -> Iterable[str]:
    """All lines that a hunk holds, each ended."""
    lines = (hunk.above or "", *(hunk.old or ()), *hunk.new, hunk.below or "")
    return (line if line.endswith(("\n", "\r")) else f"{line}\n" for line in lines)


def _read(place: Path) -> Change | None:
    """A change; None for a file that something else wrote."""
    try:
        row = json.loads(beside(place).read(place, most=MOST_KEPT_BYTES))
        files = []
        for file in row.pop("files"):
            made = [Hunk(**h) for h in file.pop("hunks")]
            lines = [
                replace(h, old=None if h.old is None else tuple(h.old), new=tuple(h.new))
                for h in made
            ]
            files.append(FileChange(**file, hunks=tuple(lines)))
        change = Change(**row, files=tuple(files))
        return change if change.id == place.stem else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
