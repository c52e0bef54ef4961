"""What is remembered, at a glance: how much, when, about what, what changed lately and what needs a
person.
"""

from __future__ import annotations

import datetime as dt
import heapq
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from notewell.notes.link_walk import LinkResolver, Node
from notewell.notes.links import LINKS_FILE, read_links
from notewell.notes.statements import nearest_sentence
from notewell.store.ports import Store
from notewell.store.values import DayCount, Listed
from notewell.text.link_syntax import TAG
from notewell.text.words import STOP_WORDS, term_set
from notewell.types import Chunk, Filters

MOST = 50
_TOPICS = 40
_LATELY = 20
_LOOKED_AT = 1_000  # chunks in dispute, and as many with copies: more than anybody settles in a day
_TAGGED = 20_000
_LINKED = 200  # links that two notes contradict each other
_COMPARED = 20  # passages of a note that such a link may be about
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
    """Two passages that contradict each other, the newer first, each with the sentence that
    does.
    """

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
    """Everything that a first look at a memory shows; of long lists the first, and how many more
    there are.
    """

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


def stamp(store: Store, root: Path) -> tuple[object, ...]:
    """What is another whenever an overview may be: what the store counts, how far it has judged,
    links made by hand.
    """
    try:
        linked = (root / LINKS_FILE).stat().st_mtime_ns
    except OSError:
        linked = 0
    return (
        id(store),
        tuple(sorted(store.meta().items(), key=str)),
        tuple(store.relations.unjudged(1)),
        linked,
    )


def overview(store: Store, filters: Filters, root: Path) -> Overview:
    """Looks at all of a store; what is later than the filters allow does not exist."""
    recent = time.time_ns() - _RECENT_DAYS * 86_400_000_000_000
    with store.reading():
        listed = store.documents.listed(filters)
        days = store.history.days(filters)
        conflicts = _conflicts(store, filters, root)
        copies = _copies(store, filters)
        return Overview(
            notes=sum(one.source != "sessions" for one in listed),
            conversations=sum(one.source == "sessions" for one in listed),
            passages=sum(one.chunks for one in listed),
            days=tuple(days),
            topics=tuple(_topics(store, filters, listed)),
            lately=_lately(listed, filters.as_of),
            pinned=tuple(one for one in listed if one.pinned)[:MOST],
            conflicts=tuple(conflicts[:MOST]),
            copies=tuple(copies[:MOST]),
            settled=tuple(
                one.path for one in listed if one.source != "sessions" and one.mtime_ns < recent
            ),
            more_conflicts=max(0, len(conflicts) - MOST),
            more_copies=max(0, len(copies) - MOST),
        )


def _lately(listed: Sequence[Listed], as_of: dt.date | None) -> tuple[Changed, ...]:
    """The last that came or changed. What changed after the day of a look back came, as far as is
    known, on its day.
    """
    if as_of is None:
        return tuple(
            _changed(one)
            for one in heapq.nsmallest(_LATELY, listed, key=lambda o: (-o.mtime_ns, o.path))
        )
    found = [(_changed(one), one.date) for one in listed]
    last = as_of.isoformat()
    seen = [one for one, _ in found if one.when[:10] <= last]
    seen += [
        replace(one, when=day, what="added") for one, day in found if one.when[:10] > last and day
    ]
    return tuple(heapq.nlargest(_LATELY, seen, key=lambda one: (one.when, one.path)))


def _changed(one: Listed) -> Changed:
    """A document is new if all of its passages came at once, and not on a day after its own."""
    when = dt.datetime.fromtimestamp(one.mtime_ns / 1e9).replace(microsecond=0)  # noqa: DTZ006 - a time of this place
    at_once = one.last_row - one.first_row + 1 == one.chunks
    late = one.date is not None and when.date().isoformat() > one.date
    what = "added" if at_once and not late else "changed"
    return Changed(one.path, one.title or one.path, when.isoformat(), what, one.source)


def _topics(store: Store, filters: Filters, listed: Sequence[Listed]) -> list[Topic]:
    """The headings and tags that most passages have; a heading that is only a time or a day is not
    a topic.

    A tag of a note's front matter is one of all its passages.
    """
    headings: Counter[str] = Counter()
    for path, count in store.documents.headings(filters):
        for title in set(path):
            headings[title] += count
    tags: Counter[str] = Counter()
    passages = {one.path: one.chunks for one in listed}
    of_note: dict[str, set[str]] = {}
    for edge in store.history.edges_like(TAG):
        of_note.setdefault(edge.start.name, set()).add(edge.end.name[1:])
    for name, own in of_note.items():
        tags.update(dict.fromkeys(own, passages.get(name, 0)))
    for name, text in store.documents.texts_with("#", filters, _TAGGED):
        tags.update(set(_TAG.findall(_CODE.sub("", text))) - of_note.get(name, set()))
    # Who writes a tag means a topic, so of two that are used alike it comes first.
    found = [(-count, 1, name) for name, count in headings.items() if not _TIME.match(name)]
    found += [(-count, 0, name) for name, count in tags.items() if count]
    kinds = ("tag", "heading")
    return [
        Topic(name, kinds[kind], -count) for count, kind, name in heapq.nsmallest(_TOPICS, found)
    ]


