"""Signals: typed, frozen, and shown under the names that the wire has always had."""

from __future__ import annotations

import pytest

from notewell.types import Signals

ORDER = [
    "rare",
    "noise",
    "foreign",
    "text",
    "bm25",
    "cover",
    "near",
    "window",
    "head",
    "exact",
    "focus",
    "matched",
    "lost",
    "names",
    "cosine",
    "z",
    "date",
    "whole",
    "part",
    "lift",
    "keywords",
    "meaning",
    "total",
    "trust",
    "confidence",
    "rerank",
    "rerank_failed",
    "links",
    "reply",
    "unanswered",
]


def test_signals_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Signals().text = 1.0  # type: ignore[misc]


def test_what_is_not_known_is_left_out_and_the_rest_is_in_order() -> None:
    assert list(Signals._fields) == ORDER
    assert list(Signals(*range(30)).as_dict().items()) == list(zip(ORDER, range(30), strict=True))
    assert list(Signals(date=0.0).as_dict()) == [*ORDER[:14], "date"], "a signal of 0 is known"
