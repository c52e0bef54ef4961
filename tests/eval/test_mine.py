"""Questions proposed from somebody's own notes."""

from __future__ import annotations

import re

from notewell.eval.sets import from_rows, propose
from notewell.memory import Memory
from notewell.types import Chunk
from tests.conftest import Write

NOTES = {
    "memory/router.md": (
        "# Home network\n\n## Router in the hall\n\n"
        "The Fritz router stands in the hall beside the meter cabinet.\n"
        "Its password is printed on the back, under the serial number of the device.\n"
    ),
    "memory/tea.md": (
        "# Green tea recipe\n\n"
        "Steep gunpowder leaves for three minutes in water of eighty degrees.\n"
        "Rinse the porcelain pot before, and never use the samovar for green leaves.\n"
    ),
    "memory/short.md": "# Short\n\nToo short.\n",
}


def notes(memory: Memory, write: Write) -> list[Chunk]:
    for path, text in NOTES.items():
        write(path, text)
    memory.sync()
    return [
        c
        for path in sorted(memory.store.documents.stored())
        for c in memory.store.documents.chunks_of(path)
    ]


def test_three_kinds_of_questions_expect_lines_that_exist(memory: Memory, write: Write) -> None:
    rows = propose(memory.store, notes(memory, write))
    assert {row["type"] for row in rows} == {"terms", "heading", "paraphrase"}
    for row in rows:
        path, first, last = re.fullmatch(r"(.+)#(\d+)-(\d+)", row["expect"]).groups()  # type: ignore[union-attr]
        lines = NOTES[path].splitlines()
        assert 1 <= int(first) <= int(last) <= len(lines)
    headings = {row["query"]: row["expect"] for row in rows if row["type"] == "heading"}
    assert headings == {
        "Router in the hall": "memory/router.md#5-6",
        "Green tea recipe": "memory/tea.md#3-4",
    }


def test_terms_stand_in_the_lines_expected_and_a_paraphrase_lacks_them(
    memory: Memory, write: Write
) -> None:
    rows = propose(memory.store, notes(memory, write))
    for row in rows:
        text = NOTES[row["expect"].partition("#")[0]]
        assert all(word in text for word in row["query"].split())
    terms = {row["expect"]: set(row["query"].split()) for row in rows if row["type"] == "terms"}
    for row in rows:
        if row["type"] == "paraphrase":
            assert not terms[row["expect"]] & set(row["query"].split())


def test_the_same_notes_give_the_same_questions_in_whatever_order(
    memory: Memory, write: Write
) -> None:
    chunks = notes(memory, write)
    assert propose(memory.store, chunks) == propose(memory.store, chunks[::-1])


def test_no_more_than_was_asked_for_and_none_twice(memory: Memory, write: Write) -> None:
    chunks = notes(memory, write)
    every = propose(memory.store, chunks)
    assert propose(memory.store, chunks, most=2) == every[:2]
    assert len({row["query"] for row in every}) == len(every)
    assert all("short" not in row["expect"] for row in every), (
        "a note of two words makes no question"
    )


def test_what_is_proposed_can_be_measured(memory: Memory, write: Write) -> None:
    rows = propose(memory.store, notes(memory, write))
    found = from_rows("mined", rows)
    assert len(found.questions) == len(rows)
    assert all(q.answerable and q.spans for q in found.questions)
