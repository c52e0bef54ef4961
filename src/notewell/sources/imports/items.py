"""What a reader makes of an export: items, each of which becomes one note. Pure."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from notewell.text.note_edit import nested, tidy

USER, ASSISTANT = "User", "Assistant"
EARLIEST = dt.datetime(1, 1, 1)  # noqa: DTZ001 - times are local
_LONGEST_TITLE = 200
_LONGEST_HEADING = 80
_ATTACHED = ("[image", "[file:")
_FENCE = re.compile(r" {0,3}(?:`{3,}+(?!.*`)|~{3,}+)")
_BREAK = re.compile(r"\n[ \t]*\n")
# what our own notes say so with
_SUPERSEDES = re.compile(r"<!--(?=\s{0,99}supersedes)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a note, such as a turn or a fact: its Markdown, and the key by which it is never
    brought twice.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Item:
    """What becomes one note. `id` is the same in every export, and `name` is what a person reads in
    its place.

    One that `grows` gets new parts even where a person has edited its note. `front` are further
    lines of front matter. The file of one that is `linked` from others has no date in its name, so
    that they can foresee it.
    """

    id: str
    title: str
    parts: tuple[Part, ...]
    made: dt.datetime | None = None
    changed: dt.datetime | None = None
    tags: tuple[str, ...] = ()
    origin: str = "agent"
    grows: bool = True
    name: str = ""
    front: tuple[str, ...] = ()
    linked: bool = False


def text_of(value: Any) -> str:
    """A text fit for a note, or nothing where a value is not text; it cannot hide a note of the
    user.
    """
    return _SUPERSEDES.sub("&lt;!--", tidy(value)) if isinstance(value, str) else ""


def line_of(value: Any) -> str:
    """A text on one line, such as a title."""
    return " ".join(text_of(value).split())[:_LONGEST_TITLE].strip()


def id_of(record: Mapping[str, Any], *keys: str) -> str:
    """The first of some values that can be an id, on one line."""
    values = (record.get(key) for key in keys)
    lines = (
        " ".join(text_of(str(value)).split()) for value in values if isinstance(value, str | int)
    )
    return next(filter(None, lines), "")


def dict_of(value: Any) -> dict[str, Any]:
    """An object, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """A list, or an empty one in the place of anything else."""
    return value if isinstance(value, list) else []


def moment(value: Any) -> dt.datetime | None:
    """A time as exports write it, in local time: seconds or milliseconds, or an ISO text; None for
    anything else.
    """
    try:
        if isinstance(value, str) and value.strip():
            found = dt.datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            found = dt.datetime.fromtimestamp(value if value < 1e11 else value / 1000, dt.UTC)
        else:
            return None
        return (found.astimezone() if found.tzinfo else found).replace(tzinfo=None, microsecond=0)
    except (ValueError, OverflowError, OSError):
        return None


def digest(*texts: str) -> str:
    """A short hash of some texts."""
    return hashlib.blake2b("\0".join(texts).encode("utf-8", "replace"), digest_size=6).hexdigest()


def turn(who: str, said: Any, when: dt.datetime | None, key: str = "") -> Part | None:
    """A turn of a conversation, None if nothing was said; the user's begins a section, so that its
    answer is in it.
    """
    text = text_of(said)
    if not text.strip():
        return None
    heading = f"## {_shortened(text)}\n\n" if who == USER else ""
    time = f", {when:%Y-%m-%d %H:%M}" if when else ""
    key = key or digest(who, when.isoformat() if when else "", text)
    return Part(key, f"{heading}**{who}**{time}:\n\n{nested(text, 3)}")


def _shortened(text: str) -> str:
    """The first words of a text, for a heading."""
    lines = (
        line_of(line).lstrip("#>-*` ")
        for line in text.split("\n")
        if not line.startswith(_ATTACHED)
    )
    line = next(filter(None, lines), "…")
    return (
        line
        if len(line) <= _LONGEST_HEADING
        else f"{line[:_LONGEST_HEADING].rpartition(' ')[0] or line[:40]}…"
    )


def bullet(said: str, key: str = "") -> Part:
    """A fact as an item of a list."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    return Part(key or said, "- " + "\n  ".join(lines))


def paragraphs(text: str, *, least: int = 2) -> tuple[Part, ...]:
    """A text in pieces, parted at blank lines outside fences; its headings are at level `least` or
    below.
    """
    found: list[str] = []
    piece: list[str] = []
    fenced = False
    for block in _BREAK.split(nested(text_of(text), least)):
        piece.append(block)
        fenced ^= sum(bool(_FENCE.match(line)) for line in block.split("\n")) % 2 == 1
        if not fenced:
            found.append("\n\n".join(piece).strip("\n"))
            piece = []
    found += ["\n\n".join(piece)] if piece else []
    return unique(Part(one, one) for one in found if one.strip())


def unique(parts: Iterable[Part | None]) -> tuple[Part, ...]:
    """The parts that are there; a key that comes again gets a number, so that each is told
    apart.
    """
    seen: dict[str, int] = {}
    kept: list[Part] = []
    for part in parts:
        if part is not None:
            seen[part.key] = count = seen.get(part.key, 0) + 1
            kept.append(part if count == 1 else Part(f"{part.key}\0{count}", part.text))
    return tuple(kept)


def by_day(facts: Iterable[tuple[str, str, str, dt.datetime | None]]) -> Iterable[Item]:
    """One item for the facts of each owner and day; a fact is (owner, id, text, when)."""
    days: dict[tuple[str, dt.date | None], list[tuple[dt.datetime | None, Part]]] = {}
    for owner, number, text, when in facts:
        if said := text_of(text):
            part = bullet(said, digest(number, said))
            days.setdefault((owner, when.date() if when else None), []).append((when, part))
    for (owner, day), found in days.items():
        title = f"Memories{f' of {owner}' if owner else ''}{f', {day}' if day else ''}"
        parts = unique(
            part for _, part in sorted(found, key=lambda one: (one[0] or EARLIEST, one[1].text))
        )
        made = dt.datetime.combine(day, dt.time()) if day else None
        yield Item(f"{owner or 'memories'}/{day or ''}", title, parts, made)


def paged(title: str, pages: Iterable[tuple[str, str]], made: dt.datetime | None) -> Item | None:
    """Somebody's document as an item: pieces, each with its heading or none."""
    parts = unique(
        Part(text, f"## {heading}\n\n{text}" if heading else text)
        for heading, raw in pages
        if (text := "\n\n".join(part.text for part in paragraphs(raw, least=3 if heading else 2)))
    )
    return Item("", line_of(title), parts, made, origin="untrusted", grows=False) if parts else None
