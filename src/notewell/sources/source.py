"""What a source of documents offers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from notewell.opener import Opener
from notewell.store.values import Stored
from notewell.types import Document, Edge, Notice, Skipped, Turn

Known = Mapping[str, Stored]
"""What is stored of documents by path: one that is still as it was stored is not listed again."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a source found: the documents, what it skipped, and whether it saw everything.

    `same` are the paths of documents that are as they were known, which are not among the
    documents. `gone` are the paths of what was looked for by name and is not a document now.
    """

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()
    complete: bool = True
    same: Set[str] = frozenset()
    gone: Set[str] = frozenset()


class Source(Protocol):
    """Finds documents and reads them."""

    name: str

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """List what is there now, by stat alone; stop at `deadline` (monotonic seconds)."""

    def document(self, path: str) -> Document | None:
        """The one document with this path, without a scan where the source can avoid it; None if
        there is none.
        """

    def read(self, document: Document) -> str:
        """The text of a document; OSError when it is gone, ValueError with a reason when it is not
        text.
        """


class NoteFiles(Source, Protocol):
    """The source of notes that people and agents write."""

    root: Path
    opener: Opener
    notices: tuple[Notice, ...]
    max_file_bytes: int
    folder: str
    unread: Counter[str]

    @property
    def mode(self) -> str:
        """How the notes of the folder itself are read now; `never` if they are not."""

    def any(self) -> bool:
        """Whether there is at least one note."""

    def ignored(self, *, deadline: float) -> int:
        """How many notes there would be without ignore files."""

    def beyond(self, *, deadline: float) -> tuple[int, Counter[str]]:
        """How many notes of the folder are not read, and how many documents of which kind."""

    def refuses(self, location: str) -> str:
        """Why a file at a location would not be indexed, or nothing; asked before one is created
        there.
        """


@dataclass(frozen=True, slots=True)
class ReadMark:
    """How far a growing file was read, with hashes that show whether it is still the same file."""

    offset: int = 0
    line: int = 0
    head: str = ""
    near: str = ""
    ended: bool = True


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """The turns of a transcript after a mark, and the mark to continue from next time.

    With `again` the file is not the one that was read before, and this is all of it. A `foreign`
    conversation belongs to another project or to a subagent. `unread` is the reason why nothing
    could be read yet. What is `kept` comes from our own copy, because its program has deleted it.
    """

    turns: Sequence[Turn] = ()
    title: str = ""
    project: str = ""
    mark: ReadMark | None = None
    again: bool = False
    foreign: bool = False
    unread: str = ""
    bad_lines: tuple[int, ...] = ()
    kept: bool = False


@runtime_checkable
class Conversations(Source, Protocol):
    """A source whose documents grow by turns; each sync continues where the last one stopped."""

    def read_from(self, document: Document, mark: ReadMark | None) -> TranscriptPart:
        """The turns after a mark; all of them without one, or if the file is another one now."""

    def raw(self, document: Document) -> str:
        """The file of a document as it is."""

    def lines(self, document: Document, first: int, last: int | None) -> tuple[list[Turn], int]:
        """The turns on some lines of a document, and how many lines it has."""

    def keeps(self, document: Document) -> bool:
        """Whether what is new of a document can be added to what is kept of it; if not, all of it
        is read.
        """

    def keep(
        self, document: Document, title: str, project: str, turns: Sequence[Turn], *, whole: bool
    ) -> str:
        """Keeps what was read, or what is new of it; returns why that was not possible."""

    def copy_of(self, path: str) -> tuple[str, str] | None:
        """The file that keeps a document and its text; None if there is none."""


@runtime_checkable
class Watchable(Protocol):
    """A source whose documents may be outside the workspace, and which knows the folders to
    watch.
    """

    def trees(self) -> list[str]:
        """Paths and globs of the folders that hold documents, or will."""


@runtime_checkable
class Comparing(Protocol):
    """A source that can compare while it looks, which is faster than a list of everything."""

    def scan_changes(self, known: Known, *, deadline: float | None = None) -> Scanned:
        """The same as `scan`, with the paths of documents that are as they were stored in
        `same`.
        """


@runtime_checkable
class Narrowing(Protocol):
    """A source that can look at a few files alone."""

    def scan_some(self, locations: Collection[str]) -> Scanned | None:
        """The documents at these locations, all that changed since the last look; None if others
        may depend on them.
        """


@runtime_checkable
class Detachable(Protocol):
    """A source that reads documents by their location alone, so that another process can do it."""

    def detached(self) -> Source:
        """A source that reads the same, small enough to send."""


@runtime_checkable
class Linked(Protocol):
    """A source that knows how its documents are linked, such as a session that continues
    another.
    """

    def edges(self, document: Document) -> Sequence[Edge]:
        """The links of a document to others, as far as its own file shows them."""


@runtime_checkable
class Attaching(Protocol):
    """A source whose documents are files that a model may read in addition to their label."""

    def part(self, path: str, label: str) -> str | None:
        """What a model gets for a chunk: its label with the file attached; None if the file is
        missing.
        """
