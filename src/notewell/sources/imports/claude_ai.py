"""Claude.ai's export: `conversations.json`, `memories.json` and `projects.json`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from notewell.sources.imports.items import (
    ASSISTANT,
    USER,
    Item,
    Part,
    dict_of,
    id_of,
    line_of,
    list_of,
    moment,
    paragraphs,
    turn,
    unique,
)

_SPEAKERS = {"human": USER, "user": USER, "assistant": ASSISTANT}


def is_claude_ai(value: dict[str, Any]) -> bool:
    """Whether a value is a conversation, the memory or a project of Claude.ai."""
    talks, remembers = isinstance(value.get("chat_messages"), list), "conversations_memory" in value
    return (
        talks or remembers or "project_memories" in value or ("uuid" in value and "docs" in value)
    )


def read_claude_ai(values: Iterable[Any]) -> Iterator[Item]:
    """Conversations as they were last shown, what Claude remembers, and the texts of projects."""
    for one in values:
        value = dict_of(one)
        if isinstance(value.get("chat_messages"), list):
            yield from _conversation(value)
        elif "docs" in value:
            yield from _project(value)
        else:
            yield from _memory(value)


def _conversation(value: dict[str, Any]) -> Iterator[Item]:
    parts = unique(map(_turn, _shown(value)))
    if parts:
        made, changed = moment(value.get("created_at")), moment(value.get("updated_at"))
        number = id_of(value, "uuid", "id") or parts[0].key
        yield Item(
            number, line_of(value.get("name")) or "Conversation", parts, made or changed, changed
        )


def _shown(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages on the way to the last one, where they name the one before them; else all of
    them.
    """
    messages = [dict_of(message) for message in list_of(value.get("chat_messages"))]
    known = {id_of(m, "uuid"): m for m in messages}
    if not messages or not all(isinstance(m.get("parent_message_uuid"), str) for m in messages):
        return messages
    path: dict[str, dict[str, Any]] = {}
    at = id_of(value, "current_leaf_message_uuid")
    at = at if at in known else id_of(messages[-1], "uuid")
    while at in known and at not in path:
        path[at] = known[at]
        at = id_of(known[at], "parent_message_uuid")
    return list(path.values())[::-1]


def _turn(message: dict[str, Any]) -> Part | None:
    """What somebody said, with the names of what they attached; nothing of tools and thoughts."""
    who = _SPEAKERS.get(str(message.get("sender")))
    if who is None:
        return None
    pieces = [dict_of(piece) for piece in list_of(message.get("content"))]
    words = [str(p.get("text") or "") for p in pieces if p.get("type") in ("text", "voice_note")]
    said = "\n\n".join(filter(str.strip, words)) or str(message.get("text") or "")
    files = [dict_of(f) for key in ("attachments", "files") for f in list_of(message.get(key))]
    names = dict.fromkeys(filter(None, (line_of(f.get("file_name")) for f in files)))
    said = "\n\n".join(filter(None, (said, "".join(f"[file: {name}]" for name in names))))
    return turn(who, said, moment(message.get("created_at")), id_of(message, "uuid"))


def _memory(value: dict[str, Any]) -> Iterator[Item]:
    """What Claude remembers over all conversations, and of each project."""
    account = id_of(value, "account_uuid")
    if parts := paragraphs(str(value.get("conversations_memory") or "")):
        yield Item(f"memory/{account}", "What Claude remembers", parts)
    for project, text in dict_of(value.get("project_memories")).items():
        if isinstance(text, str) and (parts := paragraphs(text)):
            yield Item(
                f"memory/{account}/{project}",
                f"What Claude remembers of project {line_of(project)}",
                parts,
            )


def _project(value: dict[str, Any]) -> Iterator[Item]:
    """The instructions of a project, which its owner wrote, and the texts that were put into it."""
    name, number = (
        line_of(value.get("name")) or "project",
        id_of(value, "uuid") or line_of(value.get("name")),
    )
    made = moment(value.get("created_at"))
    if parts := paragraphs(str(value.get("prompt_template") or "")):
        title = f"Instructions of project {name}"
        yield Item(f"{number}/instructions", title, parts, made, origin="owner", grows=False)
    for one in list_of(value.get("docs")):
        document = dict_of(one)
        if parts := paragraphs(str(document.get("content") or "")):
            title = line_of(document.get("filename")) or "Document"
            own = f"{number}/{id_of(document, 'uuid') or title}"
            when = moment(document.get("created_at")) or made
            yield Item(own, f"{title} ({name})", parts, when, origin="untrusted", grows=False)
