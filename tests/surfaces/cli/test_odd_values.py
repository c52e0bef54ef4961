"""Clocks, days, homes and numbers that nobody expects: a sentence or an answer, never a
traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.settings import data_folder, state_folder, user_file
from notewell.surfaces.cli.commands import run
from notewell.types import Document
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]
FIRST, LAST = -(1 << 63), (1 << 63) - 1


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("memory/a.md", "# Zoo\n\nThe jaguar sleeps.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


def answered(capsys: Capture, *arguments: str) -> Any:
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("given", "kept"), [(1 << 80, LAST), (LAST, LAST), (-(1 << 80), FIRST), (-1, -1), (0, 0)]
)
def test_a_time_that_no_store_holds_becomes_the_nearest(given: int, kept: int) -> None:
    assert Document("a.md", "memory", 1, given, "a.md").mtime_ns == kept


@pytest.mark.parametrize("seconds", [9_300_000_000, 253_402_300_799, -2_000_000_000])
def test_a_file_of_any_date_is_found(root: Path, capsys: Capture, seconds: int) -> None:
    file = root / "memory/a.md"
    os.utime(file, (seconds, seconds))
    for _ in range(2):  # when it is new, and when the index knows it
        assert [r["path"] for r in answered(capsys, "search", "jaguar")["results"]] == [
            "memory/a.md"
        ]
    answered(capsys, "timeline", "memory/a.md")
    answered(capsys, "search", "jaguar", "--as-of", "2026-01-01")


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "1677-01-01"])
def test_the_ends_of_the_calendar_are_days_like_any_other(capsys: Capture, day: str) -> None:
    for option in ("--as-of", "--since", "--until", "--now"):
        answered(capsys, "search", "jaguar last week", option, day)
    found = answered(capsys, "search", "jaguar", "--as-of", day)
    assert [n["code"] for n in found["notices"]].count("changed_since") == (day < "1970")
    answered(capsys, "timeline", "--around", day)
    answered(capsys, "forget", "--before", day)


def test_without_a_home_notes_are_found_and_nothing_is_made(root: Path) -> None:
    code = (
        "import os, pwd, sys\n"
        "def nobody(*_): raise KeyError\n"
        "pwd.getpwuid = pwd.getpwnam = nobody\n"
        "from notewell.surfaces.cli.commands import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    env = {k: v for k, v in os.environ.items() if k != "HOME"}
    both = ["--setting", "sources=memory,sessions"]
    for more in (
        {},
        {"XDG_CONFIG_HOME": "~nouser/x", "XDG_DATA_HOME": "~nouser/x", "XDG_STATE_HOME": "x"},
    ):
        for words in (
            ["search", "jaguar", *both],
            ["doctor"],
            ["config"],
            ["status", *both],
            ["install", "--print"],
        ):
            command = [sys.executable, "-c", code, *words]
            whole = {**env, **more}
            done = subprocess.run(
                command, env=whole, capture_output=True, text=True, timeout=30, check=False
            )
            assert "Traceback" not in done.stderr, done.stderr
            assert done.returncode == (2 if words[0] == "install" else 0), done.stderr
    assert sorted(p.name for p in root.iterdir()) == [".notewell", "memory"]


@pytest.mark.parametrize("value", ["~nouser/x", "x/y", "./x"])
def test_an_xdg_variable_that_names_no_absolute_folder_is_ignored(
    value: str, own_environment: Path
) -> None:
    env = {f"XDG_{kind}_HOME": value for kind in ("CONFIG", "DATA", "STATE")}
    folders = user_file(env), data_folder(env), state_folder(env)
    assert all(folder.is_relative_to(own_environment) for folder in folders)


def test_an_index_in_a_home_that_is_not_known_is_refused(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEWELL_INDEX_PATH", "~nouser/x.sqlite")
    assert run(["search", "jaguar"]) == 2
    assert "the home folder in ~nouser/x.sqlite is not known" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e300", "1e10"])
@pytest.mark.parametrize(
    "key",
    [
        "embed.deadline_s",
        "embed.budget_s",
        "search.scan_s",
        "search.rerank_deadline_s",
        "index.timeout_s",
    ],
)
def test_no_wait_is_endless(capsys: Capture, key: str, value: str) -> None:
    assert run(["search", "jaguar", "--setting", f"{key}={value}"]) == 2
    error = capsys.readouterr().err
    assert f"error: {key} is " in error
    assert "hint: it must be " in error


@pytest.mark.parametrize(
    "setting",
    [
        "search.min_score=nan",
        f"search.limit={10**30}",
        "max_file_bytes=-5",
        "embed.threads=-5",
        f"search.windows={10**19}",
    ],
)
def test_a_number_without_sense_is_refused(capsys: Capture, setting: str) -> None:
    assert run(["search", "jaguar", "--setting", setting]) == 2
    assert f"error: {setting.partition('=')[0]} is " in capsys.readouterr().err


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "arguments",
    [["search", "jaguar", "--min-score"], ["watch", "--poll"], ["eval", "--fail-under"]],
    ids=" ".join,
)
def test_an_option_takes_numbers_only(capsys: Capture, arguments: list[str], value: str) -> None:
    assert run([*arguments, value]) == 2
    assert "Invalid value" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["search", "jaguar", "--index"], ["migrate", ".notewell/index.sqlite"]]
)
def test_no_folder_is_made_for_a_misspelt_index(
    tmp_path: Path, capsys: Capture, arguments: list[str]
) -> None:
    run(["index"])
    place = tmp_path / "typo/dir/x.sqlite"
    assert run([*arguments, str(place)]) == 2
    assert f"there is no folder {place.parent} for the index" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_the_index_of_a_settings_file_gets_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEWELL_INDEX_PATH", str(tmp_path / "new/dir/x.sqlite"))
    assert run(["search", "jaguar"]) == 0
    assert (tmp_path / "new/dir/x.sqlite").exists()


@pytest.mark.skipif(os.name == "nt", reason="a current folder cannot be deleted there")
def test_a_current_folder_that_was_deleted_is_said_with_what_to_do(
    workspace: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for command in (["search", "jaguar"], ["sources"], ["doctor"], ["remember", "x"]):
        assert run([*command, "--json"]) == 2
        told = json.loads(capsys.readouterr().out)["error"]
        assert told["code"] == "workspace"
        assert "-w" in told["hint"]
    assert run(["search", "jaguar", "-w", str(workspace)]) == 0
    monkeypatch.setenv("NOTEWELL_WORKSPACE", str(workspace))
    assert run(["search", "jaguar"]) == 0
