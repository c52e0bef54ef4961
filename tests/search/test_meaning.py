"""Meaning by the whole passage and by its nearest window: what is found, how far above chance, and
where.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from notewell.embed.embedder import QuestionVector
from notewell.search.explain import one_line
from notewell.search.meaning import Meaning, Measured, measure, near_lines, near_text, spread
from notewell.search.pipeline import Profile, SearchContext, run
from notewell.search.profiles import PROFILES, adapted
from notewell.search.prompt_block import merged
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Nearest, Scored
from notewell.types import Candidate, Chunk
from tests.embed.models import Windowed
from tests.search.made import chunk, context_of, query, store_of

MODEL = Windowed(dim=256)
MODEL.window_dims = 256
QUESTION = "crimson dragonfly lantern"
FILLER = [f"gardens rivers hills number{n} barley oats weather cattle roads" for n in range(12)]


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def long_passage(name: str, at: int, line: str) -> Chunk:
    """Twelve lines about nothing, with one of them replaced."""
    return replace(
        chunk(name, "\n".join([*FILLER[:at], line, *FILLER[at + 1 :]])), start_line=30, end_line=41
    )


def ask(text: str, profile: Profile, context: SearchContext) -> tuple[Candidate, ...]:
    return run(query(text, limit=50), profile, context).candidates


def test_a_passage_is_found_by_its_best_part(executor: Executor) -> None:
    deep = long_passage("deep", 7, "crimson dragonfly lantern")
    others = [
        chunk(f"short{n}", f"dragonfly number{n} barley oats weather cattle") for n in range(30)
    ]
    store = store_of([deep, *others], MODEL)
    context = context_of(store, MODEL, executor)
    plain = [c.id for c in ask(QUESTION, replace(PROFILES["vector"], windows=0), context)]
    first, *_ = ask(QUESTION, PROFILES["vector"], context)
    assert plain.index("deep") > 5
    assert first.id == "deep"
    assert first.ranks["vector"].score == first.signals.cosine == first.score
    whole, part = first.signals.whole, first.signals.part
    assert whole is not None
    assert part is not None
    assert part == pytest.approx(1.0, abs=0.01)
    assert first.signals.cosine == pytest.approx((whole + part) / 2, abs=1e-6)
    assert near_lines(first) == (37, 37)
    assert "line 37 is nearest in meaning" in one_line(first, near_lines(first))


def test_windows_reach_beyond_the_pool_and_fill_it(executor: Executor) -> None:
    deep = long_passage("deep", 3, QUESTION)
    store = store_of(
        [deep, *(chunk(f"s{n:02}", f"dragonfly number{n} barley oats") for n in range(40))], MODEL
    )
    context = context_of(store, MODEL, executor)
    small = replace(PROFILES["vector"], pool=5)
    assert "deep" not in [c.id for c in ask(QUESTION, replace(small, windows=5), context)]
    found = ask(QUESTION, replace(small, windows=200), context)
    assert [found[0].id, len(found)] == ["deep", 5]
    assert [c.ranks["vector"].rank for c in found] == [1, 2, 3, 4, 5]
    assert [c.id for c in found[1:]] == ["s00", "s01", "s02", "s03"] or found[1].score > found[
        4
    ].score


def test_a_passage_that_words_found_is_measured_by_its_windows_too(executor: Executor) -> None:
    deep = long_passage("deep", 5, "zeppelin crimson dragonfly lantern")
    store = store_of([deep, *(chunk(f"s{n:02}", QUESTION + f" {n}") for n in range(30))], MODEL)
    profile = replace(PROFILES["default"], pool=3, windows=3)
    found = {
        c.id: c for c in ask(f"{QUESTION} zeppelin", profile, context_of(store, MODEL, executor))
    }
    assert "vector" not in found["deep"].ranks
    assert found["deep"].signals.part == pytest.approx(1.0, abs=0.01)


def test_without_windows_nothing_is_read_and_nothing_changes(executor: Executor) -> None:
    store = store_of([chunk(f"s{n}", f"{QUESTION} {n}") for n in range(5)], MODEL)
    context = context_of(store, MODEL, executor)
    off, on = (ask(QUESTION, replace(PROFILES["default"], windows=n), context) for n in (0, 200))
    assert [(c.id, c.signals.part, c.near) for c in off] == [(c.id, None, None) for c in on], (
        "one line has no windows"
    )
    for name in ("cosine", "z", "whole"):
        assert [getattr(c.signals, name) for c in off] == pytest.approx(
            [getattr(c.signals, name) for c in on], abs=1e-3
        )


def test_published_profiles_know_nothing_of_windows_unless_asked() -> None:
    assert {p.name for p in PROFILES.values() if p.windows} == {"default", "vector"}
    assert adapted(PROFILES["rrf"], windows=40).windows == 40
    assert adapted(PROFILES["default"], windows=0).windows == 0
    assert adapted(PROFILES["default"]).windows == PROFILES["default"].windows


def test_a_broken_window_counts_as_none() -> None:
    deep = long_passage("deep", 2, QUESTION)
    store = store_of([deep], MODEL)
    (row,) = store.vectors.missing("another")
    vector = MODEL.embed([deep.text], "document")[0]
    store.vectors.put_vectors(
        MODEL.id, {deep.content_hash: vector}, windows={deep.content_hash: b"\x01\x02"}
    )
    found = asked(store, Nearest((Scored(row, 0.5),), 0.1, 0.1, 1))
    assert found.leg == [Scored(row, 0.5)]
    assert found.meanings == {row: Meaning(0.5, pytest.approx(4.0), 0.5, 0.5)}  # type: ignore[arg-type]


def asked(store: SqliteStore, nearest: Nearest, pool: int = 50) -> Measured:
    vector = MODEL.embed([QUESTION], "query")[0]
    return measure(
        store, QuestionVector(MODEL.id, vector, windows=True), nearest, [], pool=pool, windows=True
    )


def test_mean_and_deviation_of_all_are_estimated_from_what_was_found() -> None:
    random = np.random.default_rng(5)
    wholes = random.normal(0.3, 0.06, 20_000)
    parts = 0.15 + 0.8 * wholes + random.normal(0, 0.04, len(wholes))
    meaning = (wholes + parts) / 2
    best = np.argsort(-wholes)[:200]
    words = random.choice(len(wholes), 50)
    seen = np.unique([*best, *words])
    nearest = Nearest((), float(wholes.mean()), float(wholes.std()), len(wholes))
    mean, deviation = spread(nearest, wholes[seen], parts[seen])
    assert mean == pytest.approx(meaning.mean(), abs=0.3 * meaning.std())
    assert deviation == pytest.approx(meaning.std(), rel=0.15)


def test_few_passages_and_passages_that_are_alike_shift_the_mean() -> None:
    nearest = Nearest((), 0.2, 0.1, 3)
    assert spread(nearest, np.array([0.3, 0.1]), np.array([0.4, 0.2])) == (0.25, 0.1)
    assert spread(nearest, np.full(30, 0.3), np.full(30, 0.4)) == (0.25, 0.1)


def test_those_that_tie_with_the_last_of_the_pool_are_kept_for_their_ids_to_decide() -> None:
    store = store_of([chunk("a", "text")], MODEL)
    nearest = Nearest(
        tuple(Scored(1000 + n, score) for n, score in enumerate((0.7, 0.6, 0.5, 0.5)))
    )
    for pool, count in ((1, 1), (2, 2), (3, 4), (9, 4)):
        found = asked(store, nearest, pool)
        assert [one.row for one in found.leg] == [1000, 1001, 1002, 1003][:count]
        assert found.meanings.keys() == {one.row for one in found.leg}
    assert asked(store, Nearest(())) == ([], {})


def placed(
    text: str, near: tuple[int, int], *, heading: tuple[str, ...] = (), lines: int | None = None
) -> Candidate:
    count = text.count("\n") if lines is None else lines
    one = replace(chunk("a", text, heading=heading), start_line=10, end_line=10 + count)
    return Candidate(one, near=near)


def test_lines_are_those_of_the_file_without_headings_and_blanks() -> None:
    text = "first line\n\nthird line\nfourth line"
    assert near_lines(placed(text, (0, 10))) == (10, 10)
    assert near_lines(placed(text, (10, 22))) == (12, 12), "the blanks before it are not part of it"
    assert near_lines(placed(text, (5, 26))) == (10, 13)
    assert near_lines(placed(text, (0, 16), heading=("Head",))) == (10, 10), (
        "five characters are the headings"
    )
    assert near_text(placed(text, (0, 16), heading=("Head",))) == (0, 10)
    assert near_lines(placed(text, (0, 900))) == (10, 13)
    assert near_lines(placed(text, (10, 12))) is None
    assert near_lines(placed(text, (700, 900))) is None
    assert near_lines(placed(text, (0, 10), lines=0)) is None, (
        "a transcript has other lines than its text"
    )
    assert near_lines(Candidate(chunk("a", text))) is None


def test_a_passage_that_was_joined_with_its_neighbour_keeps_its_place() -> None:
    below = replace(placed("five\nsix\nseven", (5, 8)), score=0.9)
    above = Candidate(
        replace(chunk("b", "three\nfour", path="a.md"), start_line=8, end_line=9), score=0.5
    )
    (both,) = merged([below, above])
    assert both.chunk.text == "three\nfour\nfive\nsix\nseven"
    assert near_lines(both) == near_lines(below) == (11, 11)
    assert near_lines(merged([replace(below, near=None), above])[0]) is None
