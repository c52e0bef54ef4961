"""What a sync has to do, from what is on disk and what is indexed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recollect.ports import Stored
from recollect.types import Document

_RACY_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Documents to read (`add`, `change`), paths to drop, and how many are as they were."""

    add: tuple[Document, ...] = ()
    change: tuple[Document, ...] = ()
    drop: tuple[str, ...] = ()
    unchanged: int = 0


def plan(
    found: Iterable[Document], stored: Mapping[str, Stored], *, complete: bool = True, force: bool = False
) -> Plan:
    """Compares by size and time of change; a file changed just before its last sync is read again, as git does.

    An incomplete scan drops nothing: what was not seen may still be there.
    """
    add: list[Document] = []
    change: list[Document] = []
    seen: set[str] = set()
    unchanged = 0
    for document in found:
        seen.add(document.path)
        known = stored.get(document.path)
        if known is None:
            add.append(document)
        elif force or not _same(document, known):
            change.append(document)
        else:
            unchanged += 1
    drop = tuple(sorted(path for path in stored if path not in seen)) if complete else ()
    return Plan(tuple(add), tuple(change), drop, unchanged)


def _same(document: Document, known: Stored) -> bool:
    return (
        document.size == known.size
        and document.mtime_ns == known.mtime_ns
        and document.source == known.source
        and known.mtime_ns + _RACY_NS <= known.synced_ns
    )
