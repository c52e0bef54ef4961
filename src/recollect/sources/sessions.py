"""Session files of agents: found where each program keeps its own, read on from where the last sync stopped."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from recollect.ports import Heard, Place, Scanned
from recollect.sources.lineage import session_edges
from recollect.text.transcript import Listener, readable
from recollect.types import Document, Edge, Skipped, Turn

_USUAL = {
    "CLAUDE_CONFIG_DIR": ".claude",
    "CODEX_HOME": ".codex",
    "OPENCLAW_STATE_DIR": ".openclaw",
    "GEMINI_CLI_HOME": "",
}
_MARK_BYTES = 1024
_READ_BYTES = 1 << 20
_HELPER = "agent-"
# OpenClaw keeps what /new and /reset put aside; a conversation that its owner deleted stays deleted here.
_PUT_ASIDE = re.compile(r"\.jsonl\.reset\.[\w.:+-]+\Z")
_LEFT_OUT = re.compile(r"\.(?:checkpoint|bak|lock|tmp)\b|\.jsonl\.deleted\.|\.trajectory\.", re.IGNORECASE)


class SessionSource:
    """Transcripts of Claude Code, Codex, OpenClaw and Gemini CLI, or whatever `paths` name instead."""

    name = "sessions"

    def __init__(
        self,
        root: Path,
        *,
        paths: Sequence[str] = (),
        all_projects: bool = False,
        max_file_bytes: int = 500_000_000,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.paths = tuple(paths)
        self.all_projects = all_projects
        self.max_file_bytes = max_file_bytes
        self.env = os.environ if env is None else env

    def edges(self, document: Document) -> list[Edge]:
        """Which sessions a transcript continues."""
        return session_edges(document)

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """Every transcript that is there now, by one stat each."""
        documents: dict[str, Document] = {}
        skipped: list[Skipped] = []
        complete = True
        for location in self._locations(skipped):
            if deadline is not None and time.monotonic() > deadline:
                complete = False
                break
            path = self._name(location)
            if path in documents:
                continue
            try:
                stat = os.stat(location)
            except OSError as error:
                skipped.append(Skipped(path, f"cannot be read: {error.strerror}"))
                continue
            if not S_ISREG(stat.st_mode):
                continue
            if stat.st_size > self.max_file_bytes:
                skipped.append(Skipped(path, f"larger than {self.max_file_bytes:,} bytes (sessions.max_file_bytes)"))
                continue
            documents[path] = Document(path, self.name, stat.st_size, stat.st_mtime_ns, location)
        return Scanned(tuple(sorted(documents.values(), key=lambda d: d.path)), tuple(skipped), complete)

    def _locations(self, skipped: list[Skipped]) -> Iterator[str]:
        if not self.paths:
            for pattern in self._usual_places():
                yield from sorted(p for p in glob.iglob(pattern, recursive=True) if _is_transcript(p))
        for named in self.paths:
            place = os.path.join(self.root, os.path.expanduser(named))
            if not glob.has_magic(named) and not os.path.exists(place):
                skipped.append(Skipped(named, "sessions.paths: no such file or folder"))
            pattern = os.path.join(glob.escape(place), "**", "*") if os.path.isdir(place) else place
            yield from sorted(p for p in glob.iglob(pattern, recursive=True) if _is_transcript(p))

    def _usual_places(self) -> Iterator[str]:
        """Globs of where each program keeps its sessions: this workspace's where the folder says so."""
        projects = "*" if self.all_projects else glob.escape(re.sub(r"[^A-Za-z0-9]", "-", str(self.root)))
        claude, codex, openclaw = (
            self._base(name) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR")
        )
        yield os.path.join(glob.escape(claude), "projects", projects, "*.jsonl")
        yield os.path.join(glob.escape(codex), "sessions", "**", "rollout-*.jsonl")
        yield os.path.join(glob.escape(openclaw), "agents", "*", "sessions", "*.jsonl*")
        gemini = os.path.join(self._base("GEMINI_CLI_HOME"), ".gemini")
        for folder in ("*",) if self.all_projects else self._gemini_folders(gemini):
            yield os.path.join(glob.escape(gemini), "tmp", folder, "chats", "*.json*")

    def trees(self) -> list[str]:
        """Paths and globs of where transcripts are or may come: what `paths` name, or places of programs in use."""
        if self.paths:
            return [os.path.join(self.root, os.path.expanduser(named)) for named in self.paths]
        homes = [os.path.join(self._base("GEMINI_CLI_HOME"), ".gemini")]
        homes += [self._base(name) for name in _USUAL if name != "GEMINI_CLI_HOME"]
        used = tuple(glob.escape(home) + os.sep for home in homes if os.path.isdir(home))
        return [pattern for pattern in self._usual_places() if pattern.startswith(used)]

    def _base(self, variable: str) -> str:
        """The folder of a program: what its own variable says, else the usual one."""
        return self.env.get(variable) or os.path.join(os.path.expanduser("~"), _USUAL[variable])

    def _gemini_folders(self, gemini: str) -> Iterator[str]:
        """A project's folder is called by the hash of its path, or by the short name in a list."""
        yield hashlib.sha256(str(self.root).encode()).hexdigest()
        try:
            listed = json.loads(Path(gemini, "projects.json").read_bytes()).get("projects", {})
        except (OSError, ValueError, AttributeError):
            return
        short = listed.get(str(self.root)) if isinstance(listed, dict) else None
        if isinstance(short, str) and short:
            yield glob.escape(short)

    def _name(self, location: str) -> str:
        """The path a document is known by: relative to the root where it is inside, else whole."""
        relative = os.path.relpath(location, self.root)
        outside = relative.split(os.sep)[0] == os.pardir or os.path.isabs(relative)
        name = unicodedata.normalize("NFC", (os.path.normpath(location) if outside else relative).replace(os.sep, "/"))
        return name.encode("utf-8", "replace").decode("utf-8")

    def read(self, document: Document) -> str:
        """The whole conversation as a person reads it."""
        return readable(self.lines(document, 1, None)[0])

    def hear(self, document: Document, place: Place | None) -> Heard:
        """The turns after a place; all of them where the file was cut, replaced or written anew since."""
        if document.location.endswith(".json"):
            return self._whole(document)
        with _open(document.location) as file:
            again = place is not None and not _same(file, place)
            if place is None or again:
                place = Place()
            listener = Listener()
            walk = _Walk(file, place, listener)
            walk.read()
            if listener.rewritten and place.offset:
                again, listener = True, Listener()
                walk = _Walk(file, Place(), listener)
                walk.read()
            stopped = None if listener.rewritten else _place(file, walk)
        return Heard(
            tuple(listener.turns),
            listener.title,
            listener.project,
            stopped,
            again,
            walk.whole and self._is_foreign(document, listener),
            bad_lines=tuple(walk.bad),
        )

    def _whole(self, document: Document) -> Heard:
        with _open(document.location) as file:
            data = file.readall()
        listener = Listener()
        try:
            text = data.decode("utf-8-sig")
            listener.hear_whole(json.loads(text), text)
        except (ValueError, RecursionError):
            return Heard(unread="not whole JSON yet; it is read again when it changes")
        return Heard(
            tuple(listener.turns),
            listener.title,
            listener.project,
            again=True,
            foreign=self._is_foreign(document, listener),
        )

    def _is_foreign(self, document: Document, listener: Listener) -> bool:
        """Whether a file is a helper's, or of another folder, or does not say of which, and nobody asked for those."""
        if self.paths or self.all_projects or listener.subagent:
            return listener.subagent
        codex, openclaw = (os.path.realpath(self._base(name)) for name in ("CODEX_HOME", "OPENCLAW_STATE_DIR"))
        location = os.path.realpath(document.location)
        if not _inside(location, codex) and not _inside(location, openclaw):
            return False  # found in a folder of this workspace's own
        if not listener.folder:
            return True
        folder = os.path.realpath(listener.folder)
        if _inside(folder, str(self.root)):
            return False
        # OpenClaw's own workspace lies in its folder, and an older release noted where it was started instead.
        return not (_inside(str(self.root), openclaw) and _inside(location, openclaw)) or _inside(folder, openclaw)

    def lines(self, document: Document, first: int, last: int | None) -> tuple[list[Turn], int]:
        """The turns on some lines, and how many lines there are; only those lines are parsed."""
        listener = Listener()
        if document.location.endswith(".json"):
            heard = self._whole(document)
            with _open(document.location) as file:
                count = max(1, file.readall().rstrip(b"\n").count(b"\n") + 1)
            return [t for t in heard.turns if first <= t.line <= (last or t.line)], count
        count = 0
        with _open(document.location) as file:
            for _, line in _lines(file, 0):
                count += 1
                if first <= count <= (last or count):
                    listener.hear(_parsed(line), count)
        return listener.turns, count


