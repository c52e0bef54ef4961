"""The commands that write: remember, forget and watch."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from notewell.errors import UsageError
from notewell.surfaces import arguments, note_view, view
from notewell.surfaces.cli import render
from notewell.surfaces.cli.options import Number, answer, emit, on_terminal, with_memory
from notewell.text.words import counted
from notewell.types import Notice

if TYPE_CHECKING:
    from notewell.memory import Memory
    from notewell.notes.forget import Receipt
    from notewell.types import SyncReport

_SHOWN = 20


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="TEXT")
@click.option(
    "--file",
    default="",
    help="Note to write to, such as memory/topic.md (default: the note of the day).",
)
@click.option(
    "--heading", default="", help="Section to write to; added at the end if it is missing."
)
@click.option("--tags", default="", help="Tags to add, comma-separated.")
@click.option("--date", help="Day whose note to write to: a date or a phrase such as 'yesterday'.")
@click.option(
    "--supersedes",
    default="",
    metavar="ID",
    help="Passage that is no longer true; the memory gets its own file.",
)
@click.option(
    "--force", is_flag=True, help="Write it even if it is already there or was forgotten."
)
@with_memory
def remember(
    memory: Memory,
    words: Sequence[str],
    *,
    file: str,
    heading: str,
    tags: str,
    date: str | None,
    supersedes: str,
    force: bool,
    as_json: bool,
) -> None:
    """Write a memory into today's note or a named one.

    The next search finds it. '-' reads the text from stdin.

    \b
    notewell remember "Staging moved to port 8443." --tags staging
    notewell remember "Tea, not coffee." --file MEMORY.md --heading Guests
    """
    now = arguments.local_now()
    done = memory.remember(
        _given(words),
        file=file,
        heading=heading,
        tags=tags.split(","),
        day=arguments.day(date, "--date", now),
        supersedes=supersedes,
        force=force,
        now=now,
    )
    if done.written:
        doubts = memory.index.trust.notices
        if on_terminal() and memory.index.trust.wrote():
            message = (
                "you have written in this clone now, so the notes that came with it count as yours"
            )
            doubts = (
                Notice("clone_trusted", message, "to take that back: notewell sources distrust"),
            )
        done = replace(done, notices=(*done.notices, *doubts))
    what = "remembered in" if done.written else "already there:"
    text = f"{what} {render.one_line(done.citation)}  {done.id}".rstrip()
    text += "" if done.written else " (--force writes it anyway)"
    answer(as_json, lambda: note_view.remembered(done), lambda: click.echo(text), done.notices)


def _given(words: Sequence[str]) -> str:
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            "the text on stdin is not UTF-8", hint="convert it to UTF-8 first"
        ) from error


@click.command()
@click.argument("selector", default="")
@click.option(
    "--query",
    default="",
    metavar="WORDS",
    help="Every paragraph or list item that contains all of the words.",
)
@click.option("--session", default="", metavar="ID", help="A transcript, by its name.")
@click.option("--before", metavar="DATE", help="All notes older than this day.")
@click.option("--everywhere", is_flag=True, help="Forget the same text in all other notes too.")
@click.option(
    "--from-files",
    is_flag=True,
    help="Also remove it from the notes; a note named by its path is deleted.",
)
@click.option(
    "--no-backup", is_flag=True, help="With --from-files: do not keep a copy of changed notes."
)
@click.option("--yes", is_flag=True, help="Forget it; otherwise only show what would go.")
@click.option(
    "--undo",
    default="",
    metavar="RECEIPT",
    help="Undo a receipt, or the forgetting of a passage by its id.",
)
@with_memory
def forget(
    memory: Memory,
    selector: str,
    *,
    query: str,
    session: str,
    before: str | None,
    everywhere: bool,
    from_files: bool,
    no_backup: bool,
    yes: bool,
    undo: str,
    as_json: bool,
) -> None:
    """Forget passages for good: in the index and, on request, the files.

    The selector is an id, a path or path:lines. Without --yes, it only shows what would go.

    \b
    notewell forget --query "port 8443"
    notewell forget memory/cooking.md --yes --from-files
    """
    if undo:
        _undo(memory, undo, as_json=as_json, others=bool(selector or query or session or before))
        return
    now = arguments.local_now()
    done = memory.forget(
        selector,
        query=query,
        session=session,
        before=arguments.day(before, "--before", now),
        yes=yes,
        everywhere=everywhere,
        from_files=from_files,
        backup=not no_backup,
        now=now,
    )
    answer(
        as_json,
        lambda: note_view.receipt(done),
        lambda: _show(done, yes=yes, from_files=from_files),
    )


def _undo(memory: Memory, name: str, *, as_json: bool, others: bool) -> None:
    if others:
        raise UsageError(
            "--undo cannot be combined with a selector", hint="notewell forget --undo RECEIPT"
        )
    count, backups = memory.unforget(name)
    lines = [
        f"{counted(count, 'tombstone')} removed; what the files still contain can be found again"
    ]
    lines += [f"  backup of a changed note: {render.one_line(path)}" for path in backups]
    wire = {"lifted": count, "backups": list(backups)}
    answer(as_json, lambda: wire, lambda: click.echo("\n".join(lines)))


def _show(done: Receipt, *, yes: bool, from_files: bool) -> None:
    if not done.pieces:
        click.echo("nothing to forget")
        return
    documents = len({p.path for p in done.pieces})
    verb = "forgotten" if done.id else "would be forgotten"
    click.echo(f"{counted(len(done.pieces), 'passage')} of {counted(documents, 'note')} {verb}:")
    for piece in done.pieces[:_SHOWN]:
        click.secho(f"  {render.one_line(piece.citation)}", fg="cyan", bold=True)
        if not done.id:
            click.echo(f"      {view.shortened(render.one_line(' '.join(piece.text.split())))}")
    if len(done.pieces) > _SHOWN:
        click.echo(f"  and {len(done.pieces) - _SHOWN} more")
    _show_others(done)
    if not yes:
        where = (
            "the index and the files"
            if from_files
            else "the index (with --from-files also in the files)"
        )
        click.echo(f"nothing was changed; --yes forgets it in {where}")
        return
    for file in done.files:
        what = "deleted" if file.deleted else "rewritten"
        click.echo(
            f"  {what} {render.one_line(file.path)}, backup "
            f"{render.one_line(file.backup) or 'none'}"
        )
    for path in done.kept_files:
        click.echo(f"  left alone {render.one_line(path)}: another program writes it")
    gone = [
        counted(done.chunks, "passage"),
        counted(done.vectors, "vector"),
        counted(done.tombstones, "tombstone"),
    ]
    click.echo(f"receipt {done.id}: {', '.join(gone)}")
    _show_proof(done)


def _show_proof(done: Receipt) -> None:
    """How far it was proved that nothing is left."""
    for line in (*(f"still found: {c}" for c in done.still_found), *done.lingering):
        click.secho(f"  {render.one_line(line)}", fg="yellow")
    if done.proved:
        here = " from these notes" if done.elsewhere and not done.everywhere else ""
        click.echo(f"checked: nothing of it{here} is left in answers or in the bytes of the index")
        return
    for line in done.checked:
        click.echo(f"  checked: {render.one_line(line)}")


def _show_others(done: Receipt) -> None:
    """Other notes with the same text, and what becomes of it there."""
    if not done.elsewhere:
        return
    what = (
        "goes there too:" if done.everywhere else "stays there (--everywhere forgets it there too):"
    )
    click.echo(f"other notes hold the same text, which {what}")
    for citation in done.elsewhere[:_SHOWN]:
        click.secho(f"  {render.one_line(citation)}", fg="cyan")
    if len(done.elsewhere) > _SHOWN:
        click.echo(f"  and {len(done.elsewhere) - _SHOWN} more")


@click.command()
@click.option(
    "--poll",
    "poll_s",
    type=Number(0.1, 86_400),
    help="Check every so many seconds, instead of using notifications.",
)
@with_memory
def watch(memory: Memory, *, poll_s: float | None, as_json: bool) -> None:
    """Keep the index up to date until you press Ctrl-C.

    Each sync prints a line on stderr.

    \b
    notewell watch
    notewell watch --poll 5
    """
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())

    def synced(report: SyncReport) -> None:
        if as_json:
            emit(view.report(report))
            return
        render.notices(report.notices)
        text = (
            f"{report.added} added, {report.changed} changed, {report.dropped} dropped, "
            f"{report.embedded} embedded"
        )
        click.echo(f"{arguments.local_now():%H:%M:%S} {text}, {report.took_ms:.0f} ms", err=True)

    def changed(generation: int) -> None:
        if as_json:
            emit({"changed": True, "generation": generation})
        else:
            click.echo(
                f"{arguments.local_now():%H:%M:%S} the index changed (change {generation})",
                err=True,
            )

    with memory.watch(synced, poll_s=poll_s) as watching:
        memory.on_change(changed)
        render.notices(watching.notices)
        if not as_json:
            click.echo(
                f"watching {render.one_line(str(memory.root))}; press Ctrl-C to stop", err=True
            )
        ended.wait()
