"""Values to columns and back, as both stores keep them."""

from __future__ import annotations

import datetime as dt
import fnmatch
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from notewell.types import Chunk, Facts

_IN = 900
_HASH_BYTES = 16
_encode = json.JSONEncoder(ensure_ascii=False).encode
_LONGEST = 2048  # no path is as long; a longer glob costs the square of its open brackets
CHUNK = (
    "c.row, c.id, d.path, d.source, c.start_line, c.end_line, c.heading, c.text, c.content_hash,"
    " d.title, d.date, d.evergreen, d.importance, d.pinned, d.supersedes, c.time, c.origin"
)


def in_parts(values: Sequence[Any], most: int = _IN) -> Iterator[Sequence[Any]]:
    """As many values at a time as an IN takes, padded with the last to a power of two: few
    statements are prepared.
    """
    for i in range(0, len(values), most):
        part = list(values[i : i + most])
        yield part + part[-1:] * (min(most, 1 << (len(part) - 1).bit_length()) - len(part))


def chunk_of(r: tuple[Any, ...]) -> Chunk:
    """A chunk from the columns that `CHUNK` names."""
    time = dt.datetime.fromisoformat(r[15]) if r[15] else None
    return Chunk(
        r[1],
        r[2],
        r[3],
        r[4],
        r[5],
        strings(r[6]),
        r[7],
        hash_of(r[8]),
        _facts(r[9:15]),
        r[0],
        time,
        r[16],
    )


def hash_kept(content_hash: str) -> bytes | str:
    """A content hash as SQLite keeps it: as bytes where it is 32 hex digits, else unchanged."""
    try:
        kept = bytes.fromhex(content_hash)
    except ValueError:
        return content_hash
    return kept if len(kept) == _HASH_BYTES and kept.hex() == content_hash else content_hash


def hash_of(kept: bytes | str) -> str:
    """The content hash that `hash_kept` was given."""
    return kept.hex() if isinstance(kept, bytes) else kept


def iso(time: dt.datetime | None) -> str | None:
    """A time as it is kept: to the second."""
    return time.isoformat(timespec="seconds") if time else None


@lru_cache(maxsize=64)
def as_json(strings: tuple[str, ...]) -> str:
    """A tuple as it is kept; the same headings are encoded again and again."""
    return _encode(strings)


@lru_cache(maxsize=8192)
def strings(text: str) -> tuple[str, ...]:
    """The tuple that `as_json` was given; the chunks of a document have the same headings."""
    return tuple(json.loads(text))


@lru_cache(maxsize=4096)
def _facts(columns: tuple[Any, ...]) -> Facts:
    title, date, evergreen, importance, pinned, supersedes = columns
    day = dt.date.fromisoformat(date) if date else None
    return Facts(title, day, bool(evergreen), importance, bool(pinned), strings(supersedes))


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """A predicate over paths: the name of a file or folder, or a glob whose `*` also crosses
    folders.
    """
    pattern = unicodedata.normalize("NFC", pattern.removeprefix("./").rstrip("/"))
    if pattern in ("", "."):
        return lambda _path: True
    if len(pattern) > _LONGEST:
        return lambda _path: False
    glob = re.compile(fnmatch.translate(pattern))
    return lambda path: (
        path == pattern or path.startswith(pattern + "/") or glob.match(path) is not None
    )
