"""Fits the tables of `search.confidence` on labelled sets, and checks them on the set left out.

    python -m tools.confidence SETS_FOLDER [--cache DIR] [--questions 200] [--save FILE]

Asks each set its own questions, and some of every other set, which nothing in it answers. A logistic regression on the
first ten hits, with the same weight for every set, gives the shape; a second one with two numbers undoes what its ridge
has flattened. Prints the tables to paste, and for each set, by the tables that the other sets give: the calibration
error of the first six hits, how often the best hit of a question with an answer is surer than that of one without
(`none`) and of a question of another set (`other`), and the share of questions that lose a true hit to each cut.
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
TABLES = {"CONFIDENCE": confidence.CONFIDENCE, "CONFIDENCE_WORDS": confidence.CONFIDENCE_WORDS}
GIVEN = ("day",)
SEEN, SHOWN = 10, 6
CUTS = (0.01, 0.015, 0.02, 0.03, 0.04, 0.05)
RIDGE = 0.03
# What the questions without an answer count beside the set's own: those of other sets, and its own once more.
STRANGE, NONE = 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the features of its first hits, which of them are relevant, and what kind it is."""

    features: Array
    relevant: NDArray[np.bool_]
    kind: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How a table does on a set; NaN where the set has no such questions. `cut` has a share for each of `CUTS`."""

    calibration: float
    none: float
    other: float
    cut: tuple[float, ...]


def asked(one: sets.EvalSet, model: Any, most: int, others: Sequence[sets.Question]) -> dict[str, list[Asked]]:
    """The questions of a set and of others for both tables: for words alone, as if nothing had a vector."""
    found: dict[str, list[Asked]] = {name: [] for name in TABLES}
    for memory, question, kind in _questions(one, model, most, others):
        now = question.now or runner.FALLBACK_NOW
        ranked = memory.searcher.rank(question.text, profile="default", limit=runner.DEPTH, now=now)
        pool = sorted(ranked.trace.candidates.values(), key=lambda c: c.id)
        words = [_without_vector(c) for c in pool if "lexical" in c.ranks]
        query = Query(question.text, now, runner.DEPTH)
        for name, candidates in (("CONFIDENCE", pool), ("CONFIDENCE_WORDS", words)):
            if candidates and (name != "CONFIDENCE" or model is not None):
                found[name].append(_seen(candidates, query, question, kind, list(TABLES[name])))
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


def _seen(candidates: Sequence[Candidate], query: Query, question: sets.Question, kind: str, names: list[str]) -> Asked:
    """The first hits in the order in which they would be shown, with their features."""
    fused: Sequence[Candidate] = Combine()(candidates, query)
    known = confidence.features(fused, [c.signals.total or 0.0 for c in fused])
    rows = np.stack([np.broadcast_to(known[name], len(fused)) for name in names], axis=1).astype(float)
    place = {c.id: i for i, c in enumerate(fused)}
    for stage in PROFILES["default"].stages:
        if not isinstance(stage, Abstain | Cut):
            fused = list(stage(fused, query))
    first = fused[:SEEN]
    relevant = np.array([runner.relevant(c.chunk, question) for c in first])
    return Asked(rows[[place[c.id] for c in first]], relevant, kind)


def _without_vector(candidate: Candidate) -> Candidate:
    return replace(candidate, signals=candidate.signals._replace(z=None, cosine=None, lift=None))


def fit(by_set: Sequence[Sequence[Asked]], names: Sequence[str]) -> Array:
    """The weights of a table, in the order of its names; those in `GIVEN` stay as they are."""
    rows = [(one, share) for several in by_set for one, share in _shares(several, len(by_set))]
    data = np.concatenate([one.features for one, _ in rows])
    labels = np.concatenate([one.relevant for one, _ in rows]).astype(float)
    share = np.concatenate([np.full(len(one.relevant), part) for one, part in rows])
    given = np.array([TABLES["CONFIDENCE"][name] if name in GIVEN else 0.0 for name in names])
    free = np.array([name not in GIVEN for name in names])
    offset = data @ given
    weights = np.zeros(len(names))
    weights[free] = logistic(data[:, free], labels, share, offset=offset, ridge=RIDGE)
    flat = data @ weights
    bias, scale = logistic(np.stack([np.ones(len(flat)), flat], axis=1), labels, share, offset=offset, ridge=1e-6)
    weights *= scale
    weights[list(names).index("bias")] += bias
    return np.asarray(weights + given)


def _shares(several: Sequence[Asked], count: int) -> Iterator[tuple[Asked, float]]:
    """What one hit of each question counts: all sets the same, and within one by the kind of the question."""
    hits = {kind: sum(len(a.relevant) for a in several if a.kind == kind) for kind in ("own", "none", "other")}
    own = hits["own"] + hits["none"]
    share = {"own": 1 / max(1, own), "none": 1 / max(1, own) + NONE / max(1, hits["none"])}
    share["other"] = STRANGE / max(1, hits["other"])
    return ((a, share[a.kind] / count) for a in several)


def logistic(data: Array, labels: Array, share: Array, *, offset: Array | float = 0.0, ridge: float) -> Array:
    """A logistic regression by Newton's method; the ridge is on weights of columns scaled alike, not on the bias."""
    deviation = data.std(axis=0)
    constant = deviation < 1e-9
    centre, scale = np.where(constant, 0.0, data.mean(axis=0)), np.where(constant, 1.0, deviation)
    scaled, weights = (data - centre) / scale, np.zeros(data.shape[1])
    penalty = np.where(constant, 1e-9, 2 * ridge)
    for _ in range(50):
        likely = 1 / (1 + np.exp(-np.clip(scaled @ weights + offset, -40, 40)))
        slope = scaled.T @ (share * (likely - labels)) + penalty * weights
        curve = (scaled * (share * likely * (1 - likely))[:, None]).T @ scaled + np.diag(penalty + 1e-10)
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    found = weights / scale
    if constant.any():
        found[np.flatnonzero(constant)[0]] -= float((found * centre)[~constant].sum())
    return np.asarray(found)


