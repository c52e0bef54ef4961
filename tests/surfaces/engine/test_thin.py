"""What a command reads of its line before anything is loaded: the same as click, or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import NotewellError
from notewell.surfaces.cli.commands import cli
from notewell.surfaces.cli.hooking import hook
from notewell.surfaces.engine import thin
from notewell.surfaces.engine.place import name_of
from tests.surfaces.engine.conftest import Desk

WORDS = st.one_of(
    st.sampled_from(
        [
            *sorted(thin.COMMANDS),
            *thin.OPENING,
            *sorted(thin.SEARCHING),
            *sorted(thin.SEARCH_FLAGS),
            "--read-only",
            "-",
            "--",
            "--json=1",
            "-k3",
            "-k=3",
            "-wx",
            "-kw",
            "-x",
            "--since=2026",
            "--setting=search.limit=3",
            "deploy",
            "3",
            "a=b",
        ]
    ),
    st.text(max_size=5),
)


def options_of(command: click.Command, *, flags: bool) -> set[str]:
    own = [p for p in command.params if isinstance(p, click.Option) and p.is_flag is flags]
    return {name for option in own for name in option.opts}


def test_it_knows_all_commands_and_all_options_of_a_search() -> None:
    assert set(cli.commands) == thin.COMMANDS
    assert options_of(cli.commands["search"], flags=False) == {*thin.OPENING, *thin.SEARCHING}
    assert options_of(cli.commands["search"], flags=True) - {"-h", "--help"} == thin.SEARCH_FLAGS
    assert set(thin.MCP_FLAGS) < options_of(cli.commands["mcp"], flags=True)
    assert set(thin.HOOK_OPTIONS) == options_of(hook, flags=False)


def told_by_click(line: list[str]) -> tuple[str, dict[str, Any]] | None:
    """The command and the options of a line; None where something is wrong with it, which an engine
    leaves to click.
    """
    try:
        with cli.make_context("notewell", list(line)) as context:
            first: list[str] = getattr(context, "_protected_args", [])
            command, *args = [*first, *context.args]
            with cli.commands[command].make_context(command, args, parent=context) as inner:
                return command, inner.params
    except (click.ClickException, click.exceptions.Exit, NotewellError):
        return None


@given(st.lists(WORDS, max_size=6))
def test_what_it_reads_click_reads_in_the_same_way(line: list[str]) -> None:
    found = thin.read(line)
    told = told_by_click(line) if found else None
    if found is None or told is None:
        return
    command, options = told
    last = dict(found.opening)
    assert command == found.command
    assert [options[name] for name in ("workspace", "index_path", "model")] == [
        last.get(name) for name in ("workspace", "index", "model")
    ]
    assert list(options["given"]) == [value for name, value in found.opening if name == "setting"]
    assert list(options.get("words", ())) == found.words


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["--help"],
        ["search"],
        ["search", "-"],
        ["search", "--", "-x"],
        ["get", "x"],
        ["mcp", "x"],
        ["x", "-x3"],
        ["x", "--setting", "engine.enabled=1"],
        ["x", "--setting", "y"],
        ["x", "--index", "relative.sqlite"],
        ["x", "-w"],
        ["x", "--read-only"],
        ["mcp", "--since", "2026"],
        ["x", "--unknown"],
        ["x", "-w", ""],
    ],
)
def test_what_is_not_certain_is_done_here(line: list[str], root: Path) -> None:
    assert thin.asked(line, {"XDG_RUNTIME_DIR": str(root)}) is None


def test_it_asks_nobody_where_engines_are_not_wanted(desk: Desk) -> None:
    line = ["search", "x", "-w", str(desk.root)]
    assert thin.asked(line, desk.env)
    for no in ("0", "false", "No", "off"):
        assert thin.asked(line, {**desk.env, "NOTEWELL_ENGINE_ENABLED": no}) is None


def test_whatever_an_answer_depends_on_names_another_engine(tmp_path: Path) -> None:
    env = {"HOME": "/home/a", "PATH": "/bin", "NOTEWELL_WORKSPACE": "/x"}
    first = name_of("/notes", (), env)
    assert (
        name_of(
            "/notes", (), {**env, "PATH": "/usr/bin", "NOTEWELL_WORKSPACE": "/y", "COLUMNS": "9"}
        )
        == first
    )
    others = [
        name_of("/other", (), env),
        name_of("/notes", ("--model", "none"), env),
        *(
            name_of("/notes", (), {**env, **more})
            for more in ({"NOTEWELL_SEARCH_LIMIT": "3"}, {"HOME": "/b"}, {"TZ": "UTC"})
        ),
    ]
    assert len({first, *others}) == 1 + len(others)


def test_every_variable_that_the_source_reads_is_known_to_it() -> None:
    import re

    from notewell.surfaces.engine.place import VARIABLES

    source = Path(thin.__file__).parents[2]
    named = re.compile(r'"((?:[A-Z][A-Z0-9]*_)+(?:HOME|DIR|ROOT|API_KEY|FILE))"')
    found = {
        name
        for room in ("sources", "embed", "store", "index", "search", "notes")
        for file in (source / room).rglob("*.py")
        for name in named.findall(file.read_text(encoding="utf-8"))
    }
    assert len(found) > 10
    assert found <= VARIABLES


def test_a_command_beside_an_engine_loads_almost_nothing(desk: Desk) -> None:
    desk.start()
    code = (
        "import sys; from notewell.surfaces.engine import attach, thin;"
        # A busy machine may let the engine wait; who looks whether it does needs more modules.
        "attach.ask.__kwdefaults__['silence_s'] = 60.0;"
        "one = thin.asked(['search', 'staging port'], dict(__import__('os').environ)); "
        "code = thin.answer(one)[0];"
        "heavy = {'numpy', 'click', 'apsw', 'mcp', 'notewell.memory', "
        "'notewell.settings', 'dataclasses', 'asyncio'};"
        "assert code == 0 and not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=desk.root,
        env=desk.env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"8081" in done.stdout


def test_a_hook_whose_stdin_is_not_json_is_left_to_the_hook(desk: Desk) -> None:
    desk.start()
    for sent in (b"", b"[]", b"\xff", b"{", b"[" * 100_000):
        assert desk.run("hook", "prompt", sent=sent).stdout == b""
    assert os.path.exists(desk.place.address)
