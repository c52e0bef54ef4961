"""A secret in a sentence goes, in twelve languages, and a sentence about secrets stays."""

from __future__ import annotations

import re

import pytest

from notewell.text.redact import Redactor
from tests.text.secret_prose import FORMS, LATER_FORMS, LATER_LOOK_ALIKES, LOOK_ALIKES, filled

REDACT = Redactor()


def exactly(text: str, value: str) -> bool:
    """Whether all of the value goes and nothing else does."""
    before, after = text.split(value)
    shown = REDACT(text).text
    return re.fullmatch(rf"{re.escape(before)}\[redacted:[a-z]+\]{re.escape(after)}", shown) is not None


def test_there_are_120_of_each_and_none_twice() -> None:
    assert len(set(FORMS)) == len(FORMS) == 120
    assert len(set(LOOK_ALIKES)) == len(LOOK_ALIKES) >= 120
    assert len(LATER_FORMS) == len(LATER_LOOK_ALIKES) == 40


@pytest.mark.parametrize("forms", [FORMS, LATER_FORMS], ids=["fitted", "held out"])
def test_at_least_90_of_100_sentences_lose_their_secret_and_nothing_else(forms: list[str]) -> None:
    missed = [text for text, value in filled(forms) if not exactly(text, value)]

    assert len(missed) <= len(forms) // 10, missed


@pytest.mark.parametrize("text", LOOK_ALIKES + LATER_LOOK_ALIKES)
def test_a_sentence_about_secrets_stays(text: str) -> None:
    assert REDACT(text).text == text
