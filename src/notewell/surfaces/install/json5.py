"""Reads and edits JSON5 settings files: JSON with comments, trailing commas and bare keys.

An edit changes the text of one member only; comments, order and spacing of everything else stay as
they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

_T = TypeVar("_T")
_BLANK = re.compile(r"(?:\s|\ufeff|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)"
)
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_QUOTES = ('"', "'")
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Node:
    """A value with the position of its text; an object has members, with the positions of their
    keys, a list items.
    """

    value: Any
    start: int
    end: int
    members: Mapping[str, tuple[int, Node]] = field(default_factory=dict)
    items: tuple[Node, ...] = ()


class _Reader:
    """A position in a text, which moves on as values are read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def fail(self, wanted: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"line {line}: {wanted} expected")

    def match(self, pattern: re.Pattern[str]) -> str:
        """Moves past what matches here and returns it; empty without a match."""
        found = pattern.match(self.text, self.at)
        self.at += len(found[0]) if found else 0
        return found[0] if found else ""

    def take(self, mark: str) -> bool:
        """Moves past blanks, and past the mark if it is next."""
        self.match(_BLANK)
        taken = self.text.startswith(mark, self.at)
        self.at += len(mark) if taken else 0
        return taken

    def node(self) -> Node:
        self.match(_BLANK)
        start = self.at
        members: dict[str, tuple[int, Node]] = {}
        items: tuple[Node, ...] = ()
        value: Any
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail("less nesting")
        if self.take("{"):
            members = dict(self._items("}", self._member))
            value = {key: node.value for key, (_, node) in members.items()}
        elif self.take("["):
            items = tuple(self._items("]", self.node))
            value = [node.value for node in items]
        else:
            value = self._scalar()
        self.depth -= 1
        return Node(value, start, self.at, members, items)

    def _items(self, end: str, read: Callable[[], _T]) -> Iterator[_T]:
        while not self.take(end):
            yield read()
            if not self.take(","):
                if not self.take(end):
                    raise self.fail(f"a comma or {end}")
                return

    def _member(self) -> tuple[str, tuple[int, Node]]:
        start = self.at
        key = self._string() if self.text.startswith(_QUOTES, start) else self.match(_NAME)
        if self.at == start:
            raise self.fail("a key")
        if not self.take(":"):
            raise self.fail("a colon")
        return key, (start, self.node())

    def _string(self) -> str:
        found = self.match(_STRING)
        if not found:
            raise self.fail("a closing quote")

        def plain(match: re.Match[str]) -> str:
            mark = match[1]
            return chr(int(mark[1:], 16)) if mark[0] in "ux" else _ESCAPES.get(mark, mark)

        text = re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", plain, found[1:-1], flags=re.DOTALL)
        # Two escapes may be the halves of one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def _scalar(self) -> Any:
        if self.text.startswith(_QUOTES, self.at):
            return self._string()
        if number := self.match(_NUMBER):
            if "x" in number.lower():
                return int(number, 16)
            return int(number) if number.lstrip("+-").isdecimal() else float(number)
        name = self.match(_NAME)
        if name not in _WORDS:
            raise self.fail("a value")
        return _WORDS[name]


def tree(text: str) -> Node:
    """The parsed text with positions; a ValueError names the line that is not valid JSON5."""
    reader = _Reader(text)
    made = reader.node()
    reader.match(_BLANK)
    if reader.at != len(text):
        raise reader.fail("the end")
    return made


def loads(text: str) -> Any:
    """The value of a JSON5 text."""
    return tree(text).value


def value(text: str, keys: Sequence[str]) -> Any:
    """The value under a path of keys; None if there is none."""
    node = _at(tree(text), keys) if text.strip() else None
    return node.value if node else None


