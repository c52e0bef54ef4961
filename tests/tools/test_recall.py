"""The figures of recall, against some that are worked by hand."""

from __future__ import annotations

import pytest

from tools.recall import Figures, Given, Prompt, figures, fitted


def given(kind: str, *passages: tuple[float, bool]) -> Given:
    return Given(Prompt(kind, "text", "sample"), passages)


ANSWERS = [
    given("on", (0.9, True), (0.6, False)),
    given("on", (0.5, True)),
    given("off", (0.4, False)),
    given("off"),
    given("talk"),
    given("none", (0.7, False)),
]


def test_figures_count_passages_and_prompts() -> None:
    assert figures(ANSWERS) == Figures(precision=2 / 5, found=1.0, talk=0.0, off=0.5, none=1.0)
    assert figures(ANSWERS, 0.65) == Figures(
        precision=1 / 2, found=0.5, talk=0.0, off=0.0, none=1.0
    )
    assert figures([]) == Figures(0.0, 0.0, 0.0, 0.0, 0.0)


def test_no_more_passages_count_than_are_given() -> None:
    four = given("on", (0.9, False), (0.8, False), (0.7, False), (0.6, True))
    assert figures([four]).found == 0.0


def test_the_bar_is_the_one_furthest_from_failing() -> None:
    right, wrong = given("on", (0.8, True)), given("none", (0.6, False))
    assert fitted([right, wrong]) == pytest.approx(0.8)
    assert fitted([*[right] * 3, *[given("on", (0.5, True))] * 3, wrong]) == pytest.approx(0.5)
