"""Why a passage is where it is: the story and its numbers are those of the trace."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest

from recollect.embed.hashed import HashedEmbedder
from recollect.search.evidence import ask
from recollect.search.explain import Why, one_line, why
from recollect.search.pipeline import Bench, Profile, run
from recollect.search.profiles import PROFILES
from tests.search.made import candidate, chunk, query, store_of

EMBEDDER = HashedEmbedder()
NOTES = [
    chunk("router", "The router sits in the hall, its password is on the box.", heading=("Network",)),
    chunk("old", "The old router password was admin."),
    chunk("new", "The new router password is kept in the vault.", supersedes=("old.md",)),
    chunk("tea", "Green tea, three minutes."),
    chunk("kettle", "The kettle is new.", heading=("茶",)),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def story(executor: Executor, name: str, profile: Profile, text: str = "router password", **rest: Any) -> Why:
    store = store_of(NOTES, EMBEDDER)
    asked = query(text, **rest)
    ranked = run(asked, profile, Bench(store, EMBEDDER, executor))
    one = store.chunks_by_id(name)[0]
    fields = store.chunk_terms([one.row])[one.row]
    return why(one, asked, ranked.trace, asked=ask(text, store.term_counts), fields=fields, vector_note="it is off")


def test_a_returned_passage_has_its_rank_and_every_step(executor: Executor) -> None:
    profile = PROFILES["default"]
    asked = query("router password")
    ranked = run(asked, profile, Bench(store_of(NOTES, EMBEDDER), EMBEDDER, executor))
    told = story(executor, ranked.candidates[1].id, profile)
    assert (told.verdict, told.rank) == ("returned at rank 2", 2)
    assert told.candidate is not None
    assert told.candidate.score == ranked.candidates[1].score
    for step in (*ranked.trace.legs, *ranked.trace.steps):
        mark = next((m for m in step.marks if m.id == ranked.candidates[1].id), None)
        if mark:
            assert f"{step.stage}: rank {mark.rank} of {len(step.marks)}, score {mark.score:.4f}" in told.lines
    signals = next(line for line in told.lines if line.startswith("signals: "))
    for name, value in told.candidate.signals.items():
        assert f"{name} {value:.3f}" in signals


def test_a_passage_beyond_the_limit_is_said_to_be(executor: Executor) -> None:
    told = story(executor, "tea", PROFILES["default"], limit=1)
    assert told.rank is None
    assert told.verdict.startswith("dropped by Cut(min_score=")
    assert told.verdict.endswith("): beyond the limit 1")


def test_a_passage_under_the_least_score_is_said_to_be_with_its_own(executor: Executor) -> None:
    told = story(executor, "tea", PROFILES["openclaw"], limit=6)
    assert told.candidate is not None
    assert told.verdict.endswith(f": its score {told.candidate.score:.3f} is under 0.35")
    asked_for = story(executor, "tea", PROFILES["default"], min_score=0.99)
    assert asked_for.candidate is not None
    confidence = asked_for.candidate.signals["confidence"]
    assert asked_for.verdict.endswith(f": its confidence {confidence:.3f} is under 0.99")


def test_a_passage_over_the_budget_is_said_to_be(executor: Executor) -> None:
    told = story(executor, "tea", PROFILES["default"], budget_tokens=1)
    assert told.verdict.endswith(": beyond the limit 6 or the budget of 1 tokens")


def test_a_superseded_passage_names_the_stage(executor: Executor) -> None:
    assert story(executor, "old", PROFILES["default"]).verdict == "dropped by Suppress()"


def test_a_passage_that_no_leg_found_says_why_for_each(executor: Executor) -> None:
    told = story(executor, "tea", PROFILES["lexical"])
    assert told.verdict == "no leg found it"
    assert told.lines == (
        "lexical: not among its 3 candidates: it shares no word with the question",
        "vector: it is off",
    )


def test_a_leg_that_found_others_better_says_what_is_shared(executor: Executor) -> None:
    tight = Profile("tight", PROFILES["rrf"].fusion, PROFILES["rrf"].stages, legs=("lexical",), pool=1)
    told = [story(executor, name, tight) for name in ("router", "old", "new")]
    absent = [w.lines[0] for w in told if w.verdict == "no leg found it"]
    assert len(absent) == 2
    assert all(": it shares router, password, others matched better (BM25 " in line for line in absent)


def test_a_single_character_in_a_heading_counts_as_shared(executor: Executor) -> None:
    none = Profile("none", PROFILES["rrf"].fusion, (), legs=("lexical",), pool=0)
    told = story(executor, "kettle", none, text="茶")
    assert "it shares 茶, others matched better" in told.lines[0]


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        ({}, "keywords #2, meaning #1"),
        ({"cover": 0.5}, "keywords #2, meaning #1, covers 50% of the question"),
        ({"near": 0.5, "head": 0.1}, "keywords #2, meaning #1, words side by side, in heading or file name"),
        ({"date": 1.0, "cosine": 0.4}, "keywords #2, meaning #1, of the day asked for"),
    ],
)
def test_the_reason_in_a_line(signals: dict[str, float], words: str) -> None:
    assert one_line(candidate("x", lexical=2, vector=(1, 0.4), signals=signals), query()) == words


def test_the_reason_of_what_the_vector_leg_did_not_bring() -> None:
    beyond = candidate("x", lexical=1, signals={"cosine": 0.314})
    assert one_line(beyond, query()) == "keywords #1, meaning 0.31, beyond the pool"
    assert one_line(candidate("x"), query()) == "found by no leg"
