"""What makes redaction quick must not change what it finds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.text import secrets

_FOUND = st.one_of(*(st.from_regex(rule.source, fullmatch=True) for rule in secrets._RULES))
_NEAR = st.sampled_from([mark for rule in secrets._RULES for mark in rule.marks])
_WORD = st.sampled_from(
    ["password", "Pwd", "paſſword", "SECRET", "api_key", "apiKey", "publickeysecret", "accountkey", "PRIVATE-KEY",
     "toKen", "credential", "credentıals", "credentials", "keyİ", "auth_key", "passphrase"]
)  # fmt: skip
_GAP = st.sampled_from(["", " ", "=", ": ", " := ", '": "', "`*=> ", "  :\t", "s: ", "[", "](", "\n", "—", "."])
_VALUE = st.sampled_from(
    ["hunter2!x", "abcD1234efgh", "example", "x" * 40, "日本語のパスワード1a", "os.environ(", "12345678"]
)
_PRIVATE = st.sampled_from(["<private>", "</private>", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "`"])
_TEXT = st.lists(st.one_of(_FOUND, _NEAR, _WORD, _GAP, _GAP, _VALUE, _PRIVATE, st.text(max_size=8)), max_size=14)


def _slowly(text: str, counts: Counter[str]) -> str:
    """The same with every rule run over all of the text."""
    lowered = text.lower()
    text = secrets._without_keys(secrets._without_private(text, counts), counts)
    for rule in secrets._RULES:
        if any(mark in lowered for mark in rule.marks):
            text = secrets._apply(rule, text, counts)
    if any(word in lowered for word in secrets._ASSIGNABLE):
        pattern = secrets._compiled(secrets._ASSIGNED)
        text = pattern.sub(lambda match: secrets._assigned(match, counts), text)
    return text


@settings(max_examples=400)
@given(_TEXT)
def test_no_secret_is_missed_for_speed(parts: list[str]) -> None:
    text = "".join(parts)
    quick: Counter[str] = Counter()
    slow: Counter[str] = Counter()

    assert secrets.without_secrets(text, quick) == _slowly(text, slow)
    assert quick == slow


@settings(max_examples=300)
@given(st.data())
def test_a_token_is_one_long_run(data: st.DataObject) -> None:
    rules = list(dict.fromkeys(rule for _, rule in secrets._TOKEN_MARKS))
    rule = data.draw(st.sampled_from(rules))
    token = data.draw(st.from_regex(rule.source, fullmatch=True))
    runs = token.encode().translate(secrets._BETWEEN).split(b" ")

    assert len(runs) == 1
    assert len(runs[0]) >= secrets._TOKEN_LEAST
