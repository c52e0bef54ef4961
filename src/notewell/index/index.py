"""Index: keeps what is stored up to the files; syncs, watches, rebuilds and counts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from notewell.compare.vocabulary import RULES
from notewell.embed.breaker import Outages
from notewell.embed.chain import Probe
from notewell.embed.embedder import Embedder
from notewell.embed.vector_sets import pinned
from notewell.errors import StoreAwayError, StoreDamagedError, StoreError, UsageError
from notewell.index.adapters import (
    Adapters,
    Freshness,
    cut_notices,
    indexing,
    read_again,
    replica_freshness,
)
from notewell.index.embedding import PATIENCE_S, Embedding
from notewell.index.filling import SyncOptions
from notewell.index.looks import Looks
from notewell.index.status import Status, status_of
from notewell.index.survey import Survey
from notewell.index.turns import Turns
from notewell.index.walk import Walk
from notewell.index.watch import ChangeFeed, Places, Watch, load_numpy
from notewell.notes.tombstones import tombstones_of
from notewell.settings import AGENTS, Settings
from notewell.store.ports import FileBacked, Store
from notewell.text.chunk import ChunkSize
from notewell.text.redact import Redactor
from notewell.types import Estimate, Notice, Progress, SyncReport, silent

_CONSOLIDATE_S = 0.2
_SHARED_S = 0.25
_SLICE_S = 1.0
# how old a proof may be that nothing has changed: for a search, and for a watch
_SURE_S, _SWEEP_S = (90.0, 55.0)


class Index:
    """The index of one workspace, kept up to its files."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        store: Store,
        notices: Sequence[Notice] = (),
        *,
        adapters: Adapters,
        embedder: Embedder | None = None,
        beside: Path | None = None,
        away: Path | None = None,
    ) -> None:
        """`beside` names a file, which need not exist, whose folder holds locks, backups and model
        outages.

        The folder `away` holds tombstones where the workspace cannot be written.
        """
        self.root = root
        self.settings = settings
        self._store_notices = tuple(notices)
        self.closed = False
        self.trust = adapters.trust
        self._away, self.tombstones = (
            away,
            tombstones_of(store, root, away, here=self.trust.keeps_here),
        )
        self.files = adapters.files
        self._adapters = adapters
        self.places = Places(root, settings, adapters.files, adapters.sources)
        self.survey = Survey(root, adapters.inventory)
        self._open_store = adapters.open_store
        self._left: list[Store] = []  # stores that were only for now
        self._location = beside or store.file
        outages = self._location.with_suffix(".models.json") if self._location else None
        self.embedding = Embedding(
            settings.embed,
            adapters.load_model,
            store=lambda: self.store,
            given=embedder,
            outages=Outages(outages) if outages else None,
        )
        self.chain = self.embedding.chain
        own = settings.redact
        self.redactor = Redactor(own.patterns, settings.workspace_patterns) if own.enabled else None
        self.looks = Looks(root, lambda: self.walk)
        self._use(store)
        self._warm = False
        self._watches: list[Watch] = []
        self._feeds: list[ChangeFeed] = []
        self._refreshing = threading.RLock()
        # when it began, whether with vectors, and the result
        self._refreshed = (-1.0, False, Freshness())
        # how long a search waits for a sync of this very process, the first at first
        self._patience_s = PATIENCE_S
        self._syncing = 0
        self._told = False  # whether a search has said that the notes are not trusted
        self.turns = Turns()

    def _use(self, store: Store) -> None:
        own = self.settings
        self.store = store
        self.looks.close()  # another index may lack what has not changed for long
        self.walk = Walk(
            self._adapters.sources,
            store,
            ChunkSize(own.chunk.tokens, own.chunk.overlap),
            self.tombstones,
            extra_origin=own.extra_origin,
            redactor=self.redactor,
            trust=self.trust,
        )

    def settle(self) -> None:
        """Gives the index its place, once there is something to put in."""
        with self._refreshing:
            if self._open_store is None or not self._adapters.any_document():
                return
            store, beside, notices = self._open_store()
            self._open_store = None
            self._left.append(self.store)
            self._location = beside or store.file
            self._store_notices = (*self._store_notices, *notices)
            self.tombstones = tombstones_of(
                store, self.root, self._away, here=self.trust.keeps_here
            )
            self._use(store)

    def stop(self) -> None:
        """Stops every watch and every wait for a model; one that hangs is not waited for."""
        for watch in self._watches:
            watch.stop(timeout_s=0.0)
        for feed in self._feeds:
            feed.close()
        self.closed = True
        self.chain.close()  # a watch that waits for a model goes on now
        for watch in self._watches:
            watch.stop()

    def close(self) -> None:
        """Stops what runs and closes the store."""
        self.stop()
        self.looks.close()
        for store in (self.store, *self._left):
            store.close()

    @property
    def embedder(self) -> Embedder | None:
        """The model that makes new vectors, or None; `notices` say why there is none."""
        return self.embedding.embedder

    @property
    def store_notices(self) -> tuple[Notice, ...]:
        """What there is to report of the store, and of the files that say what is indexed."""
        redacted = self.redactor.notices if self.redactor else ()
        return (*self._store_notices, *self.tombstones.notices, *self.files.notices, *redacted)

    @property
    def was_rebuilt(self) -> bool:
        """Whether a damaged index was replaced by this one."""
        return any(n.code == "index_rebuilt" for n in self._store_notices)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What every answer of this index has to report."""
        return (*self.store_notices, *self.chain.notices(self.store))

    def beside(self, name: str) -> Path | None:
        """A file next to the index, for a database in the folder of the workspace; None for an
        index in memory.
        """
        return self._location.with_name(name) if self._location else None

    def require_writable(self) -> None:
        """Raises StoreError if the index cannot be written."""
        if self.store.read_only and self.store.lag_s() is None:
            hint = "name an index that can be written with --index"
            raise StoreError(f"{self.store.name} cannot be written", hint=hint)
        if self.store.read_only:
            message = f"{self.store.name} takes no writes: it is a replica"
            raise StoreError(message, hint="name the primary with --index")

    def keep_warm(self) -> None:
        """For a process that stays: skips the look at the files if the system can prove that none
        has changed.
        """
        load_numpy()
        own = self.settings
        if {"memory"} <= set(own.sources) <= {"memory", *AGENTS} and not own.extra_paths:
            self.looks.listen(self.places, self._location)
        self._warm = True

    @contextmanager
    def exclusively(self, wait_s: float = 60.0) -> Iterator[None]:
        """The only one who indexes; StoreError if another process still does after so long."""
        self.settle()
        with self.store.exclusive(wait_s) as mine:
            if not mine:
                hint = "wait for it, then run this again"
                raise StoreError("another process is indexing this workspace", hint=hint)
            yield

    def sync(
        self,
        *,
        force: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
        wait_s: float = 60.0,
        embed_s: float | None = None,
        estimate: Callable[[Estimate], None] | None = None,
        between: Callable[[], None] | None = None,
    ) -> SyncReport:
        """Brings the index up to the files, keywords first, then every missing vector.

        `force` also checks the index and retries texts that the model refused. `wait_s` bounds the
        wait for another process, `embed_s` the time for vectors; `pending` of the report counts
        those that are left. `estimate` is called with what they will take, `between` when keywords
        are done.
        """
        options = SyncOptions(
            force=force,
            progress=progress or silent,
            estimate=estimate,
            wait_s=wait_s,
            look=embed_s is None,
        )
        begun = time.perf_counter()
        self.require_writable()
        report = self._read(options)
        if between:
            between()
        store = self.store
        try:
            report = self._complete(report, options, embed=embed, embed_s=embed_s)
        except StoreDamagedError:
            report = self._complete(
                self._read(options, broken=store), options, embed=embed, embed_s=embed_s
            )
        return self._reported(report, begun, models=embed)

    def _complete(
        self, report: SyncReport, options: SyncOptions, *, embed: bool, embed_s: float | None
    ) -> SyncReport:
        """Vectors for what was read, then copies and contradictions, and what makes the next load
        of vectors fast.
        """
        if embed and self.chain.wanted:
            if embed_s is None:
                self.embedding.measure()
            deadline = None if embed_s is None else time.monotonic() + embed_s
            vectors = self.embedding.fill(self.walk, replace(options, deadline=deadline))
            skipped, notices = (
                (*report.skipped, *vectors.skipped),
                (*report.notices, *vectors.notices),
            )
            report = replace(
                report, embedded=vectors.embedded, pending=vectors.pending, model=vectors.model
            )
            report = replace(report, estimate=vectors.estimate, waiting=vectors.waiting)
            report = replace(report, skipped=skipped, notices=notices)
        elif self.chain.wanted:
            report = replace(report, pending=self.embedding.missing())
        self._consolidate(progress=options.progress)
        self.store.vectors.pack()
        return report

    def _reported(self, report: SyncReport, begun: float, *, models: bool = True) -> SyncReport:
        notices = (
            *self.store_notices,
            *report.notices,
            *(self.chain.notices(self.store) if models else ()),
        )
        if self.is_empty:
            notices = (*notices, *self.lacking())
        return replace(report, notices=notices, took_ms=(time.perf_counter() - begun) * 1000)

    def _read(self, options: SyncOptions, broken: Store | None = None) -> SyncReport:
        """Keywords for what changed; a damaged index is rebuilt."""
        with self.exclusively(options.wait_s):
            store = self.store
            self._syncing += 1
            try:
                if broken is not None:
                    self.rebuild(broken)
                self._reopen_if_swapped()
                store = self.store
                if broken is None and (options.force or options.look):
                    faults = store.audit() if options.force else store.vectors.audit()
                    if faults:
                        raise StoreDamagedError(
                            f"the index {store.name} is damaged: {'; '.join(faults)}"
                        )
                return self._walk(options)
            except StoreDamagedError:
                self.rebuild(store)
                return self._walk(options)
            finally:
                self._syncing, self._patience_s = self._syncing - 1, self.settings.search.scan_s

    def _walk(self, options: SyncOptions) -> SyncReport:
        report = self.looks.look(0.0 if options.force or options.look else _SWEEP_S, options)
        self.store.vectors.trim(int(self.settings.embed.cache_mb * 1e6))
        return report

    def embed_some(self, *, budget_s: float = 2.0) -> SyncReport:
        """A slice of what `sync` does for vectors, for a background thread; `pending` counts what
        is left.
        """
        return self.embedding.fill(self.walk, SyncOptions(deadline=time.monotonic() + budget_s))

    def embed_shared(self, *, progress: Progress | None = None) -> SyncReport:
        """Makes the vectors of a workspace that several machines embed at once, until none is
        missing.
        """
        shared = self.store.shared
        if shared is None:
            raise UsageError(
                "an index in a file has one worker",
                hint="notewell index does it; see docs/postgres.md",
            )
        self.require_writable()
        begun = time.perf_counter()
        report = self.embedding.share(self.walk, shared, progress or silent)
        self._consolidate(progress=progress or silent)
        return self._reported(report, begun)

    def prune(self) -> int:
        """Drops the vectors of earlier models and of text that is in no note now; returns how
        many.
        """
        return self.embedding.prune()

    def _consolidate(self, *, deadline: float | None = None, progress: Progress = silent) -> None:
        """Finds copies and contradictions among what changed; the next sync does what a deadline
        cuts.
        """
        if not self.settings.consolidate:
            return
        if self.store.relations.unjudged(1) or self.store.get_meta("judgement") != RULES:
            from notewell.index.dedupe import consolidate  # noqa: PLC0415 - most runs find nothing to compare

            consolidate(
                self.store,
                self.root,
                model=pinned(self.store),
                deadline=deadline,
                progress=progress,
            )

    def ensure_fresh(self, *, embed: bool = True) -> Freshness:
        """A quick sync before a search; threads that search at once share the first that begins
        after they asked.
        """
        # While several search, a look that is a moment old is enough: one at thousands of files
        # takes turns with all.
        asked = time.monotonic()
        with self._refreshing:
            begun, embedded, fresh = self._refreshed
            if begun < asked - (_SHARED_S if self.turns.searches > 1 else 0.0) or embed > embedded:
                begun = time.monotonic()
                fresh = self._catch_up(embed=embed, scan_s=self.settings.search.scan_s)
                self._refreshed = (begun, embed, fresh)
            return fresh

    def refresh(self, *, within_s: float) -> bool:
        """Keywords for what changed, in bounded time; returns whether that was enough for all of
        it.
        """
        with self._refreshing:
            return not self._catch_up(embed=False, scan_s=within_s).stale

    def _catch_up(self, *, embed: bool, scan_s: float) -> Freshness:
        """Bounded in time, and skipped while another process is indexing; what could not be done is
        reported.
        """
        self.settle()
        if self.store.read_only:
            return replica_freshness(self.store)
        try:
            # Most syncs of a watch in this process are over in a moment.
            with self._lock_unless_idle(
                min(self._patience_s, scan_s) if self._syncing else 0.0
            ) as mine:
                if not mine:
                    self._patience_s = 0.0
                    return indexing("this process" if self._syncing else "another process")
                self._reopen_if_swapped()
                report = self.looks.look(_SURE_S, SyncOptions(deadline=time.monotonic() + scan_s))
            begun, resolved, vectors = time.monotonic(), None, SyncReport()
            # keywords for all notes come first, and their time is not there for vectors
            if embed and not report.left:
                spent_s = report.took_ms / 1000
                resolved, vectors = self.embedding.top_up(
                    self.walk, warm=self._warm, spent_s=spent_s
                )
            embed_s = time.monotonic() - begun
            if not report.left:
                self._consolidate(deadline=time.monotonic() + _CONSOLIDATE_S)
        except (StoreDamagedError, StoreAwayError):
            raise
        except StoreError as error:
            if self.tombstones.fault:
                return Freshness(stale=True)  # every answer reports it
            message = f"the index could not be brought up to date: {error}"
            return Freshness(stale=True, notices=(Notice("not_synced", message, error.hint),))
        doubts = self.trust.notices if embed and not self._told else ()
        self._told = self._told or embed
        return Freshness(
            not report.complete,
            (*doubts, *vectors.notices, *cut_notices(report)),
            resolved,
            embed_s,
        )

    def _lock_unless_idle(self, wait_s: float) -> AbstractContextManager[bool]:
        """A lock of a store that is far away takes three round trips, which nobody needs who has
        nothing to write.
        """
        idle = self.store.ahead is not None and self.looks.is_idle(_SURE_S)
        return nullcontext(enter_result=True) if idle else self.store.exclusive(wait_s)

    def recovered(self, error: StoreError, store: Store) -> bool:
        """Rebuilds a damaged index; returns whether it is worth trying again after this error."""
        if isinstance(error, StoreDamagedError):
            self.rebuild(store)
            return True
        return self.store is not store

    def rebuild(self, broken: Store) -> None:
        """Replaces a damaged index by an empty one, unless another thread already has; the next
        sync fills it.
        """
        with self._refreshing:
            if self.store is not broken:
                return
            if isinstance(broken, FileBacked) and broken.file is not None:
                store, notices = self._adapters.replace_store(broken)
                self._use(store)
                self._store_notices = (*self._store_notices, *notices)
                return
            notice = read_again(broken)
            self._store_notices = tuple(dict.fromkeys((*self._store_notices, notice)))

    def _reopen_if_swapped(self) -> None:
        """Opens the index again if its file was replaced or removed while it was open."""
        store = self.store
        if not self.closed and isinstance(store, FileBacked) and store.swapped():
            self.rebuild(store)

    def watch(
        self,
        callback: Callable[[SyncReport], None] | None = None,
        *,
        poll_s: float | None = None,
        debounce_s: float | None = None,
        progress: Progress | None = None,
    ) -> Watch:
        """A watch that syncs in a background thread when notes change: start and stop it, or use it
        as a context.
        """
        load_numpy()
        watch = Watch(
            self.places.watched,
            lambda: self._watch_sync(progress),
            callback,
            poll_s=self.settings.watch.poll_s if poll_s is None else poll_s,
            debounce_s=self.settings.watch.debounce_s if debounce_s is None else debounce_s,
            ignored=self.places.of_index(self._location),
        )
        self._watches.append(watch)
        return watch

    def _watch_sync(self, progress: Progress | None) -> SyncReport:
        if self.store.read_only:
            return SyncReport()  # a replica changes by itself
        return self.sync(
            embed_s=_SLICE_S,
            progress=progress,
            between=lambda: self.turns.wait(lambda: self.closed),
        )

    def on_change(self, callback: Callable[[int], None]) -> ChangeFeed | None:
        """Calls back after every change of an index that other machines write to as well; None for
        any other index.
        """
        if self.store.shared is None:
            return None
        feed = ChangeFeed(self.store.shared, callback)
        self._feeds.append(feed)
        return feed

    def status(self, *, deep: bool = False) -> Status:
        """Compares the files with the index and counts what there is; `deep` also asks every model
        of the chain.
        """
        levels = self.probe() if deep else ()
        notices = (*self.store_notices, *self.trust.notices, *self.lacking())
        found = status_of(self.root, self.walk, self.embedding, notices, levels=levels)
        return found if self._open_store is None else replace(found, index="none yet")

    def lacking(self) -> list[Notice]:
        """Why an answer may be empty or poor: no notes at all, and what was found and is not
        read.
        """
        return self.survey.lacking(empty=self.is_empty)

    @property
    def is_empty(self) -> bool:
        """Whether there is no passage at all; the words, which also tell, take longer to load than
        a sync.
        """
        return not self.store.documents.chunks_by_id("")

    def probe(self, names: Sequence[str] | None = None) -> list[Probe]:
        """Tests the models of the chain, or those with these names, even if they failed before."""
        return self.chain.probe(self.store, names, deadline_s=self.settings.embed.trial_s)
