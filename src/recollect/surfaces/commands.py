"""The commands. Each is a thin door: read the flags, ask Memory, show the answer."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from recollect import __version__
from recollect.errors import RecollectError, UsageError, WorkspaceError
from recollect.memory import Memory
from recollect.settings import load
from recollect.store.place import find_workspace
from recollect.surfaces import render, view
from recollect.types import Filters

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Group(click.Group):
    """A group where a first word that is no command begins a search; options may stand before the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the command first: the one that is named, else `search`."""
        if args and args[0] not in {"-h", "--help", "-V", "--version"}:
            place = self._first_word(args)
            if place < len(args) and args[place] in self.commands:
                args = [args[place], *args[:place], *args[place + 1 :]]
            else:
                args = ["search", *args]
        return super().parse_args(ctx, args)

    def _first_word(self, args: Sequence[str]) -> int:
        """Where the first argument is that is neither an option nor the value of one."""
        options = [p for p in self.commands["search"].params if isinstance(p, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] not in ("-", "--"):
            place += 2 if args[place] in valued else 1
        return place

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for."""
        from recollect.surfaces.topics import write  # noqa: PLC0415 - only for the help

        write(formatter, self.commands)


@click.group(cls=_Group, context_settings=_CONTEXT, no_args_is_help=True)
@click.version_option(__version__, "-V", "--version", message="recollect %(version)s")
def cli() -> None:
    """Search your notes and agent memory, locally, with the reason for every rank.

    \b
    recollect "what did we decide about auth tokens"
    recollect search --since 2026-03 --json deploy
    recollect why "staging port" memory/2026-05-06.md
    """


def _place_options(command: Callable[..., Any]) -> Callable[..., Any]:
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
            "--index", "index_path", type=click.Path(), help="Index file to use instead of the workspace's own."
        ),
        click.option("-w", "--workspace", type=click.Path(), help="Folder with MEMORY.md or memory/."),
    ):
        command = option(command)
    return command


