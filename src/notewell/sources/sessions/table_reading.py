"""Conversations in a database: which are of this workspace, and what was said after a mark."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from notewell.sources.sessions.foreign_db import ForeignDb
from notewell.sources.sessions.keeper import Record, Table, Talk, Where, as_text
from notewell.sources.source import ReadMark, TranscriptPart
from notewell.text.transcript import TranscriptReader

_PACKED = "packed"


def own_talks(table: Table, file: str, where: Where) -> list[Talk]:
    """The conversations in a database that may be of this workspace; OSError with the reason if it
    cannot be read.
    """
    with ForeignDb(file) as db:
        if unknown := table.unknown(db):
            raise OSError(unknown)
        found = [talk for talk in table.talks(db, where) if as_text(talk.id) and not talk.subagent]
        db.check()
    return [talk for talk in found if talk.folder is None or table.accepts(where, talk.folder)]


def deleted_talks(table: Table, file: str) -> list[str]:
    """The ids of conversations that the user deleted in their program, if it tells; OSError if it
    cannot be read.
    """
    if table.deleted is None:
        return []
    with ForeignDb(file) as db:
        return [id_ for id_ in table.deleted(db) if as_text(id_)]


def read_talk(
    db: ForeignDb, table: Table, talk: Talk, where: Where, mark: ReadMark | None
) -> TranscriptPart:
    """The turns of a conversation after a mark; all of them if the message at the mark is not what
    it was.
    """
    head = _PACKED if talk.lacking else ""
    new = (
        _after(db, table, talk, mark)
        if mark is not None and mark.offset and mark.head == head
        else None
    )
    records = [*table.records(db, talk.id, 1)] if new is None else new
    db.check()
    reader = TranscriptReader(title=talk.title)
    if talk.folder:
        reader.feed({"type": "session", "cwd": talk.folder}, 0)
    for line, record in records:
        reader.feed(record, line)
    stopped = _mark(records[-1], head) if records else mark if new is not None else None
    foreign = new is None and (
        talk.subagent or reader.subagent or not table.accepts(where, reader.folder)
    )
    again = mark is not None and new is None
    return TranscriptPart(
        tuple(reader.turns), reader.title, reader.project, stopped, again, foreign
    )


def _after(
    db: ForeignDb, table: Table, talk: Talk, mark: ReadMark
) -> Sequence[tuple[int, Record]] | None:
    """The records after a mark; None if the one at the mark is not what it was."""
    found = [*table.records(db, talk.id, mark.line)]
    same = bool(found) and _mark(found[0], mark.head) == mark
    return found[1:] if same else None


def _mark(at: tuple[int, Record], head: str) -> ReadMark:
    line, record = at
    digest = hashlib.blake2b(
        json.dumps(record, sort_keys=True, default=repr).encode(), digest_size=8
    ).hexdigest()
    return ReadMark(line, line, head, digest)
