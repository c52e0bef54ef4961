"""The one question: conversations with agents were found, are they to be read?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from notewell.memory import conversations_found
from notewell.settings import Settings
from notewell.settings_file import write_setting
from notewell.surfaces.cli.options import Workspace, on_terminal
from notewell.text.words import counted


def ask_once(here: Workspace) -> None:
    """Asks at a search on a terminal, and remembers the answer in the user's own settings; never in
    a pipe.
    """
    if not on_terminal() or not here.root.is_dir():
        return
    settings = here.settings()
    if not (found := _unasked(here.root, settings)):
        return
    try:
        wanted = click.confirm(_question(found), default=False, err=True)
    except click.Abort:
        click.echo("", err=True)
        raise
    if wanted:
        file = write_setting("sources", (*settings.sources, "sessions"), here.root, os.environ)
        click.echo(
            (
                "conversations are read from now on, in your other projects too: see sources in "
                f"{file}"
            ),
            err=True,
        )
    write_setting("sessions.ask", value=False, root=here.root, env=os.environ)


def has_question(root: Path, settings: Settings) -> bool:
    """Whether a search on a terminal would ask."""
    return bool(_unasked(root, settings))


def _unasked(root: Path, settings: Settings) -> dict[str, int]:
    return conversations_found(root) if _is_open(settings) else {}


def _is_open(settings: Settings) -> bool:
    """Whether nobody has said yet what is read."""
    return (
        settings.sessions.ask
        and "sessions" not in settings.sources
        and "sources" not in settings.origins
    )


def _question(found: Mapping[str, int]) -> str:
    count = sum(found.values())
    things = counted(count, "conversation")
    return (
        f"found {things} of {_listed(sorted(found, key=lambda name: -found[name]))} for this "
        "project; read them?"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
