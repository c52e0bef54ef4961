"""Knowledge graphs: `memory.jsonl` of MCP's reference memory server, and the same with
basic-memory's names. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from notewell.sources.imports.items import (
    Item,
    Part,
    bullet,
    dict_of,
    id_of,
    line_of,
    list_of,
    text_of,
    unique,
)
from notewell.sources.imports.rendering import stem_of_item

GRAPH = "mcp-memory"

_OPEN_LINK = str.maketrans({"[": "(", "]": ")", "|": "/", "#": " "})


@dataclass
class _Entity:
    """What the lines of a graph say of one thing."""

    kind: str = ""
    facts: list[str] = field(default_factory=list)
    relations: list[tuple[str, str]] = field(default_factory=list)


def is_graph(value: dict[str, Any]) -> bool:
    """Whether a value is a line of a graph, or a graph as the server's tools answer it."""
    whole = isinstance(value.get("entities"), list) and "relations" in value
    entity = value.get("type") == "entity" and bool(_name(value))
    return whole or entity or (value.get("type") == "relation" and bool(_end(value, "from")))


def read_graph(values: Iterable[Any]) -> Iterator[Item]:
    """One item for each thing: what was observed of it, and links to others."""
    things: dict[str, _Entity] = {}
    for value in values:
        record = dict_of(value)
        for one in list_of(record.get("entities")) or [record]:
            _observe(things, dict_of(one))
        for one in list_of(record.get("relations")) or [record]:
            _relate(things, dict_of(one))
    for name, thing in things.items():
        parts = unique(
            (*map(bullet, thing.facts), *(_link(*relation) for relation in thing.relations))
        )
        if parts:
            tags = (thing.kind,) if thing.kind else ()
            yield replace(_item(name), parts=parts, tags=tags)


def _observe(things: dict[str, _Entity], record: dict[str, Any]) -> None:
    if record.get("type", "entity") == "relation" or not (name := _name(record)):
        return
    thing = things.setdefault(name, _Entity())
    thing.kind = thing.kind or line_of(record.get("entityType") or record.get("entity_type"))
    facts = (
        f if isinstance(f, str) else dict_of(f).get("content")
        for f in list_of(record.get("observations"))
    )
    thing.facts += filter(None, map(text_of, facts))


def _relate(things: dict[str, _Entity], record: dict[str, Any]) -> None:
    start, end = _end(record, "from"), _end(record, "to")
    kind = line_of(record.get("relationType") or record.get("relation_type")) or "relates_to"
    if start and end:
        things.setdefault(start, _Entity()).relations.append((kind, end))


def _name(record: dict[str, Any]) -> str:
    return (
        id_of(record, "name", "entityName", "id")
        if "observations" in record or "entityType" in record
        else ""
    )


def _end(record: dict[str, Any], side: str) -> str:
    return id_of(record, side, f"{side}_id")


def _item(name: str) -> Item:
    return Item(name, line_of(name), (), linked=True)


def _link(kind: str, end: str) -> Part:
    """A link to the note of another thing, under its name."""
    return bullet(
        f"{kind} [[{stem_of_item(GRAPH, _item(end))}|{end.translate(_OPEN_LINK)}]]",
        f"{kind}\0{end}",
    )
