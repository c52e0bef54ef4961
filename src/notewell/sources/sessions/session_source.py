"""Conversations of agents, where each program keeps them; each sync continues where the last one
stopped.
"""

from __future__ import annotations

import errno
import glob
import io
import itertools
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from stat import S_ISREG
from urllib.parse import quote

from notewell.opener import ANYWHERE, OUTSIDE, Opener, inside, is_in
from notewell.sources.files import path_of, too_large
from notewell.sources.sessions import growing_file
from notewell.sources.sessions.foreign_db import WRITTEN, ForeignDb
from notewell.sources.sessions.keeper import Files, Record, Table, Talk, Where, real
from notewell.sources.sessions.kept import Kept, talk_name, talk_of
from notewell.sources.sessions.programs import FILES, TABLES
from notewell.sources.sessions.table_reading import deleted_talks, own_talks, read_talk
from notewell.sources.source import ReadMark, Scanned, TranscriptPart
from notewell.text.link_syntax import lineage, link_key
from notewell.text.transcript import TranscriptReader, readable
from notewell.types import Document, Edge, Skipped, Turn

_HEAD_BYTES = 1 << 20
_HELPER = "agent-"
# OpenClaw keeps the sessions that /new and /reset end; a conversation that its owner deleted is not
# read.
_PUT_ASIDE = re.compile(r"\.jsonl\.reset\.[\w.:+-]+\Z")
_LEFT_OUT = re.compile(
    r"\.(?:checkpoint|bak|lock|tmp)\b|\.jsonl\.deleted\.|\.trajectory\.", re.IGNORECASE
)
_DELETED = ".jsonl.deleted."
_DETOUR = re.compile(r"//|/\.{1,2}(?:/|\Z)|/\Z")
_PACKED = "some of it is packed: pip install notewell[zstd]"


