"""Patterns as in a `.gitignore`, by git's rules, in time that no pattern can blow up. Pure.

Between two stars is a piece that matches a fixed number of characters, and between two `**` a run
of a fixed number of names. For those the leftmost place is always right, so nothing is ever tried
twice.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

MOST_CHARACTERS = 1_000
MOST_STARS = 32
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": re.escape(string.punctuation),
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """The piece between two stars: plain text, or an expression for so many characters."""

    text: str
    expression: re.Pattern[str] | None
    length: int

    def find(self, name: str, start: int, end: int) -> int:
        """The leftmost place in a part of a name, or -1."""
        if self.expression is None:
            return name.find(self.text, start, end)
        found = self.expression.search(name, start, end)
        return found.start() if found else -1


@dataclass(frozen=True, slots=True)
class Part:
    """A pattern for one name of a path: its pieces, with a star between each two."""

    pieces: tuple[Piece, ...]
    shortest: int

    def fits(self, name: str) -> bool:
        """Whether all of a name fits."""
        pieces = self.pieces
        first = pieces[0]
        if len(pieces) == 1:
            return (
                name == first.text
                if first.expression is None
                else first.expression.fullmatch(name) is not None
            )
        last = pieces[-1]
        at, end = first.length, len(name) - last.length
        if (
            len(name) < self.shortest
            or not name.startswith(first.text)
            or not name.endswith(last.text)
        ):
            return False
        if first.expression is not None and first.expression.match(name) is None:
            return False
        if last.expression is not None and last.expression.match(name, end) is None:
            return False
        for piece in pieces[1:-1]:
            at = piece.find(name, at, end)
            if at < 0:
                return False
            at += piece.length
        return True


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern: runs of parts with `**` between them; `loose` if it is for the last name of a
    path alone.
    """

    runs: tuple[tuple[Part, ...], ...]
    loose: bool
    folders_only: bool
    keeps: bool
    cost: int

    def matches(self, names: Sequence[str], *, folder: bool) -> bool:
        """Whether it is a pattern for the path with these names, and not just for a folder on the
        way.
        """
        if self.folders_only and not folder:
            return False
        if self.loose:
            return self.runs[0][0].fits(names[-1])
        first, last = self.runs[0], self.runs[-1]
        end = len(names) - len(last)
        if len(self.runs) == 1:
            return end == 0 and _stands(first, names, 0)
        at = len(first)
        if end < at or not _stands(first, names, 0) or not _stands(last, names, end):
            return False
        for run in self.runs[1:-1]:
            while at <= end - len(run) and not _stands(run, names, at):
                at += 1
            at += len(run)
            if at > end:
                return False
        return True

    def covers(self, names: Sequence[str]) -> bool:
        """Whether it matches a file or a folder on the way to it."""
        steps = range(1, len(names) + 1)
        return any(self.matches(names[:count], folder=count < len(names)) for count in steps)


