"""`notewell install`: sets up agents with the server, hooks and a skill, shows each change first,
and can undo it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from notewell.errors import UsageError
from notewell.settings import user_file
from notewell.surfaces.cli.options import emit, json_option
from notewell.surfaces.failures import without_mcp
from notewell.surfaces.install.changes import Change, planned, read, write
from notewell.surfaces.install.entries import AGENTS, Agent, program

_NAMES = ", ".join(AGENTS)
_NOT_WRITTEN = "not written"
_UNASKED = "add --yes to write without a question"


@click.command(epilog=f"Agents: {_NAMES}")
@click.argument("names", nargs=-1, metavar="[AGENT]...")
@click.option("--uninstall", is_flag=True, help="Take everything back that this command wrote.")
@click.option("--print", "only_print", is_flag=True, help="Only show what would be written.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@click.option(
    "-w",
    "--workspace",
    type=click.Path(),
    help="Workspace to serve (default: the one the agent works in).",
)
@click.option(
    "--no-hooks", is_flag=True, help="Only the tools: nothing is recalled or kept by itself."
)
@click.option(
    "--settings-from",
    type=click.Path(exists=True),
    help="Import memorySearch settings from an OpenClaw file.",
)
@json_option
def install(
    names: Sequence[str],
    *,
    uninstall: bool,
    only_print: bool,
    yes: bool,
    workspace: str | None,
    no_hooks: bool,
    settings_from: str | None,
    as_json: bool,
) -> None:
    """Set up agents: the MCP server, hooks, and a skill that says when to use it.

    Without names, it takes the agents found on this machine. Each change is shown first.

    \b
    notewell install --print            show what would change
    notewell install claude-code codex  set up two agents
    notewell install claude-desktop -w ~/notes
    notewell install --uninstall        take everything back
    notewell install --settings-from ~/.openclaw/openclaw.json
    """
    env = os.environ
    changes: list[Change] = []
    notes: list[str] = []
    if settings_from:
        from notewell.surfaces.install.openclaw import imported  # noqa: PLC0415

        file = user_file(env)
        before = read(file)
        after, notes = imported(read(Path(settings_from)), before)
        changes.append(Change("settings", file, before, after))
    chosen = _chosen(names, env, needed=not settings_from)
    if (missing := without_mcp()) and not uninstall and any(one.name != "hermes" for one in chosen):
        notes.append(f"{missing}: {missing.hint}")
    for one in chosen:
        folder = os.path.abspath(os.path.expanduser(workspace)) if workspace else ""
        if not (one.finds or folder or uninstall):
            asks = sys.stdin.isatty() and not (yes or only_print or as_json)
            if not asks and not names:
                notes.append(
                    f"{one.title} has no project folder: notewell install {one.name} -w FOLDER"
                )
                continue
            folder = _asked(one, asks=asks)
        edits = one.edits(program(env), folder, env, hooks=uninstall or not no_hooks)
        changes += [planned(one.name, one.title, edit, undo=uninstall) for edit in edits]
        if not uninstall:
            notes += _notes(one, folder)
    _carry_out(changes, notes, ask=not yes, only_print=only_print, as_json=as_json)


def _chosen(names: Sequence[str], env: Mapping[str, str], *, needed: bool) -> list[Agent]:
    for name in names:
        if name not in AGENTS:
            raise UsageError(f"no agent is called {name!r}", hint=f"there are: {_NAMES}")
    if names:
        return [AGENTS[name] for name in dict.fromkeys(names)]
    found = [a for a in AGENTS.values() if needed and a.found(env)]
    if needed and not found:
        raise UsageError("no agent was found on this machine", hint=f"name one: {_NAMES}")
    return found


def _notes(one: Agent, folder: str) -> list[str]:
    """What a person should know about an agent that is set up."""
    absent = bool(folder) and not os.path.isdir(folder)
    missing = (
        f"{folder} is not a folder yet: make it before you start {one.title}" if absent else ""
    )
    return [
        f"{one.title} gets this workspace: {folder or one.finds}",
        *filter(None, [one.note, missing]),
    ]


def _asked(one: Agent, *, asks: bool) -> str:
    """The folder that a person names for an agent that has none."""
    if not asks:
        raise UsageError(
            f"{one.title} has no project folder", hint="name the folder of your notes with -w"
        )
    named = click.prompt(
        f"folder of the notes for {one.title}", type=click.Path(file_okay=False), err=True
    )
    return os.path.abspath(os.path.expanduser(str(named)))


def _carry_out(
    changes: Sequence[Change], notes: Sequence[str], *, ask: bool, only_print: bool, as_json: bool
) -> None:
    done: list[dict[str, Any]] = []
    for name, group in groupby(changes, key=lambda one: one.name):
        several = list(group)
        for one in several:
            click.echo(one.diff, err=as_json or not only_print, nl=False)
        wanted = [one for one in several if one.changes]
        asked = ask and bool(wanted)
        agreed = not only_print and (not asked or (not as_json and _confirmed(_question(wanted))))
        for one in several:
            verdict = _verdict(one, agreed=agreed)
            if agreed:
                write(one)
            done.append({"name": name, "file": str(one.file), "verdict": verdict})
            if not as_json:
                click.echo(f"{name}: {one.file} {verdict}", err=only_print)
    if as_json and any(one["verdict"] == _NOT_WRITTEN for one in done) and not only_print:
        notes = [*notes, f"nothing was written: {_UNASKED}"]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        emit({"changes": done, "notes": list(notes)})


def _confirmed(question: str) -> bool:
    """The answer of a person; an error where there is nobody to ask."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError("nobody answers here, so nothing was written", hint=_UNASKED) from None


def _verdict(one: Change, *, agreed: bool) -> str:
    if not one.changes:
        return "as it was"
    return ("removed" if one.after is None else "written") if agreed else _NOT_WRITTEN


def _question(changes: Sequence[Change]) -> str:
    verb = "write" if any(one.after is not None for one in changes) else "remove"
    return f"{verb} {', '.join(str(one.file) for one in changes)}?"
