"""Scanning bytes finds what exact cosines find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from notewell.store.sqlite.vector_matrix import EXACT_ROWS, Matrix, Part, _best, to_blob, to_vector

DIM = 128


def units(count: int, seed: int, dim: int = DIM) -> Any:
    """Vectors around some directions, as a model's are."""
    dice = np.random.default_rng(seed)
    centres = dice.standard_normal((20, dim))
    made = centres[dice.integers(0, 20, count)] + 0.8 * dice.standard_normal((count, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def part(vectors: Any, first: int = 1) -> Part:
    return Part.of(
        list(range(first, first + len(vectors))), [to_blob(v) for v in vectors], vectors.shape[1]
    )


def matrix(vectors: Any) -> Matrix:
    return Matrix((0, 0), 0, vectors.shape[1], part(vectors), part(vectors[:0]))


def test_a_kept_vector_is_nearly_the_same_and_of_length_one() -> None:
    for vector in units(50, seed=1):
        again = to_vector(to_blob(vector), DIM)
        assert float(again @ vector) > 0.9998
        assert float(np.linalg.norm(again)) == pytest.approx(1.0, abs=1e-6)
    few = units(1, seed=2, dim=8)[0]
    assert np.array_equal(to_vector(to_blob(few), 8), few)
    assert not to_vector(to_blob(np.zeros(DIM, dtype=np.float32)), DIM).any()


@pytest.mark.parametrize("count", [EXACT_ROWS, 3 * EXACT_ROWS + 17])
def test_a_scan_with_a_second_look_is_the_exact_order_of_what_is_kept(count: int) -> None:
    vectors = units(count, seed=3)
    kept = np.stack([to_vector(to_blob(v), DIM) for v in vectors])
    whole = matrix(vectors)
    for question in units(20, seed=4):
        exact = (kept.astype(np.float64) @ question).round(6)
        best = np.lexsort((np.arange(count), -exact))[:50]
        found = whole.nearest(question, 50, None)
        assert [s.score for s in found.rows[:50]] == pytest.approx(exact[best].tolist(), abs=2e-6)
        assert len({s.row - 1 for s in found.rows[:50]} & set(best.tolist())) >= 49
        assert found.mean == pytest.approx(exact.mean(), abs=1e-3)
        assert found.deviation == pytest.approx(exact.std(), abs=1e-3)
        assert found.count == count


def test_recall_against_floats() -> None:
    vectors = units(3 * EXACT_ROWS, seed=5)
    whole = matrix(vectors)
    hits = 0
    for question in units(40, seed=6):
        best = np.argsort(-(vectors @ question))[:50]
        hits += len(
            {s.row - 1 for s in whole.nearest(question, 50, None).rows[:50]} & set(best.tolist())
        )
    assert hits / (40 * 50) >= 0.98


def test_filters_never_starve_it() -> None:
    vectors = units(2 * EXACT_ROWS, seed=7)
    question = units(1, seed=8)[0]
    worst = np.sort(np.argsort(vectors @ question)[:30] + 1)
    found = matrix(vectors).nearest(question, 10, worst)
    assert len(found.rows) == 10
    assert {s.row for s in found.rows} <= set(worst.tolist())
    assert matrix(vectors).nearest(question, 10, np.array([], dtype=np.int64)).rows == ()


def test_what_changed_is_seen_and_what_is_gone_is_not() -> None:
    vectors = units(EXACT_ROWS + 500, seed=9)
    question = vectors[3]
    before = matrix(vectors)
    assert before.nearest(question, 1, None).rows[0].row == 4
    after = before.changed((1, 0), 5, [4, 9000], part(question[None], first=9000))
    assert after.nearest(question, 1, None).rows[0].row == 9000
    assert after.nearest(question, 1, None).count == len(vectors)
    assert after.cosines(question, [4, 5, 9000]).keys() == {5, 9000}
    again = after.changed((2, 0), 6, [9000], part(vectors[:0]))
    assert again.cosines(question, [4, 9000]) == {}
    assert again.nearest(question, 1, None).rows[0].row not in (4, 9000)
    assert before.nearest(question, 1, None).rows[0].row == 4


def test_rows_may_share_a_code_and_stand_in_another_order() -> None:
    vectors = units(EXACT_ROWS + 500, seed=10)
    codes = part(vectors)
    dice = np.random.default_rng(1)
    slots = dice.integers(0, len(vectors), len(vectors) + 700)
    rows = np.arange(len(slots)) * 2 + 1
    mixed = Matrix((0, 0), 0, DIM, Part(rows, codes.codes, codes.scales, slots), part(vectors[:0]))
    plain = Matrix(
        (0, 0), 0, DIM, Part(rows, codes.codes[slots], codes.scales[slots]), part(vectors[:0])
    )
    for question in units(5, seed=11):
        gone, new = rows[:100].tolist(), part(question[None], first=2)
        for one, other in (
            (mixed, plain),
            (mixed.changed((1, 0), 1, gone, new), plain.changed((1, 0), 1, gone, new)),
        ):
            for allowed in (None, rows[::3]):
                found, wanted = (
                    one.nearest(question, 30, allowed),
                    other.nearest(question, 30, allowed),
                )
                assert (found.rows, found.count) == (wanted.rows, wanted.count)
                assert found.mean == pytest.approx(wanted.mean, abs=1e-4)
            assert one.cosines(question, [1, 2, 5, 999, 99_999]) == other.cosines(
                question, [1, 2, 5, 999, 99_999]
            )


@pytest.mark.parametrize("size", [1, 10, 300, 5_000, 300_000])
@pytest.mark.parametrize("count", [1, 7, 200])
def test_the_largest_are_found_with_their_ties(size: int, count: int) -> None:
    values = np.random.default_rng(size).random(size).round(5)
    least = np.sort(values)[::-1][min(count, size) - 1]
    assert set(_best(values, count, -np.inf).tolist()) == set(
        np.flatnonzero(values >= least).tolist()
    )
    bound = max(float(least), 0.9)
    assert set(_best(values, count, 0.9).tolist()) == set(np.flatnonzero(values >= bound).tolist())
