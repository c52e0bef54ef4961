"""What a sentence says about a change, and whether two on the same subject say different things.
Pure.
"""

from __future__ import annotations

from functools import lru_cache

from notewell.compare.judge import LEAST_SHARED, Likeness, compare, share
from notewell.compare.reading import Statement
from notewell.compare.tokens import DATE, FIGURE, NOT, tokens
from notewell.compare.vocabulary import NEW_STATE
from notewell.text.words import lazy_compile

_NEW_STATE = lazy_compile(rf"(?i){NEW_STATE}")
_LONGEST = 1000


@lru_cache(maxsize=4096)
def tells_change(sentence: str) -> bool:
    """Whether a sentence says that something is no longer as it was."""
    return _NEW_STATE.search(sentence) is not None


@lru_cache(maxsize=4096)
def _said(sentence: str) -> Statement:
    return Statement(tokens(sentence[:_LONGEST]))


def denies(sentence: str) -> bool:
    """Whether a sentence says that something is not so."""
    return bool(_of_kind(sentence, NOT))


def figures(sentence: str) -> frozenset[str]:
    """The numbers, days and names in code of a sentence."""
    return _of_kind(sentence, FIGURE) | _of_kind(sentence, DATE)


def _of_kind(sentence: str, kind: str) -> frozenset[str]:
    return frozenset(t.key for t in _said(sentence).tokens if t.kind == kind)


def gives_new_figure(newer: str, older: str) -> bool:
    """Whether a sentence has a number or a day that another one, which also has some, does not
    have.
    """
    return any(
        _of_kind(newer, kind) - found for kind in (FIGURE, DATE) if (found := _of_kind(older, kind))
    )


def says_other(one: str, other: str) -> bool:
    """Whether two sentences on the same subject give different figures, or contradict each other in
    another way.
    """
    for kind in (FIGURE, DATE):
        first, second = _of_kind(one, kind), _of_kind(other, kind)
        if first and second:
            return first.isdisjoint(second)
    said = _said(one), _said(other)
    if share(*said) < LEAST_SHARED:
        return False
    return denies(one) != denies(other) or compare(*said) is Likeness.AGAINST
