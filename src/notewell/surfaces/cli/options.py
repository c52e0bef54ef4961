"""The options that commands share, and what is made of them: the workspace, a question, filters,
JSON on stdout.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from notewell.errors import UsageError
from notewell.memory import Memory
from notewell.search.profiles import PROFILES
from notewell.settings import ORIGINS, Settings, index_flags, load
from notewell.store.nearest import find_workspace
from notewell.surfaces import arguments
from notewell.surfaces.arguments import SOURCES, local_now
from notewell.surfaces.cli import render
from notewell.types import Notice

Command = Callable[..., Any]


class Number(click.FloatRange):
    """A number in a range; `nan` is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, if it is one."""
        found = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if math.isnan(found) else found


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
workspace_option = click.option(
    "-w", "--workspace", type=click.Path(), help="Folder of your notes."
)
setting_option = click.option(
    "--setting",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting of 'notewell config' (repeatable).",
)
index_option = click.option(
    "--index",
    "index_path",
    metavar="FILE|URL",
    help="Index file or postgresql:// address, if not the usual one.",
)
model_option = click.option("--model", help="Embedding model by name; 'none' for keywords only.")
_WORKSPACE = (workspace_option, index_option, setting_option, model_option, json_option)
_FILTERS = (
    click.option("--path", default="", help="Only files in a folder or matching a glob."),
    click.option("--source", type=click.Choice(SOURCES), help="Only this source."),
    click.option("--origin", type=click.Choice(ORIGINS), help="Only text from this origin."),
)
_SEARCH = (
    click.option("-k", "--limit", type=click.IntRange(1, 1000), help="How many hits."),
    click.option("--since", help="Only notes from this day on: a date, a month or a phrase."),
    click.option("--until", help="Only notes up to this day."),
    *_FILTERS,
    click.option(
        "--profile",
        shell_complete=lambda _ctx, _param, text: [p for p in PROFILES if p.startswith(text)],
        help=f"Named pipeline: {', '.join(PROFILES)}.",
    ),
    click.option("--min-score", type=Number(0, 1), help="Lowest confidence of a hit."),
    click.option(
        "--all", "everything", is_flag=True, help="Also show hits that are almost surely wrong."
    ),
    click.option(
        "--budget-tokens", type=click.IntRange(0), default=0, help="Stop before this many tokens."
    ),
    click.option(
        "--include-superseded", is_flag=True, help="Also show older copies and superseded notes."
    ),
    click.option("--as-of", help="Answer as of that day: ignore notes with a later date."),
    click.option("--now", help="Use this ISO date as today."),
    click.option(
        "--no-sync",
        is_flag=True,
        help="Search the index as it is; do not check the files for changes.",
    ),
)


def _with(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    return lambda command: functools.reduce(
        lambda made, option: option(made), reversed(options), command
    )


filter_options = _with(_FILTERS)
search_options = _with(_SEARCH)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of a command's workspace, and the settings that its flags give."""

    root: Path
    flags: dict[str, Any]

    def settings(self) -> Settings:
        """The settings that hold here."""
        return load(self.root, env=os.environ, flags=self.flags)

    def open(self) -> Memory:
        """The memory of the workspace; references on the command line may be relative to the
        current folder.
        """
        memory = Memory.open(
            self.root, **{key.replace(".", "__"): value for key, value in self.flags.items()}
        )
        with contextlib.suppress(OSError):  # a folder that was deleted
            memory.notebook.cwd = Path.cwd()
        return memory


def workspace_of(
    workspace: str | None,
    given: Sequence[str],
    index_path: str | None = None,
    model: str | None = None,
) -> Workspace:
    """The workspace that the shared options name; a path on the command line is relative to the
    current folder.
    """
    flags: dict[str, Any] = {}
    for one in given:
        key, mark, value = one.partition("=")
        if not mark:
            raise UsageError(
                f"--setting {one!r} has no value", hint="write --setting search.limit=10"
            )
        flags[key.strip()] = value.strip()
    flags |= index_flags(index_path) if index_path is not None else {}
    flags |= {"embed.model": model} if model else {}
    return Workspace(Path(workspace) if workspace else find_workspace(None, os.environ), flags)


def with_workspace(
    command: Command, *, opens: bool = False, before: Command | None = None
) -> Command:
    """Adds the options for workspace, index, model and settings, and passes on the `Workspace`, or
    its open memory.

    `before` is called with the workspace and all other options before it is opened.
    """

    @_with(_WORKSPACE)
    @functools.wraps(command)
    def wrapped(
        workspace: str | None,
        index_path: str | None,
        model: str | None,
        given: Sequence[str],
        **rest: Any,
    ) -> Any:
        warm = click.get_current_context().obj
        # an engine, which has opened this very workspace with these options
        if opens and isinstance(warm, Memory):
            return command(memory=warm, **rest)
        here = workspace_of(workspace, given, index_path, model)
        if not opens:
            return command(here=here, **rest)
        if before is not None:
            before(here, **rest)
        with here.open() as memory:
            return command(memory=memory, **rest)

    return wrapped


with_memory = functools.partial(with_workspace, opens=True)


def on_terminal() -> bool:
    """Whether a person has typed this and reads the answer."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def emit(value: dict[str, Any]) -> None:
    """Prints one JSON object, in UTF-8 whatever the locale."""
    data = json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def answer(
    as_json: bool,  # noqa: FBT001 - the flag that every command has
    wire: Callable[[], dict[str, Any]],
    text: Callable[[], object],
    notices: Iterable[Notice] = (),
) -> None:
    """Prints an answer: as one JSON object, or as text with its notices on stderr."""
    if as_json:
        emit(wire())
    else:
        render.notices(notices)
        text()


def question(words: Sequence[str]) -> str:
    """The words as one text; a single dash reads it from stdin."""
    if list(words) == ["-"]:
        return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
    return " ".join(words)


def search_arguments(*, now: str | None, no_sync: bool, **flags: Any) -> dict[str, Any]:
    """The options of a search as `Memory.search` takes them."""
    try:
        clock = dt.datetime.fromisoformat(now) if now else local_now()
    except ValueError:
        raise UsageError(f"--now {now!r} is not an ISO date", hint="try 2026-03-19") from None
    if flags["as_of"] and now:
        raise UsageError("--as-of and --now both set the day", hint="give only one of them")
    if flags["everything"] and flags["min_score"]:
        raise UsageError(
            "--all and --min-score both set the lowest confidence", hint="give only one of them"
        )
    flags["min_score"] = 0.0 if flags["everything"] else flags["min_score"]
    filters, clock = arguments.filters(flags, clock, flags=True)
    rest = {
        key: flags[key]
        for key in ("limit", "profile", "min_score", "budget_tokens", "include_superseded")
    }
    return {**rest, "filters": filters, "now": clock, "sync": not no_sync}
