"""Conversations that were read, as Markdown of our own: agents delete theirs, often after 30 days
and without a word.

One file a conversation, in a folder a workspace, for nobody but the user. What is kept is what the
index holds, without secrets and without what was forgotten, and enough to make the index again as
it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from notewell.opener import MOST_KEPT_BYTES, Opener
from notewell.text.kept_turns import KeptTalk, dump, load, path_of_kept
from notewell.types import Document, Turn

_NAMES = "names.jsonl"
_HEAD_BYTES = 8192
_STEPS = 20
_ODD = re.compile(r"[^A-Za-z0-9._-]")
_SAME_FOR_ALL = ("events.jsonl", "api_conversation_history.json")


class Kept:
    """What is kept of the conversations of a workspace; all workspaces together stay below a number
    of bytes.
    """

    def __init__(self, base: Path, root: Path, *, most_bytes: int) -> None:
        self.base, self.most_bytes = base, most_bytes
        name = _ODD.sub("-", root.name[:40]) or "root"
        self.folder = base / f"{name}-{_hash(str(root))}"
        self._opener = Opener((str(base),))
        self._new_bytes = most_bytes  # so that the first write looks how much there is

    def place(self, path: str) -> Path:
        """The file for a conversation."""
        return self.folder / _file_name(path)

    def has(self, path: str) -> bool:
        """Whether something of a conversation is kept."""
        return self.place(path).is_file()

    def document(self, path: str) -> Document | None:
        """What is kept of a conversation; None if there is nothing."""
        place = self.place(path)
        try:
            stat = os.stat(place, follow_symlinks=False)
        except OSError:
            return None
        return Document(path, "sessions", stat.st_size, stat.st_mtime_ns, str(place))

    def gone(self, found: Collection[str], deleted: Collection[str] = ()) -> Iterator[Document]:
        """What is kept of conversations that are not among those `found`.

        One that has only moved, as its program does with old ones, is among them under another
        path. What the user `deleted` there, by the names of the conversations, is deleted here too.
        """
        try:
            names = {
                entry.name: entry for entry in os.scandir(self.folder) if entry.name.endswith(".md")
            }
        except OSError:
            return
        for path in found:
            if not names:
                return
            names.pop(_file_name(path), None)
        if not names:
            return
        known, moved = self._known(), {talk_name(path) for path in found}
        for name, entry in names.items():
            with contextlib.suppress(OSError, ValueError):
                stat = entry.stat(follow_symlinks=False)
                path = known.get(name) or self._path_in(entry.path)
                if path and talk_name(path) in deleted:
                    os.unlink(entry.path)
                elif path and talk_name(path) not in moved and _file_name(path) == name:
                    yield Document(path, "sessions", stat.st_size, stat.st_mtime_ns, entry.path)

    def read(self, document: Document) -> KeptTalk:
        """What was kept of a conversation; OSError if it is gone."""
        return load(self.text(document))

    def text(self, document: Document) -> str:
        """The file as it is."""
        return self._opener.read(document.location, most=MOST_KEPT_BYTES).decode("utf-8", "replace")

    def keep(self, document: Document, talk: KeptTalk, *, whole: bool) -> None:
        """Keeps a conversation, or what is new of it; without turns, nothing of it stays."""
        place = self.place(document.path)
        if not whole:
            before = load(self._opener.read(place, most=MOST_KEPT_BYTES).decode("utf-8", "replace"))
            last = before.turns[-1].line if before.turns else 0
            talk = KeptTalk(
                talk.path,
                talk.title,
                talk.project,
                (*before.turns, *(t for t in talk.turns if t.line > last)),
            )
        if not talk.turns:
            place.unlink(missing_ok=True)
            return
        data = dump(talk).encode("utf-8", "replace")
        self._make_folder()
        if not place.exists():
            self._note(place.name, document.path)
        self._opener.replace(place, data, mode=0o600, writer=str(os.getpid()), settled=False)
        os.utime(place, ns=(document.mtime_ns, document.mtime_ns))
        self._new_bytes += len(data)
        if self._new_bytes >= self.most_bytes / _STEPS:
            self._trim()

    def _make_folder(self) -> None:
        if not self.folder.is_dir():
            self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)

    def _note(self, name: str, path: str) -> None:
        """Adds to the list of names, so that a look need not open every file."""
        line = json.dumps([name, path]).encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with os.fdopen(self._opener.open(self.folder / _NAMES, flags, 0o600), "ab") as file:
            file.write(line)

    def _known(self) -> dict[str, str]:
        """Paths by the names of their files, as far as the list has them."""
        found: dict[str, str] = {}
        with contextlib.suppress(OSError):
            for line in self._opener.read(self.folder / _NAMES, most=MOST_KEPT_BYTES).splitlines():
                with contextlib.suppress(ValueError, TypeError):
                    name, path = json.loads(line)
                    found[str(name)] = str(path)
        return found

    def _path_in(self, location: str) -> str:
        return path_of_kept(
            self._opener.read(location, most=_HEAD_BYTES, cut=True).decode("utf-8", "replace")
        )

    def _trim(self) -> None:
        """Deletes the oldest of all workspaces, until there is room for what comes before the next
        look.
        """
        self._new_bytes = 0
        found = [(stat.st_mtime_ns, stat.st_size, entry.path) for entry, stat in self._all()]
        over = sum(size for _, size, _ in found) - self.most_bytes * (1 - 1 / _STEPS)
        for _, size, path in sorted(found):
            if over <= 0:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                over -= size

    def _all(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        with contextlib.suppress(OSError):
            for folder in os.scandir(self.base):
                if folder.is_dir(follow_symlinks=False):
                    for entry in os.scandir(folder.path):
                        if entry.name.endswith(".md"):
                            yield entry, entry.stat(follow_symlinks=False)

    def size(self) -> tuple[int, int]:
        """How many conversations are kept in all workspaces together, and their bytes."""
        sizes = [stat.st_size for _, stat in self._all()]
        return len(sizes), sum(sizes)


def talk_name(path: str) -> str:
    """The name of a conversation, which it has wherever it is: that of its file, or of the folder
    made for it.
    """
    *_, folder, name = f"/{path}".split("/")
    return folder if name in _SAME_FOR_ALL else name.partition(".json")[0].removesuffix(".messages")


def talk_of(document: Document, title: str, project: str, turns: Sequence[Turn]) -> KeptTalk:
    """A conversation as it is kept."""
    return KeptTalk(document.path, title, project, tuple(turns))


def _file_name(path: str) -> str:
    return f"{_ODD.sub('-', path.rpartition('/')[2][:60])}-{_hash(path)}.md"


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
