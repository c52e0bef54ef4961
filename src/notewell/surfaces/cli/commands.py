"""The commands. Each reads its flags, asks Memory and shows the answer."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections import UserDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from notewell import __version__
from notewell.errors import UsageError, WorkspaceError
from notewell.memory import Memory
from notewell.search.prompt_block import DEFAULT_BUDGET
from notewell.surfaces import failures, view
from notewell.surfaces.cli import ending, options, render
from notewell.surfaces.cli.main import model_line
from notewell.surfaces.cli.options import (
    Workspace,
    answer,
    search_arguments,
    search_options,
    with_memory,
    with_workspace,
)
from notewell.types import Notice

TOPICS: Mapping[str, tuple[str, ...]] = {
    "Find": ("search", "get", "why", "timeline", "trace"),
    "Write": ("remember", "forget", "link", "import"),
    "Index": ("index", "sources", "watch", "status", "doctor", "migrate"),
    "Agents and browser": ("install", "hook", "mcp", "serve", "engine"),
    "Set up and measure": ("init", "config", "eval", "demo"),
}
# Commands with a module, which is loaded when one of them is used or all are listed.
_ELSEWHERE = {
    "timeline": "cli.tracing",
    "trace": "cli.tracing",
    "link": "cli.tracing",
    "remember": "cli.writing",
    "forget": "cli.writing",
    "watch": "cli.writing",
    "import": "cli.importing",
    "sources": "cli.choosing",
    "mcp": "cli.serving",
    "serve": "cli.serving",
    "install": "install.command",
    "migrate": "cli.moving",
    "hook": "cli.hooking",
    "engine": "cli.engines",
}
_LONGEST = 90
_MEANT = "notewell.meant"
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


class _Commands(UserDict[str, click.Command]):
    """The commands by name, those of `_ELSEWHERE` too."""

    def __getitem__(self, name: str) -> click.Command:
        found: click.Command | None = self.data[name]
        if found is None:
            module = importlib.import_module(f"notewell.surfaces.{_ELSEWHERE[name]}")
            found = self[name] = getattr(module, "import_" if name == "import" else name)
        return found


class _Group(click.Group):
    """A group where a first word that is not a command starts a search; options may come before the
    command.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Moves the command to the front, or puts `search` there."""
        if args and args[0].partition("=")[0] not in {
            "-h",
            "--help",
            "-V",
            "--version",
            "--completion",
        }:
            at = self._first_word(args)
            if at < len(args) and args[at] in self.commands:
                args = [args[at], *args[:at], *args[at + 1 :]]
            else:
                self._note_typo(ctx, args, at)
                args = ["search", *args]
        return super().parse_args(ctx, args)

    def _note_typo(self, ctx: click.Context, args: Sequence[str], at: int) -> None:
        """Notes the command that a first word may have been meant for; refuses options that only
        that command has.
        """
        import difflib  # noqa: PLC0415

        word = args[at] if at < len(args) else ""
        close = difflib.get_close_matches(word.casefold(), self.commands, n=1, cutoff=0.75)
        if not close or " " in word:
            return
        known = {name for option in self.commands["search"].params for name in option.opts}
        strange = [
            one
            for one in args[at + 1 :]
            if one.startswith("--") and one.partition("=")[0] not in known
        ]
        meant = " ".join((close[0], *args[:at], *args[at + 1 :]))
        if strange:
            message = f"there is no command {word!r}, and a search has no option {strange[0]}"
            raise UsageError(message, hint=f"did you mean: notewell {meant}")
        ctx.meta[_MEANT] = Notice(
            "did_you_mean",
            f"{word!r} is not a command, so it is searched for",
            f"did you mean: notewell {meant}",
        )

    def _first_word(self, args: Sequence[str]) -> int:
        """The position of the first argument that is neither an option nor the value of one."""
        options = [p for p in self.commands["search"].params if isinstance(p, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            at += 2 if args[at] in valued else 1
        return at

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a section for each topic."""
        width = max(map(len, self.commands))
        for topic, names in TOPICS.items():
            rows = [(f"{n:<{width}}", self.commands[n].get_short_help_str(_LONGEST)) for n in names]
            with formatter.section(topic):
                formatter.write_dl(rows)


