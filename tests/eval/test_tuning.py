"""Fitting: what was planted is found again."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.eval.sets import EvalSet, Question
from recollect.eval.tuning import Array, Pool, best_leg, fit_confidence, fit_order, mean_ndcg, strangers_to

PLANTED = np.array([2.0, -1.0, 0.0])


def pool(rng: np.random.Generator, planted: Array) -> Pool:
    """Eight passages, of which the best by the planted weights is the relevant one; both legs are blind."""
    known = rng.normal(size=(8, len(planted)))
    best = int(np.argmax(known @ planted))
    paths = tuple(f"{i}.md" for i in range(8))
    blind = np.arange(8.0)
    return Pool(known, np.arange(8) == best, paths, {paths[best]: 1}, {"lexical": blind, "vector": -blind}, ())


def many(seed: int, planted: Array = PLANTED) -> list[Pool]:
    rng = np.random.default_rng(seed)
    return [pool(rng, planted) for _ in range(60)]


def test_the_order_that_was_planted_is_found_again() -> None:
    fitted = fit_order([many(1), many(2)])
    likeness = fitted @ PLANTED / np.linalg.norm(fitted) / np.linalg.norm(PLANTED)
    assert likeness > 0.99
    unseen = many(3)
    assert mean_ndcg(unseen, fitted) > 0.95 > best_leg(unseen)


def test_a_large_set_counts_no_more_than_a_small_one() -> None:
    rng = np.random.default_rng(4)
    other = [pool(rng, -PLANTED) for _ in range(6)]
    fitted = fit_order([many(1), other])
    alone = fit_order([[*many(1), *other]])
    assert abs(fitted @ PLANTED) < 0.5 * abs(alone @ PLANTED), "two sets that disagree cancel out, whatever their size"


def test_a_question_without_a_relevant_passage_teaches_no_order() -> None:
    silent = [Pool(p.features, np.zeros(8, dtype=bool), p.paths, {}, p.legs, ()) for p in many(5)]
    assert fit_order([[*many(1), *silent]]) == pytest.approx(fit_order([many(1)]))


def test_the_confidence_that_was_planted_is_found_again() -> None:
    rng = np.random.default_rng(6)
    planted = np.array([-1.0, 2.0, -0.5])

    def part(count: int) -> tuple[Array, Array]:
        known = np.column_stack([np.ones(count), rng.normal(size=(count, 2))])
        likely = 1 / (1 + np.exp(-known @ planted))
        return known, (rng.random(count) < likely).astype(float)

    assert fit_confidence([part(20_000), part(20_000)]) == pytest.approx(planted, abs=0.06)


def test_strangers_come_in_turn_from_every_other_set_and_none_from_the_set_itself() -> None:
    loaded = {
        name: EvalSet(name, tuple(Question(f"{name}{i}", f"{name} {i}") for i in range(count)))
        for name, count in (("a", 40), ("b", 40), ("c", 2))
    }
    found = [q.id for q in strangers_to("a", loaded, each=4)]
    assert found == ["b0", "c0", "b10", "c1", "b20", "b30"]
    assert not {q.id for q in loaded["b"].questions} & {q.id for q in strangers_to("b", loaded)}
    assert strangers_to("a", {"a": loaded["a"]}) == []
