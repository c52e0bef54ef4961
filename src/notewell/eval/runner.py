"""Runs question sets under profiles and sums up the answers."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from notewell.embed.embedder import Embedder
from notewell.eval import metrics
from notewell.eval.sets import EvalSet, Question, Span, TextSource
from notewell.index.dedupe import consolidate
from notewell.index.filling import SyncOptions, embed
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.settings import Settings
from notewell.store.locate import open_database, temporary_store
from notewell.store.ports import Store
from notewell.text.words import count_tokens
from notewell.types import Candidate, Chunk

DEPTH = 50
SHOWN = 6
FALLBACK_NOW = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001 - sets without dates have no clock


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one question under one profile."""

    question: Question
    values: Mapping[str, float]
    confidence: float
    calibration: tuple[tuple[float, bool], ...]
    fresh: tuple[float, ...]
    took_ms: float


@dataclass(frozen=True, slots=True)
class Run:
    """The measures of one set under one profile."""

    set_name: str
    profile: str
    scores: tuple[Scores, ...]

    def values(self, measure: str) -> dict[str, float]:
        """A measure by question id."""
        return {s.question.id: s.values[measure] for s in self.scores if measure in s.values}

    def summary(self, kind: str | None = None) -> dict[str, float]:
        """The mean of every measure, with freshness, abstention, calibration and milliseconds."""
        chosen = [s for s in self.scores if kind is None or s.question.kind == kind]
        by_measure: dict[str, list[float]] = defaultdict(list)
        for scores in chosen:
            for name, value in scores.values.items():
                by_measure[name].append(value)
        out = {name: sum(v) / len(v) for name, v in by_measure.items()}
        fresh = [f for s in chosen for f in s.fresh]
        if fresh:
            out["freshness"] = sum(fresh) / len(fresh)
        unanswerable = [s.confidence for s in chosen if not s.question.answerable]
        if unanswerable:
            out["auroc"] = metrics.auroc(
                [s.confidence for s in chosen if s.question.answerable], unanswerable
            )
        pairs = [p for s in chosen for p in s.calibration]
        if pairs:
            out["ece"] = metrics.reliability(pairs)[1]
        times = sorted(s.took_ms for s in chosen)
        out["ms"] = times[len(times) // 2] if times else math.nan
        out["questions"] = float(len(chosen))
        return out


def memories(
    eval_set: EvalSet,
    embedder: Embedder | None,
    own: Memory | None,
    progress: Callable[[str, int, int], None],
) -> Iterator[tuple[str, Memory]]:
    """A memory for each workspace of a set, indexed in memory from its corpus, or the user's own if
    it has no corpus.

    If the user's index is in a database, these indexes are there too, in workspaces that are
    emptied afterwards.
    """
    if not eval_set.corpora:
        if own is None:
            raise ValueError("a set without a corpus needs a workspace")
        yield "", own
        return
    for number, (name, texts) in enumerate(sorted(eval_set.corpora.items()), start=1):
        store = _store(own, f"eval {eval_set.name} {name}")
        engine = Walk([TextSource(texts)], store)
        engine.sync()
        if embedder is not None:
            embed(engine, embedder, SyncOptions(batch=256))
        if own is None or own.settings.consolidate:
            consolidate(store, model=embedder.id if embedder else "")
        progress(eval_set.name, number, len(eval_set.corpora))
        with Memory(
            Path(), own.settings if own else Settings(), store, (), embedder=embedder
        ) as memory:
            yield name, memory
            if store.shared is not None:
                store.documents.drop(list(store.documents.stored()))
                store.vectors.prune(())


def _store(own: Memory | None, name: str) -> Store:
    index = own.settings.index if own else None
    if index is None or not index.url:
        return temporary_store()
    store = open_database(index.url, workspace=name, agent=index.agent, timeout_s=index.timeout_s)
    store.documents.drop(list(store.documents.stored()))  # left over if an earlier run was stopped
    return store


def evaluate(
    eval_set: EvalSet,
    profiles: Sequence[str],
    *,
    embedder: Embedder | None = None,
    own: Memory | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Run]:
    """Asks every question of a set under every profile, all on the same index."""
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
    """Asks one question: the ranking without a threshold, and the part of it that a user would
    see.
    """
    begun = time.perf_counter()
    ranked = memory.searcher.rank(
        question.text, profile=profile, limit=DEPTH, now=question.now or FALLBACK_NOW
    )
    took = (time.perf_counter() - begun) * 1000
    return score(
        question, ranked.candidates, took, shown=memory.searcher.shown(ranked.candidates, profile)
    )


def score(
    question: Question, hits: Sequence[Candidate], took_ms: float, *, shown: Sequence[Candidate]
) -> Scores:
    """The measures of one answer."""
    ranking = list(dict.fromkeys(h.chunk.path for h in hits))
    values: dict[str, float] = {}
    grades = question.grades
    if question.answerable:
        values["ndcg@10"] = metrics.ndcg(ranking, grades)
        values |= {f"recall@{k}": metrics.recall(ranking, grades, k) for k in (5, 10)}
        values |= {f"hit@{k}": metrics.hit(ranking, grades, k) for k in (1, 5, 6, 10)}
        values["mrr@10"] = metrics.reciprocal_rank(ranking, grades)
        values["shown_hit"] = float(any(grades.get(h.chunk.path, 0) > 0 for h in shown))
    if question.spans:
        for k in (5, 10):
            touched = [any(touches(h.chunk, s) for h in hits[:k]) for s in question.spans]
            values[f"cov@{k}"] = sum(touched) / len(touched)
            values[f"spanhit@{k}"] = float(any(touched))
    values["tokens"] = float(sum(count_tokens(h.chunk.text) for h in hits[:SHOWN]))
    calibration = tuple((h.confidence, relevant(h.chunk, question)) for h in hits[:SHOWN])
    fresh = tuple(_newer_first(ranking, newer, older) for newer, older in question.newer_older)
    return Scores(
        question, values, max((c for c, _ in calibration), default=0.0), calibration, fresh, took_ms
    )


def relevant(chunk: Chunk, question: Question) -> bool:
    """Whether a passage answers: by the lines of the evidence where they are labelled, else by its
    file.
    """
    if question.spans:
        return any(touches(chunk, span) for span in question.spans)
    return question.grades.get(chunk.path, 0) > 0


def touches(chunk: Chunk, span: Span) -> bool:
    """Whether a passage contains a line of the evidence."""
    return (
        chunk.path == span.document
        and chunk.start_line <= span.end_line
        and chunk.end_line >= span.start_line
    )


def _newer_first(ranking: Sequence[str], newer: str, older: str) -> float:
    """1 if the newer file is ranked above the older, a half if neither is found."""
    rank = {path: i for i, path in enumerate(ranking)}
    a, b = rank.get(newer, len(ranking)), rank.get(older, len(ranking))
    return 0.5 if a == b else float(a < b)
