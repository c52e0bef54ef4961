"""Manual pages and their translations, aligned by section."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Iterator

from training.fetch import fetched, listed, members
from training.text.aligned import Aligned, Block, Pair, Section, align, alone, both, sections
from training.text.common import Group, clean
from training.text.languages import code

USE = "manual pages"
ENGLISH = ("manpages", "manpages-dev", "coreutils")
_PATH = re.compile(r"/man/(?:([a-z]{2,3}(?:_[A-Z]{2})?)(?:\.UTF-8)?/)?man\d[a-z]*/([^/]+)\.gz$")
_ESCAPES = (
    (re.compile(r"\\f(?:\[[^]]*\]|\(..|.)|\\s[-+]?\d|\\[&/,:|^%!)]|\\\*\(..|\\m\[[^]]*\]"), ""),
    (re.compile(r"\\\(aq|\\\[aq\]|\\\(cq|\\\(oq"), "'"),
    (re.compile(r"\\\(l?[dr]?q|\\\[[lr]?dq\]|\\\([Ff][oc]"), '"'),
    (re.compile(r"\\\(em|\\\(en|\\-"), "-"),
    (re.compile(r"\\\(bu|\\\(.."), " "),
    (re.compile(r"\\\[u([0-9A-F]{4,5})\]"), ""),
    (re.compile(r"\\ |\\~|\\0"), " "),
    (re.compile(r"\\e"), r"\\"),
)
_BREAK = frozenset((".PP", ".P", ".LP", ".TP", ".IP", ".HP", ".sp", ".RS", ".RE", ".TQ", ".br"))
_FONT = frozenset((".B", ".I", ".BR", ".RB", ".BI", ".IB", ".IR", ".RI", ".SM", ".SB"))


def unescape(line: str) -> str:
    """A line without troff's escapes."""
    for pattern, plain in _ESCAPES:
        line = pattern.sub(plain, line)
    return line


def roff_blocks(page: str) -> list[Block]:
    """Headings and paragraphs of a page; examples in fixed type are left out."""
    found: list[Block] = []
    held: list[str] = []
    literal = False
    for line in page.splitlines():
        name = line.split(" ", 1)[0].rstrip()
        if name in {".nf", ".EX", ".TS"}:
            literal = True
        elif name in {".fi", ".EE", ".TE"}:
            literal = False
        elif name in {".SH", ".SS"}:
            _flush(found, held)
            found.append(
                Block("h2" if name == ".SH" else "h3", clean(unescape(line[3:]).strip(' "')))
            )
        elif name in _BREAK:
            _flush(found, held)
        elif not literal and name in _FONT:
            held.append(_joined(name, line))
        elif not literal and line and line[0] not in ".'":
            held.append(unescape(line))
    _flush(found, held)
    return [block for block in found if block.text]


def _joined(name: str, line: str) -> str:
    rest = unescape(line[len(name) :].strip())
    return (
        rest.replace('"', "")
        if name in {".B", ".I", ".SM", ".SB"}
        else re.sub(r'"([^"]*)"|\s+', r"\1", rest)
    )


def _flush(found: list[Block], held: list[str]) -> None:
    text = clean(" ".join(held))
    if text:
        found.append(Block("p", text))
    held.clear()


def manuals() -> Iterator[Pair | Group]:
    """All pages that stand in English in one of the packages and in a language in another."""
    english: dict[str, list[Section]] = {}
    others: dict[str, dict[str, str]] = defaultdict(dict)
    for package in [*ENGLISH, *(name for name, entry in listed().items() if entry.use == USE)]:
        for path, content in members(fetched(package)):
            found = _PATH.search("/" + path)
            if found:
                text = gzip.decompress(content).decode("utf-8", "replace")
                if found[1] is None and found[2] not in english and "\n.SH" in text:
                    english[found[2]] = sections(roff_blocks(text))
                elif found[1] and code(found[1]) not in {"", "en"}:
                    others[code(found[1])].setdefault(found[2], text)
    for lang, pages in others.items():
        for name, text in pages.items():
            theirs = sections(roff_blocks(text))
            if name not in english:
                yield from alone("manuals", lang, name.rsplit(".", 1)[0], theirs)
            else:
                yield from both(
                    "manuals",
                    lang,
                    _titled(
                        name, align(lang, english[name], without_credits(english[name], theirs))
                    ),
                )


def without_credits(ours: list[Section], theirs: list[Section]) -> list[Section]:
    """A translation without the section on its translators, which the English page lacks."""
    return theirs[:-1] if len(theirs) == len(ours) + 1 else theirs


def _titled(name: str, aligned: list[Aligned]) -> list[Aligned]:
    title = name.rsplit(".", 1)[0]
    for section in aligned:
        one, other = section.heading
        if one and other:
            section.heading = f"{title}: {one.capitalize()}", f"{title}: {other.capitalize()}"
    return aligned
