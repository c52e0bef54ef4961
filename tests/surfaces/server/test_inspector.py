"""The official inspector, in its command-line form, against the installed command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Write

NPM = shutil.which("npm")
COMMAND = Path(sys.executable).with_name("notewell")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(NPM is None, reason="needs npm")]


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspector")
    assert NPM is not None
    command = [
        NPM,
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "@modelcontextprotocol/inspector",
    ]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return folder / "node_modules/.bin/mcp-inspector"


def test_the_inspector_lists_and_calls_the_tools(root: Path, write: Write, inspector: Path) -> None:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081 now.\n")

    def inspect(*asked: str) -> dict[str, object]:
        server = [str(COMMAND), "mcp", "-w", str(root), "--model", "hashed"]
        done = subprocess.run(
            [str(inspector), "--cli", *server, "--method", *asked],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    tools = inspect("tools/list")["tools"]
    assert isinstance(tools, list)
    assert "memory_search" in {t["name"] for t in tools}
    assert all(t["annotations"] and t["outputSchema"] for t in tools)
    found = inspect(
        "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=staging port"
    )
    assert "8081" in json.dumps(found["structuredContent"])
    assert inspect("resources/list")["resources"]
    assert inspect("prompts/list")["prompts"]
