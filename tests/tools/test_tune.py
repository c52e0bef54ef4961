"""Fitting: what was planted is found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from notewell.eval.sets import EvalSet, Question
from notewell.search.combine import WEIGHTS, leg_weights, question_evidence
from notewell.types import Candidate
from tests.search.made import candidate, total
from tests.search.test_combine import meaning_, some
from tools.tune import (
    Array,
    Pool,
    best_leg,
    climb,
    features,
    fit_order,
    ndcg,
    stack,
    strangers_to,
    totals,
)

PLANTED = np.array([2.0, -1.0, 0.0])


def pool(rng: np.random.Generator, planted: Array) -> Pool:
    """Eight passages, of which the best by the planted weights is the relevant one; both legs are
    blind.
    """
    known = rng.normal(size=(8, len(planted)))
    best = int(np.argmax(known @ planted))
    paths = tuple(f"{i}.md" for i in range(8))
    blind = np.arange(8.0)
    return Pool(
        known,
        np.arange(8) == best,
        paths,
        {paths[best]: 1},
        {"lexical": blind, "vector": -blind},
        (),
    )


def many(seed: int, planted: Array = PLANTED) -> list[Pool]:
    rng = np.random.default_rng(seed)
    return [pool(rng, planted) for _ in range(60)]


def test_the_order_that_was_planted_is_found_again() -> None:
    fitted = fit_order([stack(many(1)), stack(many(2))])
    likeness = fitted @ PLANTED / np.linalg.norm(fitted) / np.linalg.norm(PLANTED)
    assert likeness > 0.99
    unseen = stack(many(3))
    assert unseen.ndcg(unseen.features @ fitted) > 0.95 > unseen.better_leg


def test_a_large_set_counts_no_more_than_a_small_one() -> None:
    rng = np.random.default_rng(4)
    other = [pool(rng, -PLANTED) for _ in range(6)]
    fitted = fit_order([stack(many(1)), stack(other)])
    alone = fit_order([stack([*many(1), *other])])
    assert abs(fitted @ PLANTED) < 0.5 * abs(alone @ PLANTED), (
        "two sets that disagree cancel out, whatever their size"
    )


def test_a_question_without_a_relevant_passage_teaches_no_order() -> None:
    silent = [Pool(p.features, np.zeros(8, dtype=bool), p.paths, {}, p.legs, ()) for p in many(5)]
    assert fit_order([stack([*many(1), *silent])]) == pytest.approx(fit_order([stack(many(1))]))


def test_a_given_weight_is_kept_and_the_others_are_fitted_around_it() -> None:
    one = stack(many(1))
    given = fit_order([one], fixed={0: 4.0})
    assert given[0] == 4.0
    assert given[1] == pytest.approx(-2.0, abs=0.2)
    assert climb([one], given, fixed={0: 4.0}, scored=np.matmul)[0] == 4.0


def test_a_climb_never_ends_under_where_it_began() -> None:
    one = stack(many(1))
    begun = np.array([0.3, 0.2, 0.5])
    assert one.ndcg(one.features @ climb([one], begun, scored=np.matmul)) > one.ndcg(
        one.features @ begun
    )


def test_the_flat_figure_is_the_mean_over_the_questions() -> None:
    rng = np.random.default_rng(7)
    paths = ("a.md", "b.md", "a.md", "c.md", "d.md", "b.md")
    asked = [
        Pool(
            rng.normal(size=(6, 3)),
            rng.random(6) < 0.5,
            paths,
            grades,
            {"lexical": known, "vector": -known},
            (),
        )
        for grades in ({"a.md": 1}, {"b.md": 2, "d.md": 1}, {"c.md": 1, "not found.md": 1}, {})
        for known in [np.arange(6.0)]
    ]
    one = stack(asked)
    expected = [ndcg(p, p.features @ PLANTED) for p in asked if p.grades]
    assert one.ndcg(one.features @ PLANTED) == pytest.approx(sum(expected) / 3)
    assert one.better_leg == best_leg([p for p in asked if p.grades])


@pytest.mark.parametrize("rare", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("z", [-2.0, 1.0, 9.0])
def test_totals_are_those_of_a_search(rare: float, z: float) -> None:
    shared = {"rare": rare, "noise": 3.0, "foreign": 0.0}
    own = [
        {"text": 0.5, "cover": 0.7, "near": 0.2, "window": 0.4, "z": z},
        {"text": 0.3, "cover": 0.2, "z": -1.0},
    ]
    found = [candidate(f"c{i}", signals={**shared, **signals}) for i, signals in enumerate(own)]
    question = question_evidence(found)
    expected = [total(c, question) for c in found]
    assert totals(features(found, question), np.array(list(WEIGHTS.values()))) == pytest.approx(
        expected
    )


@settings(deadline=None)
@given(some(meaning_))
def test_the_total_is_the_sum_over_the_tables(candidates: list[Candidate]) -> None:
    question = question_evidence(candidates)
    assume(min(leg_weights(question)) > 0)
    expected = features(candidates, question) @ np.array(list(WEIGHTS.values()))
    assert [total(c, question) for c in candidates] == pytest.approx(expected, abs=1e-9)


def test_strangers_come_in_turn_from_every_other_set_and_none_from_the_set_itself() -> None:
    loaded = {
        name: EvalSet(name, tuple(Question(f"{name}{i}", f"{name} {i}") for i in range(count)))
        for name, count in (("a", 40), ("b", 40), ("c", 2))
    }
    found = [q.id for q in strangers_to("a", loaded, each=4)]
    assert found == ["b0", "c0", "b10", "c1", "b20", "b30"]
    assert not {q.id for q in loaded["b"].questions} & {q.id for q in strangers_to("b", loaded)}
    assert strangers_to("a", {"a": loaded["a"]}) == []
