"""No secret reaches the index, the model or an answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from notewell.text.redact import Redactor
from tests.conftest import CountingEmbedder, Write
from tests.growth import no_hang

TOKEN = "ghp_" + "aB3xY9" * 6
NOTE = (
    f"# Deploy\n\nThe token is {TOKEN} for now.\n\n<private>\nSalary 71234\n</private>\n\nThe "
    "rest is harmless.\n"
)
SAID = (
    json.dumps({"role": "user", "content": f"use {TOKEN} <private>Salary 71234</private> today"})
    + "\n"
)


@pytest.fixture
def memory(root: Path, write: Write, embedder: CountingEmbedder) -> Iterator[Memory]:
    write("memory/deploy.md", NOTE)
    write("chats/s.jsonl", SAID)
    with Memory.open(
        root, embedder=embedder, sources="memory,sessions", sessions__paths="chats"
    ) as memory:
        yield memory


def indexed(root: Path) -> bytes:
    """Every byte of the index, its WAL included."""
    return b"".join(p.read_bytes() for p in (root / ".notewell").iterdir() if p.is_file())


def test_no_byte_of_a_secret_is_kept_or_embedded(
    root: Path, memory: Memory, embedder: CountingEmbedder
) -> None:
    report = memory.sync()
    assert report.redacted == {"github-token": 2, "private": 2}
    for part in (b"aB3xY9", b"71234", b"ab3xy9", b"alary"):
        assert part not in indexed(root)
    assert not any("aB3" in text or "71234" in text for text in embedder.documents)
    assert not any(
        "71234" in hit.snippet for hit in memory.search("Salary 71234", min_score=0.0).hits
    )


def test_lines_stay_where_they_are(memory: Memory) -> None:
    hit = next(h for h in memory.search("harmless").hits if h.chunk.source == "memory")
    assert (hit.chunk.start_line, hit.chunk.end_line) == (3, 9)
    assert memory.get("memory/deploy.md:9").text == "The rest is harmless."


def test_get_is_redacted_unless_it_is_asked_for_raw(memory: Memory) -> None:
    assert memory.get("memory/deploy.md:3-7").text == (
        "The token is [redacted:github-token] for now.\n\n[redacted:private]\n\n"
    )
    assert memory.get("memory/deploy.md", raw=True).text == NOTE.rstrip("\n")
    assert (
        memory.get("chats/s.jsonl").text
        == "user:\nuse [redacted:github-token] [redacted:private] today"
    )
    assert memory.get("chats/s.jsonl", raw=True).text == SAID.rstrip("\n")


def test_a_private_block_that_begins_above_the_lines_asked_for_stays_private(
    memory: Memory,
) -> None:
    assert memory.get("memory/deploy.md:6").text == ""


def test_new_patterns_make_the_index_anew(
    root: Path, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/a.md", "Project Nightfall starts in May.")
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.search("nightfall").hits
    with Memory.open(root, embedder=embedder, redact__patterns=["(?i)nightfall"]) as memory:
        assert (
            memory.search("starts in May").hits[0].chunk.text
            == "Project [redacted:pattern] starts in May."
        )
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.search("nightfall").hits


def test_it_is_off_only_when_the_user_says_so(
    root: Path, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/a.md", NOTE)
    with Memory.open(root, embedder=embedder, redact__enabled=False) as memory:
        assert memory.sync().redacted == {}
        assert any(TOKEN in c.text for c in memory.store.documents.chunks_of("memory/a.md"))
        assert TOKEN in memory.get("memory/a.md").text
    with Memory.open(root, embedder=embedder) as memory:
        memory.sync()
        assert not any(TOKEN in c.text for c in memory.store.documents.chunks_of("memory/a.md"))


def test_a_bad_pattern_is_said_when_the_memory_is_opened(root: Path) -> None:
    with pytest.raises(SettingsError, match="not a regular expression"):
        Memory.open(root, redact__patterns=["("])


def test_the_command_line_counts_and_shows(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("memory/deploy.md", NOTE)
    write("chats/s.jsonl", SAID)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_SOURCES", "memory,sessions")
    monkeypatch.setenv("NOTEWELL_SESSIONS_PATHS", str(root / "chats"))
    assert run(["index"]) == 0
    assert "  redacted 2 github-token, 2 private\n" in capsys.readouterr().out
    assert run(["status"]) == 0
    assert (
        "sources    memory: 1 file, 1 passage; sessions: 1 file, 1 passage\n"
        in capsys.readouterr().out
    )
    assert run(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"] == [
        {"name": "memory", "documents": 1, "chunks": 1},
        {"name": "sessions", "documents": 1, "chunks": 1},
    ]
    assert run(["get", "memory/deploy.md:3"]) == 0
    assert capsys.readouterr().out == "The token is [redacted:github-token] for now.\n"
    assert run(["get", "memory/deploy.md:3", "--raw"]) == 0
    assert capsys.readouterr().out == f"The token is {TOKEN} for now.\n"
    assert run(["search", "today", "--source", "sessions", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [(r["citation"], r["origin"], r["source"]) for r in found] == [
        ("chats/s.jsonl#L1", "owner", "sessions")
    ]


CATASTROPHIC = "(a+)+$"


def test_patterns_of_a_workspace_file_are_not_used_without_a_linear_engine(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    write("notewell.toml", f"[redact]\npatterns = ['{CATASTROPHIC}', 'hush']")
    write("memory/a.md", "hush " + "a" * 40 + "!")
    with Memory.open(root, embed__model="none") as memory:
        found = memory.search("hush")
        assert "hush" in found.hits[0].chunk.text
    (notice,) = [n for n in found.notices if n.code == "redaction_not_used"]
    assert "2 of redact.patterns in the workspace's notewell.toml are not used" in notice.message
    assert "notewell[re2]" in notice.hint
    assert "your own settings file" in notice.hint
    monkeypatch.setenv("NOTEWELL_REDACT_PATTERNS", "hush")
    with Memory.open(root, embed__model="none") as memory:
        assert "[redacted:pattern]" in memory.search("a" * 40).hits[0].chunk.text, (
            "the user's own are used"
        )


def test_patterns_of_a_workspace_file_run_in_linear_time(root: Path, write: Write) -> None:
    pytest.importorskip("re2")
    odd = "'(?=x)y', '(', 'a*', '(a{1,1000}){1,1000}'"
    write("notewell.toml", f"[redact]\npatterns = ['{CATASTROPHIC}', 'hush-\\d+', {odd}]")
    write("memory/a.md", "The word is hush-42, é.\n\n" + ("a" * 4000 + "!\n") * 100)
    with no_hang(), Memory.open(root, embed__model="none") as memory:
        found = memory.search("word")
    assert "The word is [redacted:pattern], é." in found.hits[0].chunk.text
    (notice,) = [n for n in found.notices if n.code == "redaction_not_used"]
    assert "4 of redact.patterns" in notice.message


def test_an_engine_that_comes_or_goes_makes_the_index_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("re2")
    used = Redactor((), ("hush",)).signature
    monkeypatch.setitem(sys.modules, "re2", None)
    assert Redactor((), ("hush",)).signature == Redactor().signature != used
