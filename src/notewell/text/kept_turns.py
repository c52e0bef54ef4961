"""A conversation as Markdown that people can read, and back again without a loss. Pure."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass

from notewell.types import Turn

_NAMES = {"owner": "user", "agent": "assistant"}
_ORIGINS = {name: origin for origin, name in _NAMES.items()}
_HEADER = re.compile(r"## (\S+)(?:, (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d))? \(line (\d+)\)")
_ESCAPED = re.compile(r"\\+" + _HEADER.pattern)
_FIELDS = ("conversation", "title", "project")


@dataclass(frozen=True, slots=True)
class KeptTalk:
    """A conversation with the path that it had."""

    path: str
    title: str
    project: str
    turns: tuple[Turn, ...]


def dump(talk: KeptTalk) -> str:
    """The text of a file: front matter, then a heading for each turn."""
    values = zip(_FIELDS, (talk.path, talk.title, talk.project), strict=True)
    head = "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values)
    return "\n\n".join((f"---\n{head}\n---", *map(_turn, talk.turns), ""))


def _turn(turn: Turn) -> str:
    name = _NAMES.get(turn.origin, turn.origin)
    time = f", {turn.time:%Y-%m-%d %H:%M:%S}" if turn.time else ""
    body = "\n".join(
        f"\\{line}" if _HEADER.fullmatch(line) or _ESCAPED.fullmatch(line) else line
        for line in turn.text.split("\n")
    )
    return f"## {name}{time} (line {turn.line})\n\n{body}"


def load(text: str) -> KeptTalk:
    """What `dump` wrote; a file that was cut off has the turns before that."""
    fields, rest = _head(text)
    turns: list[Turn] = []
    header: re.Match[str] | None = None
    body: list[str] = []
    for line in [*rest.split("\n"), None]:
        found = _HEADER.fullmatch(line) if line is not None else None
        if line is not None and not found:
            body.append(line[1:] if _ESCAPED.fullmatch(line) else line)
            continue
        if header is not None:
            turns.append(_read(header, "\n".join(body[1:-1] if found else body[1:-2])))
        header, body = found, []
    return KeptTalk(fields["conversation"], fields["title"], fields["project"], tuple(turns))


def _read(header: re.Match[str], text: str) -> Turn:
    origin, time, line = header.groups()
    said = dt.datetime.fromisoformat(time) if time else None
    return Turn(int(line), _ORIGINS.get(origin, origin), text, said)


def path_of_kept(text: str) -> str:
    """The path that a conversation had, from the first lines of its file; empty if it is another
    kind of file.
    """
    return _head(text)[0]["conversation"]


def _head(text: str) -> tuple[dict[str, str], str]:
    found = dict.fromkeys(_FIELDS, "")
    if not text.startswith("---\n"):
        return found, ""
    head, _, rest = text[4:].partition("\n---\n")
    for line in head.split("\n"):
        name, _, value = line.partition(": ")
        if name in found:
            try:
                read = json.loads(value)
            except (ValueError, RecursionError):
                continue
            found[name] = read if isinstance(read, str) else ""
    return found, rest