def figures(several: Sequence[Asked], weights: Array) -> Figures:
    """How a table does on one set."""
    sure = [(a, 1 / (1 + np.exp(-np.clip(a.features @ weights, -40, 40)))) for a in several]
    best = {kind: [float(c[:SHOWN].max()) for a, c in sure if a.kind == kind] for kind in ("own", "none", "other")}
    pairs = [
        (float(c), bool(r)) for a, known in sure if a.kind != "other"
        for c, r in zip(known[:SHOWN], a.relevant[:SHOWN], strict=True)
    ]  # fmt: skip
    own = [(known[:SHOWN], a.relevant[:SHOWN]) for a, known in sure if a.kind == "own"]
    cut = tuple(sum(bool((r & (c < least)).any()) for c, r in own) / max(1, len(own)) for least in CUTS)
    error = metrics.reliability(pairs)[1]
    return Figures(error, metrics.auroc(best["own"], best["none"]), metrics.auroc(best["own"], best["other"]), cut)


def rounded(names: Sequence[str], weights: Array) -> dict[str, float]:
    """A table with two decimals, ready to paste."""
    return {name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)}


def fitted(by_set: Mapping[str, Sequence[Asked]], names: Sequence[str]) -> tuple[dict[str, float], dict[str, Figures]]:
    """A table fitted on all sets, and the figures of each set under the table of the others."""
    taught = {name: several for name, several in by_set.items() if any(a.relevant.any() for a in several)}
    left_out = {
        name: figures(several, fit([s for n, s in taught.items() if n != name], names))
        for name, several in by_set.items() if several
    }  # fmt: skip
    return rounded(names, fit(list(taught.values()), names)), left_out


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits on all sets of a folder, and prints the tables and how they do on a set that was left out."""
    parser = argparse.ArgumentParser(description="Fit the confidence of the default profile.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "notewell" / "eval")
    parser.add_argument(
        "--questions", type=int, default=200, help="use at most so many questions of a set, evenly spaced"
    )
    parser.add_argument("--others", type=int, default=8, help="how many questions of each other set to ask")
    parser.add_argument("--save", type=Path, help="write the tables and figures to this file as JSON")
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
    for title, table in TABLES.items():
        sides = {name: one[title] for name, one in by_set.items()}
        if not any(sides.values()):
            continue
        saved["tables"][title], left_out = fitted(sides, list(table))
        sys.stdout.write(f"{title} {saved['tables'][title]}\n")
        sys.stdout.write(f"{'left out':<22}   ECE  none  other   cut " + " ".join(f"{c:5.3f}" for c in CUTS) + "\n")
        for name, f in left_out.items():
            lost = " ".join(f"{share:5.3f}" for share in f.cut)
            sys.stdout.write(f"{name:<22} {f.calibration:.3f}  {f.none:.3f} {f.other:.3f}        {lost}\n")
            known = {key: value for key, value in asdict(f).items() if key != "cut" and not np.isnan(value)}
            saved["sets"].setdefault(name, {})[title] = known | {"cut": dict(zip(map(str, CUTS), f.cut, strict=True))}
    if options.save:
        options.save.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
