"""Fits the weights of `search.combine` on labelled sets, and checks them on the set left out.

    python tools/tune.py SETS_FOLDER [--cache DIR] [--questions 400] [--save FILE]

The order is a conditional logit (which passage of the pool is the relevant one?), with the same
weight for every set, followed by a hill climb on nDCG@10 itself, with a penalty where one leg alone
would be better and for every step away from the logit. Prints the table to paste, and for each set
the figure that the same procedure reaches when fitted on the other sets; `--save` writes both for
QUALITY.md. `confidence.py` fits the confidence.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.embed.cached import CachedEmbedder
from notewell.embed.registry import embedder
from notewell.eval import metrics, runner, sets
from notewell.search.combine import (
    BY_TRUST,
    LEXICAL,
    OTHER,
    VECTOR,
    WEIGHTS,
    columns,
    question_evidence,
)
from notewell.types import Candidate

Array = NDArray[np.float64]
DEPTH = 10
# Fixed: a day that the question names decides, whatever else there is, and only one set could teach
# it; what a model of Latin letters makes of other scripts, since the default model reads them.
GIVEN = {"date": 10.0, "foreign": 1.53}
# The penalty for a set below its better leg, the lead that avoids it, and the penalty for leaving
# the logit.
SHORT, SAFE, MOVED = 2.0, 0.002, 0.005
STEPS, CLIMBS = 1200, 3


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one question: the features of each, and which are relevant."""

    features: Array
    relevant: NDArray[np.bool_]
    paths: tuple[str, ...]
    grades: Mapping[str, int]
    legs: Mapping[str, Array]
    candidates: tuple[Candidate, ...]


def pools(
    one: sets.EvalSet, model: Any, most: int, strangers: Sequence[sets.Question] = ()
) -> list[Pool]:
    """The pools of a set's questions, and of `strangers`: questions of other sets, which nothing
    here answers.
    """
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
            ranked = memory.searcher.rank(
                question.text,
                profile="default",
                limit=runner.DEPTH,
                now=question.now or runner.FALLBACK_NOW,
            )
            rows = sorted(ranked.trace.candidates.values(), key=lambda c: c.id)
            if not rows:
                continue
            found.append(
                Pool(
                    features(rows, question_evidence(rows)),
                    np.array([runner.relevant(c.chunk, question) for c in rows]),
                    tuple(c.chunk.path for c in rows),
                    question.grades,
                    {
                        leg: np.array(
                            [c.ranks[leg].score if leg in c.ranks else -1e9 for c in rows]
                        )
                        for leg in ("lexical", "vector")
                    },
                    tuple(rows),
                )
            )
    return found


def features(candidates: Sequence[Candidate], question: Mapping[str, float]) -> Array:
    """What the total of each passage is the weighted sum of: a row for each, in the order of
    `WEIGHTS`.
    """
    signals = columns(candidates, question)
    cosine = signals["z"] / signals["noise"]
    text = signals["text"] / (question["reached"] or 1.0) * question["covered"] * question["trust"]
    found = {f"lexical·{name}": text * question[name] for name in LEXICAL}
    found |= {
        f"vector·{name}": cosine * (1.0 - signals["foreign"]) * question[name] for name in VECTOR
    }
    found["vector·rare"] *= question["covered"] * question["trust"]
    found |= {
        name: signals[name] * (question["trust"] if name in BY_TRUST else 1.0) for name in OTHER
    }
    found["foreign"] = cosine * signals["foreign"]
    return np.stack([found[name] for name in WEIGHTS], axis=1)


