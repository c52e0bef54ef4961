"""Words that everybody uses are not rare, however few passages have them."""

from __future__ import annotations

import pytest

from notewell.text.bm25 import idf
from notewell.text.everyday import found_in_all
from notewell.text.words import query_terms


@pytest.mark.parametrize("word", ["getting", "people", "things", "gibt", "avec", "можно"])
def test_an_everyday_word_counts_less_than_a_name_in_a_small_collection(word: str) -> None:
    (term,) = query_terms(word).words
    everyday = idf(40, found_in_all(term, 40, 1))
    assert everyday < 0.95 * idf(40, found_in_all("kubernet", 40, 1))


def test_a_word_that_is_not_in_the_table_counts_as_the_collection_says() -> None:
    assert found_in_all("kubernet", 40, 3) == 3
    assert found_in_all("記憶", 40, 0) == 0


def test_a_large_collection_knows_best() -> None:
    (term,) = query_terms("getting").words
    assert found_in_all(term, 1_000_000, 300_000) == pytest.approx(300_000, rel=0.01)


def test_a_word_never_counts_as_rarer_than_it_is() -> None:
    (term,) = query_terms("people").words
    assert found_in_all(term, 100, 99) == 99
