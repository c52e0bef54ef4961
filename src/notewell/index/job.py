"""One sync as a list of work: what to read, in which order, and what can wait."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notewell.index.documents import age_order
from notewell.index.plan import Plan
from notewell.index.remarks import Remarks
from notewell.sources.source import Source
from notewell.store.values import Stored
from notewell.text.forgotten import Forgotten
from notewell.types import Document

if TYPE_CHECKING:
    from notewell.index.read_ahead import ReadingAhead

_BYTES_PER_S = 1_000_000
# So many small notes are indexed however late it is: a few must not make an answer stale, and every
# search helps.
_AT_LEAST = 64
_SMALL_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Job:
    """One sync: what to do, who reads it, what is stored, and the deadline.

    `remarks` tell what earlier syncs met, `fresh` are documents to rebuild, `again` those to read
    from their start; `redacted` counts secrets.
    """

    plan: Plan
    readers: Mapping[str, Source]
    stored: Mapping[str, Stored]
    forgotten: Forgotten
    remarks: Remarks
    fresh: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    deadline: float | None = None
    redacted: Counter[str] = field(default_factory=Counter)
    ahead: ReadingAhead | None = None

    def late(self, size: int, done: int) -> bool:
        """Whether there is no time left for a file of this many bytes, after `done` others."""
        if self.deadline is None or (done < _AT_LEAST and size <= _SMALL_BYTES):
            return False
        return time.monotonic() + size / _BYTES_PER_S > self.deadline

    def waits(self, document: Document, done: int) -> bool:
        """Whether a document is left to the next sync; a conversation can always wait, and counts
        by its growth.
        """
        if document.source != "sessions":
            return self.late(document.size, done)
        before = self.before(document)
        return self.late(max(0, document.size - (before.size if before else 0)), _AT_LEAST)

    def seems_same(self, document: Document) -> bool:
        """Whether a document is read only to be sure that it is as it was stored, which is not
        worth a wait.
        """
        known = None if document.path in self.again else self.stored.get(document.path)
        return known is not None and known.seems_same(
            document.source, document.size, document.mtime_ns
        )

    def before(self, document: Document) -> Stored | None:
        """What is stored of a conversation that is read on from where it stopped."""
        return None if document.path in self.again else self.stored.get(document.path)

    def digest(self, document: Document) -> str | None:
        """The digest of what is stored of a document, by which its text is known to be
        unchanged.
        """
        stored = self.stored.get(document.path)
        return stored.digest if stored else None

    def order(self) -> list[Document]:
        """What to read: old notes first, or new ones if time is short; then conversations, the
        newest first.
        """
        todo = sorted(
            (*self.plan.add, *self.plan.change), key=age_order, reverse=self.deadline is not None
        )
        spoken = sorted(
            (d for d in todo if d.source == "sessions"), key=lambda d: (-d.mtime_ns, d.path)
        )
        return [*(d for d in todo if d.source != "sessions"), *spoken]
