"""`<private>` blocks: what of a text they hide. Pure.

A block ends at its own `</private>`, however many blocks are inside of it. One without an end hides the rest of its
section and no more: what stands before the next heading that is not below the one above the mark. What stands above all
headings has only the note as its section, so there it is the rest of the text. A mark in back quotes is only mentioned.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from notewell.text.markdown import parse, split_lines
from notewell.text.words import UNSEEN, lazy_compile
from notewell.types import BlockKind

UNCLOSED = "private-unclosed"
"""The kind of secret that a block without an end is."""
CLOSING = "</private>"
_NONE = f"[\u200c{UNSEEN}]{{0,8}}+"
_BLANK = f"[ \\t\u200c{UNSEEN}]{{0,8}}+"
_NAME = _NONE.join("private")
_MARK = lazy_compile(f"(?i)<{_BLANK}(?P<close>/)?{_BLANK}{_NAME}{_BLANK}>")
_BREAK = re.compile(r"\r\n|\r|\n")
_SAID = f"[redacted:{UNCLOSED}]"


class Block(NamedTuple):
    """A part of a text that is private, by its offsets, and whether its end is marked."""

    start: int
    end: int
    closed: bool


class _Marks(NamedTuple):
    """The marks of a text: closed blocks, and the places of those that have no other half."""

    blocks: list[Block]
    unclosed: list[re.Match[str]]
    stray: list[re.Match[str]]


def blocks(text: str) -> list[Block]:
    """The private parts of a text in order; of those inside of each other, the outermost."""
    marks = _marks(text)
    found = marks.blocks
    if marks.unclosed:
        found = found + [Block(m.start(), end, closed=False) for m, end in _with_ends(text, marks.unclosed)]
    outer: list[Block] = []
    for block in sorted(found, key=lambda one: (one.start, -one.end)):
        if not outer or block.start >= outer[-1].end:
            outer.append(block)
        elif block.end > outer[-1].end:
            outer[-1] = outer[-1]._replace(end=block.end)
    return outer


def balanced(text: str) -> str:
    """A text in which every block ends: one without an end gets it, an end without a beginning is written as text."""
    marks = _marks(text)
    cuts = [0, *(stray.start() + 1 for stray in marks.stray), len(text) + 1]
    text = "&lt;".join(text[begin : end - 1] for begin, end in pairwise(cuts))
    if marks.unclosed:
        text += ("\n" if "\n" in text else "") + CLOSING * len(marks.unclosed)
    return text


def unclosed(safe: str) -> str:
    """From which line on a text, which is without its secrets, lacks a part because the end of a block is missing."""
    at = safe.find(_SAID)
    return f"private from line {len(split_lines(safe[:at]))} on: its <private> has no end" if at >= 0 else ""


def is_about_unclosed(reason: str) -> bool:
    """Whether a reason is one that `unclosed` gave."""
    return reason.startswith("private from line ")


def _marks(text: str) -> _Marks:
    found = _Marks([], [], [])
    for mark in _MARK.finditer(text) if "<" in text else ():  # few texts are worth the 1 ms of making it
        if text[mark.start() - 1 : mark.start()] == "`" == text[mark.end() : mark.end() + 1]:
            continue
        if not mark["close"]:
            found.unclosed.append(mark)
        elif found.unclosed:
            found.blocks.append(Block(found.unclosed.pop().start(), mark.end(), closed=True))
        else:
            found.stray.append(mark)
    return found


def _with_ends(text: str, marks: list[re.Match[str]]) -> Iterator[tuple[re.Match[str], int]]:
    """Marks, in order, each with the end of its section."""
    starts = [0, *(one.end() for one in _BREAK.finditer(text))]
    parsed = parse(text)
    headings: list[tuple[int, int]] = []  # the offset of each and its level
    for block in parsed.blocks:
        if block.kind is BlockKind.HEADING:
            level = _level(parsed.lines[block.start_line - 1], parsed.lines[block.end_line - 1])
            headings.append((starts[block.start_line - 1], level))
    ends = _ends(headings, len(text))
    offsets = [at for at, _ in headings]
    for mark in marks:
        above = bisect_right(offsets, mark.start()) - 1
        yield mark, ends[above] if above >= 0 else len(text)


def _level(first: str, last: str) -> int:
    bare = first.lstrip()
    if bare.startswith("#"):
        return len(bare) - len(bare.lstrip("#"))
    return 1 if last.lstrip().startswith("=") else 2


def _ends(headings: list[tuple[int, int]], end: int) -> list[int]:
    """Where the section of each heading ends."""
    ends = [end] * len(headings)
    later: dict[int, int] = {}  # of each level, where the nearest heading below begins
    for number in reversed(range(len(headings))):
        at, level = headings[number]
        ends[number] = min((later[one] for one in later if one <= level), default=end)
        later[level] = at
    return ends
