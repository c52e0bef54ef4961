"""What a store's rows about copies, contradictions and replacements mean for each passage: pure,
and without SQL.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from notewell.types import Chunk, Relations

_LINES = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class RelationRows:
    """What the tables hold about some passages; rows that the filters leave out are not in it.

    `heads` maps a row to the row that represents its group of copies, where that is another one.
    `conflicts` maps a row to the (row, id) of each passage that contradicts it. `claims` maps a
    name (the id of a chunk or the path of a document) to the (part, row) of each passage that
    claims to replace it, in ascending order of rows; the part is what follows `#`, or "" for all of
    it. `claimed` maps a row to the names that it claims to replace itself.
    """

    heads: Mapping[int, int] = field(default_factory=dict)
    conflicts: Mapping[int, Sequence[tuple[int, str]]] = field(default_factory=dict)
    claims: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    claimed: Mapping[int, Collection[str]] = field(default_factory=dict)

    def others(self, rows: Iterable[int]) -> list[int]:
        """The rows of `heads` and `conflicts` that are not among these; their chunks are needed as
        well.
        """
        named = {
            *self.heads.values(),
            *(row for against in self.conflicts.values() for row, _ in against),
        }
        return sorted(named.difference(rows))

    def claimants(self) -> list[int]:
        """The rows that claim to replace something; their chunks are needed as well."""
        return sorted({row for found in self.claims.values() for _, row in found})


def names_of(chunks: Iterable[Chunk]) -> list[str]:
    """The names under which these chunks can be replaced: their ids and their paths."""
    return list({name for chunk in chunks for name in (chunk.id, chunk.path)})


def resolve(
    rows: Sequence[int], found: RelationRows, chunks: Mapping[int, Chunk]
) -> dict[int, Relations]:
    """The relations of each row that has any; `chunks` holds the asked, the other and the claiming
    rows.

    What is returned for one row does not depend on which others are asked for.
    """
    asked = [*rows, *found.others(rows)] if found.claims else []
    successors = _successors([chunks[row] for row in asked if row in chunks], found, chunks)
    # A pinned passage stays visible even where another claims to replace it.
    hidden = {row: by for row, by in successors.items() if not chunks[row].facts.pinned}
    # An older copy of a replaced passage is replaced too, or it would come back in its place.
    for row, head in found.heads.items():
        if head in hidden and hidden[head] != row:
            successors.setdefault(row, hidden[head])
    out: dict[int, Relations] = {}
    for row in rows:
        by = chunks.get(successors.get(row) or found.heads.get(row) or 0)
        # A contradiction by a passage that was itself replaced is not worth a warning.
        against = tuple(
            sorted(name for other, name in found.conflicts.get(row, ()) if other not in hidden)
        )
        if by is not None:
            out[row] = Relations(by.id, by.citation, row not in successors, against)
        elif against:
            out[row] = Relations(conflicts_with=against)
    return out


def _successors(
    asked: Iterable[Chunk], found: RelationRows, chunks: Mapping[int, Chunk]
) -> dict[int, int]:
    """The row that replaces each chunk, its part of a document or all of the document, by the first
    valid claim.
    """
    out: dict[int, int] = {}
    for chunk in asked:
        claims = [(row, True) for _, row in found.claims.get(chunk.id, ())]
        claims += [
            (row, bool(part))
            for part, row in found.claims.get(chunk.path, ())
            if is_part(part, chunk)
        ]
        for row, precise in claims:
            by = chunks.get(row)
            if by is not None and _is_valid(
                by, chunk, precise=precise, claimed=found.claimed.get(chunk.row, ())
            ):
                out[chunk.row] = row
                break
    return out


def _is_valid(by: Chunk, chunk: Chunk, *, precise: bool, claimed: Collection[str]) -> bool:
    """Whether one chunk may replace another: not itself, not where each claims the other, not its
    own document.
    """
    if by.row == chunk.row or by.id in claimed or by.path in claimed:
        return False
    return precise or by.path != chunk.path


def is_part(part: str, chunk: Chunk) -> bool:
    """Whether a chunk is in the part of a document that follows `#`: lines that it touches, or a
    heading above it.
    """
    if not part:
        return True
    if lines := _LINES.match(part):
        first, last = int(lines[1]), int(lines[2] or lines[1])
        return chunk.start_line <= last and chunk.end_line >= first
    wanted = _slug(part)
    return any(_slug(title) == wanted for title in chunk.heading)


def _slug(title: str) -> str:
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")
