"""Markdown to blocks with exact line numbers: front matter, headings, fences, tables, lists,
paragraphs.

Quotes, rules, HTML and indented code are paragraphs. Where else this differs from CommonMark on
purpose is listed in `tests/text/test_markdown_oracle.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from notewell.types import Block, BlockKind

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z")
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)")
_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\Z)")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FRONT_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)\Z")

FrontValue = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The lines of a document, its blocks in order and its front matter."""

    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    front: dict[str, FrontValue] = field(default_factory=dict)


def split_lines(text: str) -> list[str]:
    """The lines as editors number them: split at LF, CRLF and CR only."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def front_matter(lines: list[str]) -> tuple[dict[str, FrontValue], int]:
    """The keys of a leading `---` block and the index of the line after it; without such a block,
    nothing and 0.
    """
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    end = next(
        (n for n in range(1, min(len(lines), 200)) if lines[n].rstrip() in ("---", "...")), 0
    )
    if not all(":" in line or not line.strip() or line[0] in " \t-#[]{}" for line in lines[1:end]):
        end = 0  # prose between two rules
    found: dict[str, FrontValue] = {}
    key = ""
    for line in lines[1:end]:
        if key and line.lstrip().startswith("- "):
            before = found[key]
            found[key] = (
                *(before if isinstance(before, tuple) else ()),
                _unquoted(line.lstrip()[2:]),
            )
        elif match := _FRONT_KEY.match(line):
            key, value = match.group(1).lower(), match.group(2).strip()
            if value.startswith("[") and value.endswith("]"):
                found[key] = tuple(_unquoted(v) for v in value[1:-1].split(",") if v.strip())
            else:
                found[key] = _unquoted(value)
    return found, end + 1 if end else 0


def parse(text: str) -> Parsed:
    """The blocks of a Markdown text; every non-blank line outside the front matter is in exactly
    one block.
    """
    lines = split_lines(text)
    front, i = front_matter(lines)
    blocks: list[Block] = []
    path: list[tuple[int, str]] = []
    heading: tuple[str, ...] = ()
    while i < len(lines):
        if not lines[i].strip():
            i += 1
            continue
        start = i
        kind, i, opened = _block_at(lines, start)
        if opened:
            while path and path[-1][0] >= opened[0]:
                path.pop()
            path.append(opened)
            heading = tuple([title for _, title in path])
        blocks.append(Block(kind, start + 1, i, heading))
    return Parsed(tuple(lines), tuple(blocks), front)


def _block_at(lines: list[str], start: int) -> tuple[BlockKind, int, tuple[int, str] | None]:
    """The kind of the block that starts at a line, the index of the line after it, and a heading's
    level and title.
    """
    line = lines[start]
    if not _is_prose(line):
        if match := _HEADING.match(line):
            return BlockKind.HEADING, start + 1, (len(match.group(1)), _title(match.group(2) or ""))
        if match := _FENCE.match(line):
            return BlockKind.FENCE, _fence_end(lines, start, match.group(1)), None
        if _is_table(lines, start):
            return BlockKind.TABLE, _table_end(lines, start), None
        if _ITEM.match(line):
            return BlockKind.LIST, _list_end(lines, start), None
    end = start + 1
    while end < len(lines) and (_is_prose(lines[end]) or not _breaks_paragraph(lines, end)):
        end += 1
    if end < len(lines) and end - start <= 3 and (underline := _SETEXT.match(lines[end])):
        title = " ".join(part.strip() for part in lines[start:end])
        return BlockKind.HEADING, end + 1, (1 if underline.group(1)[0] == "=" else 2, title)
    return BlockKind.PARAGRAPH, end, None


def _is_prose(line: str) -> bool:
    """A quick test that nearly every line passes: no block but a paragraph starts with a letter and
    has no `|`.
    """
    return line[:1].isalpha() and "|" not in line


def _is_table(lines: list[str], i: int) -> bool:
    rule = lines[i + 1] if "|" in lines[i] and i + 1 < len(lines) else ""
    return "|" in rule and _TABLE_RULE.match(rule) is not None


def _table_end(lines: list[str], start: int) -> int:
    end = start + 2
    while end < len(lines) and lines[end].strip() and "|" in lines[end]:
        end += 1
    return end


def _title(text: str) -> str:
    """The text of a heading, without closing number signs."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare.endswith((" ", "\t")) else text


def _fence_end(lines: list[str], start: int, mark: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\Z")
    for i in range(start + 1, len(lines)):
        if closing.match(lines[i]):
            return i + 1
    return _last_text(lines, start, len(lines))


def _last_text(lines: Sequence[str], start: int, end: int) -> int:
    """The index after the last line before `end` that is not blank; at least the one after
    `start`.
    """
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _breaks_paragraph(lines: list[str], i: int) -> bool:
    line = lines[i]
    if (
        not line.strip()
        or _HEADING.match(line)
        or _FENCE.match(line)
        or _ITEM.match(line)
        or _SETEXT.match(line)
    ):
        return True
    return _is_table(lines, i)


def _list_end(lines: list[str], start: int) -> int:
    """The index of the line after a list; blank lines belong to it if an item or indented text
    follows.
    """
    i = start + 1
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            after = next((j for j in range(i, len(lines)) if lines[j].strip()), len(lines))
            if after == len(lines) or not (
                _ITEM.match(lines[after]) or lines[after].startswith(("  ", "\t"))
            ):
                return i
            i = after
        elif match := _FENCE.match(line):
            i = _fence_end(lines, i, match.group(1))
        elif _HEADING.match(line):
            return i
        else:
            i += 1
    return _last_text(lines, start, len(lines))


def list_items(lines: tuple[str, ...], block: Block) -> list[tuple[int, int]]:
    """The top-level items of a list block as (first, last) lines, 1-based and inclusive."""
    first = _ITEM.match(lines[block.start_line - 1])
    indent = len(first.group(1)) if first else 0
    numbers = range(block.start_line, block.end_line + 1)
    starts = [
        n for n in numbers if (match := _ITEM.match(lines[n - 1])) and len(match.group(1)) <= indent
    ]
    ends = [*(n - 1 for n in starts[1:]), block.end_line]
    return [
        (start, _last_text(lines, start - 1, end)) for start, end in zip(starts, ends, strict=True)
    ]
