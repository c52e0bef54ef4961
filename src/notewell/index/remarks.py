"""What was wrong with documents when they were read, kept in the index: nobody reads them again to
say it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

from notewell.store.ports import Store
from notewell.store.values import Stored
from notewell.types import Document, Skipped

KEY = "remarks"


class _Remark(NamedTuple):
    """Why a document is not indexed, or only `partly`, and what it was like then."""

    known: Stored
    reason: str
    partly: bool


class Remarks:
    """The remarks of one sync: those of earlier ones, which a document that is read again replaces.

    `made` is how documents are read; what was remarked when they were read in another way counts
    for nothing.
    """

    def __init__(self, store: Store, made: str, *, afresh: bool = False) -> None:
        self._store, self._made = store, made
        self._saved = str(store.get_meta(KEY) or "")
        self._all = {} if afresh else dict(_loaded(self._saved, made))
        self._read: set[str] = set()

    @property
    def paths(self) -> Collection[str]:
        """The documents that something is remarked of."""
        return self._all.keys()

    @property
    def changed(self) -> bool:
        """Whether there is something to save."""
        return self._text() != self._saved

    def refused(self, document: Document, *, sure: bool = True) -> str:
        """Why a document that is as it was, or if it need not be `sure` seems so, could not be
        read; else nothing.
        """
        one = self._all.get(document.path)
        if one is None or one.partly:
            return ""
        same = one.known.same if sure else one.known.seems_same
        return one.reason if same(document.source, document.size, document.mtime_ns) else ""

    def note(self, document: Document, reason: str, *, partly: bool) -> None:
        """What came of reading a document; without a reason there is nothing to remark."""
        path = document.path
        self._read.add(path)
        if reason:
            now = Stored(
                path, document.source, document.size, document.mtime_ns, time.time_ns(), ""
            )
            self._all[path] = _Remark(now, reason, partly)
        else:
            self._all.pop(path, None)

    def drop(self, paths: Collection[str]) -> None:
        """Forgets documents that are gone."""
        for path in self._all.keys() & set(paths):
            del self._all[path]

    def all(self) -> list[Skipped]:
        """Everything that is remarked."""
        return [
            Skipped(path, one.reason, one.known.source, one.partly)
            for path, one in self._all.items()
        ]

    def of_others(self, among: Collection[str] | None = None) -> list[Skipped]:
        """What is remarked of documents that were not read now; `among` some paths."""
        unread = [one for one in self.all() if one.path not in self._read]
        return [one for one in unread if among is None or one.path in among]

    def save(self) -> None:
        """Keeps what changed, in the caller's transaction."""
        if self.changed:
            self._saved = self._text()
            self._store.set_meta(KEY, self._saved)

    def _text(self) -> str:
        rows = [[*one.known[:5], one.reason, one.partly] for _, one in sorted(self._all.items())]
        return json.dumps([self._made, rows]) if rows else ""


def _loaded(text: str, made: str) -> Iterator[tuple[str, _Remark]]:
    """The remarks that a text holds; none where it is of another kind of reading, or nonsense."""
    try:
        by, rows = json.loads(text or '["", []]')
        for path, source, size, mtime_ns, synced_ns, reason, partly in rows if by == made else ():
            known = Stored(str(path), str(source), int(size), int(mtime_ns), int(synced_ns), "")
            yield known.path, _Remark(known, str(reason), bool(partly))
    except (ValueError, TypeError, RecursionError):
        return
