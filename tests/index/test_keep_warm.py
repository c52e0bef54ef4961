"""A memory in a process that stays: no look and no work where nothing changed, and never an old
answer.
"""

from __future__ import annotations

import datetime as dt
import threading
from pathlib import Path
from typing import Any

import pytest

from notewell.memory import Memory
from notewell.sources.files import FileSource
from tests.conftest import CountingEmbedder, Write

NOW = dt.datetime(2026, 6, 1, 12, 0)  # noqa: DTZ001 - the day of this place


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts looks at the files."""
    seen: list[int] = []
    scan = FileSource.scan_changes

    def counted(self: FileSource, *given: object, **more: object) -> object:
        seen.append(1)
        return scan(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(FileSource, "scan_changes", counted)
    return seen


@pytest.fixture
def staying(memory: Memory, write: Write) -> Memory:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081.\n")
    memory.keep_warm()
    memory.search("staging port", now=NOW)
    return memory


def test_a_search_looks_only_at_what_has_changed(
    staying: Memory, write: Write, looks: list[int]
) -> None:
    for _ in range(3):
        staying.search("staging port", now=NOW)
    assert looks == []
    for n in range(5):
        write(f"memory/new-{n}.md", f"A walrus number {n} was seen.\n", age_s=0)
        found = staying.search(f"walrus number {n}", now=NOW)
        assert f"walrus number {n}" in found.hits[0].chunk.text
    assert looks == [], "at all files"


def test_the_same_question_is_answered_once(staying: Memory, embedder: CountingEmbedder) -> None:
    first = staying.search("the staging port", now=NOW)
    again = staying.search("the staging port", now=NOW.replace(second=30))
    assert (again.hits, again.mode) == (first.hits, "hybrid")
    assert again.trace is first.trace
    assert embedder.queries.count("the staging port") == 1


@pytest.mark.parametrize(
    "change", ["limit", "profile", "minute", "min_score", "include_superseded"]
)
def test_another_question_is_another_answer(staying: Memory, change: str) -> None:
    first = staying.search("the staging port", now=NOW)
    more: dict[str, dict[str, Any]] = {
        "limit": {"limit": 1},
        "profile": {"profile": "lexical"},
        "min_score": {"min_score": 0.9},
    }
    more |= {
        "minute": {"now": NOW + dt.timedelta(days=90)},
        "include_superseded": {"include_superseded": True},
    }
    again = staying.search("the staging port", **{"now": NOW, **more[change]})
    assert again.trace is not first.trace


def test_an_answer_is_made_anew_when_the_notes_change(
    staying: Memory, write: Write, root: Path
) -> None:
    assert "8081" in staying.search("staging port", now=NOW).hits[0].chunk.text
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 9090.\n", age_s=0)
    assert "9090" in staying.search("staging port", now=NOW).hits[0].chunk.text
    (root / "memory/2026-02-10.md").unlink()
    assert staying.search("staging port", now=NOW).hits == ()


def test_what_is_remembered_or_forgotten_changes_the_answer(staying: Memory) -> None:
    done = staying.remember("The staging port is 7070 in truth.", file="memory/truth.md")
    assert done.id in {h.chunk.id for h in staying.search("staging port", now=NOW).hits}
    staying.forget(done.id, yes=True)
    assert done.id not in {h.chunk.id for h in staying.search("staging port", now=NOW).hits}


def test_a_memory_with_other_sources_looks_every_time(
    root: Path, write: Write, looks: list[int]
) -> None:
    write("notes/a.md", "The staging port is 8081.\n")
    with Memory.open(root, embed__model="hashed", extra_paths="notes") as memory:
        memory.keep_warm()
        for n in range(3):
            write("notes/a.md", f"The staging port is 808{n}.\n", age_s=0)
            assert f"808{n}" in memory.search("staging port", now=NOW).hits[0].chunk.text
    assert len(looks) >= 3


def test_many_threads_get_the_same_answer_while_notes_come_and_go(
    staying: Memory, write: Write
) -> None:
    wrong: list[str] = []

    def ask() -> None:
        for _ in range(20):
            found = staying.search("staging port", now=NOW)
            if not any("8081" in h.chunk.text for h in found.hits):
                wrong.append(str(found.notices))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for n in range(20):
        write(f"memory/other-{n}.md", f"Soup number {n}.\n", age_s=0)
    for thread in threads:
        thread.join()
    assert wrong == []
    assert "Soup number 19" in staying.search("soup number 19", now=NOW).hits[0].chunk.text
