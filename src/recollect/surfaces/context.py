"""`search --format context`: one block for a prompt on stdout, everything about it on stderr or in the JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from recollect.errors import UsageError
from recollect.memory import Memory
from recollect.search.pack import DEFAULT_BUDGET
from recollect.surfaces import render, view

Emit = Callable[[dict[str, Any]], None]


def show(memory: Memory, question: str, options: dict[str, Any], *, emit: Emit | None, explain: bool) -> None:
    """Packs the answer to a question and shows it, as JSON where there is an `emit`."""
    if explain and emit is None:
        raise UsageError("a trace has no place in a prompt", hint="add --json, or leave --explain out")
    budget = options.pop("budget_tokens") or DEFAULT_BUDGET
    packed = memory.context(question, budget_tokens=budget, **options)
    if emit is not None:
        emit(view.context(packed, explain=explain))
        return
    render.notices(packed.found.notices if packed.found else ())
    click.echo(packed.text, nl=False)
