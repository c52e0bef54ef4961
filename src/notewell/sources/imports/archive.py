"""Zip archives and JSON from anybody, read as streams within bounds, never unpacked; ValueError for
what is hostile.
"""

from __future__ import annotations

import codecs
import contextlib
import datetime as dt
import io
import json
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Self

MOST_BYTES = 4_000_000_000
MOST_MEMBERS = 100_000
MOST_VALUES = 1_000_000
LARGEST_VALUE = 64_000_000
_MOST_DIRECTORY = 12_000_000
_RATIO, _SMALL = 200, 50_000_000
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_END, _END_BYTES, _LOCATOR_BYTES = b"PK\x05\x06", 22, 20
_LEADS_OUT = re.compile(r"(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\A[/\\]|\A[A-Za-z]:|[\x00-\x1f\x7f]")
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_DAMAGED = "the archive is damaged"
_CHUNK = 1 << 20
_SPACE = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive."""

    name: str
    size: int
    made: dt.datetime | None
    info: zipfile.ZipInfo


class Archive:
    """A zip whose members are read as streams; ValueError with the reason where it is not safe
    to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._size = file.seek(0, io.SEEK_END)
        if _directory_bytes(file, self._size) > _MOST_DIRECTORY:
            raise ValueError(f"the archive lists over {MOST_MEMBERS:,} files")
        file.seek(0)
        try:
            self._zip = zipfile.ZipFile(file)
        except (*_UNREADABLE, ValueError, struct.error) as error:
            raise ValueError(_DAMAGED) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._zip.close()

    def members(self) -> list[Member]:
        """Every file, once all of them are known to be harmless."""
        infos = self._zip.infolist()
        if len(infos) > MOST_MEMBERS:
            raise ValueError(f"the archive lists over {MOST_MEMBERS:,} files")
        for info in infos:
            if _LEADS_OUT.search(info.filename):
                raise ValueError(f"a name in the archive leads out of it: {info.filename[:100]!r}")
            if stat.S_ISLNK(info.external_attr >> 16):
                raise ValueError(f"the archive has a symbolic link in it: {info.filename[:100]!r}")
        files = [info for info in infos if not info.is_dir()]
        whole = sum(info.file_size for info in files)
        if whole > max(_SMALL, _RATIO * self._size):
            raise ValueError(f"the archive would unpack from {self._size:,} to {whole:,} bytes")
        return [Member(info.filename, info.file_size, _time(info), info) for info in files]

    @contextlib.contextmanager
    def stream(self, member: Member) -> Iterator[Callable[[int], bytes]]:
        """Reads a member from its start."""
        if member.info.flag_bits & 1:
            raise ValueError("the archive is locked with a password")
        if member.info.compress_type not in _METHODS:
            raise ValueError(
                "the archive is packed in a way that is not read: make a plain zip of it"
            )
        try:
            with self._zip.open(member.info) as file:
                yield file.read
        except _UNREADABLE as error:
            raise ValueError(_DAMAGED) from error

    def read(self, member: Member, *, most: int) -> bytes:
        """All of a member of at most so many bytes."""
        if member.size > most:
            raise ValueError(f"it is larger than {most:,} bytes")
        with self.stream(member) as read:
            return read(most)


def _directory_bytes(file: BinaryIO, size: int) -> int:
    """How long the list of an archive's files says it is; that is read before anything else."""
    start = max(0, size - 65_535 - _END_BYTES - _LOCATOR_BYTES)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        raise ValueError("it is not a zip archive, or only part of one")
    found: int = struct.unpack_from("<I", tail, at + 12)[0]
    locator = tail[max(0, at - _LOCATOR_BYTES) : at]
    if locator.startswith(b"PK\x06\x07"):
        file.seek(min(size, struct.unpack_from("<Q", locator, 8)[0]))
        record = file.read(56)
        return int(struct.unpack_from("<Q", record, 40)[0]) if len(record) == 56 else 0
    return found


def _time(info: zipfile.ZipInfo) -> dt.datetime | None:
    try:
        return dt.datetime(*info.date_time) if info.date_time[0] > 1980 else None  # noqa: DTZ001 - zips have no zone
    except ValueError:
        return None


def values_of(read: Callable[[int], bytes]) -> Iterator[Any]:
    """The values of a JSON list or of JSON lines one after another, or one object; ValueError if it
    is neither.
    """
    feed = _Feed(read)
    listed = feed.peek() == "["
    feed.at += listed
    count = 0
    while (sign := feed.peek()) and not (listed and sign == "]"):
        if listed and count:
            if sign != ",":
                raise ValueError(f"it is not valid JSON after value {count}")
            feed.at += 1
        yield feed.value(count)
        count += 1
        if count > MOST_VALUES:
            raise ValueError(f"it has over {MOST_VALUES:,} values")
    if listed and not sign:
        raise ValueError(f"it is not valid JSON: the list ends in the middle, after value {count}")


class _Feed:
    """Text that comes in pieces, of which one value at a time is held."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._whole = 0
        self._ended = False
        self.at = 0

    def peek(self) -> str:
        """The next character that is not a space, or nothing at the end."""
        while True:
            while self.at < len(self._text):
                if self._text[self.at] not in _SPACE:
                    return self._text[self.at]
                self.at += 1
            if self._ended:
                return ""
            self._more(_CHUNK)

    def value(self, number: int) -> Any:
        """The next value."""
        self.peek()
        wanted = _CHUNK
        while True:
            try:
                found, end = self._scan(self._text, self.at)
                if end < len(self._text) or self._ended:
                    self.at = end
                    return found
            except RecursionError:
                raise ValueError(f"value {number + 1} is nested too deep") from None
            except ValueError:
                if self._ended:
                    raise ValueError(f"it is not valid JSON at value {number + 1}") from None
            if len(self._text) - self.at > LARGEST_VALUE:
                raise ValueError(
                    f"value {number + 1} is larger than {LARGEST_VALUE:,} characters, or not "
                    "valid JSON"
                )
            self._more(wanted)
            wanted *= 2

    def _more(self, size: int) -> None:
        data = self._read(size)
        self._whole += len(data)
        if self._whole > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES:,} bytes")
        self._ended = not data
        self._text = self._text[self.at :] + self._decode(data, self._ended)
        self.at = 0
