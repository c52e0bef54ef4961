"""`recollect eval`: figures for profiles on labelled questions, the public sets' or your own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from recollect import settings
from recollect.embed.cached import CachedEmbedder
from recollect.errors import RecollectError, UsageError
from recollect.eval import mine, report, runner, sets
from recollect.memory import Memory
from recollect.search.profiles import profile as check_profile
from recollect.store.sqlite import SqliteStore
from recollect.surfaces import render

OWN_FILE = "eval.jsonl"


class GateError(RecollectError):
    """A figure is under the bar that was set for it."""


def opened(root: Path, flags: Mapping[str, Any], paths: Sequence[str]) -> Memory:
    """The workspace's memory, or one in RAM when every set brings its own corpus: measuring leaves no trace then."""
    if not paths or any(p == "mine" or Path(p).is_file() for p in paths):
        return Memory.open(root, **flags)
    known = settings.load(root, env=os.environ, flags={k.replace("__", "."): v for k, v in flags.items()})
    return Memory(root, known, SqliteStore(None))


def write(rows: Sequence[dict[str, Any]], output: str | None) -> None:
    """Proposed questions to a file or to stdout."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if output:
        Path(output).write_text(text, encoding="utf-8")
        click.echo(f"{len(rows)} questions written to {output}", err=True)
    else:
        click.echo(text, nl=False)


def find_sets(memory: Memory, paths: Sequence[str]) -> list[sets.EvalSet]:
    """The sets that were named, all sets of a folder of sets, or the workspace's own."""
    found: list[sets.EvalSet] = []
    for path in map(Path, paths):
        if not path.exists():
            raise UsageError(f"{path} does not exist", hint="give a set's folder, a folder of sets, or a .jsonl file")
        inside = sorted(p.parent for p in path.glob("*/corpus.jsonl")) if path.is_dir() else []
        found += [sets.load(p) for p in inside or [path]]
    if paths:
        return found
    own = memory.root / OWN_FILE
    if own.exists():
        return [sets.load(own)]
    return [_mined(memory)]


def propose(memory: Memory, most: int) -> list[dict[str, Any]]:
    """Questions over the workspace's own notes."""
    memory.sync()
    chunks = [c for path in sorted(memory.store.documents()) for c in memory.store.chunks_of(path)]
    rows = mine.propose(memory.store, chunks, most=most)
    if not rows:
        raise UsageError("there are too few notes to make questions of", hint="write some notes, then try again")
    return rows


def _mined(memory: Memory) -> sets.EvalSet:
    rows = propose(memory, 60)
    click.secho(
        f"note: no {OWN_FILE} here, so {len(rows)} questions were made from your notes (recollect eval mine)", err=True
    )
    return sets.from_rows("mined", rows)


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
    place = cache or settings.cache_folder(os.environ) / "eval"
    cached = CachedEmbedder(model, place / "vectors.sqlite") if model is not None else None
    runs: list[runner.Run] = []
    for one in find_sets(memory, paths):
        if only and one.name not in only:
            continue
        if not one.corpora:
            memory.sync()
        runs += runner.evaluate(one, profiles, embedder=cached, own=memory, progress=render.Bar())
    if not runs:
        raise UsageError("no set was chosen", hint="check --only against the names of the folders")
    return runs


def show(runs: Sequence[runner.Run], *, by_type: bool, against: str, as_json: bool) -> None:
    """Prints the figures."""
    if as_json:
        click.echo(json.dumps(report.as_dict(runs, by_type=by_type, against=against), ensure_ascii=False, indent=2))
        return
    click.echo(report.table(runs, by_type=by_type))
    if against:
        click.echo("\n" + report.comparison(runs, against))
    for name in dict.fromkeys(r.profile for r in runs if r.profile == "default"):
        click.echo("\n" + report.reliability_table(runs, name))
