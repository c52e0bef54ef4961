"""Writes the plugins of hosts from the tables of `notewell install`, so that no copy of a text can
drift.

    python tools/plugins.py

Made are the folders of Claude Code, Codex, Gemini CLI and Cursor under `plugins/`, the two
marketplaces, the bundle for desktop hosts (`plugins/mcpb`), and `server.json` for the registry of
MCP servers. `plugins/openclaw`, `plugins/opencode` and `plugins/hermes` are written by hand.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from notewell import __version__
from notewell.surfaces.install.events import HOOKS
from notewell.surfaces.install.guidance import SKILL
from notewell.surfaces.server.calls import CALLS

ROOT = Path(__file__).parents[1]
NAME = "notewell"
SUMMARY = "Local memory search: recall before you ask, cited passages, no key and no network."
REGISTERED = "io.github.notewell/notewell"
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_SERVER = {"command": NAME, "args": ["mcp"]}
_OWNER = {"name": "The notewell authors"}
_MANIFEST = {
    "name": NAME,
    "version": __version__,
    "description": SUMMARY,
    "author": _OWNER,
    "license": "MIT",
}
_BUNDLED = {
    "pyproject.toml": f"""[project]
name = "notewell-bundle"
version = "{__version__}"
requires-python = ">=3.11"
dependencies = ["notewell[mcp]=={__version__}"]
""",
    "server.py": """\"\"\"Starts `notewell mcp` with the arguments that the host gives.\"\"\"

import sys

from notewell.surfaces.cli.main import main

if __name__ == "__main__":
    sys.argv.insert(1, "mcp")
    main()
""",
}


def files() -> dict[str, str]:
    """Every file that is made, by its path in the repository."""
    servers = {"mcpServers": {NAME: _SERVER}}
    made: dict[str, Any] = {
        "plugins/claude-code/.claude-plugin/plugin.json": {
            **_MANIFEST,
            "keywords": ["memory", "search", "notes"],
        },
        "plugins/claude-code/.mcp.json": servers,
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "owner": _OWNER,
            "plugins": [{"name": NAME, "source": "./plugins/claude-code", "description": SUMMARY}],
        },
        "plugins/codex/.codex-plugin/plugin.json": {
            **_MANIFEST,
            "skills": "./skills/",
            "mcpServers": "./.mcp.json",
            "hooks": "./hooks/hooks.json",
            "interface": {
                "displayName": NAME,
                "shortDescription": SUMMARY,
                "category": "Productivity",
            },
        },
        "plugins/codex/.mcp.json": servers,
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": NAME},
            "plugins": [
                {
                    "name": NAME,
                    "source": {"source": "local", "path": "./plugins/codex"},
                    "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                    "category": "Productivity",
                }
            ],
        },
        "plugins/gemini-cli/gemini-extension.json": {
            "name": NAME,
            "version": __version__,
            "description": SUMMARY,
            **servers,
        },
        "plugins/cursor/.cursor-plugin/plugin.json": {
            **_MANIFEST,
            "displayName": NAME,
            "skills": "./skills/",
            "hooks": "./hooks/hooks.json",
        },
        "plugins/cursor/mcp.json": servers,
        "plugins/mcpb/manifest.json": bundled(),
        "server.json": registered(),
    }
    for host, hooks in HOOKS.items():
        made[f"plugins/{host}/hooks/hooks.json"] = hooks.document([NAME])
    texts = {
        path: json.dumps(value, ensure_ascii=False, indent=2) + "\n" for path, value in made.items()
    }
    texts |= {f"plugins/mcpb/{name}": text for name, text in _BUNDLED.items()}
    return texts | {f"plugins/{host}/skills/notewell/SKILL.md": SKILL for host in HOOKS}


def bundled() -> Mapping[str, Any]:
    """The manifest of the bundle: the host brings uv, which brings Python and the packages."""
    run = [
        "run",
        "--directory",
        "${__dirname}",
        "server.py",
        "--workspace",
        "${user_config.workspace}",
    ]
    folder = {
        "type": "directory",
        "title": "Folder of your notes",
        "description": (
            "Markdown and text in this folder are searched; nothing leaves your machine."
        ),
        "required": True,
        "default": "${HOME}/notes",
    }
    return {
        "manifest_version": "0.4",
        "display_name": NAME,
        **_MANIFEST,
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {"command": "uv", "args": run},
        },
        "tools": [
            {"name": f"memory_{call.name}", "description": call.title}
            for call in CALLS.values()
            if call.tool
        ],
        "compatibility": {
            "platforms": ["darwin", "win32", "linux"],
            "runtimes": {"python": ">=3.11"},
        },
        "user_config": {"workspace": folder},
    }


def registered() -> Mapping[str, Any]:
    """What the registry of MCP servers shows, and how a client starts the server."""
    folder = {
        "type": "named",
        "name": "--workspace",
        "description": "Folder of the notes; without it, the folder that the client works in",
        "format": "filepath",
        "isRequired": False,
    }
    package = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": __version__,
        "runtimeHint": "uvx",
        # what notewell[mcp] brings
        "runtimeArguments": [{"type": "named", "name": "--with", "value": "mcp>=2.3"}],
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "mcp"}, folder],
    }
    about = {
        "$schema": _SCHEMA,
        "name": REGISTERED,
        "title": NAME,
        "description": SUMMARY,
        "version": __version__,
    }
    return {**about, "packages": [package]}


def bundle(out: Path) -> Path:
    """The bundle as one file, with the same bytes each time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for path, text in sorted(files().items()):
            if path.startswith("plugins/mcpb/"):
                made.writestr(zipfile.ZipInfo(path.removeprefix("plugins/mcpb/")), text)
    return out


def main() -> None:
    """Writes what differs; with `--bundle FILE` the bundle for desktop hosts instead."""
    if sys.argv[1:2] == ["--bundle"]:
        bundle(Path(sys.argv[2]))
        return
    for path, text in files().items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(path)  # noqa: T201 - a script


if __name__ == "__main__":
    main()
