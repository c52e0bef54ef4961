"""Forgotten text, known only by hashes, and how it is left out of a text: wherever its words follow
each other.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from notewell.text.note_edit import keep_ends
from notewell.text.words import UNSEEN_IN_WORDS, fold, lazy_compile, visible

# Scripts without spaces count by the character, so that a sentence is found inside a longer run.
_SPACELESS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
)
_LETTERS = rf"[^\W_{_SPACELESS}\u0300-\u036f]+|[\u0300-\u034e\u0350-\u036f]"
# What nobody sees inside a word is not there, as in `words.py`.
_WORD = lazy_compile(rf"[{_SPACELESS}]|(?:{_LETTERS})(?:(?:{UNSEEN_IN_WORDS})*(?:{_LETTERS}))*")
_FENCE = re.compile(r"\s{0,3}(?:`{3,}+(?!.*`)|~{3,}+)")
_STARTS = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])(?:\s|\Z)|\||#{1,6}(?:\s|\Z))")
_ENDS = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|\Z)")
_LOST = "\udc00"  # no text has it: a broken byte of a file is at least \udc80
_OPENING = 4
_SHORT = 20


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten unit of text: a hash of its words, a checksum of the first few, and how many
    there are.

    `place` is the hash of the one note it is hidden in, and empty where it is hidden everywhere. A
    few letters are too common for that: they are hidden in their note alone, and only where they
    fill a line.
    """

    hash: str
    opening: int
    words: int
    place: str = ""
    made: str = ""
    receipt: str = ""
    id: str = ""
    lifted: bool = False

    @property
    def story(self) -> str:
        """When and how it was forgotten, in words."""
        return f"forgotten on {self.made[:10]} (receipt {self.receipt})" + (
            "" if self.place else ", in every note"
        )


def units(text: str) -> Iterator[tuple[int, int, str]]:
    """Paragraphs, list items, rows and headings of a text as (first line, last line, text), lines
    from 1.
    """
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
    return fold(
        word
        if word.isascii()
        else unicodedata.normalize("NFKC", word if word.isalnum() else visible(word))
    )


def text_hash(words: Sequence[str]) -> str:
    """Identity of a text by its words."""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _opening(words: Sequence[str]) -> int:
    return zlib.crc32(" ".join(words[:_OPENING]).encode("utf-8", "replace"))


def tombstones(
    text: str,
    path: str,
    *,
    everywhere: bool = False,
    made: str = "",
    receipt: str = "",
    id: str = "",  # noqa: A002
) -> list[Tombstone]:
    """One for every unit of a text that has words; `everywhere` they hide it in every note, else in
    this one.
    """
    found = []
    for words in filter(None, (normal_words(unit) for _, _, unit in units(text))):
        place = "" if everywhere and not _is_short(words) else place_of_note(path)
        found.append(
            Tombstone(text_hash(words), _opening(words), len(words), place, made, receipt, id)
        )
    return found


def place_of_note(path: str) -> str:
    """The `place` of tombstones for one note."""
    return text_hash([path])


def _is_short(words: Sequence[str]) -> bool:
    return sum(map(len, words)) < _SHORT


