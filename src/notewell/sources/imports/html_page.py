"""HTML pages as Markdown: headings, paragraphs, lists, tables, code and links; no scripts, no
styles. Pure.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from html import unescape

from notewell.sources.imports.items import Item, moment, paged

_SKIPPED = frozenset(
    (
        "script",
        "style",
        "template",
        "noscript",
        "svg",
        "iframe",
        "object",
        "select",
        "button",
        "nav",
    )
)
_BLOCKS = frozenset(
    (
        "p",
        "div",
        "section",
        "article",
        "main",
        "header",
        "footer",
        "aside",
        "figure",
        "figcaption",
        "ul",
        "ol",
    )
) | frozenset(
    (
        "dl",
        "dt",
        "dd",
        "table",
        "form",
        "fieldset",
        "address",
        "details",
        "summary",
        "hr",
        "body",
        "html",
    )
)
_HEADINGS = {f"h{n}": "#" * n for n in range(1, 7)}
_DATES = (
    "article:published_time",
    "date",
    "dc.date",
    "dcterms.date",
    "article:modified_time",
    "last-modified",
)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset=["']?\s*([\w-]{1,40})""", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\r\f]+")
_LINKED = re.compile(r"https?://[^\s()<>]{1,1000}\Z", re.IGNORECASE)
_RAW = ("script", "style", "textarea", "title")
_LONGEST_TAG = 2_000
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]{0,60})")
_QUOTED_TAG = re.compile(r"""<[^"'>]*(?:"[^"]*"[^"'>]*|'[^']*'[^"'>]*)*>""")
_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]{1,100})\s{0,20}=\s{0,20}("[^"]*"|'[^']*'|[^\s"'>]+)""")
_MANY_BREAKS = re.compile(r"\n{3,}")


def read_html(data: bytes, _name: str) -> Item | None:
    """A page with its title and date; None if it has no text."""
    page = _Page()
    _walk(_decoded(data), page)
    made = next((found for key in _DATES if (found := moment(page.meta.get(key, "")))), None)
    return paged(page.title, [("", page.text())], made)


def _decoded(data: bytes) -> str:
    """The text by its byte order mark, by what the page says, or as UTF-8."""
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(codec, "replace").lstrip("\ufeff")
    said = _CHARSET.search(data[:4096])
    try:
        return data.decode(said[1].decode() if said else "utf-8", "replace")
    except (LookupError, ValueError):
        return data.decode("utf-8", "replace")


def _walk(text: str, page: _Page) -> None:
    """Shows a page its tags and the text between them, in linear time: Python's own parser can be
    made to hang.
    """
    low = text.lower() if len(text.lower()) == len(text) else text
    done = at = 0
    while (at := text.find("<", at)) >= 0:
        tag = _TAG.match(text, at)
        if tag is None and not text.startswith(("<!", "<?"), at):
            at += 1  # a sign, not a tag
            continue
        page.data(_unescaped(text[done:at]))
        end = text.find("-->", at + 4) + 2 if text.startswith("<!--", at) else _tag_end(text, at)
        if end < at:
            return  # it has no end, and neither has what follows
        done = at = end + 1
        if tag is None:
            continue
        name = tag[2].lower()
        if tag[1]:
            page.end(name)
            continue
        page.start(name, text[tag.end() : min(end, tag.end() + _LONGEST_TAG)])
        if name in _RAW:
            at = low.find(f"</{name}", done)
            if at < 0:
                return
            page.data(_unescaped(text[done:at]))
            done = at
    page.data(_unescaped(text[done:]))


def _tag_end(text: str, at: int) -> int:
    """Where a tag ends; a sign in a quoted value does not end it, unless the value is absurdly
    long.
    """
    end = text.find(">", at)
    if end >= 0 and (text.count('"', at, end) % 2 or text.count("'", at, end) % 2):
        whole = _QUOTED_TAG.match(text, at, at + _LONGEST_TAG)
        return whole.end() - 1 if whole else end
    return end


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # a number without end
        return text


