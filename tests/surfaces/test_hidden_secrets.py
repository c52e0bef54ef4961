"""Who finds a passage with a secret learns that one is hidden, and only a person how to see it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.surfaces import view
from notewell.surfaces.cli.commands import run
from notewell.surfaces.server import texts
from notewell.surfaces.server.calls import CALLS
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECRET = "korallenriff" + "-9-tiger"


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A note with a secret and one without."""
    write("memory/our wifi.md", f"# Wifi\n\nThe guest password of the wifi is {SECRET}.\n")
    write("memory/garden.md", "# Garden\n\nThe roses are cut in March.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "none")
    return root


def test_a_hit_at_the_terminal_names_the_command_that_shows_its_secret(capsys: Capture) -> None:
    assert run(["search", "guest wifi"]) == 0
    found = capsys.readouterr().out
    command = "notewell get --raw 'memory/our wifi.md:3-3'"
    assert f"! 1 secret hidden; {command} shows it" in found
    assert SECRET not in found

    assert run(["get", "--raw", "memory/our wifi.md:3-3"]) == 0
    shown = capsys.readouterr()
    assert SECRET in shown.out
    assert "hidden" not in shown.err


def test_a_passage_that_is_printed_says_so_beside_it(capsys: Capture) -> None:
    assert run(["get", "memory/our wifi.md"]) == 0
    shown = capsys.readouterr()
    assert "[redacted:password]" in shown.out
    assert "note: 1 secret hidden; notewell get --raw 'memory/our wifi.md:" in shown.err


@pytest.mark.parametrize("typed", ["{root}", "../my notes"])
def test_the_command_works_in_the_folder_where_it_was_printed(
    root: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    notes, elsewhere = tmp_path / "my notes", tmp_path / "elsewhere"
    shutil.copytree(root, notes)
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    folder = typed.format(root=notes)
    for words in (["search", "guest wifi"], ["get", "memory/our wifi.md"]):
        assert run([*words, "-w", folder]) == 0
        shown = "".join(capsys.readouterr())
        command = re.search(r"1 secret hidden; (notewell get --raw .+) shows it", shown)
        assert command
        assert command[1].endswith(f" -w '{folder}'")
        assert run(shlex.split(command[1])[1:]) == 0
        assert SECRET in capsys.readouterr().out


def test_the_readme_shows_what_a_hidden_secret_looks_like(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.search(
        r"`(\[redacted:\w+\])`[^`]+`(! 1 secret hidden; (notewell [^`]+) shows it)`", README
    )
    assert shown
    (tmp_path / "notes/memory").mkdir(parents=True)
    (tmp_path / "notes/memory/wifi.md").write_text(
        f"# Wifi\n\nThe password of the wifi is {SECRET}.\n"
    )
    monkeypatch.chdir(tmp_path / "notes")
    assert run(["where did we put the wifi password"]) == 0
    found = capsys.readouterr().out
    assert shown[1] in found
    assert shown[2] in found
    assert run(shlex.split(shown[3])[1:]) == 0
    assert SECRET in capsys.readouterr().out


def test_nothing_is_said_where_nothing_is_hidden(capsys: Capture) -> None:
    assert run(["search", "roses in March"]) == 0
    assert run(["get", "memory/garden.md"]) == 0
    assert "hidden" not in "".join(capsys.readouterr())


def test_programs_get_the_number(capsys: Capture) -> None:
    assert run(["search", "guest wifi", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["hidden"] == 1
    assert run(["get", "memory/garden.md", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hidden"] == 0


def test_a_model_is_told_of_a_secret_but_not_how_to_get_at_it(workspace: Path) -> None:
    with Memory.open(workspace) as memory:
        memory.sync()
        answers = [
            texts.search(view.found(memory.search("guest wifi"))),
            texts.get(view.text(memory.get("memory/our wifi.md"))),
        ]
    for said in answers:
        assert "! 1 secret hidden from you; the user can open the file" in said
        assert "--raw" not in said
        assert SECRET not in said
    assert not any(param.name == "raw" for call in CALLS.values() for param in call.params)
