"""How a search walks: few frames between a surface and SQL, and every fact about the index read
once.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import notewell
from notewell.embed.chain import Chain
from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from tests.conftest import Write

OURS = str(Path(notewell.__file__).parent)
MOST_FRAMES = 8
"""From a command to the first SQL of the keywords."""
OWN_FRAMES = ["search", "run"]
"""Those of them from `Memory.search` to the pipeline."""
MOST_READS = 9
"""Remembered values that a search reads: two of them twice."""


@pytest.fixture(autouse=True)
def notes(write: Write, root: Path) -> None:
    write("memory/ports.md", "# Ports\n\nThe staging port is 8081.\n")
    write("memory/soup.md", "# Soup\n\nLeek soup needs butter.\n")
    with Memory.open(root, embed__model="hashed") as memory:
        memory.sync()


def frames(frame: FrameType | None) -> list[str]:
    """The functions of ours on the stack, the outermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found[::-1]


def test_a_command_reaches_the_first_sql_in_few_frames(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stacks: list[list[str]] = []

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and isinstance(
            getattr(function, "__self__", None), apsw.Connection | apsw.Cursor
        ):
            stacks.append(frames(frame))

    sys.setprofile(look)
    try:
        run(["-w", str(root), "search", "staging port", "--model", "hashed"])
    finally:
        sys.setprofile(None)
    assert "8081" in capsys.readouterr().out
    asked = [stack for stack in stacks if "lexical" in stack or "term_counts" in stack]
    first = asked[0]
    own = first[3 : 3 + len(OWN_FRAMES)]  # after those of the command line: run, wrapped, search
    assert own == OWN_FRAMES, first
    assert len(first) <= MOST_FRAMES, first


def test_a_search_looks_at_the_models_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    keys: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*given: Any, **more: Any) -> Any:
            calls[name] += 1
            if name == "get_meta":
                keys[given[0]] += 1
            return real(*given, **more)

        monkeypatch.setattr(owner, name, call)

    with Memory.open(root, embed__model="hashed") as memory:
        memory.search("staging port")
        for owner, name in ((Chain, "resolve"), (Chain, "levels"), (memory.store, "get_meta")):
            counted(owner, name)
        found = memory.search("leek soup")
    assert (found.mode, found.notices) == ("hybrid", ())
    assert (calls["resolve"], calls["levels"]) == (1, 1)
    assert keys["model"] == 1, "the pinned vector set"
    assert calls["get_meta"] <= MOST_READS, keys
