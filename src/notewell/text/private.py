"""`<private>` blocks: what of a text they hide. Pure.

A block ends at its own `</private>`, however many blocks are inside of it. One without an end hides
the rest of its section and no more: what stands before the next heading that is not below the one
above the mark. Above all headings it ends at the first one, in front matter at the end of that, and
in a code block at the latest where the code ends. A mark in back quotes is only mentioned.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from notewell.text.markdown import front_matter, parse, split_lines
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
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)")
_FENCE_END = re.compile(r" {0,3}(`{3,}+|~{3,}+)[ \t]*\Z")
_MOST_FRONT = 200  # lines, as `front_matter` reads them
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
        found = found + [Block(m.start(), end, closed=False) for m, end in _with_ends(text, marks)]
    outer: list[Block] = []
    for block in sorted(found, key=lambda one: (one.start, -one.end)):
        if not outer or block.start >= outer[-1].end:
            outer.append(block)
        elif block.end > outer[-1].end:
            outer[-1] = outer[-1]._replace(end=block.end)
    return outer


def balanced(text: str) -> str:
    """A text in which every block ends: one without an end gets it, an end without a beginning is
    written as text.
    """
    marks = _marks(text)
    text = _escaped(text, marks.stray)
    if marks.unclosed:
        text += ("\n" if "\n" in text else "") + CLOSING * len(marks.unclosed)
    return text


def unmarked(text: str) -> str:
    """A text, such as a heading, in which every mark is written as text, so that it opens and ends
    nothing.
    """
    return _escaped(text, _each(text))


def unclosed(safe: str) -> str:
    """From which line on a text, which is without its secrets, lacks a part because the end of a
    block is missing.
    """
    at = safe.find(_SAID)
    return (
        f"private from line {len(split_lines(safe[:at]))} on: its <private> is never closed"
        if at >= 0
        else ""
    )


def is_about_unclosed(reason: str) -> bool:
    """Whether a reason is one that `unclosed` gave."""
    return reason.startswith("private from line ")


def _marks(text: str) -> _Marks:
    found = _Marks([], [], [])
    for mark in _each(text):
        if not mark["close"]:
            found.unclosed.append(mark)
        elif found.unclosed:
            found.blocks.append(Block(found.unclosed.pop().start(), mark.end(), closed=True))
        else:
            found.stray.append(mark)
    return found


def _each(text: str) -> Iterator[re.Match[str]]:
    """The marks of a text that are not only mentioned."""
    # few texts are worth the 1 ms of making it
    for mark in _MARK.finditer(text) if "<" in text else ():
        if not text[mark.start() - 1 : mark.start()] == "`" == text[mark.end() : mark.end() + 1]:
            yield mark


def _escaped(text: str, marks: Iterable[re.Match[str]]) -> str:
    """The text with some of its marks written as text."""
    cuts = [0, *(mark.start() + 1 for mark in marks), len(text) + 1]
    return "&lt;".join(text[begin : end - 1] for begin, end in pairwise(cuts))


def _with_ends(text: str, marks: _Marks) -> Iterator[tuple[re.Match[str], int]]:
    """The marks that no other one closes, in order, each with the place where what it hides
    ends.
    """
    starts = [0, *(one.end() for one in _BREAK.finditer(text))]
    parsed = parse(text)
    headings: list[tuple[int, int]] = []  # the offset of each and its level
    for block in parsed.blocks:
        first, last = parsed.lines[block.start_line - 1], parsed.lines[block.end_line - 1]
        if block.kind is BlockKind.HEADING and not _is_above_a_rule(first, last):
            headings.append((starts[block.start_line - 1], _level(first, last)))
    ends = _ends(headings, len(text))
    offsets = [at for at, _ in headings]
    # A rule below a paragraph makes a heading of it, which may be what is to be hidden.
    hashed = next(
        (at for at in offsets if text[at : at + 4].lstrip(" ").startswith("#")), len(text)
    )
    below_front = _below_front(parsed.lines)
    front = starts[max(0, below_front - 1)]  # the rule below the front matter stays
    code = _Code(parsed.lines, starts, below_front)
    # A block above all headings that does end may mention the mark in code, which then takes the
    # end for its own.
    taken = max(
        (one.end for one in marks.blocks if one.end > (code.end(one.start) or one.end)), default=0
    )
    for mark in marks.unclosed:
        at = mark.start()
        above = bisect_right(offsets, at) - 1
        if at < front:
            yield mark, max(front, taken)
        elif end := code.end(at):
            yield mark, end
        elif above >= 0:
            yield mark, ends[above]
        else:
            yield mark, max(hashed, taken)


def _is_above_a_rule(title: str, underline: str) -> bool:
    """Whether a line is a heading only because three dashes, which most people mean as a rule,
    follow it: it may be the very line to be hidden.
    """
    return underline.strip() == "---" and len(title.strip()) > len("----")


def _below_front(lines: Sequence[str]) -> int:
    """The number of lines of the front matter; a mark in a line of it does not make it prose."""
    return front_matter([_MARK.sub(":", line) for line in lines[:_MOST_FRONT]])[1]


class _Code:
    """The fenced code blocks of a text, by their offsets: from the line that opens one to the line
    that closes it.
    """

    def __init__(self, lines: Sequence[str], starts: Sequence[int], first: int) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        fence = ""
        for line, start in zip(lines[first:], starts[first:], strict=True):
            if not fence:
                if found := _FENCE.match(line):
                    fence = found[1]
                    self._begins.append(start)
            elif (found := _FENCE_END.match(line)) and found[1].startswith(fence):
                fence = ""
                self._ends.append(start)
        if fence:
            self._ends.append(starts[-1] + len(lines[-1]))

    def end(self, at: int) -> int:
        """Where the code block ends that an offset is in; 0 if it is in none."""
        number = bisect_right(self._begins, at) - 1
        return self._ends[number] if number >= 0 and at < self._ends[number] else 0


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
