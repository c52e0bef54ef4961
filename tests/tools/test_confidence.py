"""Fitting the confidence: what was planted is found again, and a set left out is judged by the others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.search.confidence import CONFIDENCE
from tests.eval.made import QUERIES, jsonl, write_set
from tools import confidence
from tools.confidence import Asked, figures, fit, fitted, logistic

NAMES = ["bias", "focus", "lost", "day"]
PLANTED = np.array([-1.0, 2.0, -1.5, CONFIDENCE["day"]])


def some(seed: int, kind: str = "own", count: int = 400) -> list[Asked]:
    """Questions of ten hits each, relevant as the planted weights say; those of no answer have the poorest evidence."""
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        known = np.column_stack([np.ones(10), rng.normal(size=(10, 2)), rng.integers(-1, 2, 10)])
        if kind != "own":
            known[:, 1] -= 3.0
        likely = 1 / (1 + np.exp(-known @ PLANTED))
        asked.append(Asked(known, rng.random(10) < likely if kind == "own" else np.zeros(10, dtype=bool), kind))
    return asked


def test_a_planted_regression_is_found_again() -> None:
    rng = np.random.default_rng(6)
    data = np.column_stack([np.ones(40_000), rng.normal(3.0, 2.0, size=(40_000, 2))])
    planted = np.array([-1.0, 0.8, -0.5])
    labels = (rng.random(len(data)) < 1 / (1 + np.exp(-data @ planted))).astype(float)
    found = logistic(data, labels, np.full(len(data), 1 / len(data)), ridge=1e-9)
    assert found == pytest.approx(planted, abs=0.06)


def test_the_weight_of_a_day_is_given_and_the_rest_keep_their_signs_and_scale() -> None:
    found = fit([some(1), some(2)], NAMES)
    assert found[3] == PLANTED[3]
    assert found == pytest.approx(PLANTED, rel=0.2)


def test_a_set_left_out_is_judged_by_the_tables_of_the_others() -> None:
    by_set = {"a": some(1), "b": some(2), "c": [*some(3), *some(4, "none", 50), *some(5, "other", 50)]}
    table, left_out = fitted(by_set, NAMES)
    assert list(table) == NAMES
    assert left_out["c"].calibration < 0.08
    assert left_out["c"].none > 0.8 < left_out["c"].other
    assert np.isnan(left_out["a"].none), "it has no such questions"


def test_a_cut_loses_a_question_if_it_takes_any_true_hit_of_the_first_six() -> None:
    rows = np.array([[0.0, 0.0, 0.0, 0.0], *[[-9.0, 0.0, 0.0, 0.0]] * 6])
    lost = Asked(rows, np.array([1, 0, 1, 0, 0, 0, 0], dtype=bool), "own")
    kept = Asked(rows, np.array([1, 0, 0, 0, 0, 0, 1], dtype=bool), "own")
    assert set(figures([lost, kept, kept, kept], np.array([1.0, 0, 0, 0])).cut) == {0.25}


def test_one_command_asks_all_sets_and_writes_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(confidence, "embedder", lambda *_args, **_more: HashedEmbedder())
    for name, asked in (("one", QUERIES), ("two", QUERIES[:2]), ("three", QUERIES[1:])):
        write_set(tmp_path / "sets" / name, queries_jsonl=jsonl(asked), spans_jsonl="", qrels_spans_tsv="")
    saved = tmp_path / "saved.json"
    confidence.main([str(tmp_path / "sets"), "--cache", str(tmp_path), "--save", str(saved)])
    tuned = json.loads(saved.read_text(encoding="utf-8"))
    assert tuned["tables"].keys() == {"CONFIDENCE", "CONFIDENCE_WORDS"}
    assert tuned["tables"]["CONFIDENCE"].keys() == CONFIDENCE.keys()
    assert all(0 <= one["CONFIDENCE"]["other"] <= 1 for one in tuned["sets"].values())
    assert "left out" in capsys.readouterr().out
