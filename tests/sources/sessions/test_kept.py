"""Our copies of conversations: how they are found, bounded, forgotten and switched off."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from notewell.memory import Memory
from notewell.sources.sessions.kept import Kept, talk_name, talk_of
from notewell.surfaces.cli.commands import cli
from notewell.types import Document, Turn
from tests.conftest import CountingEmbedder, Write
from tests.sources.sessions.layouts import LAYOUTS, run

SESSIONS = ("--model", "none", "--setting", "sources=sessions", "--setting", "sessions.paths=chats")
WORDS = "The staging port of the ledger is 8443 and nothing else."


def record(text: str, role: str = "user") -> str:
    return json.dumps({"role": role, "content": text, "timestamp": "2026-03-19T09:00:00"}) + "\n"


@pytest.fixture
def copies(own_environment: Path) -> Path:
    return own_environment / ".local/share/notewell/conversations"


@pytest.fixture
def opened(root: Path, embedder: CountingEmbedder) -> Iterator[Any]:
    made: list[Memory] = []

    def open_(**flags: Any) -> Memory:
        given = {"sources": "memory,sessions", "sessions__paths": str(root / "chats"), **flags}
        made.append(Memory.open(root, embedder=embedder, **given))
        return made[-1]

    (root / "chats").mkdir()
    yield open_
    for memory in made:
        memory.close()


def words_in(folder: Path) -> str:
    return "".join(p.read_text() for p in sorted(folder.glob("*/*.md")))


def test_forgetting_reaches_the_copy(root: Path, write: Write, opened: Any, copies: Path) -> None:
    place = write(
        "chats/s.jsonl",
        record(WORDS) + record("A quite different thing was said here.", "assistant"),
    )
    memory = opened()
    memory.sync()
    place.unlink()
    memory.sync()
    assert WORDS in words_in(copies)
    receipt = memory.forget(query="staging port ledger", yes=True)
    assert receipt.proved
    assert WORDS not in words_in(copies)
    assert "different thing" in words_in(copies)
    assert not any(WORDS in hit.chunk.text for hit in memory.search("staging port ledger").hits)
    assert memory.forget(session="s", yes=True).proved
    assert words_in(copies) == ""
    assert memory.sync().complete
    assert not memory.search("different thing").hits


def test_a_copy_that_still_has_forgotten_text_is_no_proof(
    write: Write, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("chats/s.jsonl", record(WORDS))
    memory = opened()
    memory.sync()
    monkeypatch.setattr(Kept, "keep", lambda *_, **__: None)
    receipt = memory.forget(query="staging port ledger", yes=True)
    assert not receipt.proved
    assert "our copy of it still has it" in receipt.lingering[0]


def test_off_means_that_nothing_is_kept_and_nothing_is_found(
    root: Path, write: Write, opened: Any, copies: Path
) -> None:
    place = write("chats/s.jsonl", record(WORDS))
    memory = opened(sessions__keep=False)
    memory.sync()
    assert not copies.exists()
    place.unlink()
    assert memory.sync().dropped == 1
    write("chats/t.jsonl", record(WORDS))
    on = opened()
    on.sync()
    assert WORDS in words_in(copies)
    off = opened(sessions__keep=False)
    # a copy of earlier days is not left behind
    assert off.forget(query="staging port ledger", yes=True).proved
    assert WORDS not in words_in(copies)


def test_what_grew_before_it_was_kept_is_kept_whole(
    write: Write, opened: Any, copies: Path
) -> None:
    place = write("chats/s.jsonl", record(WORDS))
    opened(sessions__keep=False).sync()
    place.write_text(place.read_text() + record("Two days later.", "assistant"))
    opened().sync()
    assert [words_in(copies).count(f"\n{text}\n") for text in (WORDS, "Two days later.")] == [1, 1]
    place.write_text(place.read_text() + record("Three days later.", "assistant"))
    opened().sync()
    said = (WORDS, "Two days later.", "Three days later.")
    assert [words_in(copies).count(f"\n{text}\n") for text in said] == [1, 1, 1]


def test_a_sync_that_is_killed_after_it_kept_something_repeats_nothing(
    write: Write, opened: Any, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("chats/s.jsonl", record(WORDS))
    memory = opened()
    memory.sync()
    place.write_text(place.read_text() + record("Two days later.", "assistant"))

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(memory.store.documents), "extend", killed)
        with pytest.raises(KeyboardInterrupt):
            memory.sync()
    assert "Two days later." in words_in(copies)
    again = opened()
    again.sync()
    assert words_in(copies).count("Two days later.") == 1
    assert again.search("two days later").hits


def test_what_comes_back_is_no_longer_a_copy(root: Path, write: Write, opened: Any) -> None:
    place = write("chats/s.jsonl", record(WORDS))
    memory = opened()
    memory.sync()
    aside = shutil.move(place, root / "aside.jsonl")
    assert memory.search("staging port ledger").hits[0].kept
    shown = CliRunner().invoke(cli, ["staging port ledger", "-w", str(root), *SESSIONS])
    assert "kept; its program has deleted it" in shown.stdout
    shutil.move(aside, place)
    hit = memory.search("staging port ledger").hits[0]
    assert (hit.kept, hit.chunk.path) == (False, "chats/s.jsonl")


def test_what_the_user_deleted_in_its_program_goes(
    own_environment: Path, root: Path, embedder: CountingEmbedder
) -> None:
    folder = own_environment / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    said = {"type": "message", "message": {"role": "user", "content": WORDS}}
    (folder / "a.jsonl").write_text(
        json.dumps({"type": "session", "cwd": str(root)}) + "\n" + json.dumps(said) + "\n"
    )
    with Memory.open(root, sources="sessions", embedder=embedder) as memory:
        assert memory.search("staging port").hits
        (folder / "a.jsonl").rename(folder / "a.jsonl.deleted.2026-02-05T07-00-00.000Z")
        assert not memory.search("staging port").hits
    assert words_in(own_environment / ".local/share/notewell/conversations") == ""


def test_what_the_user_deleted_in_its_database_goes(
    own_environment: Path, root: Path, embedder: CountingEmbedder
) -> None:
    openclaw = next(one for one in LAYOUTS if one.program == "OpenClaw")
    place = openclaw.make(own_environment, root)
    with Memory.open(root, sources="sessions", embedder=embedder) as memory:
        assert memory.search("staging port").hits
        openclaw.delete(place)  # a clean-up of the program
        assert memory.search("staging port").hits[0].kept
        archive = "CREATE TABLE session_transcript_archives (session_id TEXT, reason TEXT)"
        run(
            place,
            archive,
            "INSERT INTO session_transcript_archives VALUES ('s1', 'reset'), ('other', 'deleted')",
        )
        assert memory.search("staging port").hits[0].kept
        run(place, "INSERT INTO session_transcript_archives VALUES ('s1', 'deleted')")
        assert not memory.search("staging port").hits
    assert words_in(own_environment / ".local/share/notewell/conversations") == ""


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/h/.codex/sessions/2026/rollout-1.jsonl", "rollout-1"),
        ("/h/.codex/archived_sessions/rollout-1.jsonl", "rollout-1"),
        ("s.jsonl.reset.2026-02-05T07-00-00.000Z", "s"),
        ("/h/openclaw-agent.sqlite/s", "s"),
        ("/h/session-state/aa6b/events.jsonl", "aa6b"),
        ("/h/tasks/179/api_conversation_history.json", "179"),
        ("/h/sessions/1_x/1_x.messages.json", "1_x"),
    ],
)
def test_a_conversation_has_one_name_wherever_it_moves(path: str, name: str) -> None:
    assert talk_name(path) == name


def keep(kept: Kept, name: str, *, day: int, size: int = 1000) -> None:
    document = Document(f"/c/{name}.jsonl", "sessions", size, day * 86400 * 10**9, "")
    kept.keep(document, talk_of(document, name, "p", [Turn(1, "owner", "x" * size)]), whole=True)


def test_disk_is_bounded_and_the_oldest_of_all_workspaces_go_first(tmp_path: Path) -> None:
    one, two = (Kept(tmp_path / "c", tmp_path / name, most_bytes=20_000) for name in ("one", "two"))
    for day in range(40):
        keep(one if day % 2 else two, f"s{day}", day=day)
    count, size = two.size()
    assert size <= 20_000
    assert 10 < count < 20
    left = {d.path for kept in (one, two) for d in kept.gone(())}
    assert left == {f"/c/s{day}.jsonl" for day in range(40 - count, 40)}


def test_a_lost_list_of_names_and_strange_files_do_no_harm(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "c", tmp_path / "w", most_bytes=10**6)
    keep(kept, "a", day=1)
    keep(kept, "b", day=2)
    names = kept.folder / "names.jsonl"
    for text in (None, "rubbish\n[1]\n{}\n", '["a.md", 3]\n'):
        names.unlink() if text is None else names.write_text(text)
        assert sorted(d.path for d in kept.gone(())) == ["/c/a.jsonl", "/c/b.jsonl"]
    (kept.folder / "stranger.md").write_text('---\nconversation: "/etc/passwd"\n---\n')
    (kept.folder / "binary.md").write_bytes(os.urandom(100))
    (kept.folder / "folder.md").mkdir()
    if hasattr(os, "symlink"):
        (kept.folder / "link.md").symlink_to("/etc/passwd")
    assert sorted(d.path for d in kept.gone(["/c/a.jsonl"])) == ["/c/b.jsonl"]


def test_a_full_disk_is_reported_and_the_conversation_is_still_found(
    write: Write, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("chats/s.jsonl", record(WORDS))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Kept, "keep", full)
    memory = opened()
    report = memory.sync()
    assert [(s.reason, s.partly) for s in report.skipped] == [
        ("is not kept: No space left on device", True)
    ]
    assert memory.search("staging port ledger").hits
