"""Vectors for whatever lacks one, by the first model of a chain that answers; the pin moves when all are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recollect.embed.breaker import Guarded
from recollect.embed.chain import Chain, Level, named
from recollect.embed.generations import belongs, flip, generation_of, pinned
from recollect.errors import EmbedderError
from recollect.ports import Embedder, Progress, Shared, Store
from recollect.sync.engine import FIRST_BATCH, Engine
from recollect.types import Estimate, Notice, Skipped, SyncReport

_LOOK_S = 2.0


def fill(
    engine: Engine,
    chain: Chain,
    *,
    trial_s: float,
    force: bool = False,
    deadline: float | None = None,
    progress: Progress | None = None,
    estimate: Callable[[Estimate], None] | None = None,
    batch: bool = False,
) -> SyncReport:
    """Every missing vector of the first level that answers; each level is tried once.

    A level below the pinned one is never begun because that one fails: it would embed everything again. With a
    `deadline` it is work in the background, and a model that rests after a failure is left to rest. `batch` lets a
    provider that can make most of an index overnight.
    """
    store = engine.store
    pin = pinned(store)
    failures: list[EmbedderError] = []
    report = SyncReport()
    watch: Any = {"progress": progress} if progress else {}
    for level in chain.levels(store, wait_s=trial_s):
        model = level.model
        if model is None:
            failures += [level.error] if level.error else []
            continue
        if force:
            store.forgive(generation_of(store, model.id))
        options: Any = {"deadline": deadline, "estimate": estimate, **watch}
        limited = model.within(trial_s, per=FIRST_BATCH, anyway=deadline is None)
        overnight = _batched(engine, model, limited, force=force, **options) if batch else None
        report = engine.embed(limited, **options) if overnight is None else overnight
        if deadline is None and not report.embedded and not report.notices:
            report = replace(report, notices=_woken(model))
        failed = next((n for n in report.notices if n.code == "embedder_failed"), None)
        if failed is None or report.embedded or report.waiting:
            return _finished(store, chain, level, report, failures)
        failures.append(named(model.id, EmbedderError(failed.message, hint=failed.hint)))
        if belongs(pin, model.id):
            break
    told = _failed(failures) if report.pending or report.notices else ()
    return replace(report, notices=told, pending=report.pending or len(store.missing(pin)))


def share(
    engine: Engine, chain: Chain, store: Shared, *, trial_s: float, progress: Progress | None = None
) -> SyncReport:
    """Fills beside other workers until nothing is left, also of what a worker that died had claimed."""
    done = 0
    skipped: tuple[Skipped, ...] = ()
    while True:
        report = fill(engine, chain, trial_s=trial_s, progress=progress)
        done, skipped = done + report.embedded, (*skipped, *report.skipped)
        if not report.pending or any(n.code == "embedder_failed" for n in report.notices):
            return replace(report, embedded=done, skipped=skipped)
        store.listen(_LOOK_S)  # the others are at the rest: each batch of theirs is heard


def _woken(model: Guarded) -> tuple[Notice, ...]:
    """Asks a model that rests, where there was nothing to embed: who runs `index` has settled what was wrong."""
    if not model.breaker.left_s:
        return ()
    try:
        model.embed(["ready"], "query", anyway=True)
    except EmbedderError as error:
        return (Notice("embedder_failed", str(error), error.hint),)
    return ()


def _batched(engine: Engine, model: Guarded, limited: Embedder, **options: Any) -> SyncReport | None:
    """What the provider's batches brought, or None for a model or an amount that is not for them."""
    from recollect.sync import overnight  # noqa: PLC0415 - only for those who asked for it

    return overnight.fill(engine, model.inner, limited, **options) if overnight.due(engine.store, model.inner) else None


def _finished(
    store: Store, chain: Chain, level: Level, report: SyncReport, failures: list[EmbedderError]
) -> SyncReport:
    notices = list(report.notices)
    if report.embedded:
        chain.note_names(store, report.model, level.id)
    if failures:
        message = f"{'; '.join(map(str, failures))}; {level.id} gives the vectors in its place"
        notices.insert(0, Notice("model_fallback", message, failures[0].hint))
    if not report.pending:
        before = flip(store, report.model)
        if before:
            chain.note_names(store, report.model, level.id)
            message = f"searches now use {report.model}; the vectors of {before} are kept"
            notices.append(Notice("model_switched", message, "recollect index --prune drops them"))
    return replace(report, notices=tuple(notices))


def _failed(failures: list[EmbedderError]) -> tuple[Notice, ...]:
    if not failures:
        return ()
    message = "; ".join(dict.fromkeys(map(str, failures)))
    return (Notice("embedder_failed", message, failures[0].hint),)
