"""Memory, the front door: open, sync, search, get, why, status. The only place that names concrete adapters."""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from recollect import settings as settings_
from recollect.embed import registry
from recollect.embed.chain import Chain, Probe
from recollect.embed.generations import belongs, flip, generation_of, pinned
from recollect.embed.memo import Memo
from recollect.errors import (
    EmbedderError,
    NotFoundError,
    StoreAwayError,
    StoreDamagedError,
    StoreError,
    UsageError,
    WorkspaceError,
)
from recollect.ports import Conversations, Embedder, Figures, Progress, Reranker, Shared, Source, Store
from recollect.search import explain, profiles, timeline, trail
from recollect.search.evidence import ask
from recollect.search.merge import merged
from recollect.search.pack import CONSIDERED, DEFAULT_BUDGET, Context, pack
from recollect.search.pipeline import Bench, Profile, Ranked, run
from recollect.search.rerank import Rerank
from recollect.search.stages import Abstain, Cut, Decay
from recollect.settings import SearchSettings, Settings
from recollect.sources.files import FileSource
from recollect.sources.links import add_link, read_links, remove_links
from recollect.store.lock import locked
from recollect.store.place import REOPENED, find_workspace, open_index, open_store, set_aside
from recollect.store.sqlite import SqliteStore
from recollect.store.tombstones import tombstones_of
from recollect.sync.engine import Engine
from recollect.sync.fill import fill, share
from recollect.sync.forget import Act, Piece, Receipt, Selection, backups_of, forget, undo
from recollect.sync.hear import Hearing
from recollect.sync.notes import Notes
from recollect.sync.remember import Desk, Remembered, Wish, remember
from recollect.sync.still import Still
from recollect.sync.watch import Watch, Watched, watched
from recollect.text.chunk import ChunkSize, Passage
from recollect.text.dates import spans_in
from recollect.text.intent import asks_for_now
from recollect.text.lexicon import RULES
from recollect.text.markdown import split_lines
from recollect.text.redact import Redactor
from recollect.text.snippet import snippet
from recollect.text.words import clean, query_terms
from recollect.types import (
    Candidate,
    Chunk,
    Edge,
    End,
    Estimate,
    Filters,
    Found,
    Hit,
    Notice,
    Query,
    Skipped,
    SyncReport,
)

if TYPE_CHECKING:
    from recollect.sources.sessions import SessionSource

MAX_QUERY = 20_000
_LEAST_WAIT_S = 0.25
_MEASURED_WAIT_S = 60.0  # a busy machine must not turn a measurement into one of keywords
ANSWERS = 128
_MODEL_FAULTS = ("vector_failed", "vector_late", "model_fallback", "no_embedder")
_RECENCY = Decay(half_life_days=30.0)
_CONSOLIDATE_S = 0.2
_TRIES, _STEADY_WAIT_S = 3, 5.0
_SHARED_S = 0.25
_LAG_S = 1.0
_MANY = 1000  # so many new vectors at once are a load, after which the tables want to be looked at
_PATIENCE_S = 0.3
_SLICE_S = 1.0
_QUIET_S = 0.3
_YIELD_S = 2.0
_LINES = re.compile(r"(?P<path>.+?)(?::(?P<a>\d+)(?:-(?P<b>\d+))?|#L?(?P<c>\d+)(?:-L?(?P<d>\d+))?)\Z")


@dataclass(frozen=True, slots=True)
class Text:
    """What `get` returns: lines of a note, or the turns on some lines of a transcript."""

    path: str
    start_line: int
    end_line: int
    text: str
    chunk: Chunk | None = None


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


