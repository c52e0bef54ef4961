"""Markdown files of a workspace: found by one stat each, never outside the root, never by a crash."""

from __future__ import annotations

import glob
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

from recollect.ports import Scanned
from recollect.types import Document, Skipped

IGNORED_FOLDERS = frozenset(
    ("node_modules", "bower_components", "venv", "virtualenv", "site-packages", "__pycache__", "__pypackages__")
)
GIT_RULES, OWN_RULES = ".gitignore", ".recollectignore"
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
_NOTE_ENDINGS = (".md", ".markdown", ".mdx")
_TEXT_ENDINGS = (*_NOTE_ENDINGS, ".txt", ".rst", ".org", ".adoc")
_ROOT_NOTES = ("memory.md", "user.md")
_LOOK_EVERY = 256
_DETOUR = re.compile(r"/\.{0,2}(?:/|\Z)")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ignore rules in force in a folder: each a compiled file, its name and the folder it speaks for."""

    specs: tuple[tuple[str, str, Any], ...] = ()

    def below(self, folder: str, names: set[str]) -> _Rules:
        found = self.specs
        for name in (GIT_RULES, OWN_RULES):
            if name not in names:
                continue
            import pathspec  # noqa: PLC0415 - only workspaces that have such a file pay for it

            try:
                lines = Path(folder, name).read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                continue
            found = (*found, (folder, name, pathspec.GitIgnoreSpec.from_lines(lines)))
        return _Rules(found)

    def only(self, name: str) -> _Rules:
        """The rules that come from files of one name."""
        return _Rules(tuple(spec for spec in self.specs if spec[1] == name))

    def ignore(self, location: str, *, folder: bool) -> bool:
        """The verdict of the nearest rule that speaks of a place; our own file is asked before git's."""
        for base, _, spec in reversed(self.specs):
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
        for pattern in self.extra_paths:
            walk.further(pattern)
        documents = tuple(sorted(walk.documents.values(), key=lambda d: d.path))
        return Scanned(documents, tuple(walk.skipped), walk.complete)

    def document(self, path: str) -> Document | None:
        """The one document known by a path, by a look at its file alone; None where there is none."""
        location = os.path.join(self.root, path)
        if not self.refuses(location) and (found := _Walk(self, None).one(location)):
            return found
        return next((d for d in self.scan().documents if d.path == path), None)

    def refuses(self, location: str) -> str:
        """Why a file at a place would not be searched, or nothing; asked before one is made there."""
        return _Walk(self, None).refuses(os.path.normpath(location), self.extra_paths)

    def read(self, document: Document) -> str:
        """The text of a file; ValueError with the reason when it is none."""
        if document.size > self.max_file_bytes:
            raise ValueError(_too_large(self.max_file_bytes))
        with open(document.location, "rb", buffering=0) as file:
            return decode(file.readall())


def scan_paths(
    root: Path, paths: Sequence[str], *, kind: str, endings: tuple[str, ...], max_bytes: int, limit: str,
    deadline: float | None = None,
) -> Scanned:  # fmt: skip
    """The files of some endings in named files, folders and globs, by the rules that hold for extra paths."""
    walk = _Walk(FileSource(root, extra_paths=paths, max_file_bytes=max_bytes), deadline, limit=limit)
    for pattern in paths:
        walk.further(pattern, kind=kind, endings=endings)
    return Scanned(tuple(sorted(walk.documents.values(), key=lambda d: d.path)), tuple(walk.skipped), walk.complete)


