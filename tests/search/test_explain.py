"""Why a passage is where it is: the story and its numbers are those of the trace."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.search.evidence import ask
from notewell.search.explain import Why, one_line, why
from notewell.search.pipeline import Profile, run
from notewell.search.profiles import PROFILES
from notewell.types import Filters, Trace
from tests.search.made import candidate, chunk, context_of, query, store_of

EMBEDDER = HashedEmbedder()
NOTES = [
    chunk(
        "router", "The router sits in the hall, its password is on the box.", heading=("Network",)
    ),
    chunk("old", "The old router password was admin."),
    chunk("new", "The new router password is kept in the vault.", supersedes=("old.md",)),
    chunk("tea", "Green tea, three minutes."),
    chunk("kettle", "The kettle is new.", heading=("茶",)),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def story(
    executor: Executor, name: str, profile: Profile, text: str = "router password", **rest: Any
) -> Why:
    store = store_of(NOTES, EMBEDDER)
    asked = query(text, **rest)
    ranked = run(asked, profile, context_of(store, EMBEDDER, executor))
    one = store.documents.chunks_by_id(name)[0]
    weighted = ask(text, store.keywords.term_counts)
    places = store.keywords.term_places([one.row], weighted.measured)
    return why(one, asked, ranked.trace, asked=weighted, places=places, vector_note="it is off")


def test_a_returned_passage_has_its_rank_and_every_step(executor: Executor) -> None:
    profile = PROFILES["default"]
    asked = query("router password")
    ranked = run(asked, profile, context_of(store_of(NOTES, EMBEDDER), EMBEDDER, executor))
    reason = story(executor, ranked.candidates[1].id, profile)
    assert (reason.verdict, reason.rank) == ("returned at rank 2", 2)
    assert reason.candidate is not None
    assert reason.candidate.score == ranked.candidates[1].score
    for step in (*ranked.trace.legs, *ranked.trace.steps):
        mark = next((m for m in step.marks if m.id == ranked.candidates[1].id), None)
        if mark:
            assert (
                f"{step.stage}: rank {mark.rank} of {len(step.marks)}, score {mark.score:.4f}"
                in reason.lines
            )
    signals = next(line for line in reason.lines if line.startswith("signals: "))
    for name, value in reason.candidate.signals.as_dict().items():
        assert f"{name} {value:.3f}" in signals


def test_a_passage_beyond_the_limit_is_said_to_be(executor: Executor) -> None:
    reason = story(executor, "tea", PROFILES["default"], limit=1, min_score=0.0)
    assert reason.rank is None
    assert reason.verdict.startswith("dropped by Cut(min_score=")
    assert reason.verdict.endswith("): beyond the limit of 1")


def test_a_passage_under_the_least_score_is_said_to_be_with_its_own(executor: Executor) -> None:
    reason = story(executor, "tea", PROFILES["openclaw"], limit=6)
    assert reason.candidate is not None
    assert reason.verdict.endswith(f": its score {reason.candidate.score:.3f} is below 0.35")
    asked_for = story(executor, "tea", PROFILES["default"], min_score=0.99)
    assert asked_for.candidate is not None
    confidence = asked_for.candidate.confidence
    assert asked_for.verdict.endswith(f": its confidence {confidence:.3f} is below 0.99")


def test_a_passage_over_the_budget_is_said_to_be(executor: Executor) -> None:
    reason = story(executor, "tea", PROFILES["default"], budget_tokens=1, min_score=0.0)
    assert reason.verdict.endswith(": beyond the limit of 6 or the budget of 1 tokens")


def test_a_superseded_passage_names_the_stage(executor: Executor) -> None:
    assert story(executor, "old", PROFILES["default"]).verdict == "dropped by Suppress()"


def test_a_passage_that_no_leg_found_says_why_for_each(executor: Executor) -> None:
    reason = story(executor, "tea", PROFILES["lexical"])
    assert reason.verdict == "no leg found it"
    assert reason.lines == (
        "lexical: not among its 3 candidates: it shares no word with the question",
        "vector: it is off",
    )


DATED = [
    chunk("may", "The router password is swordfish.", date=dt.date(2026, 5, 6), source="memory"),
    chunk("bare", "The router password is unknown.", source="memory"),
]


@pytest.mark.parametrize(
    ("name", "filters", "reason"),
    [
        ("may", Filters(as_of=dt.date(2026, 5, 1)), "it is from 2026-05-06, later than 2026-05-01"),
        ("may", Filters(since=dt.date(2026, 6, 1)), "it is from 2026-05-06, before 2026-06-01"),
        ("may", Filters(until=dt.date(2026, 5, 1)), "it is from 2026-05-06, after 2026-05-01"),
        ("bare", Filters(since=dt.date(2026, 6, 1)), "it is from 2026-05-20, before 2026-06-01"),
        ("may", Filters(path="other/"), "it is not in other/"),
        ("may", Filters(source="sessions"), "it is from memory, not sessions"),
        ("may", Filters(origin="agent"), "it is by owner, not agent"),
    ],
)
def test_a_passage_that_a_filter_leaves_out_is_said_to_be(
    name: str, filters: Filters, reason: str
) -> None:
    one = next(c for c in DATED if c.id == name)
    keywords = store_of(DATED, EMBEDDER).keywords
    asked = ask("router password", keywords.term_counts)
    known: dict[str, Any] = {
        "asked": asked,
        "places": keywords.term_places([], asked.measured),
        "vector_note": "",
    }
    told = why(one, query(filters=filters), Trace(), changed=dt.date(2026, 5, 20), **known)
    assert told.verdict == f"left out by a filter: {reason}"
    assert why(one, query(), Trace(), **known).verdict == "no leg found it"


def test_a_leg_that_found_others_better_says_what_is_shared(executor: Executor) -> None:
    tight = Profile(
        "tight", PROFILES["rrf"].fusion, PROFILES["rrf"].stages, legs=("lexical",), pool=1
    )
    reason = [story(executor, name, tight) for name in ("router", "old", "new")]
    absent = [w.lines[0] for w in reason if w.verdict == "no leg found it"]
    assert len(absent) == 2
    assert all(
        ": it shares router, password, but others match better (BM25 " in line for line in absent
    )


def test_a_single_character_in_a_heading_counts_as_shared(executor: Executor) -> None:
    none = Profile("none", PROFILES["rrf"].fusion, (), legs=("lexical",), pool=0)
    reason = story(executor, "kettle", none, text="茶")
    assert "it shares 茶, but others match better" in reason.lines[0]


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        ({}, "keywords #2, meaning #1"),
        ({"cover": 0.5}, "keywords #2, meaning #1, covers 50% of the question"),
        (
            {"near": 0.5, "head": 0.1},
            "keywords #2, meaning #1, words close together, in a heading or the file name",
        ),
        ({"date": 1.0, "cosine": 0.4}, "keywords #2, meaning #1, from the day asked for"),
    ],
)
def test_the_reason_in_a_line(signals: dict[str, float], words: str) -> None:
    assert one_line(candidate("x", lexical=2, vector=(1, 0.4), signals=signals)) == words


def test_the_reason_of_what_the_vector_leg_did_not_bring() -> None:
    beyond = candidate("x", lexical=1, signals={"cosine": 0.314})
    assert one_line(beyond) == "keywords #1, meaning 0.31 but not among the nearest"
    assert one_line(candidate("x")) == "found by no leg"
