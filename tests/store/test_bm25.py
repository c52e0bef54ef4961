"""The lexical leg against BM25 written out by hand: k1 1.2, b 0.75, FTS5's idf, our column weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from recollect.ports import Sought
from recollect.store.sqlite import BODY_WEIGHT, EXACT_WEIGHT, HEAD_WEIGHT, SqliteStore
from recollect.types import Chunk, Document, Facts, Filters

K1, B = 1.2, 0.75
NOTES = {
    "auth.md": (("Auth tokens",), "Rotate the auth token every week. Token rotation is done by Mira."),
    "deploy.md": (("Deploy",), "Deploys run on Tuesday. The deploy key lives in the vault, beside the auth token."),
    "lunch.md": ((), "Lunch with Mira at noon."),
    "token.md": (("Arcade",), "A token buys one game."),
    "long.md": (("Log",), "Nothing happened. " * 40 + "Then the token expired."),
}


@pytest.fixture
def store() -> SqliteStore:
    store = SqliteStore(None)
    for path, (heading, text) in NOTES.items():
        one = Chunk(path, path, "memory", 1, 1, heading, text, path)
        store.put(Document(path, "memory", 1, 1, ""), path, Facts(), [one])
    return store


def by_hand(store: SqliteStore, terms: list[str]) -> dict[str, float]:
    """BM25 over three weighted columns: one length for the row, weighted frequencies, idf over rows."""
    fields = {path: store.chunk_terms([row])[row] for path, row in rows_of(store).items()}
    columns = {p: ((HEAD_WEIGHT, f.head), (BODY_WEIGHT, f.body), (EXACT_WEIGHT, f.exact)) for p, f in fields.items()}
    lengths = {p: sum(len(text.split()) for _, text in parts) for p, parts in columns.items()}
    mean = sum(lengths.values()) / len(lengths)
    scores: dict[str, float] = {}
    for term in terms:
        frequency = {p: sum(w * text.split().count(term) for w, text in parts) for p, parts in columns.items()}
        hits = [p for p, f in frequency.items() if f]
        idf = max(1e-6, math.log((len(columns) - len(hits) + 0.5) / (len(hits) + 0.5)))
        for path in hits:
            tf = frequency[path]
            norm = tf + K1 * (1 - B + B * lengths[path] / mean)
            scores[path] = scores.get(path, 0.0) + idf * tf * (K1 + 1) / norm
    return scores


def rows_of(store: SqliteStore) -> dict[str, int]:
    return {path: store.chunks_of(path)[0].row for path in NOTES}


@pytest.mark.parametrize(
    "terms", [["mira"], ["deploy"], ["mira", "vault"], ["token"], ["token", "auth", "week", "lunch"]]
)
def test_scores_are_those_of_bm25(store: SqliteStore, terms: list[str]) -> None:
    expected = by_hand(store, terms)
    names = {row: path for path, row in rows_of(store).items()}
    found = store.lexical(Sought(tuple(terms)), 10, Filters())
    assert {names[s.row]: s.score for s in found} == pytest.approx(expected)
    assert [names[s.row] for s in found] == sorted(expected, key=lambda p: (-expected[p], rows_of(store)[p]))


def test_a_word_in_the_heading_counts_more_than_one_in_the_text(tmp_path: Path) -> None:
    store = SqliteStore(None)
    for path, heading, text in (("a.md", "staging port", "it is open"), ("b.md", "it is open", "staging port")):
        one = Chunk(path, path, "memory", 1, 1, (heading,), text, path)
        store.put(Document(path, "memory", 1, 1, ""), path, Facts(), [one])
    best = store.lexical(Sought(("port",)), 2, Filters())[0]
    assert store.chunks([best.row])[best.row].path == "a.md"
