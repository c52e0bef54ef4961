"""The index walk: scan the sources, plan, then read, chunk and store each document that changed."""

from __future__ import annotations

import contextlib
import gc
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from notewell.index.documents import chunks_of, facts_of, origin_of, words_of
from notewell.index.job import Job
from notewell.index.plan import Plan, plan
from notewell.index.remarks import Remarks
from notewell.notes.tombstones import Tombstones
from notewell.opener import is_in
from notewell.sources.source import (
    Comparing,
    Conversations,
    Detachable,
    Known,
    Linked,
    Narrowing,
    Source,
    Watchable,
)
from notewell.sources.trust import Trust
from notewell.store.lazy import LazyModule
from notewell.store.ports import Store
from notewell.store.values import ChunkWords, Stored
from notewell.text.chunk import ChunkSize
from notewell.text.forgotten import Forgotten, Tombstone, place_of_note
from notewell.text.markdown import parse
from notewell.text.redact import Redactor
from notewell.text.words import ANALYSER, clean
from notewell.types import Chunk, Document, Edge, Progress, Skipped, SyncReport, silent

if TYPE_CHECKING:
    from notewell.index import read_ahead
else:
    read_ahead = LazyModule("notewell.index.read_ahead")  # most looks find nothing to read

_COMMIT_EVERY_S = 0.25
_DROP_BATCH = 200


