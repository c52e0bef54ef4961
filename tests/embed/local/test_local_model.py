"""Families of models, by their names."""

from __future__ import annotations

import pytest

from notewell.embed.local.local_model import family
from notewell.embed.local.packaged import PACKAGED


@pytest.mark.parametrize(
    ("name", "query", "document", "pooling"),
    [
        ("BAAI/bge-base-en-v1.5", "Represent this sentence", "", "cls"),
        ("bge-m3", "", "", "cls"),
        ("bge-small-zh-v1.5", "为这个句子", "", "cls"),
        ("snowflake-arctic-embed-m", "Represent this sentence", "", "cls"),
        ("snowflake-arctic-embed-l-v2.0", "query: ", "", "cls"),
        ("intfloat/multilingual-e5-small", "query: ", "passage: ", "mean"),
        ("e5-base-v2", "query: ", "passage: ", "mean"),
        ("multilingual-e5-large-instruct", "Instruct: ", "", "mean"),
        ("nomic-embed-text-v1.5.Q8_0", "search_query: ", "search_document: ", "mean"),
        ("Qwen3-Embedding-0.6B-Q8_0", "Instruct: ", "", "last"),
        ("embeddinggemma-300m", "task: search result", "title: none", "mean"),
        ("all-MiniLM-L6-v2", "", "", "mean"),
        ("phase5-notes", "", "", "mean"),
        ("", "", "", "mean"),
    ],
)
def test_a_family_is_known(name: str, query: str, document: str, pooling: str) -> None:
    found = family(name)
    assert found.query.startswith(query)
    assert bool(found.query) == bool(query)
    assert found.document.startswith(document)
    assert bool(found.document) == bool(document)
    assert found.pooling == pooling


@pytest.mark.parametrize("packaged", PACKAGED.values(), ids=lambda p: p.name)
def test_packaged_models_are_asked_as_their_family_is(packaged: object) -> None:
    found = family(packaged.name)  # type: ignore[attr-defined]
    assert (found.query, found.pooling) == (packaged.query_prefix, packaged.pooling)  # type: ignore[attr-defined]
