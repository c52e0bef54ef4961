"""The one resolver of references: what a text means in a workspace, as a document, its lines or one
of its chunks.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from notewell.errors import NotFoundError
from notewell.store.ports import DocumentStore
from notewell.text.link_syntax import candidates_for, link_key, slug
from notewell.text.markdown import parse
from notewell.text.note_files import stem_of
from notewell.text.reference_syntax import (
    ENDINGS,
    ID,
    ID_LENGTH,
    LONGEST,
    NOTES,
    Reference,
    lines_of,
    parse_reference,
)
from notewell.types import BlockKind, Chunk

FORMS = "give an id, a path, path:from-to, path#heading or the name of a note"
_MOST_FOLDERS = 64
_MOST_COMPARED = 20_000
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Target:
    """What a reference means: a document, the part of it that is asked for, and the chunk where
    that is an id.
    """

    path: str
    anchor: str = ""
    chunk: Chunk | None = None


class References:
    """Finds what references mean in a workspace; `folder` in it is where paths may also start from.

    `unread` says why a file with a path is not read.
    """

    def __init__(
        self,
        documents: DocumentStore,
        root: Path,
        *,
        folder: str = "",
        unread: Callable[[str], str] | None = None,
    ) -> None:
        self.documents = documents
        self.root = root
        self.folder = folder
        self._unread = unread

    def find(self, written: str) -> Target:
        """What a reference means: a path, a whole id, a note's name, or the beginning of an id;
        else NotFoundError.
        """
        reference = parse_reference(written)
        if found := self._find(reference):
            return found
        raise self._missing(reference)

    def superseded(self, written: str) -> list[tuple[str, str]]:
        """What a note supersedes: paths or ids, each with the part of the path; of a new name, all
        it may become.
        """
        reference = parse_reference(written)
        try:
            found = self._find(reference)
        except NotFoundError:
            return []
        if found is None:
            end = reference.usual
            return [
                (path, end.anchor) for path in dict.fromkeys((end.name, *self._paths(end.name)))
            ]
        return [(found.chunk.id, "") if found.chunk else (found.path, found.anchor)]

    def _find(self, reference: Reference) -> Target | None:
        found = self.on_disk(reference, self._is_indexed) or self._by_id(reference, whole=True)
        if found:
            return found
        for end in reference.readings:
            paths = self._named(end.name)
            if len(paths) > 1:
                raise _several(reference.text, paths, "notes", "give the path of one of them")
            if paths:
                return Target(paths[0], end.anchor)
        return self._by_id(reference, whole=False)

    def on_disk(self, reference: Reference, exists: Callable[[str], bool]) -> Target | None:
        """The first path that a reference may mean and that exists."""
        for end in reference.readings:
            for path in self._paths(end.name):
                if exists(path):
                    return Target(path, end.anchor)
        return None

    def as_indexed(self, target: Target) -> Target:
        """The same with the path as the index has it, where the file system takes a name in letters
        of any case.
        """
        named = self.documents.paths_named(link_key(target.path))
        if target.path not in named:
            for path in (path for path in named if path.casefold() == target.path.casefold()):
                with contextlib.suppress(OSError):
                    if os.path.samefile(self.root / path, self.root / target.path):
                        return replace(target, path=path)
        return target

    def _is_file(self, path: str) -> bool:
        named = path.casefold().endswith(ENDINGS) and not os.path.isabs(path)
        return named and os.path.isfile(os.path.join(self.root, path))

    def _is_indexed(self, path: str) -> bool:
        return path in self.documents.paths_named(link_key(path))

    def _paths(self, name: str) -> list[str]:
        """Paths that a name may mean: from the root, then from the folder; the other way round
        after `./` or `../`.
        """
        if name.endswith("/"):
            return []
        starts = ("", f"{self.folder}/" if self.folder else "")
        names = [name, *inside_root(self.root, name)]
        return [
            path
            for one in names
            for start in (starts[::-1] if name.startswith(("./", "../")) else starts)
            for path in candidates_for(one, start)
        ]

    def _named(self, name: str) -> list[str]:
        """The notes of a name; a path that leads nowhere and the name of another kind of file are
        not guessed at.
        """
        explicit = name.startswith((".", "/")) or name.endswith("/")
        found = [] if explicit else namesakes(name, self.documents.paths_named(link_key(name)))
        if name.casefold().endswith(ENDINGS):
            found = [path for path in found if path.casefold().endswith(name.casefold())]
        return found

    def _by_id(self, reference: Reference, *, whole: bool) -> Target | None:
        for end in reference.readings:
            if end.anchor or not ID.match(end.name) or (whole and len(end.name) < ID_LENGTH):
                continue
            chunks = self.documents.chunks_by_id(end.name)
            if len(chunks) > 1:
                raise _several(end.name, [c.id for c in chunks], "passages", "give more of the id")
            if chunks:
                return Target(chunks[0].path, chunk=chunks[0])
        return None

    def _missing(self, reference: Reference) -> NotFoundError:
        if not reference.readings:
            what = f"is longer than {LONGEST:,} characters" if reference.text else "is empty"
            return NotFoundError(f"the reference {what}", hint=FORMS)
        there = self.on_disk(reference, self._is_file)
        if there and self._unread and (reason := self._unread(there.path)):
            hint = "notewell sources lists what is read, and adds more"
            return NotFoundError(f"{_short(there.path)} is not read: {reason}", hint=hint)
        name = reference.usual.name
        near = nearest(name, islice(self.documents.stored(), _MOST_COMPARED))
        hint = f"did you mean {' or '.join(near)}?" if near else FORMS
        if os.path.isdir(os.path.join(self.root, self.folder, name)) and not near:
            hint = "it is a folder: name a note in it"
        return NotFoundError(f"no note or passage is called {_short(reference.text)!r}", hint=hint)


def inside_root(root: Path, name: str) -> list[str]:
    """An absolute path as seen from the root, also where it gets there through a symbolic link;
    nothing for others.
    """
    if not os.path.isabs(name):
        return []
    parts = Path(os.path.normpath(name)).parts
    for count in range(min(len(parts) - 1, _MOST_FOLDERS), 0, -1):
        above = Path(*parts[:count])
        if above == root or os.path.realpath(above) == str(root):
            return ["/".join(parts[count:])]
    return []


def namesakes(name: str, paths: Sequence[str]) -> list[str]:
    """The paths, all of which have the key of a name, that end as it is written; of a bare name,
    else all of them.
    """
    written = name.strip("./").casefold()
    ends = (f"/{written}", *(f"/{written}{ending}" for ending in NOTES))
    near = [path for path in paths if f"/{path}".casefold().endswith(ends)]
    return near or ([] if "/" in written else list(paths))


def nearest(name: str, paths: Iterable[str]) -> list[str]:
    """At most two paths that somebody who wrote a name may have meant: those whose last part is
    most like its.
    """
    import difflib  # noqa: PLC0415 - only errors need it

    if len(name) > 200:
        return []
    known: dict[str, str] = {}
    for path in paths:
        known.setdefault(stem_of(path).casefold(), path)
    return [
        known[one]
        for one in difflib.get_close_matches(stem_of(name).casefold(), known, n=2, cutoff=0.7)
    ]


def _several(text: str, candidates: Sequence[str], what: str, hint: str) -> NotFoundError:
    names = ", ".join(candidates[:_LISTED]) + (", …" if len(candidates) > _LISTED else "")
    return NotFoundError(f"{_short(text)!r} may mean {len(candidates)} {what}: {names}", hint=hint)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


def lines_in(path: str, anchor: str, lines: Sequence[str]) -> tuple[int, int]:
    """The lines of a document that a part of it means: all, a range, a section or the block of a
    mark.
    """
    if not anchor:
        return 1, max(1, len(lines))
    span = None if anchor.startswith("L") and lines_of(anchor) else _section(anchor, lines)
    if span is None and (numbers := lines_of(anchor)):
        return checked_lines(path, numbers, len(lines))
    if span is None:
        titles = {
            slug(b.heading[-1]): b.heading[-1] for b in parse("\n".join(lines)).blocks if b.heading
        }
        near = [titles[one] for one in nearest(slug(anchor), titles)]
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else f"its headings: {', '.join(titles.values()) or 'none'}"
        )
        raise NotFoundError(f"{path} has no heading {_short(anchor)!r}", hint=hint)
    return span


def checked_lines(path: str, lines: tuple[int, int], count: int) -> tuple[int, int]:
    """A range of lines that begins inside a document, cut at its end."""
    first, last = lines
    if not 1 <= first <= min(last, count):
        asked = f"{first}" if first == last else f"{first}-{last}"
        raise NotFoundError(
            f"{path} has {count} lines, not {asked}", hint="lines count from 1, the first one first"
        )
    return first, min(last, count)


def _section(anchor: str, lines: Sequence[str]) -> tuple[int, int] | None:
    """The lines under a heading, with it and with the sections inside it; or the block that has a
    mark.
    """
    blocks = parse("\n".join(lines)).blocks
    if anchor.startswith("^"):
        found = (
            b
            for b in blocks
            for line in lines[b.start_line - 1 : b.end_line]
            if _marked(anchor, line)
        )
        return next(((b.start_line, b.end_line) for b in found), None)
    headings = [b for b in blocks if b.kind is BlockKind.HEADING]
    for name, skip in _numbered(slug(anchor)):
        same = [b for b in headings if slug(b.heading[-1]) == name]
        if skip < len(same):
            own = same[skip]
            below = (
                b.start_line
                for b in headings
                if b.start_line > own.start_line and len(b.heading) <= len(own.heading)
            )
            end = next(below, len(lines) + 1)
            return own.start_line, max(
                b.end_line for b in blocks if own.start_line <= b.start_line < end
            )
    return None


def _numbered(name: str) -> list[tuple[str, int]]:
    """A slug as it is, and as the one of the second heading with the same words, the third and so
    on.
    """
    match = re.fullmatch(r"(.+)-(\d{1,3})", name)
    return [(name, 0), (match[1], int(match[2]))] if match else [(name, 0)]


def _marked(mark: str, text: str) -> bool:
    return re.search(re.escape(mark) + r"(?:\s|\Z)", text) is not None


def chunk_at(chunks: Sequence[Chunk], anchor: str) -> Chunk | None:
    """The chunk that lines, a heading or the mark of a block mean; None when it is gone."""
    if anchor.startswith("^"):
        return next((c for c in chunks if _marked(anchor, c.text)), None)
    lines = lines_of(anchor)
    if lines and anchor.startswith("L"):
        return chunk_on(chunks, *lines)
    for name, skip in _numbered(slug(anchor)):
        starts = _section_starts(
            [c for c in chunks if any(slug(title) == name for title in c.heading)], name
        )
        if name and skip < len(starts):
            return starts[skip]
    return chunk_on(chunks, *lines) if lines else None


def _section_starts(under: Sequence[Chunk], name: str) -> list[Chunk]:
    """The first chunk of each section of a name; those right under the heading count before those
    further below.
    """
    own = [c for c in under if slug(c.heading[-1]) == name] or under
    # More than a blank line between two chunks means that another heading is there.
    return [
        c
        for before, c in zip((None, *own), own, strict=False)
        if before is None or before.heading != c.heading or c.start_line > before.end_line + 2
    ]


def chunk_on(chunks: Sequence[Chunk], first: int, last: int) -> Chunk | None:
    """The chunk on some lines, or the next one: a link in a heading belongs to the text under
    it.
    """
    touching = [c for c in chunks if c.start_line <= last and c.end_line >= first]
    if touching:
        return max(touching, key=lambda c: min(c.end_line, last) - max(c.start_line, first))
    return next((c for c in chunks if c.end_line >= first), None)