def _completion(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    """Prints what a shell needs to complete our commands, options and their values."""
    if not shell or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"there is no completion for {shell}", hint="use bash, zsh or fish")
    click.echo(kind(cli, {}, "notewell", "_NOTEWELL_COMPLETE").source())
    ctx.exit()


@click.group(
    cls=_Group,
    commands=_Commands.fromkeys(_ELSEWHERE),
    context_settings=_CONTEXT,
    no_args_is_help=True,
)
@click.version_option(
    __version__, "-V", "--version", message=f"notewell %(version)s\n{model_line()}"
)
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_completion,
    help='Print shell completion; put eval "$(notewell --completion bash)" into ~/.bashrc.',
)
def cli() -> None:
    """Search your notes and agent memory on this machine, with the reason for every rank.

    \b
    notewell "what did we decide about auth tokens"
    notewell search --since 2026-03 --json deploy
    notewell why "staging port" memory/2026-05-06.md
    """


def _ask_once(here: Workspace, *, as_json: bool, shape: str, **_: Any) -> None:
    if not as_json and shape == "text":
        from notewell.surfaces.cli import asking  # noqa: PLC0415 - only on a terminal

        asking.ask_once(here)


@cli.command()
@click.argument("words", nargs=-1, required=True)
@search_options
@click.option("--explain", is_flag=True, help="Also show what every leg and stage did.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "context"]),
    default="text",
    help=(
        "text for people, json for programs, context for one prompt block of --budget-tokens "
        "(default 2000)."
    ),
)
@functools.partial(with_memory, before=_ask_once)
def search(
    memory: Memory, words: Sequence[str], *, as_json: bool, explain: bool, shape: str, **flags: Any
) -> None:
    """Find the passages that answer a question.

    '-' reads the question from stdin.

    \b
    notewell search "deploy day" -k 3 --since 2026-05
    notewell search "auth" --format context --budget-tokens 800
    """
    as_json = as_json or shape == "json"
    query, asked = options.question(words), search_arguments(**flags)
    if shape == "context":
        if explain and not as_json:
            raise UsageError(
                "a prompt block cannot hold a trace", hint="add --json, or leave out --explain"
            )
        budget = asked.pop("budget_tokens") or DEFAULT_BUDGET
        block = memory.context(query, budget_tokens=budget, **asked)
        notices = block.found.notices if block.found else ()
        answer(
            as_json,
            lambda: view.context(block, explain=explain),
            lambda: click.echo(block.text, nl=False),
            notices,
        )
        return
    found = memory.search(query, **asked)
    if meant := click.get_current_context().meta.get(_MEANT):
        found = replace(found, notices=(meant, *found.notices))
    answer(
        as_json,
        lambda: view.found(found, explain=explain),
        lambda: render.answer(found),
        found.notices,
    )
    if explain and not as_json:
        render.trace(found)


@cli.command()
@click.argument("query")
@click.argument("reference")
@search_options
@with_memory
def why(memory: Memory, query: str, reference: str, *, as_json: bool, **flags: Any) -> None:
    """Explain why a passage ranks where it does, or is missing.

    The passage is an id, a path or path:lines. 'notewell trace' shows what it came from and what it
    led to.

    \b
    notewell why "staging port" memory/2026-05-06.md
    """
    found, story = memory.why(options.question([query]), reference, **search_arguments(**flags))
    answer(as_json, lambda: view.why(found, story), lambda: render.why(story), found.notices)


@cli.command()
@click.option(
    "--force", is_flag=True, help="Read every file again; vectors of unchanged text are kept."
)
@click.option("--no-embed", is_flag=True, help="Index keywords only; make the vectors later.")
@click.option(
    "--prune", is_flag=True, help="Then delete the vectors of earlier models and of deleted text."
)
@click.option(
    "--worker",
    is_flag=True,
    help="Only make vectors, alongside other workers on the same database.",
)
@with_memory
def index(
    memory: Memory, *, force: bool, no_embed: bool, prune: bool, worker: bool, as_json: bool
) -> None:
    """Bring the index up to date; list the files that were skipped.

    \b
    notewell index
    notewell index --force --prune
    notewell index --worker --index postgresql://db.example/notewell
    """
    if worker and (force or no_embed):
        raise UsageError("a worker does not read notes", hint="leave out --force and --no-embed")
    bar = render.Bar()
    estimate = None if as_json else bar.estimate
    report = (
        memory.embed_shared(progress=bar)
        if worker
        else memory.sync(force=force, embed=not no_embed, progress=bar, estimate=estimate)
    )
    if prune:
        report = replace(report, pruned=memory.prune())
    answer(as_json, lambda: view.report(report), lambda: render.report(report), report.notices)


