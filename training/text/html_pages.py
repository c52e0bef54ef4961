"""HTML pages of documentation, read into sections."""

from __future__ import annotations

import re
from html import unescape

from training.text.common import clean, clean_lines
from training.text.sections import Block, Section, heading

_GONE = re.compile(
    r"<!--.*?-->|<(script|style|svg|select|template)\b.*?</\1>", re.DOTALL | re.IGNORECASE
)
_TOKEN = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^>]*)>|([^<]+)|<")
_SKIPPED = re.compile(
    r"(?:class|id|role)\s*=\s*[\"'][^\"']*(?:sphinxsidebar|\brelated\b|footer|navheader|navfooter|"
    r"\btoc\b|toctree|contents local|topic contents|navigation|headerlink|breadcrumb|\bnav\b|"
    r"sidebar|viewcode|menu|column2|gtoc|api_stability_0|srclink|search|summary|bottomnav|topnav|"
    r"headings)",
    re.IGNORECASE,
)
_BREAKS = frozenset(
    (
        "p div li ul ol dl dt dd pre table tr h1 h2 h3 h4 h5 h6 blockquote section article br hr"
    ).split()
)
_HEADS = frozenset("h1 h2 h3 h4 h5".split())
_PLAIN = frozenset({"dd", "p", "tr", "table", "ul", "ol", "dl"})
_CONTAINERS = frozenset(
    "div nav ul ol table span section a details form header footer aside".split()
)


class _Reader:
    """State while a page is walked."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.sections: list[Section] = [Section(page, page)]
        self.held: list[str] = []
        self.kind = "p"
        self.in_pre = False
        self.in_row = False
        self.skipped = ""
        self.depth = 0

    def flush(self) -> None:
        raw = "".join(self.held)
        self.held = []
        text = clean_lines(unescape(raw)) if self.in_pre else clean(unescape(raw))
        text = text.strip(" |") if self.kind == "p" and not self.in_pre else text
        if not text:
            return
        if self.kind in _HEADS:
            title = heading(text)
            if self.kind == "h1" and len(self.sections) == 1 and not self.sections[0].blocks:
                self.page = title or self.page
            self.sections.append(Section(self.page, title))
        else:
            self.sections[-1].blocks.append(Block("code" if self.in_pre else self.kind, text))

    def passed_over(self, name: str, attributes: str, *, closing: bool) -> bool:
        """Whether a tag lies in, opens or closes a part that is no content."""
        if self.skipped:
            if name == self.skipped:
                self.depth += -1 if closing else 1
                self.skipped = self.skipped if self.depth else ""
            return True
        if (
            closing
            or name not in _CONTAINERS
            or not (name in {"nav", "form"} or _SKIPPED.search(attributes))
        ):
            return False
        if name == "a" and "headerlink" not in attributes:
            return False
        if name != "a":
            self.flush()
        self.skipped, self.depth = name, 1
        return True

    def tag(self, name: str, attributes: str, *, closing: bool) -> None:
        if self.passed_over(name, attributes, closing=closing):
            return
        if name in {"td", "th"} and closing:
            self.held.append(" | ")
        if name == "tr":
            self.in_row = not closing
        inside = self.kind in _HEADS or self.in_row
        if (
            name not in _BREAKS
            or (name in {"br", "p", "div"} and inside)
            or (self.in_pre and name != "pre")
        ):
            return
        self.flush()
        if name == "pre":
            self.in_pre = not closing
            self.kind = "p"
        elif name in _HEADS or name in {"li", "dt"}:
            self.kind = "p" if closing else name
        elif name in _PLAIN and self.kind not in {"li", "dt"}:
            self.kind = "p"


def read_html(content: str) -> list[Section]:
    """The sections of a page."""
    found = re.search(r"<title[^>]*>(.*?)</title>", content, re.DOTALL | re.IGNORECASE)
    title = re.split(r" — | – | -- |\u2014|\s[|·]\s", clean(unescape(found[1])))[0] if found else ""
    start = content.find("<body")
    reader = _Reader(heading(title))
    for closing, name, attributes, text in _TOKEN.findall(_GONE.sub(" ", content[max(start, 0) :])):
        if name:
            reader.tag(name.lower(), attributes, closing=bool(closing))
        elif not reader.skipped:
            reader.held.append(text)
    reader.flush()
    return reader.sections
