"""One pass over the notes of a workspace: by stat alone, within its root, through ignore rules and
odd files.
"""

from __future__ import annotations

import glob
import math
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

from notewell.opener import OUTSIDE, Opener
from notewell.sources.folder import HIDDEN, RULES, TEXTS, Folder
from notewell.sources.ignore_rules import GIT_RULES, OWN_RULES, Oddity, Rules
from notewell.sources.source import Known, Scanned
from notewell.sources.trust import Trust
from notewell.text.globs import pattern_of
from notewell.text.note_files import ENTRY_FILES
from notewell.text.reference_syntax import NOTES
from notewell.types import Document, Skipped

IGNORED_FOLDERS = frozenset(
    (
        "node_modules",
        "bower_components",
        "venv",
        "virtualenv",
        "site-packages",
        "__pycache__",
        "__pypackages__",
    )
)
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
_JUNCTIONS = os.name == "nt"  # links that do not say so
_LOOK_EVERY = 64
UNREAD_FOLDER = "folder cannot be read"
_DEEPEST = 200  # folders in folders
_NAME = attrgetter("name")
_DETOUR = re.compile(r"/\.{0,2}(?:/|\Z)")


class Walked(Protocol):
    """What a walk needs to know of the source that it is for."""

    root: Path
    extra_paths: tuple[str, ...]
    max_file_bytes: int
    opener: Opener
    trust: Trust | None

    @property
    def mode(self) -> str:
        """How the notes of the folder itself are read."""

    def rules(self, mode: str) -> Folder:
        """The rules of a new walk over the folder."""


