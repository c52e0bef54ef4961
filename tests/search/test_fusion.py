"""The published fusions, against numbers worked by hand from their descriptions."""

from __future__ import annotations

import math

import pytest

from notewell.errors import SettingsError
from notewell.search.fusion import MaxNorm, Rrf, Single, Weighted, falling, sigmoids
from notewell.search.profiles import PROFILES
from tests.search.made import candidate, ids, query, scores, through

# Four right answers of a small model; the words of the question stand in none of them.
COSINES = {"a": 0.438, "b": 0.505, "c": 0.400, "d": 0.484}
SILENT_KEYWORDS = [
    candidate(
        name,
        vector=(rank, cosine),
        signals={"cosine": cosine, "z": 2.0, "lift": (cosine - 0.2) / 0.8},
    )
    for rank, (name, cosine) in enumerate(
        sorted(COSINES.items(), key=lambda item: -item[1]), start=1
    )
]


def test_rrf_prefers_good_in_both_legs_to_best_in_one() -> None:
    steady = candidate("steady", vector=(1, 0.9), lexical=4)
    lopsided = candidate("lopsided", vector=(12, 0.5), lexical=1)
    found = Rrf(1.0, 1.0, normalised=False)([lopsided, steady], query())
    assert ids(found) == ["steady", "lopsided"]
    assert scores(found) == {
        "steady": pytest.approx(1 / 61 + 1 / 64),
        "lopsided": pytest.approx(1 / 72 + 1 / 61),
    }
    assert scores(found) == {
        "steady": pytest.approx(0.0320, abs=5e-5),
        "lopsided": pytest.approx(0.0303, abs=5e-5),
    }


def test_rrf_is_divided_by_the_best_possible_sum() -> None:
    found = Rrf(0.7, 0.3)(
        [
            candidate("both", vector=(1, 0.9), lexical=1),
            candidate("vector", vector=(1, 0.9)),
            candidate("text", lexical=1),
        ],
        query(),
    )
    assert scores(found) == {
        "both": pytest.approx(1.0),
        "vector": pytest.approx(0.7),
        "text": pytest.approx(0.3),
    }
    second = Rrf(0.7, 0.3)([candidate("x", vector=(2, 0.5))], query())
    assert second[0].score == pytest.approx(0.7 * 61 / 62)


def test_a_missing_leg_that_counts_as_zero_costs_every_cosine_three_tenths() -> None:
    found = Weighted(silent_is_zero=True)(SILENT_KEYWORDS, query())
    expected = {"a": 0.307, "b": 0.353, "c": 0.280, "d": 0.339}
    assert scores(found) == {
        name: pytest.approx(value, abs=1e-3) for name, value in expected.items()
    }
    shown = through(PROFILES["openclaw-2026.2.13"], SILENT_KEYWORDS, query())
    assert ids(shown) == ["b"], "all but one fall under 0.35"


def test_openclaw_gives_the_weight_of_a_silent_leg_to_the_other() -> None:
    shown = through(PROFILES["openclaw"], SILENT_KEYWORDS, query())
    assert scores(shown) == {name: pytest.approx(cosine) for name, cosine in COSINES.items()}
    assert ids(shown) == ["b", "d", "a", "c"]
    words = through(
        PROFILES["openclaw"], [candidate("x", lexical=1), candidate("y", lexical=2)], query()
    )
    assert scores(words) == {"x": pytest.approx(1.0), "y": pytest.approx(0.5)}


def test_the_default_drops_nothing_because_one_leg_was_silent() -> None:
    assert set(ids(through(PROFILES["default"], SILENT_KEYWORDS, query()))) == set(COSINES)


def test_openclaw_adds_seven_tenths_cosine_and_three_tenths_of_one_over_the_rank() -> None:
    found = Weighted()(
        [candidate("x", vector=(2, 0.5), lexical=1), candidate("y", vector=(1, 0.8), lexical=3)],
        query(),
    )
    assert scores(found) == {
        "x": pytest.approx(0.7 * 0.5 + 0.3),
        "y": pytest.approx(0.7 * 0.8 + 0.3 / 3),
    }


