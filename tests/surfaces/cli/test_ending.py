"""How commands fail: for people on stderr, for programs as one object on stdout, and never as a
traceback.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from notewell.errors import StoreError
from notewell.settings import state_folder
from notewell.surfaces import failures
from notewell.surfaces.cli import ending
from notewell.surfaces.cli.commands import cli, run
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]
SECRET = "the safe opens with 4711"


def options_of(command: click.Command) -> set[str]:
    return {
        name for param in command.params if isinstance(param, click.Option) for name in param.opts
    }


def words_of(command: click.Command) -> list[str]:
    """As many arguments as a command needs."""
    needed = [
        param for param in command.params if isinstance(param, click.Argument) and param.required
    ]
    return [
        "x"
        if not isinstance(p.type, click.Choice)
        else next(c for c in p.type.choices if c in ACTS)
        for p in needed
    ]


ACTS = ("log", "status")
NAMES = sorted(name for name, command in cli.commands.items() if "--json" in options_of(command))


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("MEMORY.md", f"# Facts\n\n- {SECRET}\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


def told(capsys: Capture, code: int, *arguments: str) -> dict[str, str]:
    """The error of a command line that fails."""
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    found = json.loads(out)["error"]
    assert set(found) == {"code", "message", "hint"}
    assert all(isinstance(value, str) for value in found.values())
    assert found["code"]
    assert found["message"].strip() in err
    return found  # type: ignore[no-any-return]


def test_every_command_but_the_demo_takes_json() -> None:
    assert set(cli.commands) - set(NAMES) == {"demo"}


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_option_is_told_as_json(capsys: Capture, name: str) -> None:
    found = told(capsys, 2, name, *words_of(cli.commands[name]), "--nonsense", "--json")
    assert found["code"] == "usage"
    assert f"notewell {name} --help" in found["hint"]


@pytest.mark.parametrize("name", [n for n in NAMES if words_of(cli.commands[n])])
def test_a_missing_argument_is_told_as_json(capsys: Capture, name: str) -> None:
    assert "Missing argument" in told(capsys, 2, name, "--json")["message"]


@pytest.mark.parametrize("name", [n for n in NAMES if "--setting" in options_of(cli.commands[n])])
def test_a_setting_that_does_not_exist_is_told_as_json(capsys: Capture, name: str) -> None:
    arguments = [name, *words_of(cli.commands[name]), "--setting", "search.limt=1", "--json"]
    if name == "doctor":  # which finds that out by itself
        assert "search.limt" in json.loads(failing(capsys, arguments))["error"]["message"]
        return
    found = told(capsys, 2, *arguments)
    assert (found["code"], found["hint"]) == ("settings", "did you mean search.limit?")


def failing(capsys: Capture, arguments: list[str]) -> str:
    assert run(arguments) == 1
    return capsys.readouterr().out


ANYWHERE = ("init", "install", "doctor", "migrate", "hook")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ANYWHERE])
def test_a_workspace_that_does_not_exist_is_told_as_json(
    capsys: Capture, tmp_path: Path, name: str
) -> None:
    arguments = [name, *words_of(cli.commands[name]), "-w", str(tmp_path / "none"), "--json"]
    assert told(capsys, 2, *arguments)["code"] == "workspace"


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_expected_has_an_id_and_a_log(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, own_environment: Path, name: str
) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise RuntimeError(f"could not read: {SECRET}")

    monkeypatch.setattr(cli.commands[name], "callback", broken)
    found = told(capsys, 1, name, *words_of(cli.commands[name]), "--json")
    assert found["code"] == "unexpected"
    assert SECRET not in str(found)
    number = re.search(r"id ([0-9a-f]{8})", found["message"])
    assert number is not None
    log = state_folder({}) / failures.LOG
    assert log.is_relative_to(own_environment)
    assert str(log) in found["hint"]
    assert number[1] in log.read_text(encoding="utf-8")
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (["--json"], 2, "usage"),
        (["--json", "--nonsense"], 2, "usage"),
        (["x", "--profile", "rff", "--json"], 2, "usage"),
        (["search", "x", "--format", "json", "--limit", "0"], 2, "usage"),
        (["search", "x", "--format=json", "--as-of", "soon"], 2, "argument"),
        (["get", "nothing.md", "--json"], 2, "not_found"),
        (["--json", "get", "nothing.md"], 2, "not_found"),
        (["init", "MEMORY.md/x", "--json"], 1, "os"),
        (["eval", "--profile", ",", "--json"], 2, "usage"),
    ],
)
def test_a_failure_has_its_code(
    capsys: Capture, arguments: list[str], code: int, kind: str
) -> None:
    assert told(capsys, code, *arguments)["code"] == kind


def test_without_json_nothing_is_on_stdout(capsys: Capture) -> None:
    assert run(["get", "nothing.md"]) == 2
    assert run(["get", "--", "--json"]) == 2
    assert capsys.readouterr().out == ""


def test_figures_below_the_bar_come_with_the_error_in_one_object(
    capsys: Capture, write: Write
) -> None:
    write("eval.jsonl", '{"query": "nothing of the kind", "expect": "other.md"}\n')
    assert run(["eval", "--profile", "lexical", "--fail-under", "0.9", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found.pop("error")["code"] == "gate"
    assert found


def test_a_failed_check_comes_with_the_error_in_one_object(
    capsys: Capture, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEWELL_SEARCH_LIMIT", "none")
    assert run(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert found["error"]["code"] == "checks_failed"


def raised() -> Iterator[Exception]:
    for number in (1, 2):
        try:
            raise ValueError(str(number) * 5_000)
        except ValueError as error:
            yield error


def test_the_same_fault_has_the_same_id() -> None:
    one, other = raised()
    assert (
        failures.fingerprint(one)
        == failures.fingerprint(other)
        != failures.fingerprint(ValueError())
    )


def test_the_log_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    for number in range(100):
        failures.known(ValueError(f"fault {number} {'x' * 5_000}"), env)
    log = tmp_path / "notewell" / failures.LOG
    assert log.stat().st_size <= failures.MOST_BYTES
    text = log.read_text(encoding="utf-8")
    assert text.startswith("== ")
    assert "fault 99 " in text
    assert "fault 1 " not in text


def test_a_key_in_an_error_is_not_in_the_log(tmp_path: Path) -> None:
    failures.known(ValueError("password: hunter2hunter2"), {"XDG_STATE_HOME": str(tmp_path)})
    assert "hunter2" not in (tmp_path / "notewell" / failures.LOG).read_text(encoding="utf-8")


def test_a_log_that_cannot_be_written_is_said_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = failures.known(ValueError("x"), {"XDG_STATE_HOME": str(tmp_path / "file")})
    assert "could not be written" in error.hint
    (tmp_path / "notewell").mkdir()
    (tmp_path / "notewell" / failures.LOG).symlink_to(tmp_path / "file")
    assert (
        "could not be written"
        in failures.known(ValueError("x"), {"XDG_STATE_HOME": str(tmp_path)}).hint
    )
    assert (tmp_path / "file").read_text() == ""


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = StoreError("away", hint="wait")
    assert failures.known(error) is error
    assert failures.code_of(error) == "store"


def test_a_thread_that_fails_prints_a_sentence(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(threading, "excepthook", ending.thread_failed)
    thread = threading.Thread(target=broken)
    thread.start()
    thread.join()
    err = capsys.readouterr().err
    assert err.startswith("error: something went wrong inside notewell (RuntimeError, id ")
    assert SECRET not in err


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_are_off_where_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    assert ending.colour() is None
    monkeypatch.setenv(variable, value)
    assert ending.colour() is False
