"""The search walk: legs side by side, the same measures for all they find, then stages, with a
trace of every step.

The runner compares what went into a stage with what came out, so no stage knows that it is traced.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as LegTimeout
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from operator import is_

from notewell.embed.embedder import QuestionVector
from notewell.errors import NotewellError, StoreAwayError, StoreDamagedError, StoreError
from notewell.search.candidates import candidates_of
from notewell.search.evidence import MAX_TERMS, MOST_WORDS, WeightedQuestion, weigh
from notewell.search.fusion import LEGS, rescored
from notewell.search.lazy_marks import LazyMarks
from notewell.search.meaning import Meaning, measure
from notewell.store.ports import Store
from notewell.store.values import Nearest, Scored, Sought, TermCounts, pairs
from notewell.text.words import Terms, query_terms, visible
from notewell.types import Candidate, Mark, Notice, Query, Stage, Step, Trace

_LARGE = 30_000
_LONGEST_REASON = 300
# A notice is not enough for these: the caller rebuilds a damaged index, or reports the server.
_FATAL = (StoreDamagedError, StoreAwayError)

VectorAnswer = tuple[QuestionVector | None, Nearest | None, float]
"""The vector of a question, what is near it if that was looked up already, and the seconds both
took.
"""

Pending = Future[VectorAnswer] | QuestionVector | None
"""A vector that is being made, one that is at hand, or none."""


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
    windows: int = 0  # so many of the nearest passages are scored again by their windows

    def pool_for(self, limit: int) -> int:
        """How many candidates each leg may find; a fixed number, except in published pipelines that
        multiply it.
        """
        return self.pool_per_limit * limit if self.pool_per_limit else self.pool

    def reach_for(self, limit: int, asked: QuestionVector) -> int:
        """How many passages the vector leg looks at: more than it may find if their windows can
        change the order.
        """
        return max(self.pool_for(limit), self.windows if asked.windows else 0)


@dataclass(frozen=True, slots=True)
class Ranked:
    """What came out of a run; `model` names the vectors that took part, and is empty without them.

    It is not `steady` if chunks changed meanwhile: one that was replaced is lost if a leg found its
    old row, before the new one was there.
    """

    candidates: tuple[Candidate, ...]
    trace: Trace
    notices: tuple[Notice, ...]
    mode: str
    model: str = ""
    steady: bool = True


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What a run works with.

    `question` embeds a question, or returns None where there is no model. The run waits
    `deadline_s` for it, and `grace_s` more: a model that keeps the deadline itself can report what
    happened. Without `relations`, copies and contradictions are not looked up. `at_hand` returns
    the vector of a question that was embedded lately.
    """

    store: Store
    executor: Executor
    deadline_s: float = 3.0
    question: Callable[[str], QuestionVector | None] | None = None
    relations: bool = True
    grace_s: float = 0.1
    at_hand: Callable[[str], QuestionVector | None] | None = None


