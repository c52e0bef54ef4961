"""PDF, Word and HTML read in place: cited by lines of the text that is in them, with the page as a
heading.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from notewell.errors import NoteError
from notewell.sources.files import opener_of, scan_paths
from notewell.sources.imports.formats import PAGED, format_of_file
from notewell.sources.imports.items import Item, line_of
from notewell.sources.imports.rendering import note_of
from notewell.sources.source import Scanned
from notewell.text.note_files import stem_of
from notewell.types import Document

ENDINGS = tuple(ending for kind in PAGED for ending in kind.endings)
_Mark = tuple[str, int, int]


class PagedSource:
    """Documents in the paths that the user names."""

    name = "documents"

    def __init__(self, root: Path, *, paths: Sequence[str], max_bytes: int = 50_000_000) -> None:
        self.root = Path(os.path.realpath(root))
        self.paths = tuple(paths)
        self.max_bytes = max_bytes
        self.opener = opener_of(self.root, self.paths)
        self._last: tuple[_Mark, str] | None = None

    def scan(self, *, deadline: float | None = None) -> Scanned:
        return scan_paths(
            self.root,
            self.paths,
            kind=self.name,
            endings=ENDINGS,
            max_bytes=self.max_bytes,
            limit="documents.max_bytes",
            deadline=deadline,
        )

    def document(self, path: str) -> Document | None:
        if not path.casefold().endswith(ENDINGS):
            return None
        return next((d for d in self.scan().documents if d.path == path), None)

    def read(self, document: Document) -> str:
        """The text as Markdown, by pages where the file has them; whoever wrote it, it is not taken
        for the owner's.
        """
        mark = (document.location, document.size, document.mtime_ns)
        if self._last is None or self._last[0] != mark:
            self._last = (mark, note_of(self._item(document)))
        return self._last[1]

    def _item(self, document: Document) -> Item:
        kind = format_of_file(document.path)
        data = self.opener.read(document.location, most=self.max_bytes)
        try:
            item = kind.read(data, document.path) if kind and data else None
        except (
            NoteError
        ) as error:  # the library is missing: what it read before stays, and it is tried again
            raise OSError(f"{error} ({error.hint})") from error
        if item is None:
            raise ValueError("it has no text")
        title = line_of(stem_of(document.path).replace("_", " ")) or document.path
        return replace(item, title=item.title or title)
