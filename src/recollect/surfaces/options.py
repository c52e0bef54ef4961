"""The options that commands share, and what is made of them: the workspace, a question, days, JSON on stdout."""

from __future__ import annotations

import datetime as dt
import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from recollect.errors import UsageError
from recollect.memory import Memory
from recollect.search.profiles import PROFILES
from recollect.settings import ORIGINS, index_flags
from recollect.store.place import find_workspace
from recollect.types import Filters

SOURCES = ("memory", "extra", "sessions", "media")


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say which workspace, index, model and settings."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
        click.option("--model", help="Embedding model by name; 'none' for keywords only."),
        click.option(
            "--setting",
            "given",
            multiple=True,
            metavar="KEY=VALUE",
            help="Any setting of 'recollect config' (repeatable).",
        ),
        click.option(
            "--index",
            "index_path",
            metavar="FILE|URL",
            help="Index file or postgresql:// address to use instead of the workspace's own.",
        ),
        click.option("-w", "--workspace", type=click.Path(), help="Folder with MEMORY.md or memory/."),
    ):
        command = option(command)
    return command


def with_memory(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that every command has, and opens the memory for it."""

    @place_options
    @functools.wraps(command)
    def wrapped(
        workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], **rest: Any
    ) -> Any:
        root, flags = place(workspace, index_path, model, given)
        with Memory.open(root, **flags) as memory:
            return command(memory=memory, **rest)

    return wrapped


def place(
    workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str]
) -> tuple[Path, dict[str, Any]]:
    """The workspace and the settings that flags give; a path on the command line is relative to where one stands."""
    root = Path(workspace) if workspace else find_workspace(Path.cwd(), os.environ)
    flags: dict[str, Any] = {}
    for one in given:
        key, mark, value = one.partition("=")
        if not mark:
            raise UsageError(f"--setting {one!r} has no value", hint="write --setting search.limit=10")
        flags[key.strip().replace(".", "__")] = value.strip()
    if index_path is not None:
        flags |= {key.replace(".", "__"): value for key, value in index_flags(index_path).items()}
    return root, flags | ({"embed__model": model} if model else {})


def emit(value: dict[str, Any]) -> None:
    """One JSON object on stdout, in UTF-8 whatever the locale."""
    data = json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def question(words: Sequence[str]) -> str:
    """The words as one text; a single dash reads it from stdin."""
    if list(words) == ["-"]:
        return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
    return " ".join(words)


def day(text: str | None, flag: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    """The day that a flag names, or None without one; of a span its first day, or with `end` its last."""
    if not text:
        return None
    from recollect.text.dates import parse_day  # noqa: PLC0415

    found = parse_day(text, now, end=end)
    if found is None:
        raise UsageError(
            f"{flag} {text!r} is no date", hint='try 2026-03-19, 2026-03, "last week", "3 days ago" or 30d'
        )
    return found


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a search."""
    for option in reversed(
        (
            click.option("-k", "--limit", type=click.IntRange(1, 1000), help="How many hits."),
            click.option("--since", help="Only notes of this day or later: a date, a month or a phrase."),
            click.option("--until", help="Only notes of this day or earlier."),
            click.option("--path", default="", help="Only files under a folder or matching a glob."),
            click.option("--source", type=click.Choice(SOURCES), help="Only one source."),
            click.option(
                "--origin",
                type=click.Choice(ORIGINS),
                help="Only what these wrote.",
            ),
            click.option(
                "--profile",
                shell_complete=lambda _ctx, _param, text: [p for p in PROFILES if p.startswith(text)],
                help="Named pipeline: default, lexical, vector, rrf, openclaw, maxnorm, siftcoder.",
            ),
            click.option("--min-score", type=click.FloatRange(0, 1), help="Least confidence of a hit."),
            click.option("--budget-tokens", type=click.IntRange(0), default=0, help="Stop before this many tokens."),
            click.option(
                "--include-superseded", is_flag=True, help="Also older copies and what another note supersedes."
            ),
            click.option("--as-of", help="Answer as if it were that day: notes dated later are not seen."),
            click.option("--now", help="Take this ISO date for today."),
            click.option(
                "--no-sync", is_flag=True, help="Answer from the index as it is, without a look at the files."
            ),
        )
    ):
        command = option(command)
    return command


def search_arguments(
    *, since: str | None, until: str | None, path: str, source: str | None, origin: str | None, now: str | None,
    no_sync: bool, as_of: str | None = None, **rest: Any,
) -> dict[str, Any]:  # fmt: skip
    """The options of a search as `Memory.search` takes them."""
    try:
        clock = dt.datetime.fromisoformat(now) if now else dt.datetime.now()  # noqa: DTZ005 - the days of this place
    except ValueError:
        raise UsageError(f"--now {now!r} is no ISO date", hint="try 2026-03-19") from None
    past = day(as_of, "--as-of", clock, end=True)
    if past and now:
        raise UsageError("--as-of and --now both say what day it is", hint="give one of them")
    clock = dt.datetime.combine(past, dt.time.max) if past else clock
    days = day(since, "--since", clock), day(until, "--until", clock, end=True)
    if days[0] and days[1] and days[0] > days[1]:
        raise UsageError(f"--since {days[0]} is after --until {days[1]}", hint="change their order")
    filters = Filters(*days, path, source or "", origin or "", past)
    return {**rest, "filters": filters, "now": clock, "sync": not no_sync}
