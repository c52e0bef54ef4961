"""A secret in a sentence goes, in twelve languages, and a sentence about secrets stays."""

from __future__ import annotations

import re

import pytest

from notewell.text.redact import Redactor
from tests.growth import Linear
from tests.text.secret_prose import (
    FORMS,
    FURTHER_FORMS,
    FURTHER_LOOK_ALIKES,
    LATER_FORMS,
    LATER_LOOK_ALIKES,
    LOOK_ALIKES,
    filled,
)

REDACT = Redactor()


def exactly(text: str, value: str) -> bool:
    """Whether all of the value goes and nothing else does."""
    before, after = text.split(value)
    shown = REDACT(text).text
    return (
        re.fullmatch(rf"{re.escape(before)}\[redacted:[a-z]+\]{re.escape(after)}", shown)
        is not None
    )


def test_there_are_120_of_each_and_none_twice() -> None:
    assert len(set(FORMS)) == len(FORMS) == 120
    assert len(set(LOOK_ALIKES)) == len(LOOK_ALIKES) >= 120
    assert len(set(FURTHER_FORMS)) == len(FURTHER_FORMS) == 93
    assert len(set(FURTHER_LOOK_ALIKES)) == len(FURTHER_LOOK_ALIKES) == 73
    assert len(set(LATER_FORMS)) == len(LATER_FORMS) == 75
    assert len(LATER_LOOK_ALIKES) == 40


def missed(forms: list[str]) -> list[str]:
    return [text for text, value in filled(forms) if not exactly(text, value)]


@pytest.mark.parametrize(
    "forms", [FORMS, FURTHER_FORMS, LATER_FORMS], ids=["fitted", "fitted later", "held out"]
)
def test_at_least_90_of_100_sentences_lose_their_secret_and_nothing_else(forms: list[str]) -> None:
    assert len(missed(forms)) <= len(forms) // 10, missed(forms)


@pytest.mark.parametrize("forms", [FORMS, FURTHER_FORMS], ids=["fitted", "fitted later"])
def test_at_least_95_of_100_of_those_that_the_rules_were_fitted_to(forms: list[str]) -> None:
    assert len(missed(forms)) <= len(forms) // 20, missed(forms)


@pytest.mark.parametrize("text", LOOK_ALIKES + FURTHER_LOOK_ALIKES + LATER_LOOK_ALIKES)
def test_a_sentence_about_secrets_stays(text: str) -> None:
    assert REDACT(text).text == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mdp: {}", "sunny_" + "hill42"),
        ("PIN: {}", "44" + "71"),
        ("**Geheimzahl**: {}", "44" + "71"),
        ("API-Schlüssel : {}", "mt0Kq92L" + "zXv8RtPe"),
        ("passphrase: {}", "quatre chats " + "gris dorment"),
        ("Our passcode - {}", "44" + "71"),
        ("пин от карты {}", "44" + "71"),
        ("暗証番号 {}", "44" + "71"),
        ("Hasło administratora: {}", "sunny_" + "hill42"),
        ("Das Passwort wurde ersetzt durch {}", "Tr3no_" + "Blu88"),
    ],
)
def test_a_colon_a_genitive_or_a_verb_is_enough(text: str, value: str) -> None:
    assert exactly(text.format(value), value)


@pytest.mark.parametrize(
    "text",
    [
        "The password is db_pass_22.",
        "The password is TEST_LOGIN_22.",
        "The password is Test_Case2.",
        "I changed the password and moved the server to hetzner-fsn1.",
        "Hab das Passwort auf db-prod-02 geändert.",
        "Le mot de passe a été changé par ravi42.",
        "See the user guide, password section-4.",
        "PIN for order number 12345.",
        "비밀번호를 vault-prod-2 로 옮겼다.",
        "主キーは 3f2504e04f8941d3" + "9a0c0305e82c3301 です",
        "쿠키는 3f2504e04f8941d3" + "9a0c0305e82c3301 입니다",
        "w, pw = stats.shapiro(x1)",
        "passphrase: 'sample',",
    ],
)
def test_a_name_of_a_program_a_host_or_a_section_stays(text: str) -> None:
    assert REDACT(text).text == text


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "password is a" + "_1a" * 80 + " ",
            "user a, password a1 ",
            "password is still ",
            "passphrase: aa bb cc\n",
        ),
        *("PIN of a b 1234 ", "암호를 a1b2c3-1 로", "api キー ", "mdp: "),
    ],
)
def test_a_long_text_takes_a_time_that_grows_with_it_alone(piece: str, linear: Linear) -> None:
    linear(REDACT, piece * (300_000 // len(piece)))