def with_member(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with a value under a path of keys, replaced or added."""
    if not text.strip():
        text = "{}\n"
    node = tree(text)
    depth = 0
    while depth < len(keys) and isinstance(node.value, dict) and keys[depth] in node.members:
        node = node.members[keys[depth]][1]
        depth += 1
    if depth == len(keys):
        if node.value == value:
            return text
        return (
            text[: node.start] + _dumped(value, _indent(text, node.start), "  ") + text[node.end :]
        )
    if not isinstance(node.value, dict):
        raise ValueError(f"{'.'.join(keys[:depth]) or 'the file'} is not an object")
    for key in reversed(keys[depth + 1 :]):
        value = {key: value}
    return _added(text, node, keys[depth], value)


def without_member(text: str, keys: Sequence[str]) -> str:
    """The text without the value under a path of keys, and without objects that become empty."""
    if not text.strip():
        return text
    node = tree(text)
    for key in keys[:-1]:
        node = node.members[key][1] if key in node.members else Node(None, 0, 0)
    if keys[-1] not in node.members:
        return text
    if len(keys) > 1 and len(node.members) == 1:
        return without_member(text, keys[:-1])
    start, gone = node.members[keys[-1]]
    return _cut(
        text,
        start,
        gone.end,
        max((n.end for at, n in node.members.values() if at < start), default=None),
    )


def with_item(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with one more item at the end of the list under a path of keys."""
    node = _at(tree(text), keys) if text.strip() else None
    if node is None or (isinstance(node.value, list) and not node.items):
        return with_member(text, keys, [value])
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(keys)} is not a list")
    return _appended(
        text, node, (node.items[-1].start, node.items[-1]), lambda *style: _dumped(value, *style)
    )


def without_items(text: str, keys: Sequence[str], ours: Callable[[Any], bool]) -> str:
    """The text without some items of the list under a path of keys, and without what becomes
    empty.
    """
    node = _at(tree(text), keys) if text.strip() else None
    gone = [n for n, one in enumerate(node.items) if ours(one.value)] if node else []
    if node and gone and len(gone) == len(node.items):
        return without_member(text, keys)
    for n in reversed(gone):  # what is before an item stays where it is
        assert node is not None  # noqa: S101 - there are items
        text = _cut(
            text, node.items[n].start, node.items[n].end, node.items[n - 1].end if n else None
        )
    return text


def _at(node: Node, keys: Sequence[str]) -> Node | None:
    for key in keys:
        if key not in node.members:
            return None
        node = node.members[key][1]
    return node


def _cut(text: str, start: int, end: int, before: int | None) -> str:
    """The text without a member or item, its comma and its line; `before` is the end of the one
    before it.
    """
    if after := re.compile(r"[ \t]*,").match(text, end):
        end = after.end()
    elif (
        before is not None and (comma := text.find(",", before)) < start
    ):  # the last one: remove the comma before it
        # on one line with the one before it
        if text[comma + 1 : start].isspace() and "\n" not in text[comma:start]:
            return text[:comma] + text[end:]
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        rest = re.compile(r"[^\S\n]*(?:\n|\Z)").match(text, end)
        start, end = line, rest.end() if rest else end
    return text[:start] + text[end:]


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return re.match(r"[ \t]*", line)[0]  # type: ignore[index]


def _dumped(value: Any, indent: str, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", "\n" + indent)


def _added(text: str, node: Node, key: str, value: Any) -> str:
    outer = _indent(text, node.start)
    if not node.members:
        unit = "\t" if "\t" in outer else "  "
        inner = outer + unit
        member = f"{json.dumps(key)}: {_dumped(value, inner, unit)}"
        kept = text[node.start + 1 : node.end - 1].rstrip()  # keep comments in an empty object
        return f"{text[: node.start]}{{{kept}\n{inner}{member}\n{outer}}}{text[node.end :]}"
    final = max(node.members.values(), key=lambda m: m[0])
    return _appended(
        text, node, final, lambda *style: f"{json.dumps(key)}: {_dumped(value, *style)}"
    )


def _appended(
    text: str, node: Node, final: tuple[int, Node], shown: Callable[[str, str], str]
) -> str:
    """The text with one more member or item behind the final one."""
    at, last = final
    outer = _indent(text, node.start)
    inner = _indent(text, at)
    alone = not text[text.rfind("\n", 0, at) + 1 : at].strip()
    unit = inner[len(outer) :] if alone and inner.startswith(outer) and inner != outer else "  "
    member = shown(inner if alone else outer, unit)
    comma = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*,", re.DOTALL).match(text, last.end)
    gap = f"\n{inner}" if alone else " "
    end = comma.end() if comma else last.end
    rest = (
        re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*)?(?=\n)").match(text, end)
        if alone
        else None
    )
    note = rest[0] if rest else ""  # a comment at the end of the line above stays there
    habit = "," if comma else ""  # keep a trailing comma where the file has one
    return (
        f"{text[: last.end]}{text[last.end : end] or ','}{note}"
        f"{gap}{member}{habit}{text[end + len(note) :]}"
    )