@cli.command()
@click.argument("reference")
@click.option(
    "--raw", is_flag=True, help="The file as it is on disk, with secrets and private blocks."
)
@with_memory
def get(memory: Memory, reference: str, *, raw: bool, as_json: bool) -> None:
    """Print a passage or note, by id, citation, path, lines, heading or name.

    \b
    notewell get memory/auth.md:13-14
    notewell get MEMORY.md --raw
    """
    text = memory.get(reference, raw=raw)
    answer(as_json, lambda: view.text(text), lambda: click.echo(render.printable(text.text)))
    if text.hidden and not raw and not as_json:
        where = f"{text.path}:{text.start_line}-{text.end_line}"
        click.secho(f"note: {render.hidden(text.hidden, where)}", err=True, fg="yellow")


@cli.command()
@click.option(
    "--deep",
    is_flag=True,
    help="Also ask every model: its speed, its size, and whether its vectors make sense.",
)
@with_memory
def status(memory: Memory, *, deep: bool, as_json: bool) -> None:
    """Compare the files on disk with the index.

    \b
    notewell status
    notewell status --deep
    """
    found = memory.status(deep=deep)
    answer(as_json, lambda: view.status(found), lambda: render.status(found), found.notices)


@cli.command()
@with_workspace
def config(here: Workspace, *, as_json: bool) -> None:
    """Show every setting and where its value comes from.

    \b
    notewell config
    notewell config --json
    """
    if not here.root.is_dir():
        raise WorkspaceError(
            f"{here.root} is not a folder", hint="make the folder, or name another with -w"
        )
    settings = here.settings()
    answer(as_json, lambda: view.config(settings), lambda: render.config(settings))


@cli.command()
@click.argument("folder", default=".", type=click.Path())
@options.json_option
def init(folder: str, *, as_json: bool) -> None:
    """Make a workspace: MEMORY.md, memory/ and a settings file.

    Existing files are left alone. A folder that has notes already needs none of this: just search
    it.

    \b
    notewell init my-notes
    """
    from notewell.surfaces.cli.starting import start  # noqa: PLC0415

    made = start(Path(folder))
    done = (
        f"{folder} is a workspace. Write one lasting fact a line into MEMORY.md, or run: "
        "notewell remember TEXT"
    )
    lines = "\n".join([*(f"made {name}" for name in made), done])
    answer(
        as_json,
        lambda: {"workspace": str(Path(folder).resolve()), "made": made},
        lambda: click.echo(lines),
    )


@cli.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(),
    help="Folder for the sample notes (default: a temporary one).",
)
def demo(folder: str | None) -> None:
    """Make a sample workspace and run a few commands in it.

    \b
    notewell demo
    notewell demo --to sample-notes
    """
    from notewell.surfaces.cli.starting import show  # noqa: PLC0415

    show(Path(folder) if folder else None)


@cli.command()
@click.option(
    "--deep", is_flag=True, help="Also read the entire index, and ask models on other machines."
)
@click.option(
    "--admit",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="As an administrator: give the tables of a database to nobody who logs in, and let this "
    "role use them (repeatable).",
)
@with_workspace
def doctor(here: Workspace, *, deep: bool, roles: Sequence[str], as_json: bool) -> None:
    """Find what is wrong, and how to fix it.

    Checks everything a search needs; exits with 1 if a check fails.

    \b
    notewell doctor
    notewell doctor --deep
    notewell doctor --admit alice --admit bob --index postgresql://postgres@db.example/notewell
    """
    from notewell.surfaces.cli import doctor as own  # noqa: PLC0415

    checks = (
        own.admit(here.settings(), roles)
        if roles
        else own.examine(here.root, here.flags, os.environ, deep=deep)
    )
    failed = own.failed(checks)
    told = {
        **own.wire(checks),
        **(failures.wire("checks_failed", ", ".join(failed), "see the checks") if failed else {}),
    }
    answer(as_json, lambda: told, lambda: own.show(checks))
    if failed:
        raise click.exceptions.Exit(1)


