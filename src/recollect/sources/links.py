"""Links that a person or an agent made by hand: `links.jsonl` in the workspace, one object a line.

They are kept in a file of their own because the index may be deleted at any time, and because a note is its
writer's: `link` must not edit it. A line is `{"from": "memory/a.md#heading", "kind": "derives_from", "to": "…"}`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from recollect.errors import NoteError
from recollect.text.links import KIND, place_of
from recollect.text.words import clean
from recollect.types import Edge, End, Notice

LINKS_FILE = "links.jsonl"
_MOST_BYTES = 20_000_000


def read_links(root: Path) -> tuple[list[Edge], list[Notice]]:
    """Every link of the file, and a notice for what in it is none; no file, no links."""
    edges: list[Edge] = []
    broken: list[int] = []
    for number, line in enumerate(_lines(root), start=1):
        edge = _edge(line)
        if edge is not None:
            edges.append(edge)
        elif line.strip():
            broken.append(number)
    if not broken:
        return edges, []
    message = f"{len(broken)} lines of {LINKS_FILE} are no link (line {broken[0]} is the first) and were passed over"
    return edges, [Notice("links_broken", message, 'a link is {"from": path, "kind": kind, "to": path}')]


def _lines(root: Path) -> list[str]:
    try:
        with (root / LINKS_FILE).open("rb") as file:
            return clean(file.read(_MOST_BYTES).decode("utf-8", "replace")).split("\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise NoteError(f"{LINKS_FILE} cannot be read: {error.strerror}", hint="check its permissions") from error


def _edge(line: str) -> Edge | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not all(isinstance(said.get(key), str) for key in ("from", "kind", "to")):
        return None
    start, end = _place(said, "from"), _place(said, "to")
    return Edge(said["kind"], start, end) if start and end and KIND.match(said["kind"]) else None


def _place(said: dict[str, object], side: str) -> End | None:
    place = place_of(str(said[side]))
    content = said.get(f"{side}_content")
    if place is None or not place.name:
        return None
    return End(place.name, place.anchor, content if isinstance(content, str) else "")


def add_link(root: Path, edge: Edge) -> None:
    """Appends a link in one write, on a line of its own whatever the file ends with."""
    line = json.dumps(_said(edge), ensure_ascii=False).encode("utf-8")
    place = root / LINKS_FILE
    try:
        with place.open("a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            if (file.write(line + b"\n") or 0) <= len(line):  # a full disk: no half of a line stays
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
    except OSError as error:
        raise NoteError(f"{place} cannot be written: {error.strerror}", hint="check its permissions") from error


def _said(edge: Edge) -> dict[str, str]:
    said = {"from": written(edge.start), "kind": edge.kind, "to": written(edge.end)}
    for side, place in (("from", edge.start), ("to", edge.end)):
        if place.content:
            said[f"{side}_content"] = place.content
    return said


def written(place: End) -> str:
    """A place as the file has it: `path#anchor`."""
    return f"{place.name}#{place.anchor}" if place.anchor else place.name


def remove_links(root: Path, wanted: Callable[[Edge], bool]) -> list[Edge]:
    """Takes out the links that are wanted out, by a new file in the old one's place; the rest stays byte by byte."""
    place = root / LINKS_FILE
    gone: list[Edge] = []
    kept: list[bytes] = []
    for line in place.read_bytes().splitlines(keepends=True) if place.exists() else []:
        edge = _edge(clean(line.decode("utf-8", "replace")))
        if edge is not None and wanted(edge):
            gone.append(edge)
        else:
            kept.append(line)
    if not gone:
        return []
    try:
        handle, name = tempfile.mkstemp(dir=root, prefix=f".{LINKS_FILE}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(kept)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(place.stat().st_mode & 0o777)
            Path(name).replace(place)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise NoteError(f"{place} cannot be written: {error.strerror}", hint="check its permissions") from error
    return gone
