"""The commands about time and provenance: timeline, trace, link."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import click

from recollect.errors import UsageError
from recollect.memory import Memory
from recollect.search.timeline import Entry
from recollect.search.trail import Direction, Hop, Node, Trail
from recollect.settings import ORIGINS
from recollect.sources.links import LINKS_FILE, written
from recollect.surfaces import render, view
from recollect.surfaces.options import SOURCES, emit, with_memory
from recollect.text.dates import parse_span
from recollect.types import Filters, Notice

_ARROWS = {"out": "->", "in": "<-"}


@click.command()
@click.argument("reference", default="")
@click.option("--around", help="A day, a month or a phrase as the middle, instead of a passage.")
@click.option("--window", type=click.IntRange(1, 1000), default=10, help="How many passages before and after.")
@click.option("--path", default="", help="Only files under a folder or matching a glob.")
@click.option("--source", type=click.Choice(SOURCES), help="Only one source.")
@click.option("--origin", type=click.Choice(ORIGINS), help="Only what these wrote.")
@with_memory
def timeline(
    memory: Memory, reference: str, *, around: str | None, window: int, path: str, source: str | None,
    origin: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Show what came before and after a passage or a day.

    The passage is an id, a path or path:lines; without it and without a day, the latest are shown.

    \b
    recollect timeline memory/2026-05-06.md --window 3
    recollect timeline --around "last week"
    """
    days = None
    if around:
        span = parse_span(around, dt.datetime.now())  # noqa: DTZ005 - the days of this place
        if span is None:
            raise UsageError(f"--around {around!r} is no date", hint='try 2026-03-19, 2026-03 or "last week"')
        days = (span.start, span.end)
    filters = Filters(path=path, source=source or "", origin=origin or "")
    entries, notices = memory.timeline(reference, around=days, window=window, filters=filters)
    if as_json:
        emit(view.timeline(entries, notices))
        return
    render.notices(notices)
    for line in _timeline(entries):
        click.echo(line)


@click.command()
@click.argument("reference")
@click.option("--depth", type=click.IntRange(1, 50), default=4, help="How many steps.")
@click.option("--kind", "kinds", multiple=True, help="Only links of this kind (repeatable).")
@click.option("--reverse", is_flag=True, help="What names this, instead of what this names.")
@click.option("--both", is_flag=True, help="Both directions.")
@with_memory
def trace(
    memory: Memory, reference: str, *, depth: int, kinds: Sequence[str], reverse: bool, both: bool, as_json: bool
) -> None:
    """Walk what a note derives from, refers to, causes and so on.

    The start is an id, a path, path:lines or path#heading.
    Links come from [[wiki]] and Markdown links, from front matter (derives_from, supersedes, conflicts_with,
    references, causes, calls, imports) and from 'recollect link'. For why a passage ranks where it does, see
    'recollect why'.

    \b
    recollect trace memory/2026-09-03.md --depth 2
    recollect trace memory/network.md --reverse
    """
    direction: Direction = "both" if both else "in" if reverse else "out"
    found, notices = memory.trace(reference, depth=depth, kinds=kinds, direction=direction)
    if as_json:
        emit(_trail(found, notices))
        return
    render.notices(notices)
    for line in _tree(found):
        click.echo(line)


@click.command()
@click.argument("start")
@click.argument("kind")
@click.argument("end")
@click.option("--remove", is_flag=True, help="Take the link out again.")
@with_memory
def link(memory: Memory, start: str, kind: str, end: str, *, remove: bool, as_json: bool) -> None:
    """Say how one passage or note is linked to another.

    Kinds are derives_from, supersedes, conflicts_with, references, causes, or a word of your own. The link is a line
    of links.jsonl in the workspace: no note is edited, and a deleted index loses nothing.

    \b
    recollect link memory/2026-09-03.md derives_from memory/network.md
    """
    edge, changed = memory.link(start, kind, end, remove=remove)
    told = {"from": written(edge.start), "kind": edge.kind, "to": written(edge.end), "file": LINKS_FILE}
    if as_json:
        emit({**told, "changed": changed, "removed": remove and changed})
        return
    state = ("removed from" if changed else "was not in") if remove else "added to" if changed else "was already in"
    click.echo(render.one_line(f"{told['from']} {edge.kind} {told['to']}: {state} {LINKS_FILE}"))


def _timeline(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return ["nothing in that time"]
    lines = []
    for e in entries:
        when = e.when.replace("T", " ")[:16] + ("~" if e.by == "file" else " ")
        who = "" if e.chunk.origin == "owner" else f"[{e.chunk.origin}] "
        what = render.one_line(f"{e.chunk.citation}  {who}{view.first_line(e.chunk)}")
        lines.append(f"{'>' if e.here else ' '} {when:<17} {what}  {e.chunk.id}")
    return lines


def _node(node: Node) -> dict[str, Any]:
    chunk = node.chunk
    return {
        "path": node.path,
        "citation": node.citation,
        "id": chunk.id if chunk and not node.whole else None,
        "date": chunk.day.isoformat() if chunk and chunk.day else None,
        "origin": chunk.origin if chunk else None,
        "first_line": view.first_line(chunk),
        "dangling": node.dangling,
    }


def _hop(number: int, hop: Hop) -> dict[str, Any]:
    place = {"number": number, "parent": hop.parent if hop.parent >= 0 else None, "depth": hop.depth}
    return {**place, "kind": hop.kind, "direction": hop.direction, "again": hop.again, **_node(hop.node)}


def _trail(found: Trail, notices: Sequence[Notice]) -> dict[str, Any]:
    return {
        "start": _node(found.start),
        "hops": [_hop(number, hop) for number, hop in enumerate(found.hops)],
        "cut": found.cut,
        "notices": [view.notice(n) for n in notices],
    }


def _tree(found: Trail) -> list[str]:
    """The walk as an indented tree, each node under the one that led to it."""
    under: dict[int, list[int]] = {}
    for number, hop in enumerate(found.hops):
        under.setdefault(hop.parent, []).append(number)
    lines = [_shown(found.start)]
    todo = under.get(-1, [])[::-1]
    while todo:
        number = todo.pop()
        hop = found.hops[number]
        state = "  (see above)" if hop.again else ""
        lines.append(f"{'  ' * hop.depth}{_ARROWS[hop.direction]} {hop.kind}  {_shown(hop.node)}{state}")
        todo += under.get(number, [])[::-1]
    if len(lines) == 1:
        lines.append("  no links; see 'recollect trace --help' for where they come from")
    if found.cut:
        lines.append(f"  (cut after {len(found.hops)} links; narrow it with --kind or --depth)")
    return lines


def _shown(node: Node) -> str:
    if node.dangling:
        return render.one_line(f"{node.path}  (nothing of that name is indexed)")
    chunk = node.chunk
    facts = [node.citation, str(chunk.day) if chunk and chunk.day else "", chunk.origin if chunk else ""]
    return render.one_line("  ".join(f for f in (*facts, view.first_line(chunk)) if f))


COMMANDS: tuple[click.Command, ...] = (timeline, trace, link)
