"""The loop: what each event gives, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import StoreError, UsageError
from notewell.memory import Memory
from notewell.surfaces.hooks import loop
from notewell.surfaces.hooks.hosts import HOSTS, Event
from notewell.surfaces.hooks.journal import Journal
from notewell.surfaces.hooks.loop import keep, respond
from tests.conftest import PATIENT, Write

ENV = {**PATIENT, "NOTEWELL_EMBED_MODEL": "hashed", "NOTEWELL_HOOK_CONFIDENCE": "0.2"}
ASKED = "which port does staging answer on?"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """What would run in the background."""
    found: list[Sequence[str]] = []
    monkeypatch.setattr(loop, "detached", lambda words, env: found.append(words))
    return found


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        **ENV,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }


@pytest.fixture
def notes(root: Path, write: Write, env: dict[str, str]) -> Path:
    write(
        "memory/2026-09-03.md",
        "# Staging\n\nThe staging host answers on port 9443.\n\n- [ ] close port 8081\n",
    )
    with Memory.open(root, env=env) as memory:
        memory.sync()
    return root


def call(
    event: Event, cwd: Path, env: dict[str, str], host: str = "opencode", **more: Any
) -> dict[str, Any]:
    given = {"session_id": "s", "cwd": str(cwd), **more}
    return respond(event, HOSTS[host], json.dumps(given).encode(), env)


def test_a_prompt_gets_its_note_once(
    notes: Path, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    first = call("prompt", notes, env, prompt=ASKED)
    assert "9443" in first["context"]
    assert re.fullmatch(r"notewell: 1 note, \d+ tokens", first["receipt"])
    assert call("prompt", notes, env, prompt=ASKED) == {}
    assert call("prompt", notes, env, prompt=ASKED, session_id="other") != {}
    assert [entry.prompt for entry in Journal(env).entries()] == [ASKED] * 2
    assert started == []


@pytest.mark.parametrize("lost", [("compact", {}), ("session-start", {"source": "compact"})])
def test_after_compaction_it_may_come_again(
    notes: Path,
    env: dict[str, str],
    started: list[Sequence[str]],
    lost: tuple[Event, dict[str, str]],
) -> None:
    call("prompt", notes, env, prompt=ASKED)
    call(lost[0], notes, env, **lost[1])
    assert call("prompt", notes, env, prompt=ASKED) != {}


def test_a_session_that_goes_on_gets_nothing_twice(
    notes: Path, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    call("prompt", notes, env, prompt=ASKED)
    call("session-start", notes, env, source="resume")
    assert call("prompt", notes, env, prompt=ASKED) == {}


def test_what_is_marked_useless_stays_away(
    notes: Path, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    call("prompt", notes, env, prompt=ASKED)
    Journal(env).mark(Journal(env).entries()[0].id)
    assert call("prompt", notes, env, prompt="the port of staging?", session_id="next") == {}


@pytest.mark.parametrize(
    "prompt", ["ok thanks", "", "/clear", None, 3, ["which port does staging answer on?"]]
)
def test_small_talk_opens_nothing(
    notes: Path, env: dict[str, str], prompt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Memory, "open", lambda *_a, **_k: pytest.fail("opened"))
    assert call("prompt", notes, env, prompt=prompt) == {}


@pytest.mark.parametrize("key", ["TOKENS", "BRIEF_TOKENS"])
def test_each_part_can_be_turned_off(
    notes: Path, env: dict[str, str], key: str, started: list[Sequence[str]]
) -> None:
    off = {**env, f"NOTEWELL_HOOK_{key}": "0"}
    assert (call("prompt", notes, off, prompt=ASKED) == {}) is (key == "TOKENS")
    assert (call("session-start", notes, off) == {}) is (key == "BRIEF_TOKENS")


def test_the_brief_comes_at_the_start(
    notes: Path, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    found = call("session-start", notes, env, host="claude-code", source="startup")
    assert (
        "- [ ] close port 8081 (memory/2026-09-03.md#L5)"
        in found["hookSpecificOutput"]["additionalContext"]
    )
    assert re.fullmatch(r"notewell: brief of 1 note, \d+ tokens", found["systemMessage"])
    (entry,) = Journal(env).entries()
    assert entry.prompt == ""
    assert "memory/2026-09-03.md#L5" in [p.citation for p in entry.passages]
    with pytest.raises(UsageError, match="belongs to no prompt"):
        Journal(env).mark(entry.id)


@pytest.mark.parametrize("event", ["session-start", "prompt", "stop", "compact", "session-end"])
@pytest.mark.parametrize("where", ["empty", "missing"])
def test_a_folder_without_notes_is_left_as_it_is(
    tmp_path: Path, env: dict[str, str], event: Event, where: str, started: list[Sequence[str]]
) -> None:
    place = tmp_path / where
    (tmp_path / "empty").mkdir()
    assert call(event, place, env, prompt=ASKED) == {}
    assert os.listdir(tmp_path / "empty") == []
    assert started == []


@pytest.mark.parametrize("event", ["stop", "compact", "session-end"])
def test_the_ends_are_kept_in_the_background(
    notes: Path, env: dict[str, str], event: Event, started: list[Sequence[str]]
) -> None:
    for _ in range(2):
        assert call(event, notes, env) == {}
    wait = [] if event == "stop" else ["--wait"]
    command = ["-m", "notewell", "hook", "keep", *wait, "--workspace", str(notes)]
    assert started == [command] * (1 if event == "stop" else 2)


def test_a_new_note_is_found_at_once_and_embedded_later(
    notes: Path, write: Write, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    write("memory/2026-09-04.md", "# Zebra\n\nThe zebra service answers on port 1234.\n")
    assert "1234" in call("prompt", notes, env, prompt="port of the zebra service")["context"]
    assert len(started) == 1
    keep(notes, env, wait_s=0.0, embed_s=60.0)
    with Memory.open(notes, env=env) as memory:
        assert memory.status().pending == 0


def test_keeping_reads_transcripts_where_they_are_a_source(
    notes: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    env = {**os.environ, **env}
    folder = tmp_path / "claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(notes))
    folder.mkdir(parents=True)
    said = {
        "type": "user",
        "message": {"role": "user", "content": "The quokka budget is 77 euros."},
    }
    (folder / "one.jsonl").write_text(json.dumps(said) + "\n", encoding="utf-8")
    for sources, found in (("memory", 0), ("memory,sessions", 1)):
        own = {**env, "NOTEWELL_SOURCES": sources}
        keep(notes, own, wait_s=0.0, embed_s=60.0)
        with Memory.open(notes, env=own) as memory:
            assert (
                sum(
                    h.chunk.source == "sessions"
                    for h in memory.search("quokka budget", sync=False).hits
                )
                == found
            )


def test_keeping_leaves_it_to_whoever_is_at_it(notes: Path, env: dict[str, str]) -> None:
    with Memory.open(notes, env=env) as memory, memory.store.exclusive(5.0) as mine:
        assert mine
        keep(notes, env, wait_s=0.0, embed_s=60.0)
        with pytest.raises(StoreError, match="another process"):
            keep(notes, env, wait_s=0.01, embed_s=60.0)


def test_a_damaged_index_is_made_again(
    notes: Path, env: dict[str, str], started: list[Sequence[str]]
) -> None:
    (notes / ".notewell/index.sqlite").write_bytes(b"no index at all" * 1000)
    assert "9443" in call("prompt", notes, env, prompt=ASKED)["context"]


@pytest.mark.parametrize("sent", [b"[]", b"3", b"not json", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_an_error_of_the_host(env: dict[str, str], sent: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        respond("prompt", HOSTS["codex"], sent, env)


def test_nothing_sent_is_nothing_asked(env: dict[str, str]) -> None:
    assert respond("prompt", HOSTS["codex"], b"", env) == {}
