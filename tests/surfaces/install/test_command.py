"""`notewell install` on a home with files of every agent: nothing foreign touched, and taken back
to the byte.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from notewell.surfaces.cli.commands import run
from notewell.surfaces.hooks.hosts import EVENTS
from notewell.surfaces.install import json5
from notewell.surfaces.install.changes import BACKUP
from notewell.surfaces.install.command import install
from notewell.surfaces.install.entries import AGENTS, NAME, Agent, program
from notewell.surfaces.install.events import HOOKS

Capture = pytest.CaptureFixture[str]
SERVED = {name: one for name, one in AGENTS.items() if one.keys}

FOREIGN = """// kept by hand
{
  "theme": "dark", // not light
  "%s": {
    "other": { "command": "npx", "args": ["-y", "other"] }, /* foreign */
  },
}
"""
TOML = '# kept by hand\nmodel = "o9"  # fast\n\n[mcp_servers.other]\ncommand = "npx"\n'
HOOKED = """{
  // mine
  "hooks": {
    "%s": [
      { "hooks": [{ "type": "command", "command": "say done" }], "matcher": "x" } // first
    ],
    "Other": [],
  }
}
"""
FLAT = '{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}\n'


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


def everything(home: Path) -> dict[str, bytes]:
    """Every file of a home with its bytes, and every folder that is made for skills and plugins."""
    made = [
        p for p in home.rglob("*") if p.is_file() or p.name in ("skills", "plugins", "notewell")
    ]
    return {str(p.relative_to(home)): p.read_bytes() if p.is_file() else b"" for p in made}


def hook_file(one: Agent) -> Path:
    return next(
        e.file
        for e in one.edits(["notewell"], "", os.environ, hooks=True)
        if e.file.name == one.hooks
    )


@pytest.mark.parametrize("name", SERVED)
def test_an_entry_is_added_beside_foreign_ones_and_taken_back(
    home: Path, capsys: Capture, name: str
) -> None:
    one = AGENTS[name]
    before = foreign(one)
    file = place(home, one, before)
    os.chmod(file, 0o640)
    untouched = everything(home)
    assert run(["install", name, "--yes", "-w", "notes"]) == 0
    after = file.read_text(encoding="utf-8")
    assert set(entries(one, after)) == {"other", NAME}
    assert all(
        line.strip() in after
        for line in before.splitlines()
        if "//" in line or "#" in line or "/*" in line
    )
    assert file.stat().st_mode & 0o777 == 0o640
    shown = capsys.readouterr()
    assert "+" in shown.err  # the difference comes before the writing
    written = everything(home)
    assert run(["install", name, "--yes", "-w", "notes"]) == 0
    assert everything(home) == written
    said = capsys.readouterr().out
    assert "written" not in said
    assert "as it was" in said
    assert run(["install", name, "--uninstall", "--yes"]) == 0
    assert everything(home) == untouched


@pytest.mark.parametrize("name", AGENTS)
def test_a_home_without_files_is_empty_again_afterwards(home: Path, name: str) -> None:
    assert run(["install", name, "--yes", "-w", "notes"]) == 0
    files = [p for p in home.rglob("*") if p.is_file()]
    assert files
    assert not [p for p in files if p.name.endswith(BACKUP)]
    assert any(os.path.abspath("notes") in p.read_text(encoding="utf-8") for p in files)
    assert run(["install", name, "--uninstall", "--yes"]) == 0
    assert not list(home.rglob("*")), (
        "a folder that is left looks like an agent to the next install"
    )


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("edited", [False, True])
def test_hooks_come_behind_those_of_others(home: Path, name: str, *, edited: bool) -> None:
    one, hooks = AGENTS[name], HOOKS[name]
    file = hook_file(one)
    file.parent.mkdir(parents=True, exist_ok=True)
    before = FLAT if hooks.flat else HOOKED % hooks.names["stop"]
    file.write_text(before, encoding="utf-8")
    untouched = everything(home)
    assert run(["install", name, "--yes"]) == 0
    text = file.read_text(encoding="utf-8")
    found = json5.loads(text)["hooks"]
    assert [len(found[hooks.names[e]]) for e in EVENTS if e in hooks.names] == [
        2 if e == "stop" else 1 for e in EVENTS if e in hooks.names
    ]
    assert "say done" in json.dumps(found[hooks.names["stop"]][0])
    for event, theirs in hooks.names.items():
        item = found[theirs][-1]
        command = (item if hooks.flat else item["hooks"][0])["command"]
        assert command.endswith(f"notewell hook {event} --host {name}")
    if edited:  # what a person changed in the meantime stays
        file.write_text(text.replace("say done", "say it is done"), encoding="utf-8")
    assert run(["install", name, "--uninstall", "--yes"]) == 0
    left = everything(home)
    key = str(file.relative_to(home))
    if edited:
        kept = json5.loads(left.pop(key).decode())["hooks"]
        assert json.dumps(kept[hooks.names["stop"]]).count("say it is done") == 1
        assert "notewell" not in json.dumps(kept)
        untouched.pop(key)
    assert left == untouched


def test_another_path_of_ours_replaces_the_old_one(home: Path) -> None:
    """An update may move the command."""
    hooks = HOOKS["claude-code"]
    old = hooks.put("", ["/old/venv/bin/notewell"])
    new = hooks.put(old, ["/new dir/bin/notewell"], "/my notes")
    line = json5.loads(new)["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert line == "'/new dir/bin/notewell' hook stop --host claude-code --workspace '/my notes'"
    assert "/old" not in new
    assert hooks.put(new, ["/new dir/bin/notewell"], "/my notes") == new
    assert hooks.drop(new) == ""


def test_a_foreign_skill_of_the_same_name_comes_back(home: Path) -> None:
    file = home / ".claude/skills/notewell/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: my-own\n---\n", encoding="utf-8")
    untouched = everything(home)
    assert run(["install", "claude-code", "--yes"]) == 0
    assert "memory_search" in file.read_text(encoding="utf-8")
    assert run(["install", "claude-code", "--uninstall", "--yes"]) == 0
    assert everything(home) == untouched


def test_without_hooks_there_are_only_the_tools_and_the_skill(home: Path) -> None:
    assert run(["install", "claude-code", "opencode", "--yes", "--no-hooks"]) == 0
    names = sorted(p.name for p in home.rglob("*") if p.is_file())
    assert names == [".claude.json", "SKILL.md", "SKILL.md", "opencode.json"]
    assert run(["install", "openclaw", "--yes", "--no-hooks"]) == 0
    assert "allowConversationAccess" not in AGENTS["openclaw"].file(os.environ).read_text(
        encoding="utf-8"
    )


def test_the_entry_starts_a_server_that_answers(home: Path, root: Path) -> None:
    """What is written is what the agent will run."""
    assert run(["install", "cursor", "--yes", "-w", str(root)]) == 0
    entry = json.loads(AGENTS["cursor"].file(os.environ).read_text(encoding="utf-8"))["mcpServers"][
        NAME
    ]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    command = [entry["command"], *entry["args"]]
    done = subprocess.run(
        command,
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "notewell"


def test_print_writes_nothing(home: Path, capsys: Capture) -> None:
    file = place(home, AGENTS["cursor"], "{}\n")
    assert run(["install", "cursor", "--print"]) == 0
    assert everything(home).keys() == {".cursor/mcp.json"}
    assert file.read_text(encoding="utf-8") == "{}\n"
    assert '+    "notewell"' in capsys.readouterr().out


def test_without_names_those_that_are_there_are_taken(home: Path, capsys: Capture) -> None:
    assert run(["install", "--yes"]) == 2
    assert "no agent was found" in capsys.readouterr().err
    place(home, AGENTS["cursor"], "{}\n")
    (home / ".codex").mkdir()  # an agent without settings yet
    place(home, AGENTS["claude-desktop"], "{}\n")
    assert run(["install", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {(c["name"], c["verdict"]) for c in told["changes"]} == {
        ("cursor", "written"),
        ("codex", "written"),
    }
    assert any("notewell install claude-desktop -w FOLDER" in note for note in told["notes"])
    assert any("/hooks" in note for note in told["notes"])
    assert any("MEMORY.md" in note for note in told["notes"])  # how the workspace is found


def test_an_agent_without_a_folder_is_asked_for_one(
    home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["install", "claude-desktop", "--yes"]) == 2
    assert "-w" in capsys.readouterr().err
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _self: True)
    result = CliRunner().invoke(install, ["claude-desktop"], input=f"{home}/notes\ny\n")
    assert result.exit_code == 0, result.output
    text = AGENTS["claude-desktop"].file(os.environ).read_text(encoding="utf-8")
    assert json.loads(text)["mcpServers"][NAME]["args"][-1] == f"{home}/notes"


def test_a_no_leaves_all_files_of_an_agent_as_they_were(home: Path) -> None:
    result = CliRunner().invoke(install, ["claude-code"], input="n\n")
    assert result.exit_code == 0
    assert everything(home) == {}


def test_json_without_yes_writes_nothing(home: Path, capsys: Capture) -> None:
    file = place(home, AGENTS["cursor"], "{}\n")
    assert run(["install", "cursor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["changes"][0]["verdict"] == "not written"
    assert any("--yes" in note for note in told["notes"])
    assert file.read_text(encoding="utf-8") == "{}\n"


def test_where_nobody_answers_it_says_what_to_add(
    home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(["install", "cursor"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert everything(home) == {}


def test_a_workspace_that_is_not_there_yet_is_said(home: Path, capsys: Capture) -> None:
    assert run(["install", "cursor", "--print", "-w", str(home / "none")]) == 0
    assert "not a folder yet" in capsys.readouterr().err
    assert run(["install", "cursor", "--print", "-w", str(home)]) == 0
    assert "not a folder yet" not in capsys.readouterr().err


@pytest.mark.parametrize("broken", ["{", '{"mcpServers": []}', "\x00", "[]", '{"mcpServers": 5}'])
def test_a_file_that_cannot_be_read_is_left_alone(home: Path, capsys: Capture, broken: str) -> None:
    place(home, AGENTS["cursor"], broken)
    before = everything(home)
    assert run(["install", "cursor", "--yes"]) == 2
    assert everything(home) == before
    assert "hint" in capsys.readouterr().err


@pytest.mark.parametrize(
    "broken",
    ['{"hooks": []}', '{"hooks": {"stop": 5}}', "[]", "{", '{"hooks": {"stop": [5, null]}}'],
)
def test_strange_hooks_are_refused_or_kept(home: Path, broken: str) -> None:
    file = hook_file(AGENTS["cursor"])
    file.parent.mkdir(parents=True)
    file.write_text(broken, encoding="utf-8")
    before = everything(home)
    if run(["install", "cursor", "--yes"]) == 0:
        assert json.loads(file.read_text(encoding="utf-8"))["hooks"]["stop"][:2] == [5, None]
        assert run(["install", "cursor", "--uninstall", "--yes"]) == 0
    assert everything(home) == before


def test_an_uninstall_where_nothing_is_says_so(home: Path, capsys: Capture) -> None:
    assert (
        run(["install", "claude-code", "cursor", "hermes", "openclaw", "--uninstall", "--yes"]) == 0
    )
    assert everything(home) == {}
    assert "removed" not in capsys.readouterr().out


def test_an_unknown_agent_is_named(capsys: Capture) -> None:
    assert run(["install", "skynet"]) == 2
    assert "claude-code" in capsys.readouterr().err


def test_the_places_on_other_systems_and_by_variables() -> None:
    env = {"HOME": "/home/a", "APPDATA": "C:/Roaming"}
    code = AGENTS["vscode"]
    assert (
        str(code.file(env, system="darwin"))
        == "/home/a/Library/Application Support/Code/User/mcp.json"
    )
    assert str(code.file(env, system="win32")) == "C:/Roaming/Code/User/mcp.json"
    assert (
        str(code.file({**env, "XDG_CONFIG_HOME": "/x"}, system="linux")) == "/x/Code/User/mcp.json"
    )
    assert str(AGENTS["codex"].file({**env, "CODEX_HOME": "/c"})) == "/c/config.toml"
    assert str(AGENTS["claude-code"].file({**env, "CLAUDE_CONFIG_DIR": "/d"})) == "/d/.claude.json"


def openclaw(home: Path, value: Any) -> Path:
    return place(home, AGENTS["openclaw"], value if isinstance(value, str) else json.dumps(value))


def test_openclaw_gets_the_slot_and_loses_it_again(home: Path, capsys: Capture) -> None:
    before = {
        "plugins": {
            "allow": ["voice"],
            "slots": {"memory": "memory-lancedb"},
            "load": {"paths": ["/mine"]},
        },
        "mcp": {"servers": {"notewell": {"command": "notewell"}, "other": {}}},
    }
    file = openclaw(home, before)
    assert run(["install", "openclaw", "--yes", "-w", str(home)]) == 0
    assert "memory-core" in capsys.readouterr().err  # which of the cures it took
    made = json5.loads(file.read_text(encoding="utf-8"))
    plugins = made["plugins"]
    assert plugins["slots"]["memory"] == "memory-notewell"
    assert plugins["allow"] == ["voice", "memory-notewell"]
    assert plugins["load"]["paths"][0] == "/mine"
    manifest = json.loads(
        Path(plugins["load"]["paths"][1], "openclaw.plugin.json").read_text(encoding="utf-8")
    )
    assert manifest["id"] == "memory-notewell"
    entry = plugins["entries"]["memory-notewell"]
    assert set(entry["config"]) <= set(manifest["configSchema"]["properties"])
    assert entry["hooks"] == {"allowConversationAccess": True}
    assert made["mcp"]["servers"] == {"other": {}}
    # A person adds something, so that the old text cannot simply come back.
    file.write_text(
        file.read_text(encoding="utf-8").replace('"voice"', '"voice", "more"'), encoding="utf-8"
    )
    assert run(["install", "openclaw", "--uninstall", "--yes"]) == 0
    left = json5.loads(file.read_text(encoding="utf-8"))
    assert left["plugins"] == {
        "allow": ["voice", "more"],
        "slots": {"memory": "memory-lancedb"},
        "load": {"paths": ["/mine"]},
    }


YAML = (
    "model: x\nmemory:\n  # mine\n  memory_enabled: true\n  provider: honcho # now\nother:\n  "
    "provider: keep\n"
)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (YAML, "  provider: notewell # now"),
        ("memory:\n    limit: 3\n", "    provider: notewell"),
        ("model: x", "  provider: notewell"),
        ("memory:\n", "  provider: notewell"),
        ("memory:\n  provider:\nz: 1\n", "  provider: notewell"),
    ],
)
@pytest.mark.parametrize("edited", [False, True])
def test_hermes_gets_its_provider_and_loses_it_again(
    home: Path, before: str, line: str, *, edited: bool
) -> None:
    file = place(home, AGENTS["hermes"], before)
    untouched = everything(home)
    assert run(["install", "hermes", "--yes"]) == 0
    assert line in file.read_text(encoding="utf-8").splitlines()
    assert (home / ".hermes/plugins/notewell/__init__.py").exists()
    if edited:
        file.write_text(file.read_text(encoding="utf-8") + "added: 1\n", encoding="utf-8")
    assert run(["install", "hermes", "--uninstall", "--yes"]) == 0
    left = everything(home)
    if edited:
        kept = left.pop(".hermes/config.yaml").decode()
        assert kept.endswith("added: 1\n")
        assert "notewell" not in kept
        assert "keep" in kept or "keep" not in before
        untouched.pop(".hermes/config.yaml")
    assert left == untouched


def test_a_memory_block_on_one_line_is_left_alone(home: Path) -> None:
    place(home, AGENTS["hermes"], "memory: {provider: x}\n")
    before = everything(home)
    assert run(["install", "hermes", "--yes"]) == 2
    assert everything(home) == before


def test_a_missing_mcp_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run(["install", "claude-code", "--print"]) == 0
    assert (
        'note: the MCP server needs a package that is not installed: pip install "notewell[mcp]"'
        in (capsys.readouterr().err)
    )


def test_no_program_of_the_current_folder_is_written_into_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, clone, own = tmp_path / "python", tmp_path / "clone", tmp_path / "own"
    for folder in (clone, clone / "bin", own):
        folder.mkdir()
        (folder / "notewell").write_text("")
        (folder / "notewell").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.chdir(clone)
    for path in ("", ".", f"{os.pathsep}bin", "./bin"):
        assert program({"PATH": path}) == [str(python), "-P", "-m", "notewell"]
        assert program({"PATH": f"{path}{os.pathsep}{own}"}) == [str(own / "notewell")]
    (own / "notewell").chmod(0o644)
    assert program({"PATH": str(own)}) == [str(python), "-P", "-m", "notewell"]
    python.with_name("notewell").symlink_to("/bin/true")
    assert program({"PATH": str(own)}) == [str(tmp_path / "notewell")]
