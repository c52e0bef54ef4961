"""Forgetting what stands in a transcript: whichever way it is named, no byte of it stays or comes
back.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.types import Filters
from tests.conftest import Write
from tests.notes.test_forget import FORGOTTEN, bytes_of, has_none

NOW = dt.datetime(2026, 4, 1, 12, 0)  # noqa: DTZ001 - the day of this place
CHAT = "chats/talk.jsonl"


def turn(role: str, text: str, at: str = "2026-03-19T09:00:00") -> str:
    return json.dumps({"role": role, "content": text, "timestamp": at}, ensure_ascii=False) + "\n"


def opened(root: Path) -> Memory:
    (root / "chats").mkdir(exist_ok=True)
    return Memory.open(
        root, sources="memory,sessions", sessions__paths=str(root / "chats"), embed__model="hashed"
    )


@pytest.fixture
def talk(root: Path, write: Write) -> Iterator[Memory]:
    """A conversation that begins with the text, so that its title and every heading have it too."""
    write("memory/a.md", "# Garden\n\nTulips are planted in October.\n")
    said = [turn("user", FORGOTTEN)]
    said += [
        turn("assistant" if n % 2 else "user", f"Answer {n} about subject{n}.")
        for n in range(1, 30)
    ]
    write(CHAT, "".join(said))
    with opened(root) as memory:
        memory.sync()
        yield memory


def _by_id(memory: Memory) -> dict[str, str]:
    return {"reference": memory.search("quixotic xylophone", now=NOW).hits[0].chunk.id}


SELECTORS: dict[str, Callable[[Memory], dict[str, str]]] = {
    "id": _by_id,
    "lines": lambda _: {"reference": f"{CHAT}:1"},
    "several lines": lambda _: {"reference": f"{CHAT}:1-3"},
    "query": lambda _: {"query": "quixotic xylophone"},
    "session": lambda _: {"session": "talk"},
    "path": lambda _: {"reference": CHAT},
}


@pytest.mark.parametrize("how", SELECTORS)
def test_no_byte_stays_or_comes_back(talk: Memory, root: Path, how: str) -> None:
    assert not has_none(bytes_of(root / ".notewell"))
    receipt = talk.forget(**SELECTORS[how](talk), yes=True, now=NOW)  # type: ignore[arg-type]
    assert receipt.proved, receipt
    assert receipt.chunks > 0
    assert has_none(bytes_of(root / ".notewell"))
    whole = how in ("session", "path")
    assert (
        bool(talk.search("subject9", filters=Filters(source="sessions"), now=NOW).hits) is not whole
    )
    with (root / CHAT).open("a") as file:
        file.write(
            turn("user", "We paint the fence on Friday.") + turn("user", f"As I said: {FORGOTTEN}")
        )
    assert talk.search("paint the fence", now=NOW).hits[0].chunk.start_line == 31
    assert not talk.forget(query="quixotic").pieces
    talk.sync(force=True)
    assert has_none(bytes_of(root / ".notewell"))
    talk.close()
    for place in (root / ".notewell").glob("index.sqlite*"):
        place.unlink()
    with opened(root) as again:
        again.sync()
        assert again.search("paint the fence", now=NOW).hits
    assert has_none(bytes_of(root / ".notewell"))


def test_a_query_takes_the_turn_alone_and_leaves_those_beside_it(root: Path, write: Write) -> None:
    said = ("The oven heats slowly.", FORGOTTEN, "Bread needs forty minutes.")
    write(CHAT, turn("user", "Hello there.") + "".join(turn("assistant", text) for text in said))
    with opened(root) as memory:
        memory.sync()
        receipt = memory.forget(query="quixotic", yes=True, now=NOW)
        assert [p.text for p in receipt.pieces] == [FORGOTTEN]
        assert receipt.proved
        (kept,) = [c.text for c in memory.store.documents.chunks_of(CHAT) if c.origin == "agent"]
        assert kept == "The oven heats slowly.\n\nBread needs forty minutes."
    assert has_none(bytes_of(root / ".notewell"))


def test_a_note_that_quotes_a_transcript_takes_it_along(
    talk: Memory, root: Path, write: Write
) -> None:
    write("memory/quote.md", f"# Quote\n\n{FORGOTTEN}\n\nIt rained.\n")
    talk.sync()
    receipt = talk.forget(
        "memory/quote.md:3", yes=True, everywhere=True, from_files=True, backup=False, now=NOW
    )
    assert [f.path for f in receipt.files] == ["memory/quote.md"]
    assert receipt.proved, receipt
    assert has_none(bytes_of(root / ".notewell"))


def test_long_turns_with_unbroken_words_go_whole(root: Path, write: Write) -> None:
    blob = "quixoticxylophone" * 150
    write(
        CHAT,
        turn("user", f"Look at this. {blob} And at {FORGOTTEN}")
        + turn("assistant", "I looked at it."),
    )
    with opened(root) as memory:
        memory.sync()
        receipt = memory.forget(session="talk", yes=True, now=NOW)
        assert receipt.proved
        assert has_none(bytes_of(root / ".notewell"))
        for chunk in memory.store.documents.chunks_of(CHAT):
            assert "looked" not in chunk.text


def test_each_passage_of_a_long_turn_can_go_by_its_id(root: Path, write: Write) -> None:
    blob = "quixoticxylophone" * 150
    write(
        CHAT,
        turn("user", f"Look at this. {blob} And at {FORGOTTEN}")
        + turn("assistant", "I looked at it."),
    )
    with opened(root) as memory:
        memory.sync()
        while found := [c for c in memory.store.documents.chunks_of(CHAT) if c.origin == "owner"]:
            assert memory.forget(found[0].id, yes=True, now=NOW).proved
            assert found[0].id not in {c.id for c in memory.store.documents.chunks_of(CHAT)}
    assert has_none(bytes_of(root / ".notewell"))


def test_the_name_that_an_agent_gave_a_session_goes_with_it(root: Path, write: Write) -> None:
    named = (
        json.dumps(
            {
                "type": "summary",
                "summary": "Quixotic xylophone of the Lisbon vault",
                "leafUuid": "x",
            }
        )
        + "\n"
    )
    write(CHAT, named + turn("user", "Which code is it?") + turn("assistant", "Seven four nine."))
    with opened(root) as memory:
        memory.sync()
        assert memory.store.documents.chunks_of(CHAT)[0].facts.title.startswith("Quixotic")
        assert memory.forget(session="talk", yes=True, now=NOW).proved
        with (root / CHAT).open("a") as file:
            file.write(turn("user", "We paint the fence on Friday."))
        memory.sync(force=True)
        assert [c.text for c in memory.store.documents.chunks_of(CHAT)] == [
            "We paint the fence on Friday."
        ]
    assert has_none(bytes_of(root / ".notewell"))
