"""Ranking measures on plain lists (the tests compare them with `ir-measures`), and a paired
test.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

Grades = Mapping[str, int]


def ndcg(ranking: Sequence[str], grades: Grades, k: int = 10) -> float:
    """The discounted gain of the first `k` over the best possible; the gain is the grade."""
    got = sum(grades.get(doc, 0) / math.log2(i + 2) for i, doc in enumerate(ranking[:k]))
    best = sum(
        g / math.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:k])
    )
    return got / best if best else 0.0


def recall(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """The share of the relevant documents that is among the first `k`."""
    relevant = {doc for doc, grade in grades.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def hit(ranking: Sequence[str], grades: Grades, k: int) -> float:
    """1 if any of the first `k` is relevant."""
    return float(any(grades.get(doc, 0) > 0 for doc in ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], grades: Grades, k: int = 10) -> float:
    """One over the rank of the first relevant document; 0 if it is not among the first `k`."""
    return next((1 / (i + 1) for i, doc in enumerate(ranking[:k]) if grades.get(doc, 0) > 0), 0.0)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often a positive is above a negative, with ties as a half; NaN if either list is
    empty.
    """
    if not positive or not negative:
        return math.nan
    order = sorted([(v, 1) for v in positive] + [(v, 0) for v in negative])
    total, i = 0.0, 0
    for _, same in groupby(order, key=itemgetter(0)):
        labels = [label for _, label in same]
        total += (2 * i + len(labels) + 1) / 2 * sum(labels)
        i += len(labels)
    n = len(positive)
    return (total - n * (n + 1) / 2) / (n * len(negative))


@dataclass(frozen=True, slots=True)
class Bin:
    """The hits in one tenth of the confidence scale: how many, their mean confidence, and the share
    that is right.
    """

    low: float
    count: int
    promised: float
    true: float


def reliability(pairs: Sequence[tuple[float, bool]], bins: int = 10) -> tuple[list[Bin], float]:
    """The reliability table of (confidence, relevant) pairs and the expected calibration error."""
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, relevant in pairs:
        groups[min(bins - 1, int(confidence * bins))].append((confidence, relevant))
    table = [
        Bin(i / bins, len(g), sum(c for c, _ in g) / len(g), sum(r for _, r in g) / len(g))
        for i, g in enumerate(groups)
        if g
    ]
    error = sum(b.count * abs(b.promised - b.true) for b in table) / len(pairs) if pairs else 0.0
    return table, error


@dataclass(frozen=True, slots=True)
class Paired:
    """Two systems compared on the same questions: the mean difference, its 95 % interval and a
    two-sided p.
    """

    difference: float
    low: float
    high: float
    p: float
    questions: int


def paired_bootstrap(
    first: Sequence[float], second: Sequence[float], *, rounds: int = 2000, seed: int = 7
) -> Paired:
    """Resamples the questions; p is twice the share of rounds in which the mean difference changes
    sign.
    """
    differences = [a - b for a, b in zip(first, second, strict=True)]
    count = len(differences)
    if not count:
        return Paired(0.0, 0.0, 0.0, 1.0, 0)
    mean = sum(differences) / count
    draw = random.Random(seed)  # noqa: S311 - statistics, not secrets
    means = sorted(sum(draw.choices(differences, k=count)) / count for _ in range(rounds))
    against = sum(1 for m in means if (m <= 0 if mean > 0 else m >= 0))
    p = min(1.0, 2 * max(against, 1) / rounds) if mean else 1.0
    return Paired(mean, means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1], p, count)
