"""Transcripts through the engine into the store, and out again by search and get."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.errors import NotFoundError
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.sources.files import FileSource
from notewell.sources.sessions.session_source import SessionSource
from notewell.store.sqlite.store import SqliteStore
from notewell.text.chunk import ChunkSize
from notewell.text.redact import Redactor
from notewell.types import Chunk, Filters, Found, SyncReport
from tests.conftest import CountingEmbedder, Write
from tests.growth import calls_of

SMALL = ChunkSize(60, 10)


def record(role: str, text: str, at: str = "2026-03-19T09:00:00") -> str:
    return json.dumps({"role": role, "content": text, "timestamp": at}, ensure_ascii=False) + "\n"


class Chat:
    """A transcript in the workspace and an index of it."""

    def __init__(self, root: Path, size: ChunkSize = SMALL) -> None:
        self.file = root / "chat.jsonl"
        self.file.touch()
        self.store = SqliteStore(None)
        self.engine = Walk(
            [SessionSource(root, paths=["chat.jsonl"])], self.store, size, redactor=Redactor()
        )

    def write(self, text: str | bytes) -> None:
        with self.file.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def sync(self) -> SyncReport:
        return self.engine.sync()

    @property
    def chunks(self) -> list[Chunk]:
        return self.store.documents.chunks_of("chat.jsonl")


@pytest.fixture
def chat(root: Path) -> Chat:
    return Chat(root)


def shape(chunks: list[Chunk]) -> list[tuple[object, ...]]:
    return sorted(
        (c.id, c.start_line, c.end_line, c.heading, c.text, c.time, c.origin) for c in chunks
    )


def test_a_turn_becomes_a_passage_with_its_line_time_and_origin(chat: Chat) -> None:
    chat.write(
        record("user", "Where does staging run?")
        + record("assistant", "On host birke.", "2026-03-20T10:11:12")
    )
    assert chat.sync().chunks == 2
    first, second = chat.chunks
    assert (first.origin, first.start_line, first.text) == ("owner", 1, "Where does staging run?")
    assert (second.origin, second.citation) == ("agent", "chat.jsonl#L2")
    assert second.time == dt.datetime(2026, 3, 20, 10, 11, 12)  # noqa: DTZ001 - of the clock on the wall
    assert first.heading == second.heading == ("2026-03-19", "Where does staging run?")
    assert (first.facts.title, first.facts.date, first.facts.evergreen) == (
        "Where does staging run?",
        dt.date(2026, 3, 19),
        False,
    )
    assert second.day == dt.date(2026, 3, 20)


def test_lines_of_one_side_in_a_row_share_a_passage_while_they_fit(chat: Chat) -> None:
    chat.write(
        record("user", "go")
        + "".join(record("assistant", f"Step {n} is done now.") for n in range(12))
    )
    chat.sync()
    spoken = [c for c in chat.chunks if c.origin == "agent"]
    assert 1 < len(spoken) < 6
    assert "\n\n".join(c.text for c in spoken) == "\n\n".join(
        f"Step {n} is done now." for n in range(12)
    )
    assert [c.start_line for c in spoken[1:]] == [c.end_line + 1 for c in spoken[:-1]]


def test_an_append_joins_the_last_passage_and_leaves_the_others_alone(chat: Chat) -> None:
    chat.write(record("user", "go") + record("assistant", "One is done."))
    chat.sync()
    rows = {c.text: c.row for c in chat.chunks}
    chat.write(record("assistant", "Two is done."))
    assert (chat.sync().changed, [c.text for c in chat.chunks]) == (
        1,
        ["go", "One is done.\n\nTwo is done."],
    )
    assert chat.chunks[0].row == rows["go"]
    assert chat.chunks[1].end_line == 3


def test_a_sync_without_news_changes_nothing(chat: Chat) -> None:
    chat.write(record("user", "go on then"))
    chat.sync()
    generation = chat.store.generation
    os.utime(chat.file, (1_000_000_000, 1_000_000_000))
    assert chat.sync().unchanged == 1
    assert chat.store.generation == generation
    assert chat.store.documents.stored()["chat.jsonl"].mtime_ns == 10**18


def test_a_long_line_is_cut_into_passages_that_all_point_to_it(chat: Chat) -> None:
    words = " ".join(f"word{n}" for n in range(14_000))
    assert len(words) > 100_000
    chat.write(record("user", "short one") + record("assistant", words))
    chat.sync()
    pieces = [c for c in chat.chunks if c.origin == "agent"]
    assert len(pieces) > 100
    assert {(c.start_line, c.end_line) for c in pieces} == {(2, 2)}
    assert max(len(line) for c in pieces for line in c.text.split("\n")) <= 800
    assert {w for c in pieces for w in c.text.split()} == set(words.split())
    assert len({c.id for c in pieces}) == len(pieces)


def test_headings_of_a_long_answer_are_kept(chat: Chat) -> None:
    chat.write(
        record("user", "tell me")
        + record("assistant", f"---\n# Plan\n\n{'First of all. ' * 40}\n\n# Cost\n\nNone.")
    )
    chat.sync()
    assert {c.heading[-1] for c in chat.chunks if c.origin == "agent"} >= {"Plan", "Cost"}


@pytest.mark.parametrize("again", [record("user", "afresh"), record("user", "afresh") * 3, ""])
def test_a_replaced_file_replaces_its_passages(chat: Chat, again: str) -> None:
    chat.write(record("user", "old words") + record("assistant", "older words"))
    chat.sync()
    chat.file.write_text(again, encoding="utf-8")
    chat.sync()
    assert {t for c in chat.chunks for t in c.text.split("\n\n")} == (
        {"afresh"} if again else set()
    )


def test_a_bad_line_is_reported_with_its_number(chat: Chat) -> None:
    chat.write(record("user", "fine so far") + "{broken\n" + record("user", "and on"))
    report = chat.sync()
    assert [(s.path, s.reason) for s in report.skipped] == [
        ("chat.jsonl", "line 2 is not JSON; the rest was read")
    ]
    assert [c.text for c in chat.chunks] == ["fine so far\n\nand on"]


def test_a_vanished_transcript_goes(chat: Chat) -> None:
    chat.write(record("user", "fine so far"))
    chat.sync()
    chat.file.unlink()
    assert chat.sync().dropped == 1
    assert chat.chunks == []


def test_a_secret_on_a_long_line_goes_before_the_line_is_wrapped(chat: Chat) -> None:
    secret = "ghp_" + "aB3" * 12
    for before in range(760, 800):
        chat.write(record("user", "x" * before + " " + secret + " and more words"))
    report = chat.sync()
    assert report.redacted == {"github-token": 40}
    assert not any("aB3aB3" in c.text for c in chat.chunks)


_turns = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "system"]),
        st.sampled_from(
            ["ok", "yes", "Zürich", "a longer line of words, " * 5, "# H\n\nbody " * 30]
        )
        | st.text(max_size=9),
        st.sampled_from(
            ["2026-03-19T09:00:00", "2026-03-19T23:59:59", "2026-03-20T00:00:00", "", "x"]
        ),
    ),
    max_size=12,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_turns, st.lists(st.floats(0, 1), max_size=5))
def test_read_in_parts_is_read_at_once(
    tmp_path: Path, turns: list[tuple[str, str, str]], cuts: list[float]
) -> None:
    data = "".join(record(*t) for t in turns).encode()
    for name in ("parts", "once"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "chat.jsonl").write_bytes(b"")
    parts, once = Chat(tmp_path / "parts"), Chat(tmp_path / "once")
    places = sorted({int(c * len(data)) for c in cuts} | {len(data)})
    for start, end in zip([0, *places], places, strict=False):
        parts.write(data[start:end])
        parts.sync()
    once.write(data)
    once.sync()
    assert shape(parts.chunks) == shape(once.chunks)
    assert (
        parts.store.documents.stored()["chat.jsonl"].tail
        == once.store.documents.stored()["chat.jsonl"].tail
    )


Open = Callable[..., Memory]


@pytest.fixture
def opened(root: Path, embedder: CountingEmbedder) -> Iterator[Open]:
    """Opens the workspace with its sessions on, as settings of the user's own would."""
    made: list[Memory] = []

    def open_(**flags: Any) -> Memory:
        given: dict[str, Any] = {
            "sources": "memory,sessions",
            "sessions__paths": str(root / "chats"),
            **flags,
        }
        made.append(Memory.open(root, embedder=embedder, **given))
        return made[-1]

    (root / "chats").mkdir()
    yield open_
    for memory in made:
        memory.close()


