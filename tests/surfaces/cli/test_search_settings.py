"""The pipeline by settings: from a file, the environment or a flag, the same words and the same
mistakes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.cli.commands import run
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]
Give = Callable[[pytest.MonkeyPatch, Path, dict[str, str]], list[str]]

STAGES = "decay(half_life_days=90, floor=0.5); mmr"


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port moved to 8443.\n")
    write("memory/2026-05-06.md", "# Retro\n\nThe staging port was closed in April.\n")
    write("memory/tea.md", "# Tea\n\nGreen tea, three minutes.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


def by_file(monkeypatch: pytest.MonkeyPatch, root: Path, values: dict[str, str]) -> list[str]:
    lines = [
        f"{key} = {json.dumps(value.split('; ') if key == 'stages' else value)}"
        for key, value in values.items()
    ]
    text = "\n".join(["[search]", *lines]).replace('"40"', "40")
    (root / "notewell.toml").write_text(text, encoding="utf-8")
    return []


def by_variable(monkeypatch: pytest.MonkeyPatch, root: Path, values: dict[str, str]) -> list[str]:
    for key, value in values.items():
        monkeypatch.setenv(f"NOTEWELL_SEARCH_{key.upper()}", value)
    return []


def by_flag(monkeypatch: pytest.MonkeyPatch, root: Path, values: dict[str, str]) -> list[str]:
    return [
        part for key, value in values.items() for part in ("--setting", f"search.{key}={value}")
    ]


WAYS = pytest.mark.parametrize("give", [by_file, by_variable, by_flag])


def stages(capsys: Capture, *arguments: str) -> list[str]:
    """The names of fusion and stages in the trace."""
    return [stage["name"] for stage in answer(capsys, *arguments)["trace"]["stages"]]


def answer(capsys: Capture, *arguments: str) -> Any:
    assert (
        run(["search", "staging port", "--now", "2026-05-10", "--explain", "--json", *arguments])
        == 0
    )
    return json.loads(capsys.readouterr().out)


@WAYS
def test_fusion_stages_and_pool_come_from_anywhere(
    give: Give, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    flags = give(
        monkeypatch, root, {"fusion": "rrf(vector=0.5, text=0.5)", "stages": STAGES, "pool": "40"}
    )
    found = answer(capsys, *flags)
    assert found["profile"] == "default*"
    names = [stage["name"] for stage in found["trace"]["stages"]]
    assert [name.partition("(")[0] for name in names] == ["Rrf", "Decay", "Mmr", "Cut"]
    assert names[0].startswith("Rrf(vector=0.5, text=0.5")
    assert names[1].startswith("Decay(half_life_days=90, ")
    assert "floor=0.5" in names[1]


def test_a_pool_of_one_lets_every_leg_bring_one(capsys: Capture) -> None:
    legs = answer(capsys, "--setting", "search.pool=1")["trace"]["legs"]
    assert {leg["name"]: len(leg["order"]) for leg in legs} == {
        "lexical": 1,
        "vector": 1,
        "path": 0,
    }


def test_a_flag_goes_before_the_variable_and_the_variable_before_the_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    by_file(monkeypatch, root, {"fusion": "maxnorm"})
    assert stages(capsys)[0].startswith("MaxNorm")
    by_variable(monkeypatch, root, {"fusion": "weighted"})
    assert stages(capsys)[0].startswith("Weighted")
    assert stages(capsys, "--setting", "search.fusion=rrf")[0].startswith("Rrf")


@WAYS
def test_settings_change_a_profile_by_name_too(
    give: Give, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    flags = give(monkeypatch, root, {"fusion": "maxnorm", "stages": "mmr", "pool": "1"})
    found = answer(capsys, *flags, "--profile", "rrf")
    assert found["profile"] == "rrf*"
    assert [stage["name"].partition("(")[0] for stage in found["trace"]["stages"]] == [
        "MaxNorm",
        "Mmr",
        "Cut",
    ]
    assert [len(leg["order"]) for leg in found["trace"]["legs"]] == [1, 1]
    monkeypatch.setenv("NOTEWELL_SEARCH_RERANK", "local")
    names = stages(capsys, *flags, "--profile", "lexical")
    assert [name.partition("(")[0] for name in names] == ["MaxNorm", "Mmr", "Rerank", "Cut"]


def test_a_profile_by_name_is_as_it_was_published_without_settings(capsys: Capture) -> None:
    found = answer(capsys, "--profile", "rrf")
    assert found["profile"] == "rrf"
    assert [stage["name"].partition("(")[0] for stage in found["trace"]["stages"]] == ["Rrf", "Cut"]


@pytest.mark.parametrize(
    "value",
    [
        '["decay(half_life_days=90, floor=0.5)", "mmr"]',
        "['decay(half_life_days=90, floor=0.5)', 'mmr',]",
        STAGES,
    ],
)
def test_a_list_is_written_as_in_toml_or_with_a_separator(capsys: Capture, value: str) -> None:
    names = stages(capsys, "--setting", f"search.stages={value}")
    assert [name.partition("(")[0] for name in names[1:]] == ["Decay", "Mmr", "Cut"]
    assert "floor=0.5" in names[1]


def test_the_k_of_reciprocal_ranks_is_a_knob_that_the_trace_shows(capsys: Capture) -> None:
    found = answer(
        capsys, "--profile", "rrf", "--setting", "search.fusion=rrf(k=1)", "--since", "2026-01-01"
    )
    fused = found["trace"]["stages"][0]
    assert "k=1)" in fused["name"]
    ranks = [{leg: own["rank"] for leg, own in hit["ranks"].items()} for hit in found["results"]]
    best = (0.7 + 0.3) / (1 + 1)
    for hit, own in zip(found["results"], ranks, strict=True):
        total = sum(
            {"vector": 0.7, "lexical": 0.3}[leg] / (1 + rank)
            for leg, rank in own.items()
            if leg != "path"
        )
        assert hit["score"] == pytest.approx(total / best, abs=1e-4)
    assert run(["why", "staging port", "memory/2026-02-10.md", "--profile", "rrf"]) == 0
    assert "k=60)" in capsys.readouterr().out


@WAYS
@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        ("stages", "mmr; decy", "no stage is called 'decy'", "did you mean decay?"),
        ("stages", "decay(7)", "'decay(7)' is not a stage", "write name or name(knob=value)"),
        (
            "stages",
            "mmr(depth=1.5)",
            "mmr: depth must be a whole number",
            "write name or name(knob=value)",
        ),
        ("fusion", "rff", "no stage is called 'rff'", "did you mean rrf?"),
        ("fusion", "rrf(kk=60)", "rrf has no knob 'kk'", "it has: vector, text, normalised, k"),
        ("fusion", "rrf(k=-1)", "k is -1", "give a number from 0"),
        ("fusion", "rrf(vector=0, text=0)", "the weights are vector=0, text=0", "not both 0"),
        ("fusion", "weighted(vector=-1)", "the weights are vector=-1", "from 0 on"),
        ("fusion", "maxnorm(text=1e999)", "text is inf", "give a smaller number"),
        ("fusion", "single(leg='bogus')", "no leg is called 'bogus'", "lexical, vector, path"),
        ("stages", "cut(on='x')", "cut is on 'x'", 'on="confidence"'),
        ("stages", "mmr(lambda=2)", "lambda is 2", "1 is relevance alone"),
        ("pool", "many", "search.pool must be a whole number", "candidates of each leg"),
        ("rerank_weight", "high", "search.rerank_weight must be a number", "share of the reranker"),
    ],
)
def test_a_bad_value_from_anywhere_exits_2_with_a_hint(
    give: Give,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    *,
    key: str,
    value: str,
    message: str,
    hint: str,
) -> None:
    flags = give(monkeypatch, root, {key: value})
    for named in ([], ["--profile", "rrf"]):
        assert run(["search", "staging port", *flags, *named]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        error, _, advice = err.partition("hint: ")
        assert message in error
        assert hint in advice


@pytest.mark.parametrize(
    ("setting", "message", "hint"),
    [
        ("search.stages", "has no value", "write --setting search.limit=10"),
        ("search.stage=mmr", "no setting is called 'search.stage'", "did you mean search.stages?"),
        ("search.pool=-1", "search.pool is -1", "at least 1"),
        ("search.rerank=remote", "search.rerank is 'remote'", "none, local or http"),
        ("search.rerank=http", "search.rerank_url is empty", "set the address"),
    ],
)
def test_a_bad_setting_flag_exits_2_with_a_hint(
    capsys: Capture, setting: str, message: str, hint: str
) -> None:
    assert run(["search", "staging port", "--setting", setting]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert hint in err
