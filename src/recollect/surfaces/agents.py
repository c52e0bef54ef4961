"""Where each agent keeps its MCP servers, as one table, and how an entry is written there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from recollect.errors import SettingsError, UsageError

NAME = "recollect"


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent: its file on each system (`~` is home), the path of keys to its servers, and the shape of an entry."""

    name: str
    title: str
    linux: str
    keys: tuple[str, ...]
    shape: Literal["plain", "typed", "zed", "opencode"] = "plain"
    mac: str = ""
    windows: str = ""

    def file(self, env: Mapping[str, str], *, system: str = sys.platform) -> Path:
        """Where its settings are on this machine."""
        place = self.linux
        if system == "darwin" and self.mac:
            place = self.mac
        elif system == "win32" and self.windows:
            place = self.windows.replace("%APPDATA%", env.get("APPDATA", "~/AppData/Roaming"))
        elif place.startswith("~/.config/") and env.get("XDG_CONFIG_HOME"):
            place = env["XDG_CONFIG_HOME"] + place.removeprefix("~/.config")
        home = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")
        return Path(home + place[1:] if place.startswith("~") else place)

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """What the file says about our server."""
        first, *rest = command
        if self.shape == "opencode":
            return {"type": "local", "command": list(command), "enabled": True}
        if self.shape == "zed":
            return {"source": "custom", "command": first, "args": rest, "env": {}}
        plain: dict[str, Any] = {"command": first, "args": rest}
        return {"type": "stdio", **plain} if self.shape == "typed" else plain

    def changed(self, text: str, command: Sequence[str] | None) -> str:
        """The settings text with our entry, or without it when there is no command; the rest stays as it is."""
        from recollect.text import json5  # noqa: PLC0415 - only `install` has to read such files

        path = (*self.keys, NAME)
        try:
            if self.linux.endswith(".toml"):
                return _toml(text, path, None if command is None else self.entry(command))
            if command is None:
                return json5.without_member(text, path)
            return json5.with_member(text, path, self.entry(command))
        except ValueError as error:
            raise SettingsError(
                f"the settings of {self.title} cannot be read: {error}", hint="mend the file, or use --print"
            ) from error


def _toml(text: str, path: Sequence[str], value: Mapping[str, Any] | None) -> str:
    import tomlkit  # noqa: PLC0415 - only for agents that keep TOML
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from error
    where: Any = document
    for key in path[:-1]:
        if key not in where:
            if value is None:
                return text
            where[key] = tomlkit.table(is_super_table=True)
        where = where[key]
        if not isinstance(where, dict):
            raise ValueError(f"{key} is no table")
    if value is None:
        if path[-1] not in where:
            return text
        del where[path[-1]]
    elif where.get(path[-1]) != value:
        table = tomlkit.table()
        table.update(value)
        where[path[-1]] = table
    return tomlkit.dumps(document)


AGENTS: Mapping[str, Agent] = {
    a.name: a
    for a in (
        Agent("claude-code", "Claude Code", "~/.claude.json", ("mcpServers",), "typed"),
        Agent(
            "claude-desktop",
            "Claude Desktop",
            "~/.config/Claude/claude_desktop_config.json",
            ("mcpServers",),
            mac="~/Library/Application Support/Claude/claude_desktop_config.json",
            windows="%APPDATA%/Claude/claude_desktop_config.json",
        ),
        Agent("cursor", "Cursor", "~/.cursor/mcp.json", ("mcpServers",)),
        Agent(
            "vscode",
            "VS Code",
            "~/.config/Code/User/mcp.json",
            ("servers",),
            "typed",
            mac="~/Library/Application Support/Code/User/mcp.json",
            windows="%APPDATA%/Code/User/mcp.json",
        ),
        Agent("codex", "Codex", "~/.codex/config.toml", ("mcp_servers",)),
        Agent("gemini-cli", "Gemini CLI", "~/.gemini/settings.json", ("mcpServers",)),
        Agent("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", ("mcpServers",)),
        Agent(
            "zed",
            "Zed",
            "~/.config/zed/settings.json",
            ("context_servers",),
            "zed",
            windows="%APPDATA%/Zed/settings.json",
        ),
        Agent("opencode", "OpenCode", "~/.config/opencode/opencode.json", ("mcp",), "opencode"),
        Agent("openclaw", "OpenClaw", "~/.openclaw/openclaw.json", ("mcp", "servers")),
    )
}


def agent(name: str) -> Agent:
    """The agent of a name, or an error that lists all."""
    if name not in AGENTS:
        raise UsageError(f"no agent is called {name!r}", hint=f"known: {', '.join(AGENTS)}")
    return AGENTS[name]
