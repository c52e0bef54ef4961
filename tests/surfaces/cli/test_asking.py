"""The one question, on a terminal, once."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from notewell.surfaces.cli import asking
from notewell.surfaces.cli.commands import cli
from tests.conftest import Write
from tests.sources.sessions.layouts import ANSWER, LAYOUTS

ARGUMENTS = ["search", "staging port", "--model", "none", "-w"]


@pytest.fixture
def home(own_environment: Path, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("memory/a.md", "The cat is grey.")
    for layout in LAYOUTS[:2]:
        layout.make(own_environment, root)
    monkeypatch.setattr(asking, "on_terminal", lambda: True)
    return own_environment


def settings(home: Path) -> dict[str, object]:
    file = home / ".config/notewell/config.toml"
    return tomllib.loads(file.read_text()) if file.exists() else {}


def test_yes_reads_them_at_once_and_is_not_asked_again(home: Path, root: Path) -> None:
    file = home / ".config/notewell/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nconsolidate = false\n")
    result = CliRunner().invoke(cli, [*ARGUMENTS, str(root)], input="y\n")
    assert (
        "found 2 conversations of Claude Code and Codex for this project; read them? [y/N]"
        in result.stderr
    )
    assert ANSWER in result.stdout
    assert settings(home)["sources"][-1] == "sessions"  # type: ignore[index]
    assert file.read_text().startswith("# mine\nconsolidate = false\n")
    again = CliRunner().invoke(cli, [*ARGUMENTS, str(root)])
    assert "found" not in again.stderr
    assert ANSWER in again.stdout


def test_no_is_remembered_and_changes_nothing_else(home: Path, root: Path) -> None:
    result = CliRunner().invoke(cli, [*ARGUMENTS, str(root)], input="\n")
    assert ANSWER not in result.stdout
    assert settings(home) == {"sessions": {"ask": False}}
    assert "read them" not in CliRunner().invoke(cli, [*ARGUMENTS, str(root)]).stderr


@pytest.mark.parametrize(
    "more", [["--json"], ["--format", "context"], ["--setting", "sources=memory"]]
)
def test_programs_and_those_who_have_chosen_are_not_asked(
    home: Path, root: Path, more: list[str]
) -> None:
    result = CliRunner().invoke(cli, [*ARGUMENTS, str(root), *more])
    assert (result.exit_code, "read them" in result.stderr, settings(home)) == (0, False, {})
    if more == ["--json"]:
        json.loads(result.stdout)


def test_a_pipe_is_never_asked(home: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    result = CliRunner().invoke(cli, [*ARGUMENTS, str(root)], input="y\n")
    assert "read them" not in result.stderr
    assert settings(home) == {}


def test_nobody_is_asked_about_nothing(
    own_environment: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "on_terminal", lambda: True)
    assert "read them" not in CliRunner().invoke(cli, [*ARGUMENTS, str(root)]).stderr
    assert settings(own_environment) == {}


def test_the_doctor_warns_of_a_program_that_deletes(home: Path, root: Path) -> None:
    def said(*more: str) -> str:
        result = CliRunner().invoke(
            cli, ["doctor", "--model", "none", "-w", str(root), "--json", *more]
        )
        found = [c for c in json.loads(result.stdout)["checks"] if c["what"] == "conversations"]
        return f"{found[0]['verdict']}: {found[0]['detail']}" if found else ""

    assert (
        said()
        == "warn: Claude Code deletes its conversations after 30 days, and they are not read here"
    )
    (home / ".claude/settings.json").write_text('{"cleanupPeriodDays": 7}')
    read = ["--setting", "sources=memory,sessions"]
    assert (
        said(*read)
        == "ok: Claude Code deletes its conversations after 7 days; those that were read are kept"
    )
    assert said(*read, "--setting", "sessions.keep=false").startswith("warn: ")
