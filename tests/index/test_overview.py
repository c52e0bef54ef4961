"""What is remembered, at a glance."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.index.overview import Overview, overview, stamp
from notewell.memory import Memory
from notewell.types import Filters
from tests.conftest import Write


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    write(
        "memory/2026-05-06.md",
        "# Log\n\n## Staging\n\nThe staging port is 8081. #ports\n",
        age_s=10 * 86_400,
    )
    write(
        "memory/2026-09-03.md",
        "# Log\n\n## 09:30\n\nThe staging port is 9443 now. `#code` http://a.example/#at\n",
    )
    write(
        "memory/2026-11-02.md", "# Log\n\n## Staging\n\nThe staging port is 9600 now. #ports #ops\n"
    )
    write(
        "memory/tea.md",
        (
            "---\npinned: true\n---\n# Tea\n\nTea is served at four in the garden behind the old "
            "house.\n"
        ),
    )
    write("memory/copy.md", "# Copy\n\nTea is served at four in the garden behind the old house.\n")
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        yield memory


def seen(memory: Memory, as_of: dt.date | None = None) -> Overview:
    return overview(memory.store, Filters(as_of=as_of), memory.root)


def test_everything_is_counted(memory: Memory) -> None:
    found = seen(memory)
    assert (found.notes, found.conversations, found.passages) == (5, 0, 5)
    assert [d.day for d in found.days][:3] == ["2026-05-06", "2026-09-03", "2026-11-02"]
    assert [one.path for one in found.pinned] == ["memory/tea.md"]


def test_topics_are_headings_and_tags_by_use(memory: Memory) -> None:
    found = [(t.name, t.kind, t.count) for t in seen(memory).topics]
    assert found[:3] == [("Log", "heading", 3), ("ports", "tag", 2), ("Staging", "heading", 2)]
    assert ("ops", "tag", 1) in found
    assert not {"09:30", "code", "at"} & {name for name, _, _ in found}


def test_a_tag_of_the_front_matter_is_one_of_all_passages_of_its_note(
    memory: Memory, write: Write
) -> None:
    write(
        "memory/boat.md",
        "---\ntags: [sailing, '#ports']\n---\n# Boat\n\nA boat. #sailing\n\n## Sail\n\nA sail.\n",
    )
    write("memory/later.md", "---\ndate: 2026-12-01\ntag: sailing\n---\n# Later\n\nMore.\n")
    memory.sync()
    found = {t.name: t.count for t in seen(memory).topics if t.kind == "tag"}
    assert found == {"ports": 4, "sailing": 3, "ops": 1}
    then = {t.name: t.count for t in seen(memory, dt.date(2026, 10, 1)).topics if t.kind == "tag"}
    assert then == {"ports": 3, "sailing": 2}
    assert memory.trace("memory/boat.md", direction="both")[0].hops == (), "a tag is not a link"


def test_what_somebody_said_to_contradict_is_in_dispute_until_it_is_settled(
    memory: Memory, write: Write
) -> None:
    front = "---\nconflicts_with: memory/tea.md\n---\n"
    write(
        "memory/cake.md",
        f"{front}# Cake\n\nThere is cake.\n\n## When\n\nTea is served at noon, not at four.\n",
    )
    memory.sync()
    [first] = [c for c in seen(memory).conflicts if "staging" not in c.text]
    assert {first.chunk.path, first.other.path} == {"memory/cake.md", "memory/tea.md"}
    assert "at noon" in f"{first.text} {first.other_text}", "the passages that have most in common"
    before = stamp(memory.store, memory.root)
    memory.link("memory/copy.md", "conflicts_with", "memory/2026-05-06.md")
    assert stamp(memory.store, memory.root) != before
    assert "memory/copy.md" in {c.other.path for c in seen(memory).conflicts}
    tea = memory.store.documents.chunks_of("memory/tea.md")[0]
    settled = (
        f"# Cake\n\n## When\n\nTea is served at noon, not at four.\n<!-- supersedes: {tea.id} -->\n"
    )
    write("memory/cake.md", front + settled)
    memory.sync()
    assert not any("memory/cake.md" in (c.chunk.path, c.other.path) for c in seen(memory).conflicts)


def test_the_newest_of_several_is_set_against_each_of_the_others(memory: Memory) -> None:
    found = [(c.text, c.other_text) for c in seen(memory).conflicts]
    assert {newer for newer, _ in found} == {"The staging port is 9600 now."}
    assert {older[:24] for _, older in found} == {
        "The staging port is 8081",
        "The staging port is 9443",
    }


def test_what_was_replaced_is_not_in_dispute(memory: Memory, write: Write) -> None:
    old = memory.store.documents.chunks_of("memory/2026-05-06.md")[0]
    text = (
        "# Log\n\n## Staging\n\nThe staging port is 9600 now. #ports #ops\n<!-- supersedes: "
        f"{old.id} -->\n"
    )
    write("memory/2026-11-02.md", text)
    memory.sync()
    assert [c.other.path for c in seen(memory).conflicts] == ["memory/2026-09-03.md"]


def test_copies_are_listed_under_the_one_that_is_shown(memory: Memory) -> None:
    [copies] = seen(memory).copies
    assert copies.chunk.path == "memory/tea.md"
    assert [one.partition("#")[0] for one in copies.others] == ["memory/copy.md"]


def test_what_changed_lately_is_new_or_changed(memory: Memory, write: Write) -> None:
    write("memory/copy.md", "# Copy\n\nTea is served at five.\n\n## More\n\nAnd cake.\n", age_s=0.0)
    memory.sync()
    write("memory/copy.md", "# Copy\n\nTea is served at six.\n\n## More\n\nAnd cake.\n", age_s=0.0)
    memory.sync()
    found = {one.path: one.what for one in seen(memory).lately}
    assert next(iter(found)) == "memory/copy.md"
    assert found["memory/tea.md"] == "added"
    assert found["memory/2026-05-06.md"] == "changed"


def test_lately_was_another_time_on_a_day_before(memory: Memory, write: Write) -> None:
    found = {one.path: (one.when, one.what) for one in seen(memory, dt.date(2026, 10, 1)).lately}
    assert found == {
        "memory/2026-09-03.md": ("2026-09-03", "added"),
        "memory/2026-05-06.md": ("2026-05-06", "added"),
    }, "what has no day of its own and changed since may not have been there"


def test_only_settled_notes_may_count_as_never_shown(memory: Memory) -> None:
    assert seen(memory).settled == ("memory/2026-05-06.md",)


def test_as_of_a_day_nothing_later_is_there(memory: Memory) -> None:
    found = seen(memory, dt.date(2026, 9, 30))
    assert [d.day for d in found.days][:2] == ["2026-05-06", "2026-09-03"]
    assert found.notes == 4
    assert [(c.chunk.path, c.other.path) for c in found.conflicts] == [
        ("memory/2026-09-03.md", "memory/2026-05-06.md")
    ]
    assert "ops" not in {t.name for t in found.topics}


def test_the_stamp_changes_with_what_it_stands_for(memory: Memory, write: Write) -> None:
    before = stamp(memory.store, memory.root)
    assert stamp(memory.store, memory.root) == before
    write("memory/new.md", "# New\n\nSomething else.\n")
    memory.sync()
    assert stamp(memory.store, memory.root) != before


def test_an_empty_memory_has_an_empty_overview(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embed__model="none") as memory:
        found = seen(memory)
        assert (found.notes, found.days, found.topics, found.conflicts) == (0, (), (), ())
