"""`recollect migrate`: an index from a file into a database, or back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.errors import StoreError
from recollect.settings import load
from recollect.surfaces import render
from recollect.surfaces.options import emit, place

if TYPE_CHECKING:
    from recollect.sync.migrate import Migrated


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--overwrite", is_flag=True, help="Drop what the target holds of other notes.")
@click.option("-w", "--workspace", type=click.Path(), help="Folder whose notes these are.")
@click.option("--setting", "given", multiple=True, metavar="KEY=VALUE", help="Any setting of 'recollect config'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def migrate(
    source: str, target: str, *, overwrite: bool, workspace: str | None, given: Sequence[str], as_json: bool
) -> None:
    """Copy an index: FROM and TO are files or postgresql:// addresses.

    Nothing is embedded again. A run that was stopped is taken up where it was by the same command.

    \b
    recollect migrate .recollect/index.sqlite postgresql://db.example/recollect
    recollect migrate postgresql://db.example/recollect .recollect/index.sqlite
    """
    from recollect.store.place import open_named  # noqa: PLC0415
    from recollect.sync.migrate import migrate as copy  # noqa: PLC0415

    root, flags = place(workspace, None, None, given)
    root = Path(os.path.realpath(root))
    settings = load(root, env=os.environ, flags={key.replace("__", "."): value for key, value in flags.items()})
    with contextlib.ExitStack() as stack:
        stores = []
        for name, new in ((source, False), (target, True)):
            stores.append(open_named(name, root=root, settings=settings, new=new))
            stack.callback(stores[-1].close)
        done = copy(*stores, overwrite=overwrite, progress=render.Bar())
    if as_json:
        emit(_wire(done))
    else:
        _show(done)
    if not done.verified:
        wrong = ", ".join(p.what for p in done.parts if not p.same)
        raise StoreError(
            f"{done.target} does not hold what {done.source} holds: {wrong}",
            hint="run it again; nothing was taken from the source",
        )


def _wire(done: Migrated) -> dict[str, Any]:
    return {
        "source": done.source,
        "target": done.target,
        "copied": done.copied,
        "already_there": done.already,
        "dropped": done.dropped,
        "verified": done.verified,
        "parts": [
            {
                "what": p.what, "count": p.count, "count_there": p.there, "checksum": p.checksum,
                "checksum_there": p.checksum_there, "same": p.same,
            }
            for p in done.parts
        ],
    }  # fmt: skip


def _show(done: Migrated) -> None:
    click.echo(f"{render.one_line(done.source)} → {render.one_line(done.target)}")
    dropped = f", {done.dropped} dropped there" if done.dropped else ""
    click.echo(f"{done.copied} documents copied, {done.already} were there{dropped}")
    for p in done.parts:
        sums = p.checksum if p.same else f"{p.checksum} but {p.checksum_there}"
        count = str(p.count) if p.count == p.there else f"{p.count} but {p.there}"
        click.echo(f"  {'same' if p.same else 'DIFFERENT'}  {p.what:<11} {count:>9}  {sums}")
    if done.verified:
        click.echo("verified: both sides hold the same")


COMMANDS: tuple[click.Command, ...] = (migrate,)