class _Found(NamedTuple):
    """What a look at the sources found, what it skipped, whether it saw everything, and which paths
    are as known.
    """

    documents: list[tuple[Source, Document]]
    skipped: list[Skipped]
    complete: bool
    same: Set[str]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one document and why, with its chunks and how much of it is forgotten."""

    what: str
    reason: str = ""
    chunks: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class Walk:
    """Brings a store up to its sources."""

    sources: Sequence[Source]
    store: Store
    size: ChunkSize = field(default_factory=ChunkSize)
    tombstones: Tombstones = field(default_factory=Tombstones)
    extra_origin: str = field(default="owner", kw_only=True)
    redactor: Redactor | None = field(default=None, kw_only=True)
    trust: Trust | None = field(default=None, kw_only=True)

    def sync(
        self, *, force: bool = False, deadline: float | None = None, progress: Progress = silent
    ) -> SyncReport:
        """Makes keywords current; the next sync goes on where a `deadline` (monotonic) cut, the
        newest notes first.
        """
        begun = time.perf_counter()
        with _uncollected():
            return self._sync(begun, force=force, deadline=deadline, progress=progress)

    def sync_some(
        self,
        locations: Collection[str],
        *,
        deadline: float | None = None,
        progress: Progress = silent,
    ) -> SyncReport | None:
        """The same if these are all the files that changed since the last; None if it takes a look
        at everything.
        """
        begun = time.perf_counter()
        forgotten, wanted, current = self._standing()
        first: Source = self.sources[0]
        if (
            wanted != current
            or not isinstance(first, Narrowing)
            or _is_anyones(locations, self.sources[1:])
        ):
            return None
        found = first.scan_some(locations)
        if found is None:
            return None
        stored = self.store.documents.stored([*found.gone, *(d.path for d in found.documents)])
        work = plan(found.documents, stored)
        if {place_of_note(path) for path in work.drop} & {
            stone.place for stone in forgotten.stones
        }:
            return None  # it may have another name now, under which it stays forgotten
        with _uncollected():
            readers = dict.fromkeys((d.path for d in found.documents), first)
            remarks = self.remarks()
            remarks.drop(found.gone)
            job = Job(work, readers, stored, forgotten, remarks, deadline=deadline)
            report = self._apply(job, progress)
            return _told(
                report, work, (*found.skipped, *remarks.of_others(readers)), begun, complete=True
            )

    def _standing(self) -> tuple[Forgotten, dict[str, str], dict[str, str]]:
        """What is forgotten, what the index should be made with, and what it was made with."""
        forgotten = self.tombstones.share()
        wanted = {"analysis": self.signature, "forgotten": forgotten.signature}
        return forgotten, wanted, {key: str(self.store.get_meta(key) or "") for key in wanted}

    def _sync(
        self, begun: float, *, force: bool, deadline: float | None, progress: Progress
    ) -> SyncReport:
        stored = self.store.documents.stored()
        forgotten, wanted, current = self._standing()
        if not stored:
            self._note(wanted, current)
        fresh = frozenset(stored) if force else self._due("analysis", wanted, current, stored)
        again = fresh | self._due("forgotten", wanted, current, stored)
        # A stored size that no file has makes the plan read a document again.
        compared = (
            {path: s._replace(size=-1) if path in again else s for path, s in stored.items()}
            if again
            else stored
        )
        documents, skipped, complete, same = self.scan(deadline, compared)
        work = plan((d for _, d in documents), compared, same=same, complete=complete)
        readers = {d.path: s for s, d in documents}
        if moved := self._moved(work, readers, forgotten):
            # What another process adds at this moment is for the next sync.
            wanted["forgotten"] = Forgotten((*forgotten.stones, *moved)).signature
            forgotten = self.tombstones.add(moved)
        kept = {path: s for path, s in stored.items() if path not in fresh} if fresh else stored
        remarks = Remarks(self.store, self.signature, afresh=force)
        if complete:
            remarks.drop(
                [path for path in remarks.paths if path not in readers and path not in same]
            )
        job = Job(work, readers, kept, forgotten, remarks, fresh, again, deadline)
        report = self._apply(job, progress)
        if complete and not report.left:
            self._note(wanted, current)
        elif not report.left and deadline is None and current["analysis"] != wanted["analysis"]:
            # What was read under other rules and cannot be read now must not stand for it.
            self.store.documents.drop([p for p in fresh if p not in readers and p not in same])
            self._note({"analysis": wanted["analysis"]}, current)
        return _told(report, work, (*skipped, *remarks.of_others()), begun, complete=complete)

    def remarks(self) -> Remarks:
        """What is known of documents that could not be read, or only partly, when they were last
        read.
        """
        return Remarks(self.store, self.signature)

    def _moved(
        self, work: Plan, readers: Mapping[str, Source], forgotten: Forgotten
    ) -> list[Tombstone]:
        """The tombstones of notes that are gone, for new notes with that text: what was renamed
        stays forgotten.
        """
        gone = {place_of_note(path) for path in work.drop}
        stones = [one for one in forgotten.stones if one.place in gone]
        found: list[Tombstone] = []
        for document in [d for d in work.add if stones and not _speaks(readers[d.path])]:
            with contextlib.suppress(OSError, ValueError):
                here = Forgotten(
                    tuple(replace(one, place=place_of_note(document.path)) for one in stones)
                )
                text = self.safe(clean(readers[document.path].read(document)))
                found += dict.fromkeys(stone for stone in here.found(text, document.path))
        return found

    def scan(self, deadline: float | None = None, known: Known | None = None) -> _Found:
        """What all sources found together; what is as it is `known` may be in `same`, without a
        document.
        """
        documents: dict[str, tuple[Source, Document]] = {}
        skipped: list[Skipped] = []
        same: Set[str] = frozenset()
        complete = True
        for source in self.sources:
            if known and isinstance(source, Comparing):
                scanned = source.scan_changes(known, deadline=deadline)
            else:
                scanned = source.scan(deadline=deadline)
            for document in scanned.documents:
                if document.path not in same:  # two sources may find the same file
                    documents.setdefault(document.path, (source, document))
            fresh = scanned.same - documents.keys() if documents else scanned.same
            same = same | fresh if same else fresh
            skipped += scanned.skipped
            complete = complete and scanned.complete
        return _Found(list(documents.values()), skipped, complete, same)

    def _note(self, wanted: Mapping[str, str], current: dict[str, str]) -> None:
        """Stores what the index was made with, where that is new."""
        for key, value in wanted.items():
            if current[key] != value:
                self.store.set_meta(key, value)
                # else a later return to this value would look half done
                self.store.set_meta(f"{key}_since", "")
                current[key] = value

    @property
    def signature(self) -> str:
        """What a document was indexed with; under another signature it is rebuilt."""
        rules = self.redactor.signature if self.redactor else "as it is"
        signature = f"{ANALYSER} {self.size.tokens}/{self.size.overlap} {rules}"
        signature += "" if self.extra_origin == "owner" else f" extra={self.extra_origin}"
        return signature if self.trust is None else f"{signature} {self.trust.signature}"

    @property
    def knows_whose(self) -> bool:
        """Whether every passage was read under the trust that holds now."""
        return self.trust is None or str(self.store.get_meta("analysis") or "").endswith(
            f" {self.trust.signature}"
        )

    @property
    def _doubted(self) -> str:
        """The folder whose notes are not the user's own; empty if they are."""
        return self.trust.root if self.trust is not None and self.trust.doubt is not None else ""

    def _due(
        self,
        what: str,
        wanted: Mapping[str, str],
        current: Mapping[str, str],
        stored: Mapping[str, Stored],
    ) -> frozenset[str]:
        """Paths that were indexed under another analysis or other tombstones, except those done
        since it changed.
        """
        if current[what] == wanted[what]:
            return frozenset()
        since, _, name = str(self.store.get_meta(f"{what}_since") or "").partition(" ")
        now = time.time_ns()
        if name != wanted[what] or not since or int(since) > now:
            since = str(now)
            self.store.set_meta(f"{what}_since", f"{since} {wanted[what]}")
        # A time after now comes from a clock that was set back since: when that document was done
        # is unknown.
        return frozenset(path for path, s in stored.items() if not int(since) <= s.synced_ns <= now)

    def _apply(self, job: Job, progress: Progress) -> SyncReport:
        drop = job.plan.drop
        todo = job.order()
        dropped = 0
        if job.remarks.changed:  # of documents that are gone
            with self.store.writing():
                job.remarks.save()
        while dropped < len(drop) and not job.late(0, dropped):
            self.store.documents.drop(drop[dropped : dropped + _DROP_BATCH])
            dropped = min(len(drop), dropped + _DROP_BATCH)
        ahead = self._ahead(job, todo)
        try:
            return self._applied(replace(job, ahead=ahead), todo, dropped, progress)
        finally:
            if ahead is not None:
                ahead.close()

    def _applied(
        self, job: Job, todo: Sequence[Document], dropped: int, progress: Progress
    ) -> SyncReport:
        new = {d.path for d in job.plan.add}
        counts: Counter[str] = Counter()
        skipped: list[Skipped] = []
        position = 0
        while position < len(todo) and not job.late(0, position):
            with self.store.writing():
                until = time.monotonic() + _COMMIT_EVERY_S
                while True:
                    document = todo[position]
                    position += 1
                    # a large file that would take longer than there is time
                    late = job.waits(document, position - 1)
                    if reason := job.remarks.refused(document, sure=not late):
                        skipped.append(Skipped(document.path, reason, document.source))
                        job.remarks.note(document, reason, partly=False)
                    elif late:
                        counts["same" if job.seems_same(document) else "left"] += 1
                    else:
                        done = self._one(document, job)
                        counts[
                            done.what
                            if done.what != "put"
                            else "added"
                            if document.path in new
                            else "changed"
                        ] += 1
                        counts["chunks"] += done.chunks
                        counts["forgotten"] += done.forgotten
                        if done.reason:
                            partly = done.what in ("put", "same")
                            skipped.append(
                                Skipped(document.path, done.reason, document.source, partly)
                            )
                    if position == len(todo) or time.monotonic() >= until or job.late(0, position):
                        break
                job.remarks.save()
            if position < len(todo):
                # What other threads left; the values that stay are in an older generation by then.
                gc.collect(1)
            progress("notes", position, len(todo))
        counts.update("same" if job.seems_same(one) else "left" for one in todo[position:])
        return SyncReport(
            added=counts["added"],
            changed=counts["changed"],
            dropped=dropped,
            unchanged=counts["same"],
            chunks=counts["chunks"],
            skipped=tuple(skipped),
            redacted=dict(job.redacted),
            forgotten=counts["forgotten"],
            left=counts["left"] + len(job.plan.drop) - dropped,
        )

    def _one(self, document: Document, job: Job) -> _Outcome:
        """Reads and stores one document, without secrets and forgotten text."""
        source = job.readers[document.path]
        if _speaks(source):
            try:
                return self._conversation(document, source, job)
            except FileNotFoundError:
                self.store.documents.drop([document.path])
                return _Outcome("gone", "vanished before it could be read")
            except OSError as error:
                return _Outcome("kept", f"cannot be read: {error.strerror or error}")
            except ValueError as error:
                self.store.documents.drop([document.path])
                return _Outcome("skipped", str(error))
        found = job.ahead.take(document) if job.ahead else None
        found = found or self._reader(job.forgotten).read(document, source, job.digest(document))
        if found.what != "kept":
            reason = found.reason if found.what != "gone" else ""
            job.remarks.note(document, reason, partly=found.what != "skipped")
        return self._put(document, found, job)

    def _put(self, document: Document, found: read_ahead.Reading, job: Job) -> _Outcome:
        """Stores what a note became."""
        job.redacted.update(found.redacted)
        if found.what == "same":
            self.store.documents.touch([document])
        elif found.what in ("gone", "skipped"):
            self.store.documents.drop([document.path])
        if found.what != "read":
            return _Outcome(found.what, found.reason, forgotten=found.hidden)
        words = words_of(found.chunks, names=found.names)
        stored = document.path in job.stored
        fresh = document.path in job.fresh or (
            stored and self._renamed(document.path, found.chunks, words)
        )
        self.store.documents.put(
            document, found.digest, found.facts, found.chunks, words=words, fresh=fresh
        )
        self._link(document, job.readers[document.path], found.edges)
        return _Outcome("put", found.reason, chunks=len(found.chunks), forgotten=found.hidden)

    def _reader(self, forgotten: Forgotten) -> read_ahead.Reader:
        return read_ahead.Reader(
            self.size, forgotten, self.redactor, self.extra_origin, self._doubted
        )

    def _ahead(self, job: Job, todo: Sequence[Document]) -> read_ahead.ReadingAhead | None:
        """A second process for notes that can be read anywhere, where no time is set."""
        if not todo or job.deadline is not None:
            return None
        sources = [source.detached() for source in self.sources if isinstance(source, Detachable)]
        numbers = {
            id(s): n for n, s in enumerate(s for s in self.sources if isinstance(s, Detachable))
        }
        found = ((d, numbers.get(id(job.readers[d.path]))) for d in todo)
        tasks = [
            read_ahead.Task(document, number, job.digest(document))
            for document, number in found
            if number is not None and not job.remarks.refused(document)
        ]
        return read_ahead.ahead_of(self._reader(job.forgotten), sources, tasks)

    def _renamed(self, path: str, chunks: Sequence[Chunk], words: Sequence[ChunkWords]) -> bool:
        """Whether a note has other names in its front matter than before, which passages that stay
        would not get.
        """
        rows = {c.id: c.row for c in self.store.documents.chunks_of(path)}
        at = next((n for n, c in enumerate(chunks) if c.id in rows), None)
        if at is None:
            return False
        row = rows[chunks[at].id]
        known = self.store.keywords.chunk_terms([row]).get(row)
        return (
            known is None
            or known.head != ChunkWords(words[at].head, "", words[at].terms).fields().head
        )

    def _conversation(self, document: Document, source: Conversations, job: Job) -> _Outcome:
        from notewell.index.conversations import Washing, sync_session  # noqa: PLC0415 - few workspaces have transcripts

        wash = Washing(document.path, self.redactor, job.redacted, job.forgotten)
        what, reason, chunks = sync_session(
            document,
            source,
            store=self.store,
            size=self.size,
            stored=job.before(document),
            wash=wash,
        )
        if what == "put":
            self._link(document, source)
        return _Outcome(what, reason, chunks, wash.hidden)

    def _link(self, document: Document, source: Source, edges: Sequence[Edge] = ()) -> None:
        """Stores the links of a document, those in its text and those that its source knows."""
        further = source.edges(document) if _links(source) else ()
        self.store.history.put_edges(document.path, [*edges, *further])

    def again(self, paths: Sequence[str]) -> None:
        """Reads some documents again, whatever their stat; those that cannot be read are
        dropped.
        """
        found = {d.path: (s, d) for s, d in self.scan().documents} if paths else {}
        self.store.documents.drop([path for path in paths if path not in found])
        documents = [found[path] for path in paths if path in found]
        readers = {d.path: s for s, d in documents}
        work = Plan(change=tuple(d for _, d in documents))
        remarks = self.remarks()
        job = Job(work, readers, {}, self.tombstones.load(), remarks, again=frozenset(readers))
        with self.store.writing():
            for _, document in documents:
                if self._one(document, job).what == "kept":
                    self.store.documents.drop([document.path])
            remarks.save()

    def copies_with(self, paths: Sequence[str], forgotten: Forgotten) -> list[str]:
        """Our own copies of conversations that still hold forgotten text."""
        speaking = [source for source in self.sources if _speaks(source)]
        copies = [
            (path, copy) for source in speaking for path in paths if (copy := source.copy_of(path))
        ]
        return [place for path, (place, text) in copies if forgotten.has(text, path)]

    def document(self, path: str) -> tuple[Source, Document] | None:
        """The one document with a path and its source, without a scan of the others; None if there
        is none.
        """
        chunks = self.store.documents.chunks_of(path)
        kind = chunks[0].source if chunks else ""
        # the likely one first: others may scan
        for source in sorted(self.sources, key=lambda s: s.name != kind):
            if (document := source.document(path)) is not None:
                return source, document
        return None

    def text_of(self, path: str) -> str:
        """The text of a document as it would be indexed now; empty if it cannot be read."""
        found = self.document(path)
        if found is not None:
            source, document = found
            with contextlib.suppress(OSError, ValueError):
                if isinstance(source, Conversations):
                    return self._turns(source, document, 1, None)
                return self.safe(clean(source.read(document)))
        return ""

    def said(self, path: str, first: int, last: int) -> str:
        """The turns on some lines of a transcript, as they would be indexed, without who spoke and
        when.
        """
        source, document = self.document(path) or (None, None)
        if document is None or not isinstance(source, Conversations):
            return ""
        return self._turns(source, document, first, last)

    def _turns(
        self, source: Conversations, document: Document, first: int, last: int | None
    ) -> str:
        from notewell.text.transcript import wrapped  # noqa: PLC0415 - few workspaces have transcripts

        part = source.read_from(document, None) if last is None else None
        turns = part.turns if part else source.lines(document, first, last)[0]
        titles = [part.title] if part and part.title else []  # all of a session includes its name
        return "\n\n".join(wrapped(self.safe(text)) for text in (*titles, *(t.text for t in turns)))

    def cut(self, document: Document, text: str) -> list[Chunk]:
        """The chunks that a text of a document would have, without a look at the index."""
        parsed = parse(self.safe(text))
        return chunks_of(document, parsed, facts_of(document, parsed), self.size)

    def origin(self, document: Document, text: str) -> str:
        """Who wrote a document, by its place and its front matter."""
        return origin_of(document, parse(text), self.extra_origin, self._doubted)

    def safe(self, text: str) -> str:
        """A text as the index may hold it: without secrets."""
        return self._safe(text, Counter())

    def _safe(self, text: str, redacted: Counter[str]) -> str:
        """A text without secrets, which are counted."""
        if self.redactor is None:
            return text
        found = self.redactor(text)
        redacted.update(found.found)
        return found.text


