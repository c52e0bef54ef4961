"""`notewell sources`: what is read and what is not, and adding and dropping it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from notewell.settings import AGENTS, user_file
from notewell.surfaces.cli.commands import run
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(root: Path, own_environment: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "none")
    monkeypatch.chdir(root)
    write("MEMORY.md", "- The kiln is hot.\n")
    write("walks/forest.md", "The forest is dark.\n")
    place = (
        own_environment / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(root)) / "one.jsonl"
    )
    place.parent.mkdir(parents=True)
    said = {
        "type": "user",
        "cwd": str(root),
        "message": {"role": "user", "content": "The otter swims."},
    }
    place.write_text(json.dumps(said) + "\n")


def asked(capsys: Capture, *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def states(answer: dict[str, Any]) -> dict[str, tuple[bool, int]]:
    return {one["name"]: (one["read"], one["documents"]) for one in answer["sources"]}


def finds(capsys: Capture, words: str) -> bool:
    return bool(asked(capsys, "search", words)["results"])


def test_the_list_has_what_is_read_and_what_is_not(capsys: Capture) -> None:
    answer = asked(capsys, "sources")
    assert states(answer) == {"memory": (True, 1), "folder": (False, 1), "sessions": (False, 1)}
    assert answer["changed"] is None
    assert all(one["about"] and one["command"].startswith("notewell ") for one in answer["sources"])
    assert run(["sources"]) == 0
    shown = capsys.readouterr().out
    assert "not read  sessions  1 conversation: with Claude Code" in shown
    assert "notewell sources add sessions" in shown


def test_who_takes_trust_back_learns_whether_the_notes_still_count_as_theirs(
    capsys: Capture, root: Path
) -> None:
    codes = [one["code"] for one in asked(capsys, "sources", "distrust")["notices"]]
    assert codes == ["still_trusted"]
    (root / ".svn").mkdir()
    assert [one["code"] for one in asked(capsys, "sources", "distrust")["notices"]] == [
        "clone_not_trusted"
    ]
    assert [one["code"] for one in asked(capsys, "remember", "The otter swims.")["notices"]] == [
        "clone_not_trusted"
    ]


def test_conversations_are_added_and_dropped_in_your_own_file(capsys: Capture, root: Path) -> None:
    assert not finds(capsys, "otter")
    answer = asked(capsys, "sources", "add", "sessions")
    assert answer["changed"]["file"] == str(user_file(os.environ))
    assert states(answer)["sessions"] == (True, 1)
    assert finds(capsys, "otter")
    assert asked(capsys, "sources", "drop", "sessions")["changed"]["value"] == ["memory", *AGENTS]
    assert not finds(capsys, "otter")
    assert not (root / "notewell.toml").exists()


def test_the_folder_is_added_and_dropped_beside_the_notes(capsys: Capture, root: Path) -> None:
    assert not finds(capsys, "forest")
    assert states(asked(capsys, "sources", "add", "folder"))["folder"] == (True, 2)
    assert finds(capsys, "forest")
    asked(capsys, "sources", "drop", "folder")
    assert (root / "notewell.toml").read_text() == 'folder = "never"\n'
    assert not finds(capsys, "forest")


def test_a_path_in_the_workspace_is_added_and_dropped(capsys: Capture, root: Path) -> None:
    assert asked(capsys, "sources", "add", "walks")["changed"]["value"] == ["walks"]
    assert finds(capsys, "forest")
    assert asked(capsys, "sources", "drop", "./walks")["changed"]["value"] == []
    assert not finds(capsys, "forest")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["add"], "sessions"),
        (["add", "sesions"], "did you mean sessions"),
        (["add", ".."], "extra_paths"),
        (["drop", "walks"], "folder"),
        (["add", "no/such"], "a path"),
    ],
)
def test_what_cannot_be_a_source_is_refused(
    capsys: Capture, root: Path, words: list[str], hint: str
) -> None:
    before = sorted(root.rglob("*"))
    assert run(["sources", *words]) == 2
    assert hint in capsys.readouterr().err
    assert sorted(root.rglob("*")) == before


def test_the_last_source_stays(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(capsys, "sources", "drop", "memory")
    for name in AGENTS[1:]:
        asked(capsys, "sources", "drop", name)
    assert run(["sources", "drop", AGENTS[0]]) == 2
    assert "nothing would be read" in capsys.readouterr().err
    assert [n["hint"] for n in asked(capsys, "kiln")["notices"] if n["code"] == "no_notes"]


def test_a_file_has_no_say_where_a_variable_has_decided(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEWELL_SOURCES", "memory")
    assert run(["sources", "add", "sessions"]) == 2
    assert "NOTEWELL_SOURCES" in capsys.readouterr().err
