"""The measures, against `ir-measures`, against brute force and against numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, R, Success, nDCG

from notewell.eval.metrics import (
    Paired,
    auroc,
    hit,
    ndcg,
    paired_bootstrap,
    recall,
    reciprocal_rank,
    reliability,
)

DOCUMENTS = [f"d{i:02}" for i in range(30)]
rankings = st.lists(st.sampled_from(DOCUMENTS), max_size=20, unique=True)
labels = st.dictionaries(
    st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1, max_size=12
).filter(lambda grades: any(grades.values()))
ORACLES: dict[Any, Callable[[list[str], dict[str, int]], float]] = {
    nDCG @ 10: ndcg,
    R @ 5: lambda ranking, grades: recall(ranking, grades, 5),
    R @ 10: lambda ranking, grades: recall(ranking, grades, 10),
    RR @ 10: reciprocal_rank,
    **{Success @ k: partial(hit, k=k) for k in (1, 5, 6, 10)},
}


@settings(max_examples=60, deadline=None)
@given(ranking=rankings, grades=labels)
def test_the_measures_are_those_of_ir_measures(ranking: list[str], grades: dict[str, int]) -> None:
    run = {"q": {document: 100.0 - i for i, document in enumerate(ranking)} or {"none": 1.0}}
    theirs = ir_measures.calc_aggregate(list(ORACLES), {"q": grades}, run)
    ours = {measure: function(ranking, grades) for measure, function in ORACLES.items()}
    assert ours == pytest.approx(theirs)


def test_ndcg_by_hand() -> None:
    grades = {"a": 3, "b": 1}
    assert ndcg(["b", "x", "a"], grades) == pytest.approx((1 + 3 / 2) / (3 + 1 / math.log2(3)))
    assert ndcg(["a", "b"], grades) == 1.0
    assert ndcg(["x"] * 10 + ["a"], grades) == 0.0, "the eleventh does not count"
    assert ndcg(["a"], {}) == 0.0


def test_recall_hit_and_reciprocal_rank_by_hand() -> None:
    grades = {"a": 1, "b": 2, "c": 0}
    assert [recall(["c", "a", "x", "b"], grades, k) for k in (1, 2, 4)] == [0.0, 0.5, 1.0]
    assert [hit(["c", "a"], grades, k) for k in (1, 2)] == [0.0, 1.0]
    assert reciprocal_rank(["c", "x", "b"], grades) == pytest.approx(1 / 3)
    assert recall(["a"], {"a": 0}, 5) == 0.0


values = st.lists(st.integers(0, 6).map(lambda v: v / 6), min_size=1, max_size=15)


@given(positive=values, negative=values)
def test_auroc_is_the_share_of_pairs_in_order(positive: list[float], negative: list[float]) -> None:
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    assert auroc(positive, negative) == pytest.approx(sum(pairs) / len(pairs))


def test_auroc_of_nothing_is_no_number() -> None:
    assert math.isnan(auroc([], [0.5]))
    assert math.isnan(auroc([0.5], []))


def test_reliability_by_hand() -> None:
    table, error = reliability([(0.95, True), (1.0, False), (0.15, False), (0.12, False)])
    assert [(b.low, b.count, b.true) for b in table] == [(0.1, 2, 0.0), (0.9, 2, 0.5)]
    assert [b.promised for b in table] == pytest.approx([0.135, 0.975])
    assert error == pytest.approx((2 * 0.135 + 2 * 0.475) / 4)
    assert reliability([]) == ([], 0.0)


def test_a_promise_that_comes_true_has_no_error() -> None:
    assert reliability([(0.25, True), (0.25, False), (0.25, False), (0.25, False)])[1] == 0.0


def test_identical_systems_do_not_differ() -> None:
    same = [0.1, 0.9, 0.4]
    assert paired_bootstrap(same, same) == Paired(0.0, 0.0, 0.0, 1.0, 3)
    assert paired_bootstrap([], []) == Paired(0.0, 0.0, 0.0, 1.0, 0)


def test_a_system_that_is_clearly_better_has_a_small_p_and_an_interval_above_0() -> None:
    worse = [i / 100 for i in range(50)]
    better = [v + 0.1 + 0.001 * (i % 7) for i, v in enumerate(worse)]
    found = paired_bootstrap(better, worse)
    assert found.p <= 0.001
    assert 0 < found.low < found.difference < found.high
    turned = paired_bootstrap(worse, better)
    assert (turned.difference, turned.p) == (-found.difference, found.p)
    assert turned.high < 0


def test_a_difference_by_chance_is_not_called_clear() -> None:
    first = [float(i % 2) for i in range(40)]
    second = [float(i % 3 == 0) for i in range(40)]
    found = paired_bootstrap(first, second)
    assert found.p > 0.05
    assert found.low < 0 < found.high


def test_the_bootstrap_is_the_same_every_time() -> None:
    first, second = [0.1, 0.5, 0.9, 0.3], [0.2, 0.4, 0.9, 0.1]
    assert paired_bootstrap(first, second) == paired_bootstrap(first, second)
    assert paired_bootstrap(first, second, seed=8) != paired_bootstrap(first, second)


def test_two_systems_must_have_answered_the_same_questions() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_bootstrap([0.1], [0.1, 0.2])
