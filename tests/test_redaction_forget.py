"""Secrets, remembering and forgetting together: the file keeps what its owner wrote, nothing else
ever has it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.errors import UsageError
from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from tests.conftest import CountingEmbedder, Write
from tests.test_redaction import TOKEN, indexed

NOW = dt.datetime(2026, 4, 1, 12, 0)  # noqa: DTZ001 - the day of this place
LINE = f"The deploy token of the blue harbour is {TOKEN} until autumn."
PRIVATE = "<private>\nSalary 71234 of the harbour master.\n</private>"
NOTE = f"# Deploy\n\nFirst paragraph stays.\n\n{LINE}\n\n{PRIVATE}\n\nEnd.\n"


@pytest.fixture
def memory(root: Path, write: Write, embedder: CountingEmbedder) -> Iterator[Memory]:
    write("memory/deploy.md", NOTE)
    said = [
        json.dumps({"role": "user", "content": text}) + "\n" for text in (LINE, "Something else.")
    ]
    write("chats/s.jsonl", "".join(said))
    with Memory.open(
        root, embedder=embedder, sources="memory,sessions", sessions__paths="chats"
    ) as memory:
        memory.sync()
        yield memory


@pytest.mark.parametrize(
    "selector", ["memory/deploy.md:5", "query", "chats/s.jsonl:1", "chats/s.jsonl"]
)
def test_a_passage_with_a_secret_is_forgotten_everywhere(
    memory: Memory, root: Path, selector: str
) -> None:
    how = {"query": "blue harbour"} if selector == "query" else {"reference": selector}
    receipt = memory.forget(**how, yes=True, everywhere=True, now=NOW)  # type: ignore[arg-type]
    assert receipt.proved, receipt
    for part in (b"harbour is", b"blue", TOKEN.encode()):
        assert part not in indexed(root)
    assert memory.sync(force=True).forgotten >= 2
    assert b"blue" not in indexed(root)


@pytest.mark.parametrize("selector", ["memory/deploy.md:5", "id", "query"])
def test_a_passage_with_a_secret_leaves_its_file_when_told(
    memory: Memory, root: Path, selector: str
) -> None:
    hit = next(
        h for h in memory.search("blue harbour deploy token").hits if h.chunk.source == "memory"
    )
    how = (
        {"query": "blue harbour"}
        if selector == "query"
        else {"reference": hit.chunk.id if selector == "id" else selector}
    )
    receipt = memory.forget(**how, yes=True, from_files=True, now=NOW)  # type: ignore[arg-type]
    assert receipt.proved, receipt
    left = (root / "memory/deploy.md").read_text()
    assert TOKEN not in left
    assert "blue" not in left
    if selector != "id":
        assert "First paragraph stays." in left
        assert "Salary 71234" in left
    (file,) = receipt.files
    assert Path(file.backup).read_text() == NOTE


def test_a_private_block_leaves_its_file_when_told(memory: Memory, root: Path) -> None:
    receipt = memory.forget("memory/deploy.md:7-9", yes=True, from_files=True, now=NOW)
    assert [f.path for f in receipt.files] == ["memory/deploy.md"]
    assert "71234" not in (root / "memory/deploy.md").read_text()


def test_remember_writes_what_was_said_and_warns_of_the_secret(memory: Memory, root: Path) -> None:
    text = f"The green lagoon uses {TOKEN} as well."
    done = memory.remember(text, now=NOW)
    assert text in (root / done.path).read_text()
    assert [n.code for n in done.notices] == ["secret"]
    assert TOKEN not in done.notices[0].message
    hit = memory.search("green lagoon", now=NOW).hits[0]
    assert hit.chunk.id == done.id
    assert "[redacted:github-token]" in hit.snippet
    assert TOKEN.encode() not in indexed(root)
    again = memory.remember(text, now=NOW)
    assert (again.written, again.id) == (False, done.id)


def test_another_secret_is_another_memory(memory: Memory) -> None:
    first = memory.remember(f"The green lagoon uses {TOKEN} as well.", file="memory/x.md", now=NOW)
    other = memory.remember(
        f"The green lagoon uses {TOKEN[:-6]}zQ7wK1 as well.", file="memory/y.md", now=NOW
    )
    assert (first.written, other.written) == (True, True)


def test_what_was_forgotten_with_its_secret_is_not_remembered_by_accident(memory: Memory) -> None:
    receipt = memory.forget(
        "memory/deploy.md:5", yes=True, everywhere=True, from_files=True, now=NOW
    )
    with pytest.raises(UsageError, match=receipt.id):
        memory.remember(LINE, now=NOW)
    done = memory.remember(LINE, force=True, now=NOW)
    assert "tombstone_lifted" in [n.code for n in done.notices]
    assert done.id in {h.chunk.id for h in memory.search("blue harbour", now=NOW).hits}


def test_no_command_shows_a_secret(
    memory: Memory, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hit = memory.search("blue harbour").hits[0].chunk
    sessions = [
        "--setting",
        "sources=memory,sessions",
        "--setting",
        f"sessions.paths={root / 'chats'}",
    ]
    for arguments in (
        ["search", "blue harbour", "--explain", "--json"],
        ["search", "blue harbour", "--format", "context"],
        ["search", "salary 71234", "--min-score", "0"],
        ["get", hit.id],
        ["get", "memory/deploy.md"],
        ["get", "chats/s.jsonl"],
        ["timeline", "--window", "20"],
        ["trace", hit.id, "--both"],
        ["why", "blue harbour", hit.id],
        ["forget", "memory/deploy.md:1-11"],
        ["forget", hit.id, "--json"],
    ):
        assert run([*arguments, "-w", str(root), *sessions]) == 0, arguments
        shown = "".join(capsys.readouterr())
        assert "aB3xY9" not in shown, arguments
        if "71234" not in arguments[1]:
            assert "71234" not in shown, arguments
