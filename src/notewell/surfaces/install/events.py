"""The hooks of agents, as data: how the file of each lists a command for an event."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notewell.surfaces.hooks.hosts import EVENTS, HOSTS, Event

_LIMITS_S = {"prompt": 5}
_LIMIT_S = 10


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one agent: how many units of its time limits are a second, and whether it lists
    commands flat.
    """

    host: str
    units: int = 1
    flat: bool = False

    @property
    def names(self) -> Mapping[Event, str]:
        """Its names for our events."""
        return HOSTS[self.host].events

    def item(self, event: str, command: Sequence[str]) -> dict[str, Any]:
        """What the agent's list for an event holds."""
        line = shell([*command, "hook", event, "--host", self.host])
        made = {"command": line, "timeout": _LIMITS_S.get(event, _LIMIT_S) * self.units}
        return made if self.flat else {"hooks": [{"type": "command", **made}]}

    def document(self, command: Sequence[str]) -> dict[str, Any]:
        """The file of hooks in a plugin, where nothing else is."""
        made = {"hooks": {name: [self.item(event, command)] for event, name in self.names.items()}}
        return {"version": 1, **made} if self.flat else made

    def put(self, text: str, command: Sequence[str], workspace: str = "") -> str:
        """The agent's file with our hooks behind those of others."""
        from notewell.surfaces.install import json5  # noqa: PLC0415

        fixed = ["--workspace", workspace] if workspace else []
        if self.flat and not text.strip():
            text = json5.with_member(text, ("version",), 1)
        for event, name in self.names.items():
            item = self.item(event, command)
            if fixed:
                (item if self.flat else item["hooks"][0])["command"] += " " + shell(fixed)
            known = json5.value(text, ("hooks", name))
            if not isinstance(known, list) or [one for one in known if self.ours(one)] != [item]:
                text = json5.with_item(
                    json5.without_items(text, ("hooks", name), self.ours), ("hooks", name), item
                )
        return text

    def drop(self, text: str, _was: str = "") -> str:
        """The agent's file without our hooks; empty if nothing else is in it."""
        from notewell.surfaces.install import json5  # noqa: PLC0415

        left = text
        for name in self.names.values():
            left = json5.without_items(left, ("hooks", name), self.ours)
        return "" if left != text and json5.loads(left) in ({}, {"version": 1}) else left

    def ours(self, item: Any) -> bool:
        """Whether an item of a list is one that we put there, also by another path or of another
        version.
        """
        inner = [item] if self.flat else item.get("hooks") if isinstance(item, dict) else None
        if not isinstance(inner, list) or not inner:
            return False
        lines = [one.get("command") if isinstance(one, dict) else None for one in inner]
        return all(isinstance(line, str) and _OURS.search(line) for line in lines)


_OURS = re.compile(rf"notewell\S* hook (?:{'|'.join(EVENTS)}) --host ")


def shell(words: Sequence[str]) -> str:
    """Words as one line of the shell that agents use on this system."""
    if os.name == "nt":
        import subprocess  # noqa: PLC0415

        return subprocess.list2cmdline(words)
    return shlex.join(words)


HOOKS: Mapping[str, Hooks] = {
    one.host: one
    for one in (
        Hooks("claude-code"),
        Hooks("codex"),
        Hooks("gemini-cli", 1000),
        Hooks("cursor", flat=True),
    )
}
