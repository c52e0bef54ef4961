"""Sentences that tell of a change, ask, or say other things of the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.compare.change import figures, gives_new_figure, says_other, tells_change


@pytest.mark.parametrize(
    "sentence",
    [
        "Deploys moved to Tuesday.",
        "We no longer print it.",
        "Dana resigned for family reasons.",
        "Sofia takes the chair from now on.",
        "Applications go to Pim instead of Ruth.",
        "Ines handed the weekly demo over to Bram.",
        "Die Probe ist nicht mehr dienstags.",
        "Frau Albers ist zurückgetreten.",
        "Le pain est désormais livré à 7 h.",
        "Il n'y a plus de glaces.",
        "Ya no pedimos los reactivos a Quimar.",
        "A partir de ahora preside el doctor Ibarra.",
        "发布日改到每周二上午。",
        "会刊不再印刷。",
    ],
)
def test_a_change_is_told_in_many_ways(sentence: str) -> None:
    assert tells_change(sentence)
    assert tells_change(sentence.upper())


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "Deploys go out on Thursdays.",
        "Die Probe ist dienstags.",
        "Le pain arrive à 6 h.",
        "端口是 8080。",
    ],
)
def test_a_state_is_no_change(sentence: str) -> None:
    assert not tells_change(sentence)


def test_figures_are_numbers_and_days() -> None:
    assert figures("Staging is on 9443 since Tuesday.") == {"9443", "day1"}
    assert figures("Staging is there.") == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Staging answers on port 8080.", "Staging listens on 9443."),
        ("Deploys go out on Thursdays.", "Tuesday is the day for deploys."),
        ("The tool prints a summary.", "The tool does not print a summary."),
        ("构建工具默认会打印摘要", "构建工具默认不打印摘要"),
    ],
)
def test_other_figures_and_denials_are_something_else(one: str, other: str) -> None:
    assert says_other(one, other)
    assert says_other(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Staging answers on port 8080.", "Staging: port 8080"),
        ("Staging is slow.", "Staging is slow."),
        ("Staging has port 8080.", "Staging is old since Tuesday."),
        ("", "Staging has port 8080."),
    ],
)
def test_the_same_figure_or_one_of_another_kind_is_not(one: str, other: str) -> None:
    assert not says_other(one, other)


def test_a_new_figure_may_stand_beside_the_old_one() -> None:
    assert gives_new_figure("We deploy on Tuesday, not on Wednesday.", "We deploy on Wednesday.")
    assert not gives_new_figure("We deploy on Wednesday.", "We deploy on Tuesday or Wednesday.")
    assert not gives_new_figure("We deploy on Tuesday.", "We deploy.")


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    assert says_other(one, other) in (True, False)
    assert not says_other(one, one)
    assert tells_change(one) in (True, False)
    assert not gives_new_figure(one, one)