@cli.command(name="eval")
@click.argument("sets", nargs=-1)
@click.option(
    "--profile",
    "profiles",
    default="default,lexical,vector",
    help="Profiles to measure, comma-separated.",
)
@click.option(
    "--against", default="", help="Compare every other profile with this one, question by question."
)
@click.option("--only", multiple=True, help="Only this set of a folder of sets (repeatable).")
@click.option("--by-type", is_flag=True, help="Also show each type of question.")
@click.option("--save", type=click.Path(), help="Write all figures to a JSON file.")
@click.option(
    "--baseline", type=click.Path(exists=True), help="Compare with figures saved earlier."
)
@click.option(
    "--fail-under",
    type=options.Number(0, 1),
    help="Exit with 1 if nDCG@10 is lower (with --baseline: lower by more).",
)
@click.option(
    "--cache",
    type=click.Path(),
    help="Folder for vectors of corpora (default: the user's cache folder).",
)
@click.option(
    "-o", "--output", type=click.Path(), help="With 'mine': the file to write (default: stdout)."
)
@click.option(
    "--most",
    type=click.IntRange(1, 1000),
    default=60,
    help="With 'mine': at most this many questions.",
)
@with_workspace
def evaluate(
    here: Workspace,
    *,
    sets: Sequence[str],
    profiles: str,
    against: str,
    only: Sequence[str],
    by_type: bool,
    save: str | None,
    baseline: str | None,
    fail_under: float | None,
    cache: str | None,
    output: str | None,
    most: int,
    as_json: bool,
) -> None:
    """Measure the ranking on labelled questions.

    SETS are folders of the public format, a folder of such folders, or a .jsonl or .yaml file of
    {query, expect: path[#line], type?}. Without any, the workspace's eval.jsonl is used.
    'notewell eval mine' proposes such a file from your own notes.

    \b
    notewell eval mine -o eval.jsonl
    notewell eval --profile default,rrf --against default
    """
    from notewell.eval import report  # noqa: PLC0415
    from notewell.surfaces.cli import evaluate as own  # noqa: PLC0415

    with own.opened(here, sets) as memory:
        if list(sets) == ["mine"]:
            own.write(own.propose(memory, most), output, here.root)
            return
        names = [p.strip() for p in profiles.split(",") if p.strip()]
        runs = own.measure(
            memory, sets, profiles=names, cache=Path(cache) if cache else None, only=only
        )
    if not as_json:
        own.show(runs, by_type=by_type, against=against)
    if save:
        own.save(save, json.dumps(report.as_dict(runs), indent=2) + "\n", here.root)
    objections = report.gate(runs, Path(baseline) if baseline else None, fail_under)
    wire = report.as_dict(runs, by_type=by_type, against=against) if as_json else {}
    if objections:
        hint = "look at the figures above, or save a new baseline with --save"
        raise ending.FailedAnswer(own.GateError("; ".join(objections), hint=hint), wire)
    if as_json:
        options.emit(wire)


def run(arguments: Sequence[str]) -> int:
    """Runs a command line and returns its exit code; errors go to stderr, and with `--json` to
    stdout too.
    """
    code = 0
    try:
        if "_NOTEWELL_COMPLETE" in os.environ:
            cli.main(list(arguments), prog_name="notewell")
        with cli.make_context("notewell", list(arguments), color=ending.colour()) as context:
            cli.invoke(context)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except SystemExit as stop:  # a server that was told to stop
        code = stop.code if isinstance(stop.code, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        code = 130
    except BrokenPipeError:
        ending.reader_left()
    except Exception as error:  # noqa: BLE001 - the last resort: nobody should meet a traceback
        code = ending.failed(error, as_json=ending.wants_json(arguments))
    return code
