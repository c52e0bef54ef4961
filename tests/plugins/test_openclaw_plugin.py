"""The OpenClaw plugin, driven by node against a host of a few objects and a real `notewell mcp`."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Write

PLUGIN = Path(__file__).parents[2] / "plugins/openclaw"
DRIVER = Path(__file__).parent / "drive.mjs"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")

# Answers `hook` by itself, so that the plugin is tried alone; anything else is the real program.
COMMAND = """#!{python}
import json, os, sys
if sys.argv[1] == "hook":
    told = json.load(sys.stdin)
    with open({log!r}, "a") as log:
        log.write(json.dumps([*sys.argv[2:], told]) + "\\n")
    print({answer!r} % sys.argv[2])
    sys.exit(0)
os.execv(sys.executable, [sys.executable, "-m", "notewell", *sys.argv[1:]])
"""
ANSWER = '{"context": "from %s", "receipt": ""}'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "hooks.log"


@pytest.fixture(autouse=True)
def notes(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081 now.\n")
    write("MEMORY.md", "# Facts\n\n- Sam prefers short answers.\n")
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def program(folder: Path, log: Path, answer: str = ANSWER) -> Path:
    file = folder / "notewell"
    file.write_text(
        COMMAND.format(python=sys.executable, log=str(log), answer=answer), encoding="utf-8"
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def placed(folder: Path) -> Path:
    """The plugin beside an `openclaw` that has only what the plugin imports."""
    sdk = folder / "node_modules/openclaw"
    sdk.mkdir(parents=True)
    package = {
        "name": "openclaw",
        "type": "module",
        "exports": {"./plugin-sdk/plugin-entry": "./entry.js"},
    }
    (sdk / "package.json").write_text(json.dumps(package), encoding="utf-8")
    (sdk / "entry.js").write_text(
        "export const definePluginEntry = (entry) => entry;\n", encoding="utf-8"
    )
    for name in ("index.js", "package.json"):
        shutil.copy(PLUGIN / name, folder / name)
    return folder / "index.js"


def drive(
    folder: Path, root: Path, command: list[str], consent: str, *steps: str
) -> dict[str, Any]:
    given = [
        str(NODE),
        str(DRIVER),
        str(placed(folder)),
        json.dumps(command),
        str(root),
        consent,
        *steps,
    ]
    done = subprocess.run(given, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_it_is_short_enough_to_be_read() -> None:
    assert len((PLUGIN / "index.js").read_text(encoding="utf-8").splitlines()) <= 250


def test_tools_runtime_and_command_line_answer_from_the_notes(
    tmp_path: Path, root: Path, log: Path
) -> None:
    steps = (
        "names search strange get missing prompt silent flush nowhere classes sessions status "
        "killed aborted stop"
    )
    told = drive(tmp_path, root, [str(program(tmp_path, log))], "no", *steps.split())
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text(encoding="utf-8"))
    assert (told["names"]["id"], told["names"]["kind"]) == (manifest["id"], manifest["kind"])
    assert (
        told["names"]["tools"] == manifest["contracts"]["tools"] == list(manifest["toolMetadata"])
    )
    assert told["names"]["verbs"] == ["search", "status", "index"]
    # without consent nothing reads the conversation
    assert told["names"]["hooks"] == ["gateway_stop"]

    first = told["search"]["results"][0]
    assert (first["path"], first["startLine"], first["source"]) == (
        "memory/2026-02-10.md",
        3,
        "memory",
    )
    assert first["citation"] == "memory/2026-02-10.md#L3"
    assert 0 <= first["score"] <= 1
    assert first["provenance"]["originClass"] == "owner"
    assert told["strange"][0]["results"] == []
    assert len(told["strange"][1]["results"]) == 1
    assert told["get"] == {
        "status": "ok",
        "path": "memory/2026-02-10.md",
        "text": "The staging port is 8081 now.",
        "from": 3,
        "lines": 1,
    }
    assert told["missing"]["status"] == "not_found"

    assert told["prompt"][0] == "## Memory"
    assert "memory_search" in told["prompt"][1]
    assert told["silent"] == []
    # it is already tomorrow in Tokyo
    assert told["flush"]["relativePath"] == "memory/2026-11-03.md"
    assert "NO_REPLY" in told["flush"]["prompt"]
    assert re.fullmatch(r"memory/2026-11-0\d\.md", told["nowhere"])
    assert told["classes"] == [
        {"relativePath": "MEMORY.md", "originClass": "owner"},
        {"relativePath": "nothing.md", "originClass": "untrusted"},
    ]
    assert told["sessions"] == [2, 1, 1, 1]
    status = told["status"]
    assert (status["files"], status["provider"], status["workspaceDir"]) == (
        2,
        "notewell",
        str(root),
    )

    assert told["killed"] == {"found": 1, "other": True, "alive": False}
    assert told["aborted"] == "AbortError"
    assert told["stop"] == {"alive": False}
    assert not log.exists()


@pytest.mark.slow
def test_the_command_line_answers_and_ends_its_process(
    tmp_path: Path, root: Path, log: Path
) -> None:
    told = drive(tmp_path, root, [str(program(tmp_path, log))], "no", "cli")
    assert json.loads(told["cli"][0])["results"][0]["path"] == "memory/2026-02-10.md"


def test_with_consent_it_recalls_once_a_prompt_and_captures(
    tmp_path: Path, root: Path, log: Path
) -> None:
    told = drive(
        tmp_path,
        root,
        [str(program(tmp_path, log))],
        "yes",
        "names",
        "recall",
        "again",
        "beat",
        "ends",
    )
    assert told["names"]["hooks"] == [
        "agent_end",
        "before_compaction",
        "before_prompt_build",
        "gateway_stop",
        "session_end",
    ]
    assert told["recall"] == {"prependContext": "from session-start\n\nfrom prompt"}
    assert told["again"] == {"prependContext": "from prompt"}
    assert told["beat"] is None
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert sorted(c[0] for c in calls) == ["prompt", "prompt", "session-start", "stop"]
    assert all(c[1:3] == ["--host", "openclaw"] for c in calls)
    asked = next(c[3] for c in calls if c[0] == "prompt")
    assert asked == {"session_id": "s1", "cwd": str(root), "prompt": "which port?"}


def test_a_missing_or_broken_program_is_an_answer_not_a_crash(
    tmp_path: Path, root: Path, log: Path
) -> None:
    told = drive(tmp_path, root, [str(tmp_path / "nothing")], "yes", "search", "recall", "ends")
    assert told["search"]["disabled"]
    assert "notewell install openclaw" in told["search"]["error"]
    assert told["recall"] is None
    (tmp_path / "broken").mkdir()
    told = drive(
        tmp_path / "broken",
        root,
        [str(program(tmp_path / "broken", log, "%s is no JSON"))],
        "yes",
        "recall",
        "ends",
    )
    assert told["recall"] is None
