"""`notewell sources`: lists what is read and what is not, adds or drops a source, and says whose
notes are trusted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

import click

from notewell.errors import UsageError
from notewell.settings import AGENTS, Settings, env_name
from notewell.settings_checks import SOURCE_NAMES
from notewell.settings_file import file_for, write_setting
from notewell.sources.inventory import SourceState
from notewell.sources.trust import trust_of
from notewell.store.nearest import EVERYBODY
from notewell.surfaces import view
from notewell.surfaces.cli import render
from notewell.surfaces.cli.options import Workspace, answer, with_workspace
from notewell.surfaces.cli.render import one_line
from notewell.surfaces.shapes import plain
from notewell.types import Notice, Skipped

_COUNT_S = 5.0  # whoever asks for the list wants whole counts
_NAMES = f"{', '.join(SOURCE_NAMES)}, folder, or a path in the workspace"


@click.command()
@click.argument("action", type=click.Choice(["add", "drop", "trust", "distrust"]), required=False)
@click.argument("name", required=False)
@with_workspace
def sources(here: Workspace, *, action: str | None, name: str | None, as_json: bool) -> None:
    """List what is read and what is not; add or drop a source; trust a folder.

    A source is memory, sessions, folder, the memory of an agent such as claude-memory, or a path in
    the workspace. The notes of another user, and of a clone in which you have not written, are
    untrusted until you trust its folder.

    \b
    notewell sources
    notewell sources add sessions
    notewell sources drop claude-memory
    notewell sources trust
    """
    done = None
    if action in ("trust", "distrust"):
        done = _written("trusted_folders", _trusted(action, name, here), here)
    elif action:
        if not name:
            raise UsageError(f"say what to {action}", hint=_NAMES)
        done = _written(*_changed(action, name, here), here)
    with here.open() as memory:
        states = memory.index.survey.states(within_s=_COUNT_S)
        unread = memory.index.walk.remarks().all()
        doubts = memory.index.trust.notices
        if action == "distrust" and not name and not doubts:
            message = (
                "the notes here still count as yours: you made this folder, or you have "
                "committed in it"
            )
            doubts = (Notice("still_trusted", message, ""),)
        wire = {
            "sources": [view.SOURCE.fill(state) for state in states],
            "unread": plain(unread),
            "changed": done,
            "notices": plain(doubts),
        }
    answer(as_json, lambda: wire, lambda: _show(states, unread, done), doubts)


def _written(key: str, value: str | list[str], here: Workspace) -> dict[str, object]:
    """Writes a setting where it belongs; beside the notes only if they are the user's."""
    root = _root(here)
    _refuse_override(key, here.settings())
    file = file_for(key, root, os.environ)
    if file.parent == root:
        trust_of(root, here.settings(), os.environ).refuse_writing(str(file))
    return {
        "setting": key,
        "value": value,
        "file": str(write_setting(key, value, root, os.environ)),
    }


def _trusted(action: str, name: str | None, here: Workspace) -> list[str]:
    """The folders that are trusted after a change; a program that pretends to be the user should
    not make one.
    """
    own = here.settings().trusted_folders
    trust = trust_of(_root(here), here.settings(), os.environ)
    doubt = trust.doubt
    folder = name or (doubt.folder if doubt else str(_root(here)))
    if folder != EVERYBODY:
        below = f"/{EVERYBODY}" if folder.endswith(f"/{EVERYBODY}") else ""
        folder = os.path.realpath(os.path.expanduser(folder.removesuffix(below))) + below
    if action == "distrust":
        trust.forget()
        return [one for one in own if one != folder]
    if not sys.stdin.isatty():
        hint = (
            f"type in a terminal: notewell sources trust {quote(folder)}; or set "
            "trusted_folders in your settings file"
        )
        raise UsageError("only a person at a terminal can say whose notes to trust", hint=hint)
    if folder != EVERYBODY and not os.path.isdir(folder.removesuffix(f"/{EVERYBODY}") or "/"):
        raise UsageError(
            f"there is no folder {folder}", hint="name the folder whose notes you trust"
        )
    return list(dict.fromkeys((*own, folder)))


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
        key, value = (
            "folder",
            ("all" if settings.folder == "always" else "always") if add else "never",
        )
    else:
        key, path = "extra_paths", _inside(name, here)
        kept = [one for one in settings.extra_paths if one != path]
        if not add and len(kept) == len(settings.extra_paths):
            raise UsageError(f"{name} is not a source", hint=_NAMES)
        value = [*kept, path] if add else kept
    return key, value


def _inside(name: str, here: Workspace) -> str:
    """A path as extra_paths have it: relative to the workspace, which it must be in."""
    root = str(_root(here))
    near = os.path.join(root, os.path.expanduser(name))
    place = os.path.realpath(
        near if os.path.exists(near) else os.path.abspath(os.path.expanduser(name))
    )
    if not os.path.exists(place):
        import difflib  # noqa: PLC0415

        close = difflib.get_close_matches(name, [*SOURCE_NAMES, "folder"], n=1)
        raise UsageError(
            f"there is no source and no path {name!r}",
            hint=f"did you mean {close[0]}?" if close else _NAMES,
        )
    inner = os.path.relpath(place, root)
    if inner.split(os.sep)[0] == os.pardir:
        hint = (
            "run notewell there, or put it into extra_paths of your own settings file, which "
            "holds for every workspace"
        )
        raise UsageError(f"{name} is outside the workspace", hint=hint)
    return inner.replace(os.sep, "/")


def _refuse_override(key: str, settings: Settings) -> None:
    """A file has no say where a variable or a flag has decided."""
    origin = settings.origins.get(key, "")
    if origin in (env_name(key), "flag"):
        what = f"{origin} is set" if origin != "flag" else f"--setting {key} is given"
        raise UsageError(
            f"{what}, so a settings file has no effect on {key}",
            hint="leave it out, then run this again",
        )


def _show(
    states: Sequence[SourceState], unread: Sequence[Skipped], done: Mapping[str, object] | None
) -> None:
    if done:
        everywhere = ", which holds for every workspace" if done["setting"] == "sources" else ""
        click.echo(
            one_line(f"{done['setting']} is now {done['value']!r} in {done['file']}{everywhere}")
        )
    width = max((len(state.name) for state in states), default=0)
    for state in states:
        mark = (
            click.style("read    ", fg="green")
            if state.read
            else click.style("not read", fg="yellow")
        )
        line = one_line(f"{state.name:<{width}}  {state.amount}: {state.about}")
        click.echo(f"{mark}  {line}")
        if state.command and (
            (state.documents and not state.read) or state.name in (*AGENTS, "sessions")
        ):
            click.secho(f"          {' ' * width}  {state.command}", dim=True)
    render.skipped(unread)