@pytest.mark.parametrize("turns", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_appended_turns_cost_no_more_each_than_a_few(root: Path, turns: int) -> None:
    few, many = (calls_for_appended(root / f"{count}", count) for count in (turns // 4, turns))
    assert many < 1.5 * 4 * few


def calls_for_appended(root: Path, turns: int) -> int:
    """How many calls of functions the first search takes that finds what was appended to as many
    turns.
    """
    place = root / "chats/long.jsonl"
    place.parent.mkdir(parents=True)
    said = [
        record(
            "assistant" if n % 2 else "user",
            f"Turn {n}: the deploy of service{n * 7 % 911} to host{n % 97} is due, ok?",
        )
        for n in range(2 * turns)
    ]
    place.write_text("".join(said[:turns]), encoding="utf-8")
    own: Any = {
        "sources": "memory,sessions",
        "sessions__paths": str(root / "chats"),
        "embed__model": "none",
    }
    with Memory.open(root, **own, consolidate=False) as memory:
        memory.sync()
        rows = {c.row for c in memory.store.documents.chunks_of("chats/long.jsonl")}
        with place.open("a", encoding="utf-8") as file:
            file.write(
                "".join(said[turns:]) + record("user", "and the zanzibar migration comes last")
            )
        found: list[Found] = []
        calls = calls_of(lambda: found.append(memory.search("zanzibar migration")))
        assert found[0].hits[0].chunk.citation == f"chats/long.jsonl#L{2 * turns + 1}"
        assert rows <= {c.row for c in memory.store.documents.chunks_of("chats/long.jsonl")}
        assert memory.store.counts()["chunks"] == 2 * turns + 1
    return calls


def test_a_hit_points_to_line_and_time_and_get_prints_the_turns(
    root: Path, write: Write, opened: Open
) -> None:
    write("memory/a.md", "The cat is grey.")
    write(
        "chats/s.jsonl",
        record("user", "Where is the zebra?")
        + record("assistant", "In the barn.", "2026-03-20T08:00:00"),
    )
    memory = opened()
    answer, hit = memory.search("zebra").hits[:2]
    assert (answer.chunk.citation, answer.chunk.origin) == ("chats/s.jsonl#L2", "agent"), (
        "before what it answers"
    )
    assert (hit.chunk.source, hit.chunk.citation, hit.chunk.origin) == (
        "sessions",
        "chats/s.jsonl#L1",
        "owner",
    )
    assert memory.get(hit.chunk.id).text == "user, 2026-03-19 09:00:\nWhere is the zebra?"
    whole = memory.get("chats/s.jsonl")
    assert (whole.start_line, whole.end_line) == (1, 2)
    assert whole.text.endswith("assistant, 2026-03-20 08:00:\nIn the barn.")
    assert memory.get("chats/s.jsonl:2").text == "assistant, 2026-03-20 08:00:\nIn the barn."
    assert json.loads(memory.get("chats/s.jsonl:2", raw=True).text)["content"] == "In the barn."
    assert [memory.get(f"chats/s.jsonl{lines}").origin for lines in ("", ":1", ":2")] == [
        "agent",
        "owner",
        "agent",
    ]
    with pytest.raises(NotFoundError, match="has 2 lines"):
        memory.get("chats/s.jsonl:7")
    barn = memory.search("barn", filters=Filters(origin="agent", since=dt.date(2026, 3, 20)))
    assert [h.chunk.start_line for h in barn.hits] == [2]
    assert {
        h.chunk.source for h in memory.search("zebra", filters=Filters(source="memory")).hits
    } <= {"memory"}


def test_sessions_are_off_until_asked_for_and_go_when_they_are_off_again(
    root: Path, write: Write, opened: Open
) -> None:
    write("memory/a.md", "The cat is grey.")
    write("chats/s.jsonl", record("user", "Where is the zebra?"))
    memory = opened()
    memory.sync()
    assert [(s, d) for s, d, _ in memory.status().sources] == [("memory", 1), ("sessions", 1)]
    assert memory.status().fresh
    with Memory.open(root, embedder=CountingEmbedder()) as plain:
        plain.sync()
        assert plain.status().sources == (("memory", 1, 1),)


def test_status_looks_at_transcripts_too(root: Path, write: Write, opened: Open) -> None:
    write("chats/s.jsonl", record("user", "Where is the zebra?"))
    memory = opened()
    assert (memory.status().to_add, memory.status().on_disk) == (1, 1)
    memory.sync()
    place = root / "chats/s.jsonl"
    os.utime(place, (1, 1))
    assert memory.status().fresh
    with place.open("a", encoding="utf-8") as file:
        file.write(record("user", "And the lion?"))
    assert memory.status().to_change == 1


def test_chatter_does_not_drown_notes(write: Write, opened: Open) -> None:
    for n in range(4):
        write(
            f"memory/note{n}.md",
            f"A long note on other things and, among them, the budget of part {n}. "
            + "More. " * 40,
        )
    talk = "".join(
        record("user" if n % 2 else "assistant", f"budget budget, the budget {n}")
        for n in range(30)
    )
    write("chats/s.jsonl", talk)
    memory = opened(embed__model="none")
    memory.sync()  # a busy machine may not find all copies before the first search
    found = memory.search("budget")
    assert [h.chunk.source for h in found.hits].count("sessions") == 3
    assert any(step.stage.startswith("Quota(") for step in found.trace.steps)
    more = memory.search("budget", limit=20)
    assert [h.chunk.id for h in more.hits[:6]] == [h.chunk.id for h in found.hits]
    alone = memory.search("budget", filters=Filters(source="sessions"))
    assert {h.chunk.source for h in alone.hits} == {"sessions"}
    assert not any(step.stage.startswith("Quota(") for step in alone.trace.steps)
    unbound = opened(embed__model="none", search__session_share=1.0).search("budget")
    assert not any(step.stage.startswith("Quota(") for step in unbound.trace.steps)
    assert [h.chunk.source for h in unbound.hits].count("sessions") > 3


def test_notes_are_embedded_before_conversations(
    write: Write, opened: Open, embedder: CountingEmbedder
) -> None:
    write("chats/s.jsonl", record("user", "Where is the zebra?"))
    write("memory/2020-01-01.md", "The cat is grey.")
    opened().sync()
    assert ["cat" in text for text in embedder.documents] == [True, False]


def test_a_reset_session_keeps_its_vectors(
    root: Path, write: Write, opened: Open, embedder: CountingEmbedder
) -> None:
    place = write("chats/s.jsonl", record("user", "Where is the zebra?"))
    memory = opened()
    memory.sync()
    place.rename(root / "chats/s.jsonl.reset.2026-03-20T00-00-00.000Z")
    assert memory.sync().dropped == 1
    assert memory.search("zebra").hits[0].chunk.path.endswith(".reset.2026-03-20T00-00-00.000Z")
    assert len(embedder.documents) == 1


def test_conversations_wait_when_a_search_has_no_time_for_them(
    write: Write, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "The cat is grey.")
    write("chats/s.jsonl", record("user", "Where is the zebra?"))
    engine = opened().index.walk
    assert engine.sync().added == 2
    write("memory/b.md", "The dog is brown.")
    write("chats/t.jsonl", record("user", "Where is the lion?"))
    notes, sessions = FileSource.scan_changes, SessionSource.scan  # found in time, read too late
    monkeypatch.setattr(FileSource, "scan_changes", lambda self, known, **_: notes(self, known))
    monkeypatch.setattr(SessionSource, "scan", lambda self, **_: sessions(self))
    cut = engine.sync(deadline=0.0)
    assert (cut.added, cut.complete) == (1, False)
    assert set(engine.store.documents.stored()) == {"memory/a.md", "memory/b.md", "chats/s.jsonl"}
    assert engine.sync().added == 1


def test_a_foreign_conversation_leaves_nothing_but_its_path(
    root: Path, own_environment: Path
) -> None:
    folder = own_environment / ".codex/sessions/2026/04/02"
    folder.mkdir(parents=True)
    file = folder / "rollout-1.jsonl"
    header = json.dumps({"type": "session_meta", "payload": {"cwd": "/home/mira/nightfall"}}) + "\n"
    said = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "the zebra is in the barn"}],
    }
    turn = json.dumps({"type": "response_item", "payload": said}) + "\n"
    file.write_text(header[:20], encoding="utf-8")  # seen before its first line was whole
    with Memory.open(root, sources="memory,sessions", embed__model="none") as memory:
        memory.sync()
        file.write_text(header + turn, encoding="utf-8")
        memory.sync()
        with file.open("a", encoding="utf-8") as more:
            more.write(turn)
        memory.sync()
        assert memory.store.counts()["chunks"] == 0
        assert "nightfall" not in memory.store.documents.stored()[str(file)].tail
        file.write_text(header.replace("/home/mira/nightfall", str(root)) + turn, encoding="utf-8")
        assert len(memory.search("zebra").hits) == 1
