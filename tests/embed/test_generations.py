"""Which vectors belong together, and how the pin moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embed.generations import (
    belongs,
    complete,
    flip,
    generation_of,
    note_generation,
    pin_first,
    pinned,
)
from recollect.ports import Vectors
from recollect.store.sqlite import SqliteStore
from recollect.types import Chunk, Document, Facts


@pytest.fixture
def store() -> SqliteStore:
    made = SqliteStore(None)
    chunks = [Chunk(f"id{n}", "a.md", "memory", n, n, (), f"text {n}", f"hash{n}") for n in range(3)]
    made.put(Document("a.md", "memory", 1, 1, ""), "d", Facts(), chunks)
    return made


def vectors(dim: int, *numbers: int) -> dict[str, Vectors]:
    return {f"hash{n}": np.full(dim, dim**-0.5, dtype=np.float32) for n in numbers}


def test_a_model_has_its_own_generation_until_its_size_changes(store: SqliteStore) -> None:
    assert generation_of(store, "m") == generation_of(store, "m", 4) == "m"
    store.put_vectors("m", vectors(4, 0))
    assert generation_of(store, "m", 4) == "m"
    assert generation_of(store, "m", 8) == "m@8"
    assert note_generation(store, "m", 8) == "m@8"
    assert generation_of(store, "m") == "m@8", "remembered for the next sync"
    assert note_generation(store, "m", 4) == "m", "and back again"
    assert generation_of(store, "m") == "m"


@given(st.text(min_size=1), st.integers(1, 9999))
def test_a_generation_belongs_to_its_model_in_every_size(model: str, dim: int) -> None:
    assert belongs(model, model)
    assert belongs(f"{model}@{dim}", model)
    assert not belongs("", model)
    assert not belongs(f"{model}@{dim}x", model)
    assert not belongs(f"x{model}", model) or f"x{model}" == model


def test_the_pin_moves_only_when_nothing_is_missing(store: SqliteStore) -> None:
    store.put_vectors("old", vectors(4, 0, 1, 2))
    pin_first(store, "old")
    pin_first(store, "new")
    assert pinned(store) == "old", "the first pin stays"
    assert flip(store, "new") is None
    store.put_vectors("new", vectors(8, 0, 1))
    assert not complete(store, "new")
    assert flip(store, "new") is None
    assert pinned(store) == "old"
    store.put_vectors("new", vectors(8, 2))
    assert flip(store, "new") == "old"
    assert pinned(store) == "new"
    assert flip(store, "new") is None, "it is there already"


def test_what_a_model_refused_does_not_hold_the_pin_back(store: SqliteStore) -> None:
    store.put_vectors("old", vectors(4, 0, 1, 2))
    pin_first(store, "old")
    store.put_vectors("new", vectors(8, 0, 1))
    store.refuse("new", {"hash2": "too odd"})
    assert flip(store, "new") == "old"


def test_a_model_that_refused_everything_answers_nothing(store: SqliteStore) -> None:
    store.refuse("new", {f"hash{n}": "no" for n in range(3)})
    assert not complete(store, "new")
