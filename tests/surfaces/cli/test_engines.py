"""`notewell engine`, where there is more to say than which engines run; those are in
`tests/surfaces/engine`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.surfaces.cli.commands import run
from notewell.surfaces.engine import place

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What stands for /tmp, with a short path."""
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        monkeypatch.setattr(place, "_TEMPORARY", folder)
        yield Path(folder)


def test_in_a_folder_that_was_deleted_engines_are_listed_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["engine", "status"]) == 0
    assert run(["engine", "stop", "--all"]) == 0
    assert capsys.readouterr() == ("no engine runs\nno engine was running here\n", "")
    assert run(["engine", "stop"]) == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err


def test_a_folder_that_is_named_must_be_one(tmp_path: Path, capsys: Capture) -> None:
    assert run(["engine", "status", "-w", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_who_has_taken_the_place_of_engines_is_named_with_what_to_do(
    base: Path, root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = base / f"notewell-{os.geteuid()}"
    taken.write_text("")
    monkeypatch.delenv("NOTEWELL_ENGINE_ENABLED")
    monkeypatch.setenv("HOME", str(base))
    assert run(["engine", "status"]) == 0
    told = capsys.readouterr()
    assert told.out == "no engine runs\n"
    assert f"{taken} is not a folder, so engines listen in {base}/.cache/notewell/run" in told.err
    assert "XDG_RUNTIME_DIR" in told.err
    assert run(["engine", "status", "--json"]) == 0
    (notice,) = json.loads(capsys.readouterr().out)["notices"]
    assert notice["code"] == "engine_folder"
    run(["doctor", "-w", str(root), "--json", "--model", "none"])
    (check,) = [
        one for one in json.loads(capsys.readouterr().out)["checks"] if one["what"] == "engine"
    ]
    assert (check["verdict"], str(taken) in check["detail"]) == ("warn", True)
    monkeypatch.setenv("NOTEWELL_ENGINE_ENABLED", "0")
    run(["doctor", "-w", str(root), "--json", "--model", "none"])
    assert not [
        one for one in json.loads(capsys.readouterr().out)["checks"] if one["what"] == "engine"
    ]
