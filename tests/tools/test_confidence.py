"""Fitting the confidence: what was planted is found again, and a set left out is judged by the
others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.search.confidence import CONFIDENCE
from tests.eval.made import QUERIES, jsonl, write_set
from tools import confidence
from tools.confidence import Asked, Weights, figures, fit, fitted, logistic, sigmoid

NAMES = ["bias", "focus", "names", "day"]
ANSWERED = np.array([0.5, 3.0])
PLANTED = np.array([-1.0, 2.0, -1.5, CONFIDENCE["day"]])


def some(seed: int, kind: str = "own", count: int = 400) -> list[Asked]:
    """Questions of ten hits each, relevant as the planted weights say; those of no answer have the
    poorest evidence.
    """
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        whole = np.array([1.0, rng.normal() + (1.0 if kind == "own" else -1.0)])
        known = np.column_stack([np.ones(10), rng.normal(size=(10, 2)), rng.integers(-1, 2, 10)])
        likely = sigmoid(known @ PLANTED)
        relevant = rng.random(10) < likely if kind == "own" else np.zeros(10, dtype=bool)
        asked.append(Asked(whole, known, relevant, kind))
    return asked


def test_a_planted_regression_is_found_again() -> None:
    rng = np.random.default_rng(6)
    data = np.column_stack([np.ones(40_000), rng.normal(3.0, 2.0, size=(40_000, 2))])
    planted = np.array([-1.0, 0.8, -0.5])
    labels = (rng.random(len(data)) < 1 / (1 + np.exp(-data @ planted))).astype(float)
    found = logistic(data, labels, np.full(len(data), 1 / len(data)), ridge=1e-9)
    assert found == pytest.approx(planted, abs=0.06)


def test_the_weight_of_a_day_is_given_and_the_rest_keep_their_signs_and_scale() -> None:
    found = fit([[*some(1), *some(3, "other")], [*some(2), *some(4, "other")]], NAMES).passage
    assert found[3] == PLANTED[3]
    assert found == pytest.approx(PLANTED, rel=0.2)


def test_what_tells_questions_with_an_answer_apart_is_fitted_on_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two normal distributions a distance of 2 apart: the logistic slope between them is 2,
    whatever their shares.
    """
    monkeypatch.setattr(confidence, "ANSWERED_RIDGE", 1e-9)
    answered = fit([[*some(1, count=4000), *some(2, "other", 4000)]], NAMES).answered
    assert answered[1] == pytest.approx(2.0, rel=0.1)
    assert answered[0] == pytest.approx(-np.log(confidence.STRANGE), rel=0.1)


def test_confidence_is_the_product_of_both() -> None:
    one = Asked(
        np.array([1.0, 0.2]),
        np.array([[1.0, 0.3, 0.0, 0.0], [1.0, -2.0, 1.0, 1.0]]),
        np.array([True, False]),
        "own",
    )
    by_hand = [
        1 / (1 + np.exp(-1.1)) / (1 + np.exp(0.4)),
        1 / (1 + np.exp(-1.1)) / (1 + np.exp(6.5 - CONFIDENCE["day"])),
    ]
    assert Weights(ANSWERED, PLANTED).sure(one) == pytest.approx(by_hand)


def test_a_set_left_out_is_judged_by_the_tables_of_the_others() -> None:
    by_set = {
        "a": [*some(1), *some(6, "other", 50)],
        "b": [*some(2), *some(7, "other", 50)],
        "c": [*some(3), *some(4, "none", 50), *some(5, "other", 50)],
    }
    weights, left_out = fitted(by_set, NAMES)
    assert len(weights.passage) == len(NAMES)
    assert left_out["c"].calibration < 0.1
    assert left_out["c"].none > 0.8 < left_out["c"].other
    assert np.isnan(left_out["a"].none), "it has no such questions"
    assert list(left_out["c"].refused) == sorted(left_out["c"].refused)


def test_a_cut_loses_a_question_if_it_takes_any_true_hit_of_the_first_six() -> None:
    rows = np.array([[0.0, 0.0, 0.0, 0.0], *[[-9.0, 0.0, 0.0, 0.0]] * 6])
    lost = Asked(np.array([40.0]), rows, np.array([1, 0, 1, 0, 0, 0, 0], dtype=bool), "own")
    kept = Asked(np.array([40.0]), rows, np.array([1, 0, 0, 0, 0, 0, 1], dtype=bool), "own")
    found = figures([lost, kept, kept, kept], Weights(np.array([1.0]), np.array([1.0, 0, 0, 0])))
    assert set(found.cut) == {0.25}
    assert set(found.lost) == {0.0}, "each has a hit at a half"
    refused = Asked(np.array([-40.0]), rows, np.zeros(7, dtype=bool), "other")
    assert set(
        figures([lost, refused], Weights(np.array([1.0]), np.array([1.0, 0, 0, 0]))).refused
    ) == {1.0}


def test_one_command_asks_all_sets_and_writes_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(confidence, "embedder", lambda *_args, **_more: HashedEmbedder())
    for name, asked in (("one", QUERIES), ("two", QUERIES[:2]), ("three", QUERIES[1:])):
        write_set(
            tmp_path / "sets" / name, queries_jsonl=jsonl(asked), spans_jsonl="", qrels_spans_tsv=""
        )
    saved = tmp_path / "saved.json"
    confidence.main([str(tmp_path / "sets"), "--cache", str(tmp_path), "--save", str(saved)])
    tuned = json.loads(saved.read_text(encoding="utf-8"))
    assert tuned["tables"].keys() == confidence.TABLES.keys()
    assert tuned["tables"]["CONFIDENCE"].keys() == CONFIDENCE.keys()
    assert all(0 <= one["CONFIDENCE"]["other"] <= 1 for one in tuned["sets"].values())
    assert "left out" in capsys.readouterr().out
