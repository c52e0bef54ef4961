"""Links that a person or an agent made by hand: `links.jsonl` in the workspace, one object a line.

They have their own file because the index may be deleted at any time, and because `link` must not
edit a note, which belongs to its writer. A line is `{"from": "memory/a.md#heading", "kind":
"derives_from", "to": "…"}`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from notewell.errors import NoteError
from notewell.opener import HINT, inside
from notewell.text.link_syntax import KIND, place_of
from notewell.text.words import clean
from notewell.types import Edge, End, Notice

LINKS_FILE = "links.jsonl"
_MOST_BYTES = 20_000_000


def read_links(root: Path) -> tuple[list[Edge], list[Notice]]:
    """Every link of the file, and a notice for what cannot be read of it; none where there is no
    file.
    """
    edges: list[Edge] = []
    broken: list[int] = []
    try:
        lines = clean(_bytes(root).decode("utf-8", "replace")).split("\n")
    except OSError as error:
        message = f"{LINKS_FILE} cannot be read, so its links are missing: {error.strerror}"
        return [], [Notice("links_unread", message, HINT)]
    for number, line in enumerate(lines, start=1):
        edge = _edge(line)
        if edge is not None:
            edges.append(edge)
        elif line.strip():
            broken.append(number)
    if not broken:
        return edges, []
    message = (
        f"{len(broken)} lines of {LINKS_FILE} are not links (the first is line {broken[0]}) "
        "and were skipped"
    )
    return edges, [
        Notice("links_broken", message, 'a link is {"from": path, "kind": kind, "to": path}')
    ]


def _bytes(root: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return inside(root).read(root / LINKS_FILE, most=_MOST_BYTES)
    return b""


def _edge(line: str) -> Edge | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not all(
        isinstance(fields.get(key), str) for key in ("from", "kind", "to")
    ):
        return None
    start, end = _place(fields, "from"), _place(fields, "to")
    return (
        Edge(fields["kind"], start, end) if start and end and KIND.match(fields["kind"]) else None
    )


def _place(fields: dict[str, object], side: str) -> End | None:
    place = place_of(str(fields[side]))
    content = fields.get(f"{side}_content")
    if place is None or not place.name:
        return None
    return End(place.name, place.anchor, content if isinstance(content, str) else "")


def add_link(root: Path, edge: Edge) -> None:
    """Appends a link in one write, on a new line even if the last one has no end."""
    line = json.dumps(_fields(edge), ensure_ascii=False).encode("utf-8")
    place = root / LINKS_FILE
    try:
        handle = inside(root).open(place, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o666)
        with os.fdopen(handle, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end + len(line) >= _MOST_BYTES:
                raise OSError(errno.EFBIG, f"it would be larger than {_MOST_BYTES:,} bytes")
            if end:
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            if (file.write(line + b"\n") or 0) <= len(line):  # a full disk: no half line may stay
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritten(place, error) from error


def _unwritten(place: Path, error: OSError) -> NoteError:
    return NoteError(
        f"{place} cannot be written: {error.strerror}",
        hint=f"check the disk and its permissions; {HINT}",
    )


def _fields(edge: Edge) -> dict[str, str]:
    fields = {"from": written(edge.start), "kind": edge.kind, "to": written(edge.end)}
    for side, place in (("from", edge.start), ("to", edge.end)):
        if place.content:
            fields[f"{side}_content"] = place.content
    return fields


def written(place: End) -> str:
    """A place as the file has it: `path#anchor`."""
    return f"{place.name}#{place.anchor}" if place.anchor else place.name


def remove_links(root: Path, wanted: Callable[[Edge], bool]) -> list[Edge]:
    """Removes links and returns them; all other lines stay as they are, byte by byte."""
    place = root / LINKS_FILE
    gone: list[Edge] = []
    kept: list[bytes] = []
    try:
        lines = _bytes(root).splitlines(keepends=True)
    except OSError as error:
        raise _unwritten(place, error) from error
    for line in lines:
        edge = _edge(clean(line.decode("utf-8", "replace")))
        if edge is not None and wanted(edge):
            gone.append(edge)
        else:
            kept.append(line)
    try:
        if gone:
            inside(root).replace(place, b"".join(kept), mode=place.stat().st_mode & 0o777)
    except OSError as error:
        raise _unwritten(place, error) from error
    return gone
