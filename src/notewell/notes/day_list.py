"""The days of a memory, the newest first, each with the notes and conversations that have something
of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from notewell.store.ports import Store
from notewell.store.values import Moment
from notewell.types import Chunk, Filters

_DAYS = 30
_MOST_MOMENTS = 5_000
_MOST_ENTRIES = 200
_TOPICS = 6
_LINE = 160


@dataclass(frozen=True, slots=True)
class DayEntry:
    """What one document has of a day: its headings there, and its first passage."""

    path: str
    title: str
    source: str
    topics: tuple[str, ...]
    citation: str
    first_line: str


@dataclass(frozen=True, slots=True)
class Day:
    """A day and its documents, and how many more there are than fit."""

    day: str
    entries: tuple[DayEntry, ...]
    more: int = 0


def days(store: Store, filters: Filters) -> tuple[list[Day], str | None]:
    """The newest days that pass the filters, and the day to go on from; None where there is no
    other.
    """
    known = [one.day for one in store.history.days(filters)][::-1]
    shown, rest = known[:_DAYS], known[_DAYS:]
    if not shown:
        return [], None
    inside = replace(
        filters, since=dt.date.fromisoformat(shown[-1]), until=dt.date.fromisoformat(shown[0])
    )
    moments = store.history.moments(inside, limit=_MOST_MOMENTS)
    # the oldest of these days may be cut, so it is left for the next look
    if len(moments) == _MOST_MOMENTS:
        whole = {m.when[:10] for m in moments} - {moments[0].when[:10]}
        cut = [day for day in shown if day not in whole]
        if len(cut) < len(shown):
            shown, rest = [day for day in shown if day in whole], [*cut, *rest]
    by_day: dict[str, list[Moment]] = {}
    for moment in moments:
        by_day.setdefault(moment.when[:10], []).append(moment)
    return [_day(store, day, by_day.get(day, ())) for day in shown], rest[0] if rest else None


def _day(store: Store, day: str, moments: Sequence[Moment]) -> Day:
    by_path: dict[str, list[int]] = {}
    for moment in moments:
        by_path.setdefault(moment.path, []).append(moment.row)
    some = dict(list(by_path.items())[:_MOST_ENTRIES])
    chunks = store.documents.chunks([row for rows in some.values() for row in rows])
    found = [[chunks[row] for row in rows if row in chunks] for rows in some.values()]
    return Day(day, tuple(_entry(own) for own in found if own), len(by_path) - len(some))


def _entry(own: Sequence[Chunk]) -> DayEntry:
    first = own[0]
    topics = dict.fromkeys(title for c in own for title in c.heading if title != first.facts.title)
    line = next((line for line in first.text.splitlines() if line.strip()), "").strip()
    title = first.facts.title or first.path
    return DayEntry(
        first.path, title, first.source, tuple(topics)[:_TOPICS], first.citation, line[:_LINE]
    )
