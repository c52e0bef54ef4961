"""Documents in a store, with the terms that the index would give them, and the windows of
passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from notewell.index.documents import words_of
from notewell.store import window_codes
from notewell.store.ports import Store
from notewell.types import Chunk, Document, Facts, Vectors


def put_document(
    store: Store,
    document: Document,
    digest: str,
    facts: Facts,
    chunks: Sequence[Chunk],
    *,
    fresh: bool = False,
    tail: str = "",
) -> None:
    store.documents.put(
        document, digest, facts, chunks, words=words_of(chunks), fresh=fresh, tail=tail
    )


def extend_document(
    store: Store,
    document: Document,
    digest: str,
    facts: Facts,
    chunks: Sequence[Chunk],
    *,
    drop: Sequence[str] = (),
    tail: str = "",
) -> None:
    store.documents.extend(
        document, digest, facts, chunks, words=words_of(chunks), drop=drop, tail=tail
    )


class Window(NamedTuple):
    cosine: float
    start: int
    end: int


def nearest(passages: Mapping[int, bytes], vector: Vectors) -> dict[int, Window]:
    """The nearest window of each passage by its key."""
    found, *columns = window_codes.nearest(list(passages.values()), vector)
    keys = [list(passages)[n] for n in found]
    return dict(zip(keys, map(Window, *(column.tolist() for column in columns)), strict=True))
