"""A workspace and its index, which is kept up with the files, watched, mended and counted.

Here and in `memory` concrete adapters are named, and nowhere else.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect.embed import registry
from recollect.embed.chain import Chain, Probe
from recollect.embed.generations import belongs, flip, generation_of, pinned
from recollect.embed.memo import Memo
from recollect.errors import (
    EmbedderError,
    StoreAwayError,
    StoreDamagedError,
    StoreError,
    UsageError,
)
from recollect.ports import Embedder, Figures, Progress, Reranker, Shared, Source, Store
from recollect.settings import Settings
from recollect.sources.files import FileSource
from recollect.store.place import REOPENED, open_store, set_aside
from recollect.store.sqlite import SqliteStore
from recollect.store.tombstones import tombstones_of
from recollect.sync.engine import Engine
from recollect.sync.fill import fill, share
from recollect.sync.hear import Hearing
from recollect.sync.still import Still
from recollect.sync.watch import Watch, Watched, watched
from recollect.text.chunk import ChunkSize
from recollect.text.lexicon import RULES
from recollect.text.redact import Redactor
from recollect.types import (
    Estimate,
    Found,
    Notice,
    Skipped,
    SyncReport,
)

if TYPE_CHECKING:
    from recollect.sources.sessions import SessionSource

_CONSOLIDATE_S = 0.2
_SHARED_S = 0.25
_LAG_S = 1.0
_MANY = 1000  # so many new vectors at once are a load, after which the tables want to be looked at
_PATIENCE_S = 0.3
_SLICE_S = 1.0
_QUIET_S = 0.3
_YIELD_S = 2.0


@dataclass(frozen=True, slots=True)
class Status:
    """Disk against index, counted, never remembered."""

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


class Kept:
    """A workspace whose index is kept up to its files; what every search stands on."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        store: Store,
        notices: tuple[Notice, ...] = (),
        *,
        embedder: Embedder | None = None,
        env: Mapping[str, str] | None = None,
        beside: Path | None = None,
    ) -> None:
        """`beside` is a file that need not be there: locks, backups and what models told stand beside it."""
        self.root = root
        self._place = beside or store.file
        self.settings = settings
        self._redactor = Redactor(settings.redact.patterns) if settings.redact.enabled else None
        self.store = store
        self._notices = notices
        self._env = os.environ if env is None else env
        self._executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="recollect")
        own = settings.embed
        names = (own.model,) if own.model != "auto" else own.chain or ("auto",)
        memo = self._place.with_suffix(".models.json") if self._place else None
        self._chain = Chain(
            names, self._load_model, deadline_s=own.deadline_s, given=embedder, memo=Memo(memo) if memo else None
        )
        self._measured: set[str] = set()  # models of this name are asked for their size, not believed
        self._topped_s = 0.0
        self._reranker: Reranker | None = None
        self._closed = False
        self._refreshing = threading.RLock()
        self._refreshed: tuple[float, bool, tuple[bool, list[Notice]]] = (-1.0, False, (False, []))
        self._tombstones = tombstones_of(store)
        self._watches: list[Watch] = []
        self._hearings: list[Hearing] = []
        self._patience = True  # whether a search waits a moment for a sync of this very process
        self._syncing = 0
        self._filling = 0
        self._nearly_filled = True
        self._asking = 0
        self._asked_at = -_QUIET_S
        self._count = threading.Lock()
        self._still: Still | None = None
        self._answers: OrderedDict[tuple[object, ...], Found] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every watch and lets go of the index; a model that hangs is not waited for."""
        for watch in self._watches:
            watch.stop(timeout_s=0.0)
        for hearing in self._hearings:
            hearing.close()
        self._closed = True
        self._chain.close()  # a watch that waits for a model goes on now
        for watch in self._watches:
            watch.stop()
        self._executor.shutdown(wait=True, cancel_futures=True)
        if self._still is not None:
            self._still.close()
        self.store.close()

    def stay(self) -> None:
        """For a process that stays, such as a server: where the system can prove that no note has changed since the
        last look, a search does not look again, and the same question gets the answer that was made for it.
        """
        _load_numpy()
        own = self.settings
        if own.sources == ("memory",) and not own.extra_paths and self._place is not None:
            self._still = Still(self.root, ignored=self._place.parent)
        self._answers = OrderedDict()

    def _load_model(self, name: str) -> Embedder | None:
        own = self.settings.embed
        known: tuple[str, ...] = ()
        if name not in self._measured:
            with suppress(StoreError):
                known = (pinned(self.store), *self.store.dims())
        self._measured.add(name)
        return registry.embedder(name, threads=own.threads, settings=own, env=self._env, known=known)

    def _measure(self) -> None:
        """Asks models again how large they are, where that is only remembered."""
        self._measured.update(self._chain.renew())

    @property
    def embedder(self) -> Embedder | None:
        """The model that gives new vectors, or None; why there is none is in `notices` of every answer."""
        model = self._chain.first(self.store)
        return model.inner if model else None

    @property
    def _engine(self) -> Engine:
        own = self.settings
        sources: list[Source] = []
        if "memory" in own.sources:
            sources.append(self._files)
        if "sessions" in own.sources:
            sources.append(self._sessions)
        if own.multimodal.paths:
            from recollect.sources.media import MediaSource  # noqa: PLC0415 - as above

            sources.append(MediaSource(self.root, paths=own.multimodal.paths, max_bytes=own.multimodal.max_bytes))
        size = ChunkSize(own.chunk.tokens, own.chunk.overlap)
        return Engine(
            sources, self.store, size, self._tombstones, extra_origin=own.extra_origin, redactor=self._redactor
        )

    @property
    def _files(self) -> FileSource:
        own = self.settings
        return FileSource(self.root, extra_paths=own.extra_paths, max_file_bytes=own.max_file_bytes)

    @property
    def _sessions(self) -> SessionSource:
        from recollect.sources.sessions import SessionSource  # noqa: PLC0415 - only those who have them pay for it

        own = self.settings.sessions
        return SessionSource(
            self.root, paths=own.paths, all_projects=own.all_projects, max_file_bytes=own.max_file_bytes
        )

    def _watched(self) -> Watched:
        """Folders that hold what is indexed: notes, extra paths, images and sound, and transcripts where they count."""
        spoken = self._sessions.trees() if "sessions" in self.settings.sources else []
        return watched(self.root, (*self.settings.extra_paths, *self.settings.multimodal.paths, *spoken))

    def _beside(self, name: str) -> Path | None:
        """A file beside the index, of a database in the workspace's own folder; an index in memory has none."""
        return self._place.with_name(name) if self._place else None

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
        """Brings the index up to the files, keywords first, then every missing vector; `force` also checks the file
        and tries texts again that the model refused. `embed_s` bounds the time for vectors, and `pending` of the
        report says how many are left; `estimate` is told what they will take. `between` is called
        when keywords are done.
        """
        begun = time.perf_counter()
        self._writable()
        watch: Any = {"progress": progress} if progress else {}
        report = self._read(force=force, wait_s=wait_s, **watch)
        if between:
            between()
        if embed and self._chain.wanted:
            store = self.store
            if embed_s is None:
                self._measure()
            again: Any = partial(self._fill, force=force, progress=progress, wait_s=wait_s, estimate=estimate)
            try:
                vectors = again(deadline=None if embed_s is None else time.monotonic() + embed_s)
            except StoreDamagedError:
                report = self._read(force=force, wait_s=wait_s, broken=store, **watch)
                vectors = again(deadline=None if embed_s is None else time.monotonic() + embed_s)
            report = replace(
                report,
                embedded=vectors.embedded,
                pending=vectors.pending,
                skipped=(*report.skipped, *vectors.skipped),
                notices=(*report.notices, *vectors.notices),
                model=vectors.model,
                estimate=vectors.estimate,
                waiting=vectors.waiting,
            )
        self._consolidate(**watch)
        self.store.pack()
        notices = (*self._notices, *report.notices, *(self._chain.notices(self.store) if embed else ()))
        return replace(report, notices=notices, took_ms=(time.perf_counter() - begun) * 1000)

    def _read(self, *, force: bool, wait_s: float, broken: Store | None = None, **watch: Any) -> SyncReport:
        """Keywords for what changed, in an index that is made anew where it is damaged."""
        with self.store.exclusive(wait_s) as mine:
            if not mine:
                raise StoreError("another process is indexing this workspace", hint="wait for it, then run this again")
            store = self.store
            self._syncing, self._patience = self._syncing + 1, True
            try:
                if broken is not None:
                    self._rebuild(broken)
                self._look_at_file()
                store = self.store
                if broken is None and force and (faults := store.audit()):
                    raise StoreDamagedError(f"the index {store.name} is damaged: {'; '.join(faults)}")
                report = self._engine.sync(force=force, **watch)
            except StoreDamagedError:
                self._rebuild(store)
                report = self._engine.sync(force=force, **watch)
            finally:
                self._syncing -= 1
            self.store.trim(int(self.settings.embed.cache_mb * 1e6))
            return report

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What every answer of this memory has to say."""
        return (*self._notices, *self._chain.notices(self.store))

    def _fill(
        self, *, force: bool = False, deadline: float | None = None, progress: Progress | None = None,
        wait_s: float = 0.0, estimate: Callable[[Estimate], None] | None = None,
    ) -> SyncReport:  # fmt: skip
        """Vectors under a lock of their own: other processes go on reading notes while a model fills in for hours."""
        with self.store.embedding(wait_s) as mine:
            if mine:
                self._filling += 1
                try:
                    report = fill(
                        self._engine, self._chain, trial_s=self.settings.embed.trial_s, force=force, deadline=deadline,
                        progress=progress, estimate=estimate, batch=self.settings.embed.batch,
                    )  # fmt: skip
                finally:
                    self._filling -= 1
                self._nearly_filled = not report.pending
                if isinstance(self.store, Shared) and report.embedded >= _MANY and not report.pending:
                    self.store.settle(report.model)
                return report
        model = self.embedder
        generation = generation_of(self.store, model.id) if model else ""
        notice = Notice("embedding", "another process is making the vectors", "recollect status says how far it is")
        return SyncReport(pending=len(self.store.missing(generation)), notices=(notice,), model=generation)

    def work(self, *, progress: Progress | None = None) -> SyncReport:
        """Vectors for a workspace that several machines embed at once, until none is missing; reads no notes."""
        if not isinstance(self.store, Shared):
            raise UsageError("an index in a file has one worker", hint="recollect index does it; see docs/postgres.md")
        self._writable()
        begun = time.perf_counter()
        self._measure()
        report = share(self._engine, self._chain, self.store, trial_s=self.settings.embed.trial_s, progress=progress)
        if report.embedded and not report.pending:
            self.store.settle(report.model)
        self._consolidate(**({"progress": progress} if progress else {}))
        notices = (*self._notices, *report.notices, *self._chain.notices(self.store))
        return replace(report, notices=notices, took_ms=(time.perf_counter() - begun) * 1000)

    def embed_some(self, *, budget_s: float = 2.0) -> SyncReport:
        """A slice of what `sync` does for vectors, for a thread in the background: `pending` says what is left."""
        return self._fill(deadline=time.monotonic() + budget_s)

    def prune(self) -> int:
        """Drops vectors that neither answer nor are to come: of models before, and of text that is in no note now."""
        keep = {generation_of(self.store, level.id) for level in self._chain.levels(self.store)}
        return self.store.prune({pinned(self.store), *keep})

    def _consolidate(self, **options: Any) -> None:
        """Finds copies and contradictions among what changed; what a deadline cuts is done with the next sync."""
        if not self.settings.consolidate:
            return
        if self.store.unjudged(1) or self.store.get_meta("judgement") != RULES:
            from recollect.sync.consolidate import consolidate  # noqa: PLC0415 - most runs find nothing to compare

            consolidate(self.store, model=pinned(self.store), **options)

    def _refresh(self, *, embed: bool = True) -> tuple[bool, list[Notice]]:
        """A quick sync before a search; threads that ask at once share the first one that begins after they asked.

        Where several search at the same time, a look that is a moment old will do: looking at thousands of files
        takes turns with all of them. Who asks alone always gets a look that began after the question.
        """
        asked = time.monotonic()
        with self._refreshing:
            begun, embedded, answer = self._refreshed
            if begun < asked - (_SHARED_S if self._asking > 1 else 0.0) or embed > embedded:
                begun = time.monotonic()
                answer = self._refresh_now(embed=embed)
                self._refreshed = (begun, embed, answer)
            return answer

    def refresh(self, *, within_s: float) -> bool:
        """Keywords for what changed, in bounded time; whether that was enough for all of it."""
        with self._refreshing:
            return not self._refresh_now(embed=False, scan_s=within_s)[0]

    def _refresh_now(self, *, embed: bool, scan_s: float | None = None) -> tuple[bool, list[Notice]]:
        """Bounded in time, and silent when another process is at it; what could not be done is said."""
        own = self.settings
        notices: list[Notice] = []
        if self.store.read_only:
            return self._behind()
        try:
            patient = self._syncing and self._patience  # most syncs of a watch are over in a moment
            with self.store.exclusive(_PATIENCE_S if patient else 0.0) as mine:
                if not mine:
                    self._patience = False
                    who = "this process" if self._syncing else "another process"
                    message = f"{who} is indexing; this answer may miss its latest notes"
                    return True, [Notice("indexing", message)]
                self._look_at_file()
                report = self._looked(own.search.scan_s if scan_s is None else scan_s)
            if embed:
                notices += self._top_up()
            self._consolidate(deadline=time.monotonic() + _CONSOLIDATE_S)
        except StoreError as error:
            if isinstance(error, StoreDamagedError | StoreAwayError):
                raise
            return True, [Notice("not_synced", f"the index could not be brought up to date: {error}", error.hint)]
        if report.left:
            message = f"{report.left} changed notes are not indexed yet, so this answer may miss them"
            notices.append(Notice("sync_cut", message, "run: recollect index"))
        elif not report.complete:
            message = "not every folder could be looked at, so newer notes may be missing"
            notices.append(Notice("scan_cut", message, "run: recollect index"))
        return not report.complete, notices

    def _behind(self) -> tuple[bool, list[Notice]]:
        """A replica takes no writes: it answers from what has come to it, and says when that is old."""
        lag_s = self.store.lag_s()
        if lag_s is None:
            return True, []  # a file that cannot be written; every answer says so
        if lag_s < _LAG_S:
            return False, []
        message = f"the index is a replica, {lag_s:.0f} s behind: this answer may miss the latest notes"
        return True, [Notice("replica_behind", message, "ask the primary, or wait")]

    def _writable(self) -> None:
        if self.store.read_only:
            if self.store.lag_s() is None:
                hint = "name an index that can be written with --index"
                raise StoreError(f"{self.store.name} cannot be written", hint=hint)
            raise StoreError(
                f"{self.store.name} takes no writes: it is a replica", hint="name the primary with --index"
            )

    def _looked(self, limit_s: float) -> SyncReport:
        """Keywords for what changed; nothing is looked at where it is certain that nothing has."""
        still = self._still
        if still is not None:
            if still.still():
                return SyncReport()
            still.arm()
        report = self._engine.sync(deadline=time.monotonic() + limit_s)
        if still is not None and not report.complete:
            still.close()
        return report

    def _top_up(self) -> list[Notice]:
        """Vectors for new notes by the model that answers, within the budget; a model to come is left to `index`."""
        begun = time.monotonic()
        own = self.settings.embed
        try:
            now = self._chain.answering(self.store)
            model = now[1] if now else self._chain.first(self.store)
            if model is None or own.budget_s <= 0 or not self.store.missing(generation_of(self.store, model.id)):
                return []
            at_work = self._at_work(model.inner)
            if at_work is None:
                return []  # `index` hands them in, for less
            # Where a watch makes the vectors, a search waits a moment for the last of them, and for no more.
            budget_s = own.budget_s if self._answers is None else min(own.budget_s, _PATIENCE_S)
            patient = self._filling and self._nearly_filled
            with self.store.embedding(_PATIENCE_S if patient else 0.0) as mine:
                if not mine:
                    self._nearly_filled = False
                    return []
                limited = model.within(min(own.budget_s, own.deadline_s))
                report = self._engine.embed(limited, deadline=time.monotonic() + budget_s, batch=8, leave=at_work)
            if report.embedded:
                self._chain.note_names(self.store, report.model, model.id)
                if not report.pending and belongs(pinned(self.store), model.id):
                    flip(self.store, report.model)  # the same model in another size
            return list(report.notices)
        finally:
            self._topped_s = time.monotonic() - begun

    def _at_work(self, model: Embedder | None) -> frozenset[str] | None:
        """The texts in a provider's batch, by content hash; None when they are to go into one."""
        if model is None or not self.settings.embed.batch:
            return frozenset()
        from recollect.sync import overnight  # noqa: PLC0415 - only for those who asked for it

        return overnight.at_work(self.store, model)

    def _in_batch(self) -> int:
        """How many texts are in a provider's batch."""
        model = self.embedder if self.settings.embed.batch else None
        if model is None:
            return 0
        from recollect.sync import overnight  # noqa: PLC0415 - only for those who asked for it

        return overnight.in_batch(self.store, model)

    def _rebuild(self, broken: Store) -> None:
        """Sets a damaged index aside and makes an empty one, unless another thread already has."""
        with self._refreshing:
            if self.store is not broken:
                return
            if not isinstance(broken, SqliteStore) or broken.file is None:
                self._read_anew(broken)
                return
            path = broken.file
            try:
                swapped = broken.swapped()
            except StoreDamagedError:
                swapped = False
            if swapped:  # another process has made it anew already: its file is sound, and is not ours to set aside
                broken.abandon()
                notice = REOPENED
            else:
                broken.close()
                notice = set_aside(path, broken.inode)
            self.store, more = open_store(path)
            self._notices = (*self._notices, notice, *more)

    def _read_anew(self, broken: Store) -> None:
        """A database is not ours to set aside: every note in it is made anew by the next sync, one after the other."""
        with broken.writing():
            for key in ("analysis", "analysis_since"):
                broken.set_meta(key, "")
        message = f"the index {broken.name} was damaged; every note is read into it anew"
        self._notices = tuple(dict.fromkeys((*self._notices, Notice("index_rebuilt", message, "nothing is lost"))))

    def _look_at_file(self) -> None:
        """Opens the index again where its file was replaced or taken away under the open one."""
        store = self.store
        if not self._closed and isinstance(store, SqliteStore) and store.swapped():
            self._rebuild(store)

    def _answering(self) -> str:
        """The generation that a search would use, or none."""
        now = self._chain.answering(self.store)
        model = self.embedder if now is None else None
        return now[0] if now else model.id if model else "none"

    def watch(
        self,
        callback: Callable[[SyncReport], None] | None = None,
        *,
        poll_s: float | None = None,
        debounce_s: float | None = None,
        progress: Progress | None = None,
    ) -> Watch:
        """A watch that keeps the index warm in a thread of its own: start it, stop it, or use it as a context."""
        _load_numpy()
        watch = Watch(
            self._watched,
            lambda: self._watch_sync(progress),
            callback,
            poll_s=self.settings.watch.poll_s if poll_s is None else poll_s,
            debounce_s=self.settings.watch.debounce_s if debounce_s is None else debounce_s,
            ignored=self._place.parent if self._place else None,
        )
        self._watches.append(watch)
        return watch

    def hear(self, callback: Callable[[int], None]) -> Hearing | None:
        """Tells of every change of an index that other machines write to as well; None where there are no others."""
        if not isinstance(self.store, Shared):
            return None
        hearing = Hearing(self.store, callback)
        self._hearings.append(hearing)
        return hearing

    def _watch_sync(self, progress: Progress | None) -> SyncReport:
        if self.store.read_only:
            return SyncReport()  # what changes on a replica is not ours to do
        return self.sync(embed_s=_SLICE_S, progress=progress, between=self._yield)

    def _yield(self) -> None:
        """Vectors in the background let searches go first, for a while."""
        until = time.monotonic() + _YIELD_S
        while not self._closed and time.monotonic() < min(until, self._asked_at + _QUIET_S):
            time.sleep(0.05)

    def status(self, *, deep: bool = False) -> Status:
        """Compares the files with the index and counts what there is; `deep` also asks every model of the chain."""
        outlook = self._engine.outlook()
        counts = self.store.counts()
        model = self.embedder
        generation = generation_of(self.store, model.id) if model else ""
        embedded, total = self.store.coverage(generation) if model else (0, counts["chunks"])
        refused = len(self.store.refused(generation))
        cached, cache_bytes = self.store.idle()
        return Status(
            workspace=str(self.root),
            index=self.store.name,
            documents=counts["documents"],
            chunks=counts["chunks"],
            bytes=counts["bytes"],
            on_disk=outlook.on_disk,
            to_add=outlook.to_add,
            to_change=outlook.to_change,
            to_drop=outlook.to_drop,
            embedder=generation or "none",
            embedded=embedded,
            pending=total - embedded - refused,
            models=tuple(self.store.models()),
            skipped=outlook.skipped,
            notices=(*self._notices, *self._chain.notices(self.store)),
            answering=self._answering(),
            refused=refused,
            cached=cached,
            cache_bytes=cache_bytes,
            levels=tuple(self.probe()) if deep else (),
            sources=tuple(self.store.sources()),
            waiting=self._in_batch(),
            chain=tuple((name, str(error or "")) for name, error in self.levels()),
            database=self.store.figures() if isinstance(self.store, Shared) else None,
        )

    def levels(self) -> list[tuple[str, EmbedderError | None]]:
        """The names of the chain in order, each with the reason why it could not be loaded."""
        return [(level.name, level.error) for level in self._chain.levels(self.store)]

    def probe(self, names: Sequence[str] | None = None) -> list[Probe]:
        """Asks the models of the chain, or those of these names, whether they failed before or not."""
        return self._chain.probe(self.store, names, deadline_s=self.settings.embed.trial_s)


def _load_numpy() -> None:
    """Before there are several threads that need it: two that load it at once may find half of it."""
    import numpy  # noqa: F401, ICN001, PLC0415