def _is_anyones(locations: Collection[str], sources: Sequence[Source]) -> bool:
    """Whether any of these sources may have one of the locations."""
    if not all(isinstance(source, Watchable) for source in sources):
        return True
    trees = [tree for source in sources if isinstance(source, Watchable) for tree in source.trees()]
    return any(is_in(location, tree) for location in locations for tree in trees)


def _told(
    report: SyncReport, work: Plan, skipped: Iterable[Skipped], begun: float, *, complete: bool
) -> SyncReport:
    """A report with what was found before the work began."""
    took_ms = (time.perf_counter() - begun) * 1000
    report = replace(
        report, unchanged=report.unchanged + work.unchanged, skipped=(*skipped, *report.skipped)
    )
    return replace(report, complete=complete and not report.left, took_ms=took_ms)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without searches for cycles: a sync makes many values that stay and no cycle, and they take a
    tenth of it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


# A protocol check looks at every member, which takes longer than the rest of the work for a short
# note: once a class.
_kinds: dict[type, tuple[bool, bool]] = {}


def _kind(source: Source) -> tuple[bool, bool]:
    if type(source) not in _kinds:
        _kinds[type(source)] = (isinstance(source, Conversations), isinstance(source, Linked))
    return _kinds[type(source)]


def _speaks(source: Source) -> TypeGuard[Conversations]:
    return _kind(source)[0]


def _links(source: Source) -> TypeGuard[Linked]:
    return _kind(source)[1]
