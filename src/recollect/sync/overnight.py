"""A first index through a provider's batch API: handed in by one `index`, fetched by a later one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recollect.embed import batches
from recollect.embed.generations import generation_of
from recollect.embed.remote import RemoteEmbedder
from recollect.errors import EmbedderError
from recollect.ports import Embedder, Store, Vectors
from recollect.sync.engine import Engine, without_vector
from recollect.types import Chunk, Estimate, Notice, SyncReport

_LOOK_AGAIN_S = 60.0  # in the background the provider is not asked more often


def due(store: Store, model: object) -> bool:
    """Whether the next vectors of a model are for a batch: some are in one, or most of the index lacks them.

    What changes in a finished index is not worth a night's wait.
    """
    if not isinstance(model, RemoteEmbedder) or not batches.possible(model):
        return False
    if batches.waiting(model.id, store):
        return True
    generation = generation_of(store, model.id)
    missing = len(store.missing(generation))
    return bool(missing) and 2 * missing >= store.coverage(generation)[1]


def at_work(store: Store, model: object) -> frozenset[str] | None:
    """The texts that are in a batch, by content hash; None when the first ones are yet to be handed in."""
    found = batches.waiting(model.id, store) if isinstance(model, RemoteEmbedder) else frozenset()
    return found if found or not due(store, model) else None


def in_batch(store: Store, model: object) -> int:
    """How many texts a provider has said it has in a batch."""
    return len(batches.waiting(model.id, store, sure=True)) if isinstance(model, RemoteEmbedder) else 0


def fill(
    engine: Engine, model: Any, limited: Embedder, *, force: bool, deadline: float | None,
    estimate: Callable[[Estimate], None] | None, **watch: Any,
) -> SyncReport:  # fmt: skip
    """A round of the provider's batches, and then directly what does not fit into one.

    With a deadline, which is work in the background, the provider is asked once a minute.
    """
    if deadline is not None and _looked_lately(engine.store, model.id):
        return _report(engine, model, 0, {}, {})
    report = advance(engine, model, force=force, estimate=estimate)
    if report.pending <= report.waiting or any(n.code == "embedder_failed" for n in report.notices):
        return report
    rest = engine.embed(limited, deadline=deadline, leave=batches.waiting(model.id, engine.store), **watch)
    return replace(
        rest,
        embedded=rest.embedded + report.embedded,
        skipped=(*report.skipped, *rest.skipped),
        notices=(*report.notices, *rest.notices),
        waiting=report.waiting,
    )


def advance(
    engine: Engine,
    model: RemoteEmbedder,
    *,
    force: bool = False,
    estimate: Callable[[Estimate], None] | None = None,
) -> SyncReport:
    """Fetches what the provider has done and hands in what nobody has; `waiting` of the report is still there."""
    store = engine.store
    store.set_meta(_looked(model.id), str(time.time()))
    generation = generation_of(store, model.id)
    rows = store.missing(generation)
    chunks = {c.content_hash: c for c in store.chunks(rows).values()}
    if estimate and rows and not batches.waiting(model.id, store):
        guess = engine.guess(generation, rows, model)
        price = None if guess.usd is None else guess.usd * model.provider.preset.batch_price
        estimate(replace(guess, usd=price))
    kept: dict[str, Vectors] = {}

    def keep(found: Mapping[str, Vectors]) -> None:
        there = [chunks[key].row for key in found if key in chunks]
        engine.keep(model.id, generation, found, {}, rows=there)
        kept.update(found)

    try:
        done = batches.advance(model, engine.inputs(list(chunks.values())), store, keep, again=force)
    except EmbedderError as error:
        report = _report(engine, model, len(kept), {}, {})
        return replace(report, notices=(Notice("embedder_failed", str(error), error.hint), *report.notices))
    if done.refused:
        engine.keep(model.id, generation, {}, done.refused, rows=())
    return _report(engine, model, len(kept), chunks, done.refused)


def _looked(model: str) -> str:
    return f"embed_batches_at:{model}"


def _looked_lately(store: Store, model: str) -> bool:
    try:
        return 0 <= time.time() - float(store.get_meta(_looked(model)) or 0) < _LOOK_AGAIN_S
    except (TypeError, ValueError):
        return False


def _report(
    engine: Engine, model: RemoteEmbedder, embedded: int, chunks: Mapping[str, Chunk], refused: Mapping[str, str]
) -> SyncReport:
    generation = generation_of(engine.store, model.id)
    waiting = in_batch(engine.store, model)
    notices: tuple[Notice, ...] = ()
    if waiting:
        notices = (batch_notice(model.provider.preset.name, waiting),)
    return SyncReport(
        embedded=embedded,
        pending=len(engine.store.missing(generation)),
        skipped=tuple(without_vector(list(chunks.values()), refused)),
        notices=notices,
        model=generation,
        waiting=waiting,
    )


def batch_notice(provider: str, waiting: int) -> Notice:
    """What is at the provider, and how it is fetched."""
    message = f"{waiting} passages are in a batch at {provider}, which may take a day; until then they have no vector"
    return Notice("batch_pending", message, "run recollect index later: it fetches what is done")
