"""`notewell eval`: figures for profiles on labelled questions, of the public sets or your own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from notewell.embed.cached import CachedEmbedder
from notewell.errors import NotewellError, UsageError
from notewell.eval import report, runner, sets
from notewell.memory import Memory
from notewell.opener import HINT, inside, is_in
from notewell.search.profiles import profile as check_profile
from notewell.settings import cache_folder
from notewell.store.locate import temporary_store
from notewell.surfaces.cli import render
from notewell.surfaces.cli.options import Workspace

OWN_FILE = "eval.jsonl"


class GateError(NotewellError):
    """A figure is below its bar."""


def opened(here: Workspace, paths: Sequence[str]) -> Memory:
    """The workspace's memory, or one in RAM if every set brings its own corpus, so that measuring
    leaves no trace.
    """
    if not paths or any(p == "mine" or Path(p).is_file() for p in paths):
        return here.open()
    return Memory(here.root, here.settings(), temporary_store())


def save(place: str, text: str, root: Path) -> None:
    """Writes a file that the user names; one in the workspace may be a link that came with a
    clone.
    """
    target = os.path.join(os.path.realpath(os.path.dirname(place) or "."), os.path.basename(place))
    try:
        if is_in(target, os.path.realpath(root)):
            inside(root).replace(target, text.encode(), mode=0o644)
        else:
            Path(place).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{place} cannot be written: {error.strerror}", hint=HINT) from error


def write(rows: Sequence[dict[str, Any]], output: str | None, root: Path) -> None:
    """Writes proposed questions to a file or to stdout."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if output:
        save(output, text, root)
        click.echo(f"{len(rows)} questions written to {output}", err=True)
    else:
        click.echo(text, nl=False)


def find_sets(memory: Memory, paths: Sequence[str]) -> list[sets.EvalSet]:
    """The named sets, all sets of a folder of sets, or the workspace's own set."""
    found: list[sets.EvalSet] = []
    for path in map(Path, paths):
        if not path.exists():
            hint = "give the folder of a set, a folder of sets, or a .jsonl file"
            raise UsageError(f"{path} does not exist", hint=hint)
        several = sorted(p.parent for p in path.glob("*/corpus.jsonl")) if path.is_dir() else []
        found += [sets.load(p) for p in several or [path]]
    own = memory.root / OWN_FILE
    if paths or os.path.lexists(own):
        return found or [sets.load(own, inside(memory.root))]
    rows = propose(memory, 60)
    made = f"{len(rows)} questions were made from your notes (see notewell eval mine)"
    click.secho(f"note: there is no {OWN_FILE} here, so {made}", err=True)
    return [sets.from_rows("mined", rows)]


def propose(memory: Memory, most: int) -> list[dict[str, Any]]:
    """Questions about the workspace's notes."""
    memory.sync()
    chunks = [
        c
        for path in sorted(memory.store.documents.stored())
        for c in memory.store.documents.chunks_of(path)
    ]
    rows = sets.propose(memory.store, chunks, most=most)
    if not rows:
        raise UsageError(
            "there are too few notes to make questions from",
            hint="write some notes, then try again",
        )
    return rows


def measure(
    memory: Memory,
    paths: Sequence[str],
    *,
    profiles: Sequence[str],
    cache: Path | None,
    only: Sequence[str] = (),
) -> list[runner.Run]:
    """Runs every set under every profile."""
    if not profiles:
        raise UsageError("no profile was named", hint="name one, such as --profile default")
    for name in profiles:
        check_profile(name)
    model = memory.embedder
    folder = cache or cache_folder(os.environ) / "eval"
    cached = CachedEmbedder(model, folder / "vectors.sqlite") if model is not None else None
    runs: list[runner.Run] = []
    for one in find_sets(memory, paths):
        if only and one.name not in only:
            continue
        if not one.corpora:
            memory.sync()
        runs += runner.evaluate(one, profiles, embedder=cached, own=memory, progress=render.Bar())
    if not runs:
        raise UsageError("no set was chosen", hint="--only takes the names of the folders")
    return runs


def show(runs: Sequence[runner.Run], *, by_type: bool, against: str) -> None:
    """Prints the figures."""
    click.echo(report.table(runs, by_type=by_type))
    if against:
        click.echo("\n" + report.comparison(runs, against))
    if any(r.profile == "default" for r in runs):
        click.echo("\n" + report.reliability_table(runs, "default"))
