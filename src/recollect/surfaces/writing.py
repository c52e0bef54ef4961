"""The commands that write: remember, forget and watch."""

from __future__ import annotations

import datetime as dt
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from recollect.errors import UsageError
from recollect.surfaces import render, view
from recollect.surfaces.options import day, emit, with_memory

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.sync.forget import Piece, Receipt
    from recollect.types import SyncReport

_SHOWN = 20


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="TEXT")
@click.option("--file", default="", help="Note to write to, such as memory/topic.md (default: the note of the day).")
@click.option("--heading", default="", help="Section to write to; made at the end when it is not there.")
@click.option("--tags", default="", help="Tags to add, with commas.")
@click.option("--date", help="Day whose note to write to: a date or a phrase such as 'yesterday'.")
@click.option("--supersedes", default="", metavar="ID", help="Passage that is no longer true; gets a file of its own.")
@click.option("--force", is_flag=True, help="Write even if it is there already, or was forgotten.")
@with_memory
def remember(
    memory: Memory, words: Sequence[str], *, file: str, heading: str, tags: str, date: str | None, supersedes: str,
    force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write a memory into today's note or a named one ('-': from stdin).

    The next search finds it.

    \b
    recollect remember "Staging moved to port 8443." --tags staging
    recollect remember "Tea, not coffee." --file MEMORY.md --heading Guests
    """
    now = dt.datetime.now()  # noqa: DTZ005 - the day of this place
    done = memory.remember(
        _given(words), file=file, heading=heading, tags=tags.split(","), day=day(date, "--date", now),
        supersedes=supersedes, force=force, now=now,
    )  # fmt: skip
    if as_json:
        emit(view.remembered(done))
        return
    render.notices(done.notices)
    if done.written:
        click.echo(f"remembered in {render.one_line(done.citation)}  {done.id}")
    else:
        click.echo(f"already there: {render.one_line(done.citation)}  {done.id} (--force writes it all the same)")


def _given(words: Sequence[str]) -> str:
    if list(words) != ["-"]:
        return " ".join(words)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("what comes from stdin is not UTF-8 text", hint="convert it first") from error


@click.command()
@click.argument("selector", default="")
@click.option("--query", default="", metavar="WORDS", help="Every paragraph or list item that has all of the words.")
@click.option("--session", default="", metavar="ID", help="A whole transcript, by its name.")
@click.option("--before", metavar="DATE", help="All notes that are older than a day.")
@click.option("--from-files", is_flag=True, help="Also cut it out of the notes, or delete a note that is named whole.")
@click.option("--no-backup", is_flag=True, help="With --from-files: keep no copy of the notes that are changed.")
@click.option("--yes", is_flag=True, help="Do it; without, only show what would go.")
@click.option("--undo", default="", metavar="RECEIPT", help="Lift the tombstones of a receipt, or of a passage's id.")
@with_memory
def forget(
    memory: Memory, selector: str, *, query: str, session: str, before: str | None, from_files: bool, no_backup: bool,
    yes: bool, undo: str, as_json: bool,
) -> None:  # fmt: skip
    """Forget passages for good: in the index and, if told, the files.

    The selector is an id, a path or path:lines. Without --yes this only shows what would go.

    \b
    recollect forget --query "port 8443"
    recollect forget memory/cooking.md --yes --from-files
    """
    if undo:
        _undo(memory, undo, as_json=as_json, others=bool(selector or query or session or before))
        return
    now = dt.datetime.now()  # noqa: DTZ005 - the day of this place
    done = memory.forget(
        selector, query=query, session=session, before=day(before, "--before", now), yes=yes,
        from_files=from_files, backup=not no_backup, now=now,
    )  # fmt: skip
    if as_json:
        emit(view.receipt(done))
    else:
        _show(done, yes=yes, from_files=from_files)


def _undo(memory: Memory, name: str, *, as_json: bool, others: bool) -> None:
    if others:
        raise UsageError("--undo stands alone", hint="recollect forget --undo RECEIPT")
    count, backups = memory.unforget(name)
    if as_json:
        emit(view.lifted(count, backups))
        return
    click.echo(f"{_count(count, 'tombstone')} lifted; what the files still hold is known again")
    for place in backups:
        click.echo(f"  as it was before: {render.one_line(place)}")


def _show(done: Receipt, *, yes: bool, from_files: bool) -> None:
    if not done.pieces:
        click.echo("nothing to forget")
        return
    documents = len({p.path for p in done.pieces})
    verb = "forgotten" if done.id else "would be forgotten"
    click.echo(f"{_count(len(done.pieces), 'passage')} of {_count(documents, 'note')} {verb}:")
    for piece in done.pieces[:_SHOWN]:
        click.secho(f"  {render.one_line(piece.citation)}", fg="cyan", bold=True)
        if not done.id:
            click.echo(f"      {_first_words(piece)}")
    if len(done.pieces) > _SHOWN:
        click.echo(f"  and {len(done.pieces) - _SHOWN} more")
    if not yes:
        where = "the index and the files" if from_files else "the index (--from-files: from the files too)"
        click.echo(f"nothing was changed; --yes forgets this in {where}")
        return
    for file in done.files:
        what = "deleted" if file.deleted else "rewritten"
        click.echo(f"  {what} {render.one_line(file.path)}, backup {render.one_line(file.backup) or 'none'}")
    for path in done.kept_files:
        click.echo(f"  left alone {render.one_line(path)}: it belongs to the program that writes it")
    click.echo(
        f"receipt {done.id}: {_count(done.chunks, 'passage')}, {_count(done.vectors, 'vector')}, "
        f"{_count(done.tombstones, 'tombstone')}"
    )
    for line in (*(f"still found: {c}" for c in done.still_found), *done.lingering):
        click.secho(f"  {render.one_line(line)}", fg="yellow")
    if done.proved:
        click.echo("searched for again: nothing found, in answers and in the bytes of the index")


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _first_words(piece: Piece) -> str:
    text = render.one_line(" ".join(piece.text.split()))
    return text if len(text) <= 100 else f"{text[:99]}…"


@click.command()
@click.option("--poll", "poll_s", type=click.FloatRange(0.1), help="Look every so many seconds, without notifications.")
@with_memory
def watch(memory: Memory, *, poll_s: float | None, as_json: bool) -> None:
    """Keep the index warm until it is interrupted.

    Every sync is a line on stderr.

    \b
    recollect watch
    recollect watch --poll 5
    """
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())

    def tell(report: SyncReport) -> None:
        if as_json:
            emit(view.report(report))
            return
        render.notices(report.notices)
        text = f"{report.added} added, {report.changed} changed, {report.dropped} dropped, {report.embedded} embedded"
        click.echo(f"{dt.datetime.now():%H:%M:%S} {text}, {report.took_ms:.0f} ms", err=True)  # noqa: DTZ005

    def heard(generation: int) -> None:
        if as_json:
            emit({"changed": True, "generation": generation})
        else:
            click.echo(f"{dt.datetime.now():%H:%M:%S} the index changed (change {generation})", err=True)  # noqa: DTZ005

    with memory.watch(tell, poll_s=poll_s) as one:
        memory.hear(heard)
        render.notices(one.notices)
        if not as_json:
            click.echo(f"watching {render.one_line(str(memory.root))}; Ctrl-C ends it", err=True)
        ended.wait()


COMMANDS: tuple[click.Command, ...] = (remember, forget, watch)
