"""Letta: agent files (`.af`) of both layouts, and passages of archival memory as its API lists
them. Pure.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator
from typing import Any

from notewell.sources.imports.items import (
    ASSISTANT,
    USER,
    Item,
    Part,
    by_day,
    dict_of,
    id_of,
    line_of,
    list_of,
    moment,
    paragraphs,
    turn,
    unique,
)

_SAYS = "send_message"


def is_letta(value: dict[str, Any]) -> bool:
    """Whether a value is an agent file of Letta, or a passage."""
    agents = isinstance(value.get("agents"), list) and isinstance(value.get("blocks"), list)
    return (
        agents
        or isinstance(value.get("core_memory"), list)
        or _is_passage(value)
        or _passages(value) != []
    )


def read_letta(values: Iterable[Any]) -> Iterator[Item]:
    """The blocks and the conversation of each agent, and passages by their day."""
    passages: list[dict[str, Any]] = []
    for one in values:
        value = dict_of(one)
        passages += [value] if _is_passage(value) else _passages(value)
        shared = {id_of(dict_of(b), "id"): dict_of(b) for b in list_of(value.get("blocks"))}
        agents = list_of(value.get("agents")) or ([value] if "core_memory" in value else [])
        for agent in map(dict_of, agents):
            named = [
                shared[number]
                for number in map(str, list_of(agent.get("block_ids")))
                if number in shared
            ]
            own = [
                dict_of(b)
                for key in ("core_memory", "memory_blocks")
                for b in list_of(agent.get(key))
            ]
            yield from _agent(agent, named + own)
    yield from by_day(_facts(passages))


def _agent(agent: dict[str, Any], blocks: Iterable[dict[str, Any]]) -> Iterator[Item]:
    name = line_of(agent.get("name")) or "agent"
    made = moment(agent.get("created_at"))
    for block in blocks:
        label = line_of(block.get("label")) or "memory"
        if parts := paragraphs(str(block.get("value") or "")):
            yield Item(
                f"{name}/{label}",
                f"{name}: {label}",
                parts,
                moment(block.get("created_at")) or made,
            )
    messages = [dict_of(message) for message in list_of(agent.get("messages"))]
    if parts := unique(map(_turn, messages)):
        times = [when for m in messages if (when := moment(m.get("created_at")))]
        first, last = (min(times), max(times)) if times else (made, None)
        yield Item(f"{name}/messages", f"Conversation with {name}", parts, first, last)


def _turn(message: dict[str, Any]) -> Part | None:
    """What was said; the ids of a file count from 0 in each export, so they are not used."""
    content = message.get("content", message.get("text"))
    pieces = (
        [content]
        if isinstance(content, str)
        else [dict_of(p).get("text") for p in list_of(content)]
    )
    words = "\n\n".join(piece for piece in pieces if isinstance(piece, str))
    when = moment(message.get("created_at"))
    if message.get("role") == "user":
        return turn(USER, _unwrapped(words), when)
    if message.get("role") != "assistant":
        return None
    calls = [dict_of(dict_of(call).get("function")) for call in list_of(message.get("tool_calls"))]
    if calls:  # the words beside a call are thoughts
        said = (_object(c.get("arguments")).get("message") for c in calls if c.get("name") == _SAYS)
        words = "\n\n".join(one for one in said if isinstance(one, str))
    return turn(ASSISTANT, words, when)


def _unwrapped(words: str) -> str:
    """What a person said, which older versions wrap in JSON beside the signals of the program."""
    wrapped = _object(words)
    if not isinstance(wrapped.get("type"), str):
        return words
    said = wrapped.get("message")
    return said if wrapped["type"] == "user_message" and isinstance(said, str) else ""


def _object(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return dict_of(text)
    try:
        return dict_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _is_passage(value: dict[str, Any]) -> bool:
    return isinstance(value.get("text"), str) and (
        "archive_id" in value or id_of(value, "id").startswith("passage-")
    )


def _passages(value: dict[str, Any]) -> list[dict[str, Any]]:
    found = [dict_of(p) for key in ("passages", "archival_memory") for p in list_of(value.get(key))]
    return [p for p in found if isinstance(p.get("text"), str)]


def _facts(
    passages: Iterable[dict[str, Any]],
) -> Iterator[tuple[str, str, str, dt.datetime | None]]:
    for passage in passages:
        yield "", id_of(passage, "id"), str(passage["text"]), moment(passage.get("created_at"))
