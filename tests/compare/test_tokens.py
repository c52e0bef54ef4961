from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.compare import tokens as token_module
from notewell.compare.tokens import DATE, FIGURE, MARK, NOT, tokens


def keys(text: str) -> list[str]:
    return [t.key for t in tokens(text)]


def test_months_and_scales_are_read_with_the_letters_of_a_turkish_keyboard() -> None:
    assert keys("APRİL 5") == keys("5 aprıl") == keys("5 April")
    assert keys("3 mıllıon") == keys("3 million")


@pytest.mark.parametrize(
    "spellings",
    [
        ("30 seconds", "30s", "thirty seconds", "30 sec"),
        ("60 minutes", "1 hour", "one hour", "1 h"),
        ("12,000 EUR", "€12000", "12000 euros", "12k EUR"),
        ("32 GB", "32GB", "32000 MB"),
        ("two hundred grams", "200 g"),
        (
            "March 5, 2026",
            "5 March 2026",
            "2026-03-05",
            "5. März 2026",
            "2026年3月5日",
            "5th of March 2026",
            "5 марта 2026",
        ),
        ("2:00 pm", "14:00", "2 pm", "14 Uhr", "14時"),
        ("Friday", "fridays", "Freitag", "星期五", "金曜日"),
        ("does not", "doesn't", "Doesn’t"),
        ("cannot", "can't", "can not"),
        ("no longer", "not", "never"),
        ("**bold** `code`", "bold code"),
        ("[the page](https://example.org)", "the page"),
        ("８０８０", "8080"),
    ],
)
def test_one_meaning_has_one_key_however_it_is_written(spellings: tuple[str, ...]) -> None:
    assert len({tuple(keys(s)) for s in spellings}) == 1, {s: keys(s) for s in spellings}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.1", "3.10"),
        ("-5", "5"),
        ("007", "7"),
        ("30 s", "30 ms"),
        ("5 €", "5 $"),
        ("hunter2", "Hunter2"),
        ("lives", "lived"),
        ("from Ann", "to Ann"),
        ("1234567890123", "1234567890124"),
        ("a < b", "a > b"),
        ("[ ] pay", "[x] pay"),
        ("✅ tests", "❌ tests"),
        ("is it?", "is it"),
        ("ready", "!ready"),
        ("my port", "your port"),
        ("2026-03-05", "2026-03-06"),
        ("9:30", "19:30"),
        ("May 5", "March 5"),
        ("/etc/a", "/opt/a"),
        ("v1.2.3", "v1.2.4"),
        ("支持", "不支持"),
        ("使えます", "使えません"),
        ("1" * 50, "1" * 49 + "2"),
        ("a && b", "a || b"),
    ],
)
def test_what_can_change_a_meaning_is_kept(one: str, other: str) -> None:
    assert keys(one) != keys(other)


def test_kinds_say_what_a_difference_is_about() -> None:
    found = {
        t.key: t.kind for t in tokens("- [x] Port 8080 is not open on 2026-03-05 ✅ in src/app.py")
    }
    assert found["8080"] == FIGURE
    assert found["not"] == NOT
    assert found["2026-03-05"] == DATE
    assert (found["done"], found["✅"]) == (MARK, MARK)
    assert found["src/app.py"] == FIGURE


def test_may_is_a_month_only_beside_a_day_or_year() -> None:
    assert "0000-05-05" in keys("on May 5")
    assert "may" in keys("guests may stay")


def test_words_that_look_like_negations_are_none() -> None:
    assert NOT not in {t.kind for t in tokens("非常好，与别人不同")}


@given(st.text())
def test_any_text_has_tokens_without_an_error(text: str) -> None:
    assert all(t.key for t in tokens(text))


@given(st.text(alphabet="0123456789.,:-/€$%年月日時 spamkbMay", max_size=40))
def test_any_row_of_figures_is_read_the_same_twice(text: str) -> None:
    assert tokens(text) == tokens(text)


_PIECES = st.sampled_from(
    [
        "A",
        "a",
        "may",
        "May",
        "March",
        "two",
        "seconds",
        "30",
        "5 pm",
        "not",
        "any",
        "more",
        "longer",
        "café",
        "(the",
        'port"',
        "e-mail",
        "Ann's",
        "one-time",
        "jan-ann",
        "stops.",
        "why?",
        "deploy:",
        "x_y",
        "3.10",
        "без",
        "不同",
        "没有",
        "星期三",
        "日曜日",
        "未来",
        "[x]",
        "->",
        "!",
        "!=",
        "İs",
        "  ",
        "\n",
        "can't",
        "12k",
        "٣",
        "๓ก",
        "and,",
        "so;",
        "done).",
    ]
)


@settings(max_examples=500)
@given(st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=10), st.booleans())
def test_words_read_by_the_sentence_are_those_read_one_by_one(
    parts: list[str], spaced: bool
) -> None:
    text = token_module._plain((" " if spaced else "").join(parts))
    slow: list[token_module.Token] = []
    at = 0
    while at < len(text):
        if space := token_module._SPACE.match(text, at):
            at = space.end()
        elif token_module._WIDE_RUN.match(text, at):
            at = token_module._wide_run(text, at, at + 1, slow)
        else:
            at = token_module._step(text, at, slow)

    assert token_module._read(text) == slow
