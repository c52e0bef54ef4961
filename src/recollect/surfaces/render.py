"""Answers for a person at a terminal: aligned, highlighted where there is colour, clean in a pipe."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator

import click

from recollect.memory import Status
from recollect.ports import Figures
from recollect.search.explain import Why
from recollect.settings import Settings
from recollect.text.words import index_terms, query_terms
from recollect.types import Estimate, Found, Notice, SyncReport

_WORD = re.compile(r"[^\W_]+(?:[_.\-/:@'][^\W_]+)*")
_FEW = 3
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text of a note without what would steer the terminal."""
    return _CONTROL.sub("�", text)


def one_line(text: str) -> str:
    """A name of a file or a heading: printable, and on one line whatever it holds."""
    return printable(text).replace("\n", "�")


def highlight(text: str, query: str) -> str:
    """The words of a text that the question asks for, in bold."""
    terms = query_terms(query)
    wanted = set(terms.words)
    # Scripts without spaces are searched by pairs of characters, so a run of them is marked inside its sentence.
    runs = {"".join((p[0], p[1][1:])) for p in terms.phrases} | {w for w in wanted if not w.isascii()}
    inside = re.compile("|".join(re.escape(r) for r in sorted(runs, key=len, reverse=True) if len(r) > 1) or r"(?!)")

    def styled(match: re.Match[str]) -> str:
        return click.style(match.group(), bold=True, fg="yellow")

    def mark(match: re.Match[str]) -> str:
        if wanted.intersection(index_terms(match.group())[0].split()) and match.group().isascii():
            return styled(match)
        return inside.sub(styled, match.group())

    return _WORD.sub(mark, printable(text))


def notices(found: Iterable[Notice]) -> None:
    """Notices to stderr, each with what to do."""
    for one in found:
        hint = f" ({one.hint})" if one.hint else ""
        click.secho(printable(f"note: {one.message}{hint}"), err=True, fg="yellow")


