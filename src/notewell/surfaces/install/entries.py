"""The agents that `notewell install` knows, as data, and the MCP entry that each of them keeps."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from notewell.launcher import NOTEWELL, command
from notewell.settings import in_home
from notewell.surfaces.install import guidance, natives
from notewell.surfaces.install.changes import Edit, joined, whole
from notewell.surfaces.install.events import HOOKS

NAME = "notewell"
Shape = Literal["plain", "typed", "zed", "opencode"]
_FOUND = (
    "that of the folder it works in: the nearest one above with .notewell/, MEMORY.md or "
    "memory/, else that folder"
)
# Where a variable of the agent moves its folder.
_MOVED = {
    "~/.claude/": "CLAUDE_CONFIG_DIR",
    "~/.codex/": "CODEX_HOME",
    "~/.hermes/": "HERMES_HOME",
    "~/.openclaw/": "OPENCLAW_STATE_DIR",
}


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent: its settings file on each system (`~` is home), the keys to its servers, and the
    form of an entry.

    `folder` is where it keeps the rest, `hooks` and `skill` are files in there. `finds` says which
    workspace it gets if none is named; one without it must be given one. `note` is what its user
    must do or know.
    """

    name: str
    title: str
    linux: str
    keys: tuple[str, ...]
    shape: Shape = "plain"
    mac: str = ""
    windows: str = ""
    folder: str = ""
    hooks: str = ""
    skill: str = ""
    finds: str = _FOUND
    note: str = ""

    def found(self, env: Mapping[str, str]) -> bool:
        """Whether it seems to be on this machine."""
        return self.file(env).exists() or bool(self.folder and _place(self.folder, env).is_dir())

    def edits(
        self, command: Sequence[str], workspace: str, env: Mapping[str, str], *, hooks: bool
    ) -> list[Edit]:
        """Everything that is ours in its files: the entry of the server, hooks, and a skill or a
        plugin.
        """
        if self.name == "openclaw":
            return natives.openclaw(self.file(env), command, workspace, hooks=hooks)
        home = _place(self.folder, env) if self.folder else self.file(env).parent
        if self.name == "hermes":
            return natives.hermes(home, workspace)
        server = [*command, "mcp", *(["--workspace", workspace] if workspace else [])]
        made = [
            Edit(
                self.file(env),
                lambda text: self.changed(text, server),
                lambda text, _: self.changed(text, None),
            )
        ]
        if hooks and self.hooks:
            own = HOOKS[self.name]
            made.append(
                Edit(home / self.hooks, lambda text: own.put(text, command, workspace), own.drop)
            )
        if hooks and self.name == "opencode":
            made.append(natives.opencode(home, command, workspace))
        if self.skill:
            made.append(whole(home / self.skill, guidance.SKILL, guidance.MARK))
        return joined(made)

    def file(self, env: Mapping[str, str], *, system: str = sys.platform) -> Path:
        """Where its settings are on this machine."""
        path = self.linux
        moved = env.get("CLAUDE_CONFIG_DIR", "")
        if self.name == "claude-code" and os.path.isabs(moved):
            return Path(moved) / ".claude.json"
        if system == "darwin" and self.mac:
            path = self.mac
        elif system == "win32" and self.windows:
            path = self.windows.replace("%APPDATA%", env.get("APPDATA", "~/AppData/Roaming"))
        return _place(path, env)

    def entry(self, command: Sequence[str]) -> dict[str, Any]:
        """The entry of our server."""
        first, *rest = command
        if self.shape == "opencode":
            return {"type": "local", "command": list(command), "enabled": True}
        if self.shape == "zed":
            return {"source": "custom", "command": first, "args": rest, "env": {}}
        plain: dict[str, Any] = {"command": first, "args": rest}
        return {"type": "stdio", **plain} if self.shape == "typed" else plain

    def changed(self, text: str, command: Sequence[str] | None) -> str:
        """The settings text with our entry, or without it if there is no command; everything else
        stays as it is.
        """
        from notewell.surfaces.install import json5  # noqa: PLC0415 - only `install` has to read such files

        path = (*self.keys, NAME)
        if self.linux.endswith(".toml"):
            return _toml(text, path, None if command is None else self.entry(command))
        if command is None:
            left = json5.without_member(text, path)
            return "" if left != text and json5.loads(left) == {} else left
        return json5.with_member(text, path, self.entry(command))


