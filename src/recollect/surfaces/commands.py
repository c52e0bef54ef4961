"""The commands. Each is a thin door: read the flags, ask Memory, show the answer."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from recollect import __version__
from recollect.errors import RecollectError, UsageError, WorkspaceError
from recollect.memory import Memory
from recollect.settings import load
from recollect.surfaces import history, install, moving, render, servers, view, writing
from recollect.surfaces.options import (
    emit,
    place,
    place_options,
    question,
    search_arguments,
    search_options,
    with_memory,
)

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Group(click.Group):
    """A group where a first word that is no command begins a search; options may stand before the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the command first: the one that is named, else `search`."""
        if args and args[0].partition("=")[0] not in {"-h", "--help", "-V", "--version", "--completion"}:
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


def _completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Prints what a shell needs to complete our commands, options and their values."""
    del param
    if not shell or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"{shell} has no completion", hint="bash, zsh or fish")
    click.echo(kind(cli, {}, "recollect", "_RECOLLECT_COMPLETE").source())
    ctx.exit()


@click.group(cls=_Group, context_settings=_CONTEXT, no_args_is_help=True)
@click.version_option(__version__, "-V", "--version", message="recollect %(version)s")
@click.option(
    "--completion", type=click.Choice(["bash", "zsh", "fish"]), is_eager=True, expose_value=False, callback=_completion,
    help='Print completion for a shell: eval "$(recollect --completion bash)" in ~/.bashrc.',
)  # fmt: skip
def cli() -> None:
    """Search your notes and agent memory, locally, with the reason for every rank.

    \b
    recollect "what did we decide about auth tokens"
    recollect search --since 2026-03 --json deploy
    recollect why "staging port" memory/2026-05-06.md
    """


@cli.command()
@click.argument("words", nargs=-1, required=True)
@search_options
@click.option("--explain", is_flag=True, help="Also show what every leg and stage did.")
@click.option(
    "--format", "shape", type=click.Choice(["text", "json", "context"]), default="text",
    help="For people, for programs, or one block for a prompt (of --budget-tokens, 2000 when not given).",
)  # fmt: skip
@with_memory
def search(memory: Memory, words: Sequence[str], *, as_json: bool, explain: bool, shape: str, **flags: Any) -> None:
    """Find the passages that answer a question ('-': from stdin).

    \b
    recollect search "deploy day" -k 3 --since 2026-05
    recollect search "auth" --format context --budget-tokens 800
    """
    as_json = as_json or shape == "json"
    if shape == "context":
        from recollect.surfaces.context import show  # noqa: PLC0415

        show(memory, question(words), search_arguments(**flags), emit=emit if as_json else None, explain=explain)
        return
    found = memory.search(question(words), **search_arguments(**flags))
    if as_json:
        emit(view.found(found, explain=explain))
        return
    render.notices(found.notices)
    render.answer(found)
    if explain:
        render.trace(found)


@cli.command()
@click.argument("query")
@click.argument("reference")
@search_options
@with_memory
def why(memory: Memory, query: str, reference: str, *, as_json: bool, **flags: Any) -> None:
    """Say why a passage ranks where it does, or why it is missing.

    The passage is an id, a path or path:lines. For what it was made from and what it led to, see 'recollect trace'.

    \b
    recollect why "staging port" memory/2026-05-06.md
    """
    found, story = memory.why(question([query]), reference, **search_arguments(**flags))
    if as_json:
        emit(view.why(found, story))
        return
    render.notices(found.notices)
    render.why(story)


