"""Generations: the vectors of one model under one number of dimensions. Two of them are never compared.

The index is pinned to one; another fills in beside it, and the pin moves in one write when nothing is missing.
"""

from __future__ import annotations

from recollect.ports import Store

_PIN = "model"


def pinned(store: Store) -> str:
    """The generation that answers, or an empty text before the first vector."""
    return str(store.get_meta(_PIN) or "")


def generation_of(store: Store, model: str, dim: int = 0) -> str:
    """Where vectors of a model belong: under its id, or under id@dim when the id is taken by another size.

    Without `dim` it is where the last ones went.
    """
    if not dim:
        return str(store.get_meta(f"generation:{model}") or model)
    known = store.dims().get(model, dim)
    return model if known == dim else f"{model}@{dim}"


def note_generation(store: Store, model: str, dim: int) -> str:
    """Where vectors of a model belong, remembered, so that the next sync fills that generation."""
    found = generation_of(store, model, dim)
    if found != generation_of(store, model):
        store.set_meta(f"generation:{model}", found)
    return found


def belongs(generation: str, model: str) -> bool:
    """Whether a generation holds vectors of this model, of whatever size."""
    rest = generation.removeprefix(model)
    return bool(generation) and (not rest or (rest != generation and rest[0] == "@" and rest[1:].isdecimal()))


def complete(store: Store, generation: str) -> bool:
    """Whether every passage that this model did not refuse has its vector."""
    return generation in store.dims() and not store.missing(generation)


def flip(store: Store, generation: str) -> str | None:
    """Pins a generation in one transaction if it is complete; returns what was pinned before, else None."""
    with store.writing():
        before = pinned(store)
        if before == generation or not complete(store, generation):
            return None
        store.set_meta(_PIN, generation)
    return before


def pin_first(store: Store, generation: str) -> None:
    """Pins a generation where none is."""
    if not pinned(store):
        store.set_meta(_PIN, generation)
