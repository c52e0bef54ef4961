"""`notewell import`: counts, one JSON object, and a failure that says what was refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notewell.surfaces.cli.commands import run
from tests.sources.imports.made import EXPORTS, zipped


def test_counts_are_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(EXPORTS / "mem0.json")
    assert run(["import", place, "--dry-run", "-w", str(root)]) == 0
    assert (
        capsys.readouterr().out
        == f"{place}: mem0: 2 new\nnothing was written; leave out --dry-run to import\n"
    )
    assert run(["import", place, "-w", str(root)]) == 0
    assert (
        capsys.readouterr().out
        == f"{place}: mem0: 2 new\n  2 notes written in memory/imported/mem0/\n"
    )
    assert run(["import", place, "-w", str(root)]) == 0
    assert capsys.readouterr().out == f"{place}: mem0: 2 unchanged\n"


def test_json_is_one_object(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(EXPORTS / "chatgpt.json"), "-w", str(root), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (file,) = told["files"]
    assert (file["formats"], file["items"], file["new"], file["error"]) == (["ChatGPT"], 1, 1, None)
    assert [path.startswith("memory/imported/chatgpt/2026-03-0") for path in told["written"]] == [
        True
    ]
    assert told["dry_run"] is False


def test_a_refused_file_is_a_failure_and_the_others_are_imported(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "evil.zip").write_bytes(zipped({"../x.md": "x"}))
    (tmp_path / "none.txt").write_text("x")
    names = [str(tmp_path / "evil.zip"), str(tmp_path / "none.txt"), str(EXPORTS / "memory.jsonl")]
    assert run(["import", *names, "-w", str(root), "--json"]) == 1
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert "leads out" in told["error"]["message"]
    assert [bool(file["error"]) for file in told["files"]] == [True, True, False]
    assert told["files"][2]["new"] == 3
    assert run(["import", *names, "-w", str(root)]) == 1
    captured = capsys.readouterr()
    assert "leads out" in captured.err
    assert "no format that import knows" in captured.err
    assert "3 unchanged" in captured.out


def test_a_name_in_an_archive_does_not_steer_the_terminal(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a\u202eb.docx": b"x", "c.md": "words"}))
    assert run(["import", str(tmp_path / "a.zip"), "-w", str(root)]) == 0
    out = capsys.readouterr().out
    assert "skipped a" in out
    assert "\u202e" not in out