class TreeWalk:
    """One pass over the tree."""

    def __init__(
        self,
        source: Walked,
        deadline: float | None,
        *,
        limit: str = "",
        first: bool = False,
        known: Known | None = None,
        blind: bool = False,
    ) -> None:
        self.root, self.extra_paths, self.max_file_bytes = (
            str(source.root),
            source.extra_paths,
            source.max_file_bytes,
        )
        self.deadline, self._limit, self._first = deadline, limit, first
        self._source, self._opener, self._trust = source, source.opener, source.trust
        self.folder: Folder | None = None
        self._prefix = self.root.rstrip("/") + "/"
        self.documents: dict[str, Document] = {}
        self._known: Known = known or {}
        # where each path was seen, also of documents that are as they were known
        self._places: dict[str, str] = {}
        self.skipped: list[Skipped] = []
        self.complete = True
        self._visited: set[str] = set()
        self._folder_at = ""  # the last folder in `_name`, and its name if that is a plain one
        self._folder_name: str | None = None
        self._no_rules = Rules(self._opener, blind=blind)
        self.odd: dict[Oddity, None] = {}

    def scanned(self) -> Scanned:
        """What was found so far."""
        found = tuple(sorted(self.documents.values(), key=lambda d: d.path))
        return Scanned(
            found, tuple(self.skipped), self.complete, self._places.keys() - self.documents.keys()
        )

    def everything(self) -> None:
        """Adds all that a workspace has: its own notes, the extra paths, then the rest of the
        folder if it counts.
        """
        self.workspace()
        for pattern in self.extra_paths:
            self.further(pattern)
        if (mode := self._source.mode) != "never":
            self._whole(mode)

    def _whole(self, mode: str) -> None:
        """Adds the notes of the folder itself, and the rules for agents in it."""
        self.folder = self._source.rules(mode)
        self._tree(self.root, "memory", self._no_rules, self.folder.accepts)
        for name in HIDDEN:
            place = os.path.join(self.root, name)
            if os.path.lexists(place):
                rules, refused = self._rules_above(place)
                if os.path.isdir(place) and not refused:
                    self._tree(place, "memory", rules, _by_ending(RULES))
                elif not refused:
                    self._file(place, "memory")

    def workspace(self) -> None:
        """Adds the workspace's own notes."""
        entries = self._list(self.root)
        rules = self._no_rules.below(self.root, {e.name for e in entries}, self.odd)
        own = rules.only(OWN_RULES)
        for entry in entries:
            name = entry.name.casefold()
            if name in ENTRY_FILES and not own.ignore(entry.path, folder=False):
                self._file(entry.path, "memory", entry=entry)
            elif name == "memory" and self._is_folder(entry):
                below, refused = self._root_rules(rules, entry.path, folder=True)
                if not refused:
                    self._tree(entry.path, "memory", below, _by_ending(NOTES))

    def further(
        self, pattern: str, *, kind: str = "extra", endings: tuple[str, ...] = TEXTS
    ) -> None:
        """Adds a file, a folder or a glob; an extra file that is named may have any ending."""
        pattern = os.path.expanduser(pattern)
        start = os.path.normpath(os.path.join(self.root, fixed_part(pattern)))
        if not os.path.exists(start):
            self._skip(pattern, f"{kind} path: no such file or folder", kind)
        elif os.path.isdir(start):
            try:
                accepts = self._accepts(pattern, start, endings, any_named=kind == "extra")
            except ValueError as error:
                self.odd[
                    Oddity(f"{kind} path {pattern!r}", 0, f"it is skipped, because {error}")
                ] = None
                return
            rules, refused = self._rules_above(start)
            if not refused:
                self._tree(start, kind, rules, accepts)
        elif kind == "extra" or _by_ending(endings)(start):
            self._file(start, kind)
        else:
            self._skip(pattern, f"{kind} path: not a known kind of file", kind)

    def _accepts(
        self, pattern: str, start: str, endings: tuple[str, ...], *, any_named: bool = True
    ) -> Callable[[str], bool]:
        """By ending; of a glob, what matches it or is in a matching folder, if `any_named` also
        with its ending.

        ValueError for a glob that can match nothing.
        """
        if not glob.has_magic(pattern):
            return _by_ending(endings)
        whole = os.path.relpath(os.path.join(self.root, pattern), start).replace(os.sep, "/")
        wanted = pattern_of(f"/{whole}")
        ending = os.path.splitext(pattern)[1]
        named = any_named and bool(ending) and not glob.has_magic(ending)
        return lambda location: (
            (named or location.casefold().endswith(endings))
            and wanted is not None
            and wanted.covers(os.path.relpath(location, start).split(os.sep))
        )

    def _takes(self, pattern: str, start: str, location: str) -> bool:
        try:
            return self._accepts(pattern, start, TEXTS)(location)
        except ValueError:
            return False

    def _folders_above(self, location: str) -> Iterator[str]:
        """The folders from the root down to the one above a location; none for a location
        outside.
        """
        if not self._inside(location) or os.path.normpath(location) == self.root:
            return
        here = self.root
        for part in os.path.relpath(location, self.root).split(os.sep):
            yield here
            here = os.path.join(here, part)

    def _rules_above(self, start: str) -> tuple[Rules, bool]:
        """The rules from the folders above a location, and whether they ignore it or a folder on
        the way.
        """
        rules, refused = self._no_rules, False
        for folder, inner in pairwise([*self._folders_above(start), start]):
            rules = rules.below(folder, {e.name for e in self._list(folder)}, self.odd)
            refused = refused or rules.ignore(inner, folder=True)
        return rules, refused

    def _inside(self, location: str) -> bool:
        return is_below(location, self.root)

    def _list(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=_NAME)
        except OSError as error:
            self.complete = False
            self._skip(self._name(folder), f"{UNREAD_FOLDER}: {error.strerror}")
            return []

    def _tree(self, folder: str, kind: str, rules: Rules, accepts: Callable[[str], bool]) -> None:
        self._visited = set()
        if not self._skip_link(folder, kind):
            self._folder(folder, kind, rules, accepts, os.path.realpath(folder))

    def _folder(  # noqa: PLR0917
        self,
        folder: str,
        kind: str,
        rules: Rules,
        accepts: Callable[[str], bool],
        real: str,
        depth: int = 0,
    ) -> None:
        if depth > _DEEPEST:
            self._skip(self._name(folder), f"more than {_DEEPEST} folders deep")
            return
        if real in self._visited:
            return
        self._visited.add(real)
        if self._late():
            return
        entries = self._list(folder)
        names = {e.name for e in entries}
        if VIRTUAL_ENVIRONMENT in names:
            return
        if self.folder is not None:
            self.folder.look(folder, names)
        rules = rules.below(folder, names, self.odd)
        base, ruled = self._base(folder) if self._known else None, bool(rules.files)
        for number, entry in enumerate(entries):
            if number % _LOOK_EVERY == _LOOK_EVERY - 1 and self._late():
                return
            name = entry.name
            if name.startswith("."):
                continue
            if self._is_folder(entry):
                if self._enters(entry, kind, rules):
                    self._folder(entry.path, kind, rules, accepts, _real(real, entry), depth + 1)
            elif (
                accepts(entry.path)
                and not (ruled and rules.ignore(entry.path, folder=False))
                and (base is None or not self._as_known(base + name, kind, entry))
            ):
                self._file(entry.path, kind, entry=entry)

    def _as_known(self, path: str, kind: str, entry: os.DirEntry[str]) -> bool:
        """Whether a file is as it was known, which is the usual case; it is then seen, and needs
        nothing else.
        """
        known = self._known.get(path)
        if known is None or path in self._places or entry.is_symlink():
            return False
        try:
            stat = entry.stat()
        except OSError:
            return False
        if not S_ISREG(stat.st_mode) or not known.same(kind, stat.st_size, stat.st_mtime_ns):
            return False
        if stat.st_size > self.max_file_bytes:
            return False  # which is to be reported
        self._places[path] = entry.path
        return True

    def _enters(self, entry: os.DirEntry[str], kind: str, rules: Rules) -> bool:
        """Whether the walk goes on into a folder."""
        if entry.name in IGNORED_FOLDERS or rules.ignore(entry.path, folder=True):
            return False
        if self.folder is not None and not self.folder.enters(entry.path):
            return False
        return not entry.is_symlink() or not self._skip_link(entry.path, kind)

    def _late(self) -> bool:
        """Whether the time is up; then the files that were not seen may still exist."""
        if self.deadline is None or time.monotonic() <= self.deadline:
            return False
        self.complete = False
        return True

    def one(self, location: str) -> Document | None:
        """The document of one location that is not refused."""
        note = self._is_note(location)
        extra = not note and any(self._is_extra(pattern, location) for pattern in self.extra_paths)
        mode = "never" if note or extra else self._source.mode
        # which knows the day of a note
        self.folder = self._source.rules(mode) if mode != "never" else None
        self._file(location, "extra" if extra else "memory")
        return next(iter(self.documents.values()), None)

    def refuses(self, location: str) -> str:
        """Why this walk would skip a file at a location, whether or not it exists yet."""
        if self._inside(location) and (reason := self._refuses_link(location)):
            return reason
        if self._is_note(location):
            return self._refuses_folder(location, self.root)
        for pattern in self.extra_paths:
            if self._is_extra(pattern, location):
                start = self._start(pattern)
                named = start == location
                return self._refuses_link(location) or (
                    "" if named else self._refuses_folder(location, start)
                )
        if self._source.mode != "never" and self._inside(location):
            taken = self._in_folder(location)
            return (
                self._refuses_folder(location, self.root)
                if taken
                else "by its name or folder it is not a note"
            )
        return (
            "outside the notes of the workspace (memory/**/*.md, MEMORY.md, USER.md and "
            "extra_paths)"
        )

    def _start(self, pattern: str) -> str:
        return os.path.normpath(os.path.join(self.root, fixed_part(os.path.expanduser(pattern))))

    def _is_extra(self, pattern: str, location: str) -> bool:
        """Whether an extra path names a location, or a glob or folder that takes it."""
        start = self._start(pattern)
        if start == location:
            return True
        below = location.startswith(start.rstrip(os.sep) + os.sep) and os.path.isdir(start)
        return below and self._takes(os.path.expanduser(pattern), start, location)

    def _in_folder(self, location: str) -> bool:
        """Whether the rules of the folder take a file at a location, whether or not it exists
        yet.
        """
        folder = self._source.rules(self._source.mode)
        for above in self._folders_above(location):
            if above != self.root and not folder.enters(above):
                return False
            folder.look(above, os.listdir(above) if os.path.isdir(above) else ())
        return folder.takes(location)

    def _is_note(self, location: str) -> bool:
        """Whether a location is one for the workspace's own notes."""
        if not self._inside(location):
            return False
        parts = os.path.relpath(location, self.root).split(os.sep)
        if len(parts) == 1:
            return parts[0].casefold() in ENTRY_FILES
        return parts[0].casefold() == "memory" and _by_ending(NOTES)(location)

    def _leaves(self, location: str) -> bool:
        return self._opener.leaves(location)

    def _refuses_link(self, location: str) -> str:
        return OUTSIDE if self._leaves(location) else ""

    def _refuses_folder(self, location: str, start: str) -> str:
        """Refuses hidden and ignored names between a folder and a file in it."""
        rules, ignored = self._rules_above(start)
        if ignored:
            return "a hidden or ignored file"
        here = start
        parts = os.path.relpath(location, start).split(os.sep)
        for number, part in enumerate(parts):
            names = set(os.listdir(here)) if os.path.isdir(here) else set()
            if VIRTUAL_ENVIRONMENT in names and here != self.root:
                return "a virtual environment"
            rules = rules.below(here, names)
            here = os.path.join(here, part)
            inner = number < len(parts) - 1
            if start == self.root and number == 0 and self._is_note(location):
                rules, refused = self._root_rules(rules, here, folder=inner)
            else:
                hidden = part.startswith(".") or (inner and part in IGNORED_FOLDERS)
                refused = hidden or rules.ignore(here, folder=inner)
            if refused:
                return "a hidden or ignored file"
        return ""

    @staticmethod
    def _root_rules(rules: Rules, location: str, *, folder: bool) -> tuple[Rules, bool]:
        """The rules below an entry of the root, as in `workspace`, and whether the entry is
        ignored.
        """
        own = rules.only(OWN_RULES)
        if (refused := own.ignore(location, folder=folder)) or not folder:
            return rules, refused
        # A repository that keeps its memory out of git wants to search it all the same.
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

    def _skip_link(self, location: str, kind: str) -> bool:
        """Whether a location is outside the workspace; if so, it is skipped with that reason."""
        leaves = self._leaves(location)
        if leaves:
            self._skip(self._name(location), "symbolic link that leaves the workspace", kind)
        return leaves

    def _file(self, location: str, kind: str, *, entry: os.DirEntry[str] | None = None) -> None:
        path = self._name(location)
        try:
            if (entry is None or entry.is_symlink()) and self._skip_link(location, kind):
                return
            stat = entry.stat() if entry else os.stat(location)
        except OSError as error:
            self._skip(path, f"cannot be read: {error.strerror}", kind)
            return
        large = stat.st_size > self.max_file_bytes
        if not S_ISREG(stat.st_mode):
            self._skip(path, "not a regular file", kind)
        elif large and self._limit:
            self._skip(path, too_large(self.max_file_bytes, self._limit), kind)
        elif path not in self._places:
            if large:
                self.skipped.append(
                    Skipped(path, too_large(self.max_file_bytes), kind, partly=True)
                )
            self._places[path] = location
            if (known := self._known.get(path)) is not None and known.same(
                kind, stat.st_size, stat.st_mtime_ns
            ):
                return
            day = self.folder.vault.day_of(path) if self.folder is not None else None
            strange = self._trust is not None and not self._trust.believes(stat.st_uid, location)
            self.documents[path] = Document(
                path, kind, stat.st_size, stat.st_mtime_ns, location, day, strange
            )
            if self._first:
                self.deadline = -math.inf
        elif os.path.normpath(self._places[path]) != os.path.normpath(location):
            self._skip(path, "another file has the same name in another Unicode form", kind)

    def _name(self, location: str) -> str:
        """The same as `path_of`, in a tenth of the time for nearly every note."""
        folder, slash, last = location.rpartition("/")
        base = self._base(folder) if slash else None
        if base is not None and last.isascii() and last not in ("", ".", ".."):
            return base + last
        return path_of(location, self.root)

    def _base(self, folder: str) -> str | None:
        """What the path of a file in a folder begins with; None unless that is a part of the
        folder's own name.
        """
        if folder != self._folder_at:
            plain = (
                f"{folder}/".startswith(self._prefix)
                and folder.isascii()
                and not _DETOUR.search(folder)
            )
            self._folder_at, self._folder_name = (
                folder,
                f"{folder}/"[len(self._prefix) :] if plain else None,
            )
        return self._folder_name

    def _skip(self, path: str, reason: str, kind: str = "") -> None:
        self.skipped.append(Skipped(path, reason, kind))


