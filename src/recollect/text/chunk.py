"""Blocks to chunks: whole where they fit, cut where the content says, so that an edit moves no border elsewhere.

Inside a section that is too long, a border lies before the unit whose checksum is the smallest within half a chunk
around it. That depends on the text nearby and on nothing before it: a line inserted at the top of a file changes
the chunk it lands in and leaves those below as they were.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from recollect.text.markdown import Parsed, list_items
from recollect.text.words import count_tokens
from recollect.types import Block, BlockKind

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\s{2,}")
_WORD_GAP = re.compile(r"\s+|(?<=[,、，])")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """How long a chunk may be and how much of the one before it repeats, in tokens."""

    tokens: int = 400
    overlap: int = 80


DEFAULT_SIZE = ChunkSize()


@lru_cache(maxsize=64)
def _path_of(heading: tuple[str, ...]) -> str:
    return " > ".join(title for title in heading if title)


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk before it has a document: its lines, headings and text."""

    start_line: int
    end_line: int
    heading: tuple[str, ...]
    text: str

    @property
    def embed_text(self) -> str:
        """What a model sees: the heading path, then the text."""
        path = _path_of(self.heading)
        return f"{path}\n{self.text}" if path else self.text

    @property
    def content_hash(self) -> str:
        """Identity by content: equal wherever the same words stand under the same headings."""
        return hashlib.blake2b(self.embed_text.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class _Unit:
    """Text that stays together: whole lines, or (`partial`) a piece of one long line."""

    start_line: int
    end_line: int
    text: str
    tokens: int
    partial: bool = False


def chunk(parsed: Parsed, size: ChunkSize = DEFAULT_SIZE, *, entries: bool = False) -> list[Passage]:
    """Passages of at most `size.tokens`; with `entries`, every top-level list item is one of its own."""
    passages: list[Passage] = []
    for section in _sections(parsed.blocks):
        heading = section[-1].heading
        if len(section) == 1 and not (entries and section[0].kind is BlockKind.LIST):
            whole = _lines_unit(parsed, section[0].start_line, section[0].end_line)
            if whole.tokens <= size.tokens - size.overlap:  # as most are; nothing to cut
                passages.append(Passage(whole.start_line, whole.end_line, heading, whole.text))
                continue
        runs: list[list[_Unit]] = [[]]
        for block in section:
            if entries and block.kind is BlockKind.LIST:
                for first, last in list_items(parsed.lines, block):
                    runs.append(list(_split(_lines_unit(parsed, first, last), parsed, size)))
                runs.append([])
            else:
                runs[-1].extend(_units(parsed, block, size))
        for run in runs:
            passages.extend(_passage(parsed, heading, piece) for piece in _pack(_with_gaps(run, parsed), size))
    return [passage for passage in passages if not passage.text.isspace()]


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Body blocks under one heading; a heading that has neither body nor sub-heading stands for itself."""
    section: list[Block] = []
    for i, block in enumerate(blocks):
        if block.kind is not BlockKind.HEADING:
            section.append(block)
            continue
        if section:
            yield section
            section = []
        after = blocks[i + 1] if i + 1 < len(blocks) else None
        if after is None or (after.kind is BlockKind.HEADING and len(after.heading) <= len(block.heading)):
            yield [block]
    if section:
        yield section


def _lines_unit(parsed: Parsed, first: int, last: int) -> _Unit:
    text = "\n".join(parsed.lines[first - 1 : last])
    return _Unit(first, last, text, count_tokens(text) + 1)


def _units(parsed: Parsed, block: Block, size: ChunkSize) -> Iterator[_Unit]:
    whole = _lines_unit(parsed, block.start_line, block.end_line)
    if whole.tokens <= size.tokens - size.overlap:
        yield whole
    elif block.kind is BlockKind.LIST:
        for first, last in list_items(parsed.lines, block):
            yield from _split(_lines_unit(parsed, first, last), parsed, size)
    else:
        yield from _split(whole, parsed, size)


def _split(unit: _Unit, parsed: Parsed, size: ChunkSize) -> Iterator[_Unit]:
    """A unit as it is when it fits, else its lines, else pieces of a line."""
    most = size.tokens - size.overlap
    if unit.tokens <= most:
        yield unit
        return
    for number in range(unit.start_line, unit.end_line + 1):
        line = parsed.lines[number - 1]
        tokens = count_tokens(line)
        if tokens <= most:
            yield _Unit(number, number, line, tokens + 1)
        else:
            for piece in _split_line(line, most // 2):
                yield _Unit(number, number, piece, count_tokens(piece), partial=True)


def _split_line(line: str, most: int) -> Iterator[str]:
    """Pieces of one line that join to it again: cut after sentences, else words, never inside a grapheme."""
    for pattern in (_SENTENCE, _WORD_GAP):
        cuts = [m.end() for m in pattern.finditer(line) if 0 < m.end() < len(line)]
        pieces = _take(line, cuts, most)
        if all(count_tokens(p) <= 2 * most for p in pieces):
            yield from pieces
            return
    for piece in _take(line, cuts, most):
        if count_tokens(piece) <= 2 * most:
            yield piece
        else:
            yield from _take(piece, _grapheme_starts(piece), most)


def _take(text: str, cuts: Sequence[int], most: int) -> list[str]:
    """Pieces between allowed cuts, each grown while it stays under `most` tokens."""
    pieces: list[str] = []
    start = last = 0
    tokens = 0
    for cut in (*cuts, len(text)):
        step = count_tokens(text[last:cut])
        if tokens and tokens + step > most:
            pieces.append(text[start:last])
            start, tokens = last, 0
        tokens += step
        last = cut
    pieces.append(text[start:])
    return [p for p in pieces if p]


def _grapheme_starts(text: str) -> list[int]:
    """The places inside a text where a cut separates two user-visible characters."""
    starts: list[int] = []
    flags = 0
    for i, char in enumerate(text):
        flag = "\U0001f1e6" <= char <= "\U0001f1ff"
        before = text[i - 1] if i else ""
        if i and not (flag and flags % 2) and not _continues(before, char):
            starts.append(i)
        flags = flags + 1 if flag else 0
    return starts


def _continues(before: str, char: str) -> bool:
    """Whether a character belongs to the one before it; flags are pairs and counted elsewhere."""
    if unicodedata.category(char) in ("Mn", "Mc", "Me") or unicodedata.combining(char):
        return True
    if char in "\u200d\ufe0e\ufe0f" or before == "\u200d" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    return "\u1160" <= char <= "\u11ff"  # the vowel or the end of a Hangul syllable spelt in letters


def _pack(units: Sequence[_Unit], size: ChunkSize) -> Iterator[list[_Unit]]:
    """Units grouped into chunks, each after the first led by the tail of the one before it."""
    if not units:
        return
    if sum(u.tokens for u in units) <= size.tokens:
        yield list(units)
        return
    before: list[_Unit] = []
    for group in _groups(units, size):
        room = size.tokens - sum(u.tokens for u in group)
        yield [*_tail(before, min(size.overlap, room)), *group]
        before = group


def _with_gaps(units: Sequence[_Unit], parsed: Parsed) -> Sequence[_Unit]:
    """The units, each with the tokens of the blank lines before it where they are many."""
    if len(units) < 2:
        return units
    out = list(units)
    end = units[0].end_line
    for i, unit in enumerate(units):
        if unit.start_line - end > 1:
            blank = "\n".join(parsed.lines[end : unit.start_line - 1])
            if len(blank) > 4:
                out[i] = replace(unit, tokens=unit.tokens + count_tokens(blank))
        end = unit.end_line
    return out


def _groups(units: Sequence[_Unit], size: ChunkSize) -> Iterator[list[_Unit]]:
    most = size.tokens - size.overlap
    reach = max(1, most // 2)
    starts = [0]
    for unit in units:
        starts.append(starts[-1] + unit.tokens)
    keys = [zlib.crc32(unit.text.encode("utf-8", "replace")) for unit in units]
    borders = [0]
    for i in range(1, len(units)):
        if starts[i] < reach or starts[-1] - starts[i] < reach:
            continue
        low = bisect_left(starts, starts[i] - reach, 0, len(units))
        high = bisect_right(starts, starts[i] + reach, 0, len(units))
        if all((keys[i], i) <= (keys[j], j) for j in range(low, high)):
            borders.append(i)
    borders.append(len(units))
    for low, high in pairwise(borders):
        group: list[_Unit] = []
        tokens = 0
        for unit in units[low:high]:
            if group and tokens + unit.tokens > most:
                yield group
                group, tokens = [], 0
            group.append(unit)
            tokens += unit.tokens
        yield group


def _tail(units: Sequence[_Unit], most: int) -> list[_Unit]:
    """The last units that fit into `most` tokens; of a longer last unit, its last sentences."""
    tail: list[_Unit] = []
    tokens = 0
    for unit in reversed(units):
        if tokens + unit.tokens > most:
            break
        tail.insert(0, unit)
        tokens += unit.tokens
    if tail or not units or most <= 0:
        return tail
    last = units[-1]
    line = last.text.rsplit("\n", 1)[-1]
    cuts = [m.end() for m in _SENTENCE.finditer(line) if m.end() < len(line)]
    for cut in cuts:
        piece = line[cut:]
        if count_tokens(piece) <= most:
            return [_Unit(last.end_line, last.end_line, piece, count_tokens(piece), partial=True)]
    return []


def _passage(parsed: Parsed, heading: tuple[str, ...], units: Sequence[_Unit]) -> Passage:
    first, last = units[0].start_line, units[-1].end_line
    if len(units) == 1:
        return Passage(first, last, heading, units[0].text)
    if not any(u.partial for u in units):
        return Passage(first, last, heading, "\n".join(parsed.lines[first - 1 : last]))
    text = units[0].text
    for before, unit in pairwise(units):
        same_line = before.end_line == unit.start_line
        text += unit.text if same_line else "\n" * (unit.start_line - before.end_line) + unit.text
    return Passage(first, last, heading, text)


def pieces(text: str, most: int) -> list[str]:
    """A text in parts of at most `most` tokens that join to it again: cut after sentences, else words, else letters."""
    return [text] if count_tokens(text) <= most else list(_split_line(text, max(1, most // 2)))
