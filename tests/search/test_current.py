"""The newest of several passages on a subject, the one of a period, and replies before what only
asks.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from typing import Any

import pytest

from notewell.search.current import Newer, Replies
from notewell.search.fusion import ordered
from notewell.search.stages import Settle
from notewell.text.periods import time_asked
from notewell.text.words import query_terms
from notewell.types import Candidate, Query, Relations, Signals
from tests.search.made import NOW, candidate, day, ids, query

OLD = "Staging answers on port 8080."
NEW = "Staging answers on port 9443 from now on."


def question(text: str, weights: str = "staging port deploy day", **rest: Any) -> Query:
    """A question whose words each have the same weight."""
    about = time_asked(text, NOW)
    return query(
        text,
        dates=about.dates,
        tense=about.tense,
        until=about.until,
        before=about.before,
        subject=about.subject,
        weights=dict.fromkeys(query_terms(weights).words, 1.0),
        **rest,
    )


def note(name: str, score: float, text: str, age: int | None = None, **rest: Any) -> Candidate:
    return candidate(name, score, text, date=None if age is None else day(age), **rest)


PAIR = [note("old", 0.9, OLD, 90), note("new", 0.6, NEW, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "staging port",
        "Which port does staging use?",
        "Do we still use that staging port?",
        "staging port this year",
    ],
)
def test_the_newest_of_two_on_the_same_subject_goes_first(text: str) -> None:
    found = Newer()(PAIR, question(text))
    assert ids(found) == ["new", "old"]
    assert found[0].score == 0.9
    assert ids(Newer()(found, question(text))) == ["new", "old"]


@pytest.mark.parametrize(
    "text",
    [
        "Which port did staging use first?",
        "When did the staging port change?",
        "What port did staging use?",
    ],
)
def test_a_question_about_history_or_the_past_keeps_its_order(text: str) -> None:
    assert list(Newer()(PAIR, question(text))) == PAIR


def test_a_period_takes_the_newest_that_held_then() -> None:
    notes = [
        note("new", 0.9, NEW, 3),
        note("older", 0.8, "Staging answers on port 7070.", 400),
        note("old", 0.7, OLD, 90),
    ]
    assert ids(Newer()(notes, question("what port did staging use in January"))) == [
        "old",
        "older",
        "new",
    ]
    assert ids(Newer()(notes, question("what port did staging use in 2025"))) == [
        "old",
        "older",
        "new",
    ]
    assert ids(Newer()(notes, question("what port did staging use before 2025-06"))) == [
        "older",
        "new",
        "old",
    ]


def test_what_goes_first_is_as_likely_as_what_it_outdates() -> None:
    sure = [
        replace(c, signals=Signals(confidence=value))
        for c, value in zip(PAIR, (0.8, 0.3), strict=True)
    ]
    assert [c.confidence for c in Newer()(sure, question("staging port"))] == [0.8, 0.8]


def test_what_held_in_a_period_is_not_less_likely_for_being_written_before_it() -> None:
    known = [Signals(confidence=0.05, date=0.0), Signals(confidence=0.003, date=0.0)]
    notes = [note("new", 0.9, NEW, 3), note("old", 0.7, OLD, 90)]
    notes = [replace(c, signals=own) for c, own in zip(notes, known, strict=True)]
    first, second = Newer()(notes, question("what port did staging use in January"))
    assert (first.id, first.confidence > 0.2, second.confidence) == ("old", True, 0.05)


def test_before_an_event_is_before_the_note_that_tells_of_it() -> None:
    notes = [
        note("moved", 0.9, "The staging port is 9443 since.", 3, heading=("The move",)),
        note("old", 0.6, OLD, 90),
    ]
    assert ids(Newer()(notes, question("what port did staging use before the move"))) == [
        "old",
        "moved",
    ]
    other = question("what port did staging use before the flood")
    assert ids(Newer()(notes, other)) == ["moved", "old"], "nothing tells when that was"


def test_an_older_note_stays_first_if_only_that_one_answers() -> None:
    old = note("old", 0.9, "The staging port for metrics is 8080.", 90)
    for text in (
        "Staging is slow today.",
        "Is the staging port still 8080?",
        "Ann looks after the staging port.",
    ):
        assert ids(Newer()([old, note("new", 0.8, text, 3)], question("staging port"))) == [
            "old",
            "new",
        ], text


def test_another_subject_is_not_outdated() -> None:
    other = note("new", 0.85, "The printer is now on floor 3.", 3)
    assert ids(Newer()([PAIR[0], other], question("staging port"))) == ["old", "new"]


def test_without_a_change_the_newer_must_be_close() -> None:
    one, other = (
        note("a", 0.8, "Staging has an open port.", 90),
        note("b", 0.6, "The port of staging is open.", 3),
    )
    apart = math.log(0.8 / 0.2) - math.log(0.6 / 0.4)
    asked = question("staging port")
    assert ids(Newer(apart + 1e-9)([one, other], asked)) == ["b", "a"]
    assert ids(Newer(apart - 1e-9)([one, other], asked)) == ["a", "b"]
    assert ids(Newer(sure=0.1)(PAIR, asked)) == ["old", "new"]


def test_undated_notes_notes_of_one_day_and_of_one_file_stay() -> None:
    asked = question("staging port")
    for pair in (
        [note("a", 0.9, OLD, 9), note("b", 0.8, NEW)],
        [note("a", 0.9, OLD), note("b", 0.8, NEW, 9)],
        [note("a", 0.9, OLD, 9), note("b", 0.8, NEW, 9)],
        [note("a", 0.9, OLD, 9, path="x.md"), note("b", 0.8, NEW, 3, path="x.md")],
        [],
    ):
        assert list(Newer()(pair, asked)) == pair
    assert list(Newer()(PAIR, query("staging port"))) == PAIR, (
        "without weights nothing is known of the words"
    )


@pytest.mark.parametrize(
    ("first", "second", "moves"),
    [
        ("2026-02-10-0526.md", "2026-02-10-0928.md", True),
        ("2026-02-10T05:26 call.md", "20260210_0928.md", True),
        ("2026-02-10-0928.md", "2026-02-10-0526.md", False),
        ("2026-02-10.md", "2026-02-10-0928.md", False),
        ("2026-02-10-0526.md", "2026-02-10-2861.md", False),
    ],
)
def test_of_one_day_the_time_in_the_names_of_both_files_tells_the_newer(
    first: str, second: str, moves: bool
) -> None:
    pair = [
        note("a", 0.9, OLD, 9, path=f"memory/{first}"),
        note("b", 0.8, NEW, 9, path=f"memory/{second}"),
    ]
    assert ids(Newer()(pair, question("staging port"))) == (["b", "a"] if moves else ["a", "b"])


def test_only_what_competes_near_the_top_moves() -> None:
    between = [note(f"n{i}", 0.8 - i / 100, f"Garden number {i}.") for i in range(5)]
    found = Newer()([PAIR[0], *between, PAIR[1]], question("staging port"))
    assert ids(found)[0] == "old"


def test_a_new_figure_in_a_change_is_marked_as_a_contradiction_of_both() -> None:
    found = {c.id: c.relations.conflicts_with for c in Newer()(PAIR, question("staging port"))}
    assert found == {"new": ("old",), "old": ("new",)}
    again = Newer()(PAIR[::-1], question("staging port"))
    assert {c.id: c.relations.conflicts_with for c in again} == found, "in whatever order they come"
    known = replace(PAIR[0], relations=Relations(conflicts_with=("new", "x")))
    assert Newer()([known, PAIR[1]], question("staging port"))[1].relations.conflicts_with == (
        "new",
        "x",
    )
    three = [note("oldest", 0.5, "Staging answers on port 7070.", 400), *PAIR]
    chain = {
        c.id: c.relations.conflicts_with for c in Newer()(ordered(three), question("staging port"))
    }
    assert chain["new"] == ("old",), "of several, the last one before it"
    vague = Newer()(PAIR, question("staging", weights="staging"))
    assert not any(c.relations.conflicts_with for c in vague), "of one word much can be said"


def test_a_contradiction_in_the_index_does_not_undo_a_period() -> None:
    pair = [
        replace(c, relations=Relations(conflicts_with=(other,)))
        for c, other in zip(reversed(PAIR), ("old", "new"), strict=True)
    ]
    for text in ("what port did staging use in January", "which port did staging use first"):
        asked = question(text)
        assert ids(Settle()([pair[1], pair[0]], asked)) == ["old", "new"]


def turn(name: str, score: float, text: str, line: int, origin: str) -> Candidate:
    made = candidate(name, score, text, source="sessions", path="chat.jsonl")
    return replace(made, chunk=replace(made.chunk, start_line=line, end_line=line, origin=origin))


def test_a_reply_goes_before_the_turn_that_asks_the_same_and_no_confidence_is_lent() -> None:
    asking = turn("ask", 0.99, "Which port does staging use?", 3, "owner")
    reply = turn("reply", 0.05, "It is 9443.", 5, "agent")
    later = turn("later", 0.04, "The tomatoes are red.", 9, "agent")
    asking, reply = (
        replace(c, signals=Signals(confidence=confidence))
        for c, confidence in ((asking, 0.9), (reply, 0.1))
    )
    found = Replies()([asking, later, reply], question("which staging port is it"))
    assert ids(found) == ["reply", "ask", "later"]
    assert (found[0].score, found[0].confidence, found[0].signals.reply) == (0.99, 0.1, 1.0)
    assert list(Replies()([asking, reply], question("tomatoes"))) == [asking, reply]


def test_a_reply_that_found_nothing_stays_where_it_is() -> None:
    asking = turn("ask", 0.99, "Which port does staging use?", 3, "owner")
    failed = turn("failed", 0.05, "I could not find that.", 5, "agent")
    failed = replace(failed, signals=Signals(unanswered=1.0))
    assert ids(Replies()([asking, failed], question("which staging port is it"))) == [
        "ask",
        "failed",
    ]


def test_a_reply_goes_before_a_plain_question_that_names_more_than_was_asked() -> None:
    reply = turn("reply", 0.05, "It is 9443.", 5, "agent")
    for text, first in (
        ("Which port does the staging service of Harbour listen on?", "reply"),
        ("I gave the staging service of Harbour another port, can you look at it?", "ask"),
        ("Is the staging service of Harbour on port 9443?", "ask"),
    ):
        asking = turn("ask", 0.99, text, 3, "owner")
        assert ids(Replies()([asking, reply], question("staging port")))[0] == first, text


def test_a_turn_that_only_asks_goes_behind_what_says_something_about_it() -> None:
    asking = turn("ask", 0.9, "Hello! Which port does staging use?", 3, "owner")
    told = note("told", 0.7, OLD)
    asked = question("which staging port is it")
    assert ids(Replies()([asking, told], asked)) == ["told", "ask"]
    assert ids(Replies(margin=0.1)([asking, told], asked)) == ["ask", "told"]
    also = turn("also", 0.7, "What is the staging port?", 8, "owner")
    assert ids(Replies()([asking, also], asked)) == ["ask", "also"], "that one only asks too"


def test_a_turn_that_tells_while_it_asks_stays() -> None:
    told = note("told", 0.7, OLD)
    for text in (
        "Staging moved to port 9443. Which port is free now?",
        (
            "I set the staging port to 9443 for the new proxy of the office, can you check my "
            "certificates as well?"
        ),
    ):
        asking = turn("ask", 0.9, text, 3, "owner")
        assert ids(Replies()([asking, told], question("which staging port is it"))) == [
            "ask",
            "told",
        ], text


def test_the_days_of_a_passage_at_the_ends_of_the_calendar_are_days() -> None:
    ends = [
        replace(note(name, score, text), chunk=replace(note(name, score, text).chunk, time=when))
        for name, score, text, when in (
            ("first", 0.9, OLD, dt.datetime.min),  # noqa: DTZ901
            ("last", 0.8, NEW, dt.datetime.max),  # noqa: DTZ901
        )
    ]
    assert ids(Newer()(ends, question("staging port"))) == ["last", "first"]
    assert ids(Newer()(ends, question("staging port before the port"))) == ["first", "last"]
