"""A note or conversation as a whole."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import NotFoundError, UsageError
from notewell.memory import Memory
from notewell.notes.proposals import Proposals
from notewell.notes.whole_note import resolver_of
from notewell.types import Filters
from tests.conftest import Write


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    write("memory/2026-05-06.md", "# Monday\n\nSee [[auth]] and [the rest](2026-05-08.md).\n")
    write("memory/2026-05-07.md", "# Tuesday\n\nQuiet.\n")
    write("memory/2026-05-08.md", "# Wednesday\n\nNothing. Back to [[auth#Tokens]].\n")
    write(
        "memory/auth.md",
        "---\npinned: true\n---\n# Auth\n\nIntro to log in.\n\n## Tokens\n\nThey live 30 days.\n",
    )
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        yield memory


def test_a_note_has_its_text_facts_and_hash(memory: Memory) -> None:
    note = memory.notebook.whole("auth")
    data = (memory.root / "memory/auth.md").read_bytes()
    assert (note.path, note.title, note.pinned, note.date, note.source) == (
        "memory/auth.md",
        "Auth",
        True,
        None,
        "memory",
    )
    assert note.text == data.decode()
    assert note.hash == hashlib.sha256(data).hexdigest()


def test_links_lead_both_ways(memory: Memory) -> None:
    note = memory.notebook.whole("memory/2026-05-08.md")
    assert [one.path for one in note.links] == ["memory/auth.md"]
    assert [(one.path, one.title) for one in note.backlinks] == [("memory/2026-05-06.md", "Monday")]


def test_as_of_a_day_what_is_later_does_not_link(memory: Memory) -> None:
    note = memory.notebook.whole("memory/auth.md", as_of=dt.date(2026, 5, 7))
    assert [one.path for one in note.backlinks] == ["memory/2026-05-06.md"]
    later = memory.notebook.whole("memory/2026-05-08.md", as_of=dt.date(2026, 5, 7))
    assert [n.code for n in later.notices] == ["later"]
    assert [n.code for n in memory.notebook.whole("auth", as_of=dt.date(2026, 1, 1)).notices] == [
        "changed_since"
    ]


def test_neighbours_are_the_nearest_notes_in_time(memory: Memory) -> None:
    note = memory.notebook.whole("memory/2026-05-07.md")
    assert note.before is not None
    assert note.after is not None
    assert (note.before.path, note.after.path) == ("memory/2026-05-06.md", "memory/2026-05-08.md")
    assert memory.notebook.whole("memory/2026-05-06.md").before is None


def test_a_secret_is_not_shown(memory: Memory, write: Write) -> None:
    write("memory/keys.md", "# Keys\n\nThe key is ghp_" + "a1B2" * 9 + " for CI.\n")
    note = memory.notebook.whole("keys")
    assert "ghp_" not in note.text
    assert "[redacted" in note.text


def test_a_conversation_is_a_note_of_turns(root: Path, write: Write) -> None:
    said = [
        ("user", "Which *port*?", "2026-03-19T09:00:00"),
        ("assistant", "It is 9600.", "2026-03-19T09:01:00"),
    ]
    rows = [json.dumps({"role": role, "content": text, "timestamp": at}) for role, text, at in said]
    write("chats/talk.jsonl", "\n".join(rows) + "\n")
    write("memory/2026-03-19.md", "# Day\n\nThe port was asked for.\n")
    options: dict[str, Any] = {
        "sources": "memory,sessions",
        "sessions__paths": str(root / "chats"),
        "embed__model": "none",
    }
    with Memory.open(root, **options) as memory:
        memory.sync()
        note = memory.notebook.whole("chats/talk.jsonl")
        assert [(t.line, t.origin, t.text) for t in note.turns] == [
            (1, "owner", "Which *port*?"),
            (2, "agent", "It is 9600."),
        ]
        assert (note.source, note.hash, note.kept, str(note.date)) == (
            "sessions",
            "",
            False,
            "2026-03-19",
        )
        assert "assistant, 2026-03-19 09:01:\nIt is 9600." in note.text
        # It is not ours to write: what is right in it is written down as a note that supersedes the
        # other.
        proposals, now = Proposals(memory.notebook), dt.datetime(2026, 4, 1, 9, 0)  # noqa: DTZ001
        [draft] = proposals.settle(note.passages[0].id, "memory/2026-03-19.md", now=now).drafts
        assert (draft.path.startswith("memory/2026-04-01-"), draft.before) == (True, None)
        with pytest.raises(UsageError, match="cannot be changed here"):
            proposals.pin("chats/talk.jsonl")
        gone = proposals.forget("chats/talk.jsonl")
        assert gone.drafts == ()
        assert "belongs to another program" in gone.warnings[0]
        undo = proposals.apply(gone.token, now=now).undo
        assert not memory.search("port 9600", filters=Filters(source="sessions")).hits
        proposals.undo(undo)
        assert memory.search("port 9600", filters=Filters(source="sessions")).hits


def test_a_missing_note_is_named(memory: Memory) -> None:
    with pytest.raises(NotFoundError, match="no note or passage is called"):
        memory.notebook.whole("memory/none.md")


def test_a_resolver_finds_what_the_link_of_a_note_means(memory: Memory) -> None:
    resolve = resolver_of(memory.index, "memory/2026-05-06.md", lambda path, line: f"{path} {line}")
    assert resolve("auth") == "memory/auth.md None"
    assert resolve("auth.md#tokens") == "memory/auth.md 10"
    assert resolve("#Monday") == "memory/2026-05-06.md 3"
    assert [
        resolve(one)
        for one in ("gone", "../../etc/passwd", "//evil.example/x", "https://a.example", "")
    ] == [""] * 5
