"""Shapes of JSON objects: which fields an answer shows, listed once for its values and for its JSON
schema.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

Share = Annotated[float, "from 0 to 1"]
Schema = dict[str, Any]
_DIGITS = {"took_ms": 2, "latency_ms": 1, "seconds": 1}  # all other numbers have six at most
_SIMPLE: Mapping[Any, Schema] = {
    str: {"type": "string"},
    float: {"type": "number"},
    int: {"type": "integer", "minimum": 0},  # every integer of an answer counts something
    bool: {"type": "boolean"},
    dt.date: {"type": "string"},
    dt.datetime: {"type": "string"},
    NoneType: {"type": "null"},
    Share: {"type": "number", "minimum": 0, "maximum": 1},
    Any: {},
}


def plain(value: Any, name: str = "") -> Any:
    """A value as JSON has it: dataclasses become objects, sequences lists, days text, and numbers
    are rounded.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return round(value, _DIGITS.get(name, 6))
    if isinstance(value, dt.date):
        return (
            value.isoformat(timespec="seconds")
            if isinstance(value, dt.datetime)
            else value.isoformat()
        )
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in sorted(value.items())}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name), f.name) for f in dataclasses.fields(value)}
    return [plain(one) for one in value]


class Shape:
    """The keys of a JSON object, in order.

    Each word of `keys` is a field or property of one of the classes in `kinds`; `key=name` shows it
    under another key, `*` means all fields not listed and `-name` leaves one out. `types` are the
    types of keys that no class has, or that differ from the field: a class, a shape, `[shape]` for
    a list or `{str: shape}` for a table. The keys listed in `optional` may be missing. An empty
    text is null where `types` allow null.
    """

    def __init__(self, keys: str, *kinds: type, optional: str = "", **types: Any) -> None:
        self._kinds = kinds
        self._types = types
        self._optional = optional.split()
        self._null = {key for key, hint in types.items() if hint == str | None}
        self._keys = _sources(keys.split(), kinds)

    def fill(self, *objects: Any, **given: Any) -> dict[str, Any]:
        """The object made from one instance of each class; a given value, which must be plain,
        replaces a field's.
        """
        made: dict[str, Any] = {}
        for key, (number, name) in self._keys.items():
            value = given[key] if key in given else plain(getattr(objects[number], name), key)
            made[key] = None if value == "" and key in self._null else value
        return made | given

    @cached_property
    def schema(self) -> Schema:
        """The JSON schema; later versions may add keys."""
        fields = {
            k: _type_of(self._kinds[n], name)
            for k, (n, name) in self._keys.items()
            if k not in self._types
        }
        types = {key: schema_of(hint) for key, hint in (fields | self._types).items()}
        return {
            "type": "object",
            "properties": types,
            "required": [key for key in types if key not in self._optional],
        }


def _sources(words: Sequence[str], kinds: Sequence[type]) -> dict[str, tuple[int, str]]:
    """Each key with the number of the class that has it and its name there; -1 for a key that no
    class has.
    """
    fields = {
        f.name: n for n, kind in reversed(list(enumerate(kinds))) for f in dataclasses.fields(kind)
    }
    found: dict[str, tuple[int, str]] = {}
    for word in words:
        if word == "*":
            found |= {
                name: (n, name)
                for name, n in fields.items()
                if name not in found and f"-{name}" not in words
            }
        elif not word.startswith("-"):
            key, _, name = word.partition("=")
            name = name or key
            properties = (n for n, kind in enumerate(kinds) if hasattr(kind, name))
            found[key] = (fields[name] if name in fields else next(properties, -1), name)
    return found


def _type_of(kind: type, name: str) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    return hints[name] if name in hints else get_type_hints(getattr(kind, name).fget)["return"]


def schema_of(hint: Any) -> Schema:
    """The JSON schema of a type, or of what a shape says about a key."""
    kind, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, list | dict):
        kind, inner = (
            type(hint),
            tuple(hint) if isinstance(hint, list) else next(iter(hint.items())),
        )
    elif hint in _SIMPLE:
        return _SIMPLE[hint]
    if kind is Literal:
        return {"enum": list(inner)}
    if kind is UnionType:
        return {"anyOf": [schema_of(one) for one in inner]}
    if kind in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(inner[0])}
    if kind in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    return (hint if isinstance(hint, Shape) else Shape("*", hint)).schema
