"""Candidates, questions and stores made for the tests of this room."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from notewell.embed.embedder import Embedder, QuestionVector, windows_of
from notewell.search.combine import columns, leg_weights, parts
from notewell.search.pipeline import Profile, SearchContext
from notewell.store.ports import Store
from notewell.store.sqlite.store import SqliteStore
from notewell.store.window_codes import pack
from notewell.text.chunk import Passage
from notewell.types import Candidate, Chunk, Document, Facts, LegRank, Query, Relations, Signals
from tests.store.made import put_document

NOW = dt.datetime(2026, 3, 12, 9)  # noqa: DTZ001 - days of this place


def day(age: int) -> dt.date:
    """The day that is so many days ago."""
    return NOW.date() - dt.timedelta(days=age)


def query(text: str = "a question", **rest: Any) -> Query:
    """A question of that day; a least score below 0 leaves it to the profile."""
    return Query(text, NOW, **{"limit": 6, "min_score": -1.0, **rest})


def chunk(name: str, text: str = "", **rest: Any) -> Chunk:
    """A passage; other arguments are facts of its document."""
    own = {key: rest.pop(key) for key in ("source", "heading", "path") if key in rest}
    heading = own.get("heading", ())
    passage = Passage(1, 1, heading, text)
    return Chunk(
        name,
        own.get("path", f"{name}.md"),
        own.get("source", "memory"),
        1,
        1,
        heading,
        text,
        passage.content_hash,
        Facts(**rest),
    )


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
    """A candidate with its lexical rank, its vector rank and cosine, and the facts of its
    document.
    """
    ranks = {}
    if lexical is not None:
        ranks["lexical"] = LegRank(lexical, 10.0 / lexical)
    if vector is not None:
        ranks["vector"] = LegRank(*vector)
    known = Signals(**(signals or {}))
    return Candidate(chunk(name, text, **rest), score, ranks, known, relations or Relations())


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [c.id for c in candidates]


def scores(candidates: Sequence[Candidate]) -> dict[str, float]:
    return {c.id: c.score for c in candidates}


def total(one: Candidate, question: Mapping[str, float]) -> float:
    """What the default fusion makes of one candidate."""
    return sum(
        float(part[0]) for part in parts(columns([one], question), question, leg_weights(question))
    )


def through(profile: Profile, candidates: Sequence[Candidate], asked: Query) -> Sequence[Candidate]:
    """What a profile's fusion and stages leave of candidates that its legs have brought."""
    for stage in (profile.fusion, *profile.stages):
        candidates = stage(candidates, asked)
    return candidates


def store_of(chunks: Sequence[Chunk], embedder: Embedder | None = None) -> SqliteStore:
    """A store in memory that holds these passages, put in this order."""
    store = SqliteStore(None)
    for one in chunks:
        put_document(store, Document(one.path, one.source, 1, 1, ""), one.id, one.facts, [one])
    if embedder is not None:
        texts = [Passage(1, 1, c.heading, c.text).embed_text for c in chunks]
        vectors = embedder.embed(texts, "document")
        keys = [c.content_hash for c in chunks]
        windows: dict[str, bytes] = {}
        if windowed := windows_of(embedder):
            made = zip(keys, windowed.embed_passages(texts), strict=True)
            windows = {
                key: pack(one.windows, one.spans, windowed.window_dims)
                for key, one in made
                if one.spans
            }
        store.vectors.put_vectors(
            embedder.id, dict(zip(keys, vectors, strict=True)), windows=windows
        )
    return store


def context_of(store: Store, embedder: Embedder, executor: Executor, **rest: Any) -> SearchContext:
    """A search over a store, whose questions this model embeds."""

    def question(text: str) -> QuestionVector:
        windows = windows_of(embedder) is not None
        return QuestionVector(embedder.id, embedder.embed([text], "query")[0], windows=windows)

    return SearchContext(store, executor, question=question, **rest)
