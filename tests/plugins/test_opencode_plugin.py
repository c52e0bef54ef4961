"""The opencode plugin, driven by node as opencode 1 and 2 drive it."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.surfaces.install.natives import folder, opencode

NODE = shutil.which("node")
DRIVER = Path(__file__).parent / "drive_opencode.mjs"
COMMAND = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([*sys.argv[1:], json.load(sys.stdin)]) + "\\n")
print({answer!r} % sys.argv[2])
"""
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")


def drive(tmp_path: Path, command: str, workspace: str = "") -> dict[str, object]:
    file = tmp_path / "notewell.mjs"
    file.write_text(opencode(tmp_path, [command], workspace).put(""), encoding="utf-8")
    given = [str(NODE), str(DRIVER), str(file), str(tmp_path)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_both_versions_recall_keep_and_end(tmp_path: Path) -> None:
    log, program = tmp_path / "log", tmp_path / "notewell"
    answer = '{"context": "from %s", "receipt": "1 note"}'
    program.write_text(
        COMMAND.format(python=sys.executable, log=str(log), answer=answer), encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    told = drive(tmp_path, str(program), "/my notes")
    assert told["first"] == ["base", "from session-start\n\nfrom prompt"]
    assert told["second"] == ["base", "from prompt"]
    assert told["next"] == [{"type": "text", "text": "from session-start\n\nfrom prompt"}]
    calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert all(
        c[0] == "hook" and c[2:-1] == ["--host", "opencode", "--workspace", "/my notes"]
        for c in calls
    )
    first = [c for c in calls if c[-1]["session_id"] == "a"]
    assert sorted(c[1] for c in first) == [
        "compact",
        "prompt",
        "prompt",
        "session-end",
        "session-start",
        "stop",
    ]
    asked = next(c[-1] for c in first if c[1] == "prompt")
    assert asked == {"session_id": "a", "cwd": str(tmp_path), "prompt": "which port?"}
    assert sorted(c[1] for c in calls if c not in first) == [
        "compact",
        "prompt",
        "session-end",
        "session-start",
    ]


@pytest.mark.parametrize("command", ["/nothing/here", "/bin/true"])
def test_a_program_that_is_missing_or_silent_changes_nothing(tmp_path: Path, command: str) -> None:
    told = drive(tmp_path, command)
    assert told["first"] == told["second"] == ["base"]
    assert told["next"] == []


def test_it_has_no_dependencies() -> None:
    text = (folder("opencode") / "notewell.js").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "import" in line] == [
        'import { spawn } from "node:child_process";',
        'import { homedir } from "node:os";',
    ]