def _inside(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip(os.sep) + os.sep)


def _is_transcript(location: str) -> bool:
    name = os.path.basename(location)
    if name.startswith((".", _HELPER)) or _LEFT_OUT.search(name) or "subagents" in location.split(os.sep):
        return False
    return (name.endswith((".jsonl", ".json")) and name != "sessions.json") or _PUT_ASIDE.search(name) is not None


def _open(location: str) -> io.FileIO:
    """Unbuffered, so that no byte is read that nobody asked for."""
    return open(location, "rb", buffering=0)


def _at(file: io.FileIO, start: int, count: int) -> bytes:
    file.seek(start)
    parts = []
    while count > 0 and (part := file.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _mark(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _marks(file: io.FileIO, offset: int) -> tuple[str, str]:
    """Marks of the first bytes of a file and of those before an offset."""
    head = _mark(_at(file, 0, min(_MARK_BYTES, offset)))
    start = max(0, offset - _MARK_BYTES)
    return head, _mark(_at(file, start, offset - start))


def _same(file: io.FileIO, place: Place) -> bool:
    """Whether a file still begins as it did, up to the place: it only grew."""
    if file.seek(0, os.SEEK_END) < place.offset or (place.head, place.near) != _marks(file, place.offset):
        return False
    return place.ended or _at(file, place.offset, 1) in (b"", b"\n", b"\r")


def _place(file: io.FileIO, walk: _Walk) -> Place:
    return Place(walk.offset, walk.line, *_marks(file, walk.offset), walk.ended)


def _lines(file: io.FileIO, offset: int) -> Iterator[tuple[int, bytes]]:
    """Lines with their ends, each with the offset behind it; the last may have no end."""
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


def _parsed(line: bytes) -> Any:
    """The value of a line, None for one that is empty or broken."""
    try:
        return json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return None


class _Walk:
    """One pass over the lines after a place. What cannot be read at the end of a file is left for the next time."""

    def __init__(self, file: io.FileIO, place: Place, listener: Listener) -> None:
        self.file = file
        self.whole = place.offset == 0
        self.offset, self.line, self.ended = place.offset, place.line, place.ended
        self.listener = listener
        self.bad: list[int] = []

    def read(self) -> None:
        """Hears every line, and stops where the file can be read on."""
        waiting: list[int] = []
        number = self.line
        for end, line in _lines(self.file, self.offset):
            if not self.ended and number == self.line and not line.strip():
                self.offset, self.ended = end, True  # only the end of a line that was already read
                continue
            number += 1
            record = _parsed(line)
            torn = not line.endswith(b"\n") and not isinstance(record, dict)  # `12` may become `123`
            if torn or (record is None and line.strip()):
                waiting.append(number)
                continue
            self.listener.hear(record, number)
            self.bad += waiting
            waiting.clear()
            self.offset, self.line, self.ended = end, number, line.endswith(b"\n")
