"""`notewell sources`: lists what is read and what is not, and adds or drops a source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from notewell.errors import UsageError
from notewell.settings import AGENTS, Settings, env_name
from notewell.settings_checks import SOURCE_NAMES
from notewell.settings_file import write_setting
from notewell.sources.inventory import SourceState
from notewell.surfaces import view
from notewell.surfaces.cli.options import Workspace, answer, with_workspace
from notewell.surfaces.cli.render import one_line

_COUNT_S = 5.0  # whoever asks for the list wants whole counts
_NAMES = f"{', '.join(SOURCE_NAMES)}, folder, or a path in the workspace"


@click.command()
@click.argument("action", type=click.Choice(["add", "drop"]), required=False)
@click.argument("name", required=False)
@with_workspace
def sources(here: Workspace, *, action: str | None, name: str | None, as_json: bool) -> None:
    """List what is read and what is not; add or drop a source.

    A source is memory, sessions, folder, the memory of an agent such as claude-memory, or a path in the workspace.

    \b
    notewell sources
    notewell sources add sessions
    notewell sources drop claude-memory
    """
    done = None
    if action:
        if not name:
            raise UsageError(f"say what to {action}", hint=_NAMES)
        key, value = _changed(action, name, here)
        file = write_setting(key, value, _root(here), os.environ)
        done = {"setting": key, "value": value, "file": str(file)}
    with here.open() as memory:
        states = memory.index.survey.states(within_s=_COUNT_S)
        wire = {"sources": [view.SOURCE.fill(state) for state in states], "changed": done}
    answer(as_json, lambda: wire, lambda: _show(states, done))


def _root(here: Workspace) -> Path:
    return Path(os.path.realpath(here.root))


def _changed(action: str, name: str, here: Workspace) -> tuple[str, str | list[str]]:
    """The setting that a change is made in, and its new value."""
    settings = here.settings()
    add = action == "add"
    if name in SOURCE_NAMES:
        key, kept = "sources", [one for one in settings.sources if one != name]
        value: str | list[str] = [*kept, name] if add else kept
        if not value:
            raise UsageError("nothing would be read any more", hint="add another source first")
    elif name == "folder":
        key, value = "folder", ("all" if settings.folder == "always" else "always") if add else "never"
    else:
        key, path = "extra_paths", _inside(name, here)
        kept = [one for one in settings.extra_paths if one != path]
        if not add and len(kept) == len(settings.extra_paths):
            raise UsageError(f"{name} is not a source", hint=_NAMES)
        value = [*kept, path] if add else kept
    _refuse_override(key, settings)
    return key, value


def _inside(name: str, here: Workspace) -> str:
    """A path as extra_paths have it: relative to the workspace, which it must be in."""
    root = str(_root(here))
    near = os.path.join(root, os.path.expanduser(name))
    place = os.path.realpath(near if os.path.exists(near) else os.path.abspath(os.path.expanduser(name)))
    if not os.path.exists(place):
        import difflib  # noqa: PLC0415

        close = difflib.get_close_matches(name, [*SOURCE_NAMES, "folder"], n=1)
        raise UsageError(
            f"there is no source and no path {name!r}", hint=f"did you mean {close[0]}?" if close else _NAMES
        )
    inner = os.path.relpath(place, root)
    if inner.split(os.sep)[0] == os.pardir:
        hint = (
            "run notewell there, or put it into extra_paths of your own settings file, which holds for every workspace"
        )
        raise UsageError(f"{name} is outside the workspace", hint=hint)
    return inner.replace(os.sep, "/")


def _refuse_override(key: str, settings: Settings) -> None:
    """A file has no say where a variable or a flag has decided."""
    origin = settings.origins.get(key, "")
    if origin in (env_name(key), "flag"):
        what = f"{origin} is set" if origin != "flag" else f"--setting {key} is given"
        raise UsageError(f"{what}, so a settings file has no effect on {key}", hint="leave it out, then run this again")


def _show(states: Sequence[SourceState], done: Mapping[str, object] | None) -> None:
    if done:
        everywhere = ", which holds for every workspace" if done["setting"] == "sources" else ""
        click.echo(one_line(f"{done['setting']} is now {done['value']!r} in {done['file']}{everywhere}"))
    width = max((len(state.name) for state in states), default=0)
    for state in states:
        mark = click.style("read    ", fg="green") if state.read else click.style("not read", fg="yellow")
        line = one_line(f"{state.name:<{width}}  {state.amount}: {state.about}")
        click.echo(f"{mark}  {line}")
        if state.command and ((state.documents and not state.read) or state.name in (*AGENTS, "sessions")):
            click.secho(f"          {' ' * width}  {state.command}", dim=True)
