"""Versions of a statement over time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.notes.statements import statements
from notewell.types import Filters
from tests.conftest import Write


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    write("memory/2026-05-06.md", "# Staging\n\nThe staging port is 8081.\n")
    write("memory/2026-09-03.md", "# Staging\n\nThe staging port is 9443 now. Lunch was late.\n")
    write("memory/2026-11-02.md", "# Staging\n\nThe staging port is 9600 now.\n")
    write("memory/2026-11-03.md", "# Garden\n\nTulips were planted by the fence.\n")
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        yield memory


def told(
    memory: Memory, path: str, as_of: dt.date | None = None
) -> list[tuple[str, list[tuple[str, str]]]]:
    found = statements(memory.store, memory.store.documents.chunks_of(path), Filters(as_of=as_of))
    return [(s.subject, [(v.text, f"{v.since} {v.until}") for v in s.versions]) for s in found]


def test_each_version_holds_until_the_next(memory: Memory) -> None:
    expected = [
        ("The staging port is 8081.", "2026-05-06 2026-09-03"),
        ("The staging port is 9443 now.", "2026-09-03 2026-11-02"),
        ("The staging port is 9600 now.", "2026-11-02 None"),
    ]
    for path in ("memory/2026-05-06.md", "memory/2026-09-03.md", "memory/2026-11-02.md"):
        assert told(memory, path) == [("staging port", expected)]


@pytest.mark.parametrize(
    ("second", "texts"),
    [
        ("The staging port is 9443 since Monday.", ["8081", "9443 now", "9600"]),
        ("The staging port is 9443 since 3 September;", ["8081", "9443 now", "9600"]),
        ("The staging port is not 9443.", ["8081", "9443 now", "not 9443", "9600"]),
        ("The staging port is 9500 and not 9443.", ["8081", "9443 now", "9500", "9600"]),
    ],
)
def test_a_version_that_says_the_same_as_the_one_before_adds_nothing(
    memory: Memory, write: Write, second: str, texts: list[str]
) -> None:
    write("memory/2026-09-09.md", f"# Staging\n\n{second}\n")
    memory.sync()
    old = memory.store.documents.chunks_of("memory/2026-09-09.md")[0]
    write(
        "memory/2026-11-02.md",
        f"# Staging\n\nThe staging port is 9600 now.\n<!-- supersedes: {old.id} -->\n",
    )
    memory.sync()
    [(_, versions)] = told(memory, "memory/2026-11-02.md")
    assert [text for text, _ in versions if not any(part in text for part in texts)] == []
    assert len(versions) == len(texts)


def test_as_of_a_day_nothing_later_is_known(memory: Memory) -> None:
    [(_, versions)] = told(memory, "memory/2026-05-06.md", dt.date(2026, 10, 1))
    assert [span for _, span in versions] == ["2026-05-06 2026-09-03", "2026-09-03 None"]


def test_what_nothing_contradicts_has_no_versions(memory: Memory) -> None:
    assert told(memory, "memory/2026-11-03.md") == []


def test_a_correction_is_the_newest_version(memory: Memory) -> None:
    old = memory.store.documents.chunks_of("memory/2026-11-03.md")[0]
    memory.remember(
        "Tulips were planted by the gate, not by the fence.",
        supersedes=old.id,
        now=dt.datetime(2026, 11, 4, 9, 0),  # noqa: DTZ001
    )
    memory.sync()
    [(subject, versions)] = told(memory, "memory/2026-11-03.md")
    assert subject == "Tulips planted fence"
    assert [span for _, span in versions] == ["2026-11-03 2026-11-04", "2026-11-04 None"]


def test_copies_are_one_version(memory: Memory, write: Write) -> None:
    write("memory/2026-11-05.md", "# Staging\n\nThe staging port is 9600 now.\n")
    memory.sync()
    [(_, versions)] = told(memory, "memory/2026-11-02.md")
    assert [text for text, _ in versions].count("The staging port is 9600 now.") == 1