class _Page:
    """Collects Markdown while the tags go by."""

    def __init__(self) -> None:
        self.title = ""
        self.meta: dict[str, str] = {}
        self._out: list[str] = []
        self._skipped = ""
        self._depth = 0  # of the tag that is skipped, in itself
        self._lists: list[int] = []  # the number of the next item, or 0 for bullets
        self._pre = False
        self._in_title = False
        self._link: tuple[str, int] | None = None
        self._cells = self._rows = 0  # of a row, and of a table
        self._begins: dict[str, Callable[[str, dict[str, str]], None]] = {
            "title": self._begin_title,
            "meta": self._begin_meta,
            "ul": self._begin_list,
            "ol": self._begin_list,
            "li": self._begin_item,
            "br": self._begin_break,
            "pre": self._begin_code,
            "a": self._begin_link,
            "img": self._begin_image,
            **dict.fromkeys(("table", "tr", "td", "th"), self._begin_cell),
        }

    def text(self) -> str:
        """The Markdown so far."""
        joined = "\n".join(line.rstrip() for line in "".join(self._out).split("\n"))
        return _MANY_BREAKS.sub("\n\n", joined).strip("\n")

    def start(self, tag: str, attributes: str) -> None:
        """Begins what a tag means in Markdown."""
        if self._skipped:
            self._depth += tag == self._skipped
        elif tag in _SKIPPED:
            self._skipped, self._depth = tag, 1
        elif tag in self._begins:
            found = (
                (m[1].lower(), _unescaped(m[2].strip("\"'")))
                for m in _ATTRIBUTE.finditer(attributes)
            )
            self._begins[tag](tag, dict(found))
        elif tag in _HEADINGS:
            self._out.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag in _BLOCKS:
            self._out.append("\n\n")

    def _begin_title(self, _tag: str, _given: dict[str, str]) -> None:
        self._in_title = True

    def _begin_meta(self, _tag: str, given: dict[str, str]) -> None:
        self.meta.setdefault(
            (given.get("property") or given.get("name") or "").lower(), given.get("content", "")
        )

    def _begin_list(self, tag: str, _given: dict[str, str]) -> None:
        self._out.append("" if self._lists else "\n\n")
        self._lists.append(1 if tag == "ol" else 0)

    def _begin_break(self, _tag: str, _given: dict[str, str]) -> None:
        self._out.append("\n")

    def _begin_code(self, _tag: str, _given: dict[str, str]) -> None:
        if not self._pre:
            self._out.append("\n\n```\n")
            self._pre = True

    def _begin_link(self, _tag: str, given: dict[str, str]) -> None:
        self._link = (given.get("href", ""), len(self._out))

    def _begin_image(self, _tag: str, given: dict[str, str]) -> None:
        if words := _SPACE.sub(" ", given.get("alt", "")).strip():
            self._out.append(f"[image: {words}]")

    def end(self, tag: str) -> None:
        """Ends what a tag began."""
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = ""
        elif tag == "title":
            self._in_title = False
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
            self._out.append("" if self._lists else "\n\n")
        elif tag == "pre" and self._pre:
            self._out.append("\n```\n\n")
            self._pre = False
        elif tag == "a" and self._link:
            self._linked(*self._link)
        elif tag == "tr" and self._cells:
            self._out.append(" |" if self._rows else f" |\n|{' --- |' * self._cells}")
            self._cells = 0
            self._rows += 1
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._out.append("\n\n")

    def data(self, data: str) -> None:
        """Takes the text between tags."""
        if self._skipped:
            return
        if self._in_title:
            self.title = self.title or data[:1000]
            return
        words = data if self._pre else _SPACE.sub(" ", data)
        if not self._pre and (not self._out or self._out[-1].endswith(("\n", " "))):
            words = words.lstrip(" ")
        if words:
            self._out.append(words)

    def _begin_item(self, _tag: str, _given: dict[str, str]) -> None:
        depth = max(0, len(self._lists) - 1)
        number = self._lists[-1] if self._lists else 0
        if number:
            self._lists[-1] += 1
        self._out.append(f"\n{'  ' * min(depth, 8)}{f'{number}.' if number else '-'} ")

    def _begin_cell(self, tag: str, _given: dict[str, str]) -> None:
        if tag == "table":
            self._out.append("\n\n")
            self._rows = 0
        elif tag == "tr":
            self._out.append("\n")
            self._cells = 0
        else:
            self._out.append("| " if not self._cells else " | ")
            self._cells += 1

    def _linked(self, address: str, start: int) -> None:
        """A link with its address, if that leads to the web."""
        words = _SPACE.sub(" ", "".join(self._out[start:])).strip()
        self._link = None
        if words and not self._pre and "[" not in words and _LINKED.match(address):
            self._out[start:] = [f"[{words}]({address})"]
