"""What came before and after, over all sources."""

from __future__ import annotations

import datetime as dt
import os

import pytest

from notewell.errors import NotFoundError, UsageError
from notewell.memory import Memory
from notewell.notes.timeline import Entry, around_days, around_passage, latest
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Chunk, Document, Facts, Filters
from tests.conftest import Write
from tests.store.made import put_document

ALL = Filters()


def shown(entries: list[Entry]) -> list[str]:
    return [("*" if e.here else "") + e.chunk.path.removeprefix("memory/") for e in entries]


@pytest.fixture
def notes(write: Write) -> None:
    for day in range(1, 10):
        write(f"memory/2026-05-0{day}.md", f"on day {day}")


@pytest.mark.usefixtures("notes")
def test_neighbours_of_a_note_a_day_and_now(memory: Memory) -> None:
    entries, notices = memory.timeline("memory/2026-05-05.md", window=2)
    assert shown(entries) == [f"{'*' if d == 5 else ''}2026-05-0{d}.md" for d in range(3, 8)]
    assert [e.when for e in entries][2] == "2026-05-05"
    assert notices == []
    day = dt.date(2026, 5, 5)
    entries, _ = memory.timeline(around=(day, day), window=2)
    assert shown(entries) == [f"{'*' if d == 5 else ''}2026-05-0{d}.md" for d in range(3, 8)]
    entries, _ = memory.timeline(window=3)
    assert shown(entries) == [f"2026-05-0{d}.md" for d in (7, 8, 9)]
    entries, _ = memory.timeline(around=(dt.date(2026, 6, 1), dt.date(2026, 6, 30)), window=2)
    assert shown(entries) == ["2026-05-08.md", "2026-05-09.md"], "an empty month still has a before"
    short = memory.search("day 1", sync=False).hits[0].chunk.id
    entries, _ = memory.timeline(short, window=1)
    assert shown(entries)[0] == "*2026-05-01.md"


def test_a_whole_note_is_marked_and_a_passage_alone(memory: Memory, write: Write) -> None:
    write("memory/2026-05-01.md", "# A\n\none\n\n# B\n\ntwo\n")
    write("memory/2026-05-02.md", "three")
    assert [e.here for e in memory.timeline("memory/2026-05-01.md")[0]] == [True, True, False]
    assert [e.here for e in memory.timeline("memory/2026-05-01.md#b")[0]] == [False, True, False]


def test_an_undated_note_counts_by_its_file(memory: Memory, write: Write) -> None:
    place = write("memory/plan.md", "evergreen plan")
    changed = dt.datetime(2026, 5, 2, 12).timestamp()  # noqa: DTZ001 - the days of this place
    os.utime(place, (changed, changed))
    write("memory/2026-05-01.md", "before")
    write("memory/2026-05-03.md", "after")
    entries, _ = memory.timeline()
    assert [(e.when, e.by) for e in entries] == [
        ("2026-05-01", "date"),
        ("2026-05-02T12:00:00", "file"),
        ("2026-05-03", "date"),
    ]


@pytest.mark.usefixtures("notes")
def test_filters_bind_the_neighbours(memory: Memory, write: Write) -> None:
    write("memory/team/2026-05-05-x.md", "---\norigin: agent\n---\nby an agent")
    entries, _ = memory.timeline(filters=Filters(origin="agent"))
    assert shown(entries) == ["team/2026-05-05-x.md"]
    entries, _ = memory.timeline(
        "memory/2026-05-03.md", filters=Filters(path="memory/team"), window=5
    )
    assert shown(entries) == ["*2026-05-03.md", "team/2026-05-05-x.md"]
    assert memory.timeline(filters=Filters(source="extra"))[0] == []


@pytest.mark.usefixtures("notes")
def test_a_wrong_question_is_refused(memory: Memory) -> None:
    with pytest.raises(UsageError, match="window"):
        memory.timeline(window=0)
    with pytest.raises(UsageError, match="both"):
        memory.timeline("memory/2026-05-03.md", around=(dt.date(2026, 5, 1), dt.date(2026, 5, 1)))
    with pytest.raises(NotFoundError):
        memory.timeline("nothing")


def turn(n: int, time: str, path: str = "chat.jsonl") -> Chunk:
    at = dt.datetime.fromisoformat(time)
    return Chunk(
        f"{path}{n}", path, "sessions", n, n, (), f"turn {n}", f"{path}{n}", time=at, origin="agent"
    )


@pytest.fixture
def store() -> SqliteStore:
    """Two conversations that interleave, and a note of the same day."""
    store = SqliteStore(None)
    for path, times in (
        ("a.jsonl", ("09:00", "11:00", "13:00")),
        ("b.jsonl", ("10:00", "11:00", "12:00")),
    ):
        chunks = [turn(n, f"2026-05-05T{t}:00", path) for n, t in enumerate(times, start=1)]
        put_document(store, Document(path, "sessions", 1, 1, ""), path, Facts(), chunks)
    note = Chunk(
        "note", "2026-05-05.md", "memory", 1, 1, (), "note", "h", Facts(date=dt.date(2026, 5, 5))
    )
    put_document(store, Document(note.path, "memory", 1, 1, ""), "d", note.facts, [note])
    return store


def test_turns_stand_by_their_own_times_and_ties_by_path_and_line(store: SqliteStore) -> None:
    found = latest(store, window=10, filters=ALL)
    assert [e.chunk.id for e in found] == [
        "note",
        "a.jsonl1",
        "b.jsonl1",
        "a.jsonl2",
        "b.jsonl2",
        "b.jsonl3",
        "a.jsonl3",
    ]
    (chunk,) = store.documents.chunks_by_id("b.jsonl2")
    near = around_passage(store, chunk, window=1, filters=ALL)
    assert [(e.chunk.id, e.here) for e in near] == [
        ("a.jsonl2", False),
        ("b.jsonl2", True),
        ("b.jsonl3", False),
    ]
    whole = around_passage(store, chunk, window=2, filters=ALL, whole=True)
    assert [e.chunk.id for e in whole if e.here] == ["b.jsonl1", "b.jsonl2", "b.jsonl3"]


def test_a_full_day_is_shown_from_its_beginning(store: SqliteStore) -> None:
    day = dt.date(2026, 5, 5)
    found = around_days(store, day, day, window=2, filters=ALL)
    assert [e.chunk.id for e in found] == ["note", "a.jsonl1", "b.jsonl1", "a.jsonl2"]
    assert all(e.here for e in found)
    assert around_passage(store, None, window=2, filters=ALL) == []


def test_the_days_themselves_do_not_push_their_neighbours_out(store: SqliteStore) -> None:
    late = Chunk(
        "late", "2026-05-06.md", "memory", 1, 1, (), "late", "l", Facts(date=dt.date(2026, 5, 6))
    )
    put_document(store, Document(late.path, "memory", 1, 1, ""), "d", late.facts, [late])
    day = dt.date(2026, 5, 5)
    assert around_days(store, day, day, window=4, filters=ALL)[-1].chunk.id == "late"
