"""Documents that exist in English and in another language: blocks, sections, and what is made of
them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise

from training.text.common import Group, clean
from training.text.common import cut as cut_passages
from training.text.languages import DENSE, like_lengths, translated, written_in

AIMS = (220, 300, 420, 600, 900)
LONGEST = 1200
SINGLES = 0.3
_DROP = re.compile(
    r"<(head|script|style|nav|header|footer|aside|pre|noscript|button|svg|math)\b.*?</\1\s*>|<!--.*?-->"
    r'|<div class="(?:navheader|navfooter|toc|screen|titlepage-toc|footnotes)".*?</div>',
    re.S | re.I,
)
_BLOCK = re.compile(
    r"<(/?)(h[1-6]|p|li|dt|dd|td|th|tr|div|ul|ol|dl|table|section|article|blockquote|body|main|para|title|item)\b([^>]*)>",
    re.I,
)
_TAG = re.compile(r"<[^>]+>")
_ID = re.compile(r'\b(?:xml:)?id="([^"]+)"')
_NUMBER = re.compile(
    r"^(?:\d+(?:\.\d+)*\.?|[A-Z](?:\.\d+)+\.?|[^\W\d]+ "
    r"\d+(?:\.\d+)*\.|第\s*\d+\s*[章节節部]\.?|제?\s*\d+\s*장\.?)\s+"
)


@dataclass(frozen=True)
class Block:
    """A paragraph, list item, cell or heading."""

    kind: str
    text: str
    key: str = ""

    @property
    def level(self) -> int:
        """1 to 6 for a heading, else 0."""
        return int(self.kind[1]) if self.kind[0] == "h" else 0


@dataclass(frozen=True)
class Pair:
    """A text and its translation."""

    source: str
    lang: str
    role: str
    english: str
    text: str

    def line(self) -> str:
        """This pair as a line of JSON."""
        held = {
            "source": self.source,
            "lang": self.lang,
            "role": self.role,
            "en": self.english,
            "text": self.text,
        }
        return json.dumps(held, ensure_ascii=False) + "\n"


@dataclass
class Section:
    """A heading and what stands under it."""

    heading: str = ""
    key: str = ""
    level: int = 0
    blocks: list[Block] = field(default_factory=list)


@dataclass
class Aligned:
    """A section in two languages, its blocks side by side."""

    heading: tuple[str, str]
    blocks: list[tuple[str, str]]


def roll(text: str) -> float:
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) / 2**32


def plain(text: str) -> str:
    """Inline markup and entities gone."""
    return clean(html.unescape(_TAG.sub("", text.replace("<br", " <br").replace("\n", " "))))


def html_blocks(page: str) -> list[Block]:
    """The blocks of a page, in order, without navigation, code and scripts."""
    page = _DROP.sub(" ", page)
    found: list[Block] = []
    kind, key, at = "p", "", 0
    for tag in _BLOCK.finditer(page):
        text = plain(page[at : tag.start()])
        if text:
            found.append(Block(kind, text, key))
            key = ""
        at = tag.end()
        name = tag[2].lower()
        kind = (
            name
            if not tag[1] and name not in {"div", "section", "article", "body", "main", "tr"}
            else "p"
        )
        named = None if tag[1] else _ID.search(tag[3])
        key = named[1] if named else "" if tag[1] else key
    return found


def sections(blocks: Iterable[Block]) -> list[Section]:
    """Blocks cut at headings."""
    found = [Section()]
    for block in blocks:
        if block.level:
            found.append(Section(_NUMBER.sub("", block.text), block.key, block.level))
        else:
            found[-1].blocks.append(block)
    return found


def _by_key(ours: Sequence[Block], theirs: Sequence[Block]) -> list[tuple[str, str]]:
    known = {block.key: block.text for block in theirs if block.key}
    return [(block.text, known[block.key]) for block in ours if block.key in known]


def side_by_side(
    lang: str, ours: Sequence[Block], theirs: Sequence[Block]
) -> list[tuple[str, str]]:
    """English blocks with their translations: by key, by equal order, or the section as one."""
    keyed = _by_key(ours, theirs)
    if keyed and len(keyed) >= 0.5 * min(len(ours), len(theirs)):
        return keyed
    if [block.kind for block in ours] == [block.kind for block in theirs]:
        return [(one.text, other.text) for one, other in zip(ours, theirs, strict=True)]
    one, other = (" ".join(block.text for block in blocks) for blocks in (ours, theirs))
    return [(one, other)] if len(one) <= LONGEST and like_lengths(lang, one, other) else []


def align(lang: str, ours: Sequence[Section], theirs: Sequence[Section]) -> list[Aligned]:
    """Sections side by side, by key or, where the outline is the same, by order."""
    known = {section.key: section for section in theirs if section.key}
    matched = [(section, known[section.key]) for section in ours if section.key in known]
    if len(matched) < 0.5 * (len(ours) - 1) or not matched:
        if [section.level for section in ours] != [section.level for section in theirs]:
            return []
        matched = list(zip(ours, theirs, strict=True))
    found = []
    for one, other in matched:
        blocks = side_by_side(lang, one.blocks, other.blocks)
        found.append(Aligned((one.heading, other.heading), kept(lang, blocks)))
    return found


def kept(lang: str, blocks: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Blocks that are translated, long enough, and of likely lengths."""
    return [
        (one, other)
        for one, other in blocks
        if len(one) >= 25
        and len(other) <= LONGEST
        and translated(lang, one, other)
        and like_lengths(lang, one, other)
    ]


