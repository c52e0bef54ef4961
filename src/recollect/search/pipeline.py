"""The search walk: legs side by side, one measure for all they found, then stages, with a trace of every step.

The runner compares what went into a stage with what came out, so no stage knows that it is traced.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as LegTimeout
from dataclasses import dataclass, field, replace
from operator import is_

from recollect.errors import RecollectError, StoreAwayError, StoreDamagedError, StoreError
from recollect.ports import Asked, Embedder, Nearest, Scored, Stage, Store, Vectors
from recollect.search.evidence import Ask, ask, measures
from recollect.search.marks import Marks
from recollect.text.words import foreign_share, query_terms
from recollect.types import Candidate, LegRank, Mark, Notice, Query, Relations, Step, Trace

_OTHER_SCRIPT = 0.3
_LARGE = 30_000
_GRACE_S = 0.1  # a model that keeps its own deadline says better what happened
_UNRELATED = Relations()
LEGS = ("lexical", "vector", "path")
_WORDS = {"lexical": "keyword", "path": "name and date"}


@dataclass(frozen=True, slots=True)
class Profile:
    """A named fusion with its stages, as data."""

    name: str
    fusion: Stage
    stages: tuple[Stage, ...] = ()
    legs: tuple[str, ...] = LEGS
    pool: int = 100
    pool_per_limit: int = 0
    join: str = "OR"
    limit: int = 6

    def pool_for(self, limit: int) -> int:
        """How many candidates each leg may bring; fixed, unless a published pipeline says otherwise."""
        return self.pool_per_limit * limit if self.pool_per_limit else self.pool


@dataclass(frozen=True, slots=True)
class Ranked:
    """What came out of a run; `model` is the generation of vectors that took part, or empty."""

    candidates: tuple[Candidate, ...]
    trace: Trace
    notices: tuple[Notice, ...]
    mode: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run works with; `question` chooses the model itself, or none, where there may be several."""

    store: Store
    embedder: Embedder | None
    executor: Executor
    deadline_s: float = 3.0
    vector_of: Callable[[str], Vectors] | None = field(default=None)
    question: Callable[[str], Asked | None] | None = field(default=None)
    relations: bool = True


def run(query: Query, profile: Profile, bench: Bench) -> Ranked:
    """Answers a question under a profile; a leg that fails or is late becomes a notice."""
    notices: list[Notice] = []
    large: Future[bool] = Future()
    pending = _start_vector(query, profile, bench, aside=large)
    with bench.store.reading():
        try:
            asked = ask(query.text, bench.store.term_counts, terms=query_terms(query.text))
            large.set_result(asked.chunks >= _LARGE)
        finally:
            large.cancel()  # nobody waits for what is not going to be known
        found, took = _own_legs(query, profile, bench, asked, notices=notices)
    begun = time.perf_counter()
    vector, nearest = _vector_leg(query, profile, bench, pending=pending, notices=notices)
    if vector is not None:
        found["vector"] = nearest.rows
    took["vector"] = time.perf_counter() - begun
    with bench.store.reading():
        candidates = _candidates(query, bench, asked, found=found, vector=vector, nearest=nearest)
    legs = tuple(Step(name, _of_leg(candidates, name), (), took[name] * 1000) for name in profile.legs if name in found)
    mode = (
        "vector" if found.get("vector") and "lexical" not in found else "hybrid" if found.get("vector") else "lexical"
    )
    steps: list[Step] = []
    pooled = {c.chunk.id: c for c in candidates}
    for stage in (profile.fusion, *profile.stages):
        begun = time.perf_counter()
        after = list(stage(candidates, query))
        spent = (time.perf_counter() - begun) * 1000
        if steps and len(after) == len(candidates) and all(map(is_, after, candidates)):
            steps.append(replace(steps[-1], stage=repr(stage), dropped=(), took_ms=spent))
            continue
        kept = {c.chunk.id: c for c in after}
        # A stage repeats and invents nothing, so where there are as many as before, none is gone.
        gone = tuple(c.id for c in candidates if c.id not in kept) if len(after) != len(candidates) else ()
        steps.append(Step(repr(stage), _of_stage(after), gone, spent))
        pooled |= kept
        candidates = after
    model = vector.model if vector else ""
    return Ranked(tuple(candidates), Trace(legs, tuple(steps), pooled), tuple(notices), mode, model)


