"""What each host reads, against the shapes that it documents."""

from __future__ import annotations

from typing import Any

import pytest

from notewell.surfaces.hooks.hosts import EVENTS, HOSTS, Reply

SAID = Reply("some notes", "notewell: 1 note, 10 tokens")
NAMES = {
    "claude-code": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "gemini-cli": "BeforeAgent",
}


@pytest.mark.parametrize(("host", "name"), NAMES.items())
def test_text_goes_back_with_the_name_of_the_event(host: str, name: str) -> None:
    assert HOSTS[host].answer("prompt", SAID) == {
        "hookSpecificOutput": {"hookEventName": name, "additionalContext": "some notes"},
        "systemMessage": "notewell: 1 note, 10 tokens",
    }
    start = HOSTS[host].answer("session-start", SAID)
    assert start["hookSpecificOutput"]["hookEventName"] == "SessionStart"


def test_cursor_lets_the_prompt_go_on() -> None:
    assert HOSTS["cursor"].answer("prompt", SAID) == {
        "continue": True,
        "additional_context": "some notes",
    }
    assert HOSTS["cursor"].answer("session-start", SAID) == {"additional_context": "some notes"}


@pytest.mark.parametrize("host", ["opencode", "openclaw"])
def test_our_own_plugins_get_both_texts(host: str) -> None:
    assert HOSTS[host].answer("prompt", SAID) == {"context": SAID.context, "receipt": SAID.receipt}


@pytest.mark.parametrize("host", HOSTS)
def test_nothing_to_say_is_nothing(host: str) -> None:
    assert all(HOSTS[host].answer(event, Reply()) == {} for event in EVENTS)


@pytest.mark.parametrize("odd", [None, 3, {}, [], [3], {"a": 1}])
def test_odd_values_are_no_session_and_no_folder(odd: Any) -> None:
    for host in HOSTS.values():
        sent = {host.session: odd, host.folder: odd, "cwd": odd}
        assert (host.session_of(sent), host.folder_of(sent)) == ("", "")


def test_cursor_names_its_folders_in_a_list() -> None:
    sent = {"conversation_id": "c", "workspace_roots": ["/a", "/b"]}
    assert (HOSTS["cursor"].session_of(sent), HOSTS["cursor"].folder_of(sent)) == ("c", "/a")
    assert HOSTS["cursor"].folder_of({"cwd": "/c"}) == "/c"
