"""mem0 and OpenMemory: what `get_all` answers, and `memories.json` of a backup. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

from notewell.sources.imports.items import Item, by_day, dict_of, id_of, list_of, moment

_LISTS = ("results", "memories")


def is_mem0(value: dict[str, Any]) -> bool:
    """Whether a value is a memory of mem0, or an answer that lists some."""
    if isinstance(value.get("memory"), str) and "id" in value:
        return True
    first = next((dict_of(one) for key in _LISTS for one in list_of(value.get(key))), {})
    return "id" in first and isinstance(first.get("memory", first.get("content")), str)


def read_mem0(values: Iterable[Any]) -> Iterator[Item]:
    """One item for the memories of each user and day; what was deleted there is left out."""
    yield from by_day(_facts(values))


def _facts(values: Iterable[Any]) -> Iterator[tuple[str, str, str, dt.datetime | None]]:
    for value in values:
        answer = dict_of(value)
        for one in [m for key in _LISTS for m in list_of(answer.get(key))] or [answer]:
            memory = dict_of(one)
            text = memory.get("memory") or memory.get("content")
            if isinstance(text, str) and memory.get("state") != "deleted":
                owner = id_of(memory, "user_id", "agent_id", "run_id", "app")
                yield owner, id_of(memory, "id", "hash"), text, moment(memory.get("created_at"))
