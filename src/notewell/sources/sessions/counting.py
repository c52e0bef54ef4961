"""How many conversations there are of a workspace, by program; a count that costs little, and reads
none of them.
"""

from __future__ import annotations

import contextlib
import glob
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from notewell.opener import ANYWHERE
from notewell.sources.sessions import growing_file
from notewell.sources.sessions.foreign_db import ForeignDb
from notewell.sources.sessions.keeper import Files, Table, Talk, Where
from notewell.sources.sessions.programs import FILES, TABLES
from notewell.sources.sessions.session_source import is_transcript
from notewell.sources.sessions.table_reading import own_talks
from notewell.text.transcript import TranscriptReader

_SECONDS = 0.5
_HEAD_BYTES = 1 << 16
_HEAD_RECORDS = 5


def found(
    workspace: str | Path, *, env: Mapping[str, str] | None = None, seconds: float = _SECONDS
) -> dict[str, int]:
    """The number of conversations of a workspace by the name of their program; a lower bound if
    time runs out.
    """
    where = Where(os.path.realpath(workspace), os.environ if env is None else env)
    until = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    for files in FILES:
        counts[files.name] += _files(files, where, until)
    for table in TABLES:
        counts[table.name] += _talks(table, where, until)
    return {name: count for name, count in counts.items() if count}


def _files(files: Files, where: Where, until: float) -> int:
    places = [
        p
        for pattern in files.globs(where)
        for p in glob.iglob(pattern, recursive=True)
        if is_transcript(p)
    ]
    if files.by_project:
        return len(places)
    count = 0
    for place in sorted(places, reverse=True):  # most have a date in their name: the newest first
        if time.monotonic() > until:
            break
        count += files.accepts(where, files.about(place)[0] if files.about else _folder_in(place))
    return count


def _folder_in(place: str) -> str:
    """Where a conversation was held, as the first lines of its file tell."""
    reader = TranscriptReader()
    with contextlib.suppress(OSError), ANYWHERE.file(place) as file:
        for line in growing_file.read_at(file, 0, _HEAD_BYTES).split(b"\n")[:_HEAD_RECORDS]:
            reader.feed(growing_file.parsed(line), 1)
            if reader.folder:
                break
    return reader.folder


def _talks(table: Table, where: Where, until: float) -> int:
    count = 0
    for place in (
        p for pattern in table.files(where) for p in glob.iglob(pattern) if os.path.isfile(p)
    ):
        if time.monotonic() > until:
            break
        with contextlib.suppress(OSError):
            talks = own_talks(table, place, where)
            count += sum(
                talk.folder is not None or _is_own(table, place, talk, where) for talk in talks
            )
    return count


def _is_own(table: Table, place: str, talk: Talk, where: Where) -> bool:
    with ForeignDb(place) as db:
        record = next((record for _, record in table.records(db, talk.id, 1)), {})
    reader = TranscriptReader()
    reader.feed(record, 1)
    return table.accepts(where, reader.folder)
