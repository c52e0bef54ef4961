"""JSON as people keep it in settings files: comments, trailing commas, bare keys. Read, and changed in place.

A change touches the text of one member only, so comments, order and spacing of everything else stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:\s|\ufeff|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)")
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Node:
    """A value with the place of its text; an object also knows the places of its members' keys."""

    value: Any
    start: int
    end: int
    members: Mapping[str, tuple[int, Node]] = field(default_factory=dict)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def blank(self) -> None:
        self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]

    def fail(self, wanted: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"line {line}: {wanted} expected")

    def take(self, mark: str) -> bool:
        self.blank()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def node(self) -> Node:
        self.blank()
        start = self.at
        mark = self.text[start : start + 1]
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail("less depth")
        if mark == "{":
            made = self._object()
        elif mark == "[":
            made = self._array()
        elif mark in ('"', "'"):
            made = Node(self._string(), start, self.at)
        else:
            made = self._word()
        self.depth -= 1
        return made

    def _object(self) -> Node:
        start = self.at
        self.at += 1
        members: dict[str, tuple[int, Node]] = {}
        while not self.take("}"):
            self.blank()
            place = self.at
            key = self._key()
            if not self.take(":"):
                raise self.fail("a colon")
            members[key] = (place, self.node())
            if not self.take(",") and not self._closes("}"):
                raise self.fail("a comma or }")
        return Node({k: n.value for k, (_, n) in members.items()}, start, self.at, members)

    def _array(self) -> Node:
        start = self.at
        self.at += 1
        values = []
        while not self.take("]"):
            values.append(self.node().value)
            if not self.take(",") and not self._closes("]"):
                raise self.fail("a comma or ]")
        return Node(values, start, self.at)

    def _closes(self, mark: str) -> bool:
        self.blank()
        return self.text.startswith(mark, self.at)

    def _key(self) -> str:
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return self._string()
        name = _NAME.match(self.text, self.at)
        if not name:
            raise self.fail("a key")
        self.at = name.end()
        return name[0]

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if not found:
            raise self.fail("the end of a text")
        self.at = found.end()

        def plain(match: re.Match[str]) -> str:
            mark = match[1]
            if mark[0] in "ux":
                return chr(int(mark[1:], 16))
            return _ESCAPES.get(mark, mark)

        text = re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", plain, found[0][1:-1], flags=re.DOTALL)
        # Two escapes may be the halves of one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def _word(self) -> Node:
        start = self.at
        number = _NUMBER.match(self.text, start)
        if number:
            self.at = number.end()
            return Node(_number(number[0]), start, self.at)
        name = _NAME.match(self.text, start)
        if not name or name[0] not in _WORDS:
            raise self.fail("a value")
        self.at = name.end()
        return Node(_WORDS[name[0]], start, self.at)


def _number(text: str) -> int | float:
    if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text.replace("Infinity", "inf"))


def tree(text: str) -> Node:
    """The whole text with places; ValueError with the line where it is no JSON5."""
    reader = _Reader(text)
    made = reader.node()
    reader.blank()
    if reader.at != len(text):
        raise reader.fail("the end")
    return made


def loads(text: str) -> Any:
    """The value of a JSON5 text."""
    return tree(text).value


def with_member(text: str, keys: Sequence[str], value: Any) -> str:
    """The text with a value under a path of keys: replaced where it is, added where it is not."""
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
        return text[: node.start] + _dumped(value, _indent(text, node.start), "  ") + text[node.end :]
    if not isinstance(node.value, dict):
        raise ValueError(f"{'.'.join(keys[:depth]) or 'the file'} is no object")
    for key in reversed(keys[depth + 1 :]):
        value = {key: value}
    return _added(text, node, keys[depth], value)


def without_member(text: str, keys: Sequence[str]) -> str:
    """The text without the value under a path of keys, and without objects that it leaves empty."""
    if not text.strip():
        return text
    if len(keys) > 1 and set(_at(tree(text), keys[:-1]).members) == {keys[-1]}:
        return without_member(text, keys[:-1])
    node = tree(text)
    for key in keys[:-1]:
        if key not in node.members:
            return text
        node = node.members[key][1]
    if keys[-1] not in node.members:
        return text
    start, gone = node.members[keys[-1]]
    end = gone.end
    after = re.compile(r"[ \t]*,").match(text, end)
    if after:
        end = after.end()
    else:
        before = _last_before(node, start)
        if before is not None:  # the last member: the comma of the one above goes
            comma = text.find(",", before)
            if comma < start:
                text = text[:comma] + text[comma + 1 :]
                start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        start = line
        end = (text.find("\n", end) + 1 or len(text)) if not text[end : _line_end(text, end)].strip() else end
    return text[:start] + text[end:]


def _at(node: Node, keys: Sequence[str]) -> Node:
    for key in keys:
        node = node.members[key][1] if key in node.members else Node(None, 0, 0)
    return node


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found


def _last_before(node: Node, start: int) -> int | None:
    ends = [n.end for place, n in node.members.values() if place < start]
    return max(ends, default=None)


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
        said = f"{json.dumps(key)}: {_dumped(value, inner, unit)}"
        kept = text[node.start + 1 : node.end - 1].rstrip()  # comments in an empty object stay
        return f"{text[: node.start]}{{{kept}\n{inner}{said}\n{outer}}}{text[node.end :]}"
    place, last = max(node.members.values(), key=lambda m: m[0])
    inner = _indent(text, place)
    alone = not text[text.rfind("\n", 0, place) + 1 : place].strip()
    unit = inner[len(outer) :] if alone and inner.startswith(outer) and inner != outer else "  "
    said = f"{json.dumps(key)}: {_dumped(value, inner if alone else outer, unit)}"
    comma = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*,", re.DOTALL).match(text, last.end)
    gap = f"\n{inner}" if alone else " "
    end = comma.end() if comma else last.end
    rest = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/[ \t]*)?(?=\n)").match(text, end) if alone else None
    note = rest[0] if rest else ""  # a comment at the end of the line above stays with it
    habit = "," if comma else ""  # a trailing comma is a habit to keep
    return f"{text[: last.end]}{text[last.end : end] or ','}{note}{gap}{said}{habit}{text[end + len(note) :]}"
