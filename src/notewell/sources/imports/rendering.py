"""Items as Markdown with front matter. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from notewell.sources.imports.items import Item, Part, digest
from notewell.text.note_files import safe_name

_LONGEST_ID = 200


def note_of(item: Item, imported_from: str = "") -> str:
    """The whole note of an item; where it comes from and its id are named if it is imported."""
    named = {"title": _quoted(item.title), "date": day_of(item), "origin": item.origin}
    if imported_from:
        named |= {
            "imported_from": imported_from,
            "id": _quoted((item.name or item.id)[:_LONGEST_ID]),
        }
    if tags := [_quoted(tag.replace(",", " ")) for tag in item.tags if tag.strip()]:
        named["tags"] = f"[{', '.join(tags)}]"
    lines = [
        "---",
        *(f"{key}: {value}" for key, value in named.items() if value),
        *item.front,
        "---",
        "",
    ]
    return "\n".join([*lines, f"# {item.title}", "", _joined(item.parts), ""])


def day_of(item: Item) -> str:
    """The day of an item, or nothing."""
    return item.made.date().isoformat() if item.made else ""


def key_of(kind: str, number: str) -> str:
    """What tells an item of a format from all others, at the end of its file's name."""
    return digest(kind, number)


def stem_of_item(kind: str, item: Item) -> str:
    """The name of an item's file: its day, the words of its title and its key."""
    day = "" if item.linked else day_of(item)
    return "-".join(filter(None, (day, safe_name(item.title), key_of(kind, item.id))))


def extended(text: str, parts: Sequence[Part]) -> str:
    """A note with parts at its end, but for those whose very words it has."""
    flat = text.replace("\r\n", "\n")
    fresh = [part for part in parts if part.text not in flat]
    if not fresh:
        return text
    more = f"\n\n{_joined(fresh)}\n"
    return text.rstrip() + (more.replace("\n", "\r\n") if "\r\n" in text else more)


def _joined(parts: Iterable[Part]) -> str:
    """The parts one below the other; items of a list without a blank line between them."""
    made: list[str] = []
    listed = False
    for part in parts:
        if made:
            made.append("\n" if listed and part.text.startswith("- ") else "\n\n")
        made.append(part.text)
        listed = part.text.startswith("- ")
    return "".join(made)


def _quoted(text: str) -> str:
    """A text of front matter that our parser and those of YAML read alike."""
    mark = '"' if "'" in text and '"' not in text and "\\" not in text else "'"
    return mark + (text if mark == '"' else text.replace("'", "’")) + mark
