"""The part of the wire shape for what is done with notes; a search, which most processes are for,
needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from notewell.notes.forget import Receipt, Rewritten
from notewell.notes.remember import Remembered
from notewell.notes.selection import Piece
from notewell.notes.timeline import Entry
from notewell.surfaces.shapes import Shape, plain
from notewell.surfaces.view import first_line
from notewell.types import Chunk, Notice

REMEMBERED = Shape("written path start_line end_line citation id created notices", Remembered)
PIECE = Shape(
    "path start_line end_line citation id source text", Piece, id=str | None, text=str | None
)
REWRITTEN = Shape("*", Rewritten, backup=str | None)
REMOVED = Shape("passages=chunks vectors", Receipt)
PROOF = Shape("proved searched checked still_found lingering", Receipt)
RECEIPT = Shape(
    "receipt=id dry_run passages=pieces everywhere elsewhere"
    " files files_left_alone=kept_files removed tombstones proof",
    Receipt,
    receipt=str | None,
    dry_run=bool,
    passages=[PIECE],
    files=[REWRITTEN],
    removed=REMOVED,
    proof=PROOF,
)
ENTRY = Shape(
    "id citation path start_line end_line heading source origin date=day first_line when by here",
    Entry,
    Chunk,
    first_line=str,
)
TIMELINE = Shape("", entries=[ENTRY], notices=list[Notice])
remembered = REMEMBERED.fill


def timeline(entries: Iterable[Entry], notices: Iterable[Notice]) -> dict[str, Any]:
    """What came before and after."""
    made = [ENTRY.fill(e, e.chunk, first_line=first_line(e.chunk)) for e in entries]
    return {"entries": made, "notices": plain(notices)}


def receipt(one: Receipt) -> dict[str, Any]:
    """What was or would be forgotten; only a preview has the text."""
    pieces = [PIECE.fill(p) | {"text": None if one.id else p.text} for p in one.pieces]
    files, parts = (
        [REWRITTEN.fill(f) for f in one.files],
        {"removed": REMOVED.fill(one), "proof": PROOF.fill(one)},
    )
    return RECEIPT.fill(one, dry_run=not one.id, passages=pieces, files=files, **parts)
