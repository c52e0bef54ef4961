"""Images and sound as documents: a label for people and keywords, and the file for models that can
read it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from notewell.sources.files import opener_of, scan_paths
from notewell.sources.source import Scanned
from notewell.types import Document, Media

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
SOUNDS = {
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".m4a": "audio/mp4",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
}
KINDS = {**IMAGES, **SOUNDS}
_ALT_ENDING = ".txt"
_LONGEST_ALT = 800
_BREAKS = re.compile(r"[\s_.\-]+")


class MediaSource:
    """Images and sound in the paths that the user names; `a.png.txt` is the alt text of `a.png`."""

    name = "media"

    def __init__(self, root: Path, *, paths: Sequence[str], max_bytes: int = 10_000_000) -> None:
        self.root = Path(os.path.realpath(root))
        self.paths = tuple(paths)
        self.max_bytes = max_bytes
        self.opener = opener_of(self.root, self.paths)
        self._locations: dict[str, str] = {}

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """Every image and sound there is now; a file also changes when its alt text does."""
        found = scan_paths(
            self.root,
            self.paths,
            kind=self.name,
            endings=tuple(KINDS),
            max_bytes=self.max_bytes,
            limit="multimodal.max_bytes",
            deadline=deadline,
        )
        documents = tuple(map(_with_alt, found.documents))
        self._locations = {document.path: document.location for document in documents}
        return replace(found, documents=documents)

    def document(self, path: str) -> Document | None:
        return next((d for d in self.scan().documents if d.path == path), None)

    def read(self, document: Document) -> str:
        """The label: name, folder, alt text, and a hash of the content, so that a new picture is a
        new passage.
        """
        data = self.opener.read(document.location, most=self.max_bytes)
        if not data:
            raise ValueError("an empty file")
        path = PurePosixPath(document.path)
        kind = "Image" if path.suffix.casefold() in IMAGES else "Sound"
        folder = path.parent.name
        lines = [
            f"# {_BREAKS.sub(' ', path.stem).strip() or path.name}",
            "",
            f"{kind} {_flat(document.path)}"
            + (f" in {_BREAKS.sub(' ', folder).strip()}" if folder else ""),
            self._alt(document.location),
            f"Content {hashlib.blake2b(data, digest_size=8).hexdigest()}",
        ]
        return "\n".join(line for i, line in enumerate(lines) if line or i == 1)

    def part(self, path: str, label: str) -> Media | None:
        """What a model gets for the chunk of a file: its label, with the file attached.

        None if a scan does not find the path: an index may come from somebody else, and must not
        send a file anywhere.
        """
        location = self._locations.get(path, "")
        if not os.path.isfile(location):  # not scanned yet, or changed since
            found = self.document(path)
            if found is None:
                return None
            location = found.location
        mime = KINDS.get(PurePosixPath(path).suffix.casefold(), "")
        return Media(label, location=location, mime=mime, opener=self.opener)

    def _alt(self, location: str) -> str:
        """The alt text of a file, in one line."""
        try:
            data = self.opener.read(location + _ALT_ENDING, most=4 * _LONGEST_ALT, cut=True)
        except OSError:
            return ""
        return _flat(data.decode("utf-8", "ignore"))[:_LONGEST_ALT]


def _with_alt(document: Document) -> Document:
    try:
        stat = os.stat(document.location + _ALT_ENDING)
    except OSError:
        return document
    changed = max(document.mtime_ns, stat.st_mtime_ns)
    return replace(document, size=document.size + stat.st_size, mtime_ns=changed)


def _flat(text: str) -> str:
    return " ".join(text.split())
