"""Who embeds, and when: vectors for every text that has none.

`filling.py` has the one loop that asks a model for the vectors of documents. `fill` chooses the
model from the chain, and `Embedding` lets one process at a time do it: all of it in a sync, shared
with other machines, or a little before a search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from notewell.embed.breaker import Guarded, Outages
from notewell.embed.chain import Chain, Level, Resolved, named
from notewell.embed.embedder import Batches, Embedder, batches_of
from notewell.embed.vector_sets import belongs, flip, pinned, vector_set_of
from notewell.errors import EmbedderError, StoreError
from notewell.index import batch_embedding
from notewell.index.filling import FIRST_BATCH, Filling, SyncOptions, embed
from notewell.index.walk import Walk
from notewell.settings import EmbedSettings
from notewell.store.ports import Shared, Store
from notewell.types import Notice, Progress, Skipped, SyncReport

LoadModel = Callable[[str, Sequence[str]], Embedder | None]
"""Loads a model by its name; the ids are those of models that the index has vectors of."""
PATIENCE_S = 0.3
_LISTEN_S = 2.0
_LEAST_S = 0.2  # with less time than this, no vector is begun
_MANY = 1000  # after so many new vectors at once a database should look at its tables again


def fill(
    walk: Walk,
    chain: Chain,
    options: SyncOptions | None = None,
    *,
    trial_s: float,
    batches: bool = False,
) -> SyncReport:
    """Every missing vector, from the first level that answers; `batches` lets a provider's batch
    jobs make most.

    If the pinned level fails, no level below it starts: that would embed everything again.
    """
    options = options or SyncOptions()
    store = walk.store
    pin = pinned(store)
    failures: list[EmbedderError] = []
    report = SyncReport()
    for level in chain.levels(store, wait_s=None if options.later else trial_s):
        model = level.model
        if model is None:
            failures += [level.error] if level.error else []
            continue
        report = _filled(walk, model, options, trial_s=trial_s, batches=batches)
        failed = next((n for n in report.notices if n.code == "embedder_failed"), None)
        if failed is None or report.embedded or report.waiting:
            return _finished(store, chain, level, report, failures)
        failures.append(named(model.id, EmbedderError(failed.message, hint=failed.hint)))
        if belongs(pin, model.id):
            break
    notices: tuple[Notice, ...] = ()
    if failures and (report.pending or report.notices):
        message = "; ".join(dict.fromkeys(map(str, failures)))
        notices = (Notice("embedder_failed", message, failures[0].hint),)
    return replace(
        report, notices=notices, pending=report.pending or len(store.vectors.missing(pin))
    )


def _filled(
    walk: Walk, model: Guarded, options: SyncOptions, *, trial_s: float, batches: bool
) -> SyncReport:
    """What one model does for the vectors that are missing."""
    store = walk.store
    if options.force:
        store.vectors.forgive(vector_set_of(store, model.id))
    limited = model.within(
        trial_s, per=FIRST_BATCH, anyway=options.deadline is None and not options.later
    )
    jobs = batches_of(model.inner) if batches and batch_embedding.due(store, model.inner) else None
    report = (
        _batched(walk, model.inner, jobs, limited, options)
        if jobs
        else embed(walk, limited, options)
    )
    if (
        options.deadline is None
        and not options.later
        and not report.embedded
        and not report.notices
    ):
        return replace(report, notices=_woken(model))
    return report


def _batched(
    walk: Walk, model: Embedder, jobs: Batches, limited: Embedder, options: SyncOptions
) -> SyncReport:
    """One round of the provider's batches; what does not fit into one is embedded directly."""
    report = batch_embedding.advance(Filling(walk, model, options), jobs)
    if report.pending <= report.waiting or any(n.code == "embedder_failed" for n in report.notices):
        return report
    rest = embed(walk, limited, replace(options, leave=jobs.waiting(walk.store), estimate=None))
    skipped, notices = (*report.skipped, *rest.skipped), (*report.notices, *rest.notices)
    embedded = rest.embedded + report.embedded
    return replace(
        rest, embedded=embedded, skipped=skipped, notices=notices, waiting=report.waiting
    )


def _woken(model: Guarded) -> tuple[Notice, ...]:
    """Asks a paused model, if there was nothing to embed: whoever runs `index` has fixed what was
    wrong.
    """
    if not model.breaker.left_s:
        return ()
    try:
        model.embed(["ready"], "query", anyway=True)
    except EmbedderError as error:
        return (Notice("embedder_failed", str(error), error.hint),)
    return ()


def _finished(
    store: Store, chain: Chain, level: Level, report: SyncReport, failures: list[EmbedderError]
) -> SyncReport:
    """Moves the pin once nothing is missing, and reports which model made the vectors."""
    notices = list(report.notices)
    if report.embedded:
        chain.note_names(store, report.model, level.id)
    if failures:
        message = f"{'; '.join(map(str, failures))}; {level.id} makes the vectors instead"
        notices.insert(0, Notice("model_fallback", message, failures[0].hint))
    if not report.pending:
        before = flip(store, report.model)
        if before:
            chain.note_names(store, report.model, level.id)
            message = f"searches now use {report.model}; the vectors of {before} are kept"
            notices.append(Notice("model_switched", message, "notewell index --prune drops them"))
    return replace(report, notices=tuple(notices))


