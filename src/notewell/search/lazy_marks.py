"""Marks of a trace that are made when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from notewell.types import Mark


class LazyMarks(Sequence[Mark]):
    """Marks that are made when first read, since most answers are read without their trace; equal
    to their tuple.
    """

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[Mark, ...]]) -> None:
        self._make = make
        self._made: tuple[Mark, ...] | None = None

    def _marks(self) -> tuple[Mark, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self._marks())

    @overload
    def __getitem__(self, at: int) -> Mark: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Mark]: ...
    def __getitem__(self, at: int | slice) -> Mark | Sequence[Mark]:
        return self._marks()[at]

    def __eq__(self, other: object) -> bool:
        return self._marks() == (tuple(other) if isinstance(other, LazyMarks) else other)

    def __hash__(self) -> int:
        return hash(self._marks())

    def __repr__(self) -> str:
        return repr(self._marks())