def _conflicts(store: Store, filters: Filters, root: Path) -> list[Conflict]:
    """Pairs that nobody has settled: what was replaced is not in dispute any more."""
    judged = [_conflict(*pair) for pair in _judged(store, filters)]
    # the newest of several is set against each of the others
    contradicted = {one.other.id for one in judged}
    found = [one for one in judged if one.chunk.id not in contradicted]
    linked = [_conflict(*pair) for pair in _linked(store, filters, root)]
    return list(
        {frozenset((one.chunk.id, one.other.id)): one for one in (*linked, *found)}.values()
    )


def _conflict(one: Chunk, other: Chunk) -> Conflict:
    older, newer = sorted((one, other), key=lambda c: (c.day or dt.date.min, c.row))
    text = nearest_sentence(newer, older.text)
    return Conflict(newer, text, older, nearest_sentence(older, text))


def _linked(store: Store, filters: Filters, root: Path) -> Iterator[tuple[Chunk, Chunk]]:
    """Passages of which somebody has said that they contradict each other, in a note or by hand."""
    resolver = LinkResolver(store, root)
    made = [
        *store.history.edges_like("conflicts_with"),
        *(e for e in read_links(root)[0] if e.kind == "conflicts_with"),
    ]
    for start, end in map(resolver.ends, made[:_LINKED]):
        ours, theirs = (_said_by(resolver, node, filters) for node in (start, end))
        words = {c.id: term_set(c.text) - STOP_WORDS for c in (*ours, *theirs)}
        pairs = [pair for pair in product(ours, theirs) if pair[0].id != pair[1].id]
        if not pairs:
            continue
        nearest = max(pairs, key=lambda pair: len(words[pair[0].id] & words[pair[1].id]))
        related = store.relations.related(nearest, filters)
        if not any(one.superseded_by and not one.copy for one in related.values()):
            yield nearest


def _said_by(resolver: LinkResolver, node: Node, filters: Filters) -> list[Chunk]:
    """The passages that one end of a link may mean."""
    if node.dangling:
        return []
    own = (
        resolver.chunks(node.path)[:_COMPARED] if node.whole else [node.chunk] if node.chunk else []
    )
    return [chunk for chunk in own if _passes(chunk, filters)]


def _judged(store: Store, filters: Filters) -> Iterator[tuple[Chunk, Chunk]]:
    """Passages of which the comparison of texts says so."""
    chunks = _passing(store, store.relations.disputed(_LOOKED_AT), filters)
    related = store.relations.related(chunks, filters)
    known = {c.id: c for c in chunks}
    # A pinned passage is shown although it was replaced, but it is settled all the same.
    replaced = {
        c.id for c in chunks if (r := related.get(c.row)) and r.superseded_by and not r.copy
    }
    pairs: dict[frozenset[str], tuple[Chunk, str]] = {}
    for chunk in chunks:
        one = related.get(chunk.row)
        if one is not None and not one.superseded_by:
            for name in (n for n in one.conflicts_with if n not in replaced):
                pairs.setdefault(frozenset((chunk.id, name)), (chunk, name))
    for chunk, name in pairs.values():
        other = known.get(name) or next(iter(store.documents.chunks_by_id(name)), None)
        if other is not None and other.id != chunk.id:
            yield chunk, other


def _copies(store: Store, filters: Filters) -> list[Copies]:
    """Notes that say the same as another, under the one that is shown; conversations repeat
    themselves and notes.
    """
    chunks = [
        c
        for c in _passing(store, store.relations.copied(_LOOKED_AT), filters)
        if c.source != "sessions"
    ]
    related = store.relations.related(chunks, filters)
    groups: dict[str, list[str]] = {}
    for chunk in chunks:
        one = related.get(chunk.row)
        if one is not None and one.superseded_by and one.copy:
            groups.setdefault(one.superseded_by, []).append(chunk.citation)
    known = {c.id: c for c in chunks}
    return [
        Copies(known[name], tuple(sorted(others)))
        for name, others in groups.items()
        if name in known
    ]


def _passing(store: Store, rows: Sequence[int], filters: Filters) -> list[Chunk]:
    """The chunks of some rows, in their order, that are not later than the filters allow."""
    chunks = store.documents.chunks(rows)
    return [chunks[row] for row in rows if row in chunks and _passes(chunks[row], filters)]


def _passes(chunk: Chunk, filters: Filters) -> bool:
    return filters.as_of is None or chunk.day is None or chunk.day <= filters.as_of
