"""The keyword leg in SQL against BM25 written out by hand, and against what the SQLite store
finds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.store.postgres.store import PostgresStore
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import FieldTerms, Sought
from notewell.text.bm25 import EXACT_WEIGHT, HEAD_WEIGHT, K1, B, idf
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

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
    "tokyo.md": (("東京都",), "東京都の天気は晴れ。京都は雨。東京都庁に行く"),
    "empty.md": ((), ""),
}
WORDS = [
    "token",
    "auth",
    "mira",
    "deploy",
    "week",
    "noon",
    "absent",
    "tuesday",
    "log",
    "東京",
    "京都",
    "天気",
]


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    made = PostgresStore(database, workspace=str(tmp_path))
    fill(made)
    yield made
    assert made.audit() == []
    made.close()


def fill(store: PostgresStore | SqliteStore) -> None:
    for path, (heading, text) in NOTES.items():
        one = Chunk(path, path, "memory", 1, 1, heading, text, path)
        put_document(store, Document(path, "memory", 1, 1, ""), path, Facts(), [one])


def fields_of(store: PostgresStore) -> dict[str, FieldTerms]:
    rows = {store.documents.chunks_of(path)[0].row: path for path in NOTES}
    return {rows[row]: fields for row, fields in store.keywords.chunk_terms(list(rows)).items()}


def by_hand(store: PostgresStore, sought: Sought) -> dict[str, float]:
    fields = fields_of(store)
    lengths = {path: max(1, len(f.body)) for path, f in fields.items()}
    mean = sum(lengths.values()) / len(lengths)
    head = HEAD_WEIGHT if sought.in_head else 0.0

    def times(part: str, terms: tuple[str, ...], *, prefix: bool = False) -> int:
        wanted = tuple(part.split())
        if prefix:
            return sum(term.startswith(part) for term in terms)
        return sum(terms[i : i + len(wanted)] == wanted for i in range(len(terms)))

    parts = [
        {p: times(w, f.body) + head * times(w, f.head) for p, f in fields.items()}
        for w in sought.words
    ]
    parts += [
        {
            p: times(" ".join(w), f.body) + head * times(" ".join(w), f.head)
            for p, f in fields.items()
        }
        for w in sought.phrases
    ]
    parts += [
        {
            p: times(w, f.body, prefix=True) + head * times(w, f.head, prefix=True)
            for p, f in fields.items()
        }
        for w in sought.prefixes
    ]
    parts += [
        {p: EXACT_WEIGHT * times(w, f.exact) for p, f in fields.items()} for w in sought.exact
    ]
    scores: dict[str, float] = {}
    for frequency in parts:
        hits = [p for p, tf in frequency.items() if tf]
        for p in hits:
            norm = K1 * (1 - B + B * lengths[p] / mean)
            weight = idf(len(fields), len(hits))
            scores[p] = scores.get(p, 0.0) + weight * frequency[p] * (K1 + 1) / (
                frequency[p] + norm
            )
    if sought.every:
        return {p: s for p, s in scores.items() if all(frequency[p] for frequency in parts)}
    return scores


@pytest.mark.parametrize(
    "sought",
    [
        Sought(("mira",)),
        Sought(("token", "auth", "week", "lunch")),
        Sought(("deploy", "absent")),
        Sought(("auth", "token"), every=True),
        Sought(("auth", "absent"), every=True),
        Sought(phrases=(("auth", "token"),)),
        Sought(("mira",), (("東京", "京都"), ("天気", "気は"))),
        Sought(prefixes=("東", "京")),
        Sought(prefixes=("to", "m"), every=True),
        Sought(exact=("tokens", "deploys", "lives")),
        Sought(("token",), (("auth", "token"),), ("東",), ("lives",)),
    ],
)
def test_scores_are_those_of_bm25(store: PostgresStore, sought: Sought) -> None:
    expected = by_hand(store, sought)
    rows = {store.documents.chunks_of(path)[0].row: path for path in NOTES}
    found = store.keywords.lexical(sought, 10, Filters())
    assert {rows[s.row]: s.score for s in found} == pytest.approx(expected, abs=2e-6)
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


def test_headings_are_not_looked_at_where_they_are_not_asked_for(store: PostgresStore) -> None:
    text_only = Sought(("arcad", "game"), in_head=False)
    (found,) = store.keywords.lexical(text_only, 9, Filters())
    assert store.documents.chunks([found.row])[found.row].path == "token.md"
    assert store.keywords.lexical(Sought(("arcad",), in_head=False), 9, Filters()) == []
    assert store.keywords.lexical(Sought(phrases=(("auth", "token"),), in_head=False), 9, Filters())
    assert len(store.keywords.lexical(Sought(("arcad",)), 9, Filters())) == 1


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sought=st.builds(
        Sought,
        words=st.lists(st.sampled_from(WORDS), max_size=4, unique=True).map(tuple),
        phrases=st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=2).map(
            tuple
        ),
        prefixes=st.lists(st.sampled_from(["東", "t", "au"]), max_size=2, unique=True).map(tuple),
        exact=st.lists(
            st.sampled_from(["tokens", "deploys", "absent"]), max_size=2, unique=True
        ).map(tuple),
        every=st.booleans(),
        in_head=st.booleans(),
    )
)
def test_what_is_found_is_what_the_other_store_finds(store: PostgresStore, sought: Sought) -> None:
    found = []
    with closing(SqliteStore(None)) as other:
        fill(other)
        for one in (store, other):
            rows = [s.row for s in one.keywords.lexical(sought, 20, Filters())]
            found.append({c.path for c in one.documents.chunks(rows).values()})
    assert found[0] == found[1]


def test_statistics_follow_every_change(store: PostgresStore) -> None:
    assert store.keywords.term_counts(["token"]).found_in == {"token": 4}
    store.documents.drop(["token.md", "auth.md"])
    counts = store.keywords.term_counts(["token", "arcad"])
    assert (counts.chunks, counts.found_in) == (5, {"token": 2, "arcad": 0})
    left = store.connection.all(
        "SELECT count(*) FROM postings WHERE workspace = $w AND term = 'arcad'"
    )
    assert left == [(0,)], "a word that is in no chunk leaves no trace"
    assert math.isclose(counts.mean_length, sum(max(1, len(f.body)) for f in fields(store)) / 5)


def fields(store: PostgresStore) -> list[FieldTerms]:
    rows = [c.row for path in store.documents.stored() for c in store.documents.chunks_of(path)]
    return list(store.keywords.chunk_terms(rows).values())
