"""The index walk: scan, plan, read, chunk, put; then vectors for whatever lacks one, in batches, resumable."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from recollect.embed.generations import generation_of, note_generation, pin_first
from recollect.errors import EmbedderError, RejectedError
from recollect.ports import Attaching, Conversations, Embedder, Linked, Progress, Shared, Source, Store, Stored, Vectors
from recollect.store.keywords import stem_of
from recollect.store.tombstones import Tombstones
from recollect.sync.plan import Plan, plan
from recollect.text.chunk import ChunkSize, Passage, chunk
from recollect.text.dates import date_of_path, date_of_value
from recollect.text.forgotten import Forgotten
from recollect.text.links import edges_of
from recollect.text.markdown import FrontValue, Parsed, parse
from recollect.text.redact import Redactor
from recollect.text.words import ANALYSER, clean, count_tokens
from recollect.types import Chunk, Document, Edge, Estimate, Facts, Notice, Skipped, SyncReport

_COMMIT_EVERY_S = 0.25
_EMBED_BATCH = 64
FIRST_BATCH = 8
LEASE_S = 180.0  # a batch is done long before; what a process that died had claimed is taken up after it
_SAMPLE = 200
_ENTRY_FILES = ("memory", "user")
_TRUE = ("true", "yes", "1", "on")
_TRUST = ("untrusted", "agent", "system", "owner")
_LEVELS = {"low": -0.5, "normal": 0.0, "medium": 0.0, "high": 0.5, "critical": 1.0}
_BYTES_PER_S = 1_000_000
_DROP_BATCH = 200
# So much is done however late it is: a few notes are no reason to be stale, and every search gets on a little.
_AT_LEAST = 64
_SMALL_BYTES = 20_000
_WHOLE = ChunkSize(4000, 0)  # the label of a picture is one passage, however short others are cut


def _quiet(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Disk against index: what a sync would find to do."""

    on_disk: int
    to_add: int
    to_change: int
    to_drop: int
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of one document, why not, its chunks, and how much of it is forgotten."""

    outcome: str
    reason: str = ""
    chunks: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class _Job:
    """All that one sync works with: what to do, who reads it, what is known, and until when.

    `fresh` are documents to be made anew, `again` those to be read from their start; `redacted` counts secrets.
    """

    work: Plan
    readers: Mapping[str, Source]
    known: Mapping[str, Stored]
    forgotten: Forgotten
    fresh: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    deadline: float | None = None
    redacted: Counter[str] = field(default_factory=Counter)

    def late(self, size: int, done: int) -> bool:
        """Whether a file of this many bytes is more than there is time for, after so many others."""
        if self.deadline is None or (done < _AT_LEAST and size <= _SMALL_BYTES):
            return False
        return time.monotonic() + size / _BYTES_PER_S > self.deadline

    def waits(self, document: Document, done: int) -> bool:
        """Whether a document is left to the next sync; a conversation always can be, and counts by what it grew."""
        if document.source != "sessions":
            return self.late(document.size, done)
        known = None if document.path in self.again else self.known.get(document.path)
        return self.late(max(0, document.size - (known.size if known else 0)), _AT_LEAST)

    def order(self) -> list[Document]:
        """What to read, in order: old notes first, or new ones when time is short; then conversations, newest first."""
        todo = sorted((*self.work.add, *self.work.change), key=_age, reverse=self.deadline is not None)
        spoken = sorted((d for d in todo if d.source == "sessions"), key=lambda d: (-d.mtime_ns, d.path))
        return [*(d for d in todo if d.source != "sessions"), *spoken]


@dataclass(frozen=True, slots=True)
class Engine:
    """Brings a store up to its sources."""

    sources: Sequence[Source]
    store: Store
    size: ChunkSize = field(default_factory=ChunkSize)
    tombstones: Tombstones = field(default_factory=lambda: Tombstones(None))
    extra_origin: str = field(default="owner", kw_only=True)
    redactor: Redactor | None = field(default=None, kw_only=True)

    def sync(self, *, force: bool = False, deadline: float | None = None, progress: Progress = _quiet) -> SyncReport:
        """Makes keywords current; `deadline` (monotonic) bounds scan and indexing, and the report says if it cut any.

        What a deadline cut is taken up by the next sync; the newest notes come first then.
        """
        begun = time.perf_counter()
        skipped: list[Skipped] = []
        documents: list[tuple[Source, Document]] = []
        complete = True
        for source in self.sources:
            scanned = source.scan(deadline=deadline)
            documents += [(source, d) for d in scanned.documents]
            skipped += scanned.skipped
            complete = complete and scanned.complete
        stored = self.store.documents()
        forgotten = self.tombstones.load()
        wanted = {"analysis": self._signature, "forgotten": forgotten.signature}
        if not stored:
            for key, value in wanted.items():
                self.store.set_meta(key, value)
        fresh = self._due("analysis", wanted["analysis"], stored, force=force)
        again = fresh | self._due("forgotten", wanted["forgotten"], stored)
        work = plan((d for _, d in documents), {p: _unlike(s) if p in again else s for p, s in stored.items()},
                    complete=complete)  # fmt: skip
        known = {path: s for path, s in stored.items() if path not in fresh}
        job = _Job(work, {d.path: s for s, d in documents}, known, forgotten, fresh, again, deadline)
        report = self._apply(job, progress)
        if complete and not report.left:
            for key, value in wanted.items():
                if self.store.get_meta(key) != value:
                    self.store.set_meta(key, value)
        return replace(
            report,
            unchanged=report.unchanged + work.unchanged,
            skipped=(*skipped, *report.skipped),
            complete=complete and not report.left,
            took_ms=(time.perf_counter() - begun) * 1000,
        )

    @property
    def _signature(self) -> str:
        """What a document was indexed with; under another one it is made anew."""
        rules = self.redactor.signature if self.redactor else "as it is"
        signature = f"{ANALYSER} {self.size.tokens}/{self.size.overlap} {rules}"
        return signature if self.extra_origin == "owner" else f"{signature} extra={self.extra_origin}"

    def _due(self, what: str, wanted: str, stored: Mapping[str, Stored], *, force: bool = False) -> frozenset[str]:
        """Paths that were indexed under another analysis or other tombstones; those done since it changed are not."""
        if force:
            return frozenset(stored)
        if (self.store.get_meta(what) or "") == wanted:
            return frozenset()
        since, _, name = str(self.store.get_meta(f"{what}_since") or "").partition(" ")
        now = time.time_ns()
        if name != wanted or not since or int(since) > now:
            since = str(now)
            self.store.set_meta(f"{what}_since", f"{since} {wanted}")
        # What was done later than now was done under a clock that has been set back since: nobody knows when.
        return frozenset(path for path, s in stored.items() if not int(since) <= s.synced_ns <= now)

    def _apply(self, job: _Job, progress: Progress) -> SyncReport:
        work = job.work
        todo = job.order()
        new = {d.path for d in work.add}
        counts: Counter[str] = Counter()
        skipped: list[Skipped] = []
        dropped = 0
        while dropped < len(work.drop) and not job.late(0, dropped):
            self.store.drop(work.drop[dropped : dropped + _DROP_BATCH])
            dropped = min(len(work.drop), dropped + _DROP_BATCH)
        position = 0
        while position < len(todo) and not job.late(0, position):
            with self.store.writing():
                until = time.monotonic() + _COMMIT_EVERY_S
                while True:
                    document = todo[position]
                    position += 1
                    if job.waits(document, position - 1):
                        counts["left"] += 1  # a large file that would take longer than there is time
                    else:
                        done = self._one(document, job)
                        outcome = done.outcome
                        counts[outcome if outcome != "put" else "added" if document.path in new else "changed"] += 1
                        counts["chunks"] += done.chunks
                        counts["forgotten"] += done.forgotten
                        if done.reason:
                            skipped.append(Skipped(document.path, done.reason))
                    if position == len(todo) or time.monotonic() >= until or job.late(0, position):
                        break
            progress("notes", position, len(todo))
        return SyncReport(
            added=counts["added"],
            changed=counts["changed"],
            dropped=dropped,
            unchanged=counts["same"],
            chunks=counts["chunks"],
            skipped=tuple(skipped),
            redacted=dict(job.redacted),
            forgotten=counts["forgotten"],
            left=counts["left"] + len(todo) - position + len(work.drop) - dropped,
        )

    def again(self, paths: Sequence[str]) -> None:
        """Reads some documents again, whatever their stat says; those that cannot be read are dropped."""
        found = {d.path: (s, d) for s in self.sources for d in s.scan().documents} if paths else {}
        self.store.drop([path for path in paths if path not in found])
        documents = [found[path] for path in paths if path in found]
        readers = {d.path: s for s, d in documents}
        work = Plan(change=tuple(d for _, d in documents))
        job = _Job(work, readers, {}, self.tombstones.load(), again=frozenset(readers))
        with self.store.writing():
            for _, document in documents:
                if self._one(document, job).outcome == "kept":
                    self.store.drop([document.path])

    def text_of(self, path: str) -> str:
        """The text of a document as it would be indexed now; empty where it cannot be read."""
        for source in self.sources:
            for document in source.scan().documents:
                if document.path == path:
                    with contextlib.suppress(OSError, ValueError):
                        if isinstance(source, Conversations):
                            return self._said(source, document, 1, None)
                        return self.safe(clean(source.read(document)))
        return ""

    def said(self, path: str, first: int, last: int) -> str:
        """What was said on some lines of a transcript, as it would be indexed, without who said it and when."""
        for source in self.sources:
            if isinstance(source, Conversations):
                for document in source.scan().documents:
                    if document.path == path:
                        return self._said(source, document, first, last)
        return ""

    def _said(self, source: Conversations, document: Document, first: int, last: int | None) -> str:
        from recollect.text.transcript import wrapped  # noqa: PLC0415 - only those who have them pay for it

        heard = source.hear(document, None) if last is None else None
        turns = heard.turns if heard else source.lines(document, first, last)[0]
        titles = [heard.title] if heard and heard.title else []  # of a whole session its name goes too
        return "\n\n".join(wrapped(self.safe(text)) for text in (*titles, *(t.text for t in turns)))

    def cut(self, document: Document, text: str) -> list[Chunk]:
        """The chunks that a text of a document has, without a look at the index."""
        parsed = parse(self.safe(text))
        return chunks_of(document, parsed, facts_of(document, parsed), self.size)

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

    def outlook(self) -> Outlook:
        """What a sync would do, by looking: files that it would read are read, so that the counts are true."""
        found: dict[str, tuple[Source, Document]] = {}
        skipped: list[Skipped] = []
        complete = True
        for source in self.sources:
            scanned = source.scan()
            found.update((d.path, (source, d)) for d in scanned.documents)
            skipped += scanned.skipped
            complete = complete and scanned.complete
        stored = self.store.documents()
        work = plan((d for _, d in found.values()), stored, complete=complete)
        outcomes: Counter[str] = Counter()
        forgotten = self.tombstones.load()
        for document in (*work.add, *work.change):
            known = stored.get(document.path)
            source = found[document.path][0]
            try:
                if isinstance(source, Conversations):
                    outcomes[_growth(source, document, known)] += 1
                    continue
                text = self.safe(clean(source.read(document)))
                digest = _digest(forgotten.without(text, document.path)[0])
            except (OSError, ValueError) as error:
                goes = known is not None and isinstance(error, FileNotFoundError | ValueError)
                outcomes["drop"] += goes
                outcomes["unreadable"] += 1
                skipped.append(Skipped(document.path, str(error)))
                continue
            outcomes["add" if known is None else "same" if known.digest == digest else "change"] += 1
        return Outlook(
            on_disk=len(found) - outcomes["unreadable"],
            to_add=outcomes["add"],
            to_change=outcomes["change"],
            to_drop=len(work.drop) + outcomes["drop"],
            skipped=tuple(skipped),
        )

    def _one(self, document: Document, job: _Job) -> _Done:
        """Reads and stores one document, without what is secret and what was forgotten."""
        source = job.readers[document.path]
        known = job.known.get(document.path)
        try:
            if _speaks(source):
                return self._conversation(document, source, job)
            text = clean(source.read(document))
        except FileNotFoundError:
            self.store.drop([document.path])
            return _Done("gone", "vanished before it could be read")
        except OSError as error:
            return _Done("kept", f"cannot be read: {error.strerror or error}")
        except ValueError as error:
            self.store.drop([document.path])
            return _Done("skipped", str(error))
        text, hidden = job.forgotten.without(self._safe(text, job.redacted), document.path)
        digest = _digest(text)
        if known is not None and known.digest == digest:
            self.store.touch([document])
            return _Done("same", forgotten=hidden)
        parsed = parse(text)
        facts = facts_of(document, parsed)
        origin = origin_of(document, parsed, self.extra_origin)
        size = _WHOLE if document.source == "media" else self.size
        chunks = chunks_of(document, parsed, facts, size, origin=origin)
        self.store.put(document, digest, facts, chunks, fresh=document.path in job.fresh)
        self._link(document, source, edges_of(document.path, parsed))
        return _Done("put", chunks=len(chunks), forgotten=hidden)

    def _conversation(self, document: Document, source: Conversations, job: _Job) -> _Done:
        from recollect.sync.sessions import Washing, sync_session  # noqa: PLC0415 - only those who have them pay for it

        known = None if document.path in job.again else job.known.get(document.path)
        wash = Washing(document.path, self.redactor, job.redacted, job.forgotten)
        outcome, reason, chunks = sync_session(
            document, source, store=self.store, size=self.size, known=known, wash=wash
        )  # fmt: skip
        if outcome == "put":
            self._link(document, source)
        return _Done(outcome, reason, chunks, wash.hidden)

    def _link(self, document: Document, source: Source, edges: Sequence[Edge] = ()) -> None:
        """Keeps what a document says of others, and what its source knows of that."""
        further = source.edges(document) if _links(source) else ()
        self.store.put_edges(document.path, [*edges, *further])

    def embed(
        self,
        embedder: Embedder,
        *,
        deadline: float | None = None,
        batch: int = _EMBED_BATCH,
        progress: Progress = _quiet,
        estimate: Callable[[Estimate], None] | None = None,
        leave: Set[str] = frozenset(),
    ) -> SyncReport:
        """Vectors for texts that have none, newest first, a batch a transaction, until done or `deadline`.

        Texts whose content hash is in `leave` are somebody else's business.

        The first batch is small: it shows whether the model answers and in how many dimensions, and it bears the
        time of loading it. The first full one is timed for `estimate`, which has heard of the amount before. With a
        deadline the batches are as large as what is left of the time allows.
        """
        generation = generation_of(self.store, embedder.id)
        claims = self.store if isinstance(self.store, Shared) else None
        rows = self.store.missing(generation)
        done, position, rate = 0, 0, 0.0
        guess = self.guess(generation, rows, embedder) if estimate and len(rows) > batch and not leave else None
        skipped: list[Skipped] = []
        notices: list[Notice] = []
        if guess and estimate:
            estimate(guess)
        size = min(batch, FIRST_BATCH) if deadline is None else 1
        while position < len(rows):
            begun = time.monotonic()
            if deadline is not None and begun > deadline:
                break
            part = claims.claim(generation, size, LEASE_S) if claims else rows[position : position + size]
            if not part:
                break  # others are at the rest
            found = self.store.chunks(part)
            chunks = [found[row] for row in part if row in found and found[row].content_hash not in leave]
            position += len(part)
            try:
                vectors, refused = _vectors(embedder, self.inputs(chunks))
            except EmbedderError as error:
                notices.append(Notice("embedder_failed", str(error), error.hint))
                if claims:
                    claims.release(generation, [c.content_hash for c in chunks])
                break
            into = self.keep(embedder.id, generation, vectors, refused, rows=part)
            skipped += without_vector(chunks, refused)
            done += len(vectors)
            rate = len(part) / max(time.monotonic() - begun, 1e-6)
            if guess and estimate and guess.seconds is None and len(part) == batch:
                guess = replace(guess, model=into, seconds=(len(rows) - position) / rate)
                estimate(guess)
            size = batch if deadline is None else max(1, min(batch, int(rate * (deadline - time.monotonic()))))
            if into != generation or position >= len(rows):
                # The model is not the size it was, or notes came in meanwhile: look again at what is missing.
                moved, generation = into != generation, into
                left = self.store.missing(generation)
                if moved or set(left) - set(rows):
                    rows, position = left, 0
            progress("vectors", done, done + len(rows) - position)
        pending = len(self.store.missing(generation))
        return SyncReport(
            embedded=done, pending=pending, skipped=tuple(skipped), notices=tuple(notices), model=generation,
            estimate=guess,
        )  # fmt: skip

    def inputs(self, chunks: Sequence[Chunk]) -> dict[str, str]:
        """What a model is given for some chunks, by content hash; a file that is not there now is left out."""
        found = {c.content_hash: self._input(c) for c in chunks}
        return {key: text for key, text in found.items() if text is not None}

    def _input(self, chunk: Chunk) -> str | None:
        text = embed_text(chunk)
        if chunk.source != "media":
            return text
        source = next((s for s in self.sources if isinstance(s, Attaching)), None)
        return source.part(chunk.path, text) if source else text

    def keep(
        self, model: str, generation: str, vectors: Mapping[str, Vectors], refused: Mapping[str, str], *,
        rows: Sequence[int],
    ) -> str:  # fmt: skip
        """Stores what a batch brought for some rows in one transaction, and says under which generation.

        What was forgotten while the model worked gets no vector.
        """
        with self.store.writing():
            there = {c.content_hash for c in self.store.chunks(rows).values()}
            vectors = {key: vector for key, vector in vectors.items() if key in there}
            if vectors:
                generation = note_generation(self.store, model, len(next(iter(vectors.values()))))
                self.store.put_vectors(generation, vectors)
                pin_first(self.store, generation)
            if refused:
                self.store.refuse(generation, refused)
        return generation

    def guess(self, generation: str, rows: Sequence[int], embedder: Embedder) -> Estimate:
        """Tokens by a sample of the texts."""
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        chunks = self.store.chunks(sample).values()
        mean = sum(count_tokens(embed_text(c)) for c in chunks) / max(1, len(chunks))
        tokens = round(mean * len(rows))
        price: float | None = getattr(embedder, "usd_per_million", None)
        return Estimate(generation, len(rows), tokens, None if price is None else tokens * price / 1e6)


def _vectors(embedder: Embedder, texts: Mapping[str, str]) -> tuple[dict[str, Vectors], dict[str, str]]:
    """Rows by content hash, and the reason for every text that was refused."""
    if not texts:
        return {}, {}
    keys = list(texts)
    try:
        rows = embedder.embed(list(texts.values()), "document")
    except RejectedError as error:
        return {keys[i]: row for i, row in error.rows.items()}, {keys[i]: why for i, why in error.reasons.items()}
    return dict(zip(keys, rows, strict=True)), {}


def without_vector(chunks: Sequence[Chunk], refused: Mapping[str, str]) -> list[Skipped]:
    """Chunks that a model refused, by file and line."""
    return [Skipped(f"{c.path}:{c.start_line}", f"no vector: {refused[c.content_hash]}")
            for c in chunks if c.content_hash in refused]  # fmt: skip


# A look at every member of a port takes longer than the rest of what is done for a short note: once for each class.
_spoken: dict[type, bool] = {}
_linked: dict[type, bool] = {}


def _speaks(source: Source) -> TypeGuard[Conversations]:
    kind = type(source)
    if kind not in _spoken:
        _spoken[kind] = isinstance(source, Conversations)
    return _spoken[kind]


def _links(source: Source) -> TypeGuard[Linked]:
    kind = type(source)
    if kind not in _linked:
        _linked[kind] = isinstance(source, Linked)
    return _linked[kind]


def _unlike(stored: Stored) -> Stored:
    """As if the file had changed, so that it is read."""
    return replace(stored, size=-1)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def _growth(source: Conversations, document: Document, known: Stored | None) -> str:
    """What a sync would do with a conversation: add, change, or find it the same."""
    if known is None:
        return "add"
    from recollect.sync.sessions import Tail  # noqa: PLC0415

    heard = source.hear(document, Tail.load(known.tail).place)
    return "same" if heard.unread or not (heard.turns or heard.again) else "change"


def _age(document: Document) -> tuple[bool, str, str]:
    """Old to new, and curated files last, so that the newest rows are those embedded first."""
    day = date_of_path(document.path)
    return (day is None, day.isoformat() if day else "", document.path)


def embed_text(chunk: Chunk) -> str:
    """What a model sees of a chunk: its heading path, then its text."""
    return Passage(chunk.start_line, chunk.end_line, chunk.heading, chunk.text).embed_text


def facts_of(document: Document, parsed: Parsed) -> Facts:
    """What a document says about itself: front matter first, then its name."""
    front = parsed.front
    name = stem_of(document.path)
    title = _text(front.get("title")) or next((b.heading[0] for b in parsed.blocks if b.heading and b.heading[0]), name)
    day = date_of_value(_text(front.get("date"))) or date_of_path(document.path)
    evergreen = day is None or name.casefold() in _ENTRY_FILES or _text(front.get("evergreen")).lower() in _TRUE
    return Facts(
        title=title,
        date=day,
        evergreen=evergreen,
        importance=_importance(_text(front.get("importance"))),
        pinned=any(_text(front.get(key)).lower() in _TRUE for key in ("pin", "pinned")),
        supersedes=_names(front.get("supersedes")),
    )


def origin_of(document: Document, parsed: Parsed, extra_origin: str = "owner") -> str:
    """Who wrote a note; its front matter may ask for less trust than it has by its place, never for more."""
    base = extra_origin if document.source == "extra" else "owner"
    said = _text(parsed.front.get("origin")).strip().lower()
    return min(base, said, key=_TRUST.index) if said in _TRUST else base


def _text(value: FrontValue | None) -> str:
    return value if isinstance(value, str) else ""


def _names(value: FrontValue | None) -> tuple[str, ...]:
    if not value:
        return ()
    return (value,) if isinstance(value, str) else value


def _importance(value: str) -> float:
    if value.lower() in _LEVELS:
        return _LEVELS[value.lower()]
    try:
        return max(-1.0, min(1.0, float(value)))
    except ValueError:
        return 0.0


_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [one + two for one in _LETTERS for two in _LETTERS]


def _short(digest: bytes) -> str:
    """The first sixty bits of a digest as twelve letters of base 32."""
    number = int.from_bytes(digest[:8], "big") >> 4
    return "".join([_PAIRS[number >> shift & 1023] for shift in (50, 40, 30, 20, 10, 0)])


def chunks_of(
    document: Document, parsed: Parsed, facts: Facts, size: ChunkSize, *, origin: str = "owner"
) -> list[Chunk]:
    """The chunks of a document, each with an id made of its path and content, never of its lines."""
    entries = "/" not in document.path and stem_of(document.path).casefold() in _ENTRY_FILES
    seen: Counter[str] = Counter()
    chunks = []
    for passage in chunk(parsed, size, entries=entries):
        content = passage.content_hash
        key = f"{document.path}\0{content}\0{seen[content]}".encode()
        seen[content] += 1
        short = _short(hashlib.blake2b(key, digest_size=10).digest())
        chunks.append(
            Chunk(
                short, document.path, document.source, passage.start_line, passage.end_line, passage.heading,
                passage.text, content, facts, origin=origin,
            )
        )  # fmt: skip
    return chunks
