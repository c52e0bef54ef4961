"""Stages from text such as `decay(half_life_days=14, floor=0.5)`, which is also how the trace shows
them.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from notewell.errors import SettingsError
from notewell.search.combine import Combine
from notewell.search.current import Newer, Replies
from notewell.search.fusion import MaxNorm, Rrf, Single, Weighted
from notewell.search.stages import (
    Abstain,
    Boost,
    Collapse,
    Cut,
    Decay,
    Listing,
    Mmr,
    NotesFirst,
    Quota,
    Settle,
    Spread,
    Suppress,
)
from notewell.types import Stage

_FUSIONS = (Combine, Weighted, Rrf, MaxNorm, Single)
_STAGES = (
    Decay,
    Mmr,
    Newer,
    Replies,
    Abstain,
    Spread,
    Listing,
    NotesFirst,
    Boost,
    Suppress,
    Collapse,
    Settle,
    Quota,
    Cut,
)
FUSIONS: Mapping[str, Any] = {
    "default": Combine,
    **{kind.__name__.lower(): kind for kind in _FUSIONS},
}
STAGES: Mapping[str, Any] = {kind.__name__.lower(): kind for kind in _STAGES}
_HINT = "write name or name(knob=value)"
_HUGE = 1e9
_LAMBDA = re.compile(r"\blambda\s*=")


def parse(text: str, known: Mapping[str, Any]) -> Stage:
    """One stage from its name and knobs; every mistake is answered with what would be right."""
    name, keywords = _name_and_knobs(text)
    kind = known.get(name.lower())
    if kind is None:
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise SettingsError(f"no stage is called {name!r}", hint=hint)
    allowed = {
        key: p for key, p in inspect.signature(kind).parameters.items() if p.default is not None
    }
    hint = f"it has: {', '.join(key.rstrip('_') for key in allowed) or 'none'}"
    knobs: dict[str, Any] = {}
    for word in keywords:
        if word.arg is None or word.arg not in allowed:
            raise SettingsError(f"{name} has no knob {word.arg!r}", hint=hint)
        knobs[word.arg] = _value(word.value, allowed[word.arg], f"{name}: {word.arg.rstrip('_')}")
    missing = [key for key, p in allowed.items() if p.default is p.empty and key not in knobs]
    if missing:
        raise SettingsError(f"{name} needs {', '.join(missing)}", hint=hint)
    return kind(**knobs)  # type: ignore[no-any-return]


def _name_and_knobs(text: str) -> tuple[str, Sequence[ast.keyword]]:
    """The parts of `name` or `name(knob=value, …)`."""
    try:
        # `lambda` is a keyword of Python, so its parser would not take it as the name of a knob.
        tree = ast.parse(_LAMBDA.sub("lambda_=", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    match tree:
        case ast.Name(id=name):
            return name, ()
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            return name, keywords
    raise SettingsError(f"{text!r} is not a stage", hint=_HINT)


def _value(node: ast.expr, knob: inspect.Parameter, what: str) -> Any:
    """A literal of the type in the knob's annotation."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise SettingsError(f"{what} must be a number, text or list", hint=_HINT) from None
    wanted = str(knob.annotation)
    if wanted.startswith("tuple"):
        number = float if "float" in wanted else int
        try:
            return tuple((str(key), number(weight)) for key, weight in value)
        except (TypeError, ValueError):
            raise SettingsError(
                f"{what} must be a list of pairs", hint='such as [("memory", 2)]'
            ) from None
    if isinstance(value, int | float) and not abs(value) <= _HUGE:
        raise SettingsError(f"{what} is {value!r}", hint="give a smaller number")
    kinds = {"float": (int, float), "int": (int,), "bool": (bool,), "str": (str,)}[wanted]
    if not isinstance(value, kinds) or (isinstance(value, bool) and wanted != "bool"):
        names = {
            "float": "a number",
            "int": "a whole number",
            "bool": "True or False",
            "str": "text in quotes",
        }
        raise SettingsError(f"{what} must be {names[wanted]}, not {value!r}", hint=_HINT)
    return value


def text(stage: Stage, *, whole: bool = False) -> str:
    """A stage as settings write it: its name and the knobs that differ from their defaults, or all
    knobs.
    """
    known = {**FUSIONS, **STAGES}
    name = next(
        (n for n, kind in known.items() if kind is type(stage)), type(stage).__name__.lower()
    )
    knobs = []
    for key, knob in inspect.signature(type(stage)).parameters.items():
        value = getattr(stage, key)
        repeats = key == "tau_days" and name == "decay"  # the same as the half-life
        if knob.default is not None and (whole or value != knob.default) and not repeats:
            knobs.append(
                f"{key.rstrip('_')}={list(value) if isinstance(value, tuple) else value!r}"
            )
    return f"{name}({', '.join(knobs)})" if knobs else name


def fusion(text: str) -> Stage:
    """A fusion from text."""
    return parse(text, FUSIONS)


def stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Stages from text, in order, with a cut at the end if none is named."""
    parsed = tuple(parse(text, STAGES) for text in texts)
    return parsed if any(isinstance(s, Cut) for s in parsed) else (*parsed, Cut())