def strangers_to(
    name: str, loaded: Mapping[str, sets.EvalSet], *, each: int = 2
) -> list[sets.Question]:
    """A few questions of each other set in turn; from all sets, since those in the same language
    mislead the most.
    """
    rows = [
        one.questions[:: max(1, len(one.questions) // each)][:each]
        for other, one in loaded.items()
        if other != name
    ]
    return [q for turn in zip_longest(*rows) for q in turn if q is not None]


def ndcg(pool: Pool, scores: Array) -> float:
    """The nDCG@10 of files, with the pool in the order of these scores."""
    order = np.argsort(-scores, kind="stable")
    return metrics.ndcg(
        list(dict.fromkeys(pool.paths[i] for i in order if scores[i] > -1e8)), pool.grades
    )


def totals(features: Array, weights: Array) -> Array:
    """What the fusion makes of features: a leg whose weight is negative for a question counts
    nothing.
    """
    names = list(WEIGHTS)
    lexical = [i for i, name in enumerate(names) if name.startswith("lexical·")]
    vector = [i for i, name in enumerate(names) if name.startswith("vector·")]
    rest = [i for i in range(len(names)) if i not in (*lexical, *vector)]
    meaning = features[:, vector] @ weights[vector]
    # the same sign as the weight of the leg
    counts = meaning * features[:, names.index("vector·always")] > 0
    words = np.maximum(0.0, features[:, lexical] @ weights[lexical])
    return np.asarray(words + np.where(counts, meaning, 0.0) + features[:, rest] @ weights[rest])


def best_leg(found: Sequence[Pool]) -> float:
    """The nDCG@10 of the better leg alone."""
    answerable = [p for p in found if p.grades]
    return max(
        sum(ndcg(p, p.legs[leg]) for p in answerable) / len(answerable)
        for leg in ("lexical", "vector")
    )


@dataclass(frozen=True, slots=True)
class Stack:
    """All answerable questions of a set in flat arrays: rows are passages, by question and then by
    file.
    """

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
        """The mean nDCG@10 of files, computed in milliseconds; files with equal scores share their
        ranks.
        """
        best = np.maximum.reduceat(scores, self.first_rows)
        lead = best[self.rivals] - np.repeat(best[self.wanted], self._sizes())
        above = (
            np.add.reduceat(
                np.where(lead > 0, 1.0, np.where(lead == 0, 0.5, 0.0)), self.first_rivals
            )
            - 0.5
        )
        gain = np.where(above < DEPTH, self.gains / np.log2(above + 2), 0.0)
        return float(np.mean(np.bincount(self.asked, gain, minlength=len(self.ideal)) / self.ideal))

    def _sizes(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.first_rivals, len(self.rivals)))


def stack(found: Sequence[Pool]) -> Stack:
    """The pools of a set as flat arrays, without those that have no answer: they teach no order."""
    answerable = [p for p in found if any(grade > 0 for grade in p.grades.values())]
    parts: dict[str, list[Any]] = {
        name: [] for name in ("x", "relevant", "question", "rows", "rivals", "ideal")
    }
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


def fit_order(
    stacks: Sequence[Stack], *, fixed: Mapping[int, float] | None = None, ridge: float = 1e-3
) -> Array:
    """A conditional logit by Newton's method: the log of the chance that the best of the pool is
    relevant.

    The weights in `fixed` are given, not fitted.
    """
    parts = [_taught(s) for s in stacks]
    data = np.concatenate([x for x, _, _ in parts])
    relevant = np.concatenate([r for _, r, _ in parts])
    share = np.concatenate(
        [np.full(int(q[-1]) + 1, 1 / (int(q[-1]) + 1) / len(parts)) for _, _, q in parts]
    )
    sizes = np.concatenate([np.bincount(q) for _, _, q in parts])
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
        every, right = (
            np.add.reduceat(likely, starts),
            np.maximum(np.add.reduceat(wanted, starts), 1e-300),
        )
        value = float(share @ (np.log(every) - np.log(right)) + ridge * trial[free] @ trial[free])
        return value, likely / every[which], wanted / right[which]

    value, likely, right = lost(weights)
    for _ in range(40):
        slope = data.T @ (share[which] * (likely - right)) + 2 * ridge * weights
        centre = np.add.reduceat(data * likely[:, None], starts)
        curve = (data * (share[which] * likely)[:, None]).T @ data - (
            centre * share[:, None]
        ).T @ centre
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
    """The rows of the questions that have both relevant passages and others, with the questions
    renumbered.
    """
    right = np.bincount(one.question, one.relevant)
    useful = (right > 0) & (right < np.bincount(one.question))
    rows = useful[one.question]
    return one.features[rows], one.relevant[rows], (np.cumsum(useful) - 1)[one.question[rows]]


def value_of(
    stacks: Sequence[Stack], weights: Array, *, scored: Callable[[Array, Array], Array] = totals
) -> float:
    """The mean nDCG@10, less a penalty for each set where one leg is better."""
    figures = [s.ndcg(scored(s.features, weights)) for s in stacks]
    short = sum(max(0.0, s.better_leg + SAFE - f) for s, f in zip(stacks, figures, strict=True))
    return sum(figures) / len(figures) - SHORT * short


def climb(
    stacks: Sequence[Stack],
    weights: Array,
    *,
    fixed: Mapping[int, float] | None = None,
    scored: Callable[[Array, Array], Array] = totals,
    seed: int = 0,
) -> Array:
    """Random steps on the mean nDCG@10, with penalties for each set where one leg is better, and
    for distance.

    A step moves about a third of the weights at once: alone, few of them lead anywhere. Steps grow
    while they help.
    """
    scales = np.mean([s.features.std(axis=0) for s in stacks], axis=0)
    start, length = weights, float(np.linalg.norm(weights * scales))
    step = np.maximum(np.abs(weights), length / np.maximum(scales, 1e-9) / 30)
    step[list(fixed or {})] = 0.0

    def value(trial: Array) -> float:
        moved = float(np.sum(((trial - start) * scales / length) ** 2))
        return value_of(stacks, trial, scored=scored) - MOVED * moved

    dice, best, size = np.random.default_rng(seed), value(weights), 0.15
    for _ in range(STEPS):
        trial = (
            weights
            + dice.normal(size=len(weights)) * (dice.random(len(weights)) < 0.35) * step * size
        )
        if (reached := value(trial)) > best:
            best, weights, size = reached, trial, min(0.4, size * 1.3)
        else:
            size = max(0.02, size * 0.985)
    return weights


def fit(stacks: Sequence[Stack]) -> Array:
    """The procedure, run on all sets and again without each of them: the best end of several climbs
    from the logit.
    """
    fixed = {list(WEIGHTS).index(name): value for name, value in GIVEN.items()}
    start = fit_order(stacks, fixed=fixed)
    ends = [climb(stacks, start, fixed=fixed, seed=seed) for seed in range(CLIMBS)]
    return max(ends, key=lambda weights: value_of(stacks, weights))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits on all sets of a folder, and prints the tables and how they do on a set that was left
    out.
    """
    parser = argparse.ArgumentParser(description="Fit the weights of the default profile.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "notewell" / "eval")
    parser.add_argument(
        "--questions",
        type=int,
        default=400,
        help="use at most so many questions of a set, evenly spaced",
    )
    parser.add_argument(
        "--save", type=Path, help="write the tables and figures to this file as JSON"
    )
    options = parser.parse_args(arguments)
    model = embedder("auto", threads=1)
    cached = CachedEmbedder(model, options.cache / "vectors.sqlite") if model else None
    by_set: dict[str, list[Pool]] = {}
    paths = sorted(p.parent for p in options.folder.glob("*/corpus.jsonl"))
    loaded = {path.name: sets.load(path) for path in paths}
    for path in paths:
        by_set[path.name] = pools(
            loaded[path.name], cached, options.questions, strangers_to(path.name, loaded)
        )
        sys.stderr.write(f"{path.name}: {len(by_set[path.name])} questions\n")
    out = sys.stdout
    stacks = {name: stack(found) for name, found in by_set.items()}
    weights = rounded(WEIGHTS, fit(list(stacks.values())))
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
    means = {
        key: sum(f[key] for f in figures.values()) / len(figures)
        for key in next(iter(figures.values()))
    }
    out.write(f"{'mean':<22} " + "  ".join(f"{f:.4f}" for f in means.values()) + "\n")
    if options.save:
        saved = {"questions": options.questions, "tables": {"WEIGHTS": weights}, "sets": figures}
        options.save.write_text(
            json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def rounded(table: Mapping[str, float], weights: Array) -> dict[str, float]:
    """A table with two decimals, ready to paste."""
    return {name: round(float(weight), 2) for name, weight in zip(table, weights, strict=True)}


if __name__ == "__main__":
    main()
