"""Turns that cannot answer: a question that was asked before, and an answer that found nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from notewell.search.empty_turns import open_turns, openness
from notewell.text.words import query_terms
from notewell.types import Chunk, Signals
from tests.search.made import candidate, chunk, query

QUESTION = "how long do refresh tokens live"
WEIGHTS = dict.fromkeys(query_terms(QUESTION).words, 1.0)


def turn(text: str, origin: str = "agent", title: str = QUESTION) -> Chunk:
    return replace(chunk("t", text, source="sessions", heading=("desk", title)), origin=origin)


def how_open(text: str, origin: str = "agent", question: str = QUESTION) -> float:
    return openness(turn(text, origin), question, WEIGHTS)


@pytest.mark.parametrize(
    "text",
    [
        (
            "I looked through the project files but could not find anything. Shall I search git as "
            "well?"
        ),
        (
            "Sorry, nothing in the files here answers that. I checked README.md, the docs folder "
            "and the notes."
        ),
        "I've gone through everything I can see and I can't tell how long refresh tokens live.",
        "The notes mention related things, but not this.",
        "There doesn't seem to be a note on this. Want me to create one?",
        "I don't have any information about that. If you share the relevant document, I can help.",
        "How long refresh tokens live is not written down anywhere.",
        "Which refresh tokens do you mean?",
        "Sure!",
    ],
)
def test_an_agent_that_found_nothing_tells_nothing(text: str) -> None:
    assert how_open(text) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Refresh tokens live 30 days.",
        "Refresh tokens expire after a month. Do you want me to change that?",
        "Noor set it to 30 days in identity/tokens.py.",
        "How long do refresh tokens live was settled in May: thirty days.",
    ],
)
def test_an_agent_that_answers_is_not_open_even_if_it_asks_at_the_end(text: str) -> None:
    assert how_open(text) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Thirty days; each works once, and a reused one ends the family.",
        "They expire after a month. Do you want me to change the lifetime of refresh tokens?",
        "I'm afraid I drew a blank here. You may want to check Confluence or Slack.",
        "Das geht aus den Dateien nicht hervor.",
    ],
)
def test_an_agent_that_says_nothing_with_a_word_of_the_question_is_half_open(text: str) -> None:
    """Only a model could tell a short answer from one more way to say that nothing was found."""
    assert how_open(text) == 0.5


def test_the_words_of_the_title_and_of_the_question_are_not_the_agents_own() -> None:
    assert how_open("You asked how long refresh tokens live.") == 1.0


def test_an_agent_that_failed_and_tells_something_else_is_partly_open() -> None:
    said = "I could not find how long refresh tokens live. Access tokens live 15 minutes, though."
    assert 0.0 < how_open(said) < 1.0


def test_a_user_who_asked_the_same_before_is_open() -> None:
    assert how_open("how long do refresh tokens live?", "owner") == 1.0
    assert how_open("Please tell me how long the refresh tokens live", "owner") == 1.0


def test_a_prompt_that_is_no_question_is_known_by_its_words_when_it_comes_again() -> None:
    prompt = "HRN-1042 stock below zero in the logs of the importer"
    assert how_open(prompt, "owner", question=prompt) == 1.0
    assert how_open(f"{prompt}.", "owner", question="what happened to the importer") < 1.0


def test_a_user_who_tells_and_then_asks_for_something_is_believed() -> None:
    told = "Refresh tokens live 30 days since the change of May, can you check the tests?"
    assert how_open(told, "owner") == 0.0


def test_a_user_who_tells_one_thing_and_asks_about_the_subject_is_partly_open() -> None:
    said = "The tokens were changed by Noor in May, but how long do refresh tokens live now?"
    assert 0.0 < how_open(said, "owner") < 1.0


def test_a_turn_that_only_asks_is_empty() -> None:
    asked = candidate("ask", text="How long do refresh tokens live?", source="sessions")
    found = open_turns([asked.chunk], query(QUESTION, subject=frozenset(WEIGHTS), weights=WEIGHTS))
    assert found == {"ask": 1.0}
    assert not asked.signals.is_empty
    assert Signals(unanswered=found["ask"]).is_empty