def run(query: Query, profile: Profile, context: SearchContext) -> Ranked:
    """Answers a question under a profile; a leg that fails or is late becomes a notice."""
    store, notices = context.store, list[Notice]()
    found: dict[str, Sequence[Scored]] = {}
    took_s: dict[str, float] = {}
    near: Mapping[int, Meaning] = {}
    terms = query_terms(query.text)
    words = terms.words[:MOST_WORDS]
    known = _at_hand(query, profile, context)
    with ExitStack() as one_moment:
        if known is not None or not _asks_model(query, profile, context):  # nobody is waited for
            one_moment.enter_context(store.reading())
        before = store.get_meta("chunks")
        # Another thread embeds the question and, in a large index, scans the vectors too; in a
        # small one, two threads that take turns are slower than one. The chunks are counted after
        # it has started, so it waits for the answer.
        is_large: Future[bool] = Future()
        pending = known or _start_vector_leg(query, profile, context, is_large)
        with store.reading():
            try:
                try:
                    _read_ahead(query, profile, store, terms)
                    counts = store.keywords.term_counts(words)
                except StoreError:
                    raise
                except Exception:  # noqa: BLE001 - a leg that needs the counts will fail too, and tells why
                    counts = TermCounts(0, 0.0, dict.fromkeys(words, 0))
                question = weigh(terms, counts)
                is_large.set_result(_scans_aside(store, question.chunks))
            finally:
                is_large.cancel()  # so that the thread does not wait for a count that failed
            if known is not None and is_large.result():
                pending = context.executor.submit(
                    copy_context().run, _scan, query, profile, store, known
                )
            for name, kind, leg in (
                ("lexical", "keyword", lexical_leg),
                ("path", "name and date", path_leg),
            ):
                if name in profile.legs:
                    begun = time.perf_counter()
                    try:
                        found[name] = leg(query, question, profile, store)
                    except Exception as error:  # noqa: BLE001 - the other legs still answer
                        notices.append(_survived(name, kind, error))
                    took_s[name] = time.perf_counter() - begun
        if isinstance(pending, Future):
            # a store in memory would keep the other thread waiting until this one has read all
            one_moment.close()
        vector, nearest, took_s["vector"] = _vector_answer(context, pending, notices)
        with store.reading():
            others = [row for leg in found.values() for row, _ in pairs(leg)]
            _read_rows_ahead(query, profile, context, [*others, *_rows(nearest)], vector=vector)
            if vector is not None:
                begun = time.perf_counter()
                pool, windows = (
                    profile.pool_for(query.limit),
                    vector.windows and profile.windows > 0,
                )
                try:
                    nearest = nearest or _nearest(query, profile, store, vector)
                    found["vector"], near = measure(
                        store, vector, nearest, others, pool=pool, windows=windows
                    )
                except Exception as error:  # noqa: BLE001 - keywords still answer
                    notices.append(_survived("vector", "meaning", error, store))
                    vector = None
                took_s["vector"] += time.perf_counter() - begun
            count = nearest.count if nearest else 0
            candidates = candidates_of(
                query,
                question,
                store,
                found=found,
                near=near,
                count=count,
                most=profile.pool_for(query.limit),
                asked=vector,
                related=context.relations,
            )
        steady = bool(store.get_meta("chunks") == before)
    query = _weighed(query, question, counts)
    model = vector.model if vector else ""
    return _ranked(
        candidates,
        query,
        profile,
        found=found,
        took_s=took_s,
        notices=notices,
        model=model,
        steady=steady,
    )


def _scans_aside(store: Store, chunks: int) -> bool:
    """Whether another thread scans the vectors: those of a large index, or of a store that is far
    away.
    """
    return store.ahead is not None or chunks >= _LARGE


def _read_ahead(query: Query, profile: Profile, store: Store, terms: Terms) -> None:
    """Lets a store that is far away read at once what the legs will ask for."""
    if store.ahead is not None:
        words, exact = tuple(terms.words[:MOST_WORDS]), tuple(terms.exact[:MAX_TERMS])
        sought = Sought(words, prefixes=tuple(terms.prefixes), exact=exact)
        store.ahead.question(
            sought, *_named(query), limit=profile.pool_for(query.limit), filters=query.filters
        )


def _read_rows_ahead(
    query: Query,
    profile: Profile,
    context: SearchContext,
    rows: list[int],
    *,
    vector: QuestionVector | None,
) -> None:
    """Lets a store that is far away read at once all that is asked about the rows that legs
    found.
    """
    if context.store.ahead is not None:
        windows = vector is not None and vector.windows and profile.windows > 0
        filters = query.filters if context.relations else None
        context.store.ahead.rows(rows, vector, windows=windows, related_to=filters)


def _rows(nearest: Nearest | None) -> list[int]:
    return [row for row, _ in pairs(nearest.rows)] if nearest else []


def _weighed(query: Query, question: WeightedQuestion, counts: TermCounts) -> Query:
    """The question with the weights of those of its terms that occur."""
    return replace(
        query, weights={w: x for w, x in question.weights.items() if counts.found_in.get(w)}
    )


def _ranked(
    candidates: Sequence[Candidate],
    query: Query,
    profile: Profile,
    *,
    found: Mapping[str, Sequence[Scored]],
    took_s: Mapping[str, float],
    notices: list[Notice],
    model: str,
    steady: bool,
) -> Ranked:
    """What the stages make of the candidates, with the trace of it all."""
    # Each leg with its own time; they run side by side, so these may add up to more than the search
    # took.
    legs = tuple(
        Step(leg, _leg_marks(candidates, leg), (), took_s[leg] * 1000)
        for leg in profile.legs
        if leg in found
    )
    ranked, steps, seen = _run_stages(candidates, query, profile, notices)
    mode = "lexical" if not found.get("vector") else "hybrid" if "lexical" in found else "vector"
    return Ranked(tuple(ranked), Trace(legs, steps, seen), tuple(notices), mode, model, steady)


