"""Fits the tables of `search.confidence` on labelled sets, and checks them on the set left out.

    python -m tools.confidence SETS_FOLDER [--cache DIR] [--questions 200] [--save FILE]

Asks each set its own questions, and some of every other set, which nothing in it answers. One
logistic regression tells questions that have an answer from those that have none; another tells
which of the first ten hits of a question with an answer are relevant. Every set has the same
weight. Prints the tables to paste, and for each set, by the tables that the other sets give: the
calibration error of the first six hits, how often the best hit of a question with an answer is
surer than that of one without (`none`) and of a question of another set (`other`), the share of
questions that lose a true hit to each cut, and how many questions of the set, and how many of
others, have no hit at each of some bars.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from notewell.embed.cached import CachedEmbedder
from notewell.embed.registry import embedder
from notewell.eval import metrics, runner, sets
from notewell.search import confidence
from notewell.search.combine import Combine
from notewell.search.profiles import PROFILES
from notewell.search.stages import Abstain, Cut
from notewell.types import Candidate, Query
from tools.tune import strangers_to

Array = NDArray[np.float64]
TABLES = {
    "ANSWERED": confidence.ANSWERED,
    "CONFIDENCE": confidence.CONFIDENCE,
    "ANSWERED_WORDS": confidence.ANSWERED_WORDS,
    "CONFIDENCE_WORDS": confidence.CONFIDENCE_WORDS,
}
SIDES = {"CONFIDENCE": "ANSWERED", "CONFIDENCE_WORDS": "ANSWERED_WORDS"}
GIVEN = "day"
SEEN, SHOWN = 10, 6
CUTS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05)
BARS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
ANSWERED_RIDGE, RIDGE = 0.003, 0.001
# What the questions without an answer count beside those of the set that have one.
STRANGE, NONE = 0.1, 0.02


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: its features, those of its first hits, which of them are relevant, and what
    kind it is.
    """

    question: Array
    features: Array
    relevant: NDArray[np.bool_]
    kind: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How tables do on a set; NaN where the set has no such questions.

    `cut` has a share for each of `CUTS`; `lost` and `refused` have one for each of `BARS`, of the
    questions with a true hit among the first six and of those of other sets.
    """

    calibration: float
    none: float
    other: float
    cut: tuple[float, ...]
    lost: tuple[float, ...]
    refused: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of both tables of a side, in the order of their names."""

    answered: Array
    passage: Array

    def sure(self, one: Asked) -> Array:
        """The confidence of each hit of a question."""
        return np.asarray(
            sigmoid(one.question @ self.answered) * sigmoid(one.features @ self.passage)
        )


def sigmoid(values: Any) -> Any:
    """The logistic function."""
    return 1 / (1 + np.exp(-np.clip(values, -40, 40)))


def asked(
    one: sets.EvalSet, model: Any, most: int, others: Sequence[sets.Question]
) -> dict[str, list[Asked]]:
    """The questions of a set and of others for both tables: for words alone, as if nothing had a
    vector.
    """
    found: dict[str, list[Asked]] = {name: [] for name in SIDES}
    for memory, question, kind in _questions(one, model, most, others):
        now = question.now or runner.FALLBACK_NOW
        ranked = memory.searcher.rank(question.text, profile="default", limit=runner.DEPTH, now=now)
        pool = sorted(ranked.trace.candidates.values(), key=lambda c: c.id)
        words = [_without_vector(c) for c in pool if "lexical" in c.ranks]
        query = Query(question.text, now, runner.DEPTH)
        for name, candidates in (("CONFIDENCE", pool), ("CONFIDENCE_WORDS", words)):
            if candidates and (name != "CONFIDENCE" or model is not None):
                found[name].append(_seen(candidates, query, question, kind, name))
    return found


