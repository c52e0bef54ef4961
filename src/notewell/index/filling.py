"""Filling: the one loop that asks a model for the vectors of texts that have none, batch by
batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from notewell.embed.embedder import Embedder, PassageVectors, Takes, room_of, windows_of
from notewell.embed.vector_sets import note_vector_set, pin_first, vector_set_of
from notewell.index import batch_embedding
from notewell.index.documents import embed_text
from notewell.index.slices import PORTION, Slice, next_slice, vectors_of
from notewell.index.walk import Walk
from notewell.sources.source import Attaching
from notewell.text.chunk import headings_length
from notewell.text.words import count_tokens
from notewell.types import Chunk, Estimate, Notice, Progress, Skipped, SyncReport, Vectors, silent

FIRST_BATCH = 8
_BATCH = 64
# texts in one call, however short they are: enough for any provider's requests, and bounded in
# memory
_MOST = 8192
# requests do not wait for the slowest of each round, unless a round takes so long
_ROUNDS, _QUICK_S = (4, 5.0)
# far longer than a batch takes; then the claims of a process that died can be claimed again
_LEASE_S = 180.0
_SAMPLE = 200


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How a sync is done, and its vectors above all.

    A `deadline` (monotonic) for vectors means work in the background, which leaves a paused model
    alone, as does a `later` round of the same sync. `force` retries refused texts. `estimate` is
    called with the amount, and again with the time it will take. `wait_s` bounds the wait for
    another process. Texts in `leave`, by content hash, are skipped. `look` reads all vectors for
    damage.
    """

    deadline: float | None = None
    force: bool = False
    progress: Progress = silent
    estimate: Callable[[Estimate], None] | None = None
    wait_s: float = 0.0
    later: bool = False
    batch: int = 0
    leave: Set[str] = frozenset()
    look: bool = False


def embed(walk: Walk, model: Embedder, options: SyncOptions | None = None) -> SyncReport:
    """Vectors for texts that have none, newest first, one transaction a batch, until done or the
    deadline.
    """
    filling = Filling(walk, model, options or SyncOptions())
    if filling.options.estimate and len(filling.rows) > _BATCH and not filling.options.leave:
        filling.estimate()
    while filling.step():
        pass
    return filling.report()


