"""`notewell migrate`: copies an index from a file into a database, or back."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from notewell.errors import StoreError
from notewell.surfaces.cli import render
from notewell.surfaces.cli.ending import FailedAnswer
from notewell.surfaces.cli.options import (
    answer,
    json_option,
    setting_option,
    workspace_of,
    workspace_option,
)
from notewell.surfaces.shapes import Shape

if TYPE_CHECKING:
    from notewell.index.migrate import Migrated


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--overwrite", is_flag=True, help="Delete what the target holds of other notes.")
@workspace_option
@setting_option
@json_option
def migrate(
    source: str,
    target: str,
    *,
    overwrite: bool,
    workspace: str | None,
    given: Sequence[str],
    as_json: bool,
) -> None:
    """Copy an index: FROM and TO are files or postgresql:// addresses.

    Nothing is embedded again. If it is interrupted, run the same command again: it goes on where it
    stopped.

    \b
    notewell migrate .notewell/index.sqlite postgresql://db.example/notewell
    notewell migrate postgresql://db.example/notewell .notewell/index.sqlite
    """
    from notewell.index.migrate import migrate as copy  # noqa: PLC0415
    from notewell.notes.tombstones import tombstones_of  # noqa: PLC0415
    from notewell.store.locate import folder_away, open_named  # noqa: PLC0415
    from notewell.store.nearest import keeps_here  # noqa: PLC0415

    here = workspace_of(workspace, given)
    root, settings = Path(os.path.realpath(here.root)), here.settings()
    with contextlib.ExitStack() as stack:
        stores = []
        for name, new in ((source, False), (target, True)):
            stores.append(open_named(name, root=root, settings=settings, new=new))
            stack.callback(stores[-1].close)
        here_too = keeps_here(root, settings.trusted_folders)
        forgotten = functools.partial(
            tombstones_of, root=root, away=folder_away(root, os.environ), here=here_too
        )
        done = copy(*stores, tombstones=forgotten, overwrite=overwrite, progress=render.Bar())
    if done.verified or not as_json:
        answer(as_json, lambda: _wire(done), lambda: _show(done))
    if not done.verified:
        wrong = ", ".join(p.what for p in done.parts if not p.same)
        hint = "run the command again; the source was not changed"
        error = StoreError(
            f"{done.target} does not hold what {done.source} holds: {wrong}", hint=hint
        )
        raise FailedAnswer(error, _wire(done))


def _wire(done: Migrated) -> dict[str, Any]:
    from notewell.index.migrate import Migrated, Part  # noqa: PLC0415

    part = Shape("what count count_there=there checksum checksum_there same", Part)
    shape = Shape("source target copied already_there=already dropped verified parts", Migrated)
    return shape.fill(done, parts=[part.fill(p) for p in done.parts])


def _show(done: Migrated) -> None:
    click.echo(f"{render.one_line(done.source)} → {render.one_line(done.target)}")
    dropped = f", {done.dropped} deleted there" if done.dropped else ""
    click.echo(f"{done.copied} documents copied, {done.already} already there{dropped}")
    for p in done.parts:
        sums = p.checksum if p.same else f"{p.checksum} but {p.checksum_there}"
        count = str(p.count) if p.count == p.there else f"{p.count} but {p.there}"
        click.echo(f"  {'same' if p.same else 'DIFFERENT'}  {p.what:<11} {count:>9}  {sums}")
    if done.verified:
        click.echo("verified: both indexes hold the same")
