"""What somebody brings: a file, a zip or a folder, and the items in it; nothing is unpacked, no
link leads out.
"""

from __future__ import annotations

import datetime as dt
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import BinaryIO, cast

from notewell.errors import NoteError
from notewell.opener import ANYWHERE, Opener, inside
from notewell.sources.imports.archive import MOST_MEMBERS, Archive, Member, values_of
from notewell.sources.imports.formats import (
    BASIC_MEMORY,
    JSON_ENDINGS,
    KNOWN,
    MARKDOWN,
    FileFormat,
    Format,
    format_of_file,
    format_of_values,
)
from notewell.sources.imports.items import Item, digest
from notewell.text.note_files import stem_of
from notewell.types import Skipped

Brought = tuple[Format, Item]
_LOOKED_AT = 20  # values of a list, of which the first may be empty
_UNKNOWN = "it is in no format that import knows"
_DEEPEST = 50


class Bundle:
    """The items of one file or folder that the user names, but for notes that are `known` here
    already.

    `skipped` says what was passed over, once the items are read.
    """

    def __init__(self, place: str, known: Callable[[str], bool] = lambda _: False) -> None:
        self.place = os.path.realpath(os.path.expanduser(place))
        self._known = known
        self.skipped: list[Skipped] = []

    def items(self) -> Iterator[Brought]:
        """Every item; NoteError with the reason where the whole cannot be read or must not be."""
        self.skipped = []
        try:
            if os.path.isdir(self.place):
                yield from self._folder()
            elif self.place.casefold().endswith(".zip"):
                yield from self._zip()
            else:
                yield from self._file(self.place, ANYWHERE)
        except ValueError as error:
            hint = (
                f"it reads {KNOWN}"
                if str(error) == _UNKNOWN
                else "nothing of it was written; look at the file"
            )
            raise NoteError(f"{self.place} cannot be imported: {error}", hint=hint) from error
        except OSError as error:
            message = f"{self.place} cannot be read: {error.strerror or error}"
            raise NoteError(message, hint="check the path and its permissions") from error

    def _file(self, place: str, opener: Opener) -> Iterator[Brought]:
        with io.BufferedReader(opener.file(place)) as file:
            stat = os.fstat(file.fileno())
            made = _when(stat.st_mtime)
            if place.casefold().endswith(JSON_ENDINGS):
                yield from _of_values(file.read, made)
                return
            kind = format_of_file(place)
            if kind is None:
                raise ValueError(_UNKNOWN)
            if kind is MARKDOWN and self._known(place):
                raise ValueError("it is a note of this workspace already")
            data = opener.read(place, most=kind.most_bytes)
        yield from _of_document(kind, data, place, made, own=place)

    def _zip(self) -> Iterator[Brought]:
        """Exports in JSON if there are any: pages beside them show the same again. Else every
        document.
        """
        with (
            io.BufferedReader(ANYWHERE.file(self.place)) as file,
            Archive(cast("BinaryIO", file)) as archive,
        ):
            members = [m for m in archive.members() if not _is_hidden(m.name)]
            known = 0
            for member in members:
                if member.name.casefold().endswith(JSON_ENDINGS):
                    for one in self._tried(member.name, _member_values(archive, member)):
                        known += 1
                        yield one
            for member in [] if known else members:
                if kind := format_of_file(member.name):
                    for one in self._tried(member.name, _member_document(archive, member, kind)):
                        known += 1
                        yield one
            self._expect(known)

    def _folder(self) -> Iterator[Brought]:
        opener = inside(self.place)
        known = 0
        for place in self._places():
            if place.casefold().endswith(JSON_ENDINGS) or format_of_file(place):
                for one in self._tried(place, self._file(place, opener)):
                    known += 1
                    yield one
        self._expect(known)

    def _expect(self, known: int) -> None:
        """Says why, if nothing could be read."""
        if not known:
            raise ValueError(
                ": ".join((self.skipped[0].path, self.skipped[0].reason))
                if self.skipped
                else _UNKNOWN
            )

    def _places(self) -> Iterator[str]:
        """The files of a folder and its folders, but hidden ones and links."""
        count = 0
        for folder, names, files in os.walk(self.place):
            names[:] = sorted(n for n in names if not n.startswith("."))
            if folder[len(self.place) :].count(os.sep) >= _DEEPEST:
                names.clear()
            for name in sorted(files):
                count += 1
                if count > MOST_MEMBERS:
                    raise ValueError(f"the folder has over {MOST_MEMBERS:,} files")
                if not name.startswith(".") and not os.path.islink(os.path.join(folder, name)):
                    yield os.path.join(folder, name)

    def _tried(self, name: str, found: Iterator[Brought]) -> Iterator[Brought]:
        """The items of one file among others; it is passed over if nobody can read it, but never in
        the middle.
        """
        begun = False
        try:
            for one in found:
                begun = True
                yield one
        except NoteError as error:  # a library is missing
            self.skipped.append(Skipped(name, f"{error} ({error.hint})"))
        except (ValueError, OSError) as error:
            reason = str(getattr(error, "strerror", "") or error)
            if begun:
                raise ValueError(f"{name}: {reason}") from error
            if reason != _UNKNOWN:
                self.skipped.append(Skipped(name, reason))


def _member_values(archive: Archive, member: Member) -> Iterator[Brought]:
    with archive.stream(member) as read:
        yield from _of_values(read, member.made)


def _member_document(archive: Archive, member: Member, kind: FileFormat) -> Iterator[Brought]:
    yield from _of_document(
        kind, archive.read(member, most=kind.most_bytes), member.name, member.made
    )


def _of_values(read: Callable[[int], bytes], made: dt.datetime | None) -> Iterator[Brought]:
    """The items of a file in JSON; what has no date gets the file's."""
    values = values_of(read)
    first = list(islice(values, _LOOKED_AT))
    kind = format_of_values(first)
    if kind is None:
        raise ValueError(_UNKNOWN if first else "there is nothing in it")
    for item in kind.read(chain(first, values)):
        yield kind, item if item.made else replace(item, made=made)


def _of_document(
    kind: FileFormat, data: bytes, name: str, made: dt.datetime | None, *, own: str = ""
) -> Iterator[Brought]:
    """A document as an item, known by its path, or in an archive by what it says."""
    item = kind.read(data, name)
    if item is None:
        return
    stem = stem_of(name.replace("\\", "/"))
    number = item.id or own or digest(*(part.key for part in item.parts))
    shown = item.name or os.path.basename(name)
    known = BASIC_MEMORY if kind is MARKDOWN and item.id else kind
    yield (
        known,
        replace(item, id=number, name=shown, title=item.title or stem, made=item.made or made),
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _when(seconds: float) -> dt.datetime | None:
    try:
        return dt.datetime.fromtimestamp(seconds).replace(microsecond=0)  # noqa: DTZ006 - local, as days in notes are
    except (ValueError, OverflowError, OSError):
        return None
