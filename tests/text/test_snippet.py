"""Snippets: short, and with what matched in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.snippet import _matches, _plain_matches, snippet
from notewell.text.words import query_terms, term_set

FILLER = "Lorem ipsum dolor sit amet consectetur. "


def shows(text: str, query: str) -> bool:
    asked, found = query_terms(query), term_set(text)
    return bool(found.intersection(asked.words)) or any(
        t.startswith(p) for t in found for p in asked.prefixes
    )


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("  The deploy failed.\n", "deploy") == "The deploy failed."


def test_it_is_centred_on_the_match_and_says_where_it_was_cut() -> None:
    out = snippet(
        FILLER * 30 + "The deploy failed twice. " + FILLER * 30, "why did the deploy fail"
    )
    assert "The deploy failed twice." in out
    assert out.startswith("…")
    assert out.endswith("…")


def test_the_place_with_the_most_terms_wins() -> None:
    text = "A deploy. " + FILLER * 30 + "The deploy failed on Friday. " + FILLER * 30
    assert "failed on Friday" in snippet(text, "deploy failed friday")


def test_without_a_match_it_is_the_head() -> None:
    out = snippet("First words. " + FILLER * 30, "zebra")
    assert out.startswith("First words.")
    assert out.endswith("…")


def test_words_are_not_cut_when_a_gap_is_near() -> None:
    out = snippet(FILLER * 60, "nothing")
    assert out.rstrip("…").split()[-1] in FILLER.split()


@pytest.mark.parametrize(
    ("needle", "query"),
    [
        ("京", "京"),
        ("東京都庁", "都庁"),
        (
            "Donaudampfschifffahrtsgesellschaftskapitän",
            "donaudampfschifffahrtsgesellschaftskapitän",
        ),
        ("한국어", "한국어"),
        ("ｄｅｐｌｏｙ", "deploy"),
    ],
)
@pytest.mark.parametrize("filler", ["あいうえおかきくけこ", FILLER, "größe und maß "])
def test_a_match_in_any_script_is_shown(needle: str, query: str, filler: str) -> None:
    for shift in range(0, 30, 7):
        text = filler * 50 + "あ" * shift + needle + "。" + filler * 50
        assert shows(snippet(text, query), query)


def test_a_match_deep_inside_a_line_without_spaces_is_shown() -> None:
    text = ",".join(f'"key{i}":"value{i}"' for i in range(200))
    assert "value150" in snippet(text, "value150")


def test_a_gap_behind_the_match_does_not_push_it_out() -> None:
    assert "針" in snippet("。" * 200 + "針 " + "。" * 200, "針", limit=40)


@given(
    st.text(min_size=1, max_size=20), st.integers(1, 60), st.text(max_size=30), st.integers(10, 120)
)
@settings(max_examples=200, deadline=None)
def test_it_is_never_longer_than_the_limit(text: str, times: int, query: str, limit: int) -> None:
    assert len(snippet(text * times, query, limit=limit)) <= limit


@pytest.mark.parametrize("place", range(0, 60, 7))
@pytest.mark.parametrize("text", ["x" * 500, "漢" * 500, "ab " * 200, "\U0001f600" * 500])
def test_the_dots_count(text: str, place: int) -> None:
    assert len(snippet(f"{text[place:]} needle {text}", "needle", limit=100)) <= 100


@given(
    st.lists(st.text(alphabet="abcdeäж漢字.\n", min_size=1, max_size=12), min_size=1, max_size=60),
    st.sampled_from(["needle", "Nadel-spitze", "針", "針山地獄", "바늘", "игла"]),
    st.integers(0, 60),
    st.integers(40, 120),
)
@settings(max_examples=300, deadline=None)
def test_it_has_a_match_when_there_is_one(
    words: list[str], needle: str, place: int, limit: int
) -> None:
    text = " ".join([*words[:place], needle, *words[place:]])
    assert shows(snippet(text, needle, limit=limit), needle)


WORDS = (
    *(
        "dying",
        "dies",
        "skies",
        "Sky",
        "happy",
        "happily",
        "relational",
        "deploys,",
        "re-deploy",
        "(deploy)",
        "DEPLOY",
    ),
    *(
        "deployHook",
        "a/deploy.md",
        "the",
        "v1.2",
        "'deploy's'",
        "C++",
        "--",
        "news",
        "organized",
        "deploy.deploy",
    ),
)


@given(
    st.lists(
        st.sampled_from(WORDS) | st.text(st.characters(max_codepoint=127), max_size=8), max_size=30
    )
)
def test_the_short_way_for_plain_texts_finds_what_the_long_way_finds(words: list[str]) -> None:
    text = " ".join(words).strip()
    for query in (
        "why did the deploy die",
        "sky happiness relation c++ v1.2",
        "organization news re-deployment",
    ):
        assert _plain_matches(text, query) == list(_matches(text, query))


def test_around_a_part_its_own_words_count_and_else_its_head() -> None:
    text = "  " + "apple pear. " * 40 + "THE PART has a plum and more. " + "grape fig. " * 40
    start = text.index("THE PART")
    part = (start, start + len("THE PART has a plum and more."))
    assert snippet(text, "apple", around=part).startswith("…THE PART has a plum"), (
        "the apples are elsewhere"
    )
    assert "plum" in snippet(text, "apple plum", limit=40, around=part)
    assert snippet(text, "apple", limit=40) == snippet(text, "apple", limit=40, around=(0, 20))
    assert snippet(text, "nothing", around=(len(text) - 5, len(text))).endswith("grape fig.")
    assert snippet("short", "nothing", around=(1, 2)) == "short"
