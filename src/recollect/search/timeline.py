"""Chronological neighbours: what came before and after a passage or a day, over all sources."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.ports import Moment
from recollect.types import Chunk, Filters


class Dated(Protocol):
    """What a timeline asks of a store."""

    def moments(
        self, filters: Filters, *, limit: int, after: Moment | None = None, before: Moment | None = None
    ) -> list[Moment]:
        """The next passages after a moment or the last before it, in order."""
        ...

    def moment(self, row: int) -> Moment | None:
        """Where one passage stands in time."""
        ...

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Whole chunks by row."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage in its time: `when` in ISO form, `by` whether its `time`, its note's `date` or its `file` says so."""

    chunk: Chunk
    when: str
    by: str
    here: bool = False


def latest(store: Dated, *, window: int, filters: Filters) -> list[Entry]:
    """The last passages there are."""
    return _entries(store, store.moments(filters, limit=window), lambda _: False)


def around_days(store: Dated, first: dt.date, last: dt.date, *, window: int, filters: Filters) -> list[Entry]:
    """What was written on some days, which are marked, with `window` passages before them and as many after.

    Of the days themselves at most twice the window is shown, and then no more.
    """
    begin, end = Moment(first.isoformat()), Moment(f"{last.isoformat()}T99")
    # A bare day sorts before its own passages, and before their times.
    before = store.moments(filters, limit=window, before=begin)
    inside = [m for m in store.moments(filters, limit=2 * window + 1, after=begin) if m.when < end.when]
    after = store.moments(filters, limit=window, after=end) if len(inside) <= 2 * window else []
    inside = inside[: 2 * window]
    days = {m.row for m in inside}
    return _entries(store, [*before, *inside, *after], lambda m: m.row in days)


def around_passage(
    store: Dated, chunk: Chunk | None, *, window: int, filters: Filters, whole: bool = False
) -> list[Entry]:
    """A passage with `window` before it and as many after; the filters bind its neighbours, not the passage.

    With `whole`, all that is shown of its note is marked.
    """
    at = store.moment(chunk.row) if chunk else None
    if at is None:
        return []
    before = store.moments(filters, limit=window, before=at)
    after = store.moments(filters, limit=window, after=at)
    return _entries(store, [*before, at, *after], lambda m: m.row == at.row or (whole and m.path == at.path))


def _entries(store: Dated, moments: Sequence[Moment], here: Callable[[Moment], bool]) -> list[Entry]:
    chunks = store.chunks([m.row for m in moments])
    return [Entry(chunks[m.row], m.when, m.by, here(m)) for m in moments if m.row in chunks]
