"""Markdown to blocks with exact line numbers: front matter, headings, fences, tables, lists, paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from recollect.types import Block, BlockKind

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\Z")
_FENCE = re.compile(r" {0,3}(`{3,}(?!.*`)|~{3,})")
_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\Z)")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FRONT_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:[ \t]*(.*)\Z")

FrontValue = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document's lines, its blocks in order and its front matter."""

    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    front: dict[str, FrontValue] = field(default_factory=dict)


def split_lines(text: str) -> list[str]:
    """Lines as editors number them: split at LF, CRLF and CR, and at nothing else."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _plain(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _front_matter(lines: list[str]) -> tuple[dict[str, FrontValue], int]:
    """Keys of a leading `---` block and the index of the line after it; not a block: nothing, 0."""
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    for end in range(1, min(len(lines), 200)):
        if lines[end].rstrip() in ("---", "..."):
            break
    else:
        return {}, 0
    if not all(":" in line or not line.strip() or line[0] in " \t-#[]{}" for line in lines[1:end]):
        return {}, 0  # prose between two rules
    found: dict[str, FrontValue] = {}
    key = ""
    for line in lines[1:end]:
        if key and line.lstrip().startswith("- "):
            before = found[key]
            found[key] = (*(before if isinstance(before, tuple) else ()), _plain(line.lstrip()[2:]))
        elif match := _FRONT_KEY.match(line):
            key, value = match.group(1).lower(), match.group(2).strip()
            if value.startswith("[") and value.endswith("]"):
                found[key] = tuple(_plain(v) for v in value[1:-1].split(",") if v.strip())
            else:
                found[key] = _plain(value)
    return found, end + 1


def parse(text: str) -> Parsed:  # noqa: C901, PLR0912 - one branch for each kind of block
    """Blocks of a Markdown text; every non-blank line outside the front matter is in exactly one block."""
    lines = split_lines(text)
    front, i = _front_matter(lines)
    blocks: list[Block] = []
    stack: list[tuple[int, str]] = []
    heading: tuple[str, ...] = ()
    total = len(lines)

    def add(kind: BlockKind, start: int, end: int) -> None:
        nonlocal heading
        if kind is BlockKind.HEADING:
            heading = tuple([title for _, title in stack])
        blocks.append(Block(kind, start + 1, end, heading))

    while i < total:
        line = lines[i]
        if not line.strip():
            i += 1
            continue
        start = i
        prose = line[0].isalpha() and "|" not in line  # as nearly every line is: none of the forms below
        if not prose and (match := _HEADING.match(line)):
            level, title = len(match.group(1)), _title(match.group(2) or "")
            while stack and stack[-1][0] >= level:
                stack.pop()
            stack.append((level, title))
            i += 1
            add(BlockKind.HEADING, start, i)
        elif not prose and (match := _FENCE.match(line)):
            i = _fence_end(lines, i, match.group(1))
            add(BlockKind.FENCE, start, i)
        elif "|" in line and i + 1 < total and "|" in lines[i + 1] and _TABLE_RULE.match(lines[i + 1]):
            i += 2
            while i < total and lines[i].strip() and "|" in lines[i]:
                i += 1
            add(BlockKind.TABLE, start, i)
        elif not prose and _ITEM.match(line):
            i = _list_end(lines, i)
            add(BlockKind.LIST, start, i)
        else:
            i += 1
            while i < total and ((lines[i][:1].isalpha() and "|" not in lines[i]) or not _breaks_paragraph(lines, i)):
                i += 1
            if i < total and i - start <= 3 and _SETEXT.match(lines[i]) and lines[i].strip():
                level = 1 if lines[i].strip()[0] == "=" else 2
                while stack and stack[-1][0] >= level:
                    stack.pop()
                stack.append((level, " ".join(part.strip() for part in lines[start:i])))
                i += 1
                add(BlockKind.HEADING, start, i)
            else:
                add(BlockKind.PARAGRAPH, start, i)
    return Parsed(tuple(lines), tuple(blocks), front)


def _title(text: str) -> str:
    """The words of a heading, without the number signs that may close it."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare.endswith((" ", "\t")) else text


def _fence_end(lines: list[str], start: int, mark: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\Z")
    for i in range(start + 1, len(lines)):
        if closing.match(lines[i]):
            return i + 1
    return _last_text(lines, start)


def _last_text(lines: list[str], start: int) -> int:
    end = len(lines)
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _breaks_paragraph(lines: list[str], i: int) -> bool:
    line = lines[i]
    return bool(
        not line.strip()
        or _HEADING.match(line)
        or _FENCE.match(line)
        or _ITEM.match(line)
        or (line.strip() and _SETEXT.match(line))
        or ("|" in line and i + 1 < len(lines) and "|" in lines[i + 1] and _TABLE_RULE.match(lines[i + 1]))
    )


def _list_end(lines: list[str], start: int) -> int:
    """One past the last line of a list: blank lines inside are fine when an item or indented text follows."""
    i = start + 1
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            j = i
            while j < len(lines) and not lines[j].strip():
                j += 1
            if j < len(lines) and (_ITEM.match(lines[j]) or lines[j].startswith(("  ", "\t"))):
                i = j
                continue
            return i
        if match := _FENCE.match(line):
            i = _fence_end(lines, i, match.group(1))
            continue
        if _HEADING.match(line):
            return i
        i += 1
    return _last_text(lines, start)


def list_items(lines: tuple[str, ...], block: Block) -> list[tuple[int, int]]:
    """The top-level items of a list block as (first, last) lines, 1-based and inclusive."""
    first = _ITEM.match(lines[block.start_line - 1])
    indent = len(first.group(1)) if first else 0
    starts = [
        n
        for n in range(block.start_line, block.end_line + 1)
        if (match := _ITEM.match(lines[n - 1])) and len(match.group(1)) <= indent
    ]
    ends = [*(n - 1 for n in starts[1:]), block.end_line]
    items = []
    for start, end in zip(starts, ends, strict=True):
        last = end
        while last > start and not lines[last - 1].strip():
            last -= 1
        items.append((start, last))
    return items
