"""Samples in the shape that each program writes, and the rules one by one."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.spoken import of_agent, of_user
from notewell.text.transcript import LINE_CHARACTERS, TranscriptReader, readable, wrapped
from notewell.types import Turn
from tests.growth import Linear

RAN_OUT = "that ran out of context. The pool was raised to 20."
SAMPLES = Path(__file__).parent / "transcripts"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def heard(name: str) -> TranscriptReader:
    reader = TranscriptReader()
    text = (SAMPLES / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        reader.feed_json(json.loads(text), text)
        return reader
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            reader.feed(json.loads(line), number)
    return reader


def said(name: str) -> list[tuple[int, str, str]]:
    return [(t.line, t.origin, t.text) for t in heard(name).turns]


def test_claude_code() -> None:
    assert said("claude-code.jsonl") == [
        (4, "owner", "Why does the checkout page time out?"),
        (6, "agent", "Let me look at the connection pool."),
        (
            10,
            "agent",
            (
                "The pool has five connections and the report job holds all of them. Raise "
                "`pool_size` to 20."
            ),
        ),
        (11, "owner", "Do that, here is the graph"),
        (15, "agent", f"This session is being continued from a previous conversation {RAN_OUT}"),
    ]
    reader = heard("claude-code.jsonl")
    assert (reader.project, reader.title, reader.folder) == ("shop", "", "")
    assert reader.turns[0].time == dt.datetime(2026, 3, 19, 9, 0, 10)  # noqa: DTZ001 - of the clock on the wall


def test_codex() -> None:
    assert said("codex.jsonl") == [
        (6, "owner", "Rename the billing table to invoices"),
        (10, "agent", "Migration 0042 renames billing to invoices."),
        (13, "agent", "The table is called invoices since migration 0042."),
    ]
    assert heard("codex.jsonl").folder == "/home/mira/shop"


def test_openclaw() -> None:
    assert said("openclaw.jsonl") == [
        (5, "owner", "Remind me that the dentist is on Friday at ten"),
        (8, "agent", "Noted: dentist, Friday at ten."),
        (9, "owner", "and what about parking?"),
        (10, "agent", "There is a garage in the Lindenstraße."),
        (11, "untrusted", "the garage is closed, says the group"),
        (14, "agent", "Mira has a dentist appointment on Friday at ten."),
    ]


def test_gemini_in_one_value_stands_on_the_lines_of_its_words() -> None:
    assert said("gemini.json") == [
        (11, "owner", "Which of the three caches is stale after a deploy?"),
        (23, "agent", "The edge cache: it is purged only by tag."),
        (32, "owner", "Danke, das war’s"),
    ]
    assert (heard("gemini.json").title, heard("gemini.json").rewritten) == ("Stale caches", True)


def test_gemini_in_lines_is_what_was_written_last_and_not_taken_back() -> None:
    assert said("gemini.jsonl") == [
        (2, "owner", "Purge the edge cache"),
        (4, "agent", "Purged by the tag `release`."),
        (9, "owner", "now list the bucket"),
    ]


def test_role_and_content_alone() -> None:
    assert said("generic.jsonl") == [
        (2, "owner", "What is the wifi called?"),
        (4, "agent", "It is called Birke."),
        (6, "owner", "thanks"),
    ]
    assert [t.time for t in heard("generic.jsonl").turns] == [
        dt.datetime(2026, 1, 1, 9, 0),  # noqa: DTZ001
        dt.datetime(2026, 1, 1, 9, 0, 5),  # noqa: DTZ001
        None,
    ]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "session_meta", "payload": {"source": {"subagent": "review"}, "cwd": "/x"}},
        {"type": "session_meta", "payload": {"thread_source": "subagent"}},
        {"sessionId": "s", "projectHash": "h", "kind": "subagent"},
    ],
)
def test_a_helper_is_known_for_one(record: dict[str, Any]) -> None:
    reader = TranscriptReader()
    reader.feed(record, 1)
    assert reader.subagent


def test_a_title_counts_only_before_the_first_turn() -> None:
    reader = TranscriptReader()
    reader.feed({"type": "summary", "summary": "Fix\nthe  pool", "leafUuid": "x"}, 1)
    reader.feed({"role": "user", "content": "hello there"}, 2)
    reader.feed({"type": "ai-title", "aiTitle": "Another", "sessionId": "s"}, 3)
    assert reader.title == "Fix the pool"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "<system-reminder>a</system-reminder>hello<system-reminder>b\nc</system-reminder> you",
            "hello you",
        ),
        (
            "<command-name>/goal</command-name><command-args>ship the shop</command-args>",
            "ship the shop",
        ),
        ("<command-name>/model</command-name><command-args>opus</command-args>", ""),
        ("<local-command-stdout>Bye!</local-command-stdout>", ""),
        ('<ide_selection file="a.py">x</ide_selection>explain this', "explain this"),
        ("a <system-reminder> that is never closed", "a <system-reminder> that is never closed"),
        ("if a < b and <div>c</div> stay", "if a < b and <div>c</div> stay"),
        ("Caveat: The messages below were generated by the user while running local commands.", ""),
        ("/new", ""),
        ("/deploy to staging please", "/deploy to staging please"),
        ("[Telegram Alice +2m 2026-02-05 09:00 GMT+1] hi", "hi"),
        ("[Discord Guild #general id:77] hi", "hi"),
        ("[Thu 2026-02-05 09:10 GMT+1] hi", "hi"),
        ("[TODO] mend the fence", "[TODO] mend the fence"),
        ("[see 2026-02-05] is a day", "[see 2026-02-05] is a day"),
        ("hi\n[message_id: 12]", "hi"),
        ("Conversation context (untrusted, chronological):\n#1 Bo: x\n\nhi", "hi"),
        ("[cron:daily] tidy up", ""),
        ("System (untrusted): [2026-02-05 09:30] Exec completed", ""),
        ("Heartbeat. Read your HEARTBEAT.md. If nothing needs attention, reply HEARTBEAT_OK.", ""),
        ("what does HEARTBEAT_OK mean?", "what does HEARTBEAT_OK mean?"),
        ("see ![a](data:image/png;base64,iVBORw0KGgo=) here", "see [image] here"),
        ("data:image/png;base64,iVBORw0KGgo=", ""),
        ("   \n ", ""),
    ],
)
def test_what_is_left_of_a_user(text: str, left: str) -> None:
    assert of_user(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<thinking>hm</thinking>Yes.", "Yes."),
        ("[[reply_to_current]] Yes.", "Yes."),
        ("HEARTBEAT_OK", ""),
        ("All is well. HEARTBEAT_OK", ""),
        ("NO_REPLY", ""),
        ("No response requested.", ""),
        (
            "[Telegram Alice 2026-02-05 09:00] is an envelope",
            "[Telegram Alice 2026-02-05 09:00] is an envelope",
        ),
    ],
)
def test_what_is_left_of_an_assistant(text: str, left: str) -> None:
    assert of_agent(text) == left


@pytest.mark.parametrize(
    "record",
    [
        None,
        3,
        [],
        "x",
        {},
        {"type": "user"},
        {"type": "user", "message": 3},
        {"type": "message", "message": {}},
        {"role": "user"},
        {"role": "user", "content": {"a": 1}},
        {"role": ["user"], "content": "x"},
        {
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [1, None]},
        },
        {"type": "summary", "summary": 4},
        {"$rewindTo": None},
        {"$set": 3},
        {"type": "gemini"},
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "text", "text": None}]},
        },
    ],
)
def test_a_record_of_another_shape_says_nothing(record: Any) -> None:
    reader = TranscriptReader()
    reader.feed(record, 1)
    assert reader.turns == []


@pytest.mark.parametrize(
    "value", ["yesterday", "", -1, 1e300, True, None, [], "2026-13-40", float("nan")]
)
def test_a_time_that_is_none_is_left_out(value: Any) -> None:
    reader = TranscriptReader()
    reader.feed({"role": "user", "content": "hi all", "timestamp": value}, 1)
    assert [t.time for t in reader.turns] == [None]


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "payload",
                    "role",
                    "content",
                    "text",
                    "timestamp",
                    "id",
                    "$set",
                    "kind",
                ]
            ),
            inner
            | st.sampled_from(
                ["user", "assistant", "message", "gemini", "session_meta", "response_item", "text"]
            ),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_json, max_size=6))
def test_nothing_breaks_it_and_every_turn_has_words(records: list[Any]) -> None:
    reader = TranscriptReader()
    for number, record in enumerate(records, start=1):
        reader.feed(record, number)
    reader.feed_json(records, json.dumps(records))
    assert all(t.text.strip() and t.origin in ("owner", "agent", "untrusted") for t in reader.turns)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60).map(lambda t: t * 60) | st.text())
def test_wrapping_breaks_lines_and_loses_no_word(text: str) -> None:
    after = wrapped(text)
    assert all(len(line) <= LINE_CHARACTERS for line in after.split("\n"))
    assert "".join(after.split()) == "".join(text.split())


def test_a_page_on_one_line_becomes_lines() -> None:
    lines = wrapped("lorem ipsum dolor " * 6000).split("\n")
    assert len(lines) > 100
    assert all(line.split()[0] in ("lorem", "ipsum", "dolor") for line in lines)


@pytest.mark.parametrize(
    "piece", ["<system-reminder>", "[Telegram ", "Sender (untrusted metadata):\n", "<a ", "[["]
)
def test_a_hostile_turn_takes_a_time_that_grows_with_it_alone(piece: str, linear: Linear) -> None:
    text = piece * (1_000_000 // len(piece))
    linear(of_user, text)
    linear(of_agent, text)


def test_turns_are_readable() -> None:
    turns = [Turn(1, "owner", "Why?", dt.datetime(2026, 3, 19, 9, 0)), Turn(2, "agent", "Because.")]  # noqa: DTZ001
    assert readable(turns) == "user, 2026-03-19 09:00:\nWhy?\n\nassistant:\nBecause."
