"""First steps: `init` makes a workspace, `demo` shows one."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

import click

from notewell.errors import WorkspaceError
from notewell.opener import HINT, inside
from notewell.settings import load
from notewell.settings_file import write_setting
from notewell.sources.files import FileSource
from notewell.sources.trust import Trust

_STEPS = "demo.toml"
_SETTINGS = """# Settings of this workspace. `notewell config` lists all settings and where \
each value comes from.

# extra_paths = ["docs", "notes/**/*.md"]

[search]
# limit = 6
"""


def start(folder: Path) -> list[str]:
    """Makes what a workspace needs and returns what it made."""
    if folder.exists() and not folder.is_dir():
        raise WorkspaceError(f"{folder} is not a folder", hint="name a folder")
    Trust(folder, load(Path(os.devnull), env=os.environ).trusted_folders).refuse_writing(
        os.path.realpath(folder)
    )
    notes = FileSource(folder)
    keeps = folder.exists() and notes.mode != "never" and notes.any()
    folder.mkdir(parents=True, exist_ok=True)
    made = [name for name in ("notewell.toml",) if not (folder / name).exists()]
    _make(folder, made, _SETTINGS)
    if keeps:  # the notes that are here stay searched, also if this ends after the next line
        write_setting("folder", "always", folder, os.environ)
    journal = [] if (folder / "memory").is_dir() else ["memory/"]
    (folder / "memory").mkdir(exist_ok=True)
    memory = (
        [] if any(p.name.casefold() == "memory.md" for p in folder.iterdir()) else ["MEMORY.md"]
    )
    _make(folder, memory, "")  # empty: a line of ours in it would be an answer to questions
    return [*memory, *journal, *made]


def _make(folder: Path, names: Sequence[str], text: str) -> None:
    for name in names:
        try:
            inside(folder).create(folder / name, text.encode())
        except OSError as error:
            raise WorkspaceError(
                f"{folder / name} cannot be written: {error.strerror}", hint=HINT
            ) from error


def show(folder: Path | None) -> None:
    """Copies the sample notes and runs the commands that come with them."""
    from notewell.surfaces.cli.commands import run  # noqa: PLC0415 - the commands import this module

    target = folder or Path(tempfile.mkdtemp(prefix="notewell-demo-")) / "notes"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise WorkspaceError(f"{target} is not an empty folder", hint="name a new folder with --to")
    with as_file(files("notewell.surfaces") / "sample") as sample:
        shutil.copytree(sample, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(_STEPS))
        steps = tomllib.loads((sample / _STEPS).read_text(encoding="utf-8"))["step"]
    click.echo(
        "Your own notes: cd into any folder of Markdown, text or Obsidian notes and run: notewell "
        '"your question"'
    )
    click.echo(f"Here, with sample notes in {target}:")
    for step in steps:
        words = " ".join(f'"{w}"' if " " in w or not w.isascii() else w for w in step["run"])
        click.secho(f"\n$ notewell {words}", bold=True, fg="green", nl=False)
        click.secho(f"   # {step['shows']}", dim=True)
        if code := run([*step["run"], "-w", str(target)]):
            raise click.exceptions.Exit(code)
    where = shlex.quote(str(target))
    click.echo(f'\nAsk your own question: cd {where} && notewell "your question"')
    click.echo(
        'To explain a rank: notewell why "your question" memory/deploy.md; in the browser: '
        "notewell serve"
    )
