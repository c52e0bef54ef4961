"""Importing: what people bring becomes notes with front matter. A second import adds what is new
and doubles nothing.

Each folder of imported notes has an `imported.jsonl`, which remembers what was written: so a note
that a person edits is not overwritten, one that they delete or move stays away, and an older export
changes nothing. The list is a help: without it a note is known by the end of its name, and a part
of it by its words.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from notewell.errors import NoteError, NotewellError
from notewell.notes.editor import Notes
from notewell.opener import MOST_KEPT_BYTES, Opener, is_in
from notewell.sources.imports.bundle import Bundle
from notewell.sources.imports.formats import Format
from notewell.sources.imports.items import Item, digest
from notewell.sources.imports.rendering import extended, key_of, note_of, stem_of_item
from notewell.text.note_files import decode_exactly
from notewell.types import Progress, Skipped, silent

PLACES = ("memory/imported", "imported")
LIST = "imported.jsonl"
_PROBE = "a.md"
_MANY_LINES = 1000
_TRIES = 20


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What became of one file: how many items it has of which formats, and what was done with them.

    `new`, `updated` and `extended` notes were written, or would be; an `extended` one has edits of
    a person, and got what is new at its end. `edited` and `deleted` ones were left as the person
    wants them.
    """

    file: str
    formats: tuple[str, ...] = ()
    items: int = 0
    new: int = 0
    updated: int = 0
    extended: int = 0
    unchanged: int = 0
    edited: int = 0
    deleted: int = 0
    skipped: tuple[Skipped, ...] = ()
    error: NotewellError | None = None

    @property
    def to_write(self) -> int:
        """How many notes are made or changed."""
        return self.new + self.updated + self.extended


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did, or with `dry_run` would do."""

    files: tuple[ImportedFile, ...]
    written: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def failed(self) -> tuple[ImportedFile, ...]:
        """The files that could not be imported; nothing of them was written."""
        return tuple(file for file in self.files if file.error)


def import_files(
    notes: Notes, places: Sequence[str], *, dry_run: bool = False, progress: Progress = silent
) -> Imported:
    """Imports files, archives and folders, one after another; each is read to its end before
    anything is written.
    """
    writer = _Writer(notes)
    done: list[ImportedFile] = []
    for place in places:
        bundle = Bundle(place, writer.has)
        try:
            found = writer.look(bundle)
            if not dry_run and found.to_write:
                found = replace(
                    writer.write(bundle, found.to_write, progress), skipped=found.skipped
                )
        except NotewellError as error:
            found = ImportedFile(place, error=error)
        done.append(replace(found, file=place))
    writer.settle()
    return Imported(tuple(done), tuple(sorted(writer.written)), dry_run)


@dataclass(frozen=True, slots=True)
class _Row:
    """What the list knows of a note: its path, the hash of its bytes, and of each of its parts."""

    id: str
    path: str
    note: str
    parts: tuple[str, ...]
    changed: str = ""


@dataclass(slots=True)
class _Shelf:
    """The folder of a format: what its list knows, and its notes by the end of their names."""

    folder: str
    rows: dict[str, _Row] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    contents: set[str] = field(default_factory=set)
    lines: int = 0
    torn: bool = False  # the last line of the list has no end


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is to be done with an item: the bytes of its note now, and the text that it shall
    have.
    """

    outcome: str
    path: str = ""
    old: bytes | None = None
    new: str = ""


class _OvertakenError(Exception):
    """A note is no longer as it was when its change was planned."""


