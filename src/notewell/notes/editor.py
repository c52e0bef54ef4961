"""Writing notes on disk: completely or not at all, one notewell process at a time, keeping what
other programs write.

A short text at the end of a file is appended in one write, so no other program's bytes can get
lost. Any other change, and a long text that a crash could cut in two, goes into a new file that is
renamed over the old one, if the old one is still as it was read; what another program appends to
the old one in that moment is copied over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from notewell.errors import NoteError, StoreBusyError, UsageError
from notewell.opener import MOST_KEPT_BYTES, Opener, fill, settle
from notewell.sources.source import NoteFiles
from notewell.store.lock import locked
from notewell.store.nearest import made_mine
from notewell.text.note_edit import Insertion, keep_ends
from notewell.text.note_files import decode_exactly, encode_like, encoding_of, stray_byte

_TRIES = 20
_ONE_WRITE = 2048
_LOCK_WAIT_S = 30.0
_FRESH = ".notewell-new"


@dataclass(frozen=True, slots=True)
class Written:
    """The lines of a new entry, the text of its file, and whether the file is new."""

    start_line: int
    end_line: int
    text: str
    created: bool


class Notes:
    """Writes the notes of a workspace."""

    def __init__(
        self, files: NoteFiles, lock_path: Path | None, refuse: Callable[[str], None] | None = None
    ) -> None:
        """`refuse` raises for a location where nothing may be written, as it is another user's."""
        self.files = files
        self._refuse = refuse or (lambda _location: None)
        self.lock_path = lock_path
        self._opener: Opener = files.opener

    def locate(self, path: str) -> tuple[str, str]:
        """The path of a note in the workspace and its resolved location; UsageError where none may
        be written.
        """
        if not path.strip() or "\0" in path:
            raise UsageError(
                f"{path!r} is not a file name", hint="name a note, such as memory/topic.md"
            )
        asked = os.path.normpath(os.path.join(self.files.root, os.path.expanduser(path)))
        if reason := self.files.refuses(asked):
            raise UsageError(
                f"{path} cannot be written: {reason}", hint="name a note, such as memory/topic.md"
            )
        real = os.path.realpath(asked)
        if os.path.isdir(real):
            raise UsageError(f"{path} is a folder", hint="name a file in it")
        self._refuse(real)
        root = str(self.files.root)
        inside = asked.startswith(root.rstrip(os.sep) + os.sep)
        name = os.path.relpath(asked, root) if inside else asked
        return unicodedata.normalize("NFC", name.replace(os.sep, "/")), real

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One writer of ours at a time, across processes."""
        with locked(self.lock_path, wait_s=_LOCK_WAIT_S) as mine:
            if not mine:
                raise StoreBusyError(
                    "another process is writing notes of this workspace", hint="try again"
                )
            yield

    @contextlib.contextmanager
    def _writing_at(self, location: str) -> Iterator[None]:
        """The same, where this user may write."""
        self._refuse(location)
        with self.writing():
            yield

    def sweep(self, location: str) -> None:
        """Deletes drafts beside a note that a killed process left; under the lock they can be
        nobody else's.
        """
        folder = os.path.dirname(location)
        with contextlib.suppress(OSError):
            for name in os.listdir(folder) if self.lock_path else ():
                if name.startswith(".") and name.endswith(_FRESH):
                    os.unlink(os.path.join(folder, name))

    def add(
        self, location: str, compose: Callable[[str], Insertion | None], *, start: str
    ) -> Written | None:
        """Inserts what `compose`, maybe called again, makes of the present text; a new file begins
        with `start`.
        """
        with _explained(location), self._writing_at(location):
            written = self._add(location, compose, start)
        if written is not None:
            # After the lock, so that several writers wait for the disk together, not one after
            # another.
            try:
                self._sync(location)
            except OSError as error:
                message = (
                    f"{location} has the text, but the disk did not confirm it: "
                    f"{error.strerror or error}"
                )
                raise NoteError(
                    message, hint="check the disk, then run it again: it is not written twice"
                ) from error
        return written

    def _add(
        self, location: str, compose: Callable[[str], Insertion | None], start: str
    ) -> Written | None:
        created = False
        for _ in range(_TRIES):
            try:
                if not os.path.exists(location):
                    created = True
                    self._create(location, start, compose)
                data = self._bytes(location) if os.path.exists(location) else start.encode()
                text = _text(data, location)
                if (found := compose(text)) is None:
                    return None
                new = text[: found.offset] + found.text + text[found.offset :]
                if found.offset < len(text) or len(found.text) > _ONE_WRITE or stray_byte(data):
                    self.sweep(location)
                    if self._swap(location, data, encode_like(new, data)):
                        return Written(found.start_line, found.end_line, new, created)
                elif written := self._append(location, data, found):
                    return Written(*written, created)
            except OSError:
                if created:
                    self._take_back(location, start)
                raise
        raise StoreBusyError(
            f"{location} keeps changing", hint="try again when the other program is done"
        )

    def change(
        self, location: str, edit: Callable[[str], str], *, keep: Callable[[bytes], None]
    ) -> bool:
        """Rewrites a note; `keep` gets its bytes first. Returns whether anything changed."""
        with self._writing_at(location), _explained(location):
            self.sweep(location)
            for _ in range(_TRIES):
                data = self._bytes(location)
                text = _text(data, location)
                new = edit(text)
                if new == text:
                    return False
                keep(data)
                if self._swap(location, data, encode_like(new, data)):
                    return True
        raise StoreBusyError(
            f"{location} keeps changing", hint="try again when the other program is done"
        )

    def look(self, location: str) -> bytes | None:
        """The bytes of a note; None where there is none."""
        with _explained(location), contextlib.suppress(FileNotFoundError):
            return self._bytes(location)
        return None

    def exchange(self, location: str, before: bytes | None, after: bytes | None) -> bool:
        """Makes a note what was decided for it; False if it is not as it was then, and nothing is
        written.

        None is a note that does not exist.
        """
        with self._writing_at(location), _explained(location):
            self.sweep(location)
            now = self._bytes(location) if os.path.lexists(location) else None
            if now != before:
                return False
            if before is not None and after is not None:
                return self._swap(location, before, after)
            if after is not None:
                os.makedirs(os.path.dirname(location), exist_ok=True)
                try:
                    self._opener.create(location, after)
                except FileExistsError:
                    return False
                self._sync(location)
            elif before is not None:
                os.unlink(location)
            settle(os.path.dirname(location))
            return True

    def put(self, location: str, data: bytes) -> bool:
        """Makes a note that only its owner can read, completely or not at all; False where there is
        one already.
        """
        with self._writing_at(location), _explained(location):
            if os.path.lexists(location):
                return False
            os.makedirs(os.path.dirname(location), exist_ok=True)
            self._opener.replace(location, data, mode=0o600)
        return True

    def remove(self, location: str, *, keep: Callable[[bytes], None]) -> None:
        """Deletes a note; `keep` gets its bytes first."""
        with self._writing_at(location), _explained(location):
            self.sweep(location)
            keep(self._bytes(location))
            os.unlink(location)
            settle(os.path.dirname(location))

    def _bytes(self, location: str) -> bytes:
        return self._opener.read(location, most=MOST_KEPT_BYTES)

    def _create(
        self, location: str, start: str, compose: Callable[[str], Insertion | None]
    ) -> None:
        """Creates a note with its first lines, unless another process just did."""
        if compose(start) is None:
            return
        os.makedirs(os.path.dirname(location), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self._opener.create(location, start.encode("utf-8"))

    def _take_back(self, location: str, start: str) -> None:
        """Removes a new note that has no more than its first lines."""
        with contextlib.suppress(OSError):
            if start.encode("utf-8").startswith(self._bytes(location)):
                os.unlink(location)

    def _append(self, location: str, data: bytes, found: Insertion) -> tuple[int, int, str] | None:
        """Appends in one write; None when another file has taken the name of the one that was
        written.
        """
        _, codec = encoding_of(data)
        more = found.text.encode(codec)
        handle = self._opener.open(location, os.O_RDWR | os.O_APPEND)
        try:
            if os.fstat(handle).st_size != len(data):
                return None
            written = os.write(handle, more)
            end = os.lseek(handle, 0, os.SEEK_CUR)
            if written < len(more):  # a full disk: undo it, unless another program wrote behind it
                if os.fstat(handle).st_size == end:
                    os.ftruncate(handle, end - written)
                raise OSError(28, "no space left on the device")
            there = _read(handle, 0, end)
            same = os.path.samestat(os.fstat(handle), os.stat(location))
        finally:
            os.close(handle)
        begun = end - len(more)
        if not same and more not in self._bytes(location):
            return None  # an editor replaced the file: write into the new one
        if (
            begun > len(data)
            and there[begun - 1 : begun] not in b"\r\n"
            and more[:1] not in b"\r\n"
        ):
            # Another program left an unfinished line just before our write: the entry must not
            # continue it.
            parted = there[:begun] + "\n".encode(codec) + there[begun:]
            if self._swap(location, there, parted):
                there, begun = parted, begun + len("\n".encode(codec))
        before = _text(there[:begun], location)
        shift = len(keep_ends(before)) - len(keep_ends(_text(data, location)))
        return found.start_line + shift, found.end_line + shift, _text(there, location)

    def _swap(self, location: str, old: bytes, new: bytes) -> bool:
        """Replaces a file; False when it is no longer as it was read."""
        import tempfile  # noqa: PLC0415 - a search has no use for it

        folder = os.path.dirname(location)
        handle = self._opener.open(location, os.O_RDONLY)
        fresh = ""
        try:
            before = os.fstat(handle)
            number, fresh = tempfile.mkstemp(prefix=".", suffix=_FRESH, dir=folder)
            fill(number, new, mode=stat.S_IMODE(before.st_mode))
            with contextlib.suppress(OSError, AttributeError):
                os.chown(fresh, before.st_uid, before.st_gid)
            if not os.access(location, os.W_OK):
                raise PermissionError(13, "no permission to write it")
            if self._bytes(location) != old or not os.path.samestat(before, os.stat(location)):
                return False
            os.replace(fresh, location)
            fresh = ""
            settle(folder)
            self._follow(handle, len(old), location)
            return True
        finally:
            os.close(handle)
            if fresh:
                os.unlink(fresh)

    def _follow(self, handle: int, length: int, location: str) -> None:
        """Copies what another program appended to the old file while the new one took its name."""
        late = _read(handle, length, os.fstat(handle).st_size)
        if late:
            again = self._opener.open(location, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(again, late)
                os.fsync(again)
            finally:
                os.close(again)

    def _sync(self, location: str) -> None:
        """Makes sure that the file is on the disk; if an editor replaced it, the new one is."""
        with contextlib.suppress(FileNotFoundError):
            handle = self._opener.open(location, os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@contextlib.contextmanager
def _explained(location: str) -> Iterator[None]:
    """Turns failures of the file system into a NoteError, of a name into a UsageError."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            message = f"the file name has too many letters: {os.path.basename(location)[:40]}…"
            raise UsageError(message, hint="give it a shorter name") from error
        message = f"{location} cannot be written: {error.strerror or error}"
        mine = (
            made_mine(location, os.path.dirname(location))
            if isinstance(error, PermissionError)
            else ""
        )
        hint = f"{mine or 'check the disk and the permissions'}; the note is as it was"
        raise NoteError(message, hint=hint) from error


def _text(data: bytes, location: str) -> str:
    """The text to edit, with what is broken kept as it is."""
    try:
        return decode_exactly(data)
    except ValueError as error:
        raise UsageError(
            f"{location} cannot be written: {error}", hint="name a Markdown file"
        ) from None


def _read(handle: int, start: int, end: int) -> bytes:
    """The bytes of an open file from one offset to another."""
    os.lseek(handle, start, os.SEEK_SET)
    parts = []
    while start < end and (part := os.read(handle, end - start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