@cli.command()
@click.option("--force", is_flag=True, help="Read and cut every file again; vectors of unchanged text are kept.")
@click.option("--no-embed", is_flag=True, help="Keywords only, for now.")
@click.option("--prune", is_flag=True, help="Then drop vectors of earlier models and of text that is gone.")
@click.option("--worker", is_flag=True, help="Only make vectors, beside other workers on the same database.")
@with_memory
def index(memory: Memory, *, force: bool, no_embed: bool, prune: bool, worker: bool, as_json: bool) -> None:
    """Bring the index up to the files; report each file passed over.

    \b
    recollect index
    recollect index --force --prune
    recollect index --worker --index postgresql://db.example/recollect
    """
    if worker and (force or no_embed):
        raise UsageError("a worker reads no notes", hint="leave out --force and --no-embed")
    said = None if as_json else render.estimate
    report = (
        memory.work(progress=render.Bar())
        if worker
        else memory.sync(force=force, embed=not no_embed, progress=render.Bar(), estimate=said)
    )
    if prune:
        report = replace(report, pruned=memory.prune())
    if as_json:
        emit(view.report(report))
        return
    render.notices(report.notices)
    render.report(report)


@cli.command()
@click.argument("reference")
@click.option("--raw", is_flag=True, help="The file as it is on disk, with secrets and private blocks.")
@with_memory
def get(memory: Memory, reference: str, *, raw: bool, as_json: bool) -> None:
    """Print a passage or note: by id, path, path:from-to or citation.

    \b
    recollect get memory/auth.md:13-14
    recollect get MEMORY.md --raw
    """
    text = memory.get(reference, raw=raw)
    if as_json:
        emit(view.text(text))
    else:
        click.echo(render.printable(text.text))


@cli.command()
@click.option("--deep", is_flag=True, help="Also ask every model: how fast, how large, and whether it makes sense.")
@with_memory
def status(memory: Memory, *, deep: bool, as_json: bool) -> None:
    """Compare the files with the index, by looking.

    \b
    recollect status
    recollect status --deep
    """
    found = memory.status(deep=deep)
    if as_json:
        emit(view.status(found))
        return
    render.notices(found.notices)
    render.status(found)


@cli.command()
@place_options
def config(
    workspace: str | None, index_path: str | None, model: str | None, given: Sequence[str], *, as_json: bool
) -> None:
    """Show every setting with where its value came from.

    \b
    recollect config
    recollect config --json
    """
    root, flags = place(workspace, index_path, model, given)
    if not root.is_dir():
        raise WorkspaceError(f"{root} is not a folder", hint="make the folder, or name another with -w")
    settings = load(root, env=os.environ, flags={k.replace("__", "."): v for k, v in flags.items() if v})
    if as_json:
        emit(view.config(settings))
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
        emit({"workspace": str(Path(folder).resolve()), "made": made})
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
@place_options
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

    root, flags = place(workspace, index_path, model, given)
    checks = own.examine(root, flags, os.environ, deep=deep)
    if as_json:
        emit(own.wire(checks))
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
@place_options
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

    root, flags = place(workspace, index_path, model, given)
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


def _colour() -> bool | None:
    """False where the environment asks for none; else what the terminal can do decides."""
    return False if os.environ.get("NO_COLOR") else None


@contextlib.contextmanager
def _codes() -> Iterator[list[int]]:
    """Errors to stderr and exit codes, in one place."""
    code = [0]
    try:
        yield code
    except click.exceptions.Exit as stop:
        code[0] = stop.exit_code
    except SystemExit as stop:  # a server that was asked to end
        code[0] = stop.code if isinstance(stop.code, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        code[0] = 130
    except click.ClickException as error:
        error.show()
        code[0] = error.exit_code
    except RecollectError as error:
        click.secho(render.printable(f"error: {error}"), err=True, fg="red", color=_colour())
        if error.hint:
            click.secho(render.printable(f"hint: {error.hint}"), err=True, color=_colour())
        code[0] = 2 if isinstance(error, UsageError) else 1
    except BrokenPipeError:
        # The reader went away; nothing is left to say to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        click.secho(
            f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "),
            err=True,
            fg="red",
            color=_colour(),
        )
        code[0] = 1


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code."""
    with _codes() as code:
        if "_RECOLLECT_COMPLETE" in os.environ:
            cli.main(list(arguments), prog_name="recollect")
        with cli.make_context("recollect", list(arguments), color=_colour()) as context:
            cli.invoke(context)
    return code[0]


for _command in (*history.COMMANDS, *writing.COMMANDS, *servers.COMMANDS, *install.COMMANDS, *moving.COMMANDS):
    cli.add_command(_command)
