"""Tables, comparisons and the gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notewell.errors import UsageError
from notewell.eval import report
from notewell.eval.runner import Run, Scores
from notewell.eval.sets import Question


def run_of(profile: str, *values: float, name: str = "tiny", silent: int = 0) -> Run:
    """A run whose questions have these nDCG figures, and so many that nothing answers."""
    scores = [
        Scores(
            Question(f"q{i}", "x", kind="ab"[i % 2], grades={"a": 1}),
            {"ndcg@10": v},
            v,
            ((v, v > 0.5),),
            (),
            2.0,
        )
        for i, v in enumerate(values)
    ]
    scores += [
        Scores(Question(f"s{i}", "x", kind="none"), {}, 0.0, (), (), 4.0) for i in range(silent)
    ]
    return Run(name, profile, tuple(scores))


def test_the_table_has_a_line_a_set_and_profile_and_only_columns_that_somebody_has() -> None:
    lines = report.table([run_of("default", 0.5, 1.0), run_of("lexical", 0.25, 0.25)]).splitlines()
    assert lines[0].split() == ["set", "profile", "n", "ndcg@10", "ece", "ms"]
    assert lines[1].split() == ["tiny", "default", "2", "0.750", "0.250", "2.0"]
    assert lines[2].split() == ["tiny", "lexical", "2", "0.250", "0.250", "2.0"]
    assert len(lines) == 3


def test_a_line_for_every_type_of_question() -> None:
    lines = report.table([run_of("default", 0.5, 1.0, silent=1)], by_type=True).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["tiny", "default", "3"],
        ["a", "default", "1"],
        ["b", "default", "1"],
        ["none", "default", "1"],
    ]
    assert len({len(line) for line in lines}) == 1, "columns stand under one another"


def test_more_than_one_set_has_a_mean_of_the_sets() -> None:
    runs = [run_of("default", 0.5, 1.0), run_of("default", 0.25, name="other")]
    assert report.table(runs).splitlines()[-1].split() == ["mean", "default", "0.500"]
    assert report.means(runs) == {"default": 0.5}


def test_all_figures_as_plain_values() -> None:
    runs = [run_of("default", 0.5, 1.0, silent=1), run_of("lexical", 0.5, 0.5)]
    found = report.as_dict(runs, by_type=True, against="lexical")
    json.dumps(found, allow_nan=False)
    own = found["sets"]["tiny"]["default"]
    assert (own["ndcg@10"], own["questions"], own["auroc"]) == (0.75, 3.0, 1.0)
    assert own["types"]["none"]["auroc"] is None
    assert own["reliability"] == [
        {"from": 0.5, "hits": 1, "promised": 0.5, "true": 0.0},
        {"from": 0.9, "hits": 1, "promised": 1.0, "true": 1.0},
    ]
    assert found["mean"] == {"default": 0.75, "lexical": 0.5}
    assert found["against"]["tiny/default"]["difference"] == 0.25
    assert "types" not in report.as_dict(runs)["sets"]["tiny"]["default"]


def test_a_comparison_says_in_words_what_is_clear() -> None:
    base = [i / 40 for i in range(20)]
    runs = [
        run_of("default", *(v + 0.2 + 0.01 * (i % 3) for i, v in enumerate(base))),
        run_of("lexical", *base),
        run_of("vector", *base[::-1]),
        run_of("rrf", *(v - 0.1 - 0.01 * (i % 3) for i, v in enumerate(base))),
    ]
    lines = report.comparison(runs, "lexical").splitlines()
    assert lines[0] == "nDCG@10 against lexical, paired bootstrap over questions"
    assert [(line.split()[1], line.split("  ")[-1]) for line in lines[1:]] == [
        ("default", "better"),
        ("vector", "no clear difference"),
        ("rrf", "worse"),
    ]
    assert "+0.2" in lines[1]


def test_a_comparison_with_a_profile_that_did_not_run_is_refused() -> None:
    with pytest.raises(UsageError, match="--against vector is not among the profiles") as caught:
        report.comparison([run_of("default", 0.5)], "vector")
    assert caught.value.hint == "add it to --profile"


def test_reliability_is_over_all_sets_of_one_profile() -> None:
    runs = [run_of("default", 0.95), run_of("default", 0.91, name="other"), run_of("lexical", 0.1)]
    lines = report.reliability_table(runs, "default").splitlines()
    assert lines[0] == "confidence of default over 2 hits, expected calibration error 0.070"
    assert lines[2].split() == ["0.9", "0.930", "1.000", "2"]
    assert len(lines) == 3


def test_the_gate_holds_every_run_to_the_bar() -> None:
    runs = [run_of("default", 0.5, 1.0), run_of("lexical", 0.25)]
    assert report.gate(runs, None, None) == []
    assert report.gate(runs, None, 0.25) == []
    assert report.gate(runs, None, 0.5) == ["tiny lexical: nDCG@10 0.2500 is below 0.5"]
    assert report.gate([run_of("default", silent=2)], None, 0.5) == [], (
        "nothing to answer, nothing to object to"
    )


def saved(path: Path, *runs: Run) -> Path:
    path.write_text(json.dumps(report.as_dict(runs)))
    return path


def test_the_gate_objects_to_what_is_worse_than_the_baseline_by_more_than_the_slack(
    tmp_path: Path,
) -> None:
    before = saved(tmp_path / "before.json", run_of("default", 0.5, 1.0))
    assert report.gate([run_of("default", 0.5, 1.0)], before, None) == []
    assert report.gate([run_of("default", 0.9, 1.0)], before, None) == []
    worse = run_of("default", 0.5, 0.9)
    assert report.gate([worse], before, None) == [
        "tiny default: nDCG@10 0.7000, the baseline has 0.7500"
    ]
    assert report.gate([worse], before, 0.06) == []


def test_rounding_in_the_saved_file_is_no_objection(tmp_path: Path) -> None:
    run = run_of("default", 1 / 3, 2 / 3 - 0.00007)
    assert report.gate([run], saved(tmp_path / "before.json", run), None) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"sets": []}', '{"sets": {"tiny": {"default": 3}}}']
)
def test_a_baseline_that_is_no_saved_evaluation_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "before.json").write_text(text)
    with pytest.raises(UsageError, match="is not a saved evaluation") as caught:
        report.gate([run_of("default", 0.5)], tmp_path / "before.json", None)
    assert caught.value.hint == "make one with --save"


def test_a_baseline_that_has_nothing_to_compare_does_not_pass_in_silence(tmp_path: Path) -> None:
    before = saved(tmp_path / "before.json", run_of("default", 0.5, name="other"))
    with pytest.raises(UsageError, match="none of these sets and profiles"):
        report.gate([run_of("default", 0.5)], before, None)
