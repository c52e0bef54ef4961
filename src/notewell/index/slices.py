"""How many texts a model is given in one call: a number of them, or what fills the requests of a
remote model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from notewell.embed.embedder import Embedder, PassageVectors, Takes, windows_of
from notewell.errors import EmbedderError, RejectedError
from notewell.types import Chunk, Vectors

PORTION = 64  # rows that are read at a time


@dataclass(slots=True)
class Slice:
    """Some rows, those of their chunks that are to be embedded, and what the model is given for
    them by content hash.

    `rest` are rows that were read, and are for the next slice.
    """

    rows: list[int] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    rest: list[Chunk] = field(default_factory=list)


def next_slice(
    portions: Iterator[Sequence[int]],
    read: Callable[[Sequence[int]], Mapping[int, Chunk]],
    inputs: Callable[[Sequence[Chunk]], Mapping[str, str]],
    takes: Takes,
) -> Slice:
    """Rows of one portion after another, as many as the model takes, and at least one."""
    made = Slice()
    for part in portions:
        found = read(part)
        texts = inputs([found[row] for row in part if row in found])
        for n, row in enumerate(part):
            key = found[row].content_hash if row in found else ""
            if key in texts and not takes(texts[key]) and made.texts:
                made.rest = [found[row] for row in part[n:] if row in found]
                return made
            made.rows.append(row)
            if row in found:
                made.chunks.append(found[row])
            if key in texts:
                made.texts[key] = texts[key]
    return made


def vectors_of(
    model: Embedder, texts: Mapping[str, str]
) -> tuple[dict[str, Vectors | PassageVectors], dict[str, str], EmbedderError | None]:
    """What a model makes of texts, by content hash, why it refused others, and the failure that
    ended it.
    """
    if not texts:
        return {}, {}, None
    keys = list(texts)
    try:
        windowed, given = windows_of(model), list(texts.values())
        rows = windowed.embed_passages(given) if windowed else model.embed(given, "document")
    except EmbedderError as error:
        reasons = error.reasons if isinstance(error, RejectedError) else {}
        made = {keys[i]: row for i, row in error.rows.items()}
        failure = None if isinstance(error, RejectedError) else error
        return made, {keys[i]: why for i, why in reasons.items()}, failure
    return dict(zip(keys, rows, strict=True)), {}, None