def _place(path: str, env: Mapping[str, str]) -> Path:
    """A path with `~` where a person's files are, and where the agent's own variable says."""
    for start, name in _MOVED.items():
        if path.startswith(start) and os.path.isabs(env.get(name, "")):
            return Path(env[name], path.removeprefix(start))
    if path.startswith("~/.config/") and os.path.isabs(env.get("XDG_CONFIG_HOME", "")):
        return Path(env["XDG_CONFIG_HOME"] + path.removeprefix("~/.config"))
    home = env.get("HOME") or env.get("USERPROFILE")
    return Path(home + path[1:]) if home and path.startswith("~") else in_home(path)


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
            raise ValueError(f"{key} is not a table")
    if value is None:
        if path[-1] not in where:
            return text
        del where[path[-1]]
    elif where.get(path[-1]) != value:
        table = tomlkit.table()
        table.update(value)
        where[path[-1]] = table
    return tomlkit.dumps(document)


def _desktop(
    name: str,
    title: str,
    file: str,
    keys: tuple[str, ...],
    shape: Shape = "plain",
    *,
    finds: str = _FOUND,
) -> Agent:
    """An agent that keeps its file where each system keeps those of desktop programs."""
    mac, windows = f"~/Library/Application Support/{file}", f"%APPDATA%/{file}"
    return Agent(name, title, f"~/.config/{file}", keys, shape, mac, windows, finds=finds)


_ZED_WINDOWS = "%APPDATA%/Zed/settings.json"
_SKILL = "skills/notewell/SKILL.md"
AGENTS: Mapping[str, Agent] = {
    a.name: a
    for a in (
        Agent(
            "claude-code",
            "Claude Code",
            "~/.claude.json",
            ("mcpServers",),
            "typed",
            folder="~/.claude/",
            hooks="settings.json",
            skill=_SKILL,
        ),
        _desktop(
            "claude-desktop",
            "Claude Desktop",
            "Claude/claude_desktop_config.json",
            ("mcpServers",),
            finds="",
        ),
        Agent(
            "cursor",
            "Cursor",
            "~/.cursor/mcp.json",
            ("mcpServers",),
            folder="~/.cursor/",
            hooks="hooks.json",
            skill=_SKILL,
        ),
        _desktop("vscode", "VS Code", "Code/User/mcp.json", ("servers",), "typed"),
        Agent(
            "codex",
            "Codex",
            "~/.codex/config.toml",
            ("mcp_servers",),
            folder="~/.codex/",
            hooks="hooks.json",
            skill=_SKILL,
            note="Codex runs hooks only after you have trusted them: open /hooks once",
        ),
        Agent(
            "gemini-cli",
            "Gemini CLI",
            "~/.gemini/settings.json",
            ("mcpServers",),
            folder="~/.gemini/",
            hooks="settings.json",
            skill=_SKILL,
        ),
        Agent(
            "windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", ("mcpServers",), finds=""
        ),
        Agent(
            "zed",
            "Zed",
            "~/.config/zed/settings.json",
            ("context_servers",),
            "zed",
            windows=_ZED_WINDOWS,
        ),
        Agent(
            "opencode",
            "OpenCode",
            "~/.config/opencode/opencode.json",
            ("mcp",),
            "opencode",
            folder="~/.config/opencode/",
            skill=_SKILL,
        ),
        Agent(
            "openclaw",
            "OpenClaw",
            "~/.openclaw/openclaw.json",
            (),
            folder="~/.openclaw/",
            finds="the workspace of each of its agents",
            note="memory-notewell has the memory slot of OpenClaw; it is loaded by "
            "plugins.load.paths, and so comes before the bundled memory-core, which stays loaded "
            "for dreaming (docs/openclaw.md has other ways)",
        ),
        Agent(
            "hermes",
            "Hermes",
            "~/.hermes/config.yaml",
            (),
            folder="~/.hermes/",
            finds="its folder memories",
            note=(
                "notewell must be installed for the Python that runs Hermes; 'hermes memory "
                "status' says if it is"
            ),
        ),
    )
}


def program(env: Mapping[str, str]) -> list[str]:
    """How an agent starts notewell: by the full path of the command, because agents use other
    search paths.

    Nothing is looked for in the current folder, in which `shutil.which` begins on Windows.
    """
    name = "notewell.exe" if os.name == "nt" else "notewell"
    for folder in (os.path.dirname(sys.executable), *env.get("PATH", "").split(os.pathsep)):
        found = os.path.join(folder, name)
        if os.path.isabs(folder) and os.path.isfile(found) and os.access(found, os.X_OK):
            return [found]
    return command(*NOTEWELL)
