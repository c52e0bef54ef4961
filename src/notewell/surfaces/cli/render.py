"""Answers for a person at a terminal: aligned, highlighted if there is colour, clean in a pipe."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator

import click

from notewell.embed.chain import Probe
from notewell.memory import Status
from notewell.search.explain import Why
from notewell.settings import Settings
from notewell.store.values import Figures
from notewell.text.fence import shown
from notewell.text.words import UNSEEN, counted, index_terms, lazy_compile, query_terms, visible
from notewell.types import Estimate, Found, Notice, Skipped, SyncReport

_WORD = lazy_compile(rf"[^\W_]+(?:(?:[_.\-/:@']|[\u200c{UNSEEN}]+)[^\W_]+)*")
_FEW = 3
_EVERY_S = 10.0  # between two lines of progress in a log
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text without characters that control the terminal."""
    return _CONTROL.sub("�", text)


def one_line(text: str) -> str:
    """The text on one line, such as the name of a file: what controls a terminal or is not seen is
    written out.
    """
    return printable(shown(text))


def highlight(text: str, query: str) -> str:
    """The text, with the words of the question in bold."""
    terms = query_terms(query)
    wanted = set(terms.words)
    # Scripts without spaces are searched by pairs of characters, so a match is marked inside its
    # sentence.
    runs = {"".join((p[0], p[1][1:])) for p in terms.phrases} | {
        w for w in wanted if not w.isascii()
    }
    inside = re.compile(
        "|".join(re.escape(r) for r in sorted(runs, key=len, reverse=True) if len(r) > 1) or r"(?!)"
    )

    def styled(match: re.Match[str]) -> str:
        return click.style(match.group(), bold=True, fg="yellow")

    def mark(match: re.Match[str]) -> str:
        if (
            wanted.intersection(index_terms(match.group())[0].split())
            and visible(match.group()).isascii()
        ):
            return styled(match)
        return inside.sub(styled, match.group())

    return _WORD.sub(mark, printable(text))


def notices(found: Iterable[Notice]) -> None:
    """Prints notices on stderr, each with its hint."""
    for one in found:
        hint = f" ({one.hint})" if one.hint else ""
        click.secho(one_line(f"note: {one.message}{hint}"), err=True, fg="yellow")


