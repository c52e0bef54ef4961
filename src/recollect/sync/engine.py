"""The index walk: scan, plan, read, chunk, put; then vectors for whatever lacks one, in batches, resumable."""

from __future__ import annotations

import base64
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from recollect.embed.generations import generation_of, note_generation, pin_first
from recollect.errors import EmbedderError, RejectedError
from recollect.ports import Conversations, Embedder, Linked, Progress, Source, Store, Stored, Vectors
from recollect.sync.plan import Plan, plan
from recollect.text.chunk import ChunkSize, Passage, chunk
from recollect.text.dates import date_of_path, date_of_value
from recollect.text.links import edges_of
from recollect.text.markdown import FrontValue, Parsed, parse
from recollect.text.redact import Redactor
from recollect.text.words import ANALYSER, clean, count_tokens
from recollect.types import Chunk, Document, Edge, Estimate, Facts, Notice, Skipped, SyncReport

_COMMIT_EVERY_S = 0.25
_EMBED_BATCH = 64
FIRST_BATCH = 8
_SAMPLE = 200
_ENTRY_FILES = ("memory", "user")
_TRUE = ("true", "yes", "1", "on")
_TRUST = ("untrusted", "agent", "system", "owner")
_LEVELS = {"low": -0.5, "normal": 0.0, "medium": 0.0, "high": 0.5, "critical": 1.0}


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
class Engine:
    """Brings a store up to its sources."""

    sources: Sequence[Source]
    store: Store
    size: ChunkSize = field(default_factory=ChunkSize)
    extra_origin: str = field(default="owner", kw_only=True)
    redactor: Redactor | None = field(default=None, kw_only=True)

    def sync(self, *, force: bool = False, deadline: float | None = None, progress: Progress = _quiet) -> SyncReport:
        """Makes keywords current; `deadline` (monotonic) bounds the scan, and the report says if it was cut."""
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
        rules = self.redactor.signature if self.redactor else "as it is"
        signature = f"{ANALYSER} {self.size.tokens}/{self.size.overlap} {rules}"
        if self.extra_origin != "owner":
            signature += f" extra={self.extra_origin}"  # who wrote a passage is kept with it
        if not stored:
            self.store.set_meta("analysis", signature)
        force = force or self.store.get_meta("analysis") != signature
        work = plan((d for _, d in documents), stored, complete=complete, force=force)
        known = {} if force else stored
        report = self._apply(
            work, {d.path: s for s, d in documents}, known, progress, deadline=None if force else deadline
        )
        complete = complete and report.complete
        if complete and force:
            self.store.set_meta("analysis", signature)
        return replace(
            report,
            unchanged=report.unchanged + work.unchanged,
            skipped=(*skipped, *report.skipped),
            complete=complete,
            took_ms=(time.perf_counter() - begun) * 1000,
        )

    def _apply(
        self, work: Plan, readers: Mapping[str, Source], known: Mapping[str, Stored], progress: Progress,
        *, deadline: float | None,
    ) -> SyncReport:  # fmt: skip
        """Notes first, all of them; of conversations, the newest that can be read before the deadline."""
        todo = sorted((*work.add, *work.change), key=_age)
        spoken = sorted((d for d in todo if d.source == "sessions"), key=lambda d: (-d.mtime_ns, d.path))
        todo = [*(d for d in todo if d.source != "sessions"), *spoken]
        new = {d.path for d in work.add}
        counts: Counter[str] = Counter()
        redacted: Counter[str] = Counter()
        skipped: list[Skipped] = []
        if work.drop:
            self.store.drop(work.drop)
        position = 0
        while position < len(todo) and not _late(todo[position], deadline):
            with self.store.writing():
                until = time.monotonic() + _COMMIT_EVERY_S
                while True:
                    document = todo[position]
                    outcome, reason, chunks = self._one(document, readers[document.path], known, redacted)
                    counts[outcome if outcome != "put" else "added" if document.path in new else "changed"] += 1
                    counts["chunks"] += chunks
                    if reason:
                        skipped.append(Skipped(document.path, reason))
                    position += 1
                    if position == len(todo) or time.monotonic() >= until or _late(todo[position], deadline):
                        break
            progress("notes", position, len(todo))
        return SyncReport(
            added=counts["added"],
            changed=counts["changed"],
            dropped=len(work.drop),
            unchanged=counts["same"],
            chunks=counts["chunks"],
            skipped=tuple(skipped),
            complete=position == len(todo),
            redacted=dict(redacted),
        )

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
        for document in (*work.add, *work.change):
            known = stored.get(document.path)
            source = found[document.path][0]
            try:
                if isinstance(source, Conversations):
                    outcomes[_growth(source, document, known)] += 1
                    continue
                digest = _digest(clean(source.read(document)))
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

    def _one(
        self, document: Document, source: Source, known: Mapping[str, Stored], redacted: Counter[str]
    ) -> tuple[str, str, int]:
        """Reads and stores one document: what became of it, why not, and its chunks."""
        before = known.get(document.path)
        try:
            if isinstance(source, Conversations):
                from recollect.sync.sessions import sync_session  # noqa: PLC0415 - only those who have them pay for it

                done = sync_session(
                    document, source, store=self.store, size=self.size, redactor=self.redactor, known=before,
                    redacted=redacted,
                )  # fmt: skip
                if done[0] == "put":
                    self._link(document, source)
                return done
            text = clean(source.read(document))
        except FileNotFoundError:
            self.store.drop([document.path])
            return "gone", "vanished before it could be read", 0
        except OSError as error:
            return "kept", f"cannot be read: {error.strerror or error}", 0
        except ValueError as error:
            self.store.drop([document.path])
            return "skipped", str(error), 0
        digest = _digest(text)
        if before is not None and before.digest == digest:
            self.store.touch([document])
            return "same", "", 0
        if self.redactor is not None:
            safe = self.redactor(text)
            text = safe.text
            redacted.update(safe.found)
        parsed = parse(text)
        facts = facts_of(document, parsed)
        origin = origin_of(document, parsed, self.extra_origin)
        chunks = chunks_of(document, parsed, facts, self.size, origin=origin)
        self.store.put(document, digest, facts, chunks, fresh=not known)
        self._link(document, source, edges_of(document.path, parsed))
        return "put", "", len(chunks)

    def _link(self, document: Document, source: Source, edges: Sequence[Edge] = ()) -> None:
        """Keeps what a document says of others, and what its source knows of that."""
        further = source.edges(document) if isinstance(source, Linked) else ()
        self.store.put_edges(document.path, [*edges, *further])

    def embed(
        self,
        embedder: Embedder,
        *,
        deadline: float | None = None,
        batch: int = _EMBED_BATCH,
        progress: Progress = _quiet,
        estimate: Callable[[Estimate], None] | None = None,
    ) -> SyncReport:
        """Vectors for texts that have none, newest first, a batch a transaction, until done or `deadline`.

        The first batch is small: it shows whether the model answers and in how many dimensions, and it bears the
        time of loading it. The first full one is timed for `estimate`, which has heard of the amount before. With a
        deadline the batches are as large as what is left of the time allows.
        """
        generation = generation_of(self.store, embedder.id)
        rows = self.store.missing(generation)
        done, position, rate = 0, 0, 0.0
        guess = self._estimate(generation, rows, embedder) if estimate and len(rows) > batch else None
        skipped: list[Skipped] = []
        notices: list[Notice] = []
        if guess and estimate:
            estimate(guess)
        size = min(batch, FIRST_BATCH) if deadline is None else 1
        while position < len(rows):
            begun = time.monotonic()
            if deadline is not None and begun > deadline:
                break
            part = rows[position : position + size]
            found = self.store.chunks(part)
            chunks = [found[row] for row in part if row in found]
            position += len(part)
            try:
                vectors, refused = _vectors(embedder, chunks)
            except EmbedderError as error:
                notices.append(Notice("embedder_failed", str(error), error.hint))
                break
            into = self._keep(embedder.id, generation, vectors, refused)
            skipped += [Skipped(f"{c.path}:{c.start_line}", f"no vector: {refused[c.content_hash]}")
                        for c in chunks if c.content_hash in refused]  # fmt: skip
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

    def _keep(self, model: str, generation: str, vectors: Mapping[str, Vectors], refused: Mapping[str, str]) -> str:
        """Stores what a batch brought in one transaction, and says under which generation."""
        with self.store.writing():
            if vectors:
                generation = note_generation(self.store, model, len(next(iter(vectors.values()))))
                self.store.put_vectors(generation, vectors)
                pin_first(self.store, generation)
            if refused:
                self.store.refuse(generation, refused)
        return generation

    def _estimate(self, generation: str, rows: Sequence[int], embedder: Embedder) -> Estimate:
        """Tokens by a sample of the texts."""
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        chunks = self.store.chunks(sample).values()
        mean = sum(count_tokens(embed_text(c)) for c in chunks) / max(1, len(chunks))
        tokens = round(mean * len(rows))
        price: float | None = getattr(embedder, "usd_per_million", None)
        return Estimate(generation, len(rows), tokens, None if price is None else tokens * price / 1e6)


