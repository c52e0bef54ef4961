"""Days, the newest first."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.notes import day_list
from notewell.types import Filters
from tests.conftest import Write


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    for day in range(1, 29):
        write(
            f"memory/2026-02-{day:02}.md",
            f"# Day {day}\n\n## Garden\n\nTulips were watered {day} times.\n",
        )
        write(
            f"memory/2026-03-{day:02}.md",
            f"# Day {day}\n\nOnly **{day}** words.\n\n## Later\n\nAnd a walk.\n",
        )
    write("memory/2026-03-28-more.md", "# More\n\nSomething else happened.\n")
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        yield memory


def test_days_come_newest_first_with_their_notes(memory: Memory) -> None:
    found, more = day_list.days(memory.store, Filters())
    assert [one.day for one in found[:2]] == ["2026-03-28", "2026-03-27"]
    first, second = found[0].entries
    assert (first.path, first.title, first.topics) == ("memory/2026-03-28-more.md", "More", ())
    assert (second.title, second.topics, second.first_line) == (
        "Day 28",
        ("Later",),
        "Only **28** words.",
    )
    assert second.citation.startswith("memory/2026-03-28.md#L3")
    assert (len(found), more) == (30, "2026-02-26")


def test_the_rest_begins_where_the_first_part_ended(memory: Memory) -> None:
    found, more = day_list.days(memory.store, Filters(until=dt.date(2026, 2, 26)))
    assert (found[0].day, found[-1].day, len(found), more) == ("2026-02-26", "2026-02-01", 26, None)


def test_days_of_a_period_or_as_of_a_day(memory: Memory) -> None:
    found, _ = day_list.days(
        memory.store, Filters(since=dt.date(2026, 3, 2), until=dt.date(2026, 3, 3))
    )
    assert [one.day for one in found] == ["2026-03-03", "2026-03-02"]
    found, _ = day_list.days(memory.store, Filters(as_of=dt.date(2026, 2, 2)))
    assert [one.day for one in found] == ["2026-02-02", "2026-02-01"]
    assert day_list.days(memory.store, Filters(until=dt.date(2020, 1, 1))) == ([], None)


def test_no_day_is_cut_where_there_is_more_than_fits(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_list, "_MOST_MOMENTS", 8)
    found, more = day_list.days(memory.store, Filters())
    assert [len(one.entries) for one in found][:2] == [2, 1]
    again, _ = day_list.days(memory.store, Filters(until=dt.date.fromisoformat(more or "")))
    assert again[0].day < found[-1].day
