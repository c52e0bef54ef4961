"""What all sources share: the group of texts, cleaning, cutting, query forms, writing."""

from __future__ import annotations

import json
import os
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from training.fetch import work

SHORTEST = 30
LONGEST = 1800
LONGEST_QUERY = 300
_BLANK = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u3000]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b\u2060\ufeff\u00ad]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(`])")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Group:
    """Texts that belong together: a query and its passages, or passages of one document."""

    source: str
    lang: str
    texts: tuple[tuple[str, str], ...]

    def line(self) -> str:
        """This group as a line of JSON."""
        held = {"source": self.source, "lang": self.lang, "texts": self.texts}
        return json.dumps(held, ensure_ascii=False) + "\n"


def clean(text: str) -> str:
    """One line of prose: composed characters, single blanks."""
    return _BLANK.sub(
        " ", _CONTROL.sub(" ", unicodedata.normalize("NFC", text)).replace("\n", " ")
    ).strip()


def clean_lines(text: str) -> str:
    """Text whose lines matter: blanks at line ends and runs of empty lines go, indents stay."""
    text = _CONTROL.sub(
        "", unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\t", "    ")
    )
    lines = [line.rstrip().replace("\u00a0", " ") for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").rstrip()


def sentences(text: str) -> list[str]:
    """Prose cut at sentence ends, roughly."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


def _halves(paragraph: str, longest: int) -> Iterator[str]:
    """A paragraph that is too long, cut at lines, else at sentences, else at words."""
    for parts, glue in (
        (paragraph.split("\n"), "\n"),
        (sentences(paragraph), " "),
        (paragraph.split(" "), " "),
    ):
        if len(parts) > 1 and max(map(len, parts)) <= longest:
            yield from _fill(parts, glue, longest)
            return
    yield paragraph[:longest]


def _fill(parts: Iterable[str], glue: str, longest: int) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for part in parts:
        if held and size + len(part) > longest:
            yield glue.join(held)
            held, size = [], 0
        held.append(part)
        size += len(part) + len(glue)
    if held:
        yield glue.join(held)


def cut(paragraphs: Iterable[str], longest: int = LONGEST, aim: int = 900) -> list[str]:
    """Passages from paragraphs: borders kept, short ones joined up to `aim`, none over
    `longest`.
    """
    found: list[str] = []
    held = ""
    for paragraph in paragraphs:
        for part in [paragraph] if len(paragraph) <= longest else _halves(paragraph, longest):
            joined = f"{held}\n\n{part}" if held else part
            if held and len(joined) > aim:
                found.append(held)
                held = part
            else:
                held = joined
    if held:
        found.append(held)
    return [text.strip("\n") for text in found if SHORTEST <= len(text.strip()) <= longest]


def prose(text: str, aim: int = 900) -> list[str]:
    """Passages from prose without paragraphs, cut at sentence ends."""
    return [part for part in _fill(sentences(text), " ", aim) if SHORTEST <= len(part) <= LONGEST]


def words(text: str) -> list[str]:
    """Lower-case words."""
    return _WORD.findall(text.lower())


def mostly_words(text: str) -> bool:
    """Whether this reads as language or code, and is not a table of numbers or rules."""
    letters = sum(map(str.isalpha, text))
    return letters >= 0.5 * len(text.replace(" ", "").replace("\n", "")) and letters >= 20


STOP = frozenset(
    "a an and are as at be been but by can do does for from had has have how i if in into is it "
    "its may not of on or should so some such than that the their then there these they this those "
    "to was were what when where which who why will with would you your we our using use".split()
)
VERBS = frozenset(
    "add adding allow apply attach avoid build building call catch change changing check checking "
    "choose clone compile compiling configure configuring connect connecting convert converting "
    "copy create creating customize debug debugging define defining delete deleting deploy "
    "deploying disable disabling display download edit enable enabling encrypt export exporting "
    "extend extending extract filter find finding fix format generate generating get getting "
    "handle handling hide import importing include increase insert install installing integrate "
    "join limit list listing load loading log make making manage managing merge migrate migrating "
    "modify monitor mount move open override parse parsing pass perform prevent print publish "
    "query read reading receive recover redirect reduce remove removing rename replace report "
    "reset resolve restart restore restoring return revert rotate run running save saving schedule "
    "search select send sending serve set setting setup share show sign skip sort specify split "
    "start starting stop store submit switch sync test testing track translate troubleshoot tune "
    "turn uninstall unpack update updating upgrade upgrading upload use using validate verify view "
    "work working wrap write writing".split()
)


def keywords(text: str, most: int = 6) -> str:
    """The words that carry a phrase, as they are typed into a search box."""
    kept = [word for word in _WORD.findall(text) if word.lower() not in STOP]
    return " ".join(kept[:most]).lower()


def query_form(title: str, page: str, chance: random.Random) -> str:
    """One natural query for a section: its title as it is, with its page, as a question or as
    keywords.
    """
    title, page = clean(title).rstrip(":."), clean(page).rstrip(":.")
    named = not page or set(words(page)) <= set(words(title))
    first = title.split(" ")[0].lower()
    long = len(words(title)) > 2
    roll = chance.random()
    forms = [title if long or named else f"{page} {title}"]
    if "?" in title:
        return title
    if first in VERBS and long:
        forms.append(
            f"how to {title[0].lower()}{title[1:]}" if not first.endswith("ing") else title.lower()
        )
        if not named and first.endswith("ing"):
            forms.append(f"{title[0].lower()}{title[1:]} in {page}")
    forms.append(keywords(title if named else f"{page} {title}", 8) or title)
    if not named:
        forms.append(f"{page}: {title}" if roll < 0.6 else f"{page} - {title}")
    return chance.choice(forms)


def cloze(passage: str, chance: random.Random) -> tuple[str, str] | None:
    """One telling sentence of a passage as its query, taken out of the passage."""
    parts = sentences(passage)
    fit = [
        at
        for at, part in enumerate(parts)
        if 40 <= len(part) <= 200 and "\n" not in part and len(words(part)) > 6
    ]
    if len(parts) < 4 or not fit:
        return None
    at = chance.choice(fit)
    rest = passage.replace(parts[at], "", 1).replace("  ", " ").strip()
    return (parts[at], rest) if len(rest) >= 200 else None


def group(source: str, query: str, passages: Sequence[str], lang: str = "en") -> Group | None:
    """A query with its passage and up to two near misses, or nothing where one is out of bounds."""
    query = query.strip()
    kept = [
        text for text in passages[1:] if SHORTEST <= len(text) <= LONGEST and text != passages[0]
    ][:2]
    if (
        not 3 <= len(query) <= LONGEST_QUERY
        or not passages
        or not SHORTEST <= len(passages[0]) <= LONGEST
    ):
        return None
    return Group(source, lang, (("q", query), *(("p", text) for text in [passages[0], *kept])))


def free(source: str, passages: Sequence[str], lang: str = "en") -> Group | None:
    """Consecutive passages of one document, without a query."""
    kept = [text for text in passages if SHORTEST <= len(text) <= LONGEST][:4]
    return Group(source, lang, tuple(("p", text) for text in kept)) if len(kept) > 1 else None


def _mark(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


class Unique:
    """Keeps the first of identical texts."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def groups(self, found: Iterable[Group]) -> Iterator[Group]:
        """Groups with passages that were not there before; a query may meet several passages."""
        for each in found:
            asked = each.texts[0][0] == "q"
            whole = _mark("\n".join(text for _, text in each.texts[:2])) if asked else b""
            if whole in self.seen:
                continue
            head = each.texts[:2] if asked else ()
            rest = [
                pair for pair in each.texts[len(head) :] if asked or _mark(pair[1]) not in self.seen
            ]
            texts = (*head, *rest)
            if len(texts) < 2:
                continue
            self.seen.add(whole)
            self.seen.update(_mark(text) for _, text in texts)
            yield Group(each.source, each.lang, texts)


def write(path: Path, found: Iterable[Group], most_bytes: int = 10**12) -> Counter[str]:
    """Write groups as JSON lines, whole or not at all; counts of groups, texts and characters."""
    counts: Counter[str] = Counter()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        for each in found:
            file.write(each.line())
            counts["groups"] += 1
            counts["texts"] += len(each.texts)
            counts["bytes"] += sum(len(text.encode()) for _, text in each.texts)
            if counts["bytes"] >= most_bytes:
                break
    os.replace(part, path)
    return counts


def text_folder() -> Path:
    """Where the training text lies."""
    return work() / "text"
