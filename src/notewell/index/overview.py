"""What is remembered, at a glance: how much, when, about what, what changed lately and what needs a person."""

from __future__ import annotations

import datetime as dt
import heapq
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from notewell.notes.statements import nearest_sentence
from notewell.store.ports import Store
from notewell.store.values import DayCount, Listed
from notewell.types import Chunk, Filters

MOST = 50
_TOPICS = 40
_LATELY = 20
_LOOKED_AT = 1_000  # chunks in dispute, and as many with copies: more than anybody settles in a day
_TAGGED = 20_000
_RECENT_DAYS = 7
_TAG = re.compile(r"(?<![\w&/#])#([^\W\d_][\w/-]{1,39})")
_TIME = re.compile(r"(?:added )?[\d\s:./-]*\Z")
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")


@dataclass(frozen=True, slots=True)
class Topic:
    """A heading or a tag, and how many passages are under it."""

    name: str
    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class Changed:
    """A document that came or changed lately, by the time of its file."""

    path: str
    title: str
    when: str
    what: str
    source: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two passages that contradict each other, the newer first, each with the sentence that does."""

    chunk: Chunk
    text: str
    other: Chunk
    other_text: str


@dataclass(frozen=True, slots=True)
class Copies:
    """A passage and the citations of others that say the same."""

    chunk: Chunk
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that a first look at a memory shows; of long lists the first, and how many more there are."""

    notes: int
    conversations: int
    passages: int
    days: tuple[DayCount, ...]
    topics: tuple[Topic, ...]
    lately: tuple[Changed, ...]
    pinned: tuple[Listed, ...]
    conflicts: tuple[Conflict, ...]
    copies: tuple[Copies, ...]
    settled: tuple[str, ...]  # notes that are older than some days
    more_conflicts: int = 0
    more_copies: int = 0


def stamp(store: Store) -> tuple[object, ...]:
    """What is another whenever an overview may be: what the store counts, and how far it has judged."""
    return id(store), tuple(sorted(store.meta().items(), key=str)), tuple(store.relations.unjudged(1))


def overview(store: Store, filters: Filters) -> Overview:
    """Looks at all of a store; what is later than the filters allow does not exist."""
    recent = time.time_ns() - _RECENT_DAYS * 86_400_000_000_000
    with store.reading():
        listed = store.documents.listed(filters)
        days = store.history.days(filters)
        conflicts = _conflicts(store, filters)
        copies = _copies(store, filters)
        return Overview(
            notes=sum(one.source != "sessions" for one in listed),
            conversations=sum(one.source == "sessions" for one in listed),
            passages=sum(one.chunks for one in listed),
            days=tuple(days),
            topics=tuple(_topics(store, filters)),
            lately=tuple(_changed(one) for one in sorted(listed, key=_age)[:_LATELY]),
            pinned=tuple(one for one in listed if one.pinned)[:MOST],
            conflicts=tuple(conflicts[:MOST]),
            copies=tuple(copies[:MOST]),
            settled=tuple(one.path for one in listed if one.source != "sessions" and one.mtime_ns < recent),
            more_conflicts=max(0, len(conflicts) - MOST),
            more_copies=max(0, len(copies) - MOST),
        )


def _age(one: Listed) -> tuple[int, str]:
    return -one.mtime_ns, one.path


def _changed(one: Listed) -> Changed:
    """A document is new if all of its passages came at once, and not on a day after its own."""
    when = dt.datetime.fromtimestamp(one.mtime_ns / 1e9).replace(microsecond=0)  # noqa: DTZ006 - a time of this place
    at_once = one.last_row - one.first_row + 1 == one.chunks
    late = one.date is not None and when.date().isoformat() > one.date
    what = "added" if at_once and not late else "changed"
    return Changed(one.path, one.title or one.path, when.isoformat(), what, one.source)


def _topics(store: Store, filters: Filters) -> list[Topic]:
    """The headings and tags that most passages have; a heading that is only a time or a day is not a topic."""
    headings: Counter[str] = Counter()
    for path, count in store.documents.headings(filters):
        for title in set(path):
            headings[title] += count
    tags: Counter[str] = Counter()
    for text in store.documents.texts_with("#", filters, _TAGGED):
        tags.update(set(_TAG.findall(_CODE.sub("", text))))
    found = [(-count, "heading", name) for name, count in headings.items() if not _TIME.match(name)]
    found += [(-count, "tag", name) for name, count in tags.items()]
    return [Topic(name, kind, -count) for count, kind, name in heapq.nsmallest(_TOPICS, found)]


def _conflicts(store: Store, filters: Filters) -> list[Conflict]:
    """Pairs that nobody has settled: what was replaced is not in dispute any more."""
    chunks = _passing(store, store.relations.disputed(_LOOKED_AT), filters)
    related = store.relations.related(chunks, filters)
    pairs: dict[frozenset[str], tuple[Chunk, str]] = {}
    for chunk in chunks:
        one = related.get(chunk.row)
        if one is not None and not one.superseded_by:
            for name in one.conflicts_with:
                pairs.setdefault(frozenset((chunk.id, name)), (chunk, name))
    known = {c.id: c for c in chunks}
    found = []
    for chunk, name in pairs.values():
        other = known.get(name) or next(iter(store.documents.chunks_by_id(name)), None)
        if other is not None and other.id != chunk.id:
            older, newer = sorted((chunk, other), key=lambda c: (c.day or dt.date.min, c.row))
            text = nearest_sentence(newer, older.text)
            found.append(Conflict(newer, text, older, nearest_sentence(older, text)))
    contradicted = {one.other.id for one in found}  # the newest of several is set against each of the others
    return [one for one in found if one.chunk.id not in contradicted]


def _copies(store: Store, filters: Filters) -> list[Copies]:
    """Notes that say the same as another, under the one that is shown; conversations repeat themselves and notes."""
    chunks = [c for c in _passing(store, store.relations.copied(_LOOKED_AT), filters) if c.source != "sessions"]
    related = store.relations.related(chunks, filters)
    groups: dict[str, list[str]] = {}
    for chunk in chunks:
        one = related.get(chunk.row)
        if one is not None and one.superseded_by and one.copy:
            groups.setdefault(one.superseded_by, []).append(chunk.citation)
    known = {c.id: c for c in chunks}
    return [Copies(known[name], tuple(sorted(others))) for name, others in groups.items() if name in known]


def _passing(store: Store, rows: Sequence[int], filters: Filters) -> list[Chunk]:
    """The chunks of some rows, in their order, that are not later than the filters allow."""
    chunks = store.documents.chunks(rows)
    found = (chunks[row] for row in rows if row in chunks)
    return [c for c in found if filters.as_of is None or c.day is None or c.day <= filters.as_of]