def test_clamped_bm25_gives_every_match_the_same_full_score() -> None:
    matches = [candidate(name, lexical=rank) for rank, name in enumerate("abc", start=1)]
    assert set(scores(Weighted(0.0, 1.0, clamped=True)(matches, query())).values()) == {1.0}
    assert list(scores(Weighted(0.0, 1.0)(matches, query())).values()) == pytest.approx(
        [1, 1 / 2, 1 / 3]
    )


def test_maxnorm_divides_by_the_best_cosine() -> None:
    found = MaxNorm()(
        [
            candidate("near", vector=(1, 0.6)),
            candidate("far", vector=(2, 0.3), lexical=2),
            candidate("words", lexical=1),
        ],
        query(),
    )
    expected = {"near": 0.7, "far": 0.7 * 0.5 + 0.3 / 2, "words": 0.3}
    assert scores(found) == {name: pytest.approx(value) for name, value in expected.items()}


def test_a_single_leg_keeps_its_own_order() -> None:
    pool = [
        candidate("a", lexical=2, vector=(1, 0.4)),
        candidate("b", lexical=1),
        candidate("c", vector=(2, 0.3)),
    ]
    assert ids(Single("lexical")(pool, query())) == ["b", "a"]
    assert scores(Single("vector")(pool, query())) == {"a": 0.4, "c": 0.3}
    assert scores(Single("lexical")(pool, query()))["b"] == pytest.approx(10 / 11)


def test_a_published_pipeline_never_sees_what_only_another_leg_brought() -> None:
    stranger = candidate("stranger", signals={"date": 1.0})
    for name in (
        "openclaw",
        "openclaw-2026.2.13",
        "maxnorm",
        "rrf",
        "siftcoder",
        "lexical",
        "vector",
    ):
        assert ids(PROFILES[name].fusion([stranger], query())) == []


@pytest.mark.parametrize("fusion", [Weighted(), Weighted(silent_is_zero=True), MaxNorm(), Rrf()])
def test_weights_of_any_sum_stay_between_0_and_1(fusion: Weighted | MaxNorm | Rrf) -> None:
    heavy = type(fusion)(vector=3.0, text=2.0)
    best = heavy([candidate("x", vector=(1, 1.0), lexical=1)], query())
    assert best[0].score == pytest.approx(1.0)
    assert best[0].score <= 1.0
    for vector, text in ((0.0, 0.0), (-0.1, 1.0), (1.0, math.nan), (math.inf, 1.0)):
        with pytest.raises(SettingsError, match="the weights are"):
            type(fusion)(vector=vector, text=text)


@pytest.mark.parametrize("k", [0, 1, 60, 1_000])
def test_the_k_of_reciprocal_ranks_is_a_knob(k: float) -> None:
    found = Rrf(k=k)(
        [candidate("a", vector=(1, 0.9)), candidate("b", vector=(2, 0.8), lexical=1)], query()
    )
    best = 1.0 / (k + 1)
    expected = {"a": 0.7 / (k + 1) / best, "b": (0.7 / (k + 2) + 0.3 / (k + 1)) / best}
    assert scores(found) == pytest.approx(expected)
    for wrong in (-1, math.nan, math.inf):
        with pytest.raises(SettingsError, match="k is"):
            Rrf(k=wrong)


def test_an_order_made_falling_survives_a_sort_by_score_and_id() -> None:
    given = [candidate("b", 0.5), candidate("a", 0.9), candidate("c", 0.5), candidate("d", 0.1)]
    found = falling(given)
    assert ids(found) == ["b", "a", "c", "d"]
    assert sorted(found, key=lambda c: (-c.score, c.id)) == found
    assert [c.score for c in found] == pytest.approx([0.5, 0.5, 0.5, 0.1], abs=1e-8)
    assert falling([candidate("a", 0.5), candidate("b", 0.5)])[1].score == 0.5, (
        "a tie in order of ids is left alone"
    )


def test_the_sigmoid_is_safe_at_both_ends() -> None:
    assert sigmoids([-1000, 0, 1000]) == [0.0, 0.5, 1.0]
