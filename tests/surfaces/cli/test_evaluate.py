"""`notewell eval`, called in this process: folders of sets, a workspace's own questions, and the
gate.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.cli.commands import run
from tests.conftest import Write
from tests.eval.made import write_set

Capture = pytest.CaptureFixture[str]
NOTES = {
    "memory/router.md": (
        "# Home network\n\n## Router in the hall\n\n"
        "The Fritz router stands in the hall beside the meter cabinet.\n"
        "Its password is printed on the back, under the serial number of the device.\n"
    ),
    "memory/tea.md": (
        "# Green tea recipe\n\n"
        "Steep gunpowder leaves for three minutes in water of eighty degrees.\n"
        "Rinse the porcelain pot before, and never use the samovar for green leaves.\n"
    ),
}


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two notes, and the current folder is among them; the model is the deterministic one."""
    for path, text in NOTES.items():
        write(path, text)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """A set in the public format."""
    return str(write_set(tmp_path / "sets" / "tiny"))


def figures(capsys: Capture, *arguments: str) -> Any:
    assert run(["eval", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_set_is_measured_under_three_profiles(capsys: Capture, tiny: str) -> None:
    assert run(["eval", tiny]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["set", "profile", "n", "ndcg@10"]
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["tiny", "default", "4"],
        ["tiny", "lexical", "4"],
        ["tiny", "vector", "4"],
    ]
    assert "confidence of default over" in out
    assert "Traceback" not in err


def test_the_figures_are_one_object_with_json(capsys: Capture, tiny: str) -> None:
    found = figures(capsys, tiny, "--profile", "lexical, rrf")
    assert list(found) == ["sets", "mean"]
    assert list(found["sets"]["tiny"]) == ["lexical", "rrf"]
    lexical = found["sets"]["tiny"]["lexical"]
    assert (lexical["questions"], lexical["hit@1"], lexical["auroc"]) == (4.0, 1.0, 1.0)


def test_types_and_a_comparison_are_asked_for(capsys: Capture, tiny: str) -> None:
    found = figures(
        capsys, tiny, "--profile", "lexical,vector", "--by-type", "--against", "lexical"
    )
    assert list(found["sets"]["tiny"]["vector"]["types"]) == ["fact", "how", "none"]
    assert list(found["against"]["tiny/vector"]) == ["difference", "low", "high", "p"]
    assert (
        run(["eval", tiny, "--profile", "lexical,vector", "--by-type", "--against", "lexical"]) == 0
    )
    out = capsys.readouterr().out
    assert "\n  fact  lexical" in out
    assert "nDCG@10 against lexical, paired bootstrap over questions\ntiny  vector  " in out


def test_a_folder_of_sets_is_measured_set_by_set_with_their_mean(
    capsys: Capture, tiny: str, tmp_path: Path
) -> None:
    write_set(tmp_path / "sets" / "second")
    sets = str(tmp_path / "sets")
    assert list(figures(capsys, sets, "--profile", "lexical")["sets"]) == ["second", "tiny"]
    assert list(figures(capsys, sets, "--profile", "lexical", "--only", "tiny")["sets"]) == ["tiny"]
    assert run(["eval", sets, "--profile", "lexical"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["mean", "lexical"]


def test_a_workspace_s_own_questions_are_found_by_themselves(capsys: Capture, root: Path) -> None:
    rows = [
        {"query": "router password", "expect": "memory/router.md#5-6", "type": "fact"},
        {"query": "gunpowder leaves", "expect": "memory/tea.md#3"},
        {"query": "zeppelin hangar", "type": "none"},
    ]
    (root / "eval.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = figures(capsys, "--profile", "lexical")["sets"]["eval"]["lexical"]
    assert (own["questions"], own["ndcg@10"], own["cov@5"], own["auroc"]) == (3.0, 1.0, 1.0, 1.0)
    named = figures(capsys, "eval.jsonl", "--profile", "lexical")["sets"]["eval"]["lexical"]
    assert {k: v for k, v in named.items() if k != "ms"} == {
        k: v for k, v in own.items() if k != "ms"
    }


def test_without_a_file_questions_are_made_from_the_notes_and_it_is_said(capsys: Capture) -> None:
    assert run(["eval", "--profile", "lexical", "--json"]) == 0
    out, err = capsys.readouterr()
    mined = json.loads(out)["sets"]["mined"]["lexical"]
    assert mined["questions"] >= 4
    assert mined["hit@1"] > 0.5
    assert err == (
        f"note: there is no eval.jsonl here, so {mined['questions']:.0f} questions were made from"
        " your notes (see notewell eval mine)\n"
    )


def test_mine_writes_questions_that_eval_reads(capsys: Capture, root: Path) -> None:
    assert run(["eval", "mine", "-o", "eval.jsonl", "--most", "3"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "3 questions written to eval.jsonl\n")
    rows = [json.loads(line) for line in (root / "eval.jsonl").read_text().splitlines()]
    assert all(list(row) == ["query", "expect", "type"] for row in rows)
    assert run(["eval", "mine", "--most", "3"]) == 0
    assert capsys.readouterr().out == (root / "eval.jsonl").read_text()
    assert figures(capsys, "--profile", "lexical")["sets"]["eval"]["lexical"]["questions"] == 3.0


@pytest.mark.parametrize("kind", ["a link out", "a pipe", "a device"])
def test_the_questions_of_a_workspace_are_read_and_written_in_it_alone(
    capsys: Capture, root: Path, tmp_path: Path, kind: str
) -> None:
    """They may come with a clone, and so may a link in their place."""
    outside, own = tmp_path / "outside", root / "eval.jsonl"
    outside.write_text('{"query": "staging port"}\n', encoding="utf-8")
    if kind == "a pipe":
        os.mkfifo(own)
    else:
        own.symlink_to(outside if kind == "a link out" else "/dev/zero")
    mine = [["eval", "mine", "-o", name] for name in ("eval.jsonl", str(own))]
    for call in [["eval"], *(mine if own.is_symlink() else [])]:
        assert run(call) == 2, call
        assert "eval.jsonl cannot be" in capsys.readouterr().err
    assert outside.read_text(encoding="utf-8") == '{"query": "staging port"}\n'


def test_there_must_be_notes_to_make_questions_of(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments in (["eval"], ["eval", "mine"]):
        assert run([*arguments, "-w", str(tmp_path / "empty")]) == 2
        assert "too few notes" in capsys.readouterr().err


def test_the_gate_exits_1_under_the_bar(capsys: Capture, tiny: str) -> None:
    assert run(["eval", tiny, "--profile", "lexical", "--fail-under", "0.5"]) == 0
    assert run(["eval", tiny, "--profile", "lexical", "--fail-under", "0.99"]) == 1
    out, err = capsys.readouterr()
    assert "tiny" in out, "the figures are shown even so"
    assert "error: tiny lexical: nDCG@10 0." in err
    assert "is below 0.99" in err
    assert "hint: " in err


def test_the_gate_compares_with_figures_saved_before(
    capsys: Capture, tiny: str, tmp_path: Path
) -> None:
    saved = tmp_path / "before.json"
    command = ["eval", tiny, "--profile", "lexical", "--baseline", str(saved)]
    assert run(["eval", tiny, "--profile", "lexical", "--save", str(saved)]) == 0
    assert run(command) == 0
    figures_ = json.loads(saved.read_text())
    figures_["sets"]["tiny"]["lexical"]["ndcg@10"] += 0.02
    saved.write_text(json.dumps(figures_))
    capsys.readouterr()
    assert run(command) == 1
    assert "the baseline has" in capsys.readouterr().err
    assert run([*command, "--fail-under", "0.05"]) == 0


def test_vectors_of_a_corpus_are_kept_where_it_is_said(tiny: str, tmp_path: Path) -> None:
    assert run(["eval", tiny, "--profile", "vector", "--cache", str(tmp_path / "cache")]) == 0
    assert (tmp_path / "cache" / "vectors.sqlite").exists()


def test_a_set_of_the_public_format_leaves_the_workspace_s_own_notes_out(
    capsys: Capture, tiny: str
) -> None:
    without = figures(capsys, tiny, "--profile", "lexical", "--model", "none")
    assert without["sets"]["tiny"]["lexical"]["hit@1"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere does not exist", "a folder of sets"]),
        (["memory"], ["has no corpus.jsonl"]),
        (["memory/tea.md"], ["is not an evaluation set"]),
        (["--profile", "lexicl"], ["no profile is called 'lexicl'", "did you mean lexical?"]),
        (["--profile", ","], ["no profile was named"]),
        (["--only", "x"], ["no set was chosen"]),
        (["--against", "rrf"], ["--against rrf is not among the profiles", "add it to --profile"]),
        (["--baseline", "memory/tea.md"], ["is not a saved evaluation", "make one with --save"]),
    ],
)
def test_wrong_usage_exits_2_and_says_what_to_do(
    capsys: Capture, arguments: list[str], words: list[str]
) -> None:
    assert run(["eval", *arguments]) == 2
    err = capsys.readouterr().err
    for word in words:
        assert word in err


def test_eval_has_help(capsys: Capture) -> None:
    assert run(["eval", "--help"]) == 0
    assert "notewell eval" in capsys.readouterr().out
