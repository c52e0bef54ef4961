"""Images and sound as documents: one label each for keywords and people, and the file itself for models that see."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from recollect.ports import Scanned
from recollect.sources.files import scan_paths
from recollect.types import Document, Media

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif"}
SOUNDS = {
    ".mp3": "audio/mpeg", ".wav": "audio/wav", ".m4a": "audio/mp4", ".ogg": "audio/ogg", ".flac": "audio/flac",
}  # fmt: skip
KINDS = {**IMAGES, **SOUNDS}
_ALT_ENDING = ".txt"
_LONGEST_ALT = 800
_BREAKS = re.compile(r"[\s_.\-]+")


class MediaSource:
    """Images and sound of the paths that the user names; `a.png.txt` is the alt text of `a.png`."""

    name = "media"

    def __init__(self, root: Path, *, paths: Sequence[str], max_bytes: int = 10_000_000) -> None:
        self.root = Path(os.path.realpath(root))
        self.paths = tuple(paths)
        self.max_bytes = max_bytes
        self._locations: dict[str, str] | None = None

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """Every image and sound that is there now; a change of its alt text is a change of it."""
        found = scan_paths(
            self.root, self.paths, kind=self.name, endings=tuple(KINDS), max_bytes=self.max_bytes,
            limit="multimodal.max_bytes", deadline=deadline,
        )  # fmt: skip
        documents = tuple(map(_with_alt, found.documents))
        self._locations = {document.path: document.location for document in documents}
        return replace(found, documents=documents)

    def read(self, document: Document) -> str:
        """The label: name, folder, alt text, and a mark of the content so that another picture is another passage."""
        data = Path(document.location).read_bytes()
        if not data:
            raise ValueError("an empty file")
        path = PurePosixPath(document.path)
        kind = "Image" if path.suffix.casefold() in IMAGES else "Sound"
        folder = path.parent.name
        lines = [
            f"# {_BREAKS.sub(' ', path.stem).strip() or path.name}",
            "",
            f"{kind} {_flat(document.path)}" + (f" in {_BREAKS.sub(' ', folder).strip()}" if folder else ""),
            _alt(document.location),
            f"Content {hashlib.blake2b(data, digest_size=8).hexdigest()}",
        ]
        return "\n".join(line for i, line in enumerate(lines) if line or i == 1)

    def part(self, path: str, label: str) -> Media | None:
        """What a model is given for the chunk of a file: its label, with the file attached.

        None for a path that a scan does not find: an index may come from somebody else, and its word alone must not
        send a file anywhere.
        """
        if self._locations is None:
            self.scan()
        location = (self._locations or {}).get(path)
        if location is None:
            return None
        return Media(label, location=location, mime=KINDS.get(PurePosixPath(path).suffix.casefold(), ""))


def _with_alt(document: Document) -> Document:
    try:
        stat = os.stat(document.location + _ALT_ENDING)
    except OSError:
        return document
    changed = max(document.mtime_ns, stat.st_mtime_ns)
    return replace(document, size=document.size + stat.st_size, mtime_ns=changed)


def _alt(location: str) -> str:
    """The alt text of a file, in one line."""
    try:
        data = Path(location + _ALT_ENDING).read_bytes()[: 4 * _LONGEST_ALT]
    except OSError:
        return ""
    return _flat(data.decode("utf-8", "ignore"))[:_LONGEST_ALT]


def _flat(text: str) -> str:
    return " ".join(text.split())


__all__ = ["KINDS", "MediaSource"]