def answer(found: Found) -> None:
    """Hits, best first."""
    if not found.hits:
        click.echo("no hits")
    for number, hit in enumerate(found.hits, start=1):
        chunk = hit.chunk
        place = click.style(one_line(f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"), fg="cyan", bold=True)
        heading = " > ".join(h for h in chunk.heading if h)
        click.echo(f"{number:>2}. {hit.score:.2f}  {place}  {one_line(heading)}".rstrip())
        for line in highlight(hit.snippet, found.query.text).splitlines():
            if line.strip():
                click.echo(f"      {line}")
        marks = [f"conflicts with {i}" for i in hit.conflicts_with[:_FEW]]
        marks += [f"and {len(hit.conflicts_with) - _FEW} more"] if len(hit.conflicts_with) > _FEW else []
        marks += [f"superseded by {hit.superseded_by}"] if hit.superseded_by else []
        if marks:
            click.secho(f"      ! {', '.join(marks)}", fg="yellow")
        click.secho(f"      {chunk.id}  {hit.why}", dim=True)


def trace(found: Found) -> None:
    """What every leg found and every stage did, to its first ten."""
    for step in (*found.trace.legs, *found.trace.steps):
        click.secho(
            f"{step.stage}: {len(step.marks)} kept, {len(step.dropped)} dropped, {step.took_ms:.1f} ms", bold=True
        )
        for mark in step.marks[:10]:
            candidate = found.trace.candidates.get(mark.id)
            where = candidate.chunk.citation if candidate else mark.id
            click.echo(f"  {mark.rank:>3}  {mark.score:>9.4f}  {one_line(where)}")


def why(one: Why) -> None:
    """The story of a passage."""
    click.echo(f"{one_line(one.chunk.citation)}  {one.chunk.id}")
    for line in one.lines:
        click.echo(f"  {one_line(line)}")
    click.secho(one_line(one.verdict), bold=True)


def report(one: SyncReport) -> None:
    """What a sync did, in a line, and each file that was passed over."""
    click.echo(
        f"{one.added} added, {one.changed} changed, {one.dropped} dropped, {one.unchanged} unchanged; "
        f"{one.embedded} passages embedded, {one.pending} to go"
        f"{f' ({one.waiting} in a batch)' if one.waiting else ''}; {one.took_ms / 1000:.2f} s"
    )
    if one.redacted:
        click.echo(f"  redacted {', '.join(f'{count} {kind}' for kind, count in sorted(one.redacted.items()))}")
    if one.forgotten:
        click.echo(f"  {one.forgotten} forgotten passages left out")
    for skipped in one.skipped:
        click.echo(f"  skipped {one_line(skipped.path)}: {one_line(skipped.reason)}")
    if one.pruned:
        click.echo(f"{one.pruned} old vectors dropped")


def estimate(one: Estimate) -> None:
    """What the vectors will take, on stderr: a price before anything is sent, the time once it is known."""
    amount = f"{one.passages:,} passages to embed with {one_line(one.model)}"
    if one.seconds is not None:
        minutes, seconds = divmod(round(one.seconds), 60)
        click.echo(
            f"{amount}: about {minutes} min {seconds} s" if minutes else f"{amount}: about {seconds} s", err=True
        )
    elif one.usd is not None:
        cost = f"about ${one.usd:.2f}" if one.usd >= 0.01 else "under $0.01"
        click.echo(f"{amount}: {one.tokens:,} tokens, {cost}", err=True)


def status(one: Status) -> None:
    """Disk against index."""
    state = "up to date" if one.fresh else f"{one.to_add} to add, {one.to_change} to read again, {one.to_drop} to drop"
    rows = [
        ("workspace", one.workspace),
        ("index", f"{one.index} ({one.bytes / 1e6:.1f} MB)"),
        ("files", f"{one.on_disk} on disk, {one.documents} indexed: {state}"),
        ("sources", "; ".join(f"{name}: {count} files, {chunks} passages" for name, count, chunks in one.sources)),
        ("passages", str(one.chunks)),
        ("model", f"{one.embedder}: {one.embedded} embedded, {one.pending} to go"),
        ("cache", f"{one.cached} vectors of text that is in no note now ({one.cache_bytes / 1e6:.1f} MB)"),
    ]
    if one.waiting:
        rows.append(("batch", f"{one.waiting} passages are at the provider (recollect index fetches what is done)"))
    if len(one.chain) > 1 or any(error for _, error in one.chain):
        rows.append(("chain", " → ".join(f"{n} ({one_line(e)})" if e else n for n, e in one.chain)))
    if one.refused:
        rows.append(("refused", f"{one.refused} passages (recollect index --force tries them again)"))
    if one.answering != one.embedder:
        rows.append(("answering", f"{one.answering}, until the model above has seen every passage"))
    if one.database:
        rows += _database(one.database)
    for level in one.levels:
        said = f"{level.latency_ms:.0f} ms, {level.dim} dimensions, alike {level.alike:.2f}, unlike {level.unlike:.2f}"
        fault = f"{level.error} ({level.hint})" if level.hint else level.error
        rows.append((f"{level.name}", said if level.ok else f"failed: {one_line(fault)}"))
    for name, value in rows:
        click.echo(f"{name:<10} {value}")
    for skipped in one.skipped:
        click.echo(f"  skipped {one_line(skipped.path)}: {one_line(skipped.reason)}")


def _database(one: Figures) -> Iterator[tuple[str, str]]:
    """How a database stands, over all workspaces in it."""
    tables, indexes = sum(t.bytes for t in one.tables), sum(t.index_bytes for t in one.tables)
    largest = ", ".join(f"{t.name} {(t.bytes + t.index_bytes) / 1e6:.1f}" for t in one.tables[:4])
    yield "database", f"tables {tables / 1e6:.1f} MB, indexes {indexes / 1e6:.1f} MB ({largest}), all workspaces"
    yield "vectors", f"HNSW for {', '.join(one.approximate)}" if one.approximate else "scanned exactly, no HNSW index"
    yield "claims", f"{one.claimed} of {one.waiting} waiting texts are at work"
    behind = [f"{name or 'a replica'} {lag:.1f} s" for name, lag in one.replicas]
    behind += [f"this replica {one.lag_s:.1f} s"] if one.lag_s is not None else []
    yield "behind", ", ".join(behind) or "no replica"
    yield "clients", f"{one.connections} of {one.most_connections} connections"


def config(one: Settings) -> None:
    """Every setting with where it came from."""
    for key, value, origin, doc in one.items():
        shown = ", ".join(value) if isinstance(value, tuple) else value
        click.echo(f"{key} = {shown!r}  [{origin}]")
        click.secho(f"    {doc}", dim=True)


class Bar:
    """A progress line on stderr, on a terminal only, with the time left."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self._what = ""
        self._begun = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Shows how far `what` is."""
        if not self.live or not total:
            return
        now = time.monotonic()
        if what != self._what:
            if self._what:
                sys.stderr.write("\n")
            self._what, self._begun = what, now
        spent = now - self._begun
        left = f", {spent / done * (total - done):.0f} s left" if done and spent > 1 and done < total else ""
        filled = 30 * done // total
        sys.stderr.write(f"\r{what:>8} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}{left}\x1b[K")
        if done >= total:
            sys.stderr.write("\n")
            self._what = ""
        sys.stderr.flush()