def joined(lang: str, blocks: Sequence[tuple[str, str]], seed: str) -> Iterator[tuple[str, str]]:
    """Passages of some 200 to 1200 characters from consecutive blocks."""
    aim = AIMS[int(roll(seed) * len(AIMS))]
    held: list[tuple[str, str]] = []
    for at, block in enumerate(blocks):
        held.append(block)
        size = sum(len(one) for one, _ in held)
        following = len(blocks[at + 1][0]) if at + 1 < len(blocks) else 0
        if size >= aim or size + following > LONGEST:
            yield from _passage(lang, held)
            held = []
    yield from _passage(lang, held)


def _passage(lang: str, held: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    one, other = ("\n".join(texts) for texts in zip(*held, strict=True)) if held else ("", "")
    least = 60 if lang in DENSE else 150
    if 180 <= len(one) <= LONGEST and least <= len(other) <= LONGEST:
        yield one, other


def role_of(english: str) -> str:
    """`q` for a question or a short line, else `p`."""
    return "q" if len(english) < 60 or english.endswith("?") else "p"


def merged(lang: str, aligned: Iterable[Aligned]) -> Iterator[list[tuple[str, str]]]:
    """The blocks of each section, short sections together with the next one, headings between."""
    held: list[tuple[str, str]] = []
    for section in aligned:
        if held and section.blocks and translated(lang, *section.heading):
            held.append(section.heading)
        held += section.blocks
        if sum(len(one) for one, _ in held) >= AIMS[0]:
            yield held
            held = []
    if held:
        yield held


def pairs(source: str, lang: str, aligned: Sequence[Aligned]) -> Iterator[Pair]:
    """Titles, passages and a share of the single blocks."""
    for blocks in merged(lang, aligned):
        for english, text in joined(lang, blocks, blocks[0][0] + str(len(blocks))):
            yield Pair(source, lang, "p", english, text)
    for section in aligned:
        one, other = section.heading
        if 12 <= len(one) <= 120 and translated(lang, one, other):
            yield Pair(source, lang, "q", one, other)
        for english, text in section.blocks:
            if len(english) < 400 and roll(english) < SINGLES:
                yield Pair(source, lang, role_of(english), english, text)


def groups(source: str, lang: str, aligned: Sequence[Aligned]) -> Iterator[Group]:
    """Title, section, and the next section of the same page, all in the one language."""
    page = next((section.heading[1] for section in aligned if section.heading[1]), "")
    found: list[tuple[str, str]] = []
    for section in aligned:
        heading = section.heading[1]
        title = (
            heading
            if not page or heading == page or len(heading) > 25 or ": " in heading
            else f"{page}: {heading}"
        )
        if heading and translated(lang, section.heading[0], heading):
            found += [(title, text) for _, text in joined(lang, section.blocks, "mono" + title)][:3]
    for (title, text), (_, other) in pairwise([*found, ("", "")]):
        rest = (("p", other),) if other else ()
        yield Group(source, lang, (("q", title), ("p", text), *rest))


def alone(source: str, lang: str, page: str, cut: Sequence[Section]) -> Iterator[Group]:
    """Title, section and the next section of a page that has no English to go with."""
    found = [
        (f"{page}: {section.heading}", text)
        for section in cut
        for text in cut_passages((block.text for block in section.blocks), LONGEST, 500)[:2]
        if section.heading and len(text) >= 60 and written_in(lang, section.heading + text, 0.4)
    ]
    for (title, text), (_, other) in pairwise([*found, ("", "")]):
        yield Group(source, lang, (("q", title), ("p", text), *((("p", other),) if other else ())))


def both(source: str, lang: str, aligned: Sequence[Aligned]) -> Iterator[Pair | Group]:
    """Translations and groups of one page."""
    yield from pairs(source, lang, aligned)
    yield from groups(source, lang, aligned)