def _workspace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that every command has, and opens the memory for it."""

    @_place_options
    @functools.wraps(command)
    def wrapped(
        workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], **rest: Any
    ) -> Any:
        root, flags = _place(workspace, index_path, model, given)
        with Memory.open(root, **flags) as memory:
            return command(memory=memory, **rest)

    return wrapped


def _place(
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
    flags |= {"index__path": os.path.abspath(index_path)} if index_path else {}
    return root, flags | ({"embed__model": model} if model else {})


def _emit(value: dict[str, Any]) -> None:
    data = json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _question(words: Sequence[str]) -> str:
    if list(words) == ["-"]:
        return sys.stdin.buffer.read(1_000_000).decode("utf-8", "replace")
    return " ".join(words)


def _day(text: str | None, flag: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    if not text:
        return None
    from recollect.text.dates import parse_day  # noqa: PLC0415

    day = parse_day(text, now, end=end)
    if day is None:
        raise UsageError(
            f"{flag} {text!r} is no date", hint='try 2026-03-19, 2026-03, "last week", "3 days ago" or 30d'
        )
    return day


def _search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("-k", "--limit", type=click.IntRange(1, 1000), help="How many hits."),
            click.option("--since", help="Only notes of this day or later: a date, a month or a phrase."),
            click.option("--until", help="Only notes of this day or earlier."),
            click.option("--path", default="", help="Only files under a folder or matching a glob."),
            click.option(
                "--source", type=click.Choice(["memory", "extra", "sessions", "media"]), help="Only one source."
            ),
            click.option(
                "--origin",
                type=click.Choice(["owner", "agent", "untrusted", "system"]),
                help="Only what these wrote.",
            ),
            click.option(
                "--profile", help="Named pipeline: default, lexical, vector, rrf, openclaw, maxnorm, siftcoder."
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


def _options(
    *, since: str | None, until: str | None, path: str, source: str | None, origin: str | None, now: str | None,
    no_sync: bool, as_of: str | None = None, **rest: Any,
) -> dict[str, Any]:  # fmt: skip
    try:
        clock = dt.datetime.fromisoformat(now) if now else dt.datetime.now()  # noqa: DTZ005 - the days of this place
    except ValueError:
        raise UsageError(f"--now {now!r} is no ISO date", hint="try 2026-03-19") from None
    past = _day(as_of, "--as-of", clock, end=True)
    if past and now:
        raise UsageError("--as-of and --now both say what day it is", hint="give one of them")
    clock = dt.datetime.combine(past, dt.time.max) if past else clock
    days = _day(since, "--since", clock), _day(until, "--until", clock, end=True)
    if days[0] and days[1] and days[0] > days[1]:
        raise UsageError(f"--since {days[0]} is after --until {days[1]}", hint="change their order")
    filters = Filters(*days, path, source or "", origin or "", past)
    return {**rest, "filters": filters, "now": clock, "sync": not no_sync}


@cli.command()
@click.argument("words", nargs=-1, required=True)
@_search_options
@click.option("--explain", is_flag=True, help="Also show what every leg and stage did.")
@click.option(
    "--format", "shape", type=click.Choice(["text", "json", "context"]), default="text",
    help="For people, for programs, or one block for a prompt (of --budget-tokens, 2000 when not given).",
)  # fmt: skip
@_workspace
def search(memory: Memory, words: Sequence[str], *, as_json: bool, explain: bool, shape: str, **flags: Any) -> None:
    """Find the passages that answer a question ('-': from stdin).

    \b
    recollect search "deploy day" -k 3 --since 2026-05
    recollect search "auth" --format context --budget-tokens 800
    """
    as_json = as_json or shape == "json"
    if shape == "context":
        from recollect.surfaces.context import show  # noqa: PLC0415

        show(memory, _question(words), _options(**flags), emit=_emit if as_json else None, explain=explain)
        return
    found = memory.search(_question(words), **_options(**flags))
    if as_json:
        _emit(view.found(found, explain=explain))
        return
    render.notices(found.notices)
    render.answer(found)
    if explain:
        render.trace(found)


@cli.command()
@click.argument("query")
@click.argument("reference")
@_search_options
@_workspace
def why(memory: Memory, query: str, reference: str, *, as_json: bool, **flags: Any) -> None:
    """Say why a passage ranks where it does, or why it is missing.

    The passage is an id, a path or path:lines. For what it was made from and what it led to, see 'recollect trace'.

    \b
    recollect why "staging port" memory/2026-05-06.md
    """
    found, story = memory.why(_question([query]), reference, **_options(**flags))
    if as_json:
        _emit(view.why(found, story))
        return
    render.notices(found.notices)
    render.why(story)


@cli.command()
@click.option("--force", is_flag=True, help="Read and cut every file again; vectors of unchanged text are kept.")
@click.option("--no-embed", is_flag=True, help="Keywords only, for now.")
@click.option("--prune", is_flag=True, help="Then drop vectors of earlier models and of text that is gone.")
@_workspace
def index(memory: Memory, *, force: bool, no_embed: bool, prune: bool, as_json: bool) -> None:
    """Bring the index up to the files; report each file passed over.

    \b
    recollect index
    recollect index --force --prune
    """
    said = None if as_json else render.estimate
    report = memory.sync(force=force, embed=not no_embed, progress=render.Bar(), estimate=said)
    if prune:
        report = replace(report, pruned=memory.prune())
    if as_json:
        _emit(view.report(report))
        return
    render.notices(report.notices)
    render.report(report)


@cli.command()
@click.argument("reference")
@click.option("--raw", is_flag=True, help="The file as it is on disk, with secrets and private blocks.")
@_workspace
def get(memory: Memory, reference: str, *, raw: bool, as_json: bool) -> None:
    """Print a passage or note: by id, path, path:from-to or citation.

    \b
    recollect get memory/auth.md:13-14
    recollect get MEMORY.md --raw
    """
    text = memory.get(reference, raw=raw)
    if as_json:
        _emit(view.text(text))
    else:
        click.echo(render.printable(text.text))


@cli.command()
@click.option("--deep", is_flag=True, help="Also ask every model: how fast, how large, and whether it makes sense.")
@_workspace
def status(memory: Memory, *, deep: bool, as_json: bool) -> None:
    """Compare the files with the index, by looking.

    \b
    recollect status
    recollect status --deep
    """
    found = memory.status(deep=deep)
    if as_json:
        _emit(view.status(found))
        return
    render.notices(found.notices)
    render.status(found)


@cli.command()
@_place_options
def config(
    workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], *, as_json: bool
) -> None:
    """Show every setting with where its value came from.

    \b
    recollect config
    recollect config --json
    """
    root, flags = _place(workspace, index_path, model, given)
    if not root.is_dir():
        raise WorkspaceError(f"{root} is not a folder", hint="make the folder, or name another with -w")
    settings = load(root, env=os.environ, flags={k.replace("__", "."): v for k, v in flags.items() if v})
    if as_json:
        _emit(view.config(settings))
    else:
        render.config(settings)


@cli.command()
@click.argument("folder", default=".", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def init(folder: str, *, as_json: bool) -> None:
    """Make a workspace: MEMORY.md, memory/ and a settings file.

    What is there already is left alone.

    \b
    recollect init my-notes
    """
    from recollect.surfaces.starter import start  # noqa: PLC0415

    made = start(Path(folder))
    if as_json:
        _emit({"workspace": str(Path(folder).resolve()), "made": made})
        return
    for name in made:
        click.echo(f"made {name}")
    click.echo(f"{folder} is a workspace; write notes, then: recollect search WORDS")


@cli.command()
@click.option("--to", "folder", type=click.Path(), help="Where to put the sample notes (default: a temporary folder).")
def demo(folder: str | None) -> None:
    """Make a sample workspace and show what can be done with it.

    \b
    recollect demo
    recollect demo --to sample-notes
    """
    from recollect.surfaces.starter import show  # noqa: PLC0415

    show(Path(folder) if folder else None)


@cli.command()
@click.option("--deep", is_flag=True, help="Also read the whole index, and ask models that are not on this machine.")
@_place_options
def doctor(
    workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], *, deep: bool, as_json: bool
) -> None:
    """Say what is wrong, and what mends it.

    Looks at everything a search needs; exits 1 when something fails.

    \b
    recollect doctor
    recollect doctor --deep
    """
    from recollect.surfaces import doctor as own  # noqa: PLC0415

    root, flags = _place(workspace, index_path, model, given)
    checks = own.examine(root, flags, os.environ, deep=deep)
    if as_json:
        _emit(own.wire(checks))
    else:
        own.show(checks)
    if own.failed(checks):
        raise click.exceptions.Exit(1)


@cli.command(name="eval")
@click.argument("sets", nargs=-1)
@click.option("--profile", "profiles", default="default,lexical,vector", help="Profiles to measure, with commas.")
@click.option("--against", default="", help="Compare every other profile with this one, question by question.")
@click.option("--only", multiple=True, help="Only this set of a folder of sets (repeatable).")
@click.option("--by-type", is_flag=True, help="A line for every type of question.")
@click.option("--save", type=click.Path(), help="Write all figures to a JSON file.")
@click.option("--baseline", type=click.Path(exists=True), help="Compare with figures saved before.")
@click.option("--fail-under", type=float, help="Exit 1 when nDCG@10 is under this (with --baseline: under it by more).")
@click.option(
    "--cache", type=click.Path(), help="Where vectors of corpora are kept (default: the user's cache folder)."
)
@click.option("-o", "--output", type=click.Path(), help="With 'mine': the file to write instead of stdout.")
@click.option("--most", type=click.IntRange(1, 1000), default=60, help="With 'mine': how many questions at most.")
@_place_options
def evaluate(
    workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], *, sets: Sequence[str],
    profiles: str, against: str, only: Sequence[str], by_type: bool,
    save: str | None, baseline: str | None, fail_under: float | None, cache: str | None, output: str | None,
    most: int, as_json: bool,
) -> None:  # fmt: skip
    """Measure the ranking on labelled questions.

    SETS are folders of the public format, a folder of such folders, or a .jsonl or .yaml file of
    {query, expect: path[#line], type?}. Without any, the workspace's eval.jsonl is used.
    'recollect eval mine' proposes such a file from your own notes.

    \b
    recollect eval mine -o eval.jsonl
    recollect eval --profile default,rrf --against default
    """
    from recollect.eval import report  # noqa: PLC0415
    from recollect.surfaces import evaluate as own  # noqa: PLC0415

    root, flags = _place(workspace, index_path, model, given)
    with own.opened(root, flags, sets) as memory:
        if list(sets) == ["mine"]:
            own.write(own.propose(memory, most), output)
            return
        names = [p.strip() for p in profiles.split(",") if p.strip()]
        runs = own.measure(memory, sets, profiles=names, cache=Path(cache) if cache else None, only=only)
    own.show(runs, by_type=by_type, against=against, as_json=as_json)
    if save:
        Path(save).write_text(json.dumps(report.as_dict(runs), indent=2) + "\n", encoding="utf-8")
    objections = report.gate(runs, Path(baseline) if baseline else None, fail_under)
    if objections:
        raise own.GateError("; ".join(objections), hint="look at the figures above, or set the bar anew with --save")


@contextlib.contextmanager
def _codes() -> Iterator[list[int]]:
    """Errors to stderr and exit codes, in one place."""
    code = [0]
    try:
        yield code
    except click.exceptions.Exit as stop:
        code[0] = stop.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        code[0] = 130
    except click.ClickException as error:
        error.show()
        code[0] = error.exit_code
    except RecollectError as error:
        click.secho(render.printable(f"error: {error}"), err=True, fg="red")
        if error.hint:
            click.secho(render.printable(f"hint: {error.hint}"), err=True)
        code[0] = 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        # The reader went away; nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        click.secho(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True, fg="red")
        code[0] = 1


from recollect.surfaces import history  # noqa: E402 - its commands need the group and the options above

history.join(cli, _workspace, _emit)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code."""
    with _codes() as code:
        if "_RECOLLECT_COMPLETE" in os.environ:
            cli.main(list(arguments), prog_name="recollect")
        with cli.make_context("recollect", list(arguments)) as context:
            cli.invoke(context)
    return code[0]


from recollect.surfaces import install as _install  # noqa: E402, F401 - further commands of the same group
from recollect.surfaces import servers as _servers  # noqa: E402, F401
from recollect.surfaces import writing  # noqa: E402

for _command in writing.COMMANDS:
    cli.add_command(_command)
