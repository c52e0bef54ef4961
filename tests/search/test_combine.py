"""The default fusion: a sum that can be recomputed, and legs that are believed as far as the
question bears out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.search.combine import (
    WEIGHTS,
    Combine,
    leg_weights,
    question_evidence,
)
from notewell.search.fusion import sigmoids
from notewell.types import Candidate
from tests.search.made import candidate, ids, query, total

Signals = Mapping[str, float]
WORDS = ("text", "cover", "near", "window", "head", "exact", "date")
share = st.floats(0, 1)
shared_ = st.fixed_dictionaries(
    {"rare": share, "noise": st.floats(1.5, 6), "foreign": st.just(0.0) | share}
)
words_ = st.fixed_dictionaries(dict.fromkeys(WORDS, share))
meaning_ = st.floats(-3, 9).map(lambda z: {"z": z, "cosine": z / 10})


def pool(shared: Signals, own: list[dict[str, float]]) -> list[Candidate]:
    return [candidate(f"c{i:02}", signals={**shared, **one}) for i, one in enumerate(own)]


def some(meaning: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Candidate]]:
    own = st.builds(lambda a, b: {**a, **b}, words_, meaning)
    return st.builds(pool, shared_, st.lists(own, min_size=1, max_size=8))


any_pools = some(meaning_ | st.just({}))


@settings(deadline=None)
@given(any_pools)
def test_the_signals_of_a_passage_add_up_to_its_total_and_score(
    candidates: list[Candidate],
) -> None:
    question = question_evidence(candidates)
    for c in Combine()(candidates, query()):
        s = c.signals.as_dict()
        assert s["total"] == total(c, question)
        words = {"cover": s["trust"], "window": s["trust"], "exact": s["trust"]}
        rest = sum(
            WEIGHTS[name] * s[name] * words.get(name, 1.0) for name in WORDS if name != "text"
        )
        assert s["keywords"] + s["meaning"] + rest == pytest.approx(s["total"], abs=1e-9)
        assert [c.score] == sigmoids([(s["total"] - 8) / 2])


@settings(deadline=None)
@given(any_pools)
def test_no_leg_ever_counts_against_a_passage(candidates: list[Candidate]) -> None:
    assert min(leg_weights(question_evidence(candidates))) >= 0


@settings(deadline=None)
@given(any_pools, st.randoms(use_true_random=False))
def test_scores_and_confidences_are_shares_and_the_same_every_time(
    candidates: list[Candidate], chance: random.Random
) -> None:
    found = Combine()(candidates, query())
    assert all(0 <= value <= 1 for c in found for value in (c.score, c.confidence))
    mixed = list(candidates)
    chance.shuffle(mixed)
    assert Combine()(mixed, query("another")) == found


def test_nothing_found_is_nothing_scored() -> None:
    assert Combine()([], query()) == []
    assert leg_weights(question_evidence([])) == (0.0, 0.0)


@settings(deadline=None)
@given(
    shared=st.fixed_dictionaries(
        {"rare": share, "noise": st.floats(1.5, 6), "foreign": st.just(0.0)}
    ),
    cover=st.floats(0.01, 0.2),
    parts=st.tuples(share, share, share),
    text=st.floats(0.01, 1),
    apart=st.floats(1.5, 3),
    close=st.floats(-1, 0.3),
)
def test_a_word_or_two_of_many_cannot_outrank_what_stands_far_out_in_meaning(
    *,
    shared: Signals,
    cover: float,
    parts: tuple[float, ...],
    text: float,
    apart: float,
    close: float,
) -> None:
    near, head, exact = (part * cover for part in parts)
    noise = shared["noise"]
    wordy = {
        "text": text,
        "cover": cover,
        "near": near,
        "head": head,
        "exact": exact,
        "z": close * noise,
    }
    assert ids(Combine()(pool(shared, [wordy, {"z": apart * noise}]), query())) == ["c01", "c00"]


@settings(deadline=None)
@given(
    shared=st.fixed_dictionaries(
        {"rare": st.floats(0.3, 1), "noise": st.floats(2.5, 6), "foreign": st.just(0.0)}
    ),
    others=st.lists(
        st.fixed_dictionaries(
            {
                "text": st.floats(0, 0.4),
                "cover": st.floats(0, 0.5),
                "near": st.floats(0, 0.4),
                "z": st.floats(-2, 1.5),
            }
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_a_passage_that_holds_every_word_of_the_question_is_first(
    shared: Signals, others: list[dict[str, float]]
) -> None:
    whole = {"text": 0.8, "cover": 1.0, "near": 0.9, "z": 1.0}
    found = Combine()(pool(shared, [*others, whole]), query())
    assert found[0].id == f"c{len(others):02}"


@settings(deadline=None)
@given(shared_, st.lists(st.integers(1, 99), min_size=1, max_size=8, unique=True))
def test_without_vectors_the_order_is_by_keywords(shared: Signals, covers: list[int]) -> None:
    own = [{"text": cover / 100, "cover": cover / 100} for cover in covers]
    found = Combine()(pool(shared, own), query())
    assert [round(c.signals.cover * 100) for c in found] == sorted(covers, reverse=True)


@pytest.mark.parametrize("texts", [(), (0.4,), (0.4, 0.2)])
def test_passages_without_a_word_of_the_question_say_nothing_of_its_keyword_hits(
    texts: tuple[float, ...],
) -> None:
    shared = {"rare": 0.3, "noise": 3.0, "foreign": 0.0}
    own = [
        {"text": 0.0, "cover": 0.0, "z": 4.0},
        *({"text": text, "cover": 0.5, "z": 2.0} for text in texts),
    ]
    more = [{"text": 0.0, "cover": 0.0, "z": 3.0} for _ in range(9)]
    few, many = question_evidence(pool(shared, own)), question_evidence(pool(shared, own + more))
    assert few == many, "how many passages a leg may bring does not count"
    assert few["alike"] == pytest.approx(0.5 if texts else 0.0)
    assert few["reached"] == max(texts, default=0.0)


def test_turns_that_only_ask_come_last_and_have_no_say_in_what_the_others_are_worth() -> None:
    shared = {"rare": 0.5, "noise": 4.0, "foreign": 0.0}
    strong = {**shared, "text": 9.0, "cover": 1.0, "window": 1.0, "z": 8.0, "cosine": 0.9}
    fair = {**shared, "text": 4.0, "cover": 0.6, "window": 0.5, "z": 5.0, "cosine": 0.6}
    asked = query("which port does staging use", subject=frozenset({"port"}), weights={"port": 1.0})
    note = candidate("note", text="Staging answers on port 9443.", signals=fair)
    other = candidate("other", text="The old port is closed.", signals=fair)
    same = candidate("same", text="which port does staging use", signals=strong, source="sessions")
    alone = Combine()([note, other], asked)
    found = Combine()([same, note, other], asked)
    assert ids(found) == [*ids(alone), "same"]
    assert [c.confidence for c in found[:2]] == [c.confidence for c in alone]
    assert found[2].confidence <= 0.1
    assert found[2].signals.unanswered == 1.0
    assert found[2].score == pytest.approx(found[1].score, abs=1e-6)


def test_a_turn_that_only_asks_is_seen_however_many_come_before_it() -> None:
    asked = query("which port does staging use", subject=frozenset({"port"}), weights={"port": 1.0})
    shared = {"rare": 0.5, "noise": 4.0, "foreign": 0.0}
    pool = [
        candidate(
            f"c{n:02}",
            text="which port does staging use",
            source="sessions",
            signals={**shared, "text": 50.0 - n, "cover": 1.0},
        )
        for n in range(40)
    ]
    note = candidate("note", text="It is 9443.", signals={**shared, "text": 1.0, "cover": 0.1})
    assert ids(Combine()([*pool, note], asked))[0] == "note"
