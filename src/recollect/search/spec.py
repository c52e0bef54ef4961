"""Stages from text: `decay(half_life_days=14, floor=0.5)`, the same words that a stage shows in the trace."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.errors import SettingsError
from recollect.ports import Stage
from recollect.search.combine import Combine
from recollect.search.fusion import MaxNorm, Rrf, Single, Weighted
from recollect.search.stages import Abstain, Boost, Collapse, Cut, Decay, Mmr, Newer, Quota, Settle, Spread, Suppress

FUSIONS: Mapping[str, Any] = {
    "default": Combine,
    "combine": Combine,
    "weighted": Weighted,
    "rrf": Rrf,
    "maxnorm": MaxNorm,
    "single": Single,
}
STAGES: Mapping[str, Any] = {
    "decay": Decay,
    "mmr": Mmr,
    "newer": Newer,
    "abstain": Abstain,
    "spread": Spread,
    "boost": Boost,
    "suppress": Suppress,
    "collapse": Collapse,
    "settle": Settle,
    "quota": Quota,
    "cut": Cut,
}
_HINT = "write name or name(knob=value)"
_LAMBDA = re.compile(r"\blambda\s*=")


def parse(text: str, known: Mapping[str, Any]) -> Stage:
    """One stage from its name and knobs; every mistake names what would be right."""
    try:
        # `lambda` is a word of Python's own, so its parser would refuse the knob.
        tree = ast.parse(_LAMBDA.sub("lambda_=", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SettingsError(f"{text!r} is no stage", hint=_HINT) from None
    call = tree if isinstance(tree, ast.Call) else None
    name = call.func if call else tree
    if not isinstance(name, ast.Name) or (call and call.args):
        raise SettingsError(f"{text!r} is no stage", hint=_HINT)
    kind = known.get(name.id.lower())
    if kind is None:
        close = difflib.get_close_matches(name.id.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
        raise SettingsError(f"no stage is called {name.id!r}", hint=hint)
    allowed = {key: p for key, p in inspect.signature(kind).parameters.items() if p.default is not None}
    shown = ", ".join(key.rstrip("_") for key in allowed) or "none"
    knobs: dict[str, Any] = {}
    for word in call.keywords if call else ():
        if word.arg is None or word.arg not in allowed:
            raise SettingsError(f"{name.id} has no knob {word.arg!r}", hint=f"it has: {shown}")
        knobs[word.arg] = _value(word.value, allowed[word.arg], f"{name.id}: {word.arg.rstrip('_')}")
    missing = [key for key, p in allowed.items() if p.default is p.empty and key not in knobs]
    if missing:
        raise SettingsError(f"{name.id} needs {', '.join(missing)}", hint=f"it has: {shown}")
    return kind(**knobs)  # type: ignore[no-any-return]


def _value(node: ast.expr, knob: inspect.Parameter, what: str) -> Any:
    """A literal of the type that the knob's annotation names."""
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
            raise SettingsError(f"{what} must be a list of pairs", hint='such as [("memory", 2)]') from None
    kinds = {"float": (int, float), "int": (int,), "bool": (bool,), "str": (str,)}[wanted]
    if not isinstance(value, kinds) or (isinstance(value, bool) and wanted != "bool"):
        names = {"float": "a number", "int": "a whole number", "bool": "True or False", "str": "a text in quotes"}
        raise SettingsError(f"{what} must be {names[wanted]}, not {value!r}", hint=_HINT)
    return value


def text(stage: Stage, *, whole: bool = False) -> str:
    """A stage as settings write it: its name and the knobs that are not as they are by default, or all of them."""
    known = {**FUSIONS, **STAGES}
    name = next((n for n, kind in known.items() if kind is type(stage)), type(stage).__name__.lower())
    knobs = []
    for key, knob in inspect.signature(type(stage)).parameters.items():
        value = getattr(stage, key)
        if (
            knob.default is not None
            and (whole or value != knob.default)
            and not (key == "tau_days" and name == "decay")
        ):
            knobs.append(f"{key.rstrip('_')}={list(value) if isinstance(value, tuple) else value!r}")
    return f"{name}({', '.join(knobs)})" if knobs else name


def fusion(text: str) -> Stage:
    """A fusion from text."""
    return parse(text, FUSIONS)


def stages(texts: Sequence[str]) -> tuple[Stage, ...]:
    """Stages from text, in order, with a cut at the end if none was named."""
    found = tuple(parse(text, STAGES) for text in texts)
    return found if any(isinstance(s, Cut) for s in found) else (*found, Cut())