def _own_legs(
    query: Query, profile: Profile, bench: Bench, asked: Ask, *, notices: list[Notice]
) -> tuple[dict[str, Sequence[Scored]], dict[str, float]]:
    """What the legs that need no model found, and what they took; one that fails becomes a notice."""
    found: dict[str, Sequence[Scored]] = {}
    took: dict[str, float] = {}
    pool = profile.pool_for(query.limit)
    sought = asked.sought if profile.join == "OR" else asked.sought_whole
    own: dict[str, Callable[[], Sequence[Scored]]] = {
        "lexical": lambda: bench.store.lexical(sought, pool, query.filters),
        "path": lambda: path_leg(query, bench.store, pool),
    }
    for name, leg in own.items():
        if name in profile.legs:
            begun = time.perf_counter()
            try:
                found[name] = leg()
            except (StoreDamagedError, StoreAwayError):
                raise  # an index that is made anew, or a server that is away, is more than a notice can tell
            except StoreError as error:
                notices.append(Notice(f"{name}_failed", f"{_WORDS[name]} search failed: {error}", error.hint))
            took[name] = time.perf_counter() - begun
    return found, took


def _of_leg(candidates: Sequence[Candidate], name: str) -> Sequence[Mark]:
    """What a leg found, by its own ranks."""

    def make() -> tuple[Mark, ...]:
        ranked = sorted((c for c in candidates if name in c.ranks), key=lambda c: c.ranks[name].rank)
        return tuple(Mark(c.id, c.ranks[name].rank, c.ranks[name].score) for c in ranked)

    return Marks(sum(name in c.ranks for c in candidates), make)


def _of_stage(after: Sequence[Candidate]) -> Sequence[Mark]:
    """The order that came out of a stage."""
    return Marks(len(after), lambda: tuple(Mark(c.id, rank, c.score) for rank, c in enumerate(after, start=1)))


def _start_vector(
    query: Query, profile: Profile, bench: Bench, *, aside: Future[bool]
) -> Future[tuple[Asked, Nearest | None] | None] | None:
    """Has the model read the question meanwhile, as it may be slow or far away, and the vectors be looked through if
    that is to be done `aside`, which is said later: in a small index two threads that take turns need longer than one.
    """
    if "vector" not in profile.legs or not query.text.strip() or (bench.embedder is None and bench.question is None):
        return None
    import numpy  # noqa: F401, ICN001, PLC0415 - both threads need it, and two that load it at once may find half of it

    def read() -> tuple[Asked, Nearest | None] | None:
        asked = _asked(query.text, bench)
        if asked is None:
            return None
        return asked, _nearest(query, profile, bench, asked) if aside.result() else None

    return bench.executor.submit(read)


def _nearest(query: Query, profile: Profile, bench: Bench, asked: Asked) -> Nearest:
    return bench.store.nearest(asked.model, asked.vector, profile.pool_for(query.limit), query.filters)


def _vector_leg(
    query: Query, profile: Profile, bench: Bench, *,
    pending: Future[tuple[Asked, Nearest | None] | None] | None, notices: list[Notice],
) -> tuple[Asked | None, Nearest]:  # fmt: skip
    """What is near the question, if its vector came by the deadline; whatever went wrong is a notice."""
    try:
        answer = pending.result(timeout=bench.deadline_s + _GRACE_S) if pending is not None else None
        if answer is not None:
            asked, nearest = answer
            nearest = nearest or _nearest(query, profile, bench, asked)
            notices += asked.notices
            return asked, nearest
    except LegTimeout:
        notices.append(Notice("vector_late", f"meaning search took over {bench.deadline_s:g} s and was left out"))
    except Exception as error:  # noqa: BLE001 - anybody's model may fail in any way, and keywords still answer
        hint = error.hint if isinstance(error, RecollectError) else ""
        notices.append(Notice("vector_failed", f"meaning search failed: {error}", hint))
    return None, Nearest(())


