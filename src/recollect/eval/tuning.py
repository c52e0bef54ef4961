"""Fits the tables of `search.combine` on labelled sets, and checks them on the set left out.

    python -m recollect.eval.tuning SETS_FOLDER [--cache DIR] [--questions 600]

The order is a conditional logit (which passage of the pool is the relevant one?), every set weighing the same,
then a short climb on nDCG@10 itself that is punished where a leg alone would have been better. The confidence is
a plain logistic regression on the first hits under the tables as they stand, so paste the order's and run it again.
Both print the tables to paste and the leave-one-set-out figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.embed.cached import CachedEmbedder
from recollect.embed.registry import embedder
from recollect.eval import metrics, runner, sets
from recollect.search.combine import (
    CONFIDENCE,
    CONFIDENCE_WORDS,
    WEIGHTS,
    confidence_features,
    features,
    leg_weights,
    question_evidence,
    total,
)
from recollect.types import Candidate

Array = NDArray[np.float64]
SHOWN = 6


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one question: what is known of each, and which are relevant."""

    features: Array
    relevant: NDArray[np.bool_]
    paths: tuple[str, ...]
    grades: Mapping[str, int]
    legs: Mapping[str, Array]
    candidates: tuple[Candidate, ...]


def pools(one: sets.EvalSet, model: Any, most: int, strangers: Sequence[sets.Question] = ()) -> list[Pool]:
    """The pools of a set's questions, and of strangers: questions of other sets, which nothing here answers."""
    found: list[Pool] = []
    questions: dict[str, list[sets.Question]] = {}
    for question in one.questions:
        questions.setdefault(question.workspace, []).append(question)
    share = max(1, len(strangers) // max(1, len(one.corpora)))
    for number, name in enumerate(sorted(one.corpora)):
        others = strangers[number * share : (number + 1) * share]
        questions[name] = [*(replace(q, grades={}, spans=()) for q in others), *questions.get(name, ())[:most]]
    for name, memory in runner.memories(one, model, None, lambda *_: None):
        for question in questions.get(name, ()):
            ranked = memory.rank(
                question.text, profile="default", limit=runner.DEPTH, now=question.now or runner.FALLBACK_NOW
            )
            rows = sorted(ranked.trace.candidates.values(), key=lambda c: c.id)
            if not rows:
                continue
            evidence = question_evidence(rows)
            named = [features(c, evidence) for c in rows]
            found.append(
                Pool(
                    np.array([[f[name] for name in WEIGHTS] for f in named]),
                    np.array([runner.relevant(c.chunk, question) for c in rows]),
                    tuple(c.chunk.path for c in rows),
                    question.grades,
                    {
                        leg: np.array([c.ranks[leg].score if leg in c.ranks else -1e9 for c in rows])
                        for leg in ("lexical", "vector")
                    },
                    tuple(rows),
                )
            )
    return found


def strangers_to(name: str, loaded: Mapping[str, sets.EvalSet], *, each: int = 2) -> list[sets.Question]:
    """A few questions of every other set, in turn; sets of the same language mislead the most, so all are taken."""
    rows = [
        one.questions[:: max(1, len(one.questions) // each)][:each] for other, one in loaded.items() if other != name
    ]
    return [q for turn in zip_longest(*rows) for q in turn if q is not None]


def ndcg(pool: Pool, scores: Array) -> float:
    """nDCG@10 of files when the pool is ordered by these scores."""
    order = np.argsort(-scores, kind="stable")
    return metrics.ndcg(list(dict.fromkeys(pool.paths[i] for i in order if scores[i] > -1e8)), pool.grades)


def mean_ndcg(found: Sequence[Pool], weights: Array) -> float:
    """The mean over the answerable questions of a set."""
    values = [ndcg(p, p.features @ weights) for p in found if p.grades]
    return sum(values) / len(values)


def best_leg(found: Sequence[Pool]) -> float:
    """The better of the two legs alone."""
    answerable = [p for p in found if p.grades]
    return max(sum(ndcg(p, p.legs[leg]) for p in answerable) / len(answerable) for leg in ("lexical", "vector"))


def fit_order(by_set: Sequence[Sequence[Pool]], *, ridge: float = 1e-3, rounds: int = 400) -> Array:
    """Conditional logit by accelerated gradient descent on standardised features."""
    usable = [[p for p in found if 0 < p.relevant.sum() < len(p.relevant)] for found in by_set]
    usable = [found for found in usable if found]
    data = np.concatenate([p.features for found in usable for p in found])
    scale = data.std(axis=0) + 1e-9
    data = data / scale
    relevant = np.concatenate([p.relevant for found in usable for p in found])
    sizes = [len(p.paths) for found in usable for p in found]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    which = np.repeat(np.arange(len(sizes)), sizes)
    share = np.concatenate([np.full(len(found), 1 / len(found) / len(usable)) for found in usable])
    weights = before = np.zeros(data.shape[1])
    for step in range(1, rounds + 1):
        ahead = weights + (step - 1) / (step + 2) * (weights - before)
        scores = data @ ahead
        likely = np.exp(scores - np.maximum.reduceat(scores, starts)[which])
        wanted = likely * relevant
        gap = likely / np.add.reduceat(likely, starts)[which]
        gap -= wanted / np.maximum(np.add.reduceat(wanted, starts), 1e-300)[which]
        gradient = data.T @ (share[which] * gap) + 2 * ridge * ahead
        before, weights = weights, ahead - gradient
    return np.asarray(weights / scale)


def climb(by_set: Sequence[Sequence[Pool]], weights: Array, *, rounds: int = 4) -> Array:
    """Coordinate steps on the mean nDCG@10, with a penalty for every set where a leg alone is better."""
    legs = [best_leg(found) for found in by_set]

    def value(candidate: Array) -> float:
        figures = [mean_ndcg(found, candidate) for found in by_set]
        lost = sum(max(0.0, leg + 0.003 - figure) for leg, figure in zip(legs, figures, strict=True))
        return sum(figures) / len(figures) - 0.5 * lost

    best = value(weights)
    step = np.maximum(np.abs(weights) * 0.25, 0.3)
    for _ in range(rounds):
        for i in range(len(weights)):
            for move in (1.0, -1.0, 0.5, -0.5):
                trial = weights.copy()
                trial[i] += move * step[i]
                if (reached := value(trial)) > best + 1e-5:
                    best, weights = reached, trial
                    break
        step *= 0.6
    return weights


def shown(found: Sequence[Pool], table: Mapping[str, float], *, words_only: bool) -> tuple[Array, Array]:
    """The confidence features of the first hits of every question, and whether each is relevant."""
    rows, labels = [], []
    for pool in found:
        candidates = (
            [_without_vector(c) for c in pool.candidates if "lexical" in c.ranks] if words_only else pool.candidates
        )
        relevant = dict(zip((c.id for c in pool.candidates), pool.relevant, strict=True))
        question = question_evidence(candidates)
        weights = leg_weights(question)
        totals = np.array([total(c, question, weights) for c in candidates])
        for i in np.argsort(-totals, kind="stable")[:SHOWN]:
            named = confidence_features(candidates[i], question, float(totals[i]), float(totals.max()))
            rows.append([named[name] for name in table])
            labels.append(relevant[candidates[i].id])
    return np.array(rows), np.array(labels, dtype=float)


def _without_vector(candidate: Candidate) -> Candidate:
    return replace(candidate, signals={k: v for k, v in candidate.signals.items() if k not in ("z", "cosine")})


def fit_confidence(parts: Sequence[tuple[Array, Array]], *, ridge: float = 1e-4, rounds: int = 60) -> Array:
    """Logistic regression by Newton's method, every set weighing the same."""
    data = np.concatenate([x for x, _ in parts])
    labels = np.concatenate([y for _, y in parts])
    share = np.concatenate([np.full(len(y), 1 / len(y) / len(parts)) for _, y in parts])
    weights = np.zeros(data.shape[1])
    for _ in range(rounds):
        likely = 1 / (1 + np.exp(-np.clip(data @ weights, -40, 40)))
        gradient = data.T @ (share * (likely - labels)) + 2 * ridge * weights
        curve = (data * (share * likely * (1 - likely))[:, None]).T @ data + 2 * ridge * np.eye(len(weights))
        weights = weights - np.linalg.solve(curve, gradient)
    return np.asarray(weights)


def calibration_error(part: tuple[Array, Array], weights: Array) -> float:
    """The expected calibration error of a set under these weights."""
    likely = 1 / (1 + np.exp(-np.clip(part[0] @ weights, -40, 40)))
    return metrics.reliability([(float(c), bool(y)) for c, y in zip(likely, part[1], strict=True)])[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits on all sets of a folder and prints the tables and the figures on the set left out."""
    parser = argparse.ArgumentParser(description="Fit the weights of the default profile.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(".recollect-eval"))
    parser.add_argument("--questions", type=int, default=600)
    options = parser.parse_args(arguments)
    model = embedder("auto")
    cached = CachedEmbedder(model, options.cache / "vectors.sqlite") if model else None
    by_set: dict[str, list[Pool]] = {}
    paths = sorted(p.parent for p in options.folder.glob("*/corpus.jsonl"))
    loaded = {path.name: sets.load(path) for path in paths}
    for path in paths:
        by_set[path.name] = pools(loaded[path.name], cached, options.questions, strangers_to(path.name, loaded))
        sys.stderr.write(f"{path.name}: {len(by_set[path.name])} questions\n")
    names = list(by_set)
    out = sys.stdout
    weights = climb(list(by_set.values()), fit_order(list(by_set.values())))
    out.write("weights " + repr({n: round(float(w), 2) for n, w in zip(WEIGHTS, weights, strict=True)}) + "\n")
    out.write("set                    fitted  left out  better leg\n")
    for name in names:
        alone = fit_order([by_set[n] for n in names if n != name])
        figures = mean_ndcg(by_set[name], weights), mean_ndcg(by_set[name], alone), best_leg(by_set[name])
        out.write(f"{name:<22} " + "  ".join(f"{f:.4f}" for f in figures) + "\n")
    for title, table, words_only in (("CONFIDENCE", CONFIDENCE, False), ("CONFIDENCE_WORDS", CONFIDENCE_WORDS, True)):
        parts = {name: shown(by_set[name], table, words_only=words_only) for name in names}
        fitted = fit_confidence(list(parts.values()))
        out.write(f"{title} " + repr({n: round(float(w), 3) for n, w in zip(table, fitted, strict=True)}) + "\n")
        for name in names:
            alone = fit_confidence([parts[n] for n in names if n != name])
            out.write(f"{name:<22} calibration error {calibration_error(parts[name], fitted):.3f}")
            out.write(f", left out {calibration_error(parts[name], alone):.3f}\n")


if __name__ == "__main__":
    main()
