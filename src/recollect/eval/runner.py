"""Runs question sets over profiles and sums up what came back."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.eval import metrics
from recollect.eval.sets import EvalSet, Question, Span, TextSource
from recollect.memory import Memory
from recollect.ports import Embedder, Shared, Store
from recollect.settings import Settings
from recollect.store.place import open_database
from recollect.store.sqlite import SqliteStore
from recollect.sync.consolidate import consolidate
from recollect.sync.engine import Engine
from recollect.text.words import count_tokens
from recollect.types import Candidate, Chunk

DEPTH = 50
SHOWN = 6
FALLBACK_NOW = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 - sets without dates have no clock


@dataclass(frozen=True, slots=True)
class Scores:
    """One question under one profile."""

    question: Question
    values: Mapping[str, float]
    confidence: float
    calibration: tuple[tuple[float, bool], ...]
    fresh: tuple[float, ...]
    took_ms: float


@dataclass(frozen=True, slots=True)
class Run:
    """One set under one profile."""

    set_name: str
    profile: str
    scores: tuple[Scores, ...]

    def values(self, measure: str) -> dict[str, float]:
        """A measure by question id."""
        return {s.question.id: s.values[measure] for s in self.scores if measure in s.values}

    def summary(self, kind: str | None = None) -> dict[str, float]:
        """The mean of every measure, with freshness, abstention, calibration and milliseconds."""
        chosen = [s for s in self.scores if kind is None or s.question.kind == kind]
        sums: dict[str, list[float]] = defaultdict(list)
        for one in chosen:
            for name, value in one.values.items():
                sums[name].append(value)
        out = {name: sum(v) / len(v) for name, v in sums.items()}
        fresh = [f for s in chosen for f in s.fresh]
        if fresh:
            out["freshness"] = sum(fresh) / len(fresh)
        silent = [s.confidence for s in chosen if not s.question.answerable]
        if silent:
            out["auroc"] = metrics.auroc([s.confidence for s in chosen if s.question.answerable], silent)
        pairs = [p for s in chosen for p in s.calibration]
        if pairs:
            out["ece"] = metrics.reliability(pairs)[1]
        times = sorted(s.took_ms for s in chosen)
        out["ms"] = times[len(times) // 2] if times else math.nan
        out["questions"] = float(len(chosen))
        return out


def memories(
    eval_set: EvalSet, embedder: Embedder | None, own: Memory | None, progress: Callable[[str, int, int], None]
) -> Iterator[tuple[str, Memory]]:
    """A memory for each workspace of a set: made in memory from its corpus, or the user's own.

    Where the user's own index is in a database, so are they, in workspaces that are emptied afterwards.
    """
    if not eval_set.corpora:
        if own is None:
            raise ValueError("a set without a corpus needs a workspace")
        yield "", own
        return
    for number, (name, texts) in enumerate(sorted(eval_set.corpora.items()), start=1):
        store = _store(own, f"eval {eval_set.name} {name}")
        engine = Engine([TextSource(texts)], store)
        engine.sync()
        if embedder is not None:
            engine.embed(embedder, batch=256)
        if own is None or own.settings.consolidate:
            consolidate(store, model=embedder.id if embedder else "")
        progress(eval_set.name, number, len(eval_set.corpora))
        with Memory(Path(), own.settings if own else Settings(), store, (), embedder=embedder) as memory:
            yield name, memory
            if isinstance(store, Shared):
                store.drop(list(store.documents()))
                store.prune(())


def _store(own: Memory | None, name: str) -> Store:
    place = own.settings.index if own else None
    if place is None or not place.url:
        return SqliteStore(None)
    store = open_database(place.url, workspace=name, agent=place.agent, timeout_s=place.timeout_s)
    store.drop(list(store.documents()))  # of a run that was stopped
    return store


def evaluate(
    eval_set: EvalSet,
    profiles: Sequence[str],
    *,
    embedder: Embedder | None = None,
    own: Memory | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Run]:
    """Every question of a set under every profile, each profile on the same index."""
    by_workspace: dict[str, list[Question]] = defaultdict(list)
    for question in eval_set.questions:
        by_workspace[question.workspace].append(question)
    scores: dict[str, list[Scores]] = {name: [] for name in profiles}
    for name, memory in memories(eval_set, embedder, own, progress):
        for question in by_workspace.get(name, ()):
            for profile in profiles:
                scores[profile].append(ask(memory, question, profile))
    return [Run(eval_set.name, name, tuple(found)) for name, found in scores.items()]


def ask(memory: Memory, question: Question, profile: str) -> Scores:
    """One question: its order without a threshold, and what of it a user would have been shown."""
    begun = time.perf_counter()
    ranked = memory.rank(question.text, profile=profile, limit=DEPTH, now=question.now or FALLBACK_NOW)
    took = (time.perf_counter() - begun) * 1000
    return score(question, ranked.candidates, took, shown=memory.shown(ranked.candidates, profile))


def score(question: Question, hits: Sequence[Candidate], took_ms: float, *, shown: Sequence[Candidate]) -> Scores:
    """The measures of one answer."""
    ranking = list(dict.fromkeys(h.chunk.path for h in hits))
    values: dict[str, float] = {}
    grades = question.grades
    if question.answerable:
        values["ndcg@10"] = metrics.ndcg(ranking, grades)
        values["recall@5"] = metrics.recall(ranking, grades, 5)
        values["recall@10"] = metrics.recall(ranking, grades, 10)
        for k in (1, 5, 6, 10):
            values[f"hit@{k}"] = metrics.hit(ranking, grades, k)
        values["mrr@10"] = metrics.reciprocal_rank(ranking, grades)
        values["shown_hit"] = float(any(grades.get(h.chunk.path, 0) > 0 for h in shown))
    if question.spans:
        for k in (5, 10):
            touched = [any(touches(h.chunk, s) for h in hits[:k]) for s in question.spans]
            values[f"cov@{k}"] = sum(touched) / len(touched)
            values[f"spanhit@{k}"] = float(any(touched))
    values["tokens"] = float(sum(count_tokens(h.chunk.text) for h in hits[:SHOWN]))
    return Scores(
        question,
        values,
        _confidence(hits[0]) if hits else 0.0,
        tuple((_confidence(h), relevant(h.chunk, question)) for h in hits[:SHOWN]),
        tuple(_newer_first(ranking, newer, older) for newer, older in question.newer_older),
        took_ms,
    )


def relevant(chunk: Chunk, question: Question) -> bool:
    """Whether a passage answers: it touches the evidence where that is labelled, else its file is relevant."""
    if question.spans:
        return any(touches(chunk, span) for span in question.spans)
    return question.grades.get(chunk.path, 0) > 0


def _confidence(candidate: Candidate) -> float:
    return candidate.signals.get("confidence", candidate.score)


def touches(chunk: Chunk, span: Span) -> bool:
    """Whether a passage holds a line of the evidence."""
    return chunk.path == span.document and chunk.start_line <= span.end_line and chunk.end_line >= span.start_line


def _newer_first(ranking: Sequence[str], newer: str, older: str) -> float:
    """1 if the newer file stands above the older, a half if neither was found."""
    places = {path: i for i, path in enumerate(ranking)}
    a, b = places.get(newer, len(ranking)), places.get(older, len(ranking))
    return 0.5 if a == b else float(a < b)