class Embedding:
    """The models of one index, and who makes vectors for it now."""

    def __init__(
        self,
        settings: EmbedSettings,
        load: LoadModel,
        *,
        store: Callable[[], Store],
        given: Embedder | None = None,
        outages: Outages | None = None,
    ) -> None:
        self.chain = Chain(
            settings.names,
            self._load_model,
            deadline_s=settings.deadline_s,
            given=given,
            outages=outages,
        )
        self._settings = settings
        self._load = load
        self._store = store
        # these models are asked for their size; the index is not believed
        self._measured: set[str] = set()
        self._filling = 0
        self._nearly_filled = True

    def _load_model(self, name: str) -> Embedder | None:
        known: tuple[str, ...] = ()
        if name not in self._measured:
            with suppress(StoreError):
                store = self._store()
                known = (pinned(store), *store.vectors.dims())
        self._measured.add(name)
        return self._load(name, known)

    def measure(self) -> None:
        """Asks models again for their size, if that was only taken from the index."""
        self._measured.update(self.chain.renew())

    @property
    def embedder(self) -> Embedder | None:
        """The model that makes new vectors, or None."""
        model = self.chain.first(self._store())
        return model.inner if model else None

    def fill(self, walk: Walk, options: SyncOptions) -> SyncReport:
        """Vectors under a separate lock: others go on reading notes while a model works for
        hours.
        """
        store = walk.store
        with store.embedding(options.wait_s) as mine:
            if mine:
                self._filling += 1
                try:
                    report = fill(
                        walk,
                        self.chain,
                        options,
                        trial_s=self._settings.trial_s,
                        batches=self._settings.batch,
                    )
                finally:
                    self._filling -= 1
                self._nearly_filled = not report.pending
                if store.shared is not None and report.embedded >= _MANY and not report.pending:
                    store.shared.settle(report.model)
                return report
        model = self.embedder
        vector_set = vector_set_of(store, model.id) if model else ""
        notice = Notice(
            "embedding",
            "another process is making the vectors",
            "notewell status shows how far it is",
        )
        return SyncReport(
            pending=len(store.vectors.missing(vector_set)), notices=(notice,), model=vector_set
        )

    def share(self, walk: Walk, shared: Shared, progress: Progress) -> SyncReport:
        """Fills together with other machines until nothing is missing, including the claims of one
        that died.
        """
        self.measure()
        embedded, options = 0, SyncOptions(progress=progress)
        skipped: tuple[Skipped, ...] = ()
        while True:
            report = fill(walk, self.chain, options, trial_s=self._settings.trial_s)
            embedded, skipped = embedded + report.embedded, (*skipped, *report.skipped)
            if not report.pending or any(n.code == "embedder_failed" for n in report.notices):
                break
            options = SyncOptions(progress=progress, later=True)
            # the rest is claimed by others: each of their batches ends the wait
            shared.listen(_LISTEN_S)
        if embedded and not report.pending:
            shared.settle(report.model)
        return replace(report, embedded=embedded, skipped=skipped)

    def missing(self) -> int:
        """How many passages have no vector of the model that makes new ones."""
        store, model = self._store(), self.embedder
        return len(store.vectors.missing(vector_set_of(store, model.id))) if model else 0

    def top_up(
        self, walk: Walk, *, warm: bool, spent_s: float = 0.0
    ) -> tuple[Resolved, SyncReport]:
        """Vectors for new notes from the model that answers, within the budget; a new model is left
        to `index`.

        The time that was spent on reading notes is taken off the budget.
        """
        resolved = self.chain.resolve(walk.store)
        report = self._top_up(walk, resolved, warm=warm, budget_s=self._settings.budget_s - spent_s)
        return self.chain.resolve(walk.store) if report.embedded else resolved, report

    def _top_up(self, walk: Walk, resolved: Resolved, *, warm: bool, budget_s: float) -> SyncReport:
        own, store = self._settings, walk.store
        model = resolved.answering[1] if resolved.answering else resolved.first
        if (
            model is None
            or own.budget_s <= 0
            or budget_s < min(own.budget_s, _LEAST_S)
            or not store.vectors.missing(vector_set_of(store, model.id))
        ):
            return SyncReport()
        leave = batch_embedding.in_batch(store, model.inner) if own.batch else frozenset()
        if leave is None:
            return SyncReport()  # `index` submits them to a batch, for less money
        # Where a watch makes the vectors, a search waits only a moment for the last of them.
        budget_s = min(budget_s, PATIENCE_S) if warm else budget_s
        with store.embedding(PATIENCE_S if self._filling and self._nearly_filled else 0.0) as mine:
            if not mine:
                self._nearly_filled = False
                return SyncReport()
            limited = model.within(min(own.budget_s, own.deadline_s))
            deadline = time.monotonic() + budget_s
            report = embed(
                walk, limited, SyncOptions(deadline=deadline, batch=FIRST_BATCH, leave=leave)
            )
        if report.embedded:
            self.chain.note_names(store, report.model, model.id)
            if not report.pending and belongs(pinned(store), model.id):
                flip(store, report.model)  # the same model in another size
        return report

    def in_batch(self, model: Embedder | None) -> int:
        """How many texts of a model are in a provider's batch."""
        return (
            batch_embedding.confirmed(self._store(), model)
            if model is not None and self._settings.batch
            else 0
        )

    def pending(self, resolved: Resolved) -> list[Notice]:
        """How many passages have no vector yet, and how many of them are in a provider's batch."""
        notices = self.chain.pending(self._store(), resolved)
        count = self.in_batch(resolved.first.inner) if notices and resolved.first else 0
        if not count:
            return notices
        return [
            replace(n, hint=f"{count} are in a batch: {n.hint} later fetches them") for n in notices
        ]

    def prune(self) -> int:
        """Drops the vectors of models that are not in use and of text that is in no note now."""
        store = self._store()
        keep = {vector_set_of(store, level.id) for level in self.chain.levels(store)}
        return store.vectors.prune({pinned(store), *keep})


def answering_id(resolved: Resolved) -> str:
    """The vector set that a search uses, else the model that makes new vectors, else `none`."""
    if resolved.answering is not None:
        return resolved.answering[0]
    return resolved.first.id if resolved.first else "none"
