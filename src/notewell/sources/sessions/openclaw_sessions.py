"""OpenClaw: one JSONL file a conversation until 2026.7, a database an agent since 2026.8."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from notewell.opener import is_in
from notewell.sources.sessions.foreign_db import ForeignDb, unpacked, unpacker
from notewell.sources.sessions.keeper import (
    Files,
    Record,
    Table,
    Talk,
    Where,
    as_number,
    as_object,
    as_text,
    real,
)

_EVENTS = {"transcript_events": ("session_id", "seq", "event_json", "created_at")}


def _home(where: Where) -> str:
    return where.home("OPENCLAW_STATE_DIR", ".openclaw")


def _globs(where: Where) -> Iterator[str]:
    yield os.path.join(glob.escape(_home(where)), "agents", "*", "sessions", "*.jsonl*")


def _databases(where: Where) -> Iterator[str]:
    yield os.path.join(glob.escape(_home(where)), "agents", "*", "agent", "openclaw-agent.sqlite")


def _accepts(where: Where, folder: str) -> bool:
    """Its own workspace is in its folder, and an older release noted where it was started
    instead.
    """
    home = real(_home(where))
    return where.owns(folder) or (
        bool(folder) and is_in(where.root, home) and not is_in(real(folder), home)
    )


def _talks(db: ForeignDb, _where: Where) -> Iterator[Talk]:
    windows = not db.lacks(
        {"session_windows": ("session_id", "session_key", "updated_at", "display_name")}
    )
    packed = not db.lacks({"transcript_events": ("event_zstd",)}) and unpacker() is None
    keys = (
        "SELECT session_id, session_key, display_name, updated_at FROM session_windows"
        if windows
        else "SELECT DISTINCT session_id, '', '', 0 FROM transcript_events"
    )
    last = (
        "SELECT seq, created_at FROM transcript_events WHERE session_id = ? ORDER BY seq DESC "
        "LIMIT 1"
    )
    for id_, key, title, changed in [*db.rows(keys)]:
        found = next(db.rows(last, (id_,)), None)
        if found is None:
            continue
        lacking = packed and _is_packed(db, id_)
        changed_ms, count = max(as_number(changed), as_number(found[1])), as_number(found[0]) + 1
        yield Talk(
            id_,
            None,
            changed_ms,
            as_text(title),
            ":subagent:" in as_text(key),
            count,
            lacking=lacking,
        )


def _is_packed(db: ForeignDb, id_: str) -> bool:
    sql = "SELECT 1 FROM transcript_events WHERE session_id = ? AND event_zstd IS NOT NULL LIMIT 1"
    return next(db.rows(sql, (id_,)), None) is not None


def _records(db: ForeignDb, id_: str, line: int) -> Iterator[tuple[int, Record]]:
    packed = "NULL" if db.lacks({"transcript_events": ("event_zstd",)}) else "event_zstd"
    sql = (
        f"SELECT seq, event_json, {packed} FROM transcript_events WHERE session_id = ? AND seq "
        ">= ? ORDER BY seq"
    )
    readable = unpacker() is not None
    for seq, event, data in db.rows(sql, (id_, line - 1)):
        if event is None and not (data is not None and readable):
            continue
        yield as_number(seq) + 1, _event(event, data)


def _deleted(db: ForeignDb) -> Iterator[str]:
    if not db.lacks({"session_transcript_archives": ("session_id", "reason")}):
        sql = "SELECT DISTINCT session_id FROM session_transcript_archives WHERE reason = 'deleted'"
        yield from (id_ for (id_,) in db.rows(sql))


def _event(event: str | None, data: bytes | None) -> Record:
    try:
        return as_object(event if event is not None else unpacked(data or b""))
    except ValueError:
        return {}


OPENCLAW = Files(
    "OpenClaw", "before 2026.8", homes=lambda where: [_home(where)], globs=_globs, accepts=_accepts
)
OPENCLAW_DATABASE = Table(
    "OpenClaw",
    "2026.8 to 2026.9",
    files=_databases,
    talks=_talks,
    records=_records,
    layouts=(_EVENTS,),
    accepts=_accepts,
    deleted=_deleted,
)
