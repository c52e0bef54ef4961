"""What a note says that was said differently before or after: each statement with its versions in
order of time.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from notewell.compare.change import denies, figures, gives_new_figure
from notewell.compare.reading import sentences
from notewell.store.ports import Store
from notewell.text.words import STOP_WORDS, term_set
from notewell.types import Chunk, Filters

_MOST_CHUNKS = 200  # of a note; a longer one is hardly a list of facts
_MOST_VERSIONS = 20
_LONGEST = 300
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Version:
    """How a statement was put, where, and from which day until which other; `until` is None while
    it holds.
    """

    text: str
    citation: str
    since: dt.date | None
    until: dt.date | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """The words that all versions share, and the versions, the oldest first."""

    subject: str
    versions: tuple[Version, ...]


def statements(store: Store, chunks: Sequence[Chunk], filters: Filters) -> list[Statement]:
    """Every statement of these passages that others replace, are replaced by or contradict."""
    found, seen = [], set[int]()
    some = chunks[:_MOST_CHUNKS]
    related = store.relations.related(some, filters)
    for chunk in some:
        if chunk.row not in seen and (chunk.row in related or _claims(chunk)):
            versions = _versions(store, chunk, filters)
            seen |= {one.row for one in versions}
            if len(versions) > 1:
                found.append(_statement(chunk, versions))
    return [one for one in found if len(one.versions) > 1]


def _versions(store: Store, first: Chunk, filters: Filters) -> list[Chunk]:
    """A passage with those that it is related to, directly or through others, in order of time."""
    known = {first.row: first}
    replaced: set[int] = set()
    queue = deque([first])
    while queue and len(known) < _MOST_VERSIONS:
        chunk = queue.popleft()
        related = store.relations.related([chunk], filters).get(chunk.row)
        near = (
            [c for c in store.relations.stands_for(chunk) if _passes(c, filters)]
            if _claims(chunk)
            else []
        )
        if related:
            names = (
                (related.superseded_by,) if related.superseded_by else ()
            ) + related.conflicts_with
            near += [c for name in names for c in store.documents.chunks_by_id(name)]
            if related.superseded_by:
                replaced.add(chunk.row)
        for other in near:
            if other.row not in known:
                known[other.row] = other
                queue.append(other)
    replaced |= {
        row
        for row, one in store.relations.related(list(known.values()), filters).items()
        if one.superseded_by
    }
    oldest = dt.date.min
    return sorted(
        known.values(), key=lambda c: (c.day or oldest, c.row not in replaced, c.path, c.start_line)
    )


def _claims(chunk: Chunk) -> bool:
    """Whether a passage may replace others: its note or a comment in it says so."""
    return bool(chunk.facts.supersedes) or "supersedes" in chunk.text.casefold()


def _passes(chunk: Chunk, filters: Filters) -> bool:
    return filters.as_of is None or chunk.day is None or chunk.day <= filters.as_of


def _statement(own: Chunk, versions: Sequence[Chunk]) -> Statement:
    """The sentences in which the versions differ; one that says the same as the version before it
    adds nothing.
    """
    others = [c for c in versions if c.row != own.row]
    said = {own.row: nearest_sentence(own, others[0].text)}
    said |= {c.row: nearest_sentence(c, said[own.row]) for c in others}
    kept: list[Chunk] = []
    for chunk in versions:
        if not kept or not _says_the_same(said[kept[-1].row], said[chunk.row]):
            kept.append(chunk)
    made = [
        Version(said[c.row][:_LONGEST], c.citation, c.day, after.day if after else None)
        for c, after in pairwise((*kept, None))
        if c is not None
    ]
    return Statement(_subject(own, [said[c.row] for c in versions]), tuple(made))


def _says_the_same(one: str, other: str) -> bool:
    """Whether two versions have the same words, or the same numbers and neither denies the
    other.
    """
    if term_set(one) == term_set(other):
        return True
    if not figures(one) or not figures(other) or denies(one) != denies(other):
        return False
    return not gives_new_figure(one, other) and not gives_new_figure(other, one)


def nearest_sentence(chunk: Chunk, text: str) -> str:
    """The sentence of a passage that has most in common with a text."""
    wanted = term_set(text) - STOP_WORDS
    found = sentences(_COMMENT.sub("", chunk.text)) or [chunk.text]

    def alike(sentence: str) -> float:
        own = term_set(sentence) - STOP_WORDS
        return len(own & wanted) / math.sqrt(len(own) or 1)

    return " ".join(max(found, key=alike).split())


def _subject(own: Chunk, said: Sequence[str]) -> str:
    """The words of the newest version that all others have, or the heading where there are none."""
    common = frozenset.intersection(*(term_set(one) for one in said)) - STOP_WORDS
    words = [word for word in _WORD.findall(said[-1]) if term_set(word) & common]
    return " ".join(dict.fromkeys(words)) or " ".join(own.heading[-1:]) or own.facts.title