def _questions(
    one: sets.EvalSet, model: Any, most: int, others: Sequence[sets.Question]
) -> Iterator[tuple[Any, sets.Question, str]]:
    step, names = max(1, -(-len(one.questions) // most)), sorted(one.corpora)
    for number, (name, memory) in enumerate(runner.memories(one, model, None, lambda *_: None)):
        for question in one.questions[::step]:
            if question.workspace == name:
                yield memory, question, "own" if question.answerable else "none"
        for question in others[number :: len(names)]:
            yield memory, replace(question, grades={}, spans=()), "other"


def _seen(
    candidates: Sequence[Candidate], query: Query, question: sets.Question, kind: str, side: str
) -> Asked:
    """The first hits in the order in which they would be shown, with their features."""
    fused: Sequence[Candidate] = Combine()(candidates, query)
    known = confidence.features(fused, [c.signals.total or 0.0 for c in fused], query.text)
    rows = np.stack(
        [np.broadcast_to(known[name], len(fused)) for name in TABLES[side]], axis=1
    ).astype(float)
    whole = np.array([known[name] for name in TABLES[SIDES[side]]], dtype=float)
    place = {c.id: i for i, c in enumerate(fused)}
    for stage in PROFILES["default"].stages:
        if not isinstance(stage, Abstain | Cut):
            fused = list(stage(fused, query))
    first = fused[:SEEN]
    relevant = np.array([runner.relevant(c.chunk, question) for c in first])
    return Asked(whole, rows[[place[c.id] for c in first]], relevant, kind)


def _without_vector(candidate: Candidate) -> Candidate:
    return replace(candidate, signals=candidate.signals._replace(z=None, cosine=None, lift=None))


def fit(by_set: Sequence[Sequence[Asked]], names: Sequence[str]) -> Weights:
    """The weights of both tables; that of `GIVEN`, among the names of the second, stays as it
    is.
    """
    rows = [(one, share / len(by_set)) for several in by_set for one, share in _shares(several)]
    labels = np.array([float(one.kind == "own") for one, _ in rows])
    whole = np.stack([one.question for one, _ in rows])
    answered = logistic(whole, labels, np.array([share for _, share in rows]), ridge=ANSWERED_RIDGE)
    own = [(one, share / len(one.relevant)) for one, share in rows if one.kind == "own"]
    data = np.concatenate([one.features for one, _ in own])
    relevant = np.concatenate([one.relevant for one, _ in own]).astype(float)
    share = np.concatenate([np.full(len(one.relevant), part) for one, part in own])
    given = np.array([TABLES["CONFIDENCE"][name] if name == GIVEN else 0.0 for name in names])
    free = np.array([name != GIVEN for name in names])
    weights = given.copy()
    weights[free] = logistic(data[:, free], relevant, share, offset=data @ given, ridge=RIDGE)
    return Weights(answered, weights)


def _shares(several: Sequence[Asked]) -> Iterator[tuple[Asked, float]]:
    """What each question counts by its kind: those of a set that have an answer count 1
    together.
    """
    share = {"own": 1.0, "none": NONE, "other": STRANGE}
    count = {kind: sum(a.kind == kind for a in several) for kind in share}
    return ((a, share[a.kind] / count[a.kind]) for a in several)


def logistic(
    data: Array, labels: Array, share: Array, *, offset: Array | float = 0.0, ridge: float
) -> Array:
    """A logistic regression by Newton's method; the ridge is on weights of columns scaled alike,
    not on the bias.
    """
    deviation = data.std(axis=0)
    constant = deviation < 1e-9
    centre, scale = np.where(constant, 0.0, data.mean(axis=0)), np.where(constant, 1.0, deviation)
    scaled, weights = (data - centre) / scale, np.zeros(data.shape[1])
    penalty = np.where(constant, 1e-9, 2 * ridge)
    for _ in range(50):
        likely = sigmoid(scaled @ weights + offset)
        slope = scaled.T @ (share * (likely - labels)) + penalty * weights
        curve = (scaled * (share * likely * (1 - likely))[:, None]).T @ scaled + np.diag(
            penalty + 1e-10
        )
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    found = weights / scale
    if constant.any():
        found[np.flatnonzero(constant)[0]] -= float((found * centre)[~constant].sum())
    return np.asarray(found)


def figures(several: Sequence[Asked], weights: Weights) -> Figures:
    """How tables do on one set."""
    sure = [(a, weights.sure(a)[:SHOWN], a.relevant[:SHOWN]) for a in several]
    best = {
        kind: [float(c.max()) for a, c, _ in sure if a.kind == kind]
        for kind in ("own", "none", "other")
    }
    pairs = [
        (float(c), bool(r))
        for a, known, relevant in sure
        if a.kind != "other"
        for c, r in zip(known, relevant, strict=True)
    ]
    own = [(c, r) for a, c, r in sure if a.kind == "own"]
    cut = tuple(
        sum(bool((r & (c < least)).any()) for c, r in own) / max(1, len(own)) for least in CUTS
    )
    lost = tuple(
        sum(bool(r.any() and c.max() < bar) for c, r in own) / max(1, len(own)) for bar in BARS
    )
    refused = tuple(
        sum(c < bar for c in best["other"]) / max(1, len(best["other"])) for bar in BARS
    )
    none, other = (metrics.auroc(best["own"], best[kind]) for kind in ("none", "other"))
    return Figures(metrics.reliability(pairs)[1], none, other, cut, lost, refused)


def rounded(names: Sequence[str], weights: Array) -> dict[str, float]:
    """A table with two decimals, ready to paste."""
    return {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}


def fitted(
    by_set: Mapping[str, Sequence[Asked]], names: Sequence[str]
) -> tuple[Weights, dict[str, Figures]]:
    """The weights fitted on all sets, and the figures of each set under those of the others."""
    taught = {
        name: several for name, several in by_set.items() if any(a.relevant.any() for a in several)
    }
    left_out = {
        name: figures(several, fit([s for n, s in taught.items() if n != name], names))
        for name, several in by_set.items()
        if several
    }
    return fit(list(taught.values()), names), left_out


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits on all sets of a folder, and prints the tables and how they do on a set that was left
    out.
    """
    parser = argparse.ArgumentParser(description="Fit the confidence of the default profile.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "notewell" / "eval")
    parser.add_argument(
        "--questions",
        type=int,
        default=200,
        help="use at most so many questions of a set, evenly spaced",
    )
    parser.add_argument(
        "--others", type=int, default=8, help="how many questions of each other set to ask"
    )
    parser.add_argument(
        "--save", type=Path, help="write the tables and figures to this file as JSON"
    )
    options = parser.parse_args(arguments)
    model = embedder("auto", threads=1)
    cached = CachedEmbedder(model, options.cache / "vectors.sqlite") if model else None
    paths = sorted(p.parent for p in options.folder.glob("*/corpus.jsonl"))
    loaded = {path.name: sets.load(path) for path in paths}
    by_set: dict[str, dict[str, list[Asked]]] = {}
    for name, one in loaded.items():
        others = strangers_to(name, loaded, each=options.others)
        by_set[name] = asked(one, cached, options.questions, others)
        sys.stderr.write(f"{name} asked\n")
    saved: dict[str, Any] = {"tables": {}, "sets": {}}
    shares = {"cut": CUTS, "lost": BARS, "refused": BARS}
    for title, whole in SIDES.items():
        sides = {name: one[title] for name, one in by_set.items()}
        if not any(sides.values()):
            continue
        weights, left_out = fitted(sides, list(TABLES[title]))
        for table, values in ((whole, weights.answered), (title, weights.passage)):
            saved["tables"][table] = rounded(list(TABLES[table]), values)
            sys.stdout.write(f"{table} {saved['tables'][table]}\n")
        columns = " ".join(
            f"{name} " + " ".join(f"{x:5.3f}" for x in at) for name, at in shares.items()
        )
        sys.stdout.write(f"{'left out':<22}   ECE  none  other  {columns}\n")
        for name, f in left_out.items():
            line = "  ".join(
                " " * len(of) + " ".join(f"{x:5.3f}" for x in getattr(f, of)) for of in shares
            )
            sys.stdout.write(
                f"{name:<22} {f.calibration:.3f}  {f.none:.3f} {f.other:.3f}  {line}\n"
            )
            known = {
                key: value
                for key, value in asdict(f).items()
                if key not in shares and not np.isnan(value)
            }
            at = {
                of: dict(zip(map(str, bars), getattr(f, of), strict=True))
                for of, bars in shares.items()
            }
            saved["sets"].setdefault(name, {})[title] = known | at
    if options.save:
        options.save.write_text(
            json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
