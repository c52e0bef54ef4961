"""Forgotten text, known by hashes alone, and texts without it: wherever its words stand in a row, however wrapped."""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from recollect.text.entry import keep_ends
from recollect.text.late import late
from recollect.text.words import fold

# Scripts without spaces count by the character, so that a sentence is found inside a longer run.
_WORD = late(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]"
                   r"|(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af])"
                   r"(?:[^\W_]|[\u0300-\u036f]))+")  # fmt: skip
_FENCE = re.compile(r"\s{0,3}(?:`{3,}(?!.*`)|~{3,})")
_STARTS = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])(?:\s|\Z)|\||#{1,6}(?:\s|\Z))")
_ENDS = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|\Z)")
_OPENING = 4
_SHORT = 20


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten unit of text: a hash of its words, a checksum of the first few, and how many there are.

    A few letters say too little to be hidden everywhere: `place` is the hash of the one note they are hidden in.
    """

    hash: str
    opening: int
    words: int
    place: str = ""
    made: str = ""
    receipt: str = ""
    id: str = ""


def units(text: str) -> Iterator[tuple[int, int, str]]:
    """Paragraphs, list items, rows and headings of a text as (first line, last line, text), lines from 1."""
    held: list[str] = []
    first = 1
    for number, line in enumerate([*keep_ends(text), ""], start=1):
        blank, fence = not line.strip(), _FENCE.match(line)
        if held and (blank or fence or _STARTS.match(line) or _HEADING.match(held[-1])):
            yield first, number - 1, "".join(held)
            held = []
        if not blank and not fence:
            first = first if held else number
            held.append(line)


def normal_words(text: str) -> list[str]:
    """The words of a text without case, accents, marks and line breaks."""
    return [_normal(match.group()) for match in _WORD.finditer(text)]


def _normal(word: str) -> str:
    return fold(word if word.isascii() else unicodedata.normalize("NFKC", word))


def text_hash(words: Sequence[str]) -> str:
    """Identity of a text by its words."""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _opening(words: Sequence[str]) -> int:
    return zlib.crc32(" ".join(words[:_OPENING]).encode("utf-8", "replace"))


def tombstones(text: str, path: str, *, made: str = "", receipt: str = "", id: str = "") -> list[Tombstone]:  # noqa: A002
    """One for every unit of a text that has words."""
    found = []
    for _, _, unit in units(text):
        words = normal_words(unit)
        if words:
            short = sum(map(len, words)) < _SHORT
            found.append(
                Tombstone(
                    text_hash(words), _opening(words), len(words), text_hash([path]) if short else "",
                    made, receipt, id,
                )
            )  # fmt: skip
    return found


@dataclass(frozen=True)
class Forgotten:
    """All tombstones of a workspace, ready to be looked for."""

    stones: tuple[Tombstone, ...] = ()
    _by_hash: dict[tuple[str, str], Tombstone] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_hash.update({(one.hash, one.place): one for one in self.stones})

    @cached_property
    def signature(self) -> str:
        """Names this set of tombstones; an index made under another one is looked through again."""
        return text_hash(sorted(one.hash + one.place for one in self.stones)) if self.stones else ""

    @cached_property
    def _openings(self) -> dict[int, dict[int, set[int]]]:
        """By the length of the opening: its checksum, and how many words may follow from there."""
        found: dict[int, dict[int, set[int]]] = {}
        for one in self.stones:
            found.setdefault(min(_OPENING, one.words), {}).setdefault(one.opening, set()).add(one.words)
        return found

    def has(self, text: str, path: str) -> Tombstone | None:
        """The tombstone that hides some of a text in a note, or None."""
        return next((stone for _, _, stone in self._matches(text, path)), None)

    def without(self, text: str, path: str) -> tuple[str, int]:
        """A text without what was forgotten, on the same lines as before, and how many units were left out."""
        spans = [(start, end) for start, end, _ in self._matches(text, path)]
        if not spans:
            return text, 0
        return _blanked(text, spans), len(spans)

    def _matches(self, text: str, path: str) -> Iterator[tuple[int, int, Tombstone]]:
        if not self.stones:
            return
        found = [(m.start(), m.end(), _normal(m.group())) for m in _WORD.finditer(text)]
        words = [word for _, _, word in found]
        place = ""
        at = 0
        while at < len(words):
            step = 1
            for size in sorted({n for k, by in self._openings.items()
                                for n in by.get(_opening(words[at : at + k]), ())}, reverse=True):  # fmt: skip
                if at + size > len(words):
                    continue
                key = text_hash(words[at : at + size])
                start, end = found[at][0], found[at + size - 1][1]
                stone = self._by_hash.get((key, ""))
                if stone is None:
                    place = place or text_hash([path])
                    stone = self._by_hash.get((key, place))
                    if stone is not None and not _whole_lines(text, start, end):
                        stone = None
                if stone is not None:
                    yield start, end, stone
                    step = size
                    break
            at += step


def _whole_lines(text: str, start: int, end: int) -> bool:
    """Whether nothing but marks stands beside a span on its lines."""
    before = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start]
    after = re.split(r"[\r\n]", text[end:], maxsplit=1)[0] if end < len(text) else ""
    return not _WORD.search(before) and not _WORD.search(after)


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without the spans; lines and code blocks that have no word left become blank."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        # Every line of a span is marked, so that it is known which ones lost something.
        parts += [text[at:start], "\x00", *(f"{mark}\x00" for mark in _ENDS.findall(text[start:end]))]
        at = end
    lines = keep_ends("".join((*parts, text[at:])))
    touched = {n for n, line in enumerate(lines) if "\x00" in line}
    lines = [line.replace("\x00", "") for line in lines]
    for n in touched:
        if not _WORD.search(lines[n]):
            lines[n] = _end_of(lines[n])
    for fence in _fences(lines):
        if touched.intersection(fence) and not any(_WORD.search(lines[n]) for n in fence[1:]):
            for n in fence:
                lines[n] = _end_of(lines[n])
    for n in range(1, len(lines)):
        if lines[n].startswith("\n") and lines[n - 1].endswith("\r"):
            lines[n] = " " + lines[n]  # else the two ends would become one, and the lines below move up
    return "".join(lines)


def _fences(lines: Sequence[str]) -> Iterator[range]:
    """The lines of every code block, with its marks; one that is never closed goes to the end."""
    mark, first = "", 0
    for n, line in enumerate(lines):
        match = _FENCE.match(line)
        if match and not mark:
            mark, first = match.group().strip(), n
        elif match and line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            yield range(first, n + 1)
            mark = ""
    if mark:
        yield range(first, len(lines))


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
