"""Blocks to chunks: in one piece where they fit, else cut by content, so that an edit moves no
other border.

A section that is too long is cut before each unit with the smallest checksum within half a chunk on
both sides. That depends only on the text nearby: a line inserted at the top of a file changes the
chunk it is in, and none below.
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
from itertools import accumulate, pairwise

from notewell.text.markdown import Parsed, list_items
from notewell.text.words import count_tokens
from notewell.types import Block, BlockKind

_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\s{2,}")
_WORD_GAP = re.compile(r"\s+|(?<=[,、，])")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """How long a chunk may be, and how much it repeats of the one before it, in tokens."""

    tokens: int = 400
    overlap: int = 80


DEFAULT_SIZE = ChunkSize()


@lru_cache(maxsize=64)
def _path_of(heading: tuple[str, ...]) -> str:
    return " > ".join(title for title in heading if title)


def headings_length(heading: tuple[str, ...]) -> int:
    """How many characters of what a model sees come before the text of a passage."""
    path = _path_of(heading)
    return len(path) + 1 if path else 0


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
        """Equal for the same words under the same headings."""
        return hashlib.blake2b(
            self.embed_text.encode("utf-8", "replace"), digest_size=16
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class _Unit:
    """Text that stays together: complete lines, or (`partial`) a piece of one long line."""

    start_line: int
    end_line: int
    text: str
    tokens: int
    partial: bool = False


def chunk(
    parsed: Parsed, size: ChunkSize = DEFAULT_SIZE, *, entries: bool = False
) -> list[Passage]:
    """Passages of at most `size.tokens`; with `entries`, every top-level list item is a passage."""
    passages: list[Passage] = []
    for section in _sections(parsed.blocks or _front_block(parsed)):
        heading = section[-1].heading
        if len(section) == 1 and not (entries and section[0].kind is BlockKind.LIST):
            whole = _lines_unit(parsed, section[0].start_line, section[0].end_line)
            if whole.tokens <= size.tokens - size.overlap:  # most sections need no cut
                passages.append(Passage(whole.start_line, whole.end_line, heading, whole.text))
                continue
        runs: list[list[_Unit]] = [[]]
        for block in section:
            if entries and block.kind is BlockKind.LIST:
                runs += [*(list(_split(item, parsed, size)) for item in _items(parsed, block)), []]
            else:
                runs[-1].extend(_units(parsed, block, size))
        for run in runs:
            passages.extend(
                _passage(parsed, heading, piece) for piece in _pack(_with_gaps(run, parsed), size)
            )
    return [passage for passage in passages if not passage.text.isspace()]


def _front_block(parsed: Parsed) -> list[Block]:
    """The lines between the rules of a note that is only front matter, which is found by them."""
    last = max((n for n, line in enumerate(parsed.lines) if line.strip()), default=0)
    return [Block(BlockKind.PARAGRAPH, 2, last, ())] if parsed.front else []


def _sections(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The blocks under each heading; a heading with neither text nor sub-heading is a section by
    itself.
    """
    section: list[Block] = []
    for i, block in enumerate(blocks):
        if block.kind is not BlockKind.HEADING:
            section.append(block)
            continue
        if section:
            yield section
            section = []
        after = blocks[i + 1] if i + 1 < len(blocks) else None
        if after is None or (
            after.kind is BlockKind.HEADING and len(after.heading) <= len(block.heading)
        ):
            yield [block]
    if section:
        yield section


def _lines_unit(parsed: Parsed, first: int, last: int) -> _Unit:
    text = "\n".join(parsed.lines[first - 1 : last])
    return _Unit(first, last, text, count_tokens(text) + 1)


def _items(parsed: Parsed, block: Block) -> list[_Unit]:
    return [_lines_unit(parsed, first, last) for first, last in list_items(parsed.lines, block)]


def _units(parsed: Parsed, block: Block, size: ChunkSize) -> Iterator[_Unit]:
    whole = _lines_unit(parsed, block.start_line, block.end_line)
    fits = whole.tokens <= size.tokens - size.overlap
    items = [whole] if fits or block.kind is not BlockKind.LIST else _items(parsed, block)
    for item in items:
        yield from _split(item, parsed, size)


def _split(unit: _Unit, parsed: Parsed, size: ChunkSize) -> Iterator[_Unit]:
    """A unit as it is if it fits, else its lines, else pieces of a line."""
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
    """Pieces that join to the line again: cut after sentences, else after words, never inside a
    grapheme.
    """
    for pattern in (_SENTENCE, _WORD_GAP):
        cuts = [m.end() for m in pattern.finditer(line) if 0 < m.end() < len(line)]
        pieces = _take(line, cuts, most)
        if all(count_tokens(p) <= 2 * most for p in pieces):
            yield from pieces
            return
    for piece in pieces:
        yield from (
            [piece]
            if count_tokens(piece) <= 2 * most
            else _take(piece, _grapheme_starts(piece), most)
        )


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
    """The offsets in a text where a cut separates two user-visible characters."""
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
    """Whether a character belongs to the one before it; pairs of flag letters are handled by the
    caller.
    """
    if unicodedata.category(char) in ("Mn", "Mc", "Me") or unicodedata.combining(char):
        return True
    if char in "\u200d\ufe0e\ufe0f" or before == "\u200d" or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    return "\u1160" <= char <= "\u11ff"  # the vowel or final of a decomposed Hangul syllable


def _pack(units: Sequence[_Unit], size: ChunkSize) -> Iterator[list[_Unit]]:
    """Units grouped into chunks; each after the first begins with the tail of the one before it."""
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
    """The units, with the tokens of many blank lines counted in the unit after them."""
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
    starts = list(accumulate((unit.tokens for unit in units), initial=0))
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
    """The last units that fit into `most` tokens; if the last unit is longer, its last
    sentences.
    """
    tail: list[_Unit] = []
    tokens = 0
    for unit in reversed(units):
        if tokens + unit.tokens > most:
            break
        tail.insert(0, unit)
        tokens += unit.tokens
    if tail or not units or most <= 0:
        return tail
    end, line = units[-1].end_line, units[-1].text.rpartition("\n")[2]
    for match in _SENTENCE.finditer(line):
        piece = line[match.end() :]
        if piece and (tokens := count_tokens(piece)) <= most:
            return [_Unit(end, end, piece, tokens, partial=True)]
    return []


def _passage(parsed: Parsed, heading: tuple[str, ...], units: Sequence[_Unit]) -> Passage:
    first, last = units[0].start_line, units[-1].end_line
    if not any(u.partial for u in units):
        return Passage(first, last, heading, "\n".join(parsed.lines[first - 1 : last]))
    text = units[0].text
    for before, unit in pairwise(units):
        text += "\n" * (unit.start_line - before.end_line) + unit.text
    return Passage(first, last, heading, text)


def pieces(text: str, most: int) -> list[str]:
    """Parts of at most `most` tokens that join to the text again: cut after sentences, else words,
    else letters.
    """
    return [text] if count_tokens(text) <= most else list(_split_line(text, max(1, most // 2)))