def too_large(most: int, limit: str = "max_file_bytes") -> str:
    """What a file of more than `most` bytes is, and the setting that says so."""
    return f"larger than {most:,} bytes ({limit})"


def path_of(location: str, root: str | Path) -> str:
    """The path of a document: relative to the root if it is inside, else absolute; NFC, with
    slashes.
    """
    relative = os.path.relpath(location, root)
    outside = relative.split(os.sep, 1)[0] == os.pardir or os.path.isabs(relative)
    name = os.path.normpath(location) if outside else relative
    return (
        unicodedata.normalize("NFC", name.replace(os.sep, "/"))
        .encode("utf-8", "replace")
        .decode("utf-8")
    )


def _real(above: str, entry: os.DirEntry[str]) -> str:
    """Where a folder really is, in one that is really `above`; to ask the system takes a call for
    each of them.
    """
    return (
        os.path.realpath(entry.path)
        if _JUNCTIONS or entry.is_symlink()
        else f"{above}/{entry.name}"
    )


def fixed_part(pattern: str) -> str:
    """The part of a glob before its first wildcard."""
    parts = pattern.split("/")
    magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:magic]) or ("/" if pattern.startswith("/") else ".")


def _by_ending(endings: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda location: location.endswith(endings) or location.casefold().endswith(endings)


def is_below(location: str, root: str) -> bool:
    """Whether a location is in the workspace, by its name."""
    relative = os.path.relpath(location, root)
    return relative.split(os.sep)[0] != os.pardir and not os.path.isabs(relative)