class Memory:
    """A workspace that can be searched. Thread-safe for searches; close it, or use it as a context."""

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

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        env: Mapping[str, str] | None = None,
        embedder: Embedder | None = None,
        index: str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> Memory:
        """Opens a workspace, making its index if there is none; flags are settings, with `__` for their dot.

        `index` is a file, or the address of a PostgreSQL database.
        """
        env = os.environ if env is None else env
        root = Path(path) if path is not None else find_workspace(Path.cwd(), env)
        if not root.exists():
            raise WorkspaceError(
                f"the workspace {root} does not exist", hint="make the folder, or name another with -w"
            )
        if not root.is_dir():
            raise WorkspaceError(f"{root} is not a folder", hint="name the folder that holds MEMORY.md or memory/")
        root = Path(os.path.realpath(root))
        dotted = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
        if index is not None:
            dotted |= settings_.index_flags(index)
        settings = settings_.changed(settings, dotted) if settings else settings_.load(root, env=env, flags=dotted)
        store, beside, notices = open_index(root, settings, env)
        return cls(root, settings, store, notices, embedder=embedder, env=env, beside=beside)

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
        lag_s = self.store.lag_s() or 0.0
        if lag_s < _LAG_S:
            return False, []
        message = f"the index is a replica, {lag_s:.0f} s behind: this answer may miss the latest notes"
        return True, [Notice("replica_behind", message, "ask the primary, or wait")]

    def _writable(self) -> None:
        if self.store.read_only:
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

    def search(
        self,
        text: str,
        *,
        limit: int | None = None,
        profile: str | Profile | None = None,
        filters: Filters | None = None,
        min_score: float | None = None,
        budget_tokens: int = 0,
        now: dt.datetime | None = None,
        sync: bool = True,
        include_superseded: bool = False,
    ) -> Found:
        """The passages that answer a question, best first, each with its reason."""
        begun = time.perf_counter()
        query, chosen, notices = self._query(
            text, limit=limit, profile=profile, filters=filters or Filters(), min_score=min_score,
            budget_tokens=budget_tokens, now=now,
        )  # fmt: skip
        query = replace(query, include_superseded=include_superseded)
        store = self.store
        with self._count:
            self._asking += 1
            self._asked_at = time.monotonic()
        try:
            found = self._answer(query, chosen, sync=sync)
        except StoreError as error:
            if isinstance(error, StoreDamagedError):
                self._rebuild(store)
            elif self.store is store:
                raise
            found = self._answer(query, chosen, sync=True)
        finally:
            with self._count:
                self._asking -= 1
        return replace(found, notices=(*notices, *found.notices), took_ms=(time.perf_counter() - begun) * 1000)

    def _answer(self, query: Query, chosen: Profile, *, sync: bool) -> Found:
        if self._closed:
            raise StoreError("the memory is closed", hint="open it again")
        if not sync and any(n.code == "index_rebuilt" for n in self._notices):
            sync = not self.store.documents()  # a damaged index is no reason for an empty answer
        stale, notices = self._refresh() if sync else (False, [])
        key = self._memo_key(query, chosen) if not notices and not stale else None
        if key is not None and (known := self._known_answer(key)):
            return known
        left_s = self.settings.embed.deadline_s - (self._topped_s if sync else 0.0)
        ranked = self._steady(query, chosen, deadline_s=max(_LEAST_WAIT_S, left_s))
        self._check(ranked.candidates)
        notices = [*self._notices, *self._told(notices, ranked)]
        shown = merged(ranked.candidates) if query.budget_tokens else ranked.candidates
        hits = tuple(self._hit(c, query) for c in shown)
        if any("rerank_failed" in c.signals for c in ranked.trace.candidates.values()):
            message = "the reranker failed or was late, so the order is the one before it"
            notices.append(Notice("rerank_failed", message, "look at search.rerank and search.rerank_deadline_s"))
        if not hits and ranked.trace.candidates:
            message = "nothing here seems to answer this; the nearest misses are in the trace"
            notices.append(Notice("no_relevant_memory", message, "add --explain"))
        notices += self._rewritten(hits, query.filters.as_of)
        found = Found(
            query,
            chosen.name,
            ranked.mode,
            hits,
            tuple(notices),
            ranked.trace,
            ranked.model or self._answering(),
            stale,
            0.0,
        )
        if key is not None and not notices and self._answers is not None:
            with self._count:
                self._answers[key] = found
                if len(self._answers) > ANSWERS:
                    self._answers.popitem(last=False)
        return found

    def _memo_key(self, query: Query, chosen: Profile) -> tuple[object, ...] | None:
        """What an answer depends on: the question, the day, the profile, and all that the index holds."""
        if self._answers is None or any(isinstance(s, Rerank) for s in chosen.stages):
            return None
        if self.settings.consolidate and self.store.unjudged(1):
            return None  # what passages are to each other is still being found out
        day = query.now.replace(hour=0, minute=0, second=0, microsecond=0)  # no stage looks at the hour
        return replace(query, now=day), repr(chosen), self.store.generation, pinned(self.store)

    def _known_answer(self, key: tuple[object, ...]) -> Found | None:
        with self._count:
            if self._answers is not None and key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        return None

    def _answering(self) -> str:
        """The generation that a search would use, or none."""
        now = self._chain.answering(self.store)
        model = self.embedder if now is None else None
        return now[0] if now else model.id if model else "none"

    def _told(self, refreshed: Sequence[Notice], ranked: Ranked) -> list[Notice]:
        """A model that is away is said once, however many parts of a search have met it."""
        own = [*self._chain.notices(self.store), *ranked.notices]
        fault = any(n.code in _MODEL_FAULTS for n in own)
        early = [n for n in refreshed if not (fault and n.code == "embedder_failed")]
        fault = fault or any(n.code == "embedder_failed" for n in early)
        return [*early, *([] if fault else self._pending()), *own]

    def _pending(self) -> list[Notice]:
        """What has no vector yet, and where it is."""
        found = self._chain.pending(self.store)
        count = self._in_batch() if found else 0
        return [
            replace(n, hint=f"{count} are in a batch: {n.hint} later fetches them") for n in found if count
        ] or found

    def _query(
        self, text: str, *, limit: int | None, profile: str | Profile | None, filters: Filters,
        min_score: float | None, budget_tokens: int, now: dt.datetime | None,
    ) -> tuple[Query, Profile, list[Notice]]:  # fmt: skip
        notices: list[Notice] = []
        name = profile or self.settings.search.profile
        chosen = name if isinstance(name, Profile) else self._profile(name, mixed=not filters.source)
        if limit is not None and limit < 1:
            raise UsageError(f"the limit is {limit}", hint="ask for at least one hit")
        text = clean(text)
        if len(text) > MAX_QUERY:
            notices.append(Notice("query_cut", f"the question was cut to its first {MAX_QUERY:,} characters"))
            text = text[:MAX_QUERY]
        if not query_terms(text):
            notices.append(Notice("empty_query", "the question has no word to look for", "type some words"))
        least = self.settings.search.min_score if min_score is None else min_score
        if filters.as_of:
            now = dt.datetime.combine(filters.as_of, dt.time.max)
        now = now or dt.datetime.now()  # noqa: DTZ005 - days in notes and questions are days of this place
        query = Query(
            text,
            now,
            limit or self.limit(chosen),
            filters,
            least,
            budget_tokens,
            spans_in(text, now),
            asks_for_now(text),
        )
        return query, chosen, notices

    def _profile(self, name: str, *, mixed: bool = True) -> Profile:
        """A profile by name with what the settings change about it; the legs and published ones stay as they are.

        Where sources are `mixed`, ours lets conversations fill no more than their share of the first hits.
        """
        own = self.settings.search
        chosen = profiles.profile(name)
        share = own.session_share if mixed and {"memory", "sessions"} <= set(self.settings.sources) else 1.0
        if name != own.profile:
            return profiles.adapted(chosen, session_share=share)
        stage = None
        if own.rerank != "none":
            if self._reranker is None:
                key = self._env.get("RECOLLECT_RERANK_KEY", "")
                self._reranker = registry.reranker(own, key=key, threads=self.settings.embed.threads)
            if self._reranker is not None:
                stage = Rerank(
                    self._reranker, depth=own.rerank_depth, weight=own.rerank_weight, deadline_s=own.rerank_deadline_s
                )
        return profiles.adapted(
            chosen, fusion=own.fusion, stages=own.stages, pool=own.pool, reranker=stage, session_share=share
        )

    def _steady(self, query: Query, chosen: Profile, *, deadline_s: float) -> Ranked:
        """A run during which no passage came or went: one that a leg found and that was replaced before it could be
        read would be missing under its new row as well. Where others write all the time they wait for the last try.
        """
        for _ in range(_TRIES):
            before = self.store.get_meta("chunks")
            ranked = self._run(query, chosen, deadline_s=deadline_s)
            if self.store.get_meta("chunks") == before:
                return ranked
        with self.store.exclusive(_STEADY_WAIT_S):
            return self._run(query, chosen, deadline_s=deadline_s)

    def _run(self, query: Query, chosen: Profile, *, deadline_s: float | None = None) -> Ranked:
        if not query_terms(query.text):
            return run(replace(query, text=""), chosen, Bench(self.store, None, self._executor))
        wait_s = self.settings.embed.deadline_s if deadline_s is None else deadline_s
        store = self.store
        self._chain.levels(store)  # a wrong name in the settings is an error of the caller's, not a notice
        bench = Bench(
            store,
            None,
            self._executor,
            wait_s,
            question=lambda text: self._chain.question(store, text, deadline_s=wait_s),
            relations=self.settings.consolidate,
        )
        return run(query, chosen, bench)

    def _check(self, candidates: tuple[Candidate, ...]) -> None:
        """What is shown is what was stored: a flipped bit is damage, not an answer."""
        for c in candidates:
            if _content_hash(c.chunk) != c.chunk.content_hash:
                raise StoreDamagedError(
                    f"a passage of {c.chunk.path} in the index is damaged", hint="recollect index --force"
                )

    def _hit(self, c: Candidate, query: Query) -> Hit:
        return Hit(
            chunk=c.chunk,
            score=c.score,
            confidence=c.signals.get("confidence", c.score),
            vector_score=c.signals.get("cosine"),
            text_score=c.signals.get("text", 0.0),
            ranks=c.ranks,
            recency=_RECENCY.keeps(c.chunk, query),
            snippet=snippet(c.chunk.text, query.text),
            why=explain.one_line(c, query),
            signals=c.signals,
            superseded_by=c.relations.superseded_by,
            conflicts_with=c.relations.conflicts_with,
        )

    def rank(self, text: str, *, profile: str | Profile, limit: int, now: dt.datetime) -> Ranked:
        """The bare order for a question over the index as it is: no look at the files, no threshold, no snippets."""
        query, chosen, _ = self._query(
            text, limit=limit, profile=profile, filters=Filters(), min_score=0.0, budget_tokens=0, now=now
        )
        return self._run(query, chosen, deadline_s=_MEASURED_WAIT_S)

    def limit(self, profile: str | Profile) -> int:
        """How many hits a profile shows when nobody says: what the user has set, else what the profile says."""
        own = self.settings.search.limit
        untouched = "search.limit" not in self.settings.origins and own == SearchSettings().limit
        chosen = profile if isinstance(profile, Profile) else profiles.profile(profile)
        return chosen.limit if untouched else own

    def shown(self, candidates: Sequence[Candidate], profile: str) -> list[Candidate]:
        """What a user would see of an order that was made without thresholds."""
        own = self.settings.search.min_score
        query = Query("", dt.datetime.now(), self.limit(profile), min_score=own)  # noqa: DTZ005 - no stage here looks at it
        kept: Sequence[Candidate] = candidates
        for stage in self._profile(profile).stages:
            if isinstance(stage, Abstain | Cut):
                kept = stage(kept, query)
        return list(kept)

    def get(self, reference: str, *, raw: bool = False) -> Text:
        """Lines by id, `path`, `path:from-to` or a citation, read from the file on disk.

        Secrets are redacted as in the index, and a transcript is its turns; `raw` is the file as it is.
        """
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        if re.fullmatch(r"[a-z2-7]{4,12}", reference):
            self._refresh(embed=False)  # lines move when a file is edited
            found = self.store.chunks_by_id(reference)
            if len(found) == 1:
                return self._lines(found[0].path, found[0].start_line, found[0].end_line, found[0], raw=raw)
            if found:
                raise NotFoundError(
                    f"{reference} begins more than one id: {', '.join(c.id for c in found)}", hint="give more of it"
                )
        match = _LINES.match(reference)
        if match and match["path"] not in self.store.documents() and reference in self.store.documents():
            match = None
        path = match["path"] if match else reference
        first = int(match["a"] or match["c"]) if match else 1
        last = int(match["b"] or match["d"] or first) if match else None
        return self._lines(path, first, last, None, raw=raw)

    def _lines(self, path: str, first: int, last: int | None, chunk: Chunk | None, *, raw: bool) -> Text:
        everywhere = ((s, d) for s in self._engine.sources for d in s.scan().documents)
        source, known = next(((s, d) for s, d in everywhere if d.path == path), (None, None))
        if source is None or known is None:
            raise NotFoundError(f"no note is called {path!r}", hint="give a path as recollect search prints it")
        redactor = None if raw else self._redactor
        try:
            if isinstance(source, Conversations) and not raw:
                from recollect.text.transcript import readable  # noqa: PLC0415

                turns, count = source.lines(known, max(first, 1), last)
                if 1 <= first <= count and (last is None or last >= first):
                    said = [replace(t, text=redactor(t.text).text) for t in turns] if redactor else turns
                    return Text(path, first, min(last or count, count), readable(said), chunk)
                lines = ["said"] * count  # only to be counted
            else:
                spoken = isinstance(source, Conversations)
                text = Path(known.location).read_text("utf-8", "replace") if spoken else source.read(known)
                lines = split_lines(redactor(clean(text)).text if redactor else clean(text))
        except (OSError, ValueError) as error:
            raise NotFoundError(f"{path} cannot be read: {error}", hint="recollect index reports each file") from error
        if len(lines) > 1 and not lines[-1]:
            lines.pop()  # the end of the last line begins no line
        last = len(lines) if last is None else last
        if first < 1 or first > len(lines) or last < first:
            raise NotFoundError(f"{path} has {len(lines)} lines, not {first}-{last}", hint="lines count from 1")
        last = min(last, len(lines))
        return Text(path, first, last, "\n".join(lines[first - 1 : last]), chunk)

    def why(self, text: str, reference: str, **options: Any) -> tuple[Found, explain.Why]:
        """Why a passage is where it is for a question, or why it is not there."""
        found = self.search(text, **options)
        chunk = self._chunk(reference, found)
        fields = self.store.chunk_terms([chunk.row]).get(chunk.row)
        asked = ask(found.query.text, self.store.term_counts)
        note = "" if found.mode != "lexical" else "meaning search did not take part"
        return found, explain.why(chunk, found.query, found.trace, asked=asked, fields=fields, vector_note=note)

    def _chunk(self, reference: str, found: Found) -> Chunk:
        """The chunk a reference means; of a whole file, the one that came furthest."""
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        by_id = self.store.chunks_by_id(reference) if re.fullmatch(r"[a-z2-7]{4,12}", reference) else []
        if len(by_id) == 1:
            return by_id[0]
        match = _LINES.match(reference)
        whole = self.store.chunks_of(reference)
        if whole:
            order = {m.id: n for step in (*found.trace.legs, *found.trace.steps) for n, m in enumerate(step.marks)}
            return min(whole, key=lambda c: (order.get(c.id, 1 << 30), c.start_line))
        if match:
            first = int(match["a"] or match["c"])
            last = int(match["b"] or match["d"] or first)
            touching = [c for c in self.store.chunks_of(match["path"]) if c.start_line <= last and c.end_line >= first]
            if touching:
                return max(touching, key=lambda c: min(c.end_line, last) - max(c.start_line, first))
        raise NotFoundError(f"nothing indexed is called {reference!r}", hint="give an id, a path or path:from-to")

    def _rewritten(self, hits: Sequence[Hit], as_of: dt.date | None) -> list[Notice]:
        """Files keep no past: a note that changed after the day asked about is shown as it is now, and that is said."""
        if as_of is None or not hits:
            return []
        end = dt.datetime.combine(as_of, dt.time.max).timestamp() * 1e9
        paths = list(dict.fromkeys(h.chunk.path for h in hits))
        changed = self.store.changed_ns(paths)
        later = [path for path in paths if changed.get(path, 0) > end]
        if not later:
            return []
        names = ", ".join(later[:3]) + (", …" if len(later) > 3 else "")
        message = f"{len(later)} of these notes changed after {as_of} and are shown as they are now: {names}"
        return [Notice("changed_since", message)]

    def context(
        self, text: str, *, budget_tokens: int = DEFAULT_BUDGET, limit: int | None = None, **options: Any
    ) -> Context:
        """One block for a prompt that answers a question within a budget of tokens, with the answer it is made of.

        Without a `limit` the budget decides: over what a search would show, and further passages that are likely.
        """
        if budget_tokens < 1:
            raise UsageError(f"the budget is {budget_tokens} tokens", hint="give at least some hundred")
        found = self.search(text, limit=limit or CONSIDERED, **options)
        usual = limit or self.limit(found.profile)
        likely = tuple(h for n, h in enumerate(found.hits) if n < usual or h.confidence >= Abstain().least)
        links, notices = read_links(self.root)
        told = trail.conflicts(self.store, [h.chunk for h in likely], links)
        told |= {(h.chunk.id, other) for h in likely for other in h.conflicts_with}
        packed = pack(likely, found.query.text, budget_tokens=budget_tokens, conflicts=told)
        if likely and not packed.passages:
            message = f"no passage fits into {budget_tokens} tokens"
            notices.append(Notice("budget_too_small", message, "give a larger --budget-tokens"))
        return replace(packed, found=replace(found, hits=likely, notices=(*found.notices, *notices)))

    def trace(
        self, reference: str, *, depth: int = 4, kinds: Sequence[str] = (), direction: trail.Direction = "out"
    ) -> tuple[trail.Trail, list[Notice]]:
        """What a passage or note derives from, refers to and so on, step by step; its rank is `why`'s business."""
        for kind in kinds:
            trail.check_kind(kind)
        _, notices = self._refresh(embed=False)
        links, more = read_links(self.root)
        start = trail.node_of(self.store, clean(reference))
        found = trail.walk(
            self.store, start, links=links, depth=depth, kinds=kinds, direction=direction, further=self._judged
        )
        return found, [*self._notices, *notices, *more]

    def _judged(self, chunk: Chunk) -> list[Edge]:
        """What consolidation knows of a passage, as edges; what front matter says of whole notes is one already."""
        found = self.store.relations([chunk], Filters()).get(chunk.row)
        pairs = [(chunk, other) for other in self.store.stands_for(chunk)]
        if found and found.superseded_by:
            pairs += [(newer, chunk) for newer in self.store.chunks_by_id(found.superseded_by)]
        told = [Edge("supersedes", End(a.id), End(b.id)) for a, b in pairs if b.path not in a.facts.supersedes]
        against = found.conflicts_with if found else ()
        return [*told, *(Edge("conflicts_with", End(chunk.id), End(other)) for other in against)]

    def link(self, start: str, kind: str, end: str, *, remove: bool = False) -> tuple[Edge, bool]:
        """Writes a link into `links.jsonl` of the workspace, or takes it out; whether the file changed."""
        trail.check_kind(kind)
        self._refresh(embed=False)
        ends = [trail.node_of(self.store, clean(one), dangling=remove) for one in (start, end)]
        edge, same = trail.edge_between(self.store, kind, *ends)
        with locked(self._beside("links.lock"), wait_s=10.0) as mine:
            if not mine:
                raise StoreError("another process is writing links", hint="try again")
            if remove:
                return edge, bool(remove_links(self.root, same))
            if any(same(other) for other in read_links(self.root)[0]):
                return edge, False
            add_link(self.root, edge)
            return edge, True

    def timeline(
        self,
        reference: str = "",
        *,
        around: tuple[dt.date, dt.date] | None = None,
        window: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[timeline.Entry], list[Notice]]:
        """What came before and after a passage or some days, over all sources; without either, the latest."""
        if window < 1:
            raise UsageError(f"the window is {window}", hint="ask for at least one")
        if reference and around:
            raise UsageError("a reference and a day cannot both be the middle", hint="give one of them")
        _, notices = self._refresh(embed=False)
        chosen = filters or Filters()
        if around:
            entries = timeline.around_days(self.store, *around, window=window, filters=chosen)
        elif reference:
            node = trail.node_of(self.store, clean(reference))
            entries = timeline.around_passage(
                self.store, node.chunk, window=window, filters=chosen, whole=node.whole
            )  # fmt: skip
        else:
            entries = timeline.latest(self.store, window=window, filters=chosen)
        return entries, [*self._notices, *notices]

    @property
    def _notes(self) -> Notes:
        return Notes(self._files, self._beside("notes.lock"))

    def remember(
        self,
        text: str,
        *,
        file: str = "",
        heading: str = "",
        tags: Sequence[str] = (),
        day: dt.date | None = None,
        supersedes: str = "",
        force: bool = False,
        now: dt.datetime | None = None,
    ) -> Remembered:
        """Writes a text into today's note, or the named one, unless it is there already; the next search finds it."""
        now = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        self._writable()
        self._refresh(embed=False)
        if supersedes:
            supersedes = self._by_id(supersedes).id
            if file:
                raise UsageError("a memory that supersedes another has a file of its own", hint="leave out --file")
        desk = Desk(self._notes, self._engine, self.store, lambda: self.embedder)
        return remember(desk, Wish(text, now, file, heading, tags, day, supersedes, force))

    def forget(
        self,
        reference: str = "",
        *,
        query: str = "",
        session: str = "",
        before: dt.date | None = None,
        yes: bool = False,
        from_files: bool = False,
        backup: bool = True,
        now: dt.datetime | None = None,
    ) -> Receipt:
        """Shows what would be forgotten; with `yes` forgets it for good, from the files too only when told."""
        if sum(map(bool, (reference, query, session, before))) != 1:
            raise UsageError(
                "say what to forget in one way", hint="an id, path or path:from-to, or --query, --session, --before"
            )
        if not yes:
            self._refresh(embed=False)
            return Receipt("", tuple(self._selected(reference, query, session, before)))
        self._writable()
        with self.store.exclusive(60.0) as mine:
            if not mine:
                raise StoreError("another process is indexing this workspace", hint="wait for it, then run this again")
            self._engine.sync()
            pieces = self._selected(reference, query, session, before)
            if not pieces:
                return Receipt("", ())
            return forget(self._act(now), pieces, from_files=from_files, backup=backup)

    def unforget(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Lifts the tombstones of a receipt or an id: how many, and the backups that the receipt made."""
        self._writable()
        with self.store.exclusive(60.0) as mine:
            if not mine:
                raise StoreError("another process is indexing this workspace", hint="wait for it, then run this again")
            act = self._act(None)
            lifted = undo(act, name)
            self._engine.sync()
        return len(lifted), tuple(p for r in sorted({s.receipt for s in lifted}) for p in backups_of(act, r))

    def _act(self, now: dt.datetime | None) -> Act:
        clock = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        return Act(self.store, self._engine, self._notes, self._beside("backup"), clock)

    def _selected(self, reference: str, query: str, session: str, before: dt.date | None) -> list[Piece]:
        select = Selection(self.store, self._engine)
        if query:
            return select.saying(clean(query))
        if session:
            return select.session(session)
        if before:
            return select.before(before)
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        if re.fullmatch(r"[a-z2-7]{4,12}", reference) and self.store.chunks_by_id(reference):
            return select.chunk(self._by_id(reference))
        match = _LINES.match(reference)
        if match and reference not in self.store.documents():
            text = self.get(reference)
            return select.lines(text.path, text.start_line, text.end_line, text.text)
        return select.document(reference.removeprefix("./"))

    def _by_id(self, prefix: str) -> Chunk:
        found = self.store.chunks_by_id(prefix)
        if len(found) != 1:
            which = f"{prefix} begins more than one id" if found else f"no passage has the id {prefix!r}"
            raise NotFoundError(which, hint="give an id as recollect search prints it")
        return found[0]

    def watch(
        self,
        callback: Callable[[SyncReport], None] | None = None,
        *,
        poll_s: float | None = None,
        debounce_s: float | None = None,
        progress: Progress | None = None,
    ) -> Watch:
        """A watch that keeps the index warm in a thread of its own: start it, stop it, or use it as a context."""
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


def _content_hash(chunk: Chunk) -> str:
    return Passage(chunk.start_line, chunk.end_line, chunk.heading, chunk.text).content_hash


__all__ = ["Memory", "Status", "Text", "find_workspace"]
