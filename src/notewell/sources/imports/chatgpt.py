"""ChatGPT's export: `conversations.json`, or `conversations-000.json` and so on, where messages are
a tree. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from notewell.sources.imports.items import (
    ASSISTANT,
    EARLIEST,
    USER,
    Item,
    Part,
    dict_of,
    id_of,
    line_of,
    list_of,
    moment,
    turn,
    unique,
)

_SPEAKERS = {"user": USER, "assistant": ASSISTANT}
_SPOKEN = ("text", "multimodal_text")
_CITATION = re.compile(
    "\ue200[^\ue201\n]{0,500}\ue201|[\ue200-\ue206]|【\\d{1,4}(?::\\d{1,4})?†[^】\n]{0,200}】"
)


def is_chatgpt(value: dict[str, Any]) -> bool:
    """Whether a value is a conversation of ChatGPT."""
    return isinstance(value.get("mapping"), dict)


def read_chatgpt(values: Iterable[Any]) -> Iterator[Item]:
    """Each conversation as it was last shown: of messages that were edited or asked again, the last
    version.
    """
    for value in values:
        conversation = dict_of(value)
        parts = unique(map(_turn, _shown(conversation)))
        if not parts:
            continue
        made, changed = (
            moment(conversation.get("create_time")),
            moment(conversation.get("update_time")),
        )
        number = id_of(conversation, "conversation_id", "id") or parts[0].key
        yield Item(
            number,
            line_of(conversation.get("title")) or "Conversation",
            parts,
            made or changed,
            changed,
        )


def _shown(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages on the way to the current one; without a current one, all of them by their
    time.
    """
    nodes = dict_of(conversation.get("mapping"))
    path: dict[str, dict[str, Any]] = {}
    at = conversation.get("current_node")
    while isinstance(at, str) and at in nodes and at not in path:
        node = dict_of(nodes[at])
        path[at] = dict_of(node.get("message"))
        at = node.get("parent")
    if path:
        return list(path.values())[::-1]
    messages = [dict_of(dict_of(node).get("message")) for node in nodes.values()]
    return sorted(messages, key=lambda message: moment(message.get("create_time")) or EARLIEST)


def _turn(message: dict[str, Any]) -> Part | None:
    """What a person or the assistant said; nothing of tools, of thoughts and of what was hidden."""
    who = _SPEAKERS.get(str(dict_of(message.get("author")).get("role")))
    content = dict_of(message.get("content"))
    hidden = (
        dict_of(message.get("metadata")).get("is_visually_hidden_from_conversation")
        or message.get("weight") == 0
    )
    if who is None or hidden or message.get("recipient", "all") not in ("all", None):
        return None
    if content.get("content_type") not in _SPOKEN or message.get("channel") == "analysis":
        return None
    said = "\n".join(filter(None, map(_words, list_of(content.get("parts")))))
    return turn(
        who, _CITATION.sub("", said), moment(message.get("create_time")), id_of(message, "id")
    )


def _words(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = str(dict_of(part).get("content_type"))
    if kind == "audio_transcription":
        return str(part.get("text") or "")
    return "[image]" if kind == "image_asset_pointer" else ""