def _vectors(embedder: Embedder, chunks: Sequence[Chunk]) -> tuple[dict[str, Vectors], dict[str, str]]:
    """Rows by content hash, and the reason for every text that was refused."""
    if not chunks:
        return {}, {}
    try:
        rows = embedder.embed([embed_text(c) for c in chunks], "document")
    except RejectedError as error:
        kept = {chunks[i].content_hash: row for i, row in error.rows.items()}
        return kept, {chunks[i].content_hash: reason for i, reason in error.reasons.items()}
    return {c.content_hash: row for c, row in zip(chunks, rows, strict=True)}, {}


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=16).hexdigest()


def _late(document: Document, deadline: float | None) -> bool:
    """Whether a document can wait for the next sync: a conversation can, a note cannot."""
    return deadline is not None and document.source == "sessions" and time.monotonic() > deadline


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
    name = PurePosixPath(document.path).stem
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


def chunks_of(
    document: Document, parsed: Parsed, facts: Facts, size: ChunkSize, *, origin: str = "owner"
) -> list[Chunk]:
    """The chunks of a document, each with an id made of its path and content, never of its lines."""
    path = PurePosixPath(document.path)
    entries = len(path.parts) == 1 and path.stem.casefold() in _ENTRY_FILES
    seen: Counter[str] = Counter()
    chunks = []
    for passage in chunk(parsed, size, entries=entries):
        content = passage.content_hash
        key = f"{document.path}\0{content}\0{seen[content]}".encode()
        seen[content] += 1
        short = base64.b32encode(hashlib.blake2b(key, digest_size=10).digest()).decode().lower()[:12]
        chunks.append(
            Chunk(
                short, document.path, document.source, passage.start_line, passage.end_line, passage.heading,
                passage.text, content, facts, origin=origin,
            )
        )  # fmt: skip
    return chunks
