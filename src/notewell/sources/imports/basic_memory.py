"""Markdown notes, such as those of basic-memory with observations and relations, and basic-memory's
JSON. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from notewell.sources.imports.items import (
    Item,
    Part,
    bullet,
    dict_of,
    id_of,
    line_of,
    list_of,
    moment,
    text_of,
    unique,
)
from notewell.text.link_syntax import front_values
from notewell.text.markdown import parse
from notewell.text.note_files import decode

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:")
_OURS = ("title", "date", "origin", "imported_from", "id", "tags", "tag")
_POWERS = (
    "supersedes",
    "conflicts_with",
    "links",
    "pin",
    "pinned",
    "importance",
)  # over other notes of the user
_MOST_LINES = 150
_DATES = ("date", "created", "created_at", "modified", "updated", "updated_at")
_TITLE = re.compile(r"\A# +([^\n]+)\n*")


def read_markdown(data: bytes, _name: str) -> Item | None:
    """A note with its own front matter; one of basic-memory is known by its permalink. ValueError
    if it is not text.
    """
    return _read(decode(data))


def _read(whole: str) -> Item | None:
    text = text_of(whole)
    front = parse(text).front
    lines = text.split("\n")
    end = (
        next((n for n in range(1, len(lines)) if lines[n].rstrip() in ("---", "...")), 0)
        if front
        else 0
    )
    body = "\n".join(lines[end + 1 if end else 0 :]).strip("\n")
    title = line_of(front.get("title"))
    if heading := _TITLE.match(body):
        title = title or line_of(heading[1])
        body = body[heading.end() :] if line_of(heading[1]) == title else body
    parts = (Part(body, body),) if body.strip() else ()
    tags = tuple(
        t
        for key in ("tags", "tag")
        if key in front
        for value in front_values(front[key])
        if (t := value)
    )
    when = next((found for key in _DATES if (found := moment(front.get(key)))), None)
    permalink = line_of(front.get("permalink"))
    kept = tuple(islice(_further(lines[1:end]), _MOST_LINES))
    note = Item(permalink, title, parts, when, tags=tags, grows=False, name=permalink, front=kept)
    return note if parts or kept else None


def _further(lines: Iterable[str]) -> Iterator[str]:
    """The lines of front matter that may stay, with the lines that belong to them."""
    ours = False
    for line in lines:
        if key := _KEY.match(line):
            ours = key[1].lower() in (*_OURS, *_POWERS)
        if not ours and line.strip():
            yield line


def is_basic_memory(value: dict[str, Any]) -> bool:
    """Whether a value is a note as basic-memory's tools answer it."""
    return isinstance(value.get("permalink"), str) and (
        "content" in value or "observations" in value
    )


def read_basic_memory(values: Iterable[Any]) -> Iterator[Item]:
    """Notes with their text, or with what it says of observations and relations."""
    for one in values:
        value = dict_of(one)
        permalink, title = line_of(value.get("permalink")), line_of(value.get("title"))
        when = moment(value.get("created_at")) or moment(value.get("updated_at"))
        content = value.get("content")
        if isinstance(content, str) and content.strip():
            if (note := _read(content)) is not None:
                made = note.made or when
                yield replace(
                    note, id=permalink or note.id, title=title or note.title or permalink, made=made
                )
            continue
        facts = (_observation(dict_of(o)) for o in list_of(value.get("observations")))
        links = (_relation(dict_of(r)) for r in list_of(value.get("relations")))
        if parts := unique((*facts, *links)):
            yield Item(permalink, title or permalink, parts, when)


def _observation(value: dict[str, Any]) -> Part | None:
    said, category = text_of(value.get("content")), line_of(value.get("category"))
    return bullet(f"[{category}] {said}" if category else said) if said else None


def _relation(value: dict[str, Any]) -> Part | None:
    end = id_of(value, "to_name", "to_entity", "to_id", "target")
    return (
        bullet(f"{line_of(value.get('relation_type')) or 'relates_to'} [[{end}]]") if end else None
    )