def decode(data: bytes) -> str:
    """Text of a file's bytes: UTF-8, or UTF-16 with its mark; ValueError with the reason otherwise."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError("not valid UTF-16 text") from None
        if "\0" in text:
            raise ValueError("a binary file")
        return text
    if b"\0" in data[:8192]:
        raise ValueError("a binary file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start})") from None


class _Walk:
    """One pass over the tree."""

    def __init__(self, source: FileSource, deadline: float | None, *, limit: str = "max_file_bytes") -> None:
        self.root = str(source.root)
        self._limit = limit
        self._prefix = self.root.rstrip("/") + "/"
        self.max_file_bytes = source.max_file_bytes
        self.deadline = deadline
        self.documents: dict[str, Document] = {}
        self.skipped: list[Skipped] = []
        self.complete = True
        self._visited: set[str] = set()
        self._folder_at = ""  # the folder that was named last, and its name if that is a plain one
        self._folder_name: str | None = None
        # A place that the user names outside the workspace is meant; a link inside it that leads out is not.
        places = [os.path.join(self.root, os.path.expanduser(_fixed_part(p))) for p in source.extra_paths]
        self._homes = [self.root, *(os.path.realpath(p) for p in places if not self._inside(p))]

    def workspace(self) -> None:
        """The notes of the workspace proper."""
        entries = self._list(self.root)
        rules = _Rules().below(self.root, {e.name for e in entries})
        own = rules.only(OWN_RULES)
        for entry in entries:
            name = entry.name.casefold()
            if name in _ROOT_NOTES and not own.ignore(entry.path, folder=False):
                self._file(entry.path, "memory", entry=entry)
            elif name == "memory" and self._is_folder(entry):
                below, refused = self._root_rules(rules, entry.path, folder=True)
                if not refused:
                    self._tree(entry.path, "memory", below, _by_ending(_NOTE_ENDINGS))

    def further(self, pattern: str, *, kind: str = "extra", endings: tuple[str, ...] = _TEXT_ENDINGS) -> None:
        """A file, a folder or a glob beside the workspace's own notes; a named text may end as it likes."""
        pattern = os.path.expanduser(pattern)
        place = os.path.join(self.root, _fixed_part(pattern))
        if not os.path.exists(place):
            self._skip(pattern, f"{kind} path: no such file or folder")
        elif not os.path.isdir(place):
            if kind != "extra" and not _by_ending(endings)(place):
                self._skip(pattern, f"{kind} path: a file of a kind that is not known")
            else:
                self._file(place, kind)
        else:
            rules = _Rules()
            for folder in self._folders_above(place):
                rules = rules.below(folder, {e.name for e in self._list(folder)})
            accepts = _by_ending(endings)
            if glob.has_magic(pattern):
                accepts = _by_glob(os.path.join(self.root, pattern), place, endings, any_named=kind == "extra")
            self._tree(place, kind, rules, accepts)

    def _folders_above(self, place: str) -> Iterator[str]:
        """The folders from the root to the one above a place inside it; none for a place elsewhere."""
        if not self._inside(place) or os.path.normpath(place) == self.root:
            return
        here = self.root
        for part in os.path.relpath(place, self.root).split(os.sep):
            yield here
            here = os.path.join(here, part)

    def _inside(self, place: str) -> bool:
        relative = os.path.relpath(place, self.root)
        return relative.split(os.sep)[0] != os.pardir and not os.path.isabs(relative)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda e: e.name)
        except OSError as error:
            self.complete = False
            self._skip(self._name(folder), f"folder cannot be read: {error.strerror}")
            return []

    def _tree(self, folder: str, kind: str, rules: _Rules, accepts: Callable[[str], bool]) -> None:
        self._visited = set()
        if self._stays(folder):
            self._folder(folder, kind, rules, accepts)

    def _folder(self, folder: str, kind: str, rules: _Rules, accepts: Callable[[str], bool]) -> None:  # noqa: C901
        real = os.path.realpath(folder)
        if real in self._visited:
            return
        self._visited.add(real)
        if self._late():
            return
        entries = self._list(folder)
        names = {e.name for e in entries}
        if _VIRTUAL_ENVIRONMENT in names:
            return
        rules = rules.below(folder, names)
        for number, entry in enumerate(entries):
            if number % _LOOK_EVERY == _LOOK_EVERY - 1 and self._late():
                return
            if entry.name.startswith("."):
                continue
            if self._is_folder(entry):
                if entry.name in IGNORED_FOLDERS or rules.ignore(entry.path, folder=True):
                    continue
                if not entry.is_symlink() or self._stays(entry.path):
                    self._folder(entry.path, kind, rules, accepts)
            elif accepts(entry.path) and not rules.ignore(entry.path, folder=False):
                self._file(entry.path, kind, entry=entry)

    def _late(self) -> bool:
        """Whether the time is up; what was not seen by then may still be there."""
        if self.deadline is None or time.monotonic() <= self.deadline:
            return False
        self.complete = False
        return True

    def one(self, location: str) -> Document | None:
        """The document of one place that is not refused."""
        self._file(location, "memory" if self._is_note(location) else "extra")
        return next(iter(self.documents.values()), None)

    def refuses(self, location: str, extra_paths: Sequence[str]) -> str:
        """Why this walk would pass over a file at a place, whether or not it is there yet."""
        if self._inside(location) and (reason := self._refuses_link(location)):
            return reason
        if self._is_note(location):
            return self._refuses_folder(location, self.root)
        for pattern in map(os.path.expanduser, extra_paths):
            place = os.path.normpath(os.path.join(self.root, _fixed_part(pattern)))
            if place == location:
                return self._refuses_link(location)
            if not location.startswith(place.rstrip(os.sep) + os.sep) or not os.path.isdir(place):
                continue
            accepts = (
                _by_glob(os.path.join(self.root, pattern), place, _TEXT_ENDINGS, any_named=True)
                if glob.has_magic(pattern)
                else None
            )
            if (accepts or _by_ending(_TEXT_ENDINGS))(location):
                return self._refuses_link(location) or self._refuses_folder(location, place)
        return "outside the notes of the workspace (memory/**/*.md, MEMORY.md, USER.md and extra_paths)"

    def _is_note(self, location: str) -> bool:
        """Whether a place is where the workspace's own notes stand."""
        if not self._inside(location):
            return False
        parts = os.path.relpath(location, self.root).split(os.sep)
        if len(parts) == 1:
            return parts[0].casefold() in _ROOT_NOTES
        return parts[0].casefold() == "memory" and _by_ending(_NOTE_ENDINGS)(location)

    def _refuses_link(self, location: str) -> str:
        real = os.path.realpath(location)
        stays = any(real == home or real.startswith(home.rstrip(os.sep) + os.sep) for home in self._homes)
        return "" if stays else "a symbolic link leads out of the workspace there"

    def _refuses_folder(self, location: str, start: str) -> str:
        """Whether a hidden or ignored name stands between a folder and a file in it."""
        above = [*self._folders_above(start), start] if self._inside(start) else [start]
        rules = _Rules()
        for folder in above[:-1]:
            rules = rules.below(folder, set(os.listdir(folder)))
        here = start
        parts = os.path.relpath(location, start).split(os.sep)
        for number, part in enumerate(parts):
            names = set(os.listdir(here)) if os.path.isdir(here) else set()
            if _VIRTUAL_ENVIRONMENT in names and here != self.root:
                return "a virtual environment"
            rules = rules.below(here, names)
            here = os.path.join(here, part)
            inner = number < len(parts) - 1
            if start == self.root and number == 0:
                rules, refused = self._root_rules(rules, here, folder=inner)
            else:
                hidden = part.startswith(".") or (inner and part in IGNORED_FOLDERS)
                refused = hidden or rules.ignore(here, folder=inner)
            if refused:
                return "a hidden file or one that ignore rules leave out"
        return ""

    @staticmethod
    def _root_rules(rules: _Rules, location: str, *, folder: bool) -> tuple[_Rules, bool]:
        """The rules that hold below an entry of the root, as `workspace` has them, and whether it is left out."""
        own = rules.only(OWN_RULES)
        if own.ignore(location, folder=folder) or not folder:
            return rules, own.ignore(location, folder=folder)
        # A repository that keeps all of its memory out of git still wants to search it.
        git = rules.only(GIT_RULES)
        inside = os.path.join(location, "any note.md")
        kept_out = git.ignore(location, folder=True) or git.ignore(inside, folder=False)
        return own if kept_out else rules, False

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False

    def _stays(self, location: str) -> bool:
        real = os.path.realpath(location)
        if any(real == home or real.startswith(home.rstrip(os.sep) + os.sep) for home in self._homes):
            return True
        self._skip(self._name(location), "symbolic link that leaves the workspace")
        return False

    def _file(self, location: str, kind: str, *, entry: os.DirEntry[str] | None = None) -> None:
        path = self._name(location)
        try:
            if (entry is None or entry.is_symlink()) and not self._stays(location):
                return
            stat = entry.stat() if entry else os.stat(location)
        except OSError as error:
            self._skip(path, f"cannot be read: {error.strerror}")
            return
        if not S_ISREG(stat.st_mode):
            return
        if stat.st_size > self.max_file_bytes:
            self._skip(path, _too_large(self.max_file_bytes, self._limit))
        elif path not in self.documents:
            self.documents[path] = Document(path, kind, stat.st_size, stat.st_mtime_ns, location)
        elif os.path.normpath(self.documents[path].location) != os.path.normpath(location):
            self._skip(path, "another file has the same name in another Unicode form")

    def _name(self, location: str) -> str:
        """The path a document is known by: relative to the root where it is inside, NFC, with slashes."""
        folder, slash, last = location.rpartition("/")
        if folder != self._folder_at:
            plain = (folder + slash).startswith(self._prefix) and folder.isascii() and not _DETOUR.search(folder)
            self._folder_at, self._folder_name = folder, (folder + slash)[len(self._prefix) :] if plain else None
        if self._folder_name is not None and last.isascii() and last not in ("", ".", ".."):
            return self._folder_name + last  # nearly every note, at a tenth of the time
        name = os.path.relpath(location, self.root) if self._inside(location) else os.path.normpath(location)
        name = unicodedata.normalize("NFC", name.replace(os.sep, "/"))
        return name.encode("utf-8", "replace").decode("utf-8")

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))


def _too_large(most: int, limit: str = "max_file_bytes") -> str:
    return f"larger than {most:,} bytes ({limit})"


def _fixed_part(pattern: str) -> str:
    """The folder that a glob starts from; a pattern without a wildcard is its own."""
    parts = pattern.split("/")
    magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:magic]) or ("/" if pattern.startswith("/") else ".")


def _by_ending(endings: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda location: location.casefold().endswith(endings)


def _by_glob(pattern: str, base: str, endings: tuple[str, ...], *, any_named: bool) -> Callable[[str], bool]:
    """Files that a glob names, or that lie in a folder it names; of known endings, or `any_named` by it."""
    import pathspec  # noqa: PLC0415

    wanted = pathspec.GitIgnoreSpec.from_lines(["/" + os.path.relpath(pattern, base).replace(os.sep, "/")])
    ending = os.path.splitext(pattern)[1]
    named = any_named and bool(ending) and not glob.has_magic(ending)
    return lambda location: (
        (named or location.casefold().endswith(endings)) and wanted.match_file(os.path.relpath(location, base))
    )
