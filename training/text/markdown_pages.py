"""Markdown files, read into sections; their text stays Markdown."""

from __future__ import annotations

import re

from training.text.common import clean, clean_lines
from training.text.sections import Block, Section, heading

_HEADING = re.compile(r"^(#{1,5})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_ITEM = re.compile(r"^\s{0,8}(?:[-*+]|\d+[.)])\s+")
_RULE = re.compile(r"^(?:=+|-+)\s*$")
_NOISE = re.compile(
    r"^\s*(?:\[!\[|!\[|<(?:p|div|img|a|br|h\d|picture|source|center|table|tr|td|!--|details|/)|\[[^]]+\]:\s)"
)
_LINK = re.compile(r"\[([^]]+)\]\((?:<[^>]*>|[^)\s]*)(?:\s+\"[^\"]*\")?\)")
_TAG = re.compile(
    r"</?(?:p|div|a|b|i|br|img|span|em|strong|kbd|sub|sup|h\d|center|table|tr|td|th|ul|li|code)\b[^>]*>",
    re.I,
)


def _links(text: str) -> str:
    """Links without their addresses."""
    return _TAG.sub("", _LINK.sub(r"\1", re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)))


def _title(text: str) -> str:
    return heading(re.sub(r"[`*]", "", _links(text)))


class _Reader:
    """State while a file is read line by line."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.sections = [Section(page, page)]
        self.held: list[str] = []
        self.kind = "p"
        self.fence = ""

    def flush(self) -> None:
        joined = (
            "\n" if self.kind == "code" or (self.held[:1] and self.held[0].startswith("|")) else " "
        )
        text = joined.join(self.held)
        text = clean_lines(text) if joined == "\n" else clean(text)
        text = text if self.kind == "code" else _links(text)
        if text.strip():
            self.sections[-1].blocks.append(Block(self.kind, text))
        self.held = []
        self.kind = "p"

    def head(self, text: str, *, first: bool) -> None:
        """A new section; a first heading at the top names the page."""
        title = _title(text)
        if first and len(self.sections) == 1:
            self.page = title or self.page
        self.sections.append(Section(self.page, title))

    def fenced(self, line: str) -> bool:
        """Whether a line belongs to a code block."""
        opened = _FENCE.match(line)
        if self.fence and opened and line.strip().startswith(self.fence):
            self.flush()
            self.fence = ""
        elif self.fence:
            self.held.append(line)
        elif opened:
            self.flush()
            self.fence, self.kind = opened[1], "code"
        else:
            return False
        return True

    def line(self, line: str) -> None:
        if self.fenced(line):
            return
        head, item = _HEADING.match(line), _ITEM.match(line)
        if head:
            self.flush()
            self.head(head[2], first=len(head[1]) == 1)
        elif not line.strip() or _NOISE.match(line):
            self.flush()
        elif item:
            self.flush()
            self.kind = "li"
            self.held.append(line[item.end() :])
        elif _RULE.match(line) and len(self.held) == 1:
            self.head(self.held.pop(), first=line.startswith("="))
        else:
            if line.lstrip().startswith("|") and self.held and not self.held[0].startswith("|"):
                self.flush()
            self.held.append(line.strip() if line.lstrip().startswith("|") else line)


def read_markdown(content: str, page: str) -> list[Section]:
    """The sections of a Markdown file; the first heading names the page."""
    content = re.sub(r"\A---\n.*?\n---\n", "", content.replace("\r\n", "\n"), flags=re.DOTALL)
    reader = _Reader(page)
    for line in re.sub(r"<!--.*?-->|\{/\*.*?\*/\}", "", content, flags=re.DOTALL).split("\n"):
        reader.line(line)
    reader.flush()
    return reader.sections