def _survived(name: str, kind: str, error: Exception, store: Store | None = None) -> Notice:
    """What is reported of a leg that failed; raises an error that the caller must know.

    Damage of vectors is reported where the `store` is given and cannot be rebuilt; else it is set
    aside and rebuilt.
    """
    fixed = store is not None and (store.file is None or store.read_only)
    if isinstance(error, _FATAL) and not (fixed and isinstance(error, StoreDamagedError)):
        raise error
    return _failure(name, kind, error)


def _failure(name: str, kind: str, error: Exception) -> Notice:
    hint = error.hint if isinstance(error, NotewellError) else ""
    return Notice(f"{name}_failed", f"{kind} search failed: {_reason(error)}", hint)


def _reason(error: Exception) -> str:
    """What an error says, on one line and not without end: it may be of anybody's code."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}…"


def lexical_leg(
    query: Query, question: WeightedQuestion, profile: Profile, store: Store
) -> Sequence[Scored]:
    """Passages that share words with the question, by BM25."""
    sought = question.sought if profile.join == "OR" else question.sought_whole
    return store.keywords.lexical(sought, profile.pool_for(query.limit), query.filters)


def path_leg(
    query: Query,
    question: WeightedQuestion,  # noqa: ARG001
    profile: Profile,
    store: Store,
) -> Sequence[Scored]:
    """Passages of files that the question names, by file name or by day."""
    return store.documents.by_name_or_date(
        *_named(query), profile.pool_for(query.limit), query.filters
    )


def _named(query: Query) -> tuple[list[str], list[tuple[str, str]]]:
    """The names and the days in a question that may be those of files."""
    names = {w.strip("\"'`.,:;!?()[]") for w in visible(query.text).casefold().split()}
    names |= {n.rpartition("/")[2].rpartition(".")[0] for n in names if "." in n}
    days = [(s.start.isoformat(), s.end.isoformat()) for s in query.dates]
    return sorted(n for n in names if len(n) > 2), days


def _asks_model(query: Query, profile: Profile, context: SearchContext) -> bool:
    """Whether the question has to be embedded."""
    return "vector" in profile.legs and bool(query.text.strip()) and context.question is not None


def _at_hand(query: Query, profile: Profile, context: SearchContext) -> QuestionVector | None:
    """The vector of a question that was asked lately."""
    asks = context.at_hand is not None and _asks_model(query, profile, context)
    return context.at_hand(query.text) if asks and context.at_hand else None


def _start_vector_leg(
    query: Query, profile: Profile, context: SearchContext, is_large: Future[bool]
) -> Future[VectorAnswer] | None:
    """Starts embedding the question on another thread; if `is_large` comes true, that thread also
    scans the vectors.
    """
    embed = context.question
    if embed is None or not _asks_model(query, profile, context):
        return None
    import numpy  # noqa: F401, ICN001, PLC0415 - both threads need it; loaded by both at once, it may be half there

    def embed_and_scan() -> VectorAnswer:
        begun = time.perf_counter()
        vector = embed(query.text)
        took_s = time.perf_counter() - begun
        if vector is None or (context.store.ahead is None and not is_large.result()):
            return vector, None, took_s
        _, nearest, scan_s = _scan(query, profile, context.store, vector)
        return vector, nearest, took_s + scan_s

    # What the store keeps for this search is for that thread too.
    return context.executor.submit(copy_context().run, embed_and_scan)


def _scan(query: Query, profile: Profile, store: Store, vector: QuestionVector) -> VectorAnswer:
    begun = time.perf_counter()
    nearest = _nearest(query, profile, store, vector)
    return vector, nearest, time.perf_counter() - begun


def _nearest(query: Query, profile: Profile, store: Store, vector: QuestionVector) -> Nearest:
    return store.vectors.nearest(
        vector.model, vector.vector, profile.reach_for(query.limit, vector), query.filters
    )


def _vector_answer(context: SearchContext, pending: Pending, notices: list[Notice]) -> VectorAnswer:
    """The vector of the question, the passages near it if they were looked up; what went wrong
    becomes a notice.
    """
    if not isinstance(pending, Future):
        return pending, None, 0.0
    try:
        vector, nearest, took_s = pending.result(timeout=context.deadline_s + context.grace_s)
    except LegTimeout:
        notices.append(
            Notice(
                "vector_late", f"meaning search took over {context.deadline_s:g} s and was left out"
            )
        )
    except StoreAwayError as error:
        notices.append(_failure("vector", "meaning", error))
    except Exception as error:  # noqa: BLE001 - anybody's model may fail in any way, and keywords still answer
        notices.append(_survived("vector", "meaning", error, context.store))
    else:
        notices += vector.notices if vector is not None else ()
        return vector, nearest, took_s
    return None, None, 0.0


def _run_stages(
    candidates: Sequence[Candidate], query: Query, profile: Profile, notices: list[Notice]
) -> tuple[Sequence[Candidate], tuple[Step, ...], dict[str, Candidate]]:
    """What the stages leave, what each did, and every candidate as the last stage that had it left
    it.

    A stage that fails is left out, and a fusion that does is replaced by the sum of reciprocal
    ranks.
    """
    steps: list[Step] = []
    seen = {c.chunk.id: c for c in candidates}
    for stage in (profile.fusion, *profile.stages):
        begun = time.perf_counter()
        name = _stage_name(stage)
        try:
            after = _after(stage, candidates, query)
        except _FATAL:
            raise
        except Exception as error:  # noqa: BLE001 - it may be anybody's, and the others still rank
            hint = (
                error.hint
                if isinstance(error, NotewellError)
                else "fix it, or take it out of the profile"
            )
            notices.append(
                Notice("stage_failed", f"{name} failed and was left out: {_reason(error)}", hint)
            )
            name += " (failed)"
            after = list(candidates) if steps else rescored(candidates, _by_ranks)
        took_ms = (time.perf_counter() - begun) * 1000
        if steps and len(after) == len(candidates) and all(map(is_, after, candidates)):
            steps.append(Step(name, steps[-1].marks, (), took_ms))
            continue
        left = {c.chunk.id: c for c in after}
        # A stage neither repeats nor invents, so if there are as many as before, none was dropped.
        gone = (
            [c.chunk.id for c in candidates if c.chunk.id not in left]
            if len(after) != len(candidates)
            else ()
        )
        steps.append(Step(name, _stage_marks(after), tuple(gone), took_ms))
        seen |= left
        candidates = after
    return candidates, tuple(steps), seen


def _after(stage: Stage, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
    """What a stage leaves; one that is not ours is held to the promises of a stage."""
    after = list(stage(candidates, query))
    if not type(stage).__module__.startswith("notewell."):
        before = {c.chunk.id for c in candidates}
        left = {c.chunk.id for c in after}
        if len(left) != len(after) or not left <= before:
            raise ValueError("it invented or repeated a passage")
        if not all(math.isfinite(c.score) for c in after):
            raise ValueError("it gave a score that is not a number")
    return after


def _stage_name(stage: Stage) -> str:
    """A stage in the trace: its repr, and a function by its name."""
    try:
        return str(getattr(stage, "__name__", "")) or repr(stage)
    except Exception:  # noqa: BLE001 - a repr may be anybody's too
        return type(stage).__name__


def _by_ranks(candidate: Candidate) -> float:
    return sum(61.0 / (60.0 + rank.rank) for rank in candidate.ranks.values()) / len(LEGS)


def _leg_marks(candidates: Sequence[Candidate], leg: str) -> Sequence[Mark]:
    """What a leg found, by its own ranks."""

    def make() -> tuple[Mark, ...]:
        ranked = sorted((c for c in candidates if leg in c.ranks), key=lambda c: c.ranks[leg].rank)
        return tuple(Mark(c.id, c.ranks[leg].rank, c.ranks[leg].score) for c in ranked)

    return LazyMarks(make)


def _stage_marks(after: Sequence[Candidate]) -> Sequence[Mark]:
    """The order that came out of a stage."""
    return LazyMarks(
        lambda: tuple(Mark(c.id, rank, c.score) for rank, c in enumerate(after, start=1))
    )
