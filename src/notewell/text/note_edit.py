"""Where a new memory goes in a note, and how lines are cut out again. Pure; `cut` undoes
`insertion` to the byte.

That works because `insertion` puts a text below a new blank line, below the list item that it
continues, or below a heading that it adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from notewell.text.markdown import front_matter, parse, split_lines
from notewell.text.words import clean
from notewell.types import BlockKind

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ENDS = re.compile(r"\r\n|\r|\n")
_BLANK_ABOVE = re.compile(r"\A(?:[^\S\n]*\n)+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|\Z)")
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)")
_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z)")
_RULE = re.compile(r"(?:---|\.\.\.)\s*\Z")
_TAG = re.compile(r"[^\w/-]+")


@dataclass(frozen=True, slots=True)
class Insertion:
    """What to insert at which offset, and the lines (from 1) of the entry afterwards."""

    offset: int
    text: str
    start_line: int
    end_line: int


def keep_ends(text: str) -> list[str]:
    """The lines of a text with their line ends, as editors number them."""
    return _LINE.findall(text)


def tidy(text: str) -> str:
    """A text fit for a note: no control characters, no blank lines around it, every fence
    closed.
    """
    text = _CONTROL.sub("", clean(_ENDS.sub("\n", text).replace("\x00", "")))
    text = _BLANK_ABOVE.sub("", text.rstrip())
    mark = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not mark and found:
            mark = found[1]
        elif mark and re.match(rf" {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\Z", line):
            mark = ""
    return f"{text}\n{mark}" if mark else text


def nested(text: str, least: int) -> str:
    """A text whose headings are at level `least` or below, so that they do not cover what is
    written after it.
    """
    lines = text.split("\n")
    levels: dict[int, int] = {}
    mark = ""
    for n, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and (not mark or line.strip().startswith(mark)):
            mark = "" if mark else fence[1]
        elif not mark and (found := _HEADING.match(line)):
            levels[n] = len(found[1])
    deeper = least - min(levels.values(), default=least)
    if deeper <= 0:
        return text
    for n, level in levels.items():
        lines[n] = lines[n].replace("#" * level, "#" * min(6, level + deeper), 1)
    return "\n".join(lines)


def with_tags(text: str, tags: Sequence[str]) -> str:
    """A text with its tags at the end: on its line if it is one line, else on a line below."""
    words = [name for tag in tags if (name := _TAG.sub("-", tag.strip().lstrip("#")).strip("-"))]
    marks = " ".join(f"#{name}" for name in dict.fromkeys(words))
    if not marks:
        return text
    return f"{text}\n\n{marks}" if "\n" in text or text.startswith("#") else f"{text} {marks}"


def insertion(
    text: str, entry: str, *, heading: str = "", own_heading: str = "", bullets: bool = False
) -> Insertion:
    """Where an entry goes: the end of the text, or of the section called `heading`, which is added
    when missing.

    `own_heading` is always added; with `bullets`, or after a list, a single paragraph becomes an
    item of a list.
    """
    eol = _newline(text)
    lines = keep_ends(text)
    place, listed, found = _place(text, len(lines), "" if own_heading else heading)
    # In a fence that is never closed a list can end in what looks like a heading, and `cut` takes
    # it for one.
    listed = listed and not _HEADING.match(lines[place - 1])
    title = own_heading or ("" if found else heading)
    continues = listed and not title
    item = (bullets or continues) and _is_plain(entry)
    if item and not _ITEM.match(entry):
        entry = "- " + entry.replace("\n", "\n  ")
    entry = _kept_in(text, entry)
    before = "".join(lines[:place])
    ended = not before or before.endswith(("\n", "\r"))
    if before:
        blanks = (0 if ended else 1) + (0 if continues and item else 1)
    else:
        blanks = 1 if _RULE.match(entry.partition("\n")[0]) else 0
    top = f"## {title}{eol}" if title else ""
    tail = (eol if ended else "") + (eol if _would_underline(lines, place) else "")
    # without an end, the first break only ends a line
    start = len(keep_ends(before)) + blanks + ended + bool(title)
    made = f"{eol * blanks}{top}{entry.replace(chr(10), eol)}{tail}"
    return Insertion(len(before), made, start, start + entry.count("\n"))


def _would_underline(lines: Sequence[str], place: int) -> bool:
    """Whether a heading with an underline follows, which would take in the entry unless a blank
    line parts them.
    """
    return place < len(lines) and bool(lines[place].strip()) and not _HEADING.match(lines[place])


def _place(text: str, total: int, heading: str) -> tuple[int, bool, bool]:
    """After which line an entry goes, whether a list ends there, and whether its heading exists."""
    blocks = parse(text).blocks
    for number, block in enumerate(blocks if heading else ()):
        if block.kind is BlockKind.HEADING and _same(block.heading[-1], heading):
            body = block
            for after in blocks[number + 1 :]:
                if after.kind is BlockKind.HEADING:
                    break
                body = after
            return body.end_line, body.kind is BlockKind.LIST, True
    listed = bool(blocks) and blocks[-1].kind is BlockKind.LIST and blocks[-1].end_line == total
    return total, listed, not heading


def cut(text: str, start_line: int, end_line: int) -> str:
    """A text without some of its lines, the blank line above them, and a heading that has only them
    below it.
    """
    lines = keep_ends(text)
    ended = text.endswith(("\n", "\r"))
    last = end_line >= len(lines)
    kept, rest = lines[: start_line - 1], lines[end_line:]
    if kept and not kept[-1].strip():
        kept.pop()
    elif kept and (match := _HEADING.match(kept[-1])) and len(match[1]) > 1:
        below = next((line for line in rest if line.strip()), "")
        under = _HEADING.match(below)
        if not below or (under and len(under[1]) <= len(match[1])):
            kept.pop()
            if kept and not kept[-1].strip():
                kept.pop()
    if last and not ended and kept:
        kept[-1] = kept[-1].rstrip("\r\n")
    return "".join((*kept, *rest))


def with_front(text: str, key: str, value: str) -> str:
    """A note whose front matter has a key once, with this value; without a value the key is taken
    out.
    """
    lines, end = keep_ends(text), front_matter(split_lines(text))[1]
    # after a CR alone, an LF would join it
    eol = _newline(text) if not text.startswith("\n") else "\n"
    own = re.compile(rf"{re.escape(key)}[ \t]*:", re.IGNORECASE)
    kept = [line for line in lines[1 : max(1, end - 1)] if not own.match(line)]
    if value:
        kept.append(f"{key}: {value}{eol}")
    if not end:
        return "".join((f"---{eol}", *kept, f"---{eol}", text)) if kept else text
    body = lines[end:]
    return "".join((lines[0], *kept, lines[end - 1], *body)) if kept else "".join(body)


def _newline(text: str) -> str:
    """The line end that a text uses most."""
    windows = text.count("\r\n")
    counts = {"\n": text.count("\n") - windows, "\r\n": windows, "\r": text.count("\r") - windows}
    return max(counts, key=lambda end: counts[end])


def _same(title: str, wanted: str) -> bool:
    return " ".join(title.split()).casefold() == " ".join(wanted.split()).casefold()


def _is_plain(entry: str) -> bool:
    """Whether an entry is one paragraph or already a list, so that it can be an item."""
    lines = entry.split("\n")
    if any(
        not line.strip() or _FENCE.match(line) or _HEADING.match(line) or "|" in line
        for line in lines
    ):
        return False
    return not any(re.match(r" {0,3}(?:=+|-+)[ \t]*\Z", line) for line in lines)


def _kept_in(text: str, entry: str) -> str:
    """The entry, its rules indented by a space where one would close an open front matter and
    swallow the note.
    """
    if not text.startswith("---") or parse(text).front == parse(f"{text}\n\n{entry}").front:
        return entry
    return "\n".join(f" {line}" if _RULE.match(line) else line for line in entry.split("\n"))
