"""Markdown files of a workspace: one stat for each, no file outside the root, no crash over a bad
one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from notewell.opener import Opener, inside
from notewell.settings import WORKSPACE_FILE
from notewell.sources.folder import DOCUMENTS, Folder, has_memory, is_manifest
from notewell.sources.ignore_rules import GIT_RULES, OWN_RULES, notices_of
from notewell.sources.source import Known, Scanned
from notewell.sources.tree_walk import VIRTUAL_ENVIRONMENT, TreeWalk, fixed_part, is_below
from notewell.sources.tree_walk import path_of as path_of  # noqa: PLC0414 - for other sources
from notewell.sources.tree_walk import too_large as too_large  # noqa: PLC0414
from notewell.sources.trust import Trust
from notewell.text.note_files import ENTRY_FILES, decode
from notewell.types import Document, Notice, Skipped

_FIRST_BYTES = 65_536
_SOME = 1_000_000
_DEEP = 100  # folders in folders; a scan ends at more than that
_RULE_FILES = (GIT_RULES, OWN_RULES, WORKSPACE_FILE, VIRTUAL_ENVIRONMENT)


class FileSource:
    """`MEMORY.md`, `USER.md`, `memory/**/*.md` and the extra paths of a workspace, or all notes of
    its folder.

    `folder` is the mode of `Folder`; in mode `auto` the folder is read if there is neither
    `MEMORY.md` nor `memory/`. Without `trust`, whom a file belongs to does not matter.
    """

    name = "memory"

    def __init__(
        self,
        root: Path,
        *,
        extra_paths: Sequence[str] = (),
        max_file_bytes: int = 50_000_000,
        folder: str = "auto",
        folder_limit: int = 20_000,
        trust: Trust | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.trust = trust
        self.extra_paths = tuple(extra_paths)
        self.max_file_bytes = max_file_bytes
        self.folder, self.folder_limit = folder, folder_limit
        self.opener = opener_of(self.root, self.extra_paths)
        self.notices: tuple[Notice, ...] = ()
        self._spare = 0  # how many more files the last scan could have taken
        # documents that the last scan saw and that are not notes, by their kind
        self.unread: Counter[str] = Counter()

    @property
    def mode(self) -> str:
        """How the notes of the folder itself are read now; `never` if only memory and extra paths
        are.
        """
        return "never" if self.folder == "auto" and has_memory(str(self.root)) else self.folder

    def rules(self, mode: str) -> Folder:
        """The rules of a new walk over the folder."""
        return Folder(str(self.root), self.opener, mode=mode, most=self.folder_limit)

    def scan(self, *, deadline: float | None = None) -> Scanned:
        return self.scan_changes({}, deadline=deadline)

    def scan_changes(self, known: Known, *, deadline: float | None = None) -> Scanned:
        walk = TreeWalk(self, deadline, known=known)
        walk.everything()
        self.notices = notices_of(walk.odd, str(self.root))
        self._spare = _SOME
        if (folder := walk.folder) is not None:
            self.unread, self._spare = folder.unread, folder.spare
            hint = "run it in a smaller folder, list what to leave out in .notewellignore, "
            hint += "or raise folder_limit (notewell config shows where it is set)"
            self.notices += (Notice("folder_cut", folder.cut, hint),) if folder.cut else ()
        return walk.scanned()

    def scan_some(self, locations: Collection[str]) -> Scanned | None:
        """The notes at these locations; None where the rules for others, or what is told of them,
        may have changed.
        """
        self._spare -= len(locations)
        if self._spare < 0 or os.path.lexists(os.path.join(self.root, VIRTUAL_ENVIRONMENT)):
            return None
        walk = TreeWalk(self, None)
        gone: set[str] = set()
        for location in sorted(locations):
            if self._concerns_others(location):
                return None
            path = path_of(location, self.root)
            if os.path.lexists(location) and not walk.refuses(location):
                walk.one(location)
            if path not in walk.documents:
                gone.add(path)
        return replace(walk.scanned(), gone=gone)

    def _concerns_others(self, location: str) -> bool:
        """Whether a change at a location may be one for other files: by rules, settings, links,
        folders or a twin.
        """
        name = os.path.basename(location).casefold()
        inside = os.path.relpath(location, self.root)
        if (
            not is_below(location, str(self.root))
            or not inside.isascii()
            or inside.count(os.sep) > _DEEP
        ):
            return True  # a name in two Unicode forms is one path
        if name in _RULE_FILES or os.path.islink(location) or os.path.isdir(location):
            return True
        if inside.casefold() in ENTRY_FILES and not os.path.isdir(
            os.path.join(self.root, "memory")
        ):
            return True  # whether there is one may decide how the folder is read
        return self.mode != "never" and (
            is_manifest(name) or os.path.splitext(name)[1] in DOCUMENTS
        )

    def any(self) -> bool:
        """Whether there is at least one note; stops at the first."""
        walk = TreeWalk(self, None, first=True)
        walk.everything()
        return bool(walk.documents)

    def ignored(self, *, deadline: float) -> int:
        """How many notes there would be without ignore files, as far as time allows."""
        walk = TreeWalk(self, deadline, blind=True)
        walk.everything()
        return len(walk.documents)

    def beyond(self, *, deadline: float) -> tuple[int, Counter[str]]:
        """How many notes of the folder are not read, and how many documents of which kind, as far
        as time allows.
        """
        walk = TreeWalk(
            FileSource(self.root, folder="all", folder_limit=self.folder_limit), deadline
        )
        walk.everything()
        own = self.scan(deadline=deadline)
        # A note that the second look did not get to may well be read.
        others = len(walk.documents.keys() - {d.path for d in own.documents}) if own.complete else 0
        return others, walk.folder.unread if walk.folder else Counter()

    def document(self, path: str) -> Document | None:
        location = os.path.join(self.root, path)
        if not self.refuses(location) and (found := TreeWalk(self, None).one(location)):
            return found
        return next((d for d in self.scan().documents if d.path == path), None)

    def refuses(self, location: str) -> str:
        return TreeWalk(self, None).refuses(os.path.normpath(location))

    def detached(self) -> FileSource:
        return FileSource(
            self.root, extra_paths=self.extra_paths, max_file_bytes=self.max_file_bytes
        )

    def read(self, document: Document) -> str:
        """The text; of a file over the limit its first part, up to the end of a line."""
        most = self.max_file_bytes
        data = self.opener.read(document.location, most=_FIRST_BYTES, cut=True)
        if len(data) == _FIRST_BYTES:
            decode(data)  # a large binary file is not read to its end to learn that it is one
            data = self.opener.read(document.location, most=most + 1, cut=True)
        if len(data) > most:
            data = data[:most]
            data = data[: data.rfind(b"\n", -_FIRST_BYTES) + 1] or data
        return decode(data)


def opener_of(root: Path, paths: Sequence[str]) -> Opener:
    """The opener of a workspace; a path outside is read if the user names it, but not if a link
    inside leads to it.
    """
    named = (os.path.join(root, os.path.expanduser(fixed_part(path))) for path in paths)
    return inside(root, *(place for place in named if not is_below(place, str(root))))


def scan_paths(
    root: Path,
    paths: Sequence[str],
    *,
    kind: str,
    endings: tuple[str, ...],
    max_bytes: int,
    limit: str,
    deadline: float | None = None,
) -> Scanned:
    """The files with some endings in files, folders and globs, by the same rules as extra paths."""
    walk = TreeWalk(
        FileSource(root, extra_paths=paths, max_file_bytes=max_bytes), deadline, limit=limit
    )
    for pattern in paths:
        walk.further(pattern, kind=kind, endings=endings)
    odd = tuple(Skipped(one.place, one.reason) for one in walk.odd if one.place.startswith(kind))
    found = walk.scanned()
    return replace(found, skipped=(*found.skipped, *odd))
