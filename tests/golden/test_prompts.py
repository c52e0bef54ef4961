"""The hook of a prompt over labelled prompts: what it gives is right, and mostly it is silent.

`hook.confidence` was chosen on one half of the prompts by `tools/recall.py`; these figures are
those of the other half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from notewell.memory import Memory
from notewell.settings import HookSettings
from notewell.text.small_talk import says_something
from tools import recall


@pytest.fixture(scope="module")
def prompts() -> list[recall.Prompt]:
    return recall.prompts()


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Memory]]:
    with ExitStack() as stack:
        opened = recall.opened(tmp_path_factory.mktemp("prompts"))
        yield {name: stack.enter_context(memory) for name, memory in opened}


def test_there_are_enough_prompts_of_every_kind(prompts: list[recall.Prompt]) -> None:
    different = {(p.kind, p.text) for p in prompts}
    kinds = Counter(kind for kind, _ in different)
    assert len(different) >= 300
    assert set(kinds) == {"talk", "off", "on", "none"}
    assert min(kinds.values()) >= 35
    assert {p.notes for p in prompts if p.kind == "on"} == set(recall.NOTES)


def test_every_label_names_a_section_that_is_there(prompts: list[recall.Prompt]) -> None:
    for prompt in prompts:
        assert bool(prompt.expect) is (prompt.kind == "on")
        for place in prompt.expect:
            name, _, heading = place.partition("#")
            start, end = recall.section(recall.NOTES[prompt.notes] / name, heading)
            assert start < end


def test_small_talk_is_told_from_questions_without_a_search(prompts: list[recall.Prompt]) -> None:
    heard = {p.text for p in prompts if p.kind == "talk" and says_something(p.text)}
    missed = {p.text for p in prompts if p.kind in ("on", "none") and not says_something(p.text)}
    assert len(heard) <= 2
    assert not missed


@pytest.mark.slow
def test_what_is_given_is_right_and_mostly_nothing_is(
    prompts: list[recall.Prompt], memories: dict[str, Memory]
) -> None:
    own = HookSettings()
    figures = recall.figures([recall.given(p, memories[p.notes], own) for p in prompts if p.held])
    assert figures.precision >= recall.PRECISION
    assert figures.found >= recall.FOUND
    assert figures.talk <= recall.MOST_TALK
    assert figures.off <= recall.MOST_OFF


@pytest.mark.slow
def test_the_bar_is_the_one_that_is_measured(
    prompts: list[recall.Prompt], memories: dict[str, Memory]
) -> None:
    own = recall.open_bar()
    fit = [recall.given(p, memories[p.notes], own) for p in prompts if not p.held]
    assert recall.fitted(fit) == pytest.approx(HookSettings().confidence, abs=0.05)