@dataclass(frozen=True)
class Forgotten:
    """All tombstones of a workspace, and finding them in a text."""

    stones: tuple[Tombstone, ...] = ()
    long_only: bool = False
    _by_hash: dict[tuple[str, str], Tombstone] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        self._by_hash.update({(one.hash, one.place): one for one in self.stones})

    @cached_property
    def signature(self) -> str:
        """A hash of this set; documents that were indexed under another set are read again."""
        return (
            text_hash(sorted({one.hash + one.place for one in self.stones})) if self.stones else ""
        )

    @cached_property
    def _openings(self) -> dict[int, dict[int, set[int]]]:
        """By the length of the opening: its checksum, and how many words a tombstone that starts so
        has.
        """
        found: dict[int, dict[int, set[int]]] = {}
        for one in self.stones:
            found.setdefault(min(_OPENING, one.words), {}).setdefault(one.opening, set()).add(
                one.words
            )
        return found

    @cached_property
    def in_any_note(self) -> Forgotten:
        """The same text in whichever note it is, without what is too short to be told apart."""
        return Forgotten(tuple(replace(one, place="") for one in self.stones), long_only=True)

    def has(self, text: str, path: str) -> Tombstone | None:
        """The tombstone that hides some of a text in a note, or None."""
        return next(iter(self.found(text, path)), None)

    def found(self, text: str, path: str) -> Iterator[Tombstone]:
        """The tombstones that hide some of a text in a note."""
        return (stone for _, _, stone in self._matches(text, path))

    def without(self, text: str, path: str) -> tuple[str, int]:
        """A text without what was forgotten, on the same lines as before, and how many units were
        left out.
        """
        spans = [(start, end) for start, end, _ in self._matches(text, path)]
        return (_blanked(text, spans), len(spans)) if spans else (text, 0)

    def _matches(self, text: str, path: str) -> Iterator[tuple[int, int, Tombstone]]:
        if not self.stones:
            return
        found = [(m.start(), m.end(), _normal(m.group())) for m in _WORD.finditer(text)]
        words = [word for _, _, word in found]
        place = ""
        at = 0
        while at < len(words):
            step = 1
            for size in sorted(
                {
                    n
                    for k, by in self._openings.items()
                    for n in by.get(_opening(words[at : at + k]), ())
                },
                reverse=True,
            ):
                if at + size > len(words):
                    continue
                key = text_hash(words[at : at + size])
                start, end = found[at][0], found[at + size - 1][1]
                stone = self._by_hash.get((key, ""))
                if stone is None:
                    place = place or place_of_note(path)
                    stone = self._by_hash.get((key, place))
                if stone is not None and _is_short(words[at : at + size]):
                    stone = stone if not self.long_only and _whole_lines(text, start, end) else None
                if stone is not None:
                    yield start, end, stone
                    step = size
                    break
            at += step


def _whole_lines(text: str, start: int, end: int) -> bool:
    """Whether a span has nothing but marks next to it on its lines."""
    before = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1 : start]
    after = re.split(r"[\r\n]", text[end:], maxsplit=1)[0] if end < len(text) else ""
    return not _WORD.search(before) and not _WORD.search(after)


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text without the spans; lines, code blocks and sections without a word left become
    blank.
    """
    parts: list[str] = []
    at = 0
    for start, end in spans:
        # A mark on every line of a span shows later which lines lost something.
        parts += [
            text[at:start],
            _LOST,
            *(f"{mark}{_LOST}" for mark in _ENDS.findall(text[start:end])),
        ]
        at = end
    lines = keep_ends("".join((*parts, text[at:])))
    touched = {n for n, line in enumerate(lines) if _LOST in line}
    lines = [line.replace(_LOST, "") for line in lines]
    for n in touched:
        if not _WORD.search(lines[n]):
            lines[n] = _end_of(lines[n])
    for fence in _fences(lines):
        if touched.intersection(fence) and not any(_WORD.search(lines[n]) for n in fence[1:]):
            for n in fence:
                lines[n] = _end_of(lines[n])
    for n in sorted(touched, reverse=True):
        _drop_heading(lines, n)
    for n in range(1, len(lines)):
        if lines[n].startswith("\n") and lines[n - 1].endswith("\r"):
            # else the two ends would become one, and the lines below move up
            lines[n] = " " + lines[n]
    return "".join(lines)


def _drop_heading(lines: list[str], at: int) -> None:
    """Blanks the heading of the section that a line is in, if the section has nothing else and the
    line is blank.
    """
    above = next((n for n in range(at, -1, -1) if lines[n].strip()), at)
    own = _HEADING.match(lines[above]) if above < at else None
    other = _HEADING.match(next((line for line in lines[at:] if line.strip()), "#"))
    if own and other and len(other.group(1)) <= len(own.group(1)):
        lines[above] = _end_of(lines[above])


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
