"""Writing notes on disk: whole or not at all, one writer of ours at a time, keeping what others write meanwhile.

A short text at the end of a file is appended in one write, so nobody else's bytes can get lost. Any other change, also
a long text that a crash could cut in two, writes a new file beside the old one and renames it, after a look whether the
old one is still as it was read; what somebody appends to the old one in that moment is brought over.
"""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import NoteError, StoreBusyError, UsageError
from recollect.sources.files import FileSource, decode
from recollect.store.lock import locked, settle
from recollect.text.entry import Insertion, keep_ends

_TRIES = 20
_ONE_WRITE = 2048
_LOCK_WAIT_S = 30.0
_FRESH = ".recollect-new"


@dataclass(frozen=True, slots=True)
class Written:
    """Where an entry stands now, the whole text around it, and whether the file is new."""

    start_line: int
    end_line: int
    text: str
    created: bool


class Notes:
    """The notes of a workspace that may be written."""

    def __init__(self, source: FileSource, lock_path: Path | None) -> None:
        self.source = source
        self.lock_path = lock_path

    def place(self, path: str) -> tuple[str, str]:
        """The path a note is known by and where it is, resolved; UsageError where none may be written."""
        if not path.strip() or "\0" in path:
            raise UsageError(f"{path!r} is no file name", hint="name a note, such as memory/topic.md")
        asked = os.path.normpath(os.path.join(self.source.root, os.path.expanduser(path)))
        if reason := self.source.refuses(asked):
            raise UsageError(f"{path} cannot be written: {reason}", hint="name a note, such as memory/topic.md")
        real = os.path.realpath(asked)
        if os.path.isdir(real):
            raise UsageError(f"{path} is a folder", hint="name a file in it")
        root = str(self.source.root)
        inside = asked.startswith(root.rstrip(os.sep) + os.sep)
        name = os.path.relpath(asked, root) if inside else asked
        return unicodedata.normalize("NFC", name.replace(os.sep, "/")), real

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One writer of ours at a time, across processes."""
        with locked(self.lock_path, wait_s=_LOCK_WAIT_S) as mine:
            if not mine:
                raise StoreBusyError("another process is writing notes of this workspace", hint="try again")
            yield

    def _sweep(self, location: str) -> None:
        """Takes away what a process that was killed had not yet renamed; under the lock nobody else is at it."""
        folder = os.path.dirname(location)
        with contextlib.suppress(OSError):
            for name in os.listdir(folder) if self.lock_path else ():
                if name.startswith(".") and name.endswith(_FRESH):
                    os.unlink(os.path.join(folder, name))

    def add(self, location: str, compose: Callable[[str], Insertion | None], *, start: str) -> Written | None:
        """Puts in what `compose` makes of the text that is there; a new file begins with `start`.

        `compose` is called under the lock, may be called again when others write meanwhile, and may say None.
        """
        with _explained(location), self.writing():
            written = self._add(location, compose, start)
        if written is not None:
            # After the lock: writers that wait for the disk at the same time wait once, not one after another.
            try:
                _sync_file(location)
            except OSError as error:
                message = f"{location} has the text, but the disk did not confirm it: {error.strerror or error}"
                raise NoteError(message, hint="check the disk, then run it again: twice is once") from error
        return written

    def _add(self, location: str, compose: Callable[[str], Insertion | None], start: str) -> Written | None:
        created = False
        for _ in range(_TRIES):
            try:
                if not os.path.exists(location):
                    created = True
                    _create(location, start, compose)
                data = _bytes(location) if os.path.exists(location) else start.encode()
                text = _text(data, location)
                found = compose(text)
                if found is None:
                    return None
                new = text[: found.offset] + found.text + text[found.offset :]
                if found.offset < len(text) or len(found.text) > _ONE_WRITE:
                    self._sweep(location)
                    if _swap(location, data, _encoded(new, data)):
                        return Written(found.start_line, found.end_line, new, created)
                elif written := _append(location, data, found):
                    return Written(*written, created)
            except OSError:
                if created:
                    _take_back(location, start)
                raise
        raise StoreBusyError(f"{location} keeps changing", hint="try again when the other program is done")

    def change(self, location: str, edit: Callable[[str], str], *, keep: Callable[[bytes], None]) -> bool:
        """Rewrites a note; `keep` gets its bytes first. Returns whether anything changed."""
        with self.writing(), _explained(location):
            self._sweep(location)
            for _ in range(_TRIES):
                data = _bytes(location)
                text = _text(data, location)
                new = edit(text)
                if new == text:
                    return False
                keep(data)
                if _swap(location, data, _encoded(new, data)):
                    return True
        raise StoreBusyError(f"{location} keeps changing", hint="try again when the other program is done")

    def remove(self, location: str, *, keep: Callable[[bytes], None]) -> None:
        """Deletes a note; `keep` gets its bytes first."""
        with self.writing(), _explained(location):
            self._sweep(location)
            keep(_bytes(location))
            os.unlink(location)
            settle(os.path.dirname(location))


@contextlib.contextmanager
def _explained(location: str) -> Iterator[None]:
    """Failures of the file system as ours."""
    try:
        yield
    except OSError as error:
        message = f"{location} cannot be written: {error.strerror or error}"
        raise NoteError(message, hint="check the disk and the permissions; the note is as it was") from error


def _bytes(location: str) -> bytes:
    return Path(location).read_bytes()


def _text(data: bytes, location: str) -> str:
    try:
        return decode(data)
    except ValueError as error:
        raise UsageError(f"{location} cannot be written: {error}", hint="name a Markdown file") from None


def _encoded(text: str, data: bytes) -> bytes:
    """Text in the encoding of the file, with its mark."""
    mark, codec = _codec(data)
    return mark + text.encode(codec)


def _codec(data: bytes) -> tuple[bytes, str]:
    for mark, codec in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")):
        if data.startswith(mark):
            return mark, codec
    return b"", "utf-8"


def _create(location: str, start: str, compose: Callable[[str], Insertion | None]) -> None:
    """A new note with its first lines; whoever made it a moment earlier wins."""
    if compose(start) is None:
        return
    os.makedirs(os.path.dirname(location), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        handle = os.open(location, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(start.encode("utf-8"))


def _take_back(location: str, start: str) -> None:
    """Removes a new note that got no further than its first lines."""
    with contextlib.suppress(OSError):
        if start.encode("utf-8").startswith(_bytes(location)):
            os.unlink(location)


def _append(location: str, data: bytes, found: Insertion) -> tuple[int, int, str] | None:
    """Appends in one write; None when the file that was written is no longer the one of that name."""
    _, codec = _codec(data)
    more = found.text.encode(codec)
    handle = os.open(location, os.O_RDWR | os.O_APPEND)
    try:
        if os.fstat(handle).st_size != len(data):
            return None
        written = os.write(handle, more)
        end = os.lseek(handle, 0, os.SEEK_CUR)
        if written < len(more):  # a full disk: take the piece back, unless somebody wrote behind it
            if os.fstat(handle).st_size == end:
                os.ftruncate(handle, end - written)
            raise OSError(28, "no space left on the device")
        there = _read(handle, 0, end)
        same = os.path.samestat(os.fstat(handle), os.stat(location))
    finally:
        os.close(handle)
    begun = end - len(more)
    if not same and more not in _bytes(location):
        return None  # an editor put its own file in the place of ours: again, into that one
    if begun > len(data) and there[begun - 1 : begun] not in b"\r\n" and more[:1] not in b"\r\n":
        # Somebody left an unfinished line in the moment before our write: the entry must not continue it.
        parted = there[:begun] + "\n".encode(codec) + there[begun:]
        there, begun = (parted, begun + len("\n".encode(codec))) if _swap(location, there, parted) else (there, begun)
    before = _text(there[:begun], location)
    shift = len(keep_ends(before)) - len(keep_ends(_text(data, location)))
    return found.start_line + shift, found.end_line + shift, _text(there, location)


def _swap(location: str, old: bytes, new: bytes) -> bool:
    """Puts a whole new file in the place of one; False when that one is no longer as it was read."""
    import tempfile  # noqa: PLC0415 - a search has no use for it

    folder = os.path.dirname(location)
    handle = os.open(location, os.O_RDONLY)
    fresh = ""
    try:
        before = os.fstat(handle)
        number, fresh = tempfile.mkstemp(prefix=".", suffix=_FRESH, dir=folder)
        with os.fdopen(number, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(fresh, stat.S_IMODE(before.st_mode))
        with contextlib.suppress(OSError, AttributeError):
            os.chown(fresh, before.st_uid, before.st_gid)
        if not os.access(location, os.W_OK):
            raise PermissionError(13, "no permission to write it")
        if _bytes(location) != old or not os.path.samestat(before, os.stat(location)):
            return False
        os.replace(fresh, location)
        fresh = ""
        settle(folder)
        _follow(handle, len(old), location)
        return True
    finally:
        os.close(handle)
        if fresh:
            os.unlink(fresh)


def _read(handle: int, start: int, end: int) -> bytes:
    """The bytes of an open file from one place to another."""
    os.lseek(handle, start, os.SEEK_SET)
    parts = []
    while start < end and (part := os.read(handle, end - start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _follow(handle: int, length: int, location: str) -> None:
    """Brings over what somebody appended to the old file while the new one took its name."""
    late = _read(handle, length, os.fstat(handle).st_size)
    if late:
        again = os.open(location, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(again, late)
            os.fsync(again)
        finally:
            os.close(again)


def _sync_file(location: str) -> None:
    """What was written is on the disk; where an editor put its own file in place meanwhile, that is its business."""
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(location, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
