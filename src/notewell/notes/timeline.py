"""What came before and after a passage or a day, over all sources."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notewell.store.ports import Store
from notewell.store.values import Moment
from notewell.types import Chunk, Filters


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage in its time: `when` in ISO form, taken `by` its `time`, its note's `date` or its
    `file`.
    """

    chunk: Chunk
    when: str
    by: str
    here: bool = False


def latest(store: Store, *, window: int, filters: Filters) -> list[Entry]:
    """The latest passages."""
    return _entries(store, store.history.moments(filters, limit=window), lambda _: False)


def around_days(
    store: Store, first: dt.date, last: dt.date, *, window: int, filters: Filters
) -> list[Entry]:
    """At most two windows of what was written on some days, which is marked, and one before and
    after; none if cut.
    """
    begin, end = Moment(first.isoformat()), Moment(f"{last.isoformat()}T99")
    # A bare day sorts before its own passages, and before their times.
    before = store.history.moments(filters, limit=window, before=begin)
    inside = [
        m
        for m in store.history.moments(filters, limit=2 * window + 1, after=begin)
        if m.when < end.when
    ]
    after = (
        store.history.moments(filters, limit=window, after=end) if len(inside) <= 2 * window else []
    )
    inside = inside[: 2 * window]
    days = {m.row for m in inside}
    return _entries(store, [*before, *inside, *after], lambda m: m.row in days)


def around_passage(
    store: Store, chunk: Chunk | None, *, window: int, filters: Filters, whole: bool = False
) -> list[Entry]:
    """A passage, marked, or its `whole` note, with `window` before it and as many after, which the
    filters bind.
    """
    at = store.history.moment(chunk.row) if chunk else None
    if at is None:
        return []
    before = store.history.moments(filters, limit=window, before=at)
    after = store.history.moments(filters, limit=window, after=at)
    return _entries(
        store, [*before, at, *after], lambda m: m.row == at.row or (whole and m.path == at.path)
    )


def _entries(
    store: Store, moments: Sequence[Moment], here: Callable[[Moment], bool]
) -> list[Entry]:
    chunks = store.documents.chunks([m.row for m in moments])
    return [Entry(chunks[m.row], m.when, m.by, here(m)) for m in moments if m.row in chunks]
