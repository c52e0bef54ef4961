"""GNOME's help: Mallard pages in many languages, aligned by page and section."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from training.fetch import fetched, members
from training.text.aligned import Block, Pair, align, both, html_blocks, sections
from training.text.common import Group
from training.text.languages import code

_INFO = re.compile(
    r"<info>.*?</info>|<(?:code|screen|comment)\b.*?</(?:code|screen|comment)>", re.S
)
_SECTION = re.compile(r"<(section|page)\b([^>]*)>")


def mallard_blocks(page: str) -> list[Block]:
    """Blocks of a page; titles become headings by how deep they stand."""
    page = _INFO.sub(" ", page)
    depth = 0
    found = []
    for piece in re.split(r"(<section\b|</section>)", page):
        if piece.startswith("<section"):
            depth += 1
        elif piece == "</section>":
            depth -= 1
        else:
            level = f"h{min(6, depth + 1)}"
            blocks = html_blocks("<" + piece if depth else piece)
            found += [
                Block(level if block.kind == "title" else block.kind, block.text)
                for block in blocks
            ]
    return [block for block in found if not block.text.startswith(("xmlns", "id=", " id="))]


def gnome() -> Iterator[Pair | Group]:
    """All pages of the user's and the administrator's guide."""
    held: dict[str, dict[str, str]] = defaultdict(dict)
    for path, content in members(fetched("gnome-user-docs")):
        found = re.search(r"/help/([^/]+)/(.+\.page)$", path)
        if found:
            held["en" if found[1] == "C" else found[1]][found[2]] = content.decode(
                "utf-8", "replace"
            )
    english = {name: sections(mallard_blocks(page)) for name, page in held.pop("en").items()}
    for locale, pages in held.items():
        lang = code(locale)
        if lang not in {"", "en"}:
            for name, page in pages.items():
                if name in english:
                    yield from both(
                        "gnome-help",
                        lang,
                        align(lang, english[name], sections(mallard_blocks(page))),
                    )
