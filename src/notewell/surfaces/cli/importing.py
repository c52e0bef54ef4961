"""`notewell import`: exports of other programs, and documents, become notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from notewell.surfaces import failures
from notewell.surfaces.cli import render
from notewell.surfaces.cli.ending import FailedAnswer
from notewell.surfaces.cli.options import answer, with_memory
from notewell.surfaces.shapes import Shape
from notewell.text.words import counted

if TYPE_CHECKING:
    from notewell.memory import Memory
    from notewell.notes.imported_notes import Imported, ImportedFile

_SHOWN = 10
_WORDS = {
    "new": "new",
    "updated": "updated",
    "extended": "extended below your edits",
    "unchanged": "unchanged",
    "edited": "left as you edited them",
    "deleted": "left out, as you deleted or moved them",
}


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@with_memory
def import_(memory: Memory, files: Sequence[str], *, dry_run: bool, as_json: bool) -> None:
    """Turn exports of other programs, and documents, into notes.

    Reads ChatGPT and Claude.ai (conversations.json or the zip), MCP's memory.jsonl, basic-memory,
    mem0, Letta, Markdown, HTML and Word; PDF with the extra 'documents'. Run it again with a newer
    export: it adds what is new, doubles nothing and leaves your edits alone.

    \b
    notewell import conversations.json --dry-run
    notewell import chatgpt-export.zip ~/basic-memory report.docx
    """
    done = memory.import_files(files, dry_run=dry_run, progress=render.Bar())
    failed = [file.error for file in done.failed if file.error]
    if not failed or not as_json:
        answer(as_json, lambda: _wire(done), lambda: _show(done))
    if failed:
        raise FailedAnswer(failed[0], _wire(done))


def _wire(done: Imported) -> dict[str, Any]:
    from notewell.notes.imported_notes import Imported, ImportedFile  # noqa: PLC0415

    file = Shape(
        "file formats items new updated extended unchanged edited deleted skipped", ImportedFile
    )
    whole = Shape("dry_run files written", Imported)
    return whole.fill(done, files=[file.fill(f, error=_error(f)) for f in done.files])


def _error(file: ImportedFile) -> dict[str, Any] | None:
    if file.error is None:
        return None
    told: dict[str, Any] = failures.wire(
        failures.code_of(file.error), str(file.error), file.error.hint
    )["error"]
    return told


def _show(done: Imported) -> None:
    for file in done.failed[1:]:  # the first is told as the failure of the command
        click.secho(render.one_line(f"error: {file.error}"), err=True, fg="red")
    for file in done.files:
        if file.error is not None:
            continue
        counts = [
            f"{count} {words}" for name, words in _WORDS.items() if (count := getattr(file, name))
        ]
        source = f"{', '.join(file.formats)}: " if file.formats else ""
        click.echo(f"{render.one_line(file.file)}: {source}{', '.join(counts) or 'nothing in it'}")
        for skipped in file.skipped[:_SHOWN]:
            click.echo(
                f"  skipped {render.one_line(skipped.path)}: {render.one_line(skipped.reason)}"
            )
        if len(file.skipped) > _SHOWN:
            click.echo(f"  and {len(file.skipped) - _SHOWN} more")
    for folder in dict.fromkeys(path.rpartition("/")[0] for path in done.written):
        count = sum(path.rpartition("/")[0] == folder for path in done.written)
        click.echo(f"  {counted(count, 'note')} written in {render.one_line(folder)}/")
    if done.dry_run:
        click.echo("nothing was written; leave out --dry-run to import")
