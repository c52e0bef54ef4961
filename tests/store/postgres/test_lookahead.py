"""What a search reads ahead is what the calls return without it, and they send nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from notewell.embed.embedder import QuestionVector
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

MODEL = "model@4"
ASKED = QuestionVector(MODEL, np.array([1, 0, 0, 0], dtype=np.float32), windows=True)
SOUGHT = Sought(("apple", "tart", "absent"), prefixes=("東",), exact=("apples",))
NAMES, DAYS = ["a"], [("2026-03-01", "2026-03-02")]


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database, workspace=str(tmp_path))) as made:
        for path in ("a.md", "b.md", "2026-03-01.md"):
            texts = [
                f"apple tart number{n} of {path}" + (" 東京" if n == 1 else "") for n in range(4)
            ]
            chunks = [
                Chunk(f"{path}/{n}", path, "memory", n, n, (), t, f"{path} {n}")
                for n, t in enumerate(texts)
            ]
            put_document(made, Document(path, "memory", 1, 1, ""), "digest", Facts(), chunks)
            vectors = {c.content_hash: np.eye(4, dtype=np.float32)[n] for n, c in enumerate(chunks)}
            made.vectors.put_vectors(MODEL, vectors, windows={chunks[0].content_hash: b"codes"})
        yield made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    statements: list[str] = []
    execute = psycopg.Connection.execute

    def counted(self: psycopg.Connection[Any], query: Any, *args: Any, **kwargs: Any) -> Any:
        statements.append(str(query))
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    return statements


def about_the_question(store: PostgresStore) -> list[Any]:
    sought = Sought(SOUGHT.words, prefixes=SOUGHT.prefixes, exact=SOUGHT.exact)
    return [
        store.keywords.term_counts(SOUGHT.words),
        store.keywords.lexical(sought, 20, Filters()),
        store.documents.by_name_or_date(NAMES, DAYS, 9, Filters()),
    ]


def about_the_rows(store: PostgresStore, rows: list[int]) -> list[Any]:
    places = store.keywords.term_places(rows, SOUGHT)
    return [
        store.documents.chunks(rows),
        store.vectors.cosines(MODEL, ASKED.vector, rows),
        store.vectors.windows(MODEL, rows),
        store.keywords.chunk_terms(rows),
        sorted(places.rows),
        places.exact.tolist(),
        store.relations.related(list(store.documents.chunks(rows).values()), Filters()),
    ]


def test_what_is_read_ahead_is_what_the_calls_return(store: PostgresStore, sent: list[str]) -> None:
    alone = about_the_question(store)
    rows = [one.row for one in alone[1]]
    alone_rows = about_the_rows(store, rows)
    with store.asking():
        sent.clear()
        store.ahead.question(SOUGHT, NAMES, DAYS, limit=9, filters=Filters())
        assert len(sent) == 1
        assert about_the_question(store) == alone
        store.ahead.rows(rows, ASKED, windows=True, related_to=Filters())
        assert about_the_rows(store, rows) == alone_rows
        assert len(sent) == 4, "the question, the models, the rows and their relations"
        about_the_rows(store, [*rows, 10**9])
        assert len(sent) > 4, "what was not read ahead is asked for"


def test_a_write_ends_what_was_read_ahead(store: PostgresStore) -> None:
    with store.asking():
        store.ahead.question(SOUGHT, NAMES, DAYS, limit=9, filters=Filters())
        rows = [one.row for one in about_the_question(store)[1]]
        store.ahead.rows(rows, ASKED, windows=True)
        store.documents.drop(["b.md"])
        assert len(about_the_question(store)[1]) == len(rows) - 4
        assert len(store.documents.chunks(rows)) == len(rows) - 4


def test_outside_of_a_search_nothing_is_kept(store: PostgresStore, sent: list[str]) -> None:
    store.ahead.question(SOUGHT, NAMES, DAYS, limit=9, filters=Filters())
    store.ahead.rows([1], ASKED, windows=True)
    assert sent == []