def answer(found: Found) -> None:
    """Prints the hits, best first."""
    if not found.hits:
        click.echo("no hits")
    for number, hit in enumerate(found.hits, start=1):
        chunk = hit.chunk
        where = click.style(
            one_line(f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"), fg="cyan", bold=True
        )
        heading = " > ".join(h for h in chunk.heading if h)
        sure = f"{hit.certainty or 'score':<7} {hit.confidence:.2f}"
        click.echo(f"{number:>2}. {sure}  {where}  {one_line(heading)}".rstrip())
        for line in highlight(hit.snippet, found.query.text).splitlines():
            if line.strip():
                click.echo(f"      {line}")
        marks = [f"conflicts with {i}" for i in hit.conflicts_with[:_FEW]]
        marks += (
            [f"and {len(hit.conflicts_with) - _FEW} more"] if len(hit.conflicts_with) > _FEW else []
        )
        marks += [f"superseded by {hit.superseded_by}"] if hit.superseded_by else []
        marks += ["kept; its program has deleted it"] if hit.kept else []
        if hit.hidden:
            marks.append(hidden(hit.hidden, f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"))
        if marks:
            click.secho(f"      ! {', '.join(marks)}", fg="yellow")
        click.secho(f"      {chunk.id}  {hit.why}", dim=True)
    if found.hits and found.tail:
        click.secho("the rest is almost surely wrong; --all shows it", dim=True)


def hidden(number: int, reference: str) -> str:
    """Says that secrets are hidden, and the command that shows them to the person at the
    terminal.
    """
    from shlex import quote  # noqa: PLC0415 - few hits hide any

    context = click.get_current_context(silent=True)
    named = context.params.get("workspace") if context else None
    # As it was typed, so that it means the same in the same folder, also where another process
    # answers.
    workspace = f" -w {quote(named)}" if named else ""
    command = one_line(f"notewell get --raw {quote(reference)}{workspace}")
    return f"{counted(number, 'secret')} hidden; {command} shows {'it' if number == 1 else 'them'}"


def trace(found: Found) -> None:
    """Prints the first ten candidates after every leg and stage."""
    for step in (*found.trace.legs, *found.trace.steps):
        head = (
            f"{step.stage}: {len(step.marks)} kept, {len(step.dropped)} dropped, "
            f"{step.took_ms:.1f} ms"
        )
        click.secho(head, bold=True)
        for mark in step.marks[:10]:
            candidate = found.trace.candidates.get(mark.id)
            where = candidate.chunk.citation if candidate else mark.id
            click.echo(f"  {mark.rank:>3}  {mark.score:>9.4f}  {one_line(where)}")


def why(one: Why) -> None:
    """Prints why a passage ranks where it does."""
    click.echo(f"{one_line(one.chunk.citation)}  {one.chunk.id}")
    for line in one.lines:
        click.echo(f"  {one_line(line)}")
    click.secho(one_line(one.verdict), bold=True)


def skipped(files: Iterable[Skipped]) -> None:
    """Prints each file that is not read, or only partly, with the reason."""
    for one in files:
        what = "only a part of" if one.partly else "skipped"
        click.echo(f"  {what} {one_line(one.path)}: {one_line(one.reason)}")


def report(one: SyncReport) -> None:
    """Prints what a sync did, and each file it skipped."""
    click.echo(
        f"{one.added:,} added, {one.changed:,} changed, "
        f"{one.dropped:,} dropped, {one.unchanged:,} unchanged; "
        f"{counted(one.embedded, 'passage')} embedded, {one.pending:,} to go"
        f"{f' ({one.waiting} in a batch)' if one.waiting else ''}; {one.took_ms / 1000:.2f} s"
    )
    if one.redacted:
        click.echo(
            "  redacted "
            f"{', '.join(f'{count} {kind}' for kind, count in sorted(one.redacted.items()))}"
        )
    if one.forgotten:
        click.echo(f"  {counted(one.forgotten, 'forgotten passage')} left out")
    skipped(one.skipped)
    if one.pruned:
        click.echo(f"{counted(one.pruned, 'old vector')} dropped")


def estimate(one: Estimate) -> None:
    """Prints on stderr what the vectors will take: the price before anything is sent, the time once
    it is known.
    """
    amount = f"{counted(one.passages, 'passage')} to embed with {one_line(one.model)}"
    if one.seconds is not None:
        click.echo(f"{amount}: about {_duration(one.seconds)}", err=True)
    elif one.usd is not None:
        cost = f"about ${one.usd:.2f}" if one.usd >= 0.01 else "under $0.01"
        click.echo(f"{amount}: {one.tokens:,} tokens, {cost}", err=True)


def status(one: Status) -> None:
    """Prints the files compared with the index."""
    state = (
        "up to date"
        if one.fresh
        else f"{one.to_add:,} to add, {one.to_change:,} to read, {one.to_drop:,} to drop"
    )
    rows = [
        ("workspace", one.workspace),
        ("index", f"{one.index} ({one.bytes / 1e6:.1f} MB)"),
        ("files", f"{one.on_disk:,} on disk, {one.documents:,} indexed: {state}"),
        (
            "sources",
            "; ".join(
                f"{s}: {counted(n, 'file')}, {counted(c, 'passage')}" for s, n, c in one.sources
            ),
        ),
        ("passages", f"{one.chunks:,}"),
        ("model", f"{one.embedder}: {one.embedded:,} embedded, {one.pending:,} to go"),
        (
            "cache",
            (
                f"{counted(one.cached, 'vector')} of text no longer in any note "
                f"({one.cache_bytes / 1e6:.1f} MB)"
            ),
        ),
    ]
    if one.waiting:
        rows.append(
            (
                "batch",
                f"{counted(one.waiting, 'passage')} at the provider (notewell index fetches them)",
            )
        )
    if len(one.chain) > 1 or any(error for _, error in one.chain):
        rows.append(("chain", " → ".join(f"{n} ({one_line(e)})" if e else n for n, e in one.chain)))
    if one.refused:
        rows.append(
            (
                "refused",
                f"{counted(one.refused, 'passage')} (run notewell index --force to try again)",
            )
        )
    if one.answering != one.embedder:
        rows.append(
            ("answering", f"{one.answering}, until the model above has embedded every passage")
        )
    if one.database:
        rows += _database(one.database)
    for level in one.levels:
        fault = f"{level.error} ({level.hint})" if level.hint else level.error
        rows.append((level.name, probe(level) if level.ok else f"failed: {one_line(fault)}"))
    for name, value in rows:
        click.echo(f"{name:<10} {one_line(value)}")
    skipped(one.skipped)


def probe(one: Probe) -> str:
    """The figures of a model that answered."""
    return (
        f"{one.latency_ms:.0f} ms, {one.dim} dimensions, alike {one.alike:.2f}, unlike "
        f"{one.unlike:.2f}"
    )


def _database(one: Figures) -> Iterator[tuple[str, str]]:
    """The figures of a database, over all of its workspaces."""
    tables, indexes = sum(t.bytes for t in one.tables), sum(t.index_bytes for t in one.tables)
    largest = ", ".join(f"{t.name} {(t.bytes + t.index_bytes) / 1e6:.1f}" for t in one.tables[:4])
    yield (
        "database",
        f"tables {tables / 1e6:.1f} MB, indexes {indexes / 1e6:.1f} MB ({largest}), all workspaces",
    )
    yield (
        "vectors",
        f"HNSW for {', '.join(one.approximate)}"
        if one.approximate
        else "exact scan, no HNSW index",
    )
    yield "claims", f"{one.claimed} of {one.waiting} waiting texts are being embedded"
    behind = [f"{name or 'a replica'} {lag:.1f} s" for name, lag in one.replicas]
    behind += [f"this replica {one.lag_s:.1f} s"] if one.lag_s is not None else []
    yield "behind", ", ".join(behind) or "no replica"
    yield "clients", f"{one.connections} of {one.most_connections} connections"


def config(one: Settings) -> None:
    """Prints every setting and where its value comes from."""
    for key, value, origin, doc in one.items():
        held = ", ".join(value) if isinstance(value, tuple) else value
        click.echo(f"{key} = {held!r}  [{one_line(origin)}]")
        click.secho(f"    {doc}", dim=True)


class Bar:
    """Progress with the time left, on stderr: a line that fills up on a terminal, else a line every
    ten seconds.
    """

    def __init__(self) -> None:
        self.live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._what = ""
        self._begun = self._told_at = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows the progress of `what`."""
        if not total:
            return
        now = time.monotonic()
        if what != self._what:
            self.end()
            self._what, self._begun, self._told_at = what, now, now
        spent = now - self._begun
        left = (
            f", {_duration(spent / done * (total - done))} left"
            if done and spent > 1 and done < total
            else ""
        )
        if self.live:
            filled = 30 * done // total
            sys.stderr.write(
                f"\r{what:>8} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,}{left}\x1b[K"
            )
            if done >= total:
                self.end()
        elif now - self._told_at >= _EVERY_S:
            self._told_at = now
            sys.stderr.write(f"{what}: {done:,} of {total:,}{left}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Ends the line that is being filled, so that other words begin on their own."""
        if self._what and self.live:
            sys.stderr.write("\n")
        self._what = ""

    def estimate(self, one: Estimate) -> None:
        """Tells what the vectors will take, on a separate line."""
        self.end()
        estimate(one)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
