"""Stages from text: `decay(half_life_days=14, floor=0.5)`, the same words that a stage shows in the trace."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.errors import SettingsError
from recollect.ports import Stage
from recollect.search.combine import Combine
from recollect.search.fusion import MaxNorm, Rrf, Single, Weighted
from recollect.search.stages import Boost, Cut, Decay, Mmr, Quota, Suppress

FUSIONS: Mapping[str, Any] = {"default": Combine, "combine": Combine, "weighted": Weighted, "rrf": Rrf, "maxnorm": MaxNorm, "single": Single}
STAGES: Mapping[str, Any] = {"decay": Decay, "mmr": Mmr, "boost": Boost, "suppress": Suppress, "quota": Quota, "cut": Cut}


def parse(text: str, known: Mapping[str, Any]) -> Stage:
    """One stage from its name and knobs; every mistake names what would be right."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SettingsError(f"{text!r} is no stage", hint="write name or name(knob=value)") from None
    call = tree if isinstance(tree, ast.Call) else None
    name = call.func if call else tree
    if not isinstance(name, ast.Name) or (call and call.args):
        raise SettingsError(f"{text!r} is no stage", hint="write name or name(knob=value)")
    kind = known.get(name.id.lower())
    if kind is None:
        close = difflib.get_close_matches(name.id.lower(), known, n=1)
        raise SettingsError(f"no stage is called {name.id!r}", hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}")
    knobs: dict[str, Any] = {}
    for word in call.keywords if call else ():
        allowed = inspect.signature(kind).parameters
        key = "lambda_" if word.arg == "lambda" else word.arg
        if key is None or key not in allowed:
            raise SettingsError(f"{name.id} has no knob {word.arg!r}", hint=f"it has: {', '.join(allowed) or 'none'}")
        try:
            knobs[key] = ast.literal_eval(word.value)
        except ValueError:
            raise SettingsError(f"{name.id}: {key} must be a number, text or list") from None
    try:
        return kind(**knobs)  # type: ignore[no-any-return]
    except TypeError as error:
        raise SettingsError(f"{text!r}: {error}") from None


def fusion(text: str) -> Stage:
    """A fusion from text."""
    return parse(text, FUSIONS)


def stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Stages from text, in order, with a cut at the end if none was named."""
    found = tuple(parse(text, STAGES) for text in texts)
    return found if any(isinstance(s, Cut) for s in found) else (*found, Cut())