@dataclass(eq=False)
class SessionSource:
    """Conversations of the programs in the table `programs`, or of the files in `paths` instead."""

    name = "sessions"

    root: Path
    _: KW_ONLY
    paths: Sequence[str] = ()
    all_projects: bool = False
    max_file_bytes: int = 500_000_000
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    kept: Kept | None = None
    keeping: bool = True

    def __post_init__(self) -> None:
        self.root = Path(os.path.realpath(self.root))
        self.where = Where(str(self.root), self.env, self.all_projects)
        self._homes = [
            (os.path.realpath(home), files) for files in FILES for home in files.homes(self.where)
        ]
        self._own = inside(self.root, *(home for home, _ in self._homes))
        self._talks: dict[str, Talk] = {}
        self._tables: list[tuple[Table, str]] | None = None
        self._head: tuple[str, list[Record]] = ("", [])
        self._open_db: ForeignDb | None = None
        # names of conversations that the user deleted in their program
        self._deleted: set[str] = set()

    def scan(self, *, deadline: float | None = None) -> Scanned:
        documents: dict[str, Document] = {}
        skipped: list[Skipped] = []
        complete = True
        for location in self._locations(skipped):
            if deadline is not None and time.monotonic() > deadline:
                complete = False
                break
            path = self._path(location)
            if path not in documents and (found := self._document(path, location, skipped)):
                documents[path] = found
        self._tables = None
        for table, file in self._databases() if complete else ():
            complete = self._listed(table, file, documents, skipped) and complete
        if complete and self.kept is not None and self.keeping:
            documents |= {one.path: one for one in self.kept.gone(documents, self._deleted)}
        return Scanned(
            tuple(sorted(documents.values(), key=lambda d: d.path)), tuple(skipped), complete
        )

    def document(self, path: str) -> Document | None:
        location = next((place for place in self._locations([]) if self._path(place) == path), None)
        if location:
            return self._document(path, location, [])
        documents: dict[str, Document] = {}
        for table, file in self._databases():
            if path.startswith(f"{self._path(file)}/"):
                self._listed(table, file, documents, [])
        if path not in documents and self.kept is not None and self.keeping:
            return self.kept.document(path)
        return documents.get(path)

    def _path(self, location: str) -> str:
        """The same as `path_of`, at once for nearly every file that is not in the workspace."""
        outside = location.startswith("/") and not location.startswith(self.where.root)
        return (
            location
            if outside and location.isascii() and not _DETOUR.search(location)
            else path_of(location, self.root)
        )

    def _document(self, path: str, location: str, skipped: list[Skipped]) -> Document | None:
        try:
            if self._opener(location).leaves(location):
                raise OSError(errno.ELOOP, OUTSIDE)
            stat = os.stat(location)
        except OSError as error:
            skipped.append(Skipped(path, f"cannot be read: {error.strerror}", self.name))
            return None
        if not S_ISREG(stat.st_mode):
            return None
        if stat.st_size > self.max_file_bytes:
            skipped.append(
                Skipped(path, too_large(self.max_file_bytes, "sessions.max_file_bytes"), self.name)
            )
            return None
        return Document(path, self.name, stat.st_size, stat.st_mtime_ns, location)

    def _locations(self, skipped: list[Skipped]) -> Iterator[str]:
        if not self.paths:
            for pattern in (pattern for files in FILES for pattern in files.globs(self.where)):
                there = sorted(glob.iglob(pattern, recursive=True))
                self._deleted.update(talk_name(p) for p in there if _DELETED in p)
                yield from filter(is_transcript, there)
        for named in self.paths:
            path = os.path.join(self.root, os.path.expanduser(named))
            if not glob.has_magic(named) and not os.path.exists(path):
                skipped.append(Skipped(named, "sessions.paths: no such file or folder", self.name))
            pattern = os.path.join(glob.escape(path), "**", "*") if os.path.isdir(path) else path
            yield from sorted(p for p in glob.iglob(pattern, recursive=True) if is_transcript(p))

    def _databases(self) -> list[tuple[Table, str]]:
        """The databases that there were at the last scan."""
        if self._tables is None:
            patterns = [
                (table, pattern)
                for table in TABLES
                if not self.paths
                for pattern in table.files(self.where)
            ]
            found = (
                (table, file) for table, pattern in patterns for file in sorted(glob.iglob(pattern))
            )
            self._tables = [(table, file) for table, file in found if os.path.isfile(file)]
        return self._tables

    def _listed(
        self, table: Table, file: str, documents: dict[str, Document], skipped: list[Skipped]
    ) -> bool:
        """Adds the conversations of a database; False if that must be done again, because it is
        being written to.
        """
        try:
            talks = own_talks(table, file, self.where)
            self._deleted.update(quote(id_, safe="") for id_ in deleted_talks(table, file))
        except OSError as error:
            if str(error) == WRITTEN:
                return False
            skipped.append(Skipped(self._path(file), str(error), self.name))
            return True
        for talk in talks:
            path = self._path(os.path.join(file, quote(talk.id, safe="")))
            size = talk.messages if not talk.lacking else -talk.messages
            location = f"{file}{os.sep}{talk.id}"
            self._talks[location] = talk
            documents[path] = Document(path, self.name, size, talk.changed_ms * 1_000_000, location)
        if any(talk.lacking for talk in talks):
            skipped.append(Skipped(self._path(file), _PACKED, self.name))
        return True

    def trees(self) -> list[str]:
        """Paths and globs of present and future transcripts: `paths`, or the folders of programs
        that are installed.
        """
        if self.paths:
            return [os.path.join(self.root, os.path.expanduser(named)) for named in self.paths]
        used = [
            files for files in FILES if any(os.path.isdir(home) for home in files.homes(self.where))
        ]
        patterns = [pattern for files in used for pattern in files.globs(self.where)]
        return [*patterns, *(file + end for _, file in self._databases() for end in ("", "-wal"))]

    def _opener(self, location: str) -> Opener:
        place = (
            location
            if location.startswith("/") and not _DETOUR.search(location)
            else os.path.abspath(location)
        )
        return self._own if is_in(place, self.where.root) else ANYWHERE

    def _open(self, document: Document) -> io.FileIO:
        """A transcript; one in the workspace is not followed out of it, others are where the user
        or a program says.
        """
        return self._opener(document.location).file(document.location)

    def _bytes(self, document: Document) -> bytes:
        return self._opener(document.location).read(document.location, most=self.max_file_bytes)

    def _is_kept(self, document: Document) -> bool:
        return self.kept is not None and is_in(document.location, str(self.kept.folder))

    def _table(self, document: Document) -> tuple[Table, str, str] | None:
        """The database that holds a conversation, and its id there."""
        for table, file in self._databases():
            if is_in(document.location, file) and not os.path.isdir(file):
                return table, file, document.location[len(file) + 1 :]
        return None

    def raw(self, document: Document) -> str:
        if self.kept is not None and self._is_kept(document):
            return self.kept.text(document)
        if found := self._table(document):
            table, file, id_ = found
            records = [
                json.dumps(record, ensure_ascii=False, default=repr)
                for _, record in table.records(self._db(file), id_, 1)
            ]
            return "\n".join((*records, ""))
        return self._bytes(document).decode("utf-8", "replace")

    def read(self, document: Document) -> str:
        return readable(self.lines(document, 1, None)[0])

    def edges(self, document: Document) -> list[Edge]:
        """The `derives_from` edges to the sessions that a transcript continues, from the head of
        its file.
        """
        if self._is_kept(document):
            return []
        try:
            if self._head[0] == document.path:  # it was read a moment ago
                records = self._head[1]
            elif found := self._table(document):
                table, file, id_ = found
                records = [
                    one
                    for _, one in itertools.islice(
                        table.records(self._db(file), id_, 1), growing_file.HEAD_RECORDS
                    )
                ]
            else:
                with self._open(document) as file_:
                    head = growing_file.read_at(file_, 0, _HEAD_BYTES)
                lines = head.splitlines()[: growing_file.HEAD_RECORDS]
                records = [
                    one for line in lines if isinstance(one := growing_file.parsed(line), dict)
                ]
        except OSError:
            return []
        return lineage(document.path, records, own=link_key(document.path))

    def read_from(self, document: Document, mark: ReadMark | None) -> TranscriptPart:
        if self.kept is not None and self._is_kept(document):
            if mark is not None and mark.offset:
                return TranscriptPart(mark=mark, kept=True)  # the index has all that is kept
            talk = self.kept.read(document)
            return TranscriptPart(talk.turns, talk.title, talk.project, again=True, kept=True)
        if found := self._table(document):
            return self._rows(document, *found, mark)
        if document.location.endswith(".json"):
            return self._json(document)
        with self._open(document) as file:
            again = mark is not None and not growing_file.same(file, mark)
            walk = growing_file.Pass(file, ReadMark() if mark is None or again else mark)
            if walk.reader.rewritten and not walk.complete:
                again, walk = True, growing_file.Pass(file, ReadMark())
            reader = walk.reader
            stopped = None if reader.rewritten else walk.mark()
        self._head = (document.path, walk.head) if walk.complete else ("", [])
        foreign = walk.complete and self._is_foreign(document, reader)
        turns, bad = tuple(reader.turns), tuple(walk.bad)
        return TranscriptPart(
            turns, reader.title, reader.project, stopped, again, foreign, bad_lines=bad
        )

    def _rows(
        self, document: Document, table: Table, file: str, id_: str, mark: ReadMark | None
    ) -> TranscriptPart:
        talk = self._talks.get(document.location) or Talk(id_, None, 0, lacking=document.size < 0)
        try:
            return read_talk(self._db(file), table, talk, self.where, mark)
        except OSError as error:
            if str(error) == WRITTEN:
                return TranscriptPart(unread=WRITTEN)
            raise

    def _db(self, file: str) -> ForeignDb:
        """The database in a file as it is now; many conversations in a row are read from the one
        that is open.
        """
        if self._open_db is None or self._open_db.file != file or self._open_db.is_old():
            self._open_db = ForeignDb(file)
        return self._open_db

    def _json(self, document: Document) -> TranscriptPart:
        """All turns of a file that is one JSON value."""
        data = self._bytes(document)
        reader = TranscriptReader()
        try:
            text = data.decode("utf-8-sig")
            reader.feed_json(json.loads(text), text)
        except (ValueError, RecursionError):
            return TranscriptPart(unread="not complete JSON yet; it is read again when it changes")
        files = self._files(document)
        if files is not None and files.about is not None:
            folder, title = files.about(document.location)
            named = TranscriptReader(title=reader.title or " ".join(title.split()))
            named.feed({"type": "session", "cwd": folder}, 0)
            named.turns, named.subagent = reader.turns, reader.subagent
            reader = named
        foreign = self._is_foreign(document, reader)
        return TranscriptPart(
            tuple(reader.turns), reader.title, reader.project, again=True, foreign=foreign
        )

    def _files(self, document: Document) -> Files | None:
        """The program whose file this is."""
        folder, name = os.path.split(document.location)
        location = os.path.join(real(folder), name)
        return next((files for home, files in self._homes if is_in(location, home)), None)

    def _is_foreign(self, document: Document, reader: TranscriptReader) -> bool:
        """Whether a file is of a subagent, or of another folder or an unknown one, and was not
        asked for.
        """
        if self.paths or self.all_projects or reader.subagent:
            return reader.subagent
        files = self._files(document)
        # A folder for this workspace alone has its conversations only.
        return (
            files is not None
            and not files.by_project
            and not files.accepts(self.where, reader.folder)
        )

    def lines(self, document: Document, first: int, last: int | None) -> tuple[list[Turn], int]:
        """The turns on some lines, and how many lines there are; of a JSONL file only those lines
        are parsed.
        """
        if document.location.endswith(".json"):
            turns = self._json(document).turns
            count = max(
                self._bytes(document).rstrip(b"\n").count(b"\n") + 1, *(t.line for t in turns), 1
            )
            return [t for t in turns if first <= t.line <= (last or t.line)], count
        if self._is_kept(document) or self._table(document):
            part = self.read_from(document, None)
            count = max((t.line for t in part.turns), default=1)
            return [t for t in part.turns if first <= t.line <= (last or t.line)], count
        reader = TranscriptReader()
        count = 0
        with self._open(document) as file:
            for _, line in growing_file.lines(file, 0):
                count += 1
                if first <= count <= (last or count):
                    reader.feed(growing_file.parsed(line), count)
        return reader.turns, count

    def keeps(self, document: Document) -> bool:
        """Whether what is new of a conversation can be added to what is kept of it, or nothing is
        kept.
        """
        return (
            self.kept is None
            or self._is_kept(document)
            or self.kept.has(document.path)
            or not self.keeping
        )

    def keep(
        self, document: Document, title: str, project: str, turns: Sequence[Turn], *, whole: bool
    ) -> str:
        """Keeps what was read, for the day when its program deletes it; returns why that was not
        possible.
        """
        if self.kept is None or (not self.keeping and not self.kept.has(document.path)):
            return ""
        if not whole and (self._is_kept(document) or not turns):
            return ""
        try:
            self.kept.keep(document, talk_of(document, title, project, turns), whole=whole)
        except (OSError, ValueError) as error:
            return f"is not kept: {getattr(error, 'strerror', None) or error}"
        return ""

    def copy_of(self, path: str) -> tuple[str, str] | None:
        """The file that keeps a conversation, and its text; None if there is none."""
        document = self.kept.document(path) if self.kept is not None else None
        if self.kept is None or document is None:
            return None
        return document.location, self.kept.text(document)


def is_transcript(location: str) -> bool:
    """Whether a file is a conversation, by its name."""
    name = os.path.basename(location)
    if (
        name.startswith((".", _HELPER))
        or _LEFT_OUT.search(name)
        or f"{os.sep}subagents{os.sep}" in location
    ):
        return False
    return (name.endswith((".jsonl", ".json")) and name != "sessions.json") or _PUT_ASIDE.search(
        name
    ) is not None
