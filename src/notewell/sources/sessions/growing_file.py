"""A JSONL file that grows: each pass continues where the last one stopped."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from notewell.sources.source import ReadMark
from notewell.text.transcript import TranscriptReader

_HASHED_BYTES = 1024
_READ_BYTES = 1 << 20
HEAD_RECORDS = 200


def read_at(file: io.FileIO, start: int, count: int) -> bytes:
    """Some bytes of a file from a place on; fewer where it ends."""
    file.seek(start)
    parts = []
    while count > 0 and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _hashes(file: io.FileIO, offset: int) -> tuple[str, str]:
    """Hashes of the first bytes of a file and of those before an offset."""
    size = min(_HASHED_BYTES, offset)
    data = (read_at(file, start, size) for start in (0, offset - size))
    head, near = (hashlib.blake2b(part, digest_size=8).hexdigest() for part in data)
    return head, near


def same(file: io.FileIO, mark: ReadMark) -> bool:
    """Whether a file has only grown since it was read up to the mark."""
    if file.seek(0, os.SEEK_END) < mark.offset or (mark.head, mark.near) != _hashes(
        file, mark.offset
    ):
        return False
    return mark.ended or read_at(file, mark.offset, 1) in (b"", b"\n", b"\r")


def lines(file: io.FileIO, offset: int) -> Iterator[tuple[int, bytes]]:
    """The offset after each line, and the line with its end; the last line may have no end."""
    file.seek(offset)
    rest: list[bytes] = []
    while data := file.read(_READ_BYTES):
        pieces = data.split(b"\n")
        for piece in pieces[:-1]:
            line = b"".join((*rest, piece, b"\n"))
            rest.clear()
            offset += len(line)
            yield offset, line
        if pieces[-1]:
            rest.append(pieces[-1])
    if rest:
        line = b"".join(rest)
        yield offset + len(line), line


def parsed(line: bytes) -> Any:
    """The value of a line; None if it is empty or broken."""
    try:
        return json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return None


class Pass:
    """One pass over the lines after a mark; what cannot be read at the end of a file is left for
    the next time.
    """

    def __init__(self, file: io.FileIO, start: ReadMark) -> None:
        self.file = file
        self.complete = start.offset == 0
        self.offset, self.line, self.ended = start.offset, start.line, start.ended
        self.reader = TranscriptReader()
        self.bad: list[int] = []
        self.head: list[Mapping[str, Any]] = []
        self._read()

    def mark(self) -> ReadMark:
        """Where the next pass continues."""
        return ReadMark(self.offset, self.line, *_hashes(self.file, self.offset), self.ended)

    def _read(self) -> None:
        waiting: list[int] = []
        number = self.line
        for end, line in lines(self.file, self.offset):
            if not self.ended and number == self.line and not line.strip():
                self.offset, self.ended = end, True  # only the end of a line that was already read
                continue
            number += 1
            record = parsed(line)
            # `12` may become `123`
            torn = not line.endswith(b"\n") and not isinstance(record, dict)
            if torn or (record is None and line.strip()):
                waiting.append(number)
                continue
            self.reader.feed(record, number)
            if number <= HEAD_RECORDS and isinstance(record, dict):
                self.head.append(record)
            self.bad += waiting
            waiting.clear()
            self.offset, self.line, self.ended = end, number, line.endswith(b"\n")
