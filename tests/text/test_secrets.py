"""What makes redaction quick must not change what it finds."""

from __future__ import annotations

import re
from collections import Counter
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text import secret_forms, secret_words, secrets
from tests.text.secret_samples import BESIDE, COLLECTED, FURTHER, REPORTED

_TOKENS = [*secrets._STARTS, *secrets._PARTED]
_FOUND = st.sampled_from([token for _, token in REPORTED + COLLECTED])
_NEAR = st.sampled_from(
    [mark for rule in (*_TOKENS, *(r for _, r in secrets._PLACES)) for mark in rule.marks]
)
_WORD = st.sampled_from(
    [
        "password",
        "Pwd",
        "paſſword",
        "SECRET",
        "api_key",
        "apiKey",
        "publickeysecret",
        "accountkey",
        "PRIVATE-KEY",
        "dbPass",
        "toKen",
        "credential",
        "credentıals",
        "credentials",
        "keyİ",
        "auth_key",
        "passphrase",
        "пароль",
        "密码",
        "ŞİFRE",
    ]
)
_GAP = st.sampled_from(
    [
        "",
        " ",
        "=",
        ": ",
        " := ",
        '": "',
        "`*=> ",
        "  :\t",
        "s: ",
        "[",
        "](",
        "\n",
        "—",
        ".",
        "|",
        " | ",
        "：",
    ]
)
_VALUE = st.sampled_from(
    [
        "hunter2!x",
        "abcD1234efgh",
        "example",
        "x" * 40,
        "日本語のパスワード1a",
        "os.environ(",
        "12345678",
        "[redacted:jwt]",
    ]
)
_PRIVATE = st.sampled_from(
    ["<private>", "</private>", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "`"]
)
_BESIDE = st.sampled_from([text for _, text in BESIDE + FURTHER])
_TEXT = st.lists(
    st.one_of(_FOUND, _NEAR, _WORD, _GAP, _GAP, _VALUE, _PRIVATE, _BESIDE, st.text(max_size=8)),
    max_size=14,
)


def _slowly(text: str, counts: Counter[str]) -> str:
    """The same with every rule for tokens run over all of the text, and every sign looked at."""

    def signs(lowered: str) -> list[int]:
        return [
            match.start() for match in re.finditer(f"[{re.escape(secret_words._SIGNS)}]", lowered)
        ]

    with (
        patch.object(secrets, "_token_rules", lambda text: _TOKENS),
        patch.object(secrets, "signs", signs),
        patch.object(secrets, "_NEEDS", {needs: needs for needs in secrets._NEEDS}),
        patch.object(secret_words, "_SIGNS_MOST", 1_000_000),
    ):
        return secrets._without(text, counts)


@settings(max_examples=400, deadline=None)
@given(_TEXT)
def test_no_secret_is_missed_for_speed(parts: list[str]) -> None:
    text = "".join(parts)
    quick: Counter[str] = Counter()
    slow: Counter[str] = Counter()

    assert secrets._without(text, quick) == _slowly(text, slow)
    assert quick == slow


@pytest.mark.parametrize(("kind", "token"), REPORTED + COLLECTED)
def test_a_token_is_one_long_run(kind: str, token: str) -> None:
    runs = token.encode().translate(secrets._BETWEEN).split(b" ")

    assert len(runs) == 1
    assert len(runs[0]) >= secrets._TOKEN_LEAST


def test_every_mark_that_ends_with_a_sign_is_looked_for() -> None:
    signed = [
        mark
        for _, _, marks, _, _ in secret_forms.PLACES
        for mark in marks.split()
        if mark[-1] in ":="
    ]
    assert len(secrets._SIGNED) == len(signed)
    assert all(mark[-4:-1] in secret_words._ENDINGS for mark in signed)


def test_a_name_of_a_kind_has_no_digit_so_that_a_mark_is_no_value() -> None:
    kinds = {rule.kind for rule in (*_TOKENS, *(rule for _, rule in secrets._PLACES))}
    assert len(kinds) >= 120
    assert all(re.fullmatch("[a-z-]+", kind) for kind in kinds)
