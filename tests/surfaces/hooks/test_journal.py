"""What hooks remember: bounded, private, and robust against whatever is in its files."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from notewell.errors import UsageError
from notewell.surfaces.hooks import journal as journal_
from notewell.surfaces.hooks.journal import Journal, Passage

NOW = dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC)
PASSAGES = (Passage("a.md#L1", "hash-a", 0.9), Passage("b.md#L2-L3", "hash-b", 0.8))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal({"XDG_STATE_HOME": str(tmp_path)})


def add(journal: Journal, prompt: str, passages: Sequence[Passage] = PASSAGES) -> str:
    journal.add(
        host="codex", workspace=Path("/w"), prompt=prompt, tokens=10, passages=passages, now=NOW
    )
    return journal.entries()[-1].id


def files(journal: Journal) -> list[Path]:
    return [p for p in journal.folder.rglob("*") if p.is_file()]


def test_what_was_injected_is_listed_without_secrets_and_shortened(journal: Journal) -> None:
    add(journal, "use the token ghp_" + "a1B2" * 9 + "\nfor " + "very " * 100 + "long")
    (entry,) = journal.entries()
    assert (entry.host, entry.workspace, entry.tokens, entry.passages) == (
        "codex",
        "/w",
        10,
        PASSAGES,
    )
    assert "ghp_" not in entry.prompt
    assert "\n" not in entry.prompt
    assert len(entry.prompt) <= 160


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_nobody_else_can_read_it(journal: Journal) -> None:
    journal.mark(add(journal, "which port"))
    journal.saw("s", ["x"])
    journal.due(Path("/w"), 1.0)
    assert len(files(journal)) == 4
    assert {p.stat().st_mode & 0o777 for p in files(journal)} == {0o600}
    assert {p.stat().st_mode & 0o777 for p in journal.folder.rglob("*") if p.is_dir()} == {0o700}


def test_a_log_that_is_full_loses_its_oldest_lines(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_, "_MOST_BYTES", 3000)
    for number in range(40):
        add(journal, f"prompt {number}")
    prompts = [entry.prompt for entry in journal.entries()]
    assert prompts[-1] == "prompt 39"
    assert "prompt 0" not in prompts
    assert max(p.stat().st_size for p in files(journal)) <= 3000


def test_a_damaged_log_is_read_as_far_as_it_goes(journal: Journal) -> None:
    add(journal, "first")
    log = journal.folder / "injected.jsonl"
    odd = b'\xff\xfe\n[]\n{"id": 3}\n{"passages": 3}\n' + b"[" * 5000 + b"\n"
    log.write_bytes(odd + log.read_bytes())
    assert [entry.prompt for entry in journal.entries()] == ["first"]


def test_a_session_remembers_what_it_was_given(journal: Journal) -> None:
    journal.saw("one", ["a", "b"])
    journal.saw("one", ["c"])
    journal.saw("", ["d"])
    assert (journal.seen("one"), journal.seen("two"), journal.seen("")) == (
        {"a", "b", "c"},
        set(),
        set(),
    )
    journal.forget("one")
    journal.forget("one")
    assert journal.seen("one") == set()


def test_the_name_of_a_session_is_no_path(journal: Journal) -> None:
    journal.saw("../../../out\ud800", ["a"])
    assert journal.seen("../../../out\ud800") == {"a"}
    assert [p.parent for p in files(journal)] == [journal.folder / "sessions"]


def test_old_sessions_are_swept(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.sweep()
    journal.saw("old", ["a"])
    os.utime(next(iter(files(journal))), (0, 0))
    journal.saw("new", ["b"])
    journal.sweep()
    assert (journal.seen("old"), journal.seen("new")) == (set(), {"b"})
    monkeypatch.setattr(journal_, "_MOST_SESSIONS", 0)
    journal.sweep()
    assert files(journal) == []


def test_what_is_useless_is_so_for_prompts_like_it(journal: Journal) -> None:
    entry = journal.mark(add(journal, "which port does staging answer on"))
    assert entry.useless
    assert journal.entries()[-1].useless
    assert journal.useless_for("tell me the port of staging") == {"hash-a", "hash-b"}
    assert journal.useless_for("when are backups taken") == set()
    assert journal.useless_for("") == set()


def test_one_passage_of_several_can_be_marked(journal: Journal) -> None:
    journal.mark(add(journal, "which port does staging answer on") + ".2")
    assert journal.useless_for("staging port") == {"hash-b"}


@pytest.mark.parametrize("name", ["", "nothing", ".", "{}.3", "{}.0", "{}.x", "{}."])
def test_what_was_not_injected_cannot_be_marked(journal: Journal, name: str) -> None:
    number = add(journal, "which port")
    with pytest.raises(UsageError, match="nothing that was injected"):
        journal.mark(name.format(number))


def test_work_in_the_background_has_its_distance(journal: Journal) -> None:
    assert journal.due(Path("/w"), 1000.0)
    assert not journal.due(Path("/w"), 1000.0)
    assert journal.due(Path("/other"), 1000.0)
    assert journal.due(Path("/w"), 0.0)


def test_a_link_in_its_place_is_not_followed(journal: Journal, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    journal.folder.mkdir(parents=True)
    (journal.folder / "injected.jsonl").symlink_to(target)
    with pytest.raises(OSError, match="link"):
        add(journal, "which port")
    assert target.read_text() == "mine"
