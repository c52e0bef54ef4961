"""What changed: the documents of the sources against those of the store. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from notewell.store.values import Stored
from notewell.types import Document


@dataclass(frozen=True, slots=True)
class Plan:
    """Documents to read (`add`, `change`), paths to drop, and how many are unchanged."""

    add: tuple[Document, ...] = ()
    change: tuple[Document, ...] = ()
    drop: tuple[str, ...] = ()
    unchanged: int = 0


def plan(
    found: Iterable[Document],
    stored: Mapping[str, Stored],
    *,
    same: Set[str] = frozenset(),
    complete: bool = True,
) -> Plan:
    """Compares by size and time of change; what an incomplete scan did not see is not dropped: it
    may be there.

    `same` are the paths of stored documents that the scan itself found to be as they were stored.
    """
    found = list(found)
    before = [(d, stored[d.path]) for d in found if d.path in stored]
    change = tuple(d for d, known in before if not known.same(d.source, d.size, d.mtime_ns))
    seen_all = len(before) + len(same) == len(stored)
    drop = (
        ()
        if seen_all or not complete
        else tuple(sorted(stored.keys() - same - {d.path for d in found}))
    )
    added = tuple(d for d in found if d.path not in stored)
    return Plan(added, change, drop, len(before) + len(same) - len(change))
