"""Cursor: one database for all projects, of keys and values; the order of a conversation is in
another value.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from notewell.opener import ANYWHERE, MOST_SETTINGS_BYTES
from notewell.sources.sessions.foreign_db import ForeignDb
from notewell.sources.sessions.keeper import (
    Record,
    Table,
    Talk,
    Where,
    as_number,
    as_object,
    as_text,
)

_LAYOUT = {"cursorDiskKV": ("key", "value"), "ItemTable": ("key", "value")}
_HEADERS = {"composerHeaders": ("composerId", "value")}
_USER, _ASSISTANT = 1, 2
_THOUGHT = 30


def _databases(where: Where) -> Iterator[str]:
    for home in _homes(where):
        yield os.path.join(glob.escape(home), "globalStorage", "state.vscdb")


def _homes(where: Where) -> Iterator[str]:
    yield os.path.join(where.config("Cursor"), "User")
    yield where.home("", "Library", "Application Support", "Cursor", "User")
    if where.env.get("APPDATA"):
        yield os.path.join(where.env["APPDATA"], "Cursor", "User")


def _talks(db: ForeignDb, _where: Where) -> Iterator[Talk]:
    folders = _folders(os.path.dirname(os.path.dirname(db.file)))
    for head in _heads(db, folders):
        changed = as_number(head.get("lastUpdatedAt")) or as_number(head.get("createdAt"))
        helper = bool(head.get("subagentInfo"))
        yield Talk(
            as_text(head.get("composerId")),
            _folder(head, folders),
            changed,
            as_text(head.get("name")),
            helper,
        )


def _heads(db: ForeignDb, folders: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """What is known of each conversation: in a table since 3.0, in one value before, else with
    those of each folder.
    """
    if not db.lacks(_HEADERS):
        rows = [
            as_object(value) | {"composerId": id_}
            for id_, value in db.rows("SELECT composerId, value FROM composerHeaders")
        ]
        if rows:
            yield from rows
            return
    listed = _listed(_value(db, "ItemTable", "composer.composerHeaders"))
    if listed:
        yield from listed
        return
    storage = os.path.join(os.path.dirname(os.path.dirname(db.file)), "workspaceStorage")
    for id_, folder in folders.items():
        file = os.path.join(storage, id_, "state.vscdb")
        if not os.path.isfile(file):
            continue
        with contextlib.suppress(OSError), ForeignDb(file) as own:
            for head in _listed(_value(own, "ItemTable", "composer.composerData")):
                yield head | {"workspaceIdentifier": {"id": id_, "uri": {"fsPath": folder}}}


def _listed(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = value.get("allComposers")
    return [head for head in found if isinstance(head, dict)] if isinstance(found, list) else []


def _folder(head: Mapping[str, Any], folders: Mapping[str, str]) -> str:
    place = head.get("workspaceIdentifier")
    if not isinstance(place, dict):
        return ""
    uri = place.get("uri")
    path = uri.get("fsPath") or uri.get("path") if isinstance(uri, dict) else None
    return path if isinstance(path, str) and path else folders.get(str(place.get("id")), "")


def _folders(user: str) -> dict[str, str]:
    """The folder of each workspace that the editor knows, by its id."""
    found = {}
    for file in glob.iglob(
        os.path.join(glob.escape(user), "workspaceStorage", "*", "workspace.json")
    ):
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            address = json.loads(ANYWHERE.read(file, most=MOST_SETTINGS_BYTES)).get("folder")
            if isinstance(address, str) and address.startswith("file:"):
                found[os.path.basename(os.path.dirname(file))] = unquote(urlsplit(address).path)
    return found


def _records(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    data = _value(db, "cursorDiskKV", f"composerData:{id_}")
    # before 0.40 the messages themselves
    order = data.get("fullConversationHeadersOnly") or data.get("conversation")
    heads = (
        [head if isinstance(head, dict) else {} for head in order]
        if isinstance(order, list)
        else []
    )
    speaking = data.get("status") == "generating"
    for number, head in enumerate(heads[line - 1 :], line):
        key = head.get("bubbleId")
        bubble = _value(db, "cursorDiskKV", f"bubbleId:{id_}:{key}") or head
        if speaking and number == len(heads) and bubble.get("type") == _ASSISTANT:
            return
        yield number, _said(bubble)


def _said(bubble: Mapping[str, Any]) -> Record:
    thought = bubble.get("capabilityType") == _THOUGHT or bubble.get("isThought")
    role = {_USER: "user", _ASSISTANT: "assistant"}.get(as_number(bubble.get("type")), "")
    timing = bubble.get("timingInfo")
    at = bubble.get("createdAt") or (
        timing.get("clientStartTime") if isinstance(timing, dict) else None
    )
    return {"role": "" if thought else role, "content": bubble.get("text"), "timestamp": at}


def _value(db: ForeignDb, table: str, key: str) -> dict[str, Any]:
    row = next(db.rows(f"SELECT value FROM {table} WHERE key = ?", (key,)), None)
    return as_object(row[0]) if row else {}


CURSOR = Table(
    "Cursor", "0.40 to 3.1", files=_databases, talks=_talks, records=_records, layouts=(_LAYOUT,)
)
