"""A first index through a provider's batch jobs: one `index` submits the texts, a later one fetches
the vectors.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from notewell.embed.embedder import Batches, Embedder, batches_of
from notewell.embed.vector_sets import vector_set_of
from notewell.errors import EmbedderError
from notewell.store.ports import Store
from notewell.types import Chunk, Notice, Skipped, SyncReport, Vectors

if TYPE_CHECKING:
    from notewell.index.filling import Filling

_LOOK_AGAIN_S = 60.0  # in the background the provider is asked no more often


def due(store: Store, model: Embedder) -> bool:
    """Whether new vectors go into a batch: some are in one, or so many are missing that they are
    worth a wait.
    """
    batches = batches_of(model)
    if batches is None:
        return False
    if batches.waiting(store):
        return True
    vector_set = vector_set_of(store, model.id)
    missing = len(store.vectors.missing(vector_set))
    return bool(missing) and 2 * missing >= store.vectors.coverage(vector_set)[1]


def in_batch(store: Store, model: Embedder) -> frozenset[str] | None:
    """The texts that are in a batch, by content hash; None when the first ones are yet to be
    submitted.
    """
    batches = batches_of(model)
    waiting = batches.waiting(store) if batches else frozenset()
    return waiting if waiting or not due(store, model) else None


def confirmed(store: Store, model: Embedder) -> int:
    """How many texts a provider has confirmed to be in a batch."""
    batches = batches_of(model)
    return len(batches.waiting(store, confirmed=True)) if batches else 0


def advance(filling: Filling, batches: Batches) -> SyncReport:
    """Fetches what the provider has done and submits the rest; in the background, with a deadline,
    once a minute.
    """
    store, model, options = filling.store, filling.model, filling.options
    looked_at = f"embed_batches_at:{model.id}"
    if options.deadline is not None and _lately(store.get_meta(looked_at)):
        return _report(store, model, batches)
    store.set_meta(looked_at, str(time.time()))
    chunks = {c.content_hash: c for c in store.documents.chunks(filling.rows).values()}
    if options.estimate and filling.rows and not batches.waiting(store):
        filling.estimate(batches.price)
    stored: set[str] = set()

    def keep(found: Mapping[str, Vectors]) -> None:
        filling.put(found, {}, rows=[chunks[key].row for key in found if key in chunks])
        stored.update(found)

    try:
        done = batches.advance(filling.inputs(chunks.values()), store, keep, again=options.force)
    except EmbedderError as error:
        report = _report(store, model, batches, len(stored))
        return replace(
            report, notices=(Notice("embedder_failed", str(error), error.hint), *report.notices)
        )
    if done.refused:
        filling.put({}, done.refused, rows=())
    return _report(
        store, model, batches, len(stored), without_vector(chunks.values(), done.refused)
    )


def without_vector(chunks: Iterable[Chunk], refused: Mapping[str, str]) -> list[Skipped]:
    """Chunks that a model refused, by file and line."""
    reasons = ((c, refused.get(c.content_hash)) for c in chunks)
    return [
        Skipped(f"{c.path}:{c.start_line}", f"no vector: {why}")
        for c, why in reasons
        if why is not None
    ]


def _lately(looked_at: object) -> bool:
    try:
        return 0 <= time.time() - float(str(looked_at or 0)) < _LOOK_AGAIN_S
    except ValueError:
        return False


def _report(
    store: Store,
    model: Embedder,
    batches: Batches,
    embedded: int = 0,
    skipped: Sequence[Skipped] = (),
) -> SyncReport:
    vector_set = vector_set_of(store, model.id)
    waiting = confirmed(store, model)
    message = (
        f"{waiting} passages are in a batch at {batches.provider}, which may take a day; "
        "until then they have no "
    )
    notice = Notice(
        "batch_pending", f"{message}vector", "run notewell index later: it fetches what is done"
    )
    report = SyncReport(
        embedded=embedded, skipped=tuple(skipped), notices=(notice,) if waiting else ()
    )
    return replace(
        report, pending=len(store.vectors.missing(vector_set)), model=vector_set, waiting=waiting
    )
