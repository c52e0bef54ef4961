"""Manual pages in roff, read into sections."""

from __future__ import annotations

import re
import shlex

from training.text.common import clean, clean_lines
from training.text.sections import Block, Section

_FONT = re.compile(r"\\f(?:\[[^]]*\]|\([A-Z]{2}|.)|\\s[-+]?\d|\\[&|^/,:)%]|\\d|\\u")
_SPECIAL = {
    "\\-": "-",
    "\\e": "\\",
    "\\ ": " ",
    "\\~": " ",
    "\\0": " ",
    "\\'": "'",
    "\\`": "`",
    "\\.": ".",
    "\\(->": "->",
    "\\(+-": "±",
}
_NAMES = {
    "em": "—",
    "en": "–",
    "bu": "•",
    "aq": "'",
    "dq": '"',
    "lq": '"',
    "rq": '"',
    "cq": "'",
    "oq": "'",
    "co": "©",
    "ti": "~",
    "ha": "^",
    "rs": "\\",
}
_NAMED = re.compile(r"\\\[([^]]+)\]|\\\((\w\w)|\\\*(?:\[[^]]*\]|\(\S\S|\S)")
_BULLETS = frozenset({"•", "-", "*", "o", "·", "+", ""})
_INLINE = frozenset("B I BR RB BI IB IR RI SM SB".split())


def plain(text: str) -> str:
    """Roff text without its escapes."""
    text = _FONT.sub("", re.sub(r'\\".*', "", text))
    for escape, shown in _SPECIAL.items():
        text = text.replace(escape, shown)
    return _NAMED.sub(lambda match: _NAMES.get(match[1] or match[2] or "", ""), text)


def _arguments(text: str) -> list[str]:
    try:
        return shlex.split(text.replace("'", "\0"), posix=True)
    except ValueError:
        return text.replace('"', "").split()


class _Page:
    def __init__(self) -> None:
        self.name = ""
        self.sections: list[Section] = []
        self.held: list[str] = []
        self.code = False
        self.kind = "p"
        self.term_next = False

    def flush(self) -> None:
        text = clean_lines("\n".join(self.held)) if self.code else clean(" ".join(self.held))
        self.held = []
        if text and self.sections:
            self.sections[-1].blocks.append(Block("code" if self.code else self.kind, text))
        self.kind = "p"

    def text(self, line: str) -> None:
        self.held.append(line)
        if self.term_next and not self.code:
            self.kind = "dt"
            self.flush()
            self.term_next = False

    def macro(self, name: str, rest: str) -> None:
        arguments = [part.replace("\0", "'") for part in _arguments(rest)]
        if name in {"SH", "SS"}:
            self.flush()
            self.code = False
            self.sections.append(Section(self.name, " ".join(arguments).capitalize() or "Notes"))
        elif name in _INLINE:
            self.text((" " if name in {"B", "I", "SM", "SB"} else "").join(arguments))
        elif name in {"TP", "TQ", "IP"}:
            self.flush()
            self.item(name, arguments)
        elif name in {"nf", "EX", "fi", "EE"}:
            self.flush()
            self.code = name in {"nf", "EX"}
        elif name in {"PP", "P", "LP", "RS", "RE", "sp", "HP", "br"} and not self.code:
            self.flush()
        elif name == "sp":
            self.held.append("")

    def item(self, name: str, arguments: list[str]) -> None:
        """An item: its term comes with it, or on the next line."""
        if name != "IP":
            self.term_next = True
        elif arguments and arguments[0] not in _BULLETS and self.sections:
            self.sections[-1].blocks.append(Block("dt", clean(arguments[0])))
        else:
            self.kind = "li"


def read_man(content: str, name: str) -> list[Section]:
    """The sections of a manual page; its name stands as the page's title."""
    if content.startswith(".so ") or "\n.Sh NAME" in content:
        return []
    page = _Page()
    page.name = name
    for line in content.split("\n"):
        if line.startswith((".", "'")):
            match = re.match(r"[.']\s*(\w+)\s*(.*)", line)
            if match:
                page.macro(match[1], plain(match[2]))
        elif line.strip():
            page.text(plain(line))
        elif page.code:
            page.held.append("")
        else:
            page.flush()
    page.flush()
    return page.sections
