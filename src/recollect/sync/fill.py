"""Vectors for whatever lacks one, by the first model of a chain that answers; the pin moves when all are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from recollect.embed.chain import Chain, Level, named
from recollect.embed.generations import belongs, flip, generation_of, pinned
from recollect.errors import EmbedderError
from recollect.ports import Progress, Store
from recollect.sync.engine import FIRST_BATCH, Engine
from recollect.types import Estimate, Notice, SyncReport


def fill(
    engine: Engine,
    chain: Chain,
    *,
    trial_s: float,
    force: bool = False,
    deadline: float | None = None,
    progress: Progress | None = None,
    estimate: Callable[[Estimate], None] | None = None,
) -> SyncReport:
    """Every missing vector of the first level that answers; each level is tried once.

    A level below the pinned one is never begun because that one fails: it would embed everything again.
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
        limited = model.within(trial_s, per=FIRST_BATCH, anyway=True)
        report = engine.embed(limited, deadline=deadline, estimate=estimate, **watch)
        failed = next((n for n in report.notices if n.code == "embedder_failed"), None)
        if failed is None or report.embedded:
            return _finished(store, chain, level, report, failures)
        failures.append(named(model.id, EmbedderError(failed.message, hint=failed.hint)))
        if belongs(pin, model.id):
            break
    return replace(report, notices=_failed(failures) if report.pending or report.notices else ())


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
