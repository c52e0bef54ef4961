"""Entries in the settings of agents: one table, nothing foreign touched, and taken back without a trace."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recollect.settings import Settings, is_remote, load, plain_model
from recollect.surfaces.agents import AGENTS, NAME, Agent
from recollect.surfaces.commands import run
from recollect.text import json5

Capture = pytest.CaptureFixture[str]

FOREIGN = """// kept by hand
{
  "theme": "dark", // not light
  "%s": {
    "other": { "command": "npx", "args": ["-y", "other"] }, /* foreign */
  },
}
"""
TOML = '# kept by hand\nmodel = "o9"  # fast\n\n[mcp_servers.other]\ncommand = "npx"\n'


@pytest.fixture
def home(own_environment: Path) -> Path:
    return own_environment


def place(home: Path, one: Agent, text: str) -> Path:
    file = one.file(os.environ)
    assert file.is_relative_to(home)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def foreign(one: Agent) -> str:
    if one.linux.endswith(".toml"):
        return TOML
    text = FOREIGN % one.keys[-1]
    return text if len(one.keys) == 1 else '{"mcp": ' + text.partition("\n")[2].rstrip() + "}\n"


def entries(one: Agent, text: str) -> dict[str, object]:
    found = tomllib.loads(text) if one.linux.endswith(".toml") else json5.loads(text)
    for key in one.keys:
        found = found.get(key, {})
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", AGENTS)
def test_an_entry_is_added_beside_foreign_ones_and_taken_back(home: Path, capsys: Capture, name: str) -> None:
    one = AGENTS[name]
    before = foreign(one)
    file = place(home, one, before)
    os.chmod(file, 0o640)
    assert run(["install", name, "--yes"]) == 0
    after = file.read_text(encoding="utf-8")
    assert set(entries(one, after)) == {"other", NAME}
    assert all(line.strip() in after for line in before.splitlines() if "//" in line or "#" in line or "/*" in line)
    assert file.stat().st_mode & 0o777 == 0o640
    shown = capsys.readouterr()
    assert "+" in shown.err  # the difference comes before the writing
    assert run(["install", name, "--yes"]) == 0
    assert file.read_text(encoding="utf-8") == after
    assert "as it was" in capsys.readouterr().out
    assert run(["install", name, "--uninstall", "--yes"]) == 0
    assert file.read_text(encoding="utf-8").strip() == before.strip()


@pytest.mark.parametrize("name", AGENTS)
def test_a_missing_file_is_made(home: Path, name: str) -> None:
    one = AGENTS[name]
    assert run(["install", name, "--yes", "-w", "notes"]) == 0
    entry = entries(one, one.file(os.environ).read_text(encoding="utf-8"))[NAME]
    said = json.dumps(entry)
    assert "mcp" in said
    assert os.path.abspath("notes") in said


def test_the_entry_starts_a_server_that_answers(home: Path, root: Path) -> None:
    """What is written is what the agent will run."""
    import subprocess

    assert run(["install", "cursor", "--yes", "-w", str(root)]) == 0
    entry = json.loads(AGENTS["cursor"].file(os.environ).read_text(encoding="utf-8"))["mcpServers"][NAME]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    command = [entry["command"], *entry["args"]]
    done = subprocess.run(
        command, input=json.dumps(hello) + "\n", capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "recollect"


def test_print_writes_nothing(home: Path, capsys: Capture) -> None:
    file = place(home, AGENTS["cursor"], "{}\n")
    assert run(["install", "cursor", "--print"]) == 0
    assert file.read_text(encoding="utf-8") == "{}\n"
    assert '+    "recollect"' in capsys.readouterr().out


def test_without_names_those_that_are_there_are_taken(home: Path, capsys: Capture) -> None:
    assert run(["install", "--yes"]) == 2
    assert "no agent was found" in capsys.readouterr().err
    place(home, AGENTS["cursor"], "{}\n")
    place(home, AGENTS["codex"], TOML)
    assert run(["install", "--yes", "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert [(c["name"], c["verdict"]) for c in changes] == [("cursor", "written"), ("codex", "written")]


def test_json_without_yes_writes_nothing(home: Path, capsys: Capture) -> None:
    file = place(home, AGENTS["cursor"], "{}\n")
    assert run(["install", "cursor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["verdict"] == "not written"
    assert file.read_text(encoding="utf-8") == "{}\n"


@pytest.mark.parametrize("broken", ["{", '{"mcpServers": []}', "\x00", "[]"])
def test_a_file_that_cannot_be_read_is_left_alone(home: Path, capsys: Capture, broken: str) -> None:
    file = place(home, AGENTS["cursor"], broken)
    assert run(["install", "cursor", "--yes"]) == 2
    assert file.read_text(encoding="utf-8") == broken
    assert "hint" in capsys.readouterr().err


def test_an_unknown_agent_is_named(capsys: Capture) -> None:
    assert run(["install", "skynet"]) == 2
    assert "claude-code" in capsys.readouterr().err


def test_the_places_on_other_systems() -> None:
    env = {"HOME": "/home/a", "APPDATA": "C:/Roaming"}
    code = AGENTS["vscode"]
    assert str(code.file(env, system="darwin")) == "/home/a/Library/Application Support/Code/User/mcp.json"
    assert str(code.file(env, system="win32")) == "C:/Roaming/Code/User/mcp.json"
    assert str(code.file({**env, "XDG_CONFIG_HOME": "/x"}, system="linux")) == "/x/Code/User/mcp.json"


OPENCLAW = """{
  // JSON5
  agents: { defaults: { memorySearch: {
    provider: "gemini", model: "gemini-embedding-001", fallback: "none",
    remote: { apiKey: "SECRET-KEY-VALUE", baseUrl: "https://example.org/v1" },
    extraPaths: ["../team-docs", "/srv/notes"],
    query: { maxResults: 8, minScore: 0.35, hybrid: { enabled: true, vectorWeight: 0.6, textWeight: 0.4,
      mmr: { enabled: true, lambda: 0.5 }, temporalDecay: { enabled: true, halfLifeDays: 45 } } },
    cache: { enabled: true, maxEntries: 50000 }, sync: { watch: true }, novelty: 7,
  } } },
}
"""


def test_settings_of_openclaw_become_ours_and_the_rest_is_said(home: Path, tmp_path: Path, capsys: Capture) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(OPENCLAW, encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    shown = capsys.readouterr().err
    file = home / ".config/recollect/config.toml"
    ours = tomllib.loads(file.read_text(encoding="utf-8"))
    assert ours["embed"]["model"] == "gemini/gemini-embedding-001"
    assert ours["search"] == {"limit": 8}
    assert ours["extra_paths"] == ["../team-docs", "/srv/notes"]
    assert "SECRET" not in file.read_text(encoding="utf-8") + shown
    for words in ("minScore", "apiKey", "temporalDecay", "mmr", "weighted(vector=0.6, text=0.4)", "novelty"):
        assert words in shown
    assert "enabled:" not in shown


def test_a_file_without_such_settings_is_refused(tmp_path: Path, capsys: Capture) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text("{}", encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 2
    assert "no memorySearch" in capsys.readouterr().err


def carried(home: Path, tmp_path: Path, **search: Any) -> Settings:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(json.dumps({"memorySearch": search}), encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    return load(tmp_path, env={"XDG_CONFIG_HOME": str(home / ".config")})


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"provider": "openai"}, ("openai", (), "", 0)),
        ({"provider": "local", "fallback": "openai"}, ("auto", ("local", "openai"), "", 0)),
        ({"provider": "openai", "model": "text-embedding-3-large", "fallback": "gemini"}, ("auto",
         ("openai/text-embedding-3-large", "gemini"), "", 0)),
        ({"provider": "gemini", "model": "gemini-embedding-001", "outputDimensionality": 768, "fallback": "local"},
         ("auto", ("gemini/gemini-embedding-001", "local"), "", 768)),
        ({"provider": "openai", "fallback": "gemini", "remote": {"baseUrl": "https://example.org/v1"}}, ("openai", (),
         "https://example.org/v1", 0)),
        ({"provider": "bedrock", "model": "titan", "fallback": "none"}, ("auto", (), "", 0)),
        ({"provider": "openai", "fallback": "openai"}, ("openai", (), "", 0)),
        ({"provider": "none", "fallback": "openai"}, ("none", (), "", 0)),
    ],
)  # fmt: skip
def test_what_is_carried_over_can_be_loaded_and_means_the_same(
    home: Path, tmp_path: Path, search: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    own = carried(home, tmp_path, **search).embed
    assert (own.model, own.chain, own.url, own.dim) == expected
    for name in (own.model, *own.chain):
        assert is_remote(name) or plain_model(name)


def test_the_whole_file_of_openclaw_can_be_loaded(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(OPENCLAW, encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    own = load(tmp_path, env={"XDG_CONFIG_HOME": str(home / ".config")})
    assert (own.embed.model, own.embed.url) == ("gemini/gemini-embedding-001", "https://example.org/v1")
    assert own.search.limit == 8