def _asked(text: str, bench: Bench) -> Asked | None:
    if bench.question is not None:
        return bench.question(text)
    embedder = bench.embedder
    if embedder is None:
        return None
    return Asked(embedder.id, bench.vector_of(text) if bench.vector_of else embedder.embed([text], "query")[0])


def path_leg(query: Query, store: Store, limit: int) -> list[Scored]:
    """Passages of files that the question names, by file name or by day."""
    lowered = query.text.casefold()
    names = {w.strip("\"'`.,:;!?()[]") for w in lowered.split()}
    names |= {n.rpartition("/")[2].rpartition(".")[0] for n in names if "." in n}
    names = {n for n in names if len(n) > 2}
    days = [(s.start.isoformat(), s.end.isoformat()) for s in query.dates]
    return store.by_name_or_date(sorted(names), days, limit, query.filters)


def _candidates(
    query: Query,
    bench: Bench,
    asked: Ask,
    *,
    found: dict[str, Sequence[Scored]],
    vector: Asked | None,
    nearest: Nearest,
) -> list[Candidate]:
    """Every row any leg found, once, with its ranks and with all signals back-filled."""
    store = bench.store
    rows = list(dict.fromkeys(s.row for name in found for s in found[name]))
    chunks = store.chunks(rows)
    cosines = store.cosines(vector.model, vector.vector, rows) if vector is not None else {}
    ranks: dict[int, dict[str, LegRank]] = {row: {} for row in rows}
    for name, scored in found.items():
        ordered = sorted((-s.score, chunks[s.row].id, s.row) for s in scored if s.row in chunks)
        for rank, (score, _, row) in enumerate(ordered, start=1):
            ranks[row][name] = LegRank(rank, -score)
    related = store.relations(list(chunks.values()), query.filters) if bench.relations else {}
    shared = query_signals(query, asked, nearest)
    words = measures(asked, store, rows)
    out: list[Candidate] = []
    for row in rows:
        if row not in chunks or row not in words:
            continue  # dropped by another process between the legs and here
        signals = {**shared, **words[row]}
        chunk = chunks[row]
        if row in cosines:
            signals["cosine"] = cosines[row]
            signals["z"] = (cosines[row] - nearest.mean) / nearest.deviation if nearest.deviation > 1e-9 else 0.0
            gap = 0.0 if chunk.text.isascii() else _foreign(chunk.text) - shared["foreign"]
            if gap > _OTHER_SCRIPT:
                signals["z"] *= 1.0 - gap  # the model reads the question but not the passage: its cosine is chance
        if query.dates and chunk.day:
            signals["date"] = max(day_match(chunk.day, s.start, s.end) for s in query.dates)
        out.append(Candidate(chunk, 0.0, ranks[row], signals, related.get(row, _UNRELATED)))
    out.sort(key=lambda c: c.chunk.id)
    return out


def _foreign(text: str) -> float:
    """The share of a passage that an English model cannot read, counted where it may be enough to matter."""
    wide = len(text.encode("ascii", "ignore")) < (1.0 - _OTHER_SCRIPT / 2) * len(text)
    return foreign_share(text) if wide else 0.0


def day_match(day: dt.date, start: dt.date, end: dt.date) -> float:
    """1 inside the days named, else 0."""
    return 1.0 if start <= day <= end else 0.0


def query_signals(query: Query, asked: Ask, nearest: Nearest) -> dict[str, float]:
    """What holds for the question as a whole: how rare its words are, the best cosine that chance alone would
    bring among so many vectors, and the share of it that an English model cannot read.
    """
    return {
        "rare": asked.rarity,
        "noise": math.sqrt(2.0 * math.log(max(nearest.count, 3))),
        "foreign": foreign_share(query.text),
    }
