"""First steps: `init` makes a workspace, `demo` shows one."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import tomllib
from importlib.resources import as_file, files
from pathlib import Path

import click

from recollect.errors import WorkspaceError

_STEPS = "demo.toml"
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
    """Copies the sample notes and runs the commands that come with them, as they would be typed."""
    from recollect.surfaces.commands import run  # noqa: PLC0415 - the commands import this module

    place = folder or Path(tempfile.mkdtemp(prefix="recollect-demo-")) / "notes"
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise WorkspaceError(f"{place} is not an empty folder", hint="name a new folder with --to")
    with as_file(files("recollect.surfaces") / "sample") as sample:
        shutil.copytree(sample, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_STEPS))
        steps = tomllib.loads((sample / _STEPS).read_text(encoding="utf-8"))["step"]
    click.echo(f"sample notes in {place}")
    for step in steps:
        words = " ".join(f'"{w}"' if " " in w or not w.isascii() else w for w in step["run"])
        click.secho(f"\n$ recollect {words}", bold=True, fg="green", nl=False)
        click.secho(f"   # {step['shows']}", dim=True)
        if code := run([*step["run"], "-w", str(place)]):
            raise click.exceptions.Exit(code)
    where = shlex.quote(str(place))
    click.echo(f'\nTry your own: cd {where} && recollect "your question"')
    click.echo('Why it ranks so: recollect why "your question" memory/deploy.md; in the browser: recollect serve')
