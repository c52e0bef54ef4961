"""Candidates, questions and stores made for the tests of this room."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.ports import Embedder
from recollect.search.pipeline import Profile
from recollect.store.sqlite import SqliteStore
from recollect.text.chunk import Passage
from recollect.types import Candidate, Chunk, Document, Facts, LegRank, Query, Relations

NOW = dt.datetime(2026, 3, 12, 9)  # noqa: DTZ001 - days of this place


def day(age: int) -> dt.date:
    """The day that is so many days ago."""
    return NOW.date() - dt.timedelta(days=age)


def query(text: str = "a question", **rest: Any) -> Query:
    """A question of that day; a least score below 0 leaves it to the profile."""
    return Query(text, NOW, **{"limit": 6, "min_score": -1.0, **rest})


def chunk(name: str, text: str = "", **rest: Any) -> Chunk:
    """A passage; what is no field of a chunk is a fact of its document."""
    own = {key: rest.pop(key) for key in ("source", "heading", "path") if key in rest}
    heading = own.get("heading", ())
    passage = Passage(1, 1, heading, text)
    return Chunk(
        name, own.get("path", f"{name}.md"), own.get("source", "memory"), 1, 1, heading, text, passage.content_hash,
        Facts(**rest),
    )  # fmt: skip


def candidate(
    name: str,
    score: float = 0.0,
    text: str = "",
    *,
    lexical: int | None = None,
    vector: tuple[int, float] | None = None,
    signals: Mapping[str, float] | None = None,
    relations: Relations | None = None,
    **rest: Any,
) -> Candidate:
    """A candidate with its lexical rank, its vector rank and cosine, and the facts of its document."""
    ranks = {}
    if lexical is not None:
        ranks["lexical"] = LegRank(lexical, 10.0 / lexical)
    if vector is not None:
        ranks["vector"] = LegRank(*vector)
    return Candidate(chunk(name, text, **rest), score, ranks, signals or {}, relations or Relations())


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [c.id for c in candidates]


def scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    return {c.id: c.score for c in candidates}


def through(profile: Profile, candidates: Sequence[Candidate], asked: Query) -> Sequence[Candidate]:
    """What a profile's fusion and stages leave of candidates that its legs have brought."""
    for stage in (profile.fusion, *profile.stages):
        candidates = stage(candidates, asked)
    return candidates


def store_of(chunks: Sequence[Chunk], embedder: Embedder | None = None) -> SqliteStore:
    """A store in memory that holds these passages, put in this order."""
    store = SqliteStore(None)
    for one in chunks:
        store.put(Document(one.path, one.source, 1, 1, ""), one.id, one.facts, [one])
    if embedder is not None:
        texts = [Passage(1, 1, c.heading, c.text).embed_text for c in chunks]
        vectors = embedder.embed(texts, "document")
        store.put_vectors(embedder.id, {c.content_hash: v for c, v in zip(chunks, vectors, strict=True)})
    return store