class _Writer:
    """Writes items into the notes of a workspace."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._opener: Opener = notes.files.opener
        self._root = str(notes.files.root)
        self._shelves: dict[str, _Shelf] = {}
        self.written: dict[str, None] = {}

    def has(self, location: str) -> bool:
        """Whether a file is a note of the workspace where it is."""
        return is_in(location, self._root) and not self._notes.files.refuses(location)

    def look(self, bundle: Bundle) -> ImportedFile:
        """What would be done with every item of a bundle."""
        return self._counted(bundle, lambda *given: self._plan(*given).outcome)

    def write(self, bundle: Bundle, todo: int, progress: Progress) -> ImportedFile:
        """Writes what is to be written of a bundle."""
        before = len(self.written)

        def one(shelf: _Shelf, kind: Format, item: Item, key: str) -> str:
            outcome = self._write(shelf, kind, item, key)
            progress("notes", min(len(self.written) - before, todo), todo)
            return outcome

        return self._counted(bundle, one)

    def _counted(
        self, bundle: Bundle, act: Callable[[_Shelf, Format, Item, str], str]
    ) -> ImportedFile:
        counts: Counter[str] = Counter()
        formats: dict[str, None] = {}
        seen: set[tuple[str, str]] = set()
        for kind, item in bundle.items():
            key = key_of(kind.name, item.id)
            marks = {(kind.name, key)} | (set() if item.grows else {(kind.name, _content(item))})
            if not marks & seen:  # exports have some things twice
                formats[kind.label] = None
                counts[act(self._shelf(kind), kind, item, key)] += 1
            seen |= marks
        return ImportedFile(
            bundle.place,
            tuple(formats),
            sum(counts.values()),
            new=counts["new"],
            updated=counts["updated"],
            extended=counts["extended"],
            unchanged=counts["unchanged"],
            edited=counts["edited"],
            deleted=counts["deleted"],
            skipped=tuple(bundle.skipped),
        )

    def settle(self) -> None:
        """Clears away what a killed process left, and shortens lists that have grown by many
        changes.
        """
        for shelf in self._shelves.values() if self.written else ():
            place = os.path.join(self._root, shelf.folder, LIST)
            with self._notes.writing(), contextlib.suppress(OSError):  # neither does any harm
                self._notes.sweep(place)
                if shelf.lines > _MANY_LINES and shelf.lines > 2 * len(shelf.rows):
                    self._opener.replace(
                        place, "".join(map(_line, shelf.rows.values())).encode("utf-8"), mode=0o600
                    )

    def _shelf(self, kind: Format) -> _Shelf:
        if kind.name not in self._shelves:
            self._shelves[kind.name] = self._opened(f"{self._base}/{kind.name}")
        return self._shelves[kind.name]

    @cached_property
    def _base(self) -> str:
        """Where imported notes go: below `memory/`, unless the folder's own notes are the memory
        here.
        """
        beside = os.path.join(self._root, PLACES[1], "x", _PROBE)
        if any(name.casefold() in ("memory", "memory.md") for name in os.listdir(self._root)):
            return PLACES[0]
        own = not self._notes.files.refuses(beside) and self._notes.files.scan().documents
        return PLACES[1] if own else PLACES[0]

    def _opened(self, folder: str) -> _Shelf:
        """A folder of imported notes with its list; UsageError where notes in it would not be
        read.
        """
        self._notes.locate(f"{folder}/{_PROBE}")
        place = os.path.join(self._root, folder)
        shelf = _Shelf(folder)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for name in os.listdir(place):
                if name.endswith(".md"):
                    shelf.names[name[:-3].rpartition("-")[2]] = f"{folder}/{name}"
        try:
            data = self._opener.read(os.path.join(place, LIST), most=MOST_KEPT_BYTES)
        except FileNotFoundError:
            return shelf
        except OSError as error:
            message = f"{folder}/{LIST} cannot be read: {error.strerror or error}"
            raise NoteError(
                message, hint="it remembers what was imported: make it readable, or move it away"
            ) from error
        shelf.torn = not data.endswith(b"\n")
        for row in _rows(data, folder):
            shelf.rows[row.id] = row
            shelf.contents.add(digest(*row.parts))
            shelf.lines += 1
        return shelf

    def _plan(self, shelf: _Shelf, kind: Format, item: Item, key: str) -> _Planned:
        row = shelf.rows.get(key)
        if row is None and not item.grows and _content(item) in shelf.contents:
            return _Planned("unchanged")  # the same document under another name
        if row is not None and (
            _is_older(item, row) or {digest(p.key) for p in item.parts} <= set(row.parts)
        ):
            return _Planned("unchanged")
        new = note_of(item, kind.name)
        path = row.path if row else shelf.names.get(key, "")
        if not path:
            return _Planned("new", f"{shelf.folder}/{stem_of_item(kind.name, item)}.md", None, new)
        old = self._bytes(path)
        if old is None:
            return _Planned("deleted" if row else "new", path, None, new)
        return self._change(row, item, _Planned("updated", path, old, new))

    @staticmethod
    def _change(row: _Row | None, item: Item, planned: _Planned) -> _Planned:
        """What to do with a note that is there, when its item has something new."""
        old = planned.old or b""
        if old == planned.new.encode("utf-8"):
            return replace(planned, outcome="unchanged")
        if row is not None and _hash(old) == row.note:
            return planned
        known = set(row.parts) if row else set()
        fresh = [part for part in item.parts if digest(part.key) not in known] if item.grows else []
        try:
            text = decode_exactly(old)
        except ValueError:
            return replace(planned, outcome="edited")
        more = extended(text, fresh)
        return replace(planned, outcome="extended" if more != text else "edited", new=more)

    def _write(self, shelf: _Shelf, kind: Format, item: Item, key: str) -> str:
        """Writes a note and then its line in the list; if another program was faster, it is planned
        again.
        """
        for _ in range(_TRIES):
            planned = self._plan(shelf, kind, item, key)
            if planned.outcome not in ("new", "updated", "extended"):
                break
            location = os.path.join(self._root, planned.path)
            if planned.old is None:
                done = self._notes.put(location, planned.new.encode("utf-8"))
            else:
                done = self._changed(location, planned.old, planned.new)
            if done:
                self.written[planned.path] = None
                break
            shelf.names.setdefault(key, planned.path)
        else:
            raise NoteError(
                f"{planned.path} keeps changing", hint="try again when the other program is done"
            )
        if planned.path and planned.outcome != "deleted":
            self._list(shelf, item, key, planned)
        return planned.outcome

    def _changed(self, location: str, old: bytes, new: str) -> bool:
        """Replaces the text of a note, if it is still as it was."""

        def unless_overtaken(data: bytes) -> None:
            if data != old:
                raise _OvertakenError

        try:
            return self._notes.change(location, lambda _: new, keep=unless_overtaken)
        except _OvertakenError:
            return False

    def _list(self, shelf: _Shelf, item: Item, key: str, planned: _Planned) -> None:
        """Adds what is known of a note to the list of its folder."""
        before = shelf.rows.get(key)
        ours = planned.outcome in ("new", "updated", "unchanged")
        note = _hash(planned.new.encode("utf-8")) if ours else before.note if before else ""
        parts = (*(before.parts if before else ()), *(digest(part.key) for part in item.parts))
        changed = item.changed.isoformat() if item.changed else ""
        row = _Row(key, planned.path, note, tuple(dict.fromkeys(parts)), changed)
        if row == before:
            return
        line = (("\n" if shelf.torn else "") + _line(row)).encode("utf-8")
        try:
            place = os.path.join(self._root, shelf.folder, LIST)
            handle = self._opener.open(place, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            with os.fdopen(handle, "ab", buffering=0) as file:
                if (file.write(line) or 0) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            message = f"{shelf.folder}/{LIST} cannot be written: {error.strerror or error}"
            raise NoteError(
                message, hint="check the disk, then run it again: nothing is written twice"
            ) from error
        shelf.rows[key] = row
        shelf.contents.add(_content(item))
        shelf.lines += 1
        shelf.torn = False

    def _bytes(self, path: str) -> bytes | None:
        """The bytes of a note, or None where it is gone."""
        try:
            return self._opener.read(os.path.join(self._root, path), most=MOST_KEPT_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}"
            raise NoteError(message, hint="check the file and its permissions") from error


def _content(item: Item) -> str:
    return digest(*(digest(part.key) for part in item.parts))


def _is_older(item: Item, row: _Row) -> bool:
    return item.changed is not None and bool(row.changed) and item.changed.isoformat() < row.changed


def _rows(data: bytes, folder: str) -> Iterator[_Row]:
    """The lines of a list that are whole and name a note in its folder; a list may come with a
    clone.
    """
    for line in data.split(b"\n"):
        try:
            fields = json.loads(line)
            row = _Row(**{**fields, "parts": tuple(map(str, fields["parts"]))})
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # the end of a line that a power cut took, or nonsense
        words = all(isinstance(one, str) for one in (row.id, row.path, row.note, row.changed))
        if (
            words
            and os.path.dirname(row.path) == folder
            and row.path.endswith(".md")
            and "\\" not in row.path
        ):
            yield row


def _line(row: _Row) -> str:
    return json.dumps(asdict(row), ensure_ascii=False) + "\n"


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
