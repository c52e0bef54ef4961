"""The lexical leg against BM25 written out by hand: k1 1.2, b 0.75, an idf that is never negative,
weighted fields.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

K1, B = 1.2, 0.75
NOTES = {
    "auth.md": (
        ("Auth tokens",),
        "Rotate the auth token every week. Token rotation is done by Mira.",
    ),
    "deploy.md": (
        ("Deploy",),
        "Deploys run on Tuesday. The deploy key lives in the vault, beside the auth token.",
    ),
    "lunch.md": ((), "Lunch with Mira at noon."),
    "token.md": (("Arcade",), "A token buys one game."),
    "long.md": (("Log",), "Nothing happened. " * 40 + "Then the token expired."),
}


@pytest.fixture
def store() -> SqliteStore:
    store = SqliteStore(None)
    for path, (heading, text) in NOTES.items():
        one = Chunk(path, path, "memory", 1, 1, heading, text, path)
        put_document(store, Document(path, "memory", 1, 1, ""), path, Facts(), [one])
    return store


def by_hand(store: SqliteStore, terms: list[str]) -> dict[str, float]:
    """BM25 of words in head or body: the body's length, the body's count and 1.5 for the head, idf
    over rows.
    """
    fields = {path: store.keywords.chunk_terms([row])[row] for path, row in rows_of(store).items()}
    heads = {p: set(f.head) for p, f in fields.items()}
    bodies = {p: f.body for p, f in fields.items()}
    mean = sum(len(body) for body in bodies.values()) / len(bodies)
    scores: dict[str, float] = {}
    for term in terms:
        frequency = {p: bodies[p].count(term) + (1.5 if term in heads[p] else 0.0) for p in fields}
        hits = [p for p, f in frequency.items() if f]
        idf = math.log(1 + (len(fields) - len(hits) + 0.5) / (len(hits) + 0.5))
        for path in hits:
            tf = frequency[path]
            norm = tf + K1 * (1 - B + B * len(bodies[path]) / mean)
            scores[path] = scores.get(path, 0.0) + idf * tf * (K1 + 1) / norm
    return scores


def rows_of(store: SqliteStore) -> dict[str, int]:
    return {path: store.documents.chunks_of(path)[0].row for path in NOTES}


@pytest.mark.parametrize(
    "terms",
    [["mira"], ["deploy"], ["mira", "vault"], ["token"], ["token", "auth", "week", "lunch"]],
)
def test_scores_are_those_of_bm25(store: SqliteStore, terms: list[str]) -> None:
    expected = by_hand(store, terms)
    names = {row: path for path, row in rows_of(store).items()}
    found = store.keywords.lexical(Sought(tuple(terms)), 10, Filters())
    assert {names[s.row]: s.score for s in found} == pytest.approx(expected)
    assert [names[s.row] for s in found] == sorted(
        expected, key=lambda p: (-expected[p], rows_of(store)[p])
    )


def test_a_word_in_the_heading_counts_more_than_one_in_the_text(tmp_path: Path) -> None:
    store = SqliteStore(None)
    for path, heading, text in (
        ("a.md", "staging port", "it is open"),
        ("b.md", "it is open", "staging port"),
    ):
        one = Chunk(path, path, "memory", 1, 1, (heading,), text, path)
        put_document(store, Document(path, "memory", 1, 1, ""), path, Facts(), [one])
    best = store.keywords.lexical(Sought(("port",)), 2, Filters())[0]
    assert store.documents.chunks([best.row])[best.row].path == "a.md"
