"""A note or a conversation as a whole: its text, what it links to and what links to it, and its
neighbours in time.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from notewell.errors import NotFoundError
from notewell.index.index import Index
from notewell.notes.link_walk import Hop, LinkResolver, walk
from notewell.notes.links import read_links
from notewell.notes.statements import Statement, statements
from notewell.opener import MOST_KEPT_BYTES
from notewell.sources.source import Conversations
from notewell.store.ports import Store
from notewell.text.link_syntax import place_of
from notewell.text.words import clean
from notewell.types import Chunk, Document, Filters, Notice, Turn

_NEIGHBOURS = 64  # so many passages before and after are looked at for one of another note


@dataclass(frozen=True, slots=True)
class Named:
    """A note that is named beside another one."""

    path: str
    title: str
    citation: str
    date: dt.date | None = None


@dataclass(frozen=True, slots=True)
class WholeNote:
    """All of a document; `hash` is that of the bytes of a file that can be changed, `turns` are of
    a conversation.
    """

    path: str
    title: str
    source: str
    date: dt.date | None
    origin: str
    pinned: bool
    kept: bool
    hash: str
    text: str
    turns: tuple[Turn, ...]
    links: tuple[Named, ...]
    backlinks: tuple[Named, ...]
    statements: tuple[Statement, ...]
    passages: tuple[Chunk, ...]
    before: Named | None
    after: Named | None
    notices: tuple[Notice, ...] = ()


def whole_note(index: Index, path: str, *, as_of: dt.date | None = None) -> WholeNote:
    """A document of the index as it is on disk; with `as_of`, what is around it is as of that
    day.
    """
    found = index.walk.document(path)
    if found is None:
        raise NotFoundError(
            f"{path} is not there any more", hint="notewell index brings the index up to date"
        )
    source, document = found
    store, safe, filters = index.store, index.walk.safe, Filters(as_of=as_of)
    turns: list[Turn] = []
    try:
        if isinstance(source, Conversations):
            turns = [replace(t, text=safe(t.text)) for t in source.lines(document, 1, None)[0]]
            text = _readable(turns)
        else:
            text = safe(clean(source.read(document)))
    except (OSError, ValueError) as error:
        raise NotFoundError(
            f"{path} cannot be read: {error}", hint="notewell index reports each file"
        ) from error
    resolver = LinkResolver(store, index.root)
    chunks = resolver.chunks(path)
    facts = chunks[0].facts if chunks else None
    days = [c.day for c in chunks if c.day]
    day = facts.date if facts and facts.date else min(days, default=None)
    hand_made, notices = read_links(index.root)
    hops = walk(resolver, resolver.whole(path), links=hand_made, depth=1, direction="both").hops
    notices += _since(as_of, day, document) if as_of else []
    return WholeNote(
        path,
        facts.title if facts else path,
        document.source,
        day,
        chunks[0].origin if chunks else "owner",
        facts.pinned if facts else False,
        _is_kept(store, path, turns),
        hash_of(index, path),
        text,
        tuple(turns),
        tuple(_named((h for h in hops if h.direction == "out"), path, as_of)),
        tuple(_named((h for h in hops if h.direction == "in"), path, as_of)),
        tuple(statements(store, chunks, filters)),
        tuple(chunks),
        *_neighbours(store, chunks, filters),
        tuple(notices),
    )


def _since(as_of: dt.date, day: dt.date | None, document: Document) -> list[Notice]:
    """What a look back from a day cannot show of a note."""
    if day and day > as_of:
        return [Notice("later", f"this note is from {day}: it was not there on {as_of}")]
    if dt.date.fromtimestamp(document.mtime_ns / 1e9) > as_of:  # noqa: DTZ012 - a day of this place
        return [
            Notice("changed_since", f"this note changed after {as_of} and is shown as it is now")
        ]
    return []


def hash_of(index: Index, path: str) -> str:
    """The hash of the bytes of a note that can be changed; empty for any other document."""
    document = index.files.document(path)
    if document is None:
        return ""
    try:
        return hashlib.sha256(
            index.files.opener.read(document.location, most=MOST_KEPT_BYTES)
        ).hexdigest()
    except OSError:
        return ""


def resolver_of(
    index: Index, path: str, address: Callable[[str, int | None], str]
) -> Callable[[str], str]:
    """Finds the note that a link of a note names, as the place that `address` makes of its path and
    line.
    """
    resolver = LinkResolver(index.store, index.root)

    def resolve(target: str) -> str:
        place = place_of(target)
        if place is None:
            return ""
        node = resolver.find(
            place if place.name else replace(place, name=path), path, short_ids=False
        )
        if node.dangling:
            return ""
        return address(node.path, node.chunk.start_line if node.chunk and place.anchor else None)

    return resolve


def _readable(turns: list[Turn]) -> str:
    from notewell.text.transcript import readable  # noqa: PLC0415 - only those who have conversations pay for it

    return readable(turns)


def _is_kept(store: Store, path: str, turns: Iterable[Turn]) -> bool:
    """Whether a conversation is our own copy, as its program has deleted it."""
    if not turns:
        return False
    from notewell.index.conversations import Tail  # noqa: PLC0415

    return any(Tail.load(tail).kept for tail in store.documents.tails([path]).values())


def _named(hops: Iterable[Hop], own: str, as_of: dt.date | None) -> Iterable[Named]:
    """The notes at the other ends of links, each once."""
    found: dict[str, Named] = {}
    for node in (hop.node for hop in hops):
        day = node.chunk.day if node.chunk else None
        if not node.dangling and node.path != own and not (as_of and day and day > as_of):
            title = node.chunk.facts.title if node.chunk else node.path
            found.setdefault(node.path, Named(node.path, title, node.citation, day))
    return found.values()


def _neighbours(
    store: Store, chunks: list[Chunk], filters: Filters
) -> tuple[Named | None, Named | None]:
    """The nearest other notes before and after a note in time."""
    if not chunks:
        return None, None
    first, last = store.history.moment(chunks[0].row), store.history.moment(chunks[-1].row)
    own = chunks[0].path
    earlier = store.history.moments(filters, limit=_NEIGHBOURS, before=first)[::-1] if first else []
    later = store.history.moments(filters, limit=_NEIGHBOURS, after=last) if last else []
    rows = [next((m.row for m in found if m.path != own), 0) for found in (earlier, later)]
    near = store.documents.chunks([row for row in rows if row])
    before, after = (
        Named(c.path, c.facts.title, c.citation, c.day) if (c := near.get(row)) else None
        for row in rows
    )
    return before, after
