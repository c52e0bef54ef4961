"""Confidence: a share that recomputes, falls with what is missing, and knows other evidence than
the order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.search import confidence
from notewell.search.combine import Combine
from notewell.search.confidence import (
    ANSWERED,
    ANSWERED_WORDS,
    CONFIDENCE,
    CONFIDENCE_WORDS,
    features,
    other_script,
)
from notewell.search.fusion import sigmoids
from notewell.types import Candidate
from tests.search.made import candidate, query

share = st.floats(0, 1)
words_ = st.fixed_dictionaries(
    {"text": share, "cover": share, "focus": share, "matched": st.floats(0, 8), "names": share}
)
vector_ = st.floats(-0.2, 1).map(
    lambda lift: {"lift": lift, "z": 4 * lift, "cosine": 0.5 + lift / 2}
)


def pool(own: list[dict[str, float]]) -> list[Candidate]:
    return [candidate(f"c{i:02}", signals={"noise": 3.0, **one}) for i, one in enumerate(own)]


def some(more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Candidate]]:
    return st.lists(st.builds(lambda a, b: {**a, **b}, words_, more), min_size=1, max_size=12).map(
        pool
    )


def sure(*own: dict[str, float]) -> list[float]:
    return [c.confidence for c in sorted(Combine()(pool(list(own)), query()), key=lambda c: c.id)]


@settings(deadline=None)
@given(some(vector_ | st.just({})))
def test_the_tables_give_the_confidence_again(candidates: list[Candidate]) -> None:
    found = Combine()(candidates, query())
    known = features(found, [c.signals.total or 0.0 for c in found], query().text)
    for i, c in enumerate(found):
        both = (
            (ANSWERED_WORDS, CONFIDENCE_WORDS)
            if c.signals.cosine is None
            else (ANSWERED, CONFIDENCE)
        )
        logits = [
            sum(w * float(np.broadcast_to(known[name], len(found))[i]) for name, w in table.items())
            for table in both
        ]
        answered, this = sigmoids(logits)
        assert c.confidence == pytest.approx(answered * this, abs=1e-12)
        assert 0 <= c.confidence <= 1


def test_a_passage_with_a_vector_has_the_tables_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"text": 0.5, "cover": 0.5, "z": 3.0, "cosine": 0.6, "lift": 0.3}
    before = sure(one)
    monkeypatch.setattr(confidence, "ANSWERED_WORDS", {})
    monkeypatch.setattr(confidence, "CONFIDENCE_WORDS", {})
    assert sure(one) == before
    monkeypatch.setattr(confidence, "ANSWERED", {"bias": 0.0})
    monkeypatch.setattr(confidence, "CONFIDENCE", {"bias": 0.0})
    assert sure(one) == [0.25]


def counted_by_hand(found: list[Candidate], totals: list[float]) -> list[tuple[float, int, float]]:
    """For each passage: how far the first of its file is behind, the place of that, and how far it
    is behind that.
    """
    rows, order = [], list(dict.fromkeys(c.chunk.path for c in found))
    for c, total in zip(found, totals, strict=True):
        first = next(
            t for other, t in zip(found, totals, strict=True) if other.chunk.path == c.chunk.path
        )
        spoken = any(o.chunk.path == c.chunk.path and ":**" in o.chunk.text for o in found)
        rows.append(
            (totals[0] - first, order.index(c.chunk.path), first - total if spoken else 0.0)
        )
    return rows


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghijklmn"), st.booleans()), min_size=1, max_size=20)
)
def test_passages_of_one_file_count_by_its_best_unless_they_are_turns(
    made: list[tuple[str, bool]],
) -> None:
    found = [
        candidate(f"c{i:02}", text="**Ann:** hello" if turn else "hello", path=f"{name}.md")
        for i, (name, turn) in enumerate(made)
    ]
    totals = [20.0 - 0.5 * i for i in range(len(found))]
    known = features(found, totals, "a question")
    by_hand = counted_by_hand(found, totals)
    assert np.allclose(known["far"], [far for far, _, _ in by_hand])
    assert np.allclose(known["behind"], [np.log1p(far) for far, _, _ in by_hand])
    assert np.allclose(known["place"], [np.log1p(min(9, place)) for _, place, _ in by_hand])
    assert np.allclose(known["inner"], [np.log1p(inner) for _, _, inner in by_hand])


def test_the_size_is_the_logarithm_of_the_number_of_vectors() -> None:
    noise = float(np.sqrt(2.0 * np.log(5000)))
    assert features([candidate("a", signals={"noise": noise})], [1.0], "a")[
        "size"
    ] == pytest.approx(np.log(5000))
    assert features([candidate("a", signals={"noise": 1.5})], [1.0], "a")["size"] == 3.7, (
        "a few tell no more than forty"
    )


def test_the_same_evidence_tells_less_in_a_large_collection() -> None:
    """The nearest of many is near by chance."""
    small, large = (
        {**BASE, "noise": float(np.sqrt(2.0 * np.log(count)))} for count in (50, 50_000)
    )
    assert sure(large)[0] < sure(small)[0]


def test_words_add_to_meaning_and_their_lack_takes_little_away() -> None:
    """A question in another language than the notes shares no word with what answers it."""
    none = {**BASE, "focus": 0.0, "matched": 0.0, "cover": 0.0, "text": 0.0, "lift": 0.55}
    assert sure(none)[0] > 0.3
    assert sure({**none, "lift": 0.1})[0] < 0.1


@pytest.mark.parametrize(
    ("text", "question", "other"),
    [
        ("plain words", "a question", False),
        ("会议记录在共享文件夹里", "a question", True),
        ("会议记录在共享文件夹里", "会议记录在哪里", False),
        ("plain words", "会议记录在哪里", True),
        ("Größe und Straße", "how large?", False),
    ],
)
def test_another_script_is_seen_in_the_beginning_of_a_passage(
    text: str, question: str, *, other: bool
) -> None:
    assert other_script(text, question) is other


BASE = {
    "text": 0.5,
    "cover": 0.5,
    "focus": 0.5,
    "matched": 2.0,
    "names": 1.0,
    "lift": 0.3,
    "cosine": 0.6,
}


@pytest.mark.parametrize(
    ("name", "poorer"), [("focus", 0.0), ("matched", 0.2), ("names", 0.0), ("lift", 0.05)]
)
def test_what_a_passage_lacks_makes_it_less_likely_though_it_is_still_the_best(
    name: str, poorer: float
) -> None:
    rest = {"text": 0.1, "cover": 0.1, "cosine": 0.5}
    assert sure({**BASE, name: poorer}, rest)[0] < sure(BASE, rest)[0]


def test_confidence_does_not_depend_on_the_range_of_a_models_cosines() -> None:
    """Two models that put the same passages at the same share of the way to 1 are believed
    alike.
    """
    wide = [{**BASE, "cosine": 0.4, "z": 3.0}, {**BASE, "cosine": 0.1, "z": 1.0, "lift": 0.1}]
    narrow = [{**BASE, "cosine": 0.9, "z": 3.0}, {**BASE, "cosine": 0.8, "z": 1.0, "lift": 0.1}]
    assert sure(*wide) == sure(*narrow)


def test_a_day_that_was_asked_for_counts_only_where_some_passage_has_it() -> None:
    other, on_day = {**BASE, "date": 0.0}, {**BASE, "date": 1.0}
    assert sure(other) == sure(BASE)
    missed, hit = sure(other, on_day)
    assert missed < sure(BASE, BASE)[1] < hit


def test_the_tail_is_judged_by_its_own_evidence_not_by_its_place() -> None:
    """Beyond the tenth the place no longer counts: a question may have many good answers."""
    found = sure(*[BASE] * 40)
    assert found[9:] == [found[9]] * 31
    assert found[:10] == sorted(found[:10], reverse=True)
