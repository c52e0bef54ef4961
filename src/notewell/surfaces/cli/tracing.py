"""The commands about time and provenance: timeline, trace, link."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from notewell.memory import Memory
from notewell.notes.link_walk import Direction, Hop, LinkWalk, Node
from notewell.notes.links import LINKS_FILE, written
from notewell.notes.timeline import Entry
from notewell.surfaces import arguments, note_view, view
from notewell.surfaces.cli import render
from notewell.surfaces.cli.options import answer, filter_options, with_memory
from notewell.surfaces.shapes import Shape, plain
from notewell.types import Filters, Notice

_HOP = Shape("parent depth kind direction again", Hop)
_ARROWS = {"out": "->", "in": "<-"}


@click.command()
@click.argument("reference", default="")
@click.option("--around", help="A day, a month or a phrase, instead of a passage.")
@click.option(
    "--window", type=click.IntRange(1, 1000), default=10, help="How many passages before and after."
)
@filter_options
@with_memory
def timeline(
    memory: Memory,
    reference: str,
    *,
    around: str | None,
    window: int,
    path: str,
    source: str | None,
    origin: str | None,
    as_json: bool,
) -> None:
    """Show what came before and after a passage or a day.

    The passage is an id, a path or path:lines. Without a passage or a day, the latest passages are
    shown.

    \b
    notewell timeline memory/2026-05-06.md --window 3
    notewell timeline --around "last week"
    """
    days = arguments.days(around, "--around")
    filters = Filters(path=path, source=source or "", origin=origin or "")
    entries, notices = memory.timeline(reference, around=days, window=window, filters=filters)
    answer(
        as_json,
        lambda: note_view.timeline(entries, notices),
        lambda: click.echo(_timeline(entries)),
        notices,
    )


@click.command()
@click.argument("reference")
@click.option("--depth", type=click.IntRange(1, 50), default=4, help="How many steps to follow.")
@click.option("--kind", "kinds", multiple=True, help="Only links of this kind (repeatable).")
@click.option("--reverse", is_flag=True, help="Follow links to this note, instead of from it.")
@click.option("--both", is_flag=True, help="Follow links in both directions.")
@with_memory
def trace(
    memory: Memory,
    reference: str,
    *,
    depth: int,
    kinds: Sequence[str],
    reverse: bool,
    both: bool,
    as_json: bool,
) -> None:
    """Follow the links of a note, such as what it derives from.

    The start is an id, a path, path:lines or path#heading. Links come from [[wiki]] and Markdown
    links, from front matter (derives_from, supersedes, conflicts_with, references, causes, calls,
    imports) and from 'notewell link'. 'notewell why' explains the rank of a passage.

    \b
    notewell trace memory/2026-09-03.md --depth 2
    notewell trace memory/network.md --reverse
    """
    direction: Direction = "both" if both else "in" if reverse else "out"
    found, notices = memory.trace(reference, depth=depth, kinds=kinds, direction=direction)
    answer(as_json, lambda: _trail(found, notices), lambda: click.echo(_tree(found)), notices)


@click.command()
@click.argument("start")
@click.argument("kind")
@click.argument("end")
@click.option("--remove", is_flag=True, help="Remove the link.")
@with_memory
def link(memory: Memory, start: str, kind: str, end: str, *, remove: bool, as_json: bool) -> None:
    """Link one passage or note to another.

    Kinds are derives_from, supersedes, conflicts_with, references, causes, or any word you choose.
    The link is a line in links.jsonl in the workspace: no note is changed, and the link survives if
    the index is deleted.

    \b
    notewell link memory/2026-09-03.md derives_from memory/network.md
    """
    edge, changed = memory.link(start, kind, end, remove=remove)
    made = {
        "from": written(edge.start),
        "kind": edge.kind,
        "to": written(edge.end),
        "file": LINKS_FILE,
    }
    state = (
        ("removed from" if changed else "was not in")
        if remove
        else "added to"
        if changed
        else "was already in"
    )
    text = render.one_line(f"{made['from']} {edge.kind} {made['to']}: {state} {LINKS_FILE}")
    answer(
        as_json,
        lambda: {**made, "changed": changed, "removed": remove and changed},
        lambda: click.echo(text),
    )


def _timeline(entries: Sequence[Entry]) -> str:
    lines = []
    for e in entries:
        when = e.when.replace("T", " ")[:16] + ("~" if e.by == "file" else " ")
        who = "" if e.chunk.origin == "owner" else f"[{e.chunk.origin}] "
        what = render.one_line(f"{e.chunk.citation}  {who}{view.first_line(e.chunk)}")
        lines.append(f"{'>' if e.here else ' '} {when:<17} {what}  {e.chunk.id}")
    return "\n".join(lines) or "nothing in that time"


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
    parent = hop.parent if hop.parent >= 0 else None
    return {"number": number, **_HOP.fill(hop, parent=parent), **_node(hop.node)}


def _trail(found: LinkWalk, notices: Sequence[Notice]) -> dict[str, Any]:
    hops = [_hop(number, hop) for number, hop in enumerate(found.hops)]
    return {"start": _node(found.start), "hops": hops, "cut": found.cut, "notices": plain(notices)}


def _tree(found: LinkWalk) -> str:
    """The links as an indented tree, each node under the one that leads to it."""
    under: dict[int, list[int]] = {}
    for number, hop in enumerate(found.hops):
        under.setdefault(hop.parent, []).append(number)
    lines = [_shown(found.start)]
    todo = under.get(-1, [])[::-1]
    while todo:
        number = todo.pop()
        hop = found.hops[number]
        state = "  (see above)" if hop.again else ""
        lines.append(
            f"{'  ' * hop.depth}{_ARROWS[hop.direction]} {render.one_line(hop.kind)}  "
            f"{_shown(hop.node)}{state}"
        )
        todo += under.get(number, [])[::-1]
    if len(lines) == 1:
        lines.append("  no links; 'notewell trace --help' says where links come from")
    if found.cut:
        lines.append(f"  (stopped after {len(found.hops)} links; narrow it with --kind or --depth)")
    return "\n".join(lines)


def _shown(node: Node) -> str:
    if node.dangling:
        return render.one_line(f"{node.path}  (no indexed note has that name)")
    chunk = node.chunk
    facts = [
        node.citation,
        str(chunk.day) if chunk and chunk.day else "",
        chunk.origin if chunk else "",
    ]
    return render.one_line("  ".join(f for f in (*facts, view.first_line(chunk)) if f))
