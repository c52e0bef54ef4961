"""The index compared with the files, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from notewell.embed.chain import Probe
from notewell.embed.vector_sets import vector_set_of
from notewell.index.embedding import Embedding, answering_id
from notewell.index.outlook import outlook_of
from notewell.index.walk import Walk
from notewell.store.values import Figures
from notewell.types import Notice, Skipped


@dataclass(frozen=True, slots=True)
class Status:
    """Disk against index, counted when asked for."""

    workspace: str
    index: str
    documents: int
    chunks: int
    bytes: int
    on_disk: int
    to_add: int
    to_change: int
    to_drop: int
    embedder: str
    embedded: int
    pending: int
    models: tuple[tuple[str, int, int], ...]
    skipped: tuple[Skipped, ...]
    notices: tuple[Notice, ...]
    answering: str = "none"
    refused: int = 0
    cached: int = 0
    cache_bytes: int = 0
    levels: tuple[Probe, ...] = ()
    sources: tuple[tuple[str, int, int], ...] = ()
    waiting: int = 0
    chain: tuple[tuple[str, str], ...] = ()
    database: Figures | None = None

    @property
    def fresh(self) -> bool:
        """Whether the index holds exactly what is on disk."""
        return not (self.to_add or self.to_change or self.to_drop)


def status_of(
    root: Path,
    walk: Walk,
    embedding: Embedding,
    notices: Sequence[Notice],
    *,
    levels: Sequence[Probe] = (),
) -> Status:
    """Compares the files with the index and counts what there is."""
    store = walk.store
    counts = store.counts()
    resolved = embedding.chain.resolve(store)
    model = resolved.first.inner if resolved.first else None
    vector_set = vector_set_of(store, model.id) if model else ""
    embedded, total = store.vectors.coverage(vector_set) if model else (0, counts["chunks"])
    refused = len(store.vectors.refused(vector_set))
    cached, cache_bytes = store.vectors.idle()
    return Status(
        workspace=str(root),
        index=store.name,
        documents=counts["documents"],
        chunks=counts["chunks"],
        bytes=counts["bytes"],
        **outlook_of(walk)._asdict(),
        embedder=vector_set or "none",
        embedded=embedded,
        pending=total - embedded - refused,
        models=tuple(store.vectors.models()),
        notices=(*notices, *embedding.chain.notices(store, resolved)),
        answering=answering_id(resolved),
        refused=refused,
        cached=cached,
        cache_bytes=cache_bytes,
        levels=tuple(levels),
        sources=tuple(store.documents.sources()),
        waiting=embedding.in_batch(model),
        chain=tuple((level.name, str(level.error or "")) for level in resolved.levels),
        database=store.shared.figures() if store.shared is not None else None,
    )
