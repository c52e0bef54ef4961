"""Values that people read: how sure a hit is, and whether a list ends early."""

from __future__ import annotations

from dataclasses import replace

import pytest

from notewell.types import Found, Hit, Mark, Signals, Step, Trace
from tests.search.made import chunk, query


def hit(confidence: float, *, known: bool = True) -> Hit:
    signals = Signals(confidence=confidence if known else None)
    return Hit(chunk("a"), 0.9, confidence, None, 0.5, {}, 1.0, "", "", signals)


@pytest.mark.parametrize(
    ("confidence", "word"),
    [(1.0, "likely"), (0.5, "likely"), (0.4999, "perhaps"), (0.22, "perhaps"), (0.2199, "weak")],
)
def test_a_confidence_has_a_word(confidence: float, word: str) -> None:
    assert hit(confidence).certainty == word
    assert hit(confidence, known=False).certainty == "", "a score is no confidence"


def test_a_list_has_a_tail_if_it_was_cut_short_of_what_was_asked_for() -> None:
    cut = Step("Cut(0.01)", (Mark("a", 1, 0.9),), ("b", "c"))
    found = Found(
        query(limit=2),
        "default",
        "hybrid",
        (hit(0.9),),
        (),
        Trace((), (cut,)),
        "",
        stale=False,
        took_ms=1.0,
    )
    assert found.tail
    assert not replace(found, query=query(limit=1)).tail, "it is as long as was asked for"
    assert not replace(found, query=query(limit=2, min_score=0.0)).tail, "nothing was to be cut"
    assert not replace(found, query=query(limit=2, budget_tokens=9)).tail
    assert not replace(found, trace=Trace((), (replace(cut, dropped=()),))).tail, "there is no more"
