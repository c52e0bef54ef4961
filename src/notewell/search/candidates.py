"""What the legs found, as candidates: each row once, with its ranks and the signals of all legs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter

from notewell.embed.embedder import QuestionVector
from notewell.search.evidence import WeightedQuestion, measured
from notewell.search.meaning import Meaning
from notewell.store.ports import Store
from notewell.store.values import Scored, pairs
from notewell.text.words import foreign_share
from notewell.types import Candidate, Chunk, LegRank, Query, Relations, Signals

_OTHER_SCRIPT = 0.3
_UNRELATED = Relations()
_NO_MEANING = (None,) * len(Meaning._fields)
_NOT_YET = (None,) * (len(Signals._fields) - Signals._fields.index("keywords"))


def candidates_of(
    query: Query,
    question: WeightedQuestion,
    store: Store,
    *,
    found: Mapping[str, Sequence[Scored]],
    near: Mapping[int, Meaning],
    count: int,
    most: int,
    asked: QuestionVector | None,
    related: bool,
) -> list[Candidate]:
    """Every row that any leg found, once, in order of their ids, with its ranks and the signals of
    all legs.

    `near` are their meanings, `count` is how many passages have a vector, and `most` how far ranks
    go. With `related`, their relations are looked up.
    """
    rows = list(dict.fromkeys([row for scored in found.values() for row, _ in pairs(scored)]))
    chunks = store.documents.chunks(rows)
    ranks = _leg_ranks(found, chunks, most)
    relations = store.relations.related(list(chunks.values()), query.filters) if related else {}
    places = store.keywords.term_places(rows, question.measured)
    words = dict(zip(places.rows, measured(question, places), strict=True))
    # The best of so many random cosines is about this many deviations above their mean.
    noise = math.sqrt(2.0 * math.log(max(count, 3)))
    reads_all = asked is not None and asked.every_script
    foreign, rarity, dates = (
        0.0 if reads_all else foreign_share(query.text),
        question.rarity,
        query.dates,
    )
    may_not_read = not reads_all and foreign < 1.0 - _OTHER_SCRIPT
    candidates: list[Candidate] = []
    for chunk in sorted(chunks.values(), key=attrgetter("id")):
        row = chunk.row
        if row not in words or row not in ranks:
            # another process dropped it after the leg found it, or it ties with the last but has a
            # larger id
            continue
        cosine, z, whole, lift, part, span = near.get(row, _NO_MEANING)
        if may_not_read and not chunk.text.isascii() and z is not None and lift is not None:
            # The model may read the question but not the passage, and then its cosine is chance.
            gap = _foreign(chunk.text) - foreign
            z, lift = (z * (1.0 - gap), lift * (1.0 - gap)) if gap > _OTHER_SCRIPT else (z, lift)
        day = chunk.day if dates else None
        date = None if day is None else float(any(s.start <= day <= s.end for s in dates))
        known = (rarity, noise, foreign, *words[row], cosine, z, date, whole, part, lift, *_NOT_YET)
        signals = tuple.__new__(Signals, known)  # its own constructor takes three times as long
        candidates.append(
            Candidate(chunk, 0.0, ranks[row], signals, relations.get(row, _UNRELATED), span)
        )
    return candidates


def _leg_ranks(
    found: Mapping[str, Sequence[Scored]], chunks: Mapping[int, Chunk], most: int
) -> dict[int, dict[str, LegRank]]:
    """The rank of each row in every leg that found it, as far as the pool reaches."""
    ranks: dict[int, dict[str, LegRank]] = {}
    for name, scored in found.items():
        by_score = sorted(
            [(-score, chunks[row].id, row) for row, score in pairs(scored) if row in chunks]
        )
        for rank, (score, _, row) in enumerate(by_score[:most], start=1):
            ranks.setdefault(row, {})[name] = LegRank(rank, -score)
    return ranks


def _foreign(text: str) -> float:
    """The share of a passage that an English model cannot read, counted only where it may be enough
    to matter.
    """
    wide = len(text.encode("ascii", "ignore")) < (1.0 - _OTHER_SCRIPT / 2) * len(text)
    return foreign_share(text) if wide else 0.0
