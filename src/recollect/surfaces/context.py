"""`search --format context`: one block for a prompt on stdout, everything about it on stderr or in the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from recollect.errors import UsageError
from recollect.memory import Memory
from recollect.search.pack import DEFAULT_BUDGET, Context
from recollect.surfaces import render, view

Emit = Callable[[dict[str, Any]], None]


def show(memory: Memory, question: str, options: dict[str, Any], *, emit: Emit | None, explain: bool) -> None:
    """Packs the answer to a question and shows it, as JSON where there is an `emit`."""
    if explain and emit is None:
        raise UsageError("a trace has no place in a prompt", hint="add --json, or leave --explain out")
    budget = options.pop("budget_tokens") or DEFAULT_BUDGET
    packed = memory.context(question, budget_tokens=budget, **options)
    if emit is not None:
        emit(seen(packed, explain=explain))
        return
    render.notices(packed.found.notices if packed.found else ())
    click.echo(packed.text, nl=False)


def seen(packed: Context, *, explain: bool = False) -> dict[str, Any]:
    """The answer of a search with the block and what stands in it."""
    passages = [
        {
            "id": one.chunk.id,
            "citation": one.chunk.citation,
            "date": one.chunk.day.isoformat() if one.chunk.day else None,
            "origin": one.chunk.origin,
            "cut": one.cut,
            "also": list(one.also),
            "conflict": one.conflict,
        }
        for one in packed.passages
    ]
    block = {"context": packed.text, "tokens": packed.tokens, "passages": passages, "left_out": packed.left_out}
    return (view.found(packed.found, explain=explain) if packed.found else {}) | block
