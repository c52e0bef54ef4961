"""Hermes: a database a profile; a message that was taken back stays in it, and is not read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Any

from notewell.sources.sessions.foreign_db import ForeignDb
from notewell.sources.sessions.keeper import Record, Table, Talk, Where, as_json, as_number, as_text

_LAYOUT = {
    "sessions": ("id", "source", "cwd", "title", "started_at"),
    "messages": ("id", "session_id", "role", "content", "timestamp"),
}
_JSON = "\0json:"
_HELPERS = ("subagent", "delegate", "delegation")


def _databases(where: Where) -> Iterator[str]:
    home = glob.escape(where.home("HERMES_HOME", ".hermes"))
    yield os.path.join(home, "state.db")
    yield os.path.join(home, "profiles", "*", "state.db")


def _talks(db: ForeignDb, _where: Where) -> Iterator[Talk]:
    sql = (
        "SELECT s.id, s.cwd, s.title, s.source, s.started_at, max(m.timestamp), count(m.id)"
        " FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id"
    )
    for id_, folder, title, source, started, last, count in db.rows(sql):
        changed_ms = _ms(last) or _ms(started)
        yield Talk(id_, as_text(folder), changed_ms, as_text(title), source in _HELPERS, count)


def _ms(seconds: Any) -> int:
    return as_number(seconds * 1000) if as_number(seconds) else 0


def _records(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    # A row that was taken out of the context by a summary is still what was said; one taken back by
    # the user is not.
    valid = "1" if db.lacks({"messages": ("active", "compacted")}) else "active OR compacted"
    sql = (
        f"SELECT role, content, timestamp, {valid} FROM messages WHERE session_id = ? ORDER BY "
        "id LIMIT -1 OFFSET ?"
    )
    for number, (role, content, at, said) in enumerate(db.rows(sql, (id_, line - 1)), line):
        yield number, {"role": role if said else "", "content": _content(content), "timestamp": at}


def _content(text: Any) -> Any:
    return as_json(text[len(_JSON) :]) if isinstance(text, str) and text.startswith(_JSON) else text


HERMES = Table(
    "Hermes", "0.15 to 0.19", files=_databases, talks=_talks, records=_records, layouts=(_LAYOUT,)
)