class PatternList:
    """Patterns of which the last that matches decides; most are known not to match by the end of a
    name alone.
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._exact: dict[str, list[tuple[int, Pattern]]] = {}
        self._by_ending: list[tuple[int, Pattern]] = []
        self._rest: list[tuple[int, Pattern]] = []
        endings: dict[str, None] = {}
        # of equal ones, the last
        last = {pattern: number for number, pattern in enumerate(patterns)}
        for pattern, number in sorted(last.items(), key=lambda item: -item[1]):
            pieces = pattern.runs[-1][-1].pieces
            ending = pieces[-1].text
            if not ending:
                self._rest.append((number, pattern))
            elif len(pieces) == 1:
                self._exact.setdefault(ending, []).append((number, pattern))
            else:
                endings[ending] = None
                self._by_ending.append((number, pattern))
        self._endings = tuple(endings)

    def decides(self, names: Sequence[str], *, folder: bool) -> Pattern | None:
        """The last pattern that matches a path, or None."""
        groups = [
            self._exact.get(names[-1], ()),
            self._by_ending if names[-1].endswith(self._endings) else (),
        ]
        best, found = -1, None
        for group in (*groups, self._rest):
            for number, pattern in group:
                if number < best:
                    break
                if pattern.matches(names, folder=folder):
                    best, found = number, pattern
                    break
        return found


def _stands(run: Sequence[Part], names: Sequence[str], at: int) -> bool:
    for number, part in enumerate(run, start=at):
        if part is not _ANY and not part.fits(names[number]):
            return False
    return True


@lru_cache(maxsize=4096)
def pattern_of(line: str) -> Pattern | None:
    """The pattern of a line; None for an empty one or a comment, ValueError with a reason for an
    odd one.
    """
    text = _without_end(line)
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text[keeps:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        raise ValueError("it names nothing")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
    if text.count("*") > MOST_STARS:
        raise ValueError(f"it has more than {MOST_STARS} stars")
    reader = _Reader(text.removeprefix("/"))
    parts = reader.parts()
    if "/" not in text:
        part = parts[0] or _ANY
        return Pattern(
            ((part,),), loose=True, folders_only=folders_only, keeps=keeps, cost=reader.cost
        )
    if parts[-1] is None:  # `a/**` is what is in a, but not a
        parts.append(_ANY)
    runs: list[list[Part]] = [[]]
    for one in parts:
        if one is not None:
            runs[-1].append(one)
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    cost = reader.cost * len(runs)
    return Pattern(
        tuple(map(tuple, runs)), loose=False, folders_only=folders_only, keeps=keeps, cost=cost
    )


def _without_end(line: str) -> str:
    """A line without the end of a Windows line and without spaces at its end, but for one after a
    backslash.
    """
    line = line.removesuffix("\r")
    text = line.rstrip(" ")
    slashes = len(text) - len(text.rstrip("\\"))
    return text + " " if slashes % 2 and len(text) < len(line) else text


class _Reader:
    """Takes a pattern apart into the parts between its slashes; None means `**`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.cost = 1

    def parts(self) -> list[Part | None]:
        found = [self._part()]
        while self.at < len(self.text):
            self.at += 1  # the slash
            found.append(self._part())
        return found

    def _part(self) -> Part | None:
        pieces: list[list[str | None]] = [[]]  # plain text, or None before an expression
        begun = self.at
        while self.at < len(self.text) and self.text[self.at] != "/":
            char = self.text[self.at]
            self.at += 1
            if char == "*":
                while self.text[self.at : self.at + 1] == "*":
                    self.at += 1
                if (
                    self.at - begun > 1
                    and set(self.text[begun : self.at]) == {"*"}
                    and self._ends()
                ):
                    return None
                pieces.append([])
            elif char == "?":
                pieces[-1] += [None, "."]
            elif char == "[":
                pieces[-1] += [None, self._class()]
            elif char != "\\" or not self.text.startswith("/", self.at):
                pieces[-1].append(self._escaped() if char == "\\" else char)
        made = tuple(map(self._piece, pieces))
        return Part(made, sum(piece.length for piece in made))

    def _ends(self) -> bool:
        return self.text[self.at : self.at + 1] in ("", "/")

    def _escaped(self) -> str:
        if self.at == len(self.text):
            raise ValueError("it ends with a backslash")
        self.at += 1
        return self.text[self.at - 1]

    def _piece(self, chars: Sequence[str | None]) -> Piece:
        if None not in chars:
            text = "".join(char for char in chars if char)
            self.cost += 1 + len(text) // 64
            return Piece(text, None, len(text))
        length = len(chars) - chars.count(None)
        self.cost += length
        source = [
            char if before is None else re.escape(char)
            for before, char in zip(("", *chars), chars, strict=False)
            if char is not None
        ]
        return Piece("", re.compile("".join(source), re.DOTALL), length)

    def _class(self) -> str:
        """What is in brackets, as a class of a regular expression."""
        negated = self.text.startswith(("!", "^"), self.at)
        self.at += negated
        begun = self.at
        found: list[str] = []
        while True:
            char = self._next()
            if char == "]" and self.at - 1 > begun:
                break
            if char == "[" and self.text.startswith(":", self.at):
                found.append(self._named())
                continue
            low = self._escaped() if char == "\\" else char
            high = low
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in (
                "",
                "]",
            ):
                self.at += 1
                char = self._next()
                high = self._escaped() if char == "\\" else char
            if high < low:
                raise ValueError(f"its range {low}-{high} runs backwards")
            found.append(f"{re.escape(low)}-{re.escape(high)}")
        return f"[{'^' * negated}{''.join(found)}]"

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise ValueError("a bracket is not closed")
        self.at += 1
        return self.text[self.at - 1]

    def _named(self) -> str:
        name, closed, _ = self.text[self.at + 1 :].partition(":]")
        if not closed or name not in _CLASSES:
            raise ValueError("it has an unknown class of characters")
        self.at += len(name) + 3
        return _CLASSES[name]


_ANY = Part((Piece("", None, 0), Piece("", None, 0)), 0)
