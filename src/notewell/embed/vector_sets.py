"""Vector sets: the vectors of one model in one size. Vectors of two sets are never compared.

The index is pinned to one set. Another can fill up next to it; the pin moves in one write when none
is missing.
"""

from __future__ import annotations

from notewell.store.ports import Store

_PIN = "model"


def pinned(store: Store) -> str:
    """The vector set that answers, or an empty string before the first vector."""
    return str(store.get_meta(_PIN) or "")


def vector_set_of(store: Store, model: str, dim: int = 0) -> str:
    """The vector set of a model: its id, or id@dim when the id already names a set of another size.

    Without `dim` it is the set that was written last.
    """
    if not dim:
        return str(store.get_meta(f"vector_set:{model}") or model)
    return model if store.vectors.dims().get(model, dim) == dim else f"{model}@{dim}"


def note_vector_set(store: Store, model: str, dim: int) -> str:
    """Returns the vector set of a model and records it, so that the next sync fills the same
    one.
    """
    vector_set = vector_set_of(store, model, dim)
    if vector_set != vector_set_of(store, model):
        store.set_meta(f"vector_set:{model}", vector_set)
    return vector_set


def belongs(vector_set: str, model: str) -> bool:
    """Whether a vector set holds vectors of this model, in any size."""
    rest = vector_set.removeprefix(model)
    return bool(vector_set) and (
        not rest or (rest != vector_set and rest[0] == "@" and rest[1:].isdecimal())
    )


def complete(store: Store, vector_set: str) -> bool:
    """Whether every chunk that this model did not refuse has its vector."""
    return vector_set in store.vectors.dims() and not store.vectors.missing(vector_set)


def flip(store: Store, vector_set: str) -> str | None:
    """Pins a complete vector set in one transaction; returns the one pinned before, or None if
    nothing changed.
    """
    with store.writing():
        before = pinned(store)
        if before == vector_set or not complete(store, vector_set):
            return None
        store.set_meta(_PIN, vector_set)
    return before


def pin_first(store: Store, vector_set: str) -> None:
    """Pins a vector set if none is pinned."""
    if not pinned(store):
        store.set_meta(_PIN, vector_set)
