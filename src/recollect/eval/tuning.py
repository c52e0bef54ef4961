"""Fits the tables of `search.combine` on labelled sets, and checks them on the set left out.

    python -m recollect.eval.tuning SETS_FOLDER [--cache DIR] [--questions 800] [--save FILE]

The order is a conditional logit (which passage of the pool is the relevant one?), every set weighing the same,
then a short climb on nDCG@10 itself that is punished where a leg alone would have been better and for every step
away from the logit. The confidence is a plain logistic regression on the first hits of that order. Prints the tables
to paste, and for every set the figure of the same procedure on the other sets; `--save` keeps both for QUALITY.md.
"""

from __future__ import annotations

import argparse
import json
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
    question_evidence,
)
from recollect.types import Candidate

Array = NDArray[np.float64]
SHOWN = 6
DEPTH = 10
# A day that was named decides whatever else speaks for a passage: given, as only one set could teach it.
GIVEN = {"date": 10.0}
# What a set under its better leg costs, from which lead on, and what it costs to leave the logit.
SHORT, SAFE, MOVED = 2.0, 0.002, 0.005


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
        own = questions.get(name, [])
        step = max(1, -(-len(one.questions) // most))
        questions[name] = [*(replace(q, grades={}, spans=()) for q in others), *own[::step]]
    for name, memory in runner.memories(one, model, None, lambda *_: None):
        for question in questions.get(name, ()):
            ranked = memory.rank(
                question.text, profile="default", limit=runner.DEPTH, now=question.now or runner.FALLBACK_NOW
            )
            rows = sorted(ranked.trace.candidates.values(), key=lambda c: c.id)
            if not rows:
                continue
            found.append(
                Pool(
                    known(rows, question_evidence(rows)),
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


def known(candidates: Sequence[Candidate], question: Mapping[str, float]) -> Array:
    """The features of passages, a row each, in the order of the weights."""
    return np.array([list(features(c, question).values()) for c in candidates])


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


def totals(known: Array, weights: Array) -> Array:
    """What `combine.total` makes of features: a leg whose weight is negative for a question counts nothing."""
    names = list(WEIGHTS)
    lexical = [i for i, name in enumerate(names) if name.startswith("lexical·")]
    vector = [i for i, name in enumerate(names) if name.startswith("vector·")]
    rest = [i for i in range(len(names)) if i not in (*lexical, *vector)]
    meaning = known[:, vector] @ weights[vector]
    counts = meaning * known[:, names.index("vector·always")] > 0  # the same sign as the weight of the leg
    words = np.maximum(0.0, known[:, lexical] @ weights[lexical])
    return np.asarray(words + np.where(counts, meaning, 0.0) + known[:, rest] @ weights[rest])


def best_leg(found: Sequence[Pool]) -> float:
    """The better of the two legs alone."""
    answerable = [p for p in found if p.grades]
    return max(sum(ndcg(p, p.legs[leg]) for p in answerable) / len(answerable) for leg in ("lexical", "vector"))


@dataclass(frozen=True, slots=True)
class Stack:
    """All answerable questions of a set in flat arrays: rows are passages, by question and then by file."""

    features: Array
    relevant: Array
    question: NDArray[np.int64]
    first_rows: NDArray[np.int64]
    wanted: NDArray[np.int64]
    rivals: NDArray[np.int64]
    first_rivals: NDArray[np.int64]
    gains: Array
    asked: NDArray[np.int64]
    ideal: Array
    better_leg: float

    def ndcg(self, scores: Array) -> float:
        """The mean nDCG@10 of files, in milliseconds; equal scores share their places."""
        best = np.maximum.reduceat(scores, self.first_rows)
        lead = best[self.rivals] - np.repeat(best[self.wanted], self._sizes())
        above = np.add.reduceat(np.where(lead > 0, 1.0, np.where(lead == 0, 0.5, 0.0)), self.first_rivals) - 0.5
        gain = np.where(above < DEPTH, self.gains / np.log2(above + 2), 0.0)
        return float(np.mean(np.bincount(self.asked, gain, minlength=len(self.ideal)) / self.ideal))

    def _sizes(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.first_rivals, len(self.rivals)))


def stack(found: Sequence[Pool]) -> Stack:
    """The pools of a set as flat arrays; pools without an answer teach no order and are left out."""
    answerable = [p for p in found if any(grade > 0 for grade in p.grades.values())]
    parts: dict[str, list[Any]] = {name: [] for name in ("x", "relevant", "question", "rows", "rivals", "ideal")}
    wanted, gains, asked, first_rivals = [], [], [], []
    rows = files = rivals = 0
    for number, pool in enumerate(answerable):
        ids: dict[str, int] = {}
        file = np.array([ids.setdefault(path, len(ids)) for path in pool.paths])
        order = np.argsort(file, kind="stable")
        parts["x"].append(pool.features[order])
        parts["relevant"].append(pool.relevant[order])
        parts["question"].append(np.full(len(file), number))
        parts["rows"].append(rows + np.flatnonzero(np.diff(file[order], prepend=-1)))
        best = sorted((grade for grade in pool.grades.values() if grade > 0), reverse=True)[:DEPTH]
        parts["ideal"].append(sum(grade / np.log2(place + 2) for place, grade in enumerate(best)))
        for path, grade in pool.grades.items():
            if grade > 0 and path in ids:
                wanted.append(files + ids[path])
                gains.append(float(grade))
                asked.append(number)
                first_rivals.append(rivals)
                parts["rivals"].append(np.arange(files, files + len(ids)))
                rivals += len(ids)
        rows += len(file)
        files += len(ids)
    return Stack(
        np.concatenate(parts["x"]),
        np.concatenate(parts["relevant"]).astype(float),
        np.concatenate(parts["question"]),
        np.concatenate(parts["rows"]),
        np.array(wanted),
        np.concatenate(parts["rivals"]),
        np.array(first_rivals),
        np.array(gains),
        np.array(asked),
        np.array(parts["ideal"]),
        best_leg(answerable),
    )


def fit_order(stacks: Sequence[Stack], *, fixed: Mapping[int, float] | None = None, ridge: float = 1e-3) -> Array:
    """Conditional logit by Newton's method: the log-chance that the best of the pool is a relevant passage.

    `fixed` weights are given, not fitted.
    """
    kept = [_taught(s) for s in stacks]
    data = np.concatenate([x for x, _, _ in kept])
    relevant = np.concatenate([r for _, r, _ in kept])
    share = np.concatenate([np.full(int(q[-1]) + 1, 1 / (int(q[-1]) + 1) / len(kept)) for _, _, q in kept])
    sizes = np.concatenate([np.bincount(q) for _, _, q in kept])
    starts, which = np.append(0, np.cumsum(sizes)[:-1]), np.repeat(np.arange(len(sizes)), sizes)
    scale = data.std(axis=0) + 1e-9
    data = data / scale
    weights = np.zeros(data.shape[1])
    free = np.array([i not in (fixed or {}) for i in range(len(weights))])
    for place, value in (fixed or {}).items():
        weights[place] = value * scale[place]

    def lost(trial: Array) -> tuple[float, Array, Array]:
        scores = data @ trial
        likely = np.exp(scores - np.maximum.reduceat(scores, starts)[which])
        wanted = likely * relevant
        every, right = np.add.reduceat(likely, starts), np.maximum(np.add.reduceat(wanted, starts), 1e-300)
        value = float(share @ (np.log(every) - np.log(right)) + ridge * trial[free] @ trial[free])
        return value, likely / every[which], wanted / right[which]

    value, likely, right = lost(weights)
    for _ in range(40):
        slope = data.T @ (share[which] * (likely - right)) + 2 * ridge * weights
        centre = np.add.reduceat(data * likely[:, None], starts)
        curve = (data * (share[which] * likely)[:, None]).T @ data - (centre * share[:, None]).T @ centre
        curve += (2 * ridge + 1e-6) * np.eye(len(weights))
        step = np.zeros(len(weights))
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        length, before = 1.0, value
        while length > 1e-3 and (found := lost(weights - length * step))[0] >= before:
            length /= 2
        if length <= 1e-3:
            break
        weights, (value, likely, right) = weights - length * step, found
        if before - value < 1e-8:
            break
    return np.asarray(weights / scale)


def _taught(one: Stack) -> tuple[Array, Array, NDArray[np.int64]]:
    """The rows of questions that have both relevant passages and others, the questions numbered anew."""
    right = np.bincount(one.question, one.relevant)
    useful = (right > 0) & (right < np.bincount(one.question))
    rows = useful[one.question]
    return one.features[rows], one.relevant[rows], (np.cumsum(useful) - 1)[one.question[rows]]


def climb(
    stacks: Sequence[Stack], weights: Array, *, fixed: Mapping[int, float] | None = None, rounds: int = 5
) -> Array:
    """Coordinate steps on the mean nDCG@10, with a penalty for every set where a leg alone is better, and a small
    one for the way from where it began.
    """
    scales = np.mean([s.features.std(axis=0) for s in stacks], axis=0)
    begun, whole = weights, float(np.linalg.norm(weights * scales))

    def value(trial: Array, scores: Sequence[Array]) -> float:
        figures = [s.ndcg(one) for s, one in zip(stacks, scores, strict=True)]
        short = sum(max(0.0, s.better_leg + SAFE - f) for s, f in zip(stacks, figures, strict=True))
        moved = float(np.sum(((trial - begun) * scales / whole) ** 2))
        return sum(figures) / len(figures) - SHORT * short - MOVED * moved

    scores = [s.features @ weights for s in stacks]
    best = value(weights, scores)
    step = np.maximum(np.abs(weights) * 0.25, whole / np.maximum(scales, 1e-9) / 200)
    for _ in range(rounds):
        for i in (i for i in range(len(weights)) if i not in (fixed or {})):
            for move in (1.0, -1.0, 0.5, -0.5):
                trial = weights.copy()
                trial[i] += move * step[i]
                moved = [s.features[:, i] * (move * step[i]) + one for s, one in zip(stacks, scores, strict=True)]
                if (reached := value(trial, moved)) > best + 1e-5:
                    best, weights, scores = reached, trial, moved
                    break
        step *= 0.6
    return weights


def fit(stacks: Sequence[Stack]) -> Array:
    """The whole procedure, which is also what is left out and checked."""
    fixed = {list(WEIGHTS).index(name): value for name, value in GIVEN.items()}
    return climb(stacks, fit_order(stacks, fixed=fixed), fixed=fixed)


def shown(
    found: Sequence[Pool], weights: Array, table: Mapping[str, float], *, words_only: bool
) -> tuple[Array, Array]:
    """The confidence features of the first hits of every question under an order, and whether each is relevant."""
    rows, labels = [], []
    for pool in found:
        candidates = (
            [_without_vector(c) for c in pool.candidates if "lexical" in c.ranks] if words_only else pool.candidates
        )
        relevant = dict(zip((c.id for c in pool.candidates), pool.relevant, strict=True))
        if not candidates:
            continue
        question = question_evidence(candidates)
        reached = totals(known(candidates, question) if words_only else pool.features, weights)
        for i in np.argsort(-reached, kind="stable")[:SHOWN]:
            named = confidence_features(candidates[i], question, float(reached[i]), float(reached.max()))
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
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recollect" / "eval")
    parser.add_argument("--questions", type=int, default=800, help="of a larger set, every n-th question")
    parser.add_argument("--save", type=Path, help="keep the tables and figures as JSON")
    options = parser.parse_args(arguments)
    model = embedder("auto", threads=1)
    cached = CachedEmbedder(model, options.cache / "vectors.sqlite") if model else None
    by_set: dict[str, list[Pool]] = {}
    paths = sorted(p.parent for p in options.folder.glob("*/corpus.jsonl"))
    loaded = {path.name: sets.load(path) for path in paths}
    for path in paths:
        by_set[path.name] = pools(loaded[path.name], cached, options.questions, strangers_to(path.name, loaded))
        sys.stderr.write(f"{path.name}: {len(by_set[path.name])} questions\n")
    out = sys.stdout
    stacks = {name: stack(found) for name, found in by_set.items()}
    weights = rounded(WEIGHTS, fit(list(stacks.values())))
    tables = {"WEIGHTS": weights}
    out.write(f"WEIGHTS {weights}\n{'set':<22} fitted  left out  better leg\n")
    figures: dict[str, dict[str, float]] = {}
    for name, one in stacks.items():
        alone = fit([other for n, other in stacks.items() if n != name])
        figures[name] = {
            "fitted": one.ndcg(totals(one.features, np.array(list(weights.values())))),
            "left_out": one.ndcg(totals(one.features, alone)),
            "better_leg": one.better_leg,
        }
        out.write(f"{name:<22} " + "  ".join(f"{f:.4f}" for f in figures[name].values()) + "\n")
        out.flush()
    means = {key: sum(f[key] for f in figures.values()) / len(figures) for key in next(iter(figures.values()))}
    out.write(f"{'mean':<22} " + "  ".join(f"{f:.4f}" for f in means.values()) + "\n")
    for title, table, words_only in (("CONFIDENCE", CONFIDENCE, False), ("CONFIDENCE_WORDS", CONFIDENCE_WORDS, True)):
        order = np.array(list(weights.values()))
        parts = {name: shown(found, order, table, words_only=words_only) for name, found in by_set.items()}
        tables[title] = rounded(table, fit_confidence(list(parts.values())))
        out.write(f"{title} {tables[title]}\n")
        for name, part in parts.items():
            alone = fit_confidence([other for n, other in parts.items() if n != name])
            error = calibration_error(part, np.array(list(tables[title].values())))
            apart = calibration_error(part, alone)
            out.write(f"{name:<22} calibration error {error:.3f}, left out {apart:.3f}\n")
            if not words_only:
                figures[name] |= {"calibration": error, "calibration_left_out": apart}
    if options.save:
        kept = {"questions": options.questions, "tables": tables, "sets": figures}
        options.save.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def rounded(table: Mapping[str, float], weights: Array) -> dict[str, float]:
    """A table of two decimals, as it is pasted."""
    return {name: round(float(weight), 2) for name, weight in zip(table, weights, strict=True)}


if __name__ == "__main__":
    main()
