"""Hits that touch become one, so that a token budget is not spent twice on the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.types import Candidate, Chunk


def merged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Passages of one note whose lines overlap or follow each other, joined at the place of the better one."""
    out: list[Candidate] = []
    for candidate in candidates:
        for i, kept in enumerate(out):
            if one := joined(kept.chunk, candidate.chunk):
                out[i] = replace(kept, chunk=one)
                break
        else:
            out.append(candidate)
    return out


def joined(first: Chunk, second: Chunk) -> Chunk | None:
    """One passage of two that touch, under the first one's id; None when they are of different places or writers."""
    if first.path != second.path or first.heading != second.heading:
        return None
    if first.origin != second.origin or first.time != second.time:
        return None
    if second.start_line > first.end_line + 2 or first.start_line > second.end_line + 2:
        return None
    ours, theirs = _lines(first), _lines(second)
    if not ours or not theirs:
        return None
    lines = theirs | ours
    start, end = min(first.start_line, second.start_line), max(first.end_line, second.end_line)
    text = "\n".join(lines.get(n, "") for n in range(start, end + 1))
    return replace(first, start_line=start, end_line=end, text=text)


def _lines(chunk: Chunk) -> dict[int, str]:
    """The lines of a chunk by number; none when it holds only a part of a long line."""
    lines = chunk.text.split("\n")
    if len(lines) != chunk.end_line - chunk.start_line + 1:
        return {}
    return dict(enumerate(lines, start=chunk.start_line))
