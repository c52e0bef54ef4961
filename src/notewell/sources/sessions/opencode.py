"""opencode: one database for all projects; 2.0 has a table for messages with their parts, 1.x two
tables.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from typing import Any

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

_SESSION = ("id", "parent_id", "directory", "title", "time_updated")
_ONE = {
    "session": _SESSION,
    "message": ("id", "session_id", "time_created", "data"),
    "part": ("message_id", "data"),
}
_TWO = {
    "session_v2": _SESSION,
    "session_message": ("session_id", "type", "seq", "time_created", "data"),
}
_SAID = {"user": "user", "assistant": "assistant", "compaction": "assistant"}


def _databases(where: Where) -> Iterator[str]:
    yield os.path.join(glob.escape(where.data("opencode")), "opencode*.db")


def _is_two(db: ForeignDb) -> bool:
    """Whether 2.0 writes here; its tables may be there before that, and those of 1.x stay and no
    longer grow.
    """
    return not db.lacks(_TWO) and db.has("session_message") and db.has("session_v2")


def _talks(db: ForeignDb, _where: Where) -> Iterator[Talk]:
    two = _is_two(db)
    sessions, messages = ("session_v2", "session_message") if two else ("session", "message")
    sql = (
        f"SELECT id, directory, time_updated, title, parent_id,"
        f" (SELECT count(*) FROM {messages} m WHERE m.session_id = s.id) FROM {sessions} s"
    )
    for id_, folder, changed, title, parent, count in db.rows(sql):
        yield Talk(
            id_,
            as_text(folder),
            as_number(changed),
            _given(as_text(title)),
            parent is not None,
            count,
        )


def _given(title: str) -> str:
    """A title; the one that every new conversation has says nothing."""
    return "" if title.startswith(("New session - ", "Child session - ")) else title


def _records(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    yield from _two(db, id_, line) if _is_two(db) else _one(db, id_, line)


def _two(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    sql = (
        "SELECT type, time_created, data FROM session_message WHERE session_id = ? ORDER BY seq "
        "LIMIT -1 OFFSET ?"
    )
    for number, (kind, at, data) in enumerate(db.rows(sql, (id_, line - 1)), line):
        said = as_object(data)
        content = said.get("content", said.get("text", said.get("summary")))
        yield number, {"role": _SAID.get(kind, ""), "content": content, "timestamp": at}


def _one(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    parts = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
    sql = (
        "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, "
        "id LIMIT -1 OFFSET ?"
    )
    rows = [*db.rows(sql, (id_, line - 1))]
    for number, (message, at, data) in enumerate(rows, line):
        about = as_object(data)
        time = about.get("time")
        if (
            about.get("role") == "assistant"
            and message == rows[-1][0]
            and isinstance(time, dict)
            and not time.get("completed")
        ):
            return  # it is still being said
        content = [
            part for (text,) in db.rows(parts, (message,)) if _is_said(part := as_object(text))
        ]
        yield number, {"role": about.get("role"), "content": content, "timestamp": at}


def _is_said(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")


OPENCODE = Table(
    "opencode", "1.2 to 2.0", files=_databases, talks=_talks, records=_records, layouts=(_TWO, _ONE)
)