class Filling:
    """One run over the texts that have no vector of a model.

    The first batch is small: it shows whether the model answers and in how many dimensions, and
    loads the model. The second is timed for the estimate. Batches are as large as the requests of a
    remote model, and with a deadline as the time left allows.
    """

    def __init__(self, walk: Walk, model: Embedder, options: SyncOptions) -> None:
        self.store, self.model, self.options = walk.store, model, options
        self.vector_set = vector_set_of(self.store, model.id)
        self.rows = self.store.vectors.missing(self.vector_set)
        self._media = next((s for s in walk.sources if isinstance(s, Attaching)), None)
        self._position = self._done = 0
        self._room = room_of(model)
        self._rounds = 1
        self.batch = options.batch or (_MOST if self._room else _BATCH)
        self._size = min(self.batch, FIRST_BATCH) if options.deadline is None else 1
        self._skipped: list[Skipped] = []
        self._notices: list[Notice] = []
        self._estimate: Estimate | None = None

    def step(self) -> bool:
        """Embeds the next batch; False when nothing is left to do, or no time."""
        begun, deadline = time.monotonic(), self.options.deadline
        if self._position >= len(self.rows) or (deadline is not None and begun > deadline):
            return False
        first, now = not self._position, self._slice()
        part, chunks = now.rows, now.chunks
        if not part:
            return False  # others have claimed the rest
        self._position += len(part)
        made, refused, failed = vectors_of(self.model, now.texts)
        if failed:
            self._notices.append(Notice("embedder_failed", str(failed), failed.hint))
            if self.store.shared:
                lost = [c.content_hash for c in chunks if c.content_hash not in made]
                self.store.shared.release(self.vector_set, lost)
        vectors = {
            key: one.whole if isinstance(one, PassageVectors) else one for key, one in made.items()
        }
        into = self.put(vectors, refused, rows=part, windows=self._windows(made, chunks))
        self._skipped += batch_embedding.without_vector(chunks, refused)
        self._done += len(made)
        if failed:
            self.vector_set = into
            return False
        spent_s = max(time.monotonic() - begun, 1e-6)
        rate, self._rounds = len(part) / spent_s, _ROUNDS if spent_s < _QUICK_S else 1
        if self._estimate and self._estimate.seconds is None and not first:
            self._tell(replace(self._estimate, model=into, seconds=self._left() / rate))
        self._size = self.batch
        if deadline is not None:
            self._size = max(1, min(self.batch, int(rate * (deadline - time.monotonic()))))
        self._look_again(into)
        self.options.progress("vectors", self._done, self._done + self._left())
        return True

    def _left(self) -> int:
        return len(self.rows) - self._position

    def _slice(self) -> Slice:
        """What the model is given next."""
        takes: Takes = self._room(self._rounds) if self._room else lambda _: True
        made = next_slice(self._claimed(), self.store.documents.chunks, self._wanted, takes)
        if self.store.shared and made.rest:
            self.store.shared.release(self.vector_set, [c.content_hash for c in made.rest])
        return made

    def _claimed(self) -> Iterator[Sequence[int]]:
        """The next rows, for this process alone, up to the size of a batch."""
        shared = self.store.shared
        for start in range(0, self._size, PORTION):
            size, at = min(PORTION, self._size - start), self._position + start
            part = (
                shared.claim(self.vector_set, size, _LEASE_S)
                if shared
                else self.rows[at : at + size]
            )
            if not part:
                return
            yield part

    def _wanted(self, chunks: Iterable[Chunk]) -> dict[str, str]:
        return self.inputs(c for c in chunks if c.content_hash not in self.options.leave)

    def _look_again(self, into: str) -> None:
        """Reads again what is missing if the model changed its size, or if notes may have come in
        since.
        """
        moved = into != self.vector_set
        self.vector_set = into
        if moved or self._position >= len(self.rows):
            missing = self.store.vectors.missing(into)
            if moved or set(missing) - set(self.rows):
                self.rows, self._position = missing, 0

    def inputs(self, chunks: Iterable[Chunk]) -> dict[str, str]:
        """What a model is given for some chunks, by content hash; a picture whose file is gone is
        left out.
        """
        found: dict[str, str] = {}
        for chunk in chunks:
            text: str | None = embed_text(chunk)
            if chunk.source == "media" and self._media is not None:
                text = self._media.part(chunk.path, embed_text(chunk))
            if text is not None:
                found[chunk.content_hash] = text
        return found

    def _windows(
        self, made: Mapping[str, Vectors | PassageVectors], chunks: Iterable[Chunk]
    ) -> dict[str, bytes]:
        """The windows of chunks as they are kept, by content hash, without those that cover nothing
        but headings.
        """
        windowed = windows_of(self.model)
        if windowed is None:
            return {}
        from notewell.store import window_codes  # noqa: PLC0415 - most models have none, and it loads numpy

        codes: dict[str, bytes] = {}
        for chunk in chunks:
            one = made.get(chunk.content_hash)
            if not isinstance(one, PassageVectors):
                continue
            headings = headings_length(chunk.heading)
            some = [n for n, (_, end) in enumerate(one.spans) if end > headings]
            spans = [one.spans[n] for n in some]
            if (
                kept := window_codes.pack(one.windows[some], spans, windowed.window_dims)
                if some
                else b""
            ):
                codes[chunk.content_hash] = kept
        return codes

    def put(
        self,
        vectors: Mapping[str, Vectors],
        refused: Mapping[str, str],
        *,
        rows: Sequence[int],
        windows: Mapping[str, bytes] | None = None,
    ) -> str:
        """Stores the vectors of some rows and returns their vector set; a text forgotten meanwhile
        gets none.
        """
        store, vector_set = self.store, self.vector_set
        with store.writing():
            there = {c.content_hash for c in store.documents.chunks(rows).values()}
            vectors = {key: vector for key, vector in vectors.items() if key in there}
            if vectors:
                vector_set = note_vector_set(
                    store, self.model.id, len(next(iter(vectors.values())))
                )
                store.vectors.put_vectors(vector_set, vectors, windows=windows)
                pin_first(store, vector_set)
            if refused:
                store.vectors.refuse(vector_set, refused)
        return vector_set

    def estimate(self, share: float = 1.0) -> None:
        """Reports how many tokens there are, by a sample of the texts, and their cost at a share of
        the price.
        """
        rows = self.rows
        chunks = self.store.documents.chunks(rows[:: max(1, len(rows) // _SAMPLE)]).values()
        mean = sum(count_tokens(embed_text(c)) for c in chunks) / max(1, len(chunks))
        tokens = round(mean * len(rows))
        price: float | None = getattr(self.model, "usd_per_million", None)
        self._tell(
            Estimate(
                self.vector_set,
                len(rows),
                tokens,
                None if price is None else tokens * price / 1e6 * share,
            )
        )

    def _tell(self, estimate: Estimate) -> None:
        self._estimate = estimate
        if self.options.estimate:
            self.options.estimate(estimate)

    def report(self) -> SyncReport:
        """What was done, and how many texts still have no vector."""
        pending = len(self.store.vectors.missing(self.vector_set))
        report = SyncReport(
            embedded=self._done, pending=pending, model=self.vector_set, estimate=self._estimate
        )
        return replace(report, skipped=tuple(self._skipped), notices=tuple(self._notices))
