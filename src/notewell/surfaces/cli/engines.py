"""`notewell engine`: which processes answer in the background, how to stop them, and the process
itself.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from notewell.errors import StoreError, WorkspaceError
from notewell.surfaces.cli.options import (
    Workspace,
    answer,
    index_option,
    json_option,
    model_option,
    setting_option,
    workspace_of,
    workspace_option,
)
from notewell.surfaces.cli.render import one_line
from notewell.surfaces.engine.attach import NoAnswerError, ask
from notewell.surfaces.engine.launch import end_process, living, refused
from notewell.surfaces.engine.place import Place
from notewell.surfaces.engine.thin import options_of, place_of
from notewell.surfaces.shapes import plain

_ACTS = ("status", "stop", "run")
_PATIENCE_S = 2.0


@click.command()
@click.argument("act", type=click.Choice(_ACTS), metavar="status|stop|run")
@click.option("--all", "everywhere", is_flag=True, help="With stop: those of all workspaces.")
@workspace_option
@index_option
@setting_option
@model_option
@json_option
@click.option("--folder", hidden=True)
def engine(
    act: str,
    *,
    everywhere: bool,
    folder: str | None,
    workspace: str | None,
    index_path: str | None,
    given: tuple[str, ...],
    model: str | None,
    as_json: bool,
) -> None:
    """Show or stop the process that answers for all windows of a workspace.

    It is started by searches, hooks and 'notewell mcp', and ends by itself: see engine.idle_s.
    'run' is that process.

    \b
    notewell engine status
    notewell engine stop --all
    """
    root = ""
    if workspace or not (act == "status" or everywhere) or _is_somewhere():
        here = workspace_of(workspace, given, index_path, model)
        root = os.path.realpath(here.root)
        if not os.path.isdir(root):
            raise WorkspaceError(
                f"{root} is not a folder", hint="name the folder of your notes with -w"
            )
        here.settings()  # says what is wrong with them
        if act == "run":
            _run(here, place_of(root, options_of(given, index_path, model), os.environ), folder)
            return
    found = [(place, _status(place)) for place in living(os.environ)]
    if act == "stop":
        found = [
            (place, one) for place, one in found if everywhere or one.get("workspace", root) == root
        ]
        found = [(place, one) for place, one in found if _stop(place)]
    told = [one for _, one in found]
    notices = refused(os.environ)
    wire = {"stopped" if act == "stop" else "engines": told, "notices": plain(notices)}
    answer(as_json, lambda: wire, lambda: _show(act, told), notices)


def _is_somewhere() -> bool:
    """Whether the current folder is there; where it was deleted, engines can be listed and stopped
    all the same.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _run(here: Workspace, place: Place | None, folder: str | None) -> None:
    """The life of an engine."""
    # as after a logout: nobody would find it
    if place is None or place.folder != (folder or place.folder):
        raise StoreError(
            "there is no folder that belongs to you alone", hint="set XDG_RUNTIME_DIR to one"
        )
    from notewell.surfaces.engine.daemon import serve  # noqa: PLC0415

    if not serve(here, place, os.environ):
        click.echo("another engine serves this workspace", err=True)


def _status(place: Place) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(ask(place, "status", silence_s=_PATIENCE_S).out)
    except (NoAnswerError, ValueError) as error:
        return {"error": str(error)}
    return found


def _stop(place: Place) -> bool:
    """Asks an engine to end; one that does not answer is killed."""
    try:
        ask(place, "stop", silence_s=_PATIENCE_S)
    except NoAnswerError as error:
        return end_process(place) if error.hung else True
    return True


def _show(act: str, found: list[dict[str, Any]]) -> None:
    for one in found:
        if "error" in one:
            click.echo(one_line(f"an engine that does not answer: {one['error']}"))
        elif act == "stop":
            click.echo(one_line(f"stopped: {one['workspace']} (process {one['pid']})"))
        else:
            ends = (
                "a part of notewell serve"
                if one["hosted"]
                else f"ends after {one['idle_s']:g} s without use"
            )
            click.echo(one_line(one["workspace"]))
            click.echo(
                f"    process {one['pid']}, {one['memory_mb']:.0f} MB, up {one['seconds']} s,"
                f" {one['windows']} windows, {one['answered']} answers, {ends}"
            )
            looks = (
                "looks at no file that has not changed"
                if not one["looks"]
                else f"looks at every file: {one['looks']}"
            )
            click.echo(one_line(f"    {looks}"))
    if not found:
        click.echo("no engine runs" if act == "status" else "no engine was running here")
    sys.stdout.flush()
