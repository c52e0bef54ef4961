"""What a user wants forgotten, as pieces of documents."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from notewell.errors import NotFoundError
from notewell.index.walk import Walk
from notewell.store.values import Sought
from notewell.text.forgotten import units
from notewell.text.note_edit import keep_ends
from notewell.text.words import index_terms, query_terms
from notewell.types import Chunk, Filters

NOTE_SOURCES = ("memory", "extra")


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines to forget; `whole` when they are the complete document."""

    path: str
    source: str
    start_line: int
    end_line: int
    text: str
    id: str = ""
    whole: bool = False

    @property
    def citation(self) -> str:
        """Where a person finds it."""
        if self.whole:
            return self.path
        last = f"-L{self.end_line}" if self.end_line > self.start_line else ""
        return f"{self.path}#L{self.start_line}{last}"


class Selection:
    """Turns what a user names into pieces, by the present index."""

    def __init__(self, walk: Walk) -> None:
        self.store, self.walk = walk.store, walk

    def chunk(self, chunk: Chunk) -> list[Piece]:
        """A passage by its id."""
        return [_piece(chunk)]

    def document(self, path: str) -> list[Piece]:
        """All of a document."""
        chunks = self.store.documents.chunks_of(path)
        known = self.store.documents.stored().get(path)
        if known is None:
            raise NotFoundError(f"{path} is not indexed", hint="notewell index reports each file")
        text = self.walk.text_of(path) or "\n\n".join(c.text for c in chunks)
        last = max(len(keep_ends(text)), *(c.end_line for c in chunks)) if chunks else 1
        return [Piece(path, known.source, 1, last, text, whole=True)]

    def lines(self, path: str, first: int, last: int, text: str) -> list[Piece]:
        """Lines of a note, as they are on disk; of a transcript the turns on them."""
        known = self.store.documents.stored().get(path)
        source = known.source if known else "memory"
        if source not in NOTE_SOURCES:
            text = self.walk.said(path, first, last) or text
        return [Piece(path, source, first, last, text)]

    def saying(self, words: str) -> list[Piece]:
        """Every paragraph or list item that has all of the words, or the passage where no part of
        it has them all.
        """
        terms = query_terms(words)
        wanted = set(terms.words) | set(terms.prefixes)
        if not wanted:
            return []
        sought = Sought(
            tuple(terms.words), prefixes=tuple(terms.prefixes), every=True, in_head=False
        )
        count = self.store.counts()["chunks"]
        rows = [s.row for s in self.store.keywords.lexical(sought, max(1, count), Filters())]
        found: dict[tuple[str, int, int, str], Piece] = {}
        for chunk in sorted(
            self.store.documents.chunks(rows).values(), key=lambda c: (c.path, c.start_line)
        ):
            spoken = chunk.source not in NOTE_SOURCES
            exact = spoken or chunk.text.count("\n") == chunk.end_line - chunk.start_line
            all_lines = (1, chunk.end_line - chunk.start_line + 1)
            parts = [
                (a, b, unit)
                for a, b, unit in units(chunk.text)
                if exact and wanted <= _all_terms(unit)
            ]
            for first, last, unit in parts or [(*all_lines, chunk.text)]:
                # A turn is one line of its file, however many lines its text has.
                a, b = all_lines if spoken else (first, last)
                a, b = chunk.start_line + a - 1, chunk.start_line + b - 1
                one = Piece(
                    chunk.path, chunk.source, a, b, unit.rstrip("\n"), "" if parts else chunk.id
                )
                found.setdefault(
                    (one.path, one.start_line, one.end_line, unit if spoken else ""), one
                )
        return list(found.values())

    def session(self, name: str) -> list[Piece]:
        """A transcript, by its path, its name or the beginning of it."""
        sessions = [
            p for p, s in self.store.documents.stored().items() if s.source not in NOTE_SOURCES
        ]
        found = [
            p for p in sessions if name in (p, Path(p).stem, Path(p).name, Path(p).parent.name)
        ]
        if not found and len(name) >= 4:
            found = [
                p
                for p in sessions
                if Path(p).stem.startswith(name) or Path(p).parent.name.startswith(name)
            ]
        if len(found) != 1:
            which = (
                f"{len(found)} sessions begin with {name!r}"
                if found
                else f"no session is called {name!r}"
            )
            raise NotFoundError(which, hint="give its complete name, as notewell search prints it")
        return self.document(found[0])

    def before(self, day: dt.date) -> list[Piece]:
        """Documents and turns that are older than a day; those without a date stay."""
        found: list[Piece] = []
        for path in sorted(self.store.documents.stored()):
            chunks = self.store.documents.chunks_of(path)
            old = [c for c in chunks if c.day is not None and c.day < day]
            found += self.document(path) if old and len(old) == len(chunks) else map(_piece, old)
        return found


def _piece(chunk: Chunk) -> Piece:
    return Piece(chunk.path, chunk.source, chunk.start_line, chunk.end_line, chunk.text, chunk.id)


def _all_terms(text: str) -> set[str]:
    body, _ = index_terms(text)
    return set(body.split())
