"""Which vectors belong together, and how the pin moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.embed.vector_sets import (
    belongs,
    complete,
    flip,
    note_vector_set,
    pin_first,
    pinned,
    vector_set_of,
)
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Chunk, Document, Facts, Vectors
from tests.store.made import put_document


@pytest.fixture
def store() -> SqliteStore:
    made = SqliteStore(None)
    chunks = [
        Chunk(f"id{n}", "a.md", "memory", n, n, (), f"text {n}", f"hash{n}") for n in range(3)
    ]
    put_document(made, Document("a.md", "memory", 1, 1, ""), "d", Facts(), chunks)
    return made


def vectors(dim: int, *numbers: int) -> dict[str, Vectors]:
    return {f"hash{n}": np.full(dim, dim**-0.5, dtype=np.float32) for n in numbers}


def test_a_model_has_one_vector_set_until_its_size_changes(store: SqliteStore) -> None:
    assert vector_set_of(store, "m") == vector_set_of(store, "m", 4) == "m"
    store.vectors.put_vectors("m", vectors(4, 0))
    assert vector_set_of(store, "m", 4) == "m"
    assert vector_set_of(store, "m", 8) == "m@8"
    assert note_vector_set(store, "m", 8) == "m@8"
    assert vector_set_of(store, "m") == "m@8", "remembered for the next sync"
    assert note_vector_set(store, "m", 4) == "m", "and back again"
    assert vector_set_of(store, "m") == "m"


@given(st.text(min_size=1), st.integers(1, 9999))
def test_a_vector_set_belongs_to_its_model_in_every_size(model: str, dim: int) -> None:
    assert belongs(model, model)
    assert belongs(f"{model}@{dim}", model)
    assert not belongs("", model)
    assert not belongs(f"{model}@{dim}x", model)
    assert not belongs(f"x{model}", model) or f"x{model}" == model


def test_the_pin_moves_only_when_nothing_is_missing(store: SqliteStore) -> None:
    store.vectors.put_vectors("old", vectors(4, 0, 1, 2))
    pin_first(store, "old")
    pin_first(store, "new")
    assert pinned(store) == "old", "the first pin stays"
    assert flip(store, "new") is None
    store.vectors.put_vectors("new", vectors(8, 0, 1))
    assert not complete(store, "new")
    assert flip(store, "new") is None
    assert pinned(store) == "old"
    store.vectors.put_vectors("new", vectors(8, 2))
    assert flip(store, "new") == "old"
    assert pinned(store) == "new"
    assert flip(store, "new") is None, "it is there already"


def test_what_a_model_refused_does_not_hold_the_pin_back(store: SqliteStore) -> None:
    store.vectors.put_vectors("old", vectors(4, 0, 1, 2))
    pin_first(store, "old")
    store.vectors.put_vectors("new", vectors(8, 0, 1))
    store.vectors.refuse("new", {"hash2": "too odd"})
    assert flip(store, "new") == "old"


def test_a_model_that_refused_everything_answers_nothing(store: SqliteStore) -> None:
    store.vectors.refuse("new", {f"hash{n}": "no" for n in range(3)})
    assert not complete(store, "new")
