"""First steps: `init` makes a workspace, `demo` shows one."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from importlib.resources import as_file, files
from pathlib import Path

import click

from recollect.errors import WorkspaceError
from recollect.memory import Memory
from recollect.surfaces import render

_MEMORY = """# Memory

- Write one durable fact a line: each bullet here is an entry of its own.
"""
_SETTINGS = """# Settings of this workspace; `recollect config` lists them all with where each value came from.

# extra_paths = ["docs", "notes/**/*.md"]

[search]
# limit = 6
"""


def start(folder: Path) -> list[str]:
    """Makes what a workspace needs and returns what was made."""
    if folder.exists() and not folder.is_dir():
        raise WorkspaceError(f"{folder} is not a folder", hint="name a folder")
    (folder / "memory").mkdir(parents=True, exist_ok=True)
    made = []
    has_memory = any(p.name.casefold() == "memory.md" for p in folder.iterdir())
    for name, text, there in (
        ("MEMORY.md", _MEMORY, has_memory),
        ("recollect.toml", _SETTINGS, (folder / "recollect.toml").exists()),
    ):
        if not there:
            (folder / name).write_text(text, encoding="utf-8")
            made.append(name)
    return made


def show(folder: Path | None) -> None:
    """Copies the sample notes, indexes them and runs the searches that come with them."""
    place = folder or Path(tempfile.mkdtemp(prefix="recollect-demo-")) / "notes"
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise WorkspaceError(f"{place} is not an empty folder", hint="name a new folder with --to")
    with as_file(files("recollect.surfaces") / "sample") as sample:
        shutil.copytree(sample, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("searches.toml"))
        searches = tomllib.loads((sample / "searches.toml").read_text(encoding="utf-8"))["search"]
    click.echo(f"sample notes in {place}")
    with Memory.open(place) as memory:
        report = memory.sync(progress=render.Bar())
        render.notices(report.notices)
        render.report(report)
        for one in searches:
            click.secho(f"\n$ recollect {one['query']!r}", bold=True, fg="green", nl=False)
            click.secho(f"   # {one['shows']}", dim=True)
            render.answer(memory.search(one["query"], limit=2))
        question = next(s for s in searches if "old against new" in s["shows"])
        click.secho(f"\n$ recollect why {question['query']!r} {question['expect']}", bold=True, fg="green")
        render.why(memory.why(question["query"], question["expect"])[1])
    click.echo(f'\nTry your own: recollect -w {place} "your question"')
