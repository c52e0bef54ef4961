"""Markdown files of a workspace: found by one stat each, never outside the root, never by a crash."""

from __future__ import annotations

import glob
import os
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.ports import Scanned
from recollect.types import Document, Skipped

IGNORED_FOLDERS = frozenset(
    "node_modules bower_components venv env virtualenv __pycache__ __pypackages__ site-packages target vendor".split()
)
IGNORE_FILES = (".gitignore", ".recollectignore")
_NOTE_ENDINGS = (".md", ".markdown", ".mdx")
_TEXT_ENDINGS = (*_NOTE_ENDINGS, ".txt", ".rst", ".org", ".adoc")
_ROOT_NOTES = ("memory.md", "user.md")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ignore rules in force in a folder: each a compiled file and the folder it speaks for."""

    specs: tuple[tuple[str, Any], ...] = ()

    def below(self, folder: str, names: set[str]) -> _Rules:
        found = [name for name in IGNORE_FILES if name in names]
        if not found:
            return self
        import pathspec  # noqa: PLC0415 - only workspaces that have such a file pay for it

        lines: list[str] = []
        for name in found:
            try:
                lines += Path(folder, name).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
        return _Rules((*self.specs, (folder, pathspec.GitIgnoreSpec.from_lines(lines))))

    def ignore(self, location: str, *, folder: bool) -> bool:
        for base, spec in reversed(self.specs):
            verdict = spec.check_file(os.path.relpath(location, base) + ("/" if folder else "")).include
            if verdict is not None:
                return bool(verdict)
        return False


class FileSource:
    """`MEMORY.md`, `USER.md`, `memory/**/*.md` and the extra paths of a workspace."""

    name = "memory"

    def __init__(self, root: Path, *, extra_paths: Sequence[str] = (), max_file_bytes: int = 5_000_000) -> None:
        self.root = Path(os.path.realpath(root))
        self.extra_paths = tuple(extra_paths)
        self.max_file_bytes = max_file_bytes

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """Every document that is there now, with a reason for each file passed over."""
        walk = _Walk(self, deadline)
        walk.workspace()
        for extra in self.extra_paths:
            walk.extra(extra)
        documents = tuple(sorted(walk.documents.values(), key=lambda d: d.path))
        return Scanned(documents, tuple(walk.skipped), walk.complete)

    def read(self, document: Document) -> str:
        """The text of a file; ValueError with the reason when it is none."""
        if document.size > self.max_file_bytes:
            raise ValueError(f"larger than {self.max_file_bytes:,} bytes (max_file_bytes)")
        return decode(Path(document.location).read_bytes())


def decode(data: bytes) -> str:
    """Text of a file's bytes: UTF-8, or UTF-16 with its mark; ValueError with the reason otherwise."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError("not valid UTF-16 text") from None
    if b"\0" in data[:8192]:
        raise ValueError("a binary file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start})") from None


class _Walk:
    """One pass over the tree."""

    def __init__(self, source: FileSource, deadline: float | None) -> None:
        self.source = source
        self.root = str(source.root)
        self.deadline = deadline
        self.documents: dict[str, Document] = {}
        self.skipped: list[Skipped] = []
        self.complete = True
        self._visited: set[str] = set()

    def workspace(self) -> None:
        entries = self._list(self.root)
        rules = _Rules().below(self.root, {e.name for e in entries})
        own = _Rules(tuple(r for r in rules.specs if r[0] != self.root))
        for entry in entries:
            name = entry.name.casefold()
            if name in _ROOT_NOTES:
                self._file(entry.path, "memory", entry=entry)
            elif name == "memory" and self._is_folder(entry):
                # A repository that keeps its memory out of git still wants to search it.
                whole = rules.ignore(entry.path, folder=True)
                self._folder(entry.path, "memory", own if whole else rules, _NOTE_ENDINGS)

    def extra(self, pattern: str) -> None:
        wanted = os.path.join(self.root, os.path.expanduser(pattern))
        places = sorted(glob.glob(wanted, recursive=True)) if glob.has_magic(wanted) else [wanted]
        for place in places:
            if os.path.isdir(place):
                rules = _Rules()
                for folder in self._folders_down_to(place):
                    rules = rules.below(folder, set(os.listdir(folder)))
                self._folder(place, "extra", rules, _TEXT_ENDINGS)
            elif os.path.isfile(place):
                self._file(place, "extra")
            else:
                self._skip(pattern, "extra path: no such file or folder")

    def _folders_down_to(self, place: str) -> Iterator[str]:
        """The folders from the root to the one above a place inside it; none for a place elsewhere."""
        inside = os.path.relpath(place, self.root)
        if inside.startswith("..") or os.path.isabs(inside):
            return
        here = self.root
        for part in inside.split(os.sep):
            yield here
            here = os.path.join(here, part)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda e: e.name)
        except OSError as error:
            self.complete = False
            self._skip(self._name(folder), f"folder cannot be read: {error.strerror}")
            return []

    def _folder(self, folder: str, kind: str, rules: _Rules, endings: tuple[str, ...]) -> None:
        real = os.path.realpath(folder)
        if real in self._visited:
            return
        self._visited.add(real)
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.complete = False
            return
        entries = self._list(folder)
        rules = rules.below(folder, {e.name for e in entries})
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if self._is_folder(entry):
                if entry.name in IGNORED_FOLDERS or rules.ignore(entry.path, folder=True):
                    continue
                if not entry.is_symlink() or self._stays_inside(entry.path, kind):
                    self._folder(entry.path, kind, rules, endings)
            elif entry.name.casefold().endswith(endings) and not rules.ignore(entry.path, folder=False):
                self._file(entry.path, kind, entry=entry)

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False

    def _stays_inside(self, location: str, kind: str) -> bool:
        real = os.path.realpath(location)
        if real == self.root or real.startswith(self.root + os.sep):
            return True
        if kind == "extra" and any(
            real.startswith(os.path.realpath(os.path.join(self.root, os.path.expanduser(e))) + os.sep)
            for e in self.source.extra_paths
        ):
            return True
        self._skip(self._name(location), "symbolic link that leaves the workspace")
        return False

    def _file(self, location: str, kind: str, *, entry: os.DirEntry[str] | None = None) -> None:
        try:
            if (entry.is_symlink() if entry else os.path.islink(location)) and not self._stays_inside(location, kind):
                return
            stat = entry.stat() if entry else os.stat(location)
        except OSError as error:
            self._skip(self._name(location), f"cannot be read: {error.strerror}")
            return
        if not os.path.isfile(location) if entry is None else not entry.is_file():
            return
        path = self._name(location)
        if path in self.documents:
            if self.documents[path].location != location:
                self._skip(path, "another file has the same name in another Unicode form")
            return
        self.documents[path] = Document(path, kind, stat.st_size, stat.st_mtime_ns, location)

    def _name(self, location: str) -> str:
        """The path a document is known by: relative to the root where it is inside, NFC, with slashes."""
        relative = os.path.relpath(location, self.root)
        name = location if relative.startswith("..") else relative
        name = unicodedata.normalize("NFC", name.replace(os.sep, "/"))
        return name.encode("utf-8", "replace").decode("utf-8")

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))
