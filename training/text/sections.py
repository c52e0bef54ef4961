"""Documents as headed sections, and the pairs they give: heading → section, term → meaning, task →
command.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from training.text.common import (
    STOP,
    Group,
    clean,
    cloze,
    cut,
    free,
    group,
    mostly_words,
    query_form,
    sentences,
    words,
)

_DULL_TITLES = re.compile(
    r"^(?:(?:table of )?contents|index|licen[cs]e|copyright.*|authors?|see also|navigation|"
    r"references|credits|history|name|synopsis|contributors|"
    r"acknowledg\w+|thanks|sponsors?|backers|colophon|search|indices and tables|reporting bugs|"
    r"related(?: \w+)?|changelog|module index|menu|links|security contact information|footnotes|"
    r"bibliography)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^(?:(?:chapter|appendix|part)\s+\w+[.:]\s+|(?:[A-Z]\.)?\d+(?:\.\d+)*\.?\s+(?=[A-Za-z]))",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[¶#§]+\s*$")


@dataclass
class Block:
    """One paragraph (`p`), list item (`li`), code block (`code`) or term (`dt`)."""

    kind: str
    text: str


@dataclass
class Section:
    """A heading and what stands under it."""

    page: str
    title: str
    blocks: list[Block] = field(default_factory=list)


def heading(text: str) -> str:
    """A heading without numbers, link marks and the words that every page has."""
    text = re.sub(r"\(\d\w*\) Manual Page$", "", _MARKS.sub("", clean(text)))
    return _NUMBER.sub("", text).strip(" -–:")


def english(text: str) -> bool:
    """Whether prose is English, by its small words."""
    found = words(text[:4000])
    return len(found) < 20 or sum(word in STOP for word in found) / len(found) > 0.18


def _shown(block: Block, *, fenced: bool) -> str:
    if block.kind == "code":
        return (
            f"```\n{block.text}\n```"
            if fenced
            else "\n".join(f"    {line}" for line in block.text.split("\n"))
        )
    return f"- {block.text}" if block.kind == "li" else block.text


def _joined(blocks: Sequence[Block], *, fenced: bool) -> list[str]:
    """Blocks as paragraphs; the items of a list stay together, a term stays with its meaning."""
    found: list[str] = []
    last = ""
    for block in blocks:
        text = _shown(block, fenced=fenced)
        close = found and (last == "dt" or (block.kind == "li" and last == "li"))
        if close and len(found[-1]) + len(text) < 1200:
            found[-1] += "\n" + text
        else:
            found.append(text)
        last = block.kind
    return found


def _tasks(source: str, section: Section, chance: random.Random) -> Iterator[Group]:
    """A sentence that leads to a code block → the block."""
    for before, after in zip(section.blocks, section.blocks[1:], strict=False):
        if before.kind == "code" or after.kind != "code" or not 10 <= len(after.text) <= 900:
            continue
        said = sentences(before.text)[-1:] or [""]
        asked = said[0].rstrip(":. ")
        if not before.text.rstrip().endswith((":", ".")) or not 5 <= len(words(asked)) <= 30:
            continue
        asked = re.sub(
            r"^(?:for example|e\.g\.|for instance|thus|so|then|now|finally|first|next),? ",
            "",
            asked,
            flags=re.I,
        )
        if chance.random() < 0.4 and section.page and not has(asked, section.page):
            asked = f"{section.page}: {asked}"
        found = group(
            source,
            asked,
            [after.text if len(after.text) >= 30 else f"{section.title}\n\n    {after.text}"],
        )
        if found and len(keyword_set(asked)) > 2 and mostly_words(after.text):
            yield found


def keyword_set(text: str) -> set[str]:
    """Words of a phrase that are no small words."""
    return {word for word in words(text) if word not in STOP}


def has(text: str, part: str) -> bool:
    """Whether a text names a part, whole words alone."""
    return set(words(part)) <= set(words(text))


def _terms(source: str, section: Section, chance: random.Random) -> Iterator[Group]:
    """A term (an option, a function, a setting) → what it means."""
    for at, block in enumerate(section.blocks):
        if block.kind != "dt" or not 2 <= len(block.text) <= 160:
            continue
        told: list[Block] = []
        for after in section.blocks[at + 1 :]:
            if after.kind == "dt" or sum(len(held.text) for held in told) > 900:
                break
            told.append(after)
        passage = "\n\n".join(_joined(told, fenced=False))[:1700]
        if len(passage) < 60 or not mostly_words(passage):
            continue
        term = clean(block.text)
        page = clean(section.page)
        roll = chance.random()
        first = sentences(passage)[0]
        if roll < 0.45 and 25 < len(first) < 200 and "\n" not in first:
            found = group(
                source, first.rstrip("."), [f"{page}\n\n{term}\n{passage[len(first) :].strip()}"]
            )
        else:
            query = term if has(term, page) else f"{page} {term}"
            found = group(source, query[:200], [passage])
        if found:
            yield found


def _body(
    source: str, section: Section, near: Sequence[str], chance: random.Random, *, fenced: bool
) -> Iterator[Group]:
    passages = [text for text in cut(_joined(section.blocks, fenced=fenced)) if mostly_words(text)]
    if not passages or len(passages[0]) < 60:
        return
    misses = passages[1:2] or list(near)
    misses = misses if chance.random() < 0.4 else []
    top = f"## {section.title}" if fenced else section.title
    roll = chance.random()
    if roll < 0.14:
        at = chance.randrange(len(passages))
        taken = cloze(passages[at], chance)
        if taken:
            found = group(source, taken[0], [f"{top}\n\n{taken[1]}"[:1800], *misses])
            if found:
                yield found
            return
    head = f"{top}\n\n" if chance.random() < 0.3 else ""
    found = group(
        source,
        query_form(section.title, section.page, chance),
        [(head + passages[0])[:1800], *misses],
    )
    if found:
        yield found
    if len(passages) > 2 and roll > 0.8:
        rest = free(source, passages[1:4])
        if rest:
            yield rest


def _short(sections: Sequence[Section]) -> str:
    """What a manual page says of itself in a line, under NAME."""
    for section in sections[:3]:
        if section.title.lower() == "name":
            said = re.match(r".{1,80}? [-–—]+ (.{15,150})$", section.blocks[0].text)
            return said[1] if said else ""
    return ""


def groups(
    source: str, sections: Sequence[Section], chance: random.Random, *, fenced: bool = False
) -> Iterator[Group]:
    """All pairs of one document."""
    kept = [
        section
        for section in sections
        if section.blocks and section.title and len(section.title) < 160
    ]
    if not english(
        " ".join(
            block.text for section in kept for block in section.blocks if block.kind != "code"
        )[:4000]
    ):
        return
    short = _short(kept)
    for at, section in enumerate(kept):
        yield from _tasks(f"{source}-task", section, chance)
        yield from _terms(f"{source}-term", section, chance)
        if _DULL_TITLES.match(section.title):
            continue
        following = kept[at + 1].blocks if at + 1 < len(kept) else []
        near = cut(_joined(following[:6], fenced=fenced))[:1]
        plain = short and section.title.lower() in {"description", "overview", "introduction"}
        named = Section("", short, section.blocks) if plain else section
        yield from _body(source, named, near, chance, fenced=fenced)


def sample(found: Iterable[Group], most: int, chance: random.Random) -> list[Group]:
    """At most so many groups of one package, chosen evenly; terms give way to sections and
    tasks.
    """
    held = list(found)
    if len(held) <= most:
        return held
    terms = [each for each in held if each.source.endswith("-term")]
    others = [each for each in held if not each.source.endswith("-term")]
    kept = chance.sample(others, min(len(others), most * 7 // 10))
    return kept + chance.sample(terms, min(len(terms), most - len(kept)))
