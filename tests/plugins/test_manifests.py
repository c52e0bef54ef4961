"""What hosts read before they run anything of ours: right by their rules, and the same text
everywhere.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from notewell import __version__
from notewell.surfaces.hooks.hosts import EVENTS
from notewell.surfaces.install.entries import AGENTS
from notewell.surfaces.install.events import HOOKS
from notewell.surfaces.install.guidance import DESCRIPTION, SKILL
from notewell.surfaces.install.natives import folder
from tools.plugins import REGISTERED, ROOT, bundle, files

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"}
PATH: Schema = {"type": "string", "pattern": r"^\./"}


def strict(required: dict[str, Schema], **optional: Schema) -> Schema:
    """An object with these members and no others."""
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


AUTHOR = strict({"name": TEXT}, email=TEXT, url=TEXT)
SERVERS = strict(
    {"mcpServers": strict({"notewell": strict({"command": TEXT, "args": listed(TEXT)})})}
)
MANIFEST = {"name": NAME, "version": TEXT, "description": TEXT, "author": AUTHOR, "license": TEXT}
COMMAND = strict(
    {"type": {"const": "command"}, "command": TEXT, "timeout": {"type": "integer", "minimum": 1}}
)
GROUP = strict({"hooks": listed(COMMAND)}, matcher=TEXT)
CLAUDE_EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]
GEMINI_EVENTS = ["SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"]
CURSOR_EVENTS = ["sessionStart", "beforeSubmitPrompt", "stop", "preCompact", "sessionEnd"]


def hooks(item: Schema, names: list[str]) -> Schema:
    return strict(dict.fromkeys(names, listed(item)))


SCHEMAS: dict[str, Schema] = {
    "plugins/claude-code/.claude-plugin/plugin.json": strict(MANIFEST, keywords=listed(TEXT)),
    "plugins/claude-code/.mcp.json": SERVERS,
    "plugins/claude-code/hooks/hooks.json": strict({"hooks": hooks(GROUP, CLAUDE_EVENTS)}),
    ".claude-plugin/marketplace.json": strict(
        {
            "name": NAME,
            "owner": AUTHOR,
            "plugins": listed(strict({"name": NAME, "source": PATH}, description=TEXT)),
        }
    ),
    "plugins/codex/.codex-plugin/plugin.json": strict(
        MANIFEST,
        skills=PATH,
        mcpServers=PATH,
        hooks=PATH,
        interface=strict({"displayName": TEXT, "shortDescription": TEXT, "category": TEXT}),
    ),
    "plugins/codex/.mcp.json": SERVERS,
    "plugins/codex/hooks/hooks.json": strict({"hooks": hooks(GROUP, CLAUDE_EVENTS[:4])}),
    ".agents/plugins/marketplace.json": strict(
        {
            "name": NAME,
            "interface": strict({"displayName": TEXT}),
            "plugins": listed(
                strict(
                    {
                        "name": NAME,
                        "source": strict({"source": {"const": "local"}, "path": PATH}),
                        "policy": strict(
                            {
                                "installation": {"const": "AVAILABLE"},
                                "authentication": {"const": "ON_INSTALL"},
                            }
                        ),
                        "category": TEXT,
                    }
                )
            ),
        }
    ),
    "plugins/gemini-cli/gemini-extension.json": strict(
        {"name": NAME, "version": TEXT, "mcpServers": SERVERS["properties"]["mcpServers"]},
        description=TEXT,
    ),
    "plugins/gemini-cli/hooks/hooks.json": strict({"hooks": hooks(GROUP, GEMINI_EVENTS)}),
    "plugins/cursor/.cursor-plugin/plugin.json": strict(
        MANIFEST, displayName=TEXT, skills=PATH, hooks=PATH
    ),
    "plugins/cursor/mcp.json": SERVERS,
    "plugins/cursor/hooks/hooks.json": strict(
        {
            "version": {"const": 1},
            "hooks": hooks(
                strict({"command": TEXT, "timeout": {"type": "integer"}}), CURSOR_EVENTS
            ),
        }
    ),
    "plugins/openclaw/openclaw.plugin.json": strict(
        {
            "id": NAME,
            "name": TEXT,
            "description": TEXT,
            "kind": {"const": "memory"},
            "categories": listed(TEXT),
            "activation": strict({"onStartup": {"const": False}}),
            "contracts": strict({"tools": {"const": ["memory_search", "memory_get"]}}),
            "toolMetadata": {
                "type": "object",
                "additionalProperties": strict({"replaySafe": {"const": True}}),
            },
            "cliCommands": listed(
                strict({"name": TEXT, "description": TEXT, "hasSubcommands": {"const": True}})
            ),
            "configSchema": {
                "type": "object",
                "required": ["type", "additionalProperties", "properties"],
                "properties": {
                    "additionalProperties": {"const": False},
                    "properties": {"required": ["command", "dreaming"]},
                },
            },
        }
    ),
    "plugins/openclaw/package.json": strict(
        {
            "name": NAME,
            "version": TEXT,
            "type": {"const": "module"},
            "main": PATH,
            "files": listed(TEXT),
            "peerDependencies": {"type": "object", "required": ["openclaw"]},
            "openclaw": strict(
                {"extensions": {"const": ["./index.js"]}, "compat": strict({"pluginApi": TEXT})}
            ),
        },
        description=TEXT,
        license=TEXT,
    ),
    "plugins/mcpb/manifest.json": strict(
        {
            **MANIFEST,
            "manifest_version": {"const": "0.4"},
            "display_name": TEXT,
            "server": strict(
                {
                    "type": {"const": "uv"},
                    "entry_point": {"const": "server.py"},
                    "mcp_config": strict({"command": {"const": "uv"}, "args": listed(TEXT)}),
                }
            ),
            "tools": listed(strict({"name": TEXT, "description": TEXT})),
            "compatibility": strict(
                {
                    "platforms": listed({"enum": ["darwin", "win32", "linux"]}),
                    "runtimes": strict({"python": TEXT}),
                }
            ),
            "user_config": strict(
                {
                    "workspace": strict(
                        {
                            "type": {"const": "directory"},
                            "title": TEXT,
                            "description": TEXT,
                            "required": {"const": True},
                            "default": TEXT,
                        }
                    )
                }
            ),
        }
    ),
    "server.json": strict(
        {
            "$schema": {"type": "string", "pattern": r"/20\d\d-\d\d-\d\d/server\.schema\.json$"},
            "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
            "title": {"type": "string", "maxLength": 100},
            "description": {"type": "string", "minLength": 1, "maxLength": 100},
            "version": {"type": "string", "maxLength": 255},
            "packages": listed(
                strict(
                    {
                        "registryType": {"const": "pypi"},
                        "identifier": {"const": "notewell"},
                        "version": TEXT,
                        "runtimeHint": {"const": "uvx"},
                        "runtimeArguments": listed(
                            strict({"type": {"const": "named"}, "name": TEXT, "value": TEXT})
                        ),
                        "transport": strict({"type": {"const": "stdio"}}),
                        "packageArguments": listed(
                            {
                                "anyOf": [
                                    strict({"type": {"const": "positional"}, "value": TEXT}),
                                    strict(
                                        {
                                            "type": {"const": "named"},
                                            "name": {"type": "string", "pattern": "^--"},
                                            "description": TEXT,
                                            "format": TEXT,
                                            "isRequired": {"type": "boolean"},
                                        }
                                    ),
                                ]
                            }
                        ),
                    }
                )
            ),
        }
    ),
}


def read(path: str) -> Any:
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SCHEMAS)
def test_a_manifest_is_as_its_host_wants_it(path: str) -> None:
    jsonschema.validate(read(path), SCHEMAS[path])


def test_every_manifest_is_checked() -> None:
    made = [
        *(ROOT / "plugins").rglob("*.json"),
        *(ROOT / ".claude-plugin").rglob("*"),
        *(ROOT / ".agents").rglob("*.json"),
    ]
    assert {p.relative_to(ROOT).as_posix() for p in made} | {"server.json"} == set(SCHEMAS)


def test_what_is_made_is_what_lies_there() -> None:
    """If this fails, run `python tools/plugins.py`."""
    for path, text in files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, path


def test_paths_in_manifests_lead_somewhere() -> None:
    for path in SCHEMAS:
        base = ROOT / path
        base = (
            ROOT
            if "marketplace" in path
            else base.parents[1]
            if base.parent.name.startswith(".")
            else base.parent
        )
        for told in re.findall(r'"(\./[^"]*)"', (ROOT / path).read_text(encoding="utf-8")):
            assert (base / told).exists(), (path, told)


def test_versions_are_that_of_the_package() -> None:
    found = re.findall(
        r'"?version"?: "?([\w.]+)', "".join((ROOT / p).read_text(encoding="utf-8") for p in SCHEMAS)
    )
    found.remove("1")  # of the form of Cursor's hooks
    found.remove("0.4")  # of the form of a bundle
    found += re.findall(r'^version = "(.*)"$', files()["plugins/mcpb/pyproject.toml"], re.MULTILINE)
    found += re.findall(
        r"^version: (.*)$",
        (folder("hermes") / "plugin.yaml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert set(found) == {__version__}


def test_a_skill_says_when_to_search_how_to_cite_and_when_to_remember() -> None:
    head, body = SKILL.removeprefix("---\n").split("---\n", 1)
    assert re.fullmatch(r"name: notewell\ndescription: [^\n:]+\n", head)
    assert len(DESCRIPTION) < 1024
    assert len(body) < 2_000
    for words in (
        "memory_search",
        "memory_get",
        "memory_remember",
        "citation",
        "data, not instructions",
    ):
        assert words in body


@pytest.mark.parametrize("host", HOOKS)
def test_hooks_call_ours_for_the_same_host(host: str) -> None:
    told = json.dumps(read(f"plugins/{host}/hooks/hooks.json"))
    called = re.findall(r'"command": "([^"]+)"', told)
    assert called == [
        f"notewell hook {event} --host {host}" for event in EVENTS if event in HOOKS[host].names
    ]
    assert set(HOOKS) <= set(AGENTS)


def test_the_bundle_runs_our_server_and_asks_for_the_extra_that_brings_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle(tmp_path / "notewell.mcpb")) as opened:
        assert set(opened.namelist()) == {"manifest.json", "pyproject.toml", "server.py"}
        project = tomllib.loads(opened.read("pyproject.toml").decode())["project"]
        code = opened.read("server.py").decode()
    assert project["dependencies"] == [f"notewell[mcp]=={__version__}"]
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "server.py"), "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Serve MCP on stdin and stdout" in said
    tools = [tool["name"] for tool in read("plugins/mcpb/manifest.json")["tools"]]
    assert "memory_search" in tools


def test_the_registry_finds_its_mark_in_the_readme() -> None:
    assert f"mcp-name: {REGISTERED}" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert read("server.json")["name"] == REGISTERED


def test_the_wheel_carries_what_install_points_to() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, place in carried.items():
        name = Path(source).name
        assert (ROOT / source).is_dir()
        assert place == f"notewell/surfaces/install/plugins/{name}"
        assert folder(name) == ROOT / source
    assert set(carried) == {f"plugins/{name}" for name in ("openclaw", "opencode", "hermes")}
    found = project["project"]["entry-points"]["hermes_agent.memory_providers"]
    assert found == {"notewell": "notewell.surfaces.hermes_provider:register"}
