"""Confidence: a share that recomputes, falls with what is missing, and knows other evidence than the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.search import confidence
from notewell.search.combine import Combine
from notewell.search.confidence import CONFIDENCE, CONFIDENCE_WORDS, features
from notewell.search.fusion import sigmoids
from notewell.types import Candidate
from tests.search.made import candidate, query

share = st.floats(0, 1)
words_ = st.fixed_dictionaries(
    {"text": share, "cover": share, "focus": share, "matched": st.floats(0, 8), "lost": share, "names": share}
)
vector_ = st.floats(-0.2, 1).map(lambda lift: {"lift": lift, "z": 4 * lift, "cosine": 0.5 + lift / 2})


def pool(own: list[dict[str, float]]) -> list[Candidate]:
    return [candidate(f"c{i:02}", signals={"noise": 3.0, **one}) for i, one in enumerate(own)]


def some(more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Candidate]]:
    return st.lists(st.builds(lambda a, b: {**a, **b}, words_, more), min_size=1, max_size=12).map(pool)


def sure(*own: dict[str, float]) -> list[float]:
    return [c.confidence for c in sorted(Combine()(pool(list(own)), query()), key=lambda c: c.id)]


@settings(deadline=None)
@given(some(vector_ | st.just({})))
def test_the_table_gives_the_confidence_again(candidates: list[Candidate]) -> None:
    found = Combine()(candidates, query())
    known = features(found, [c.signals.total or 0.0 for c in found])
    for i, c in enumerate(found):
        table = CONFIDENCE_WORDS if c.signals.cosine is None else CONFIDENCE
        logit = sum(w * float(np.broadcast_to(known[name], len(found))[i]) for name, w in table.items())
        assert c.confidence == pytest.approx(sigmoids([logit])[0], abs=1e-12)
        assert 0 <= c.confidence <= 1


def test_a_passage_with_a_vector_has_the_table_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"text": 0.5, "cover": 0.5, "z": 3.0, "cosine": 0.6, "lift": 0.3}
    before = sure(one)
    monkeypatch.setattr(confidence, "CONFIDENCE_WORDS", {})
    assert sure(one) == before
    monkeypatch.setattr(confidence, "CONFIDENCE", {"bias": 0.0})
    assert sure(one) == [0.5]


BASE = {"text": 0.5, "cover": 0.5, "focus": 0.5, "matched": 2.0, "lost": 0.3, "names": 1.0, "lift": 0.3, "cosine": 0.6}


@pytest.mark.parametrize(
    ("name", "poorer"), [("focus", 0.0), ("matched", 0.2), ("lost", 1.0), ("names", 0.0), ("lift", 0.05)]
)
def test_what_a_passage_lacks_makes_it_less_likely_though_it_is_still_the_best(name: str, poorer: float) -> None:
    rest = {"text": 0.1, "cover": 0.1, "cosine": 0.5}
    assert sure({**BASE, name: poorer}, rest)[0] < sure(BASE, rest)[0]


def test_confidence_does_not_depend_on_the_range_of_a_models_cosines() -> None:
    """Two models that put the same passages at the same share of the way to 1 are believed alike."""
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
