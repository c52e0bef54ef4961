"""`recollect install`: our MCP entry in the settings of agents, shown as a difference first, and taken back cleanly."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from recollect.errors import UsageError
from recollect.settings import user_file
from recollect.surfaces.agents import AGENTS, Agent, agent
from recollect.surfaces.options import emit


@dataclass(frozen=True, slots=True)
class Change:
    """What would become of one file."""

    name: str
    file: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The difference as `diff -u` shows it."""
        import difflib  # noqa: PLC0415

        parts = (self.before.splitlines(keepends=True), self.after.splitlines(keepends=True))
        lines = difflib.unified_diff(*parts, str(self.file), str(self.file))
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def change(one: Agent, command: Sequence[str] | None, env: Mapping[str, str]) -> Change:
    """What installing (or with no command, uninstalling) would change for one agent."""
    file = Path(os.path.realpath(one.file(env)))
    before = _read(file)
    return Change(one.name, file, before, one.changed(before, command))


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="mend it, or use --print") from error


def write(one: Change) -> None:
    """Replaces the file in one step, with its mode kept and the file as it was beside it as `.bak`."""
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    try:
        one.file.parent.mkdir(parents=True, exist_ok=True)
        mode = one.file.stat().st_mode & 0o777 if one.file.exists() else 0o600
        if one.file.exists():
            shutil.copy2(one.file, one.file.with_name(one.file.name + ".bak"))
        handle, name = tempfile.mkstemp(dir=one.file.parent, prefix=".recollect-")
        with os.fdopen(handle, "wb") as out:
            out.write(one.after.encode("utf-8"))
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode)
        os.replace(name, one.file)
    except OSError as error:
        raise UsageError(
            f"{one.file} cannot be written: {error.strerror}", hint="check its permissions, or use --print"
        ) from error


def server_command(workspace: str | None, env: Mapping[str, str]) -> list[str]:
    """How an agent starts our server: the command by its whole path, as agents have search paths of their own."""
    import shutil  # noqa: PLC0415

    found = shutil.which("recollect", path=os.path.dirname(sys.executable)) or shutil.which(
        "recollect", path=env.get("PATH")
    )
    start = [found, "mcp"] if found else [sys.executable, "-m", "recollect.surfaces.cli", "mcp"]
    return [*start, "--workspace", os.path.abspath(workspace)] if workspace else start


def present(env: Mapping[str, str]) -> list[Agent]:
    """The agents that have left their settings on this machine."""
    return [a for a in AGENTS.values() if a.file(env).exists()]


def _names() -> str:
    return ", ".join(AGENTS)


@click.command(epilog=f"Agents: {_names()}")
@click.argument("names", nargs=-1, metavar="[AGENT]...")
@click.option("--uninstall", is_flag=True, help="Take our entry out again.")
@click.option("--print", "only_print", is_flag=True, help="Only show what would be written.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
@click.option("-w", "--workspace", type=click.Path(), help="Workspace to serve; else the one an agent runs in.")
@click.option("--settings-from", type=click.Path(exists=True), help="Import memorySearch settings of an OpenClaw file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def install(
    names: Sequence[str], *, uninstall: bool, only_print: bool, yes: bool, workspace: str | None,
    settings_from: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Write the MCP entry into the settings of agents.

    Without names: of those found on this machine. Each change is shown first.

    \b
    recollect install --print            show what would change
    recollect install claude-code codex  write two of them
    recollect install --uninstall        take all of them back
    recollect install --settings-from ~/.openclaw/openclaw.json
    """
    env = os.environ
    changes: list[Change] = []
    notes: list[str] = []
    if settings_from:
        from recollect.surfaces.openclaw import imported  # noqa: PLC0415

        file = user_file(env)
        before = _read(file)
        after, notes = imported(_read(Path(settings_from)), before)
        changes.append(Change("settings", file, before, after))
    chosen = [agent(n) for n in dict.fromkeys(names)] or ([] if settings_from else present(env))
    if not chosen and not settings_from:
        raise UsageError("no agent was found on this machine", hint=f"name one: {_names()}")
    command = None if uninstall else server_command(workspace, env)
    changes += [change(one, command, env) for one in chosen]
    _carry_out(changes, notes, ask=not yes, only_print=only_print, as_json=as_json)


def _carry_out(changes: Sequence[Change], notes: Sequence[str], *, ask: bool, only_print: bool, as_json: bool) -> None:
    done: list[dict[str, Any]] = []
    for one in changes:
        written = False
        if one.before != one.after:
            click.echo(one.diff, err=as_json or not only_print, nl=False)
            if not only_print and (not ask or (not as_json and click.confirm(f"write {one.file}?", err=True))):
                write(one)
                written = True
        verdict = "written" if written else "as it was" if one.before == one.after else "not written"
        done.append({"name": one.name, "file": str(one.file), "verdict": verdict})
        if not as_json:
            click.echo(f"{one.name}: {one.file} {verdict}", err=only_print)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        emit({"changes": done, "notes": list(notes)})


COMMANDS: tuple[click.Command, ...] = (install,)
