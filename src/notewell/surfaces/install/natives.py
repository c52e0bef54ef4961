"""The agents that get a plugin of ours (OpenClaw, opencode, Hermes): where it lies, and what their
settings say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notewell.surfaces.install import json5
from notewell.surfaces.install.changes import Edit, read, whole

OPENCLAW = "memory-notewell"
_COMMAND, _WORKSPACE = 'const COMMAND = ["notewell"];', 'const WORKSPACE = "";'
_OLD_PLACE = re.compile(r"notewell[/\\]surfaces[/\\]install[/\\]plugins[/\\]openclaw$")
_PATHS, _SLOT, _ENTRIES = (
    ("plugins", "load", "paths"),
    ("plugins", "slots", "memory"),
    ("plugins", "entries", OPENCLAW),
)
_MCP = ("mcp", "servers", "notewell")


def folder(name: str) -> Path:
    """The folder of a plugin: in the installed package, or in a checkout."""
    packed = Path(__file__).parent / "plugins" / name
    return packed if packed.is_dir() else Path(__file__).parents[4] / "plugins" / name


def openclaw(file: Path, command: Sequence[str], workspace: str, *, hooks: bool) -> list[Edit]:
    """Loads the plugin by its path and gives it the memory slot.

    OpenClaw keeps its bundled memory plugin loaded for dreaming, and of two plugins with the same
    tools the first wins: one that is loaded by its path comes first, and dreaming goes on.
    """
    place = str(folder("openclaw"))
    config: dict[str, Any] = {"command": list(command)} | (
        {"workspace": workspace} if workspace else {}
    )
    entry = {"enabled": True, "config": config} | (
        {"hooks": {"allowConversationAccess": True}} if hooks else {}
    )

    def ours(value: Any) -> bool:
        return isinstance(value, str) and (value == place or bool(_OLD_PLACE.search(value)))

    def put(text: str) -> str:
        text = json5.without_member(text, _MCP)  # the same tools a second time
        plugins = json5.value(text, ("plugins",)) or {}
        if [one for one in json5.value(text, _PATHS) or [] if ours(one)] != [place]:
            text = json5.with_item(json5.without_items(text, _PATHS, ours), _PATHS, place)
        if isinstance(plugins, dict) and plugins.get("allow") and OPENCLAW not in plugins["allow"]:
            text = json5.with_item(text, ("plugins", "allow"), OPENCLAW)
        return json5.with_member(json5.with_member(text, _ENTRIES, entry), _SLOT, OPENCLAW)

    def drop(text: str, was: str) -> str:
        before = text
        text = json5.without_items(json5.without_member(text, _MCP), _PATHS, ours)
        text = json5.without_items(text, ("plugins", "allow"), lambda one: one == OPENCLAW)
        if json5.value(text, _SLOT) == OPENCLAW:
            earlier = json5.value(was, _SLOT)
            text = (
                json5.with_member(text, _SLOT, earlier)
                if earlier
                else json5.without_member(text, _SLOT)
            )
        text = json5.without_member(text, _ENTRIES)
        return "" if text != before and json5.loads(text) == {} else text

    return [Edit(file, put, drop)]


def opencode(home: Path, command: Sequence[str], workspace: str) -> Edit:
    """The plugin, with the command that starts notewell here."""
    text = read(folder("opencode") / "notewell.js")
    for given, value in ((_COMMAND, list(command)), (_WORKSPACE, workspace)):
        text = text.replace(given, f"{given.partition('=')[0]}= {json.dumps(value)};")
    return whole(home / "plugins/notewell.js", text, "notewell")


def hermes(home: Path, workspace: str) -> list[Edit]:
    """A plugin of two small files, which load the provider from this package, and the setting that
    chooses it.
    """
    own = folder("hermes")
    chosen = json.dumps({"workspace": workspace}) + "\n"
    place = Edit(
        home / "notewell.json",
        lambda text: chosen if workspace else text,
        lambda text, was: was if text else text,
    )
    files = [
        whole(home / "plugins/notewell" / f, read(own / f), "notewell")
        for f in ("__init__.py", "plugin.yaml")
    ]
    return [
        *files,
        place,
        Edit(home / "config.yaml", lambda text: _chosen(text, "notewell"), _unchosen),
    ]


def _chosen(text: str, name: str) -> str:
    """The YAML with `memory.provider` set; the rest stays as it is."""
    gap = "\n" if text and not text.endswith("\n") else ""
    start, end, line = _memory(text) or (-1, -1, None)
    if start < 0:
        return f"{text}{gap}memory:\n  provider: {name}\n"
    if line:
        blank = "" if not name or line["value"] or text[line.start("value") - 1].isspace() else " "
        return text[: line.start("value")] + blank + name + text[line.end("value") :]
    indent = (re.search(r"^[ \t]+(?=[^\s#])", text[start:end], re.MULTILINE) or ["  "])[0]
    return (
        f"{text[:start]}{gap if start == len(text) else ''}{indent}provider: {name}\n{text[start:]}"
    )


def _unchosen(text: str, was: str) -> str:
    """The YAML with the provider that it had before, or without the line."""
    start, end, line = _memory(text) or (0, 0, None)
    if not line or line["value"] != "notewell":
        return text
    earlier = _memory(was)
    if earlier and earlier[2]:
        return _chosen(text, earlier[2]["value"])
    block = text[start : line.start()] + text[line.end() + 1 : end]
    if not earlier and not block.strip():  # the whole block was ours
        start = text.rfind("\n", 0, start - 1) + 1
    return text[:start] + block + text[end:]


def _memory(text: str) -> tuple[int, int, re.Match[str] | None] | None:
    """Where the block of `memory` begins and ends, and its line with the provider; None without
    such a block.
    """
    head = re.search(r"^memory:(?P<rest>.*)(?:\n|\Z)", text, re.MULTILINE)
    if not head:
        return None
    if head["rest"].partition("#")[0].strip():
        raise ValueError("memory is not a block of lines")
    after = re.compile(r"^[^\s#]", re.MULTILINE).search(text, head.end())
    end = after.start() if after else len(text)
    line = re.compile(r"^[ \t]+provider:[ \t]*(?P<value>[^#\n]*?)[ \t]*(?:#.*)?$", re.MULTILINE)
    return head.end(), end, line.search(text, head.end(), end)
