"""The order after a step, told only to those who ask: most answers are read without their trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from recollect.types import Mark


class Marks(Sequence[Mark]):
    """Marks that are made when they are first looked at; equal to a tuple of the same."""

    __slots__ = ("_count", "_made", "_make")

    def __init__(self, count: int, make: Callable[[], tuple[Mark, ...]]) -> None:
        self._count, self._make = count, make
        self._made: tuple[Mark, ...] | None = None

    @property
    def whole(self) -> tuple[Mark, ...]:
        """All of them."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Mark: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Mark]: ...
    def __getitem__(self, at: int | slice) -> Mark | Sequence[Mark]:
        return self.whole[at]

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, Marks) else other)

    def __hash__(self) -> int:
        return hash(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)
