"""Descriptions of Debian's packages and their translations."""

from __future__ import annotations

from collections.abc import Iterator

from training.fetch import fetched, listed
from training.text.aligned import Aligned, Pair, both, kept
from training.text.common import Group, clean
from training.text.languages import code, translated

Described = dict[str, tuple[str, list[str]]]


def paragraphs(lines: list[str]) -> list[str]:
    """The prose of a long description; lists and tables, which are indented, are left out."""
    found, held = [], ""
    for line in [*lines, " ."]:
        if line.strip() == ".":
            found.append(clean(held))
            held = ""
        elif not line.startswith("  "):
            held += " " + line
    return [text for text in found if text]


def described(index: str) -> Described:
    """Short and long description by checksum, from one index of the archive."""
    found: Described = {}
    for record in index.split("\n\n"):
        lines = record.split("\n")
        checksum = next(
            (line.split(": ", 1)[1] for line in lines if line.startswith("Description-md5: ")), ""
        )
        at = next(
            (
                at
                for at, line in enumerate(lines)
                if line.startswith("Description-") and "md5" not in line
            ),
            -1,
        )
        if checksum and at >= 0:
            found[checksum] = clean(lines[at].partition(": ")[2]), paragraphs(lines[at + 1 :])
    return found


def _index(name: str) -> Described:
    return described(fetched(name).read_text(encoding="utf-8", errors="replace"))


def beside(lang: str, english: Described, others: Described) -> Iterator[Aligned]:
    """Each description in two languages, paragraphs side by side where there are as many."""
    for checksum, (title, long) in others.items():
        if checksum in english:
            short, paragraphs_en = english[checksum]
            blocks = (
                list(zip(paragraphs_en, long, strict=True))
                if len(long) == len(paragraphs_en)
                else []
            )
            if blocks or translated(lang, short, title):
                yield Aligned((short, title), kept(lang, blocks))


def descriptions() -> Iterator[Pair | Group]:
    """All languages the archive has."""
    english = _index("Translation-en")
    for name in [name for name in listed() if name.startswith("Translation-")]:
        lang = code(name.removeprefix("Translation-"))
        if lang not in {"", "en"}:
            for one in beside(lang, english, _index(name)):
                yield from both("debian-descriptions", lang, [one])
