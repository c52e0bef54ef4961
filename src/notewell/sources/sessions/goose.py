"""Goose: one database for all projects."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from notewell.sources.sessions.foreign_db import ForeignDb
from notewell.sources.sessions.keeper import Record, Table, Talk, Where, as_json, as_number, as_text

_LAYOUT = {
    "sessions": ("id", "description", "working_dir", "updated_at"),
    "messages": ("id", "session_id", "role", "content_json", "created_timestamp"),
}
_IN_MS = 100_000_000_000  # some releases count milliseconds
_OF_PEOPLE = ("user", "scheduled", "terminal", "gateway", "acp")


def _databases(where: Where) -> Iterator[str]:
    root = where.env.get("GOOSE_PATH_ROOT", "")
    homes = [os.path.join(root, "data")] if root else [where.data("goose")]
    if not root and where.env.get("APPDATA"):
        homes.append(os.path.join(where.env["APPDATA"], "Block", "goose", "data"))
    for home in homes:
        yield os.path.join(glob.escape(home), "sessions", "sessions.db")


def _talks(db: ForeignDb, _where: Where) -> Iterator[Talk]:
    name = (
        "description"
        if db.lacks({"sessions": ("name",)})
        else "coalesce(nullif(name, ''), description)"
    )
    kind = "'user'" if db.lacks({"sessions": ("session_type",)}) else "session_type"
    sql = (
        f"SELECT s.id, s.working_dir, {name}, {kind},"
        " CAST(strftime('%s', s.updated_at) AS INTEGER),"
        " max(m.created_timestamp), count(m.id)"
        " FROM sessions s LEFT JOIN messages m ON m.session_id = s.id GROUP BY s.id"
    )
    for id_, folder, title, of, changed, last, count in db.rows(sql):
        last_ms = as_number(last) * (1 if as_number(last) > _IN_MS else 1000)
        changed_ms = max(as_number(changed) * 1000, last_ms)
        yield Talk(id_, as_text(folder), changed_ms, as_text(title), of not in _OF_PEOPLE, count)


def _records(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    about = "NULL" if db.lacks({"messages": ("metadata_json",)}) else "metadata_json"
    sql = (
        f"SELECT role, content_json, created_timestamp, {about} FROM messages WHERE session_id = ?"
        " ORDER BY id LIMIT -1 OFFSET ?"
    )
    for number, (role, content, at, said) in enumerate(db.rows(sql, (id_, line - 1)), line):
        seen = as_json(said)
        hidden = isinstance(seen, dict) and seen.get("userVisible") is False
        yield number, {"role": "" if hidden else role, "content": as_json(content), "timestamp": at}


GOOSE = Table(
    "Goose", "1.10 and later", files=_databases, talks=_talks, records=_records, layouts=(_LAYOUT,)
)
