"""Reading: what a note becomes before it is stored, and a second process that reads ahead where
there is much to read.

The second process opens no index and no network: it gets a list of documents and returns what they
became, in order. Without it, or when it ends early, the same is done in this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from notewell.index.documents import chunks_of, digest_of, facts_of, names_of, origin_of
from notewell.launcher import Piped, can_start, module_path
from notewell.sources.source import Source
from notewell.text.chunk import ChunkSize
from notewell.text.forgotten import Forgotten
from notewell.text.link_syntax import edges_of
from notewell.text.markdown import parse
from notewell.text.private import UNCLOSED, unclosed
from notewell.text.redact import Redactor
from notewell.text.words import clean
from notewell.types import Chunk, Document, Edge, Facts

AHEAD_BYTES = 3_000_000  # with less to read, the start of a process is not worth it
_BEGUN_BYTES = 500_000  # read here while the process starts
_PART_BYTES = 200_000
_SETTLED_NS = (
    2_000_000_000  # a note that changed a moment ago is read when it is stored, see `plan`
)
_ONE_CHUNK = ChunkSize(4000, 0)  # the label of a picture is one chunk, however short others are cut
_START = (
    "import sys, pickle\nsys.path[:] = pickle.load(sys.stdin.buffer)\n"
    "from notewell.index.read_ahead import serve\nserve(sys.stdin.buffer, sys.stdout.buffer)"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a note became; `what` is `read`, `same` as what is stored, or `gone`, `kept` or
    `skipped` for a reason.

    One that is read may have a reason too: why a part of it is not.
    """

    what: str
    reason: str = ""
    digest: str = ""
    facts: Facts = field(default_factory=Facts)
    chunks: Sequence[Chunk] = ()
    names: str = ""
    edges: Sequence[Edge] = ()
    hidden: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads notes without secrets and forgotten text, and cuts them."""

    size: ChunkSize
    forgotten: Forgotten
    redactor: Redactor | None = None
    extra_origin: str = "owner"
    doubted: str = ""

    def read(self, document: Document, source: Source, digest: str | None = None) -> Reading:
        """What a document becomes; with the digest of what is stored of it, an unchanged text is
        not cut again.
        """
        try:
            text = clean(source.read(document))
        except FileNotFoundError:
            return Reading("gone", "vanished before it could be read")
        except OSError as error:
            return Reading("kept", f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            return Reading("skipped", str(error))
        redacted: Mapping[str, int] = {}
        if self.redactor is not None:
            safe = self.redactor(text)
            text, redacted = safe.text, safe.found
        reason = unclosed(text) if UNCLOSED in redacted else ""
        text, hidden = self.forgotten.without(text, document.path)
        found = digest_of(text)
        if found == digest:
            return Reading("same", reason, found, hidden=hidden, redacted=redacted)
        parsed = parse(text)
        facts = facts_of(document, parsed)
        origin = origin_of(document, parsed, self.extra_origin, self.doubted)
        size = _ONE_CHUNK if document.source == "media" else self.size
        chunks = chunks_of(document, parsed, facts, size, origin=origin)
        edges = edges_of(document.path, parsed)
        return Reading(
            "read", reason, found, facts, chunks, names_of(parsed), edges, hidden, redacted
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A document to read, the number of its source, and the digest of what is stored of it."""

    document: Document
    source: int
    digest: str | None = None


class ReadingAhead:
    """What a second process has read of some tasks, in their order."""

    def __init__(self, reader: Reader, sources: Sequence[Source], tasks: Sequence[Task]) -> None:
        self._paths = [task.document.path for task in tasks]
        self._next = 0
        self._part: Iterator[Reading | None] = iter(())
        self._process: Piped | None = None
        import pickle  # noqa: PLC0415 - most syncs have little to read

        with contextlib.suppress(
            OSError, ValueError, TypeError, AttributeError, pickle.PicklingError
        ):
            given = pickle.dumps((reader, sources, tasks), protocol=5)
            # -I: it finds modules where this process does
            self._process = Piped(["-I", "-c", _START], os.environ)
            self._process.stdin.write(pickle.dumps(module_path(sys.path), protocol=5) + given)
            self._process.stdin.close()  # it begins to answer when it has read all of this

    def take(self, document: Document) -> Reading | None:
        """What the next document became; None if it is not one of these, or if it must be read
        here.
        """
        if (
            self._process is None
            or self._next >= len(self._paths)
            or self._paths[self._next] != document.path
        ):
            return None
        import pickle  # noqa: PLC0415

        self._next += 1
        for reading in self._part:
            return reading
        try:
            self._part = iter(pickle.load(self._process.stdout))  # noqa: S301 - our own process made it
            return next(self._part)
        except (OSError, EOFError, pickle.UnpicklingError, StopIteration):
            self.close()  # it was killed, or ran out of memory
            return None

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            process, self._process = self._process, None
            process.close()


def ahead_of(
    reader: Reader, sources: Sequence[Source], tasks: Sequence[Task]
) -> ReadingAhead | None:
    """A second process for all but the first of some tasks, where it saves time; None where it does
    not.
    """
    if sum(task.document.size for task in tasks) < AHEAD_BYTES or not _can_start():
        return None
    begun, first = 0, 0
    while first < len(tasks) and begun < _BEGUN_BYTES:
        begun += tasks[first].document.size
        first += 1
    settled = time.time_ns() - _SETTLED_NS
    return ReadingAhead(
        reader, sources, [t for t in tasks[first:] if t.document.mtime_ns <= settled]
    )


def _can_start() -> bool:
    """Whether there is a second core, and a Python to start."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return cores > 1 and can_start()


def serve(given: BinaryIO, out: BinaryIO) -> None:
    """The second process: reads what it is given and writes what that becomes, until it is done or
    nobody listens.
    """
    import pickle  # noqa: PLC0415
    import signal  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    reader, sources, tasks = pickle.load(given)  # noqa: S301 - from the process that started this one
    part: list[Reading | None] = []
    size = 0
    with contextlib.suppress(BrokenPipeError):
        for number, task in enumerate(tasks, start=1):
            part.append(_read(reader, sources, task))
            size += task.document.size
            if size >= _PART_BYTES or number == len(tasks):
                pickle.dump(part, out, protocol=5)
                out.flush()
                part, size = [], 0


def _read(reader: Reader, sources: Sequence[Source], task: Task) -> Reading | None:
    try:
        return reader.read(task.document, sources[task.source], task.digest)
    except Exception:  # noqa: BLE001 - whoever started it reads this one again, and fails in the open
        return None
