"""The tombstones of a workspace, in a small file beside the index: an index made anew must not bring anything back.

Where the index is a database they stand in it, so that they hold on every machine that shares it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from recollect.errors import StoreBusyError, StoreError
from recollect.ports import Store
from recollect.store.lock import locked, settle
from recollect.text.forgotten import Forgotten, Tombstone

NAME = "forgotten.jsonl"
_KEY, _COUNT = "tombstones", "tombstones_saved"
_LOCK_WAIT_S = 30.0


class Tombstones:
    """Hashes of forgotten text, no text; every change replaces the file at once, and one change is made at a time."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._seen: tuple[tuple[int, ...], Forgotten] = ((), Forgotten())

    def load(self) -> Forgotten:
        """What is forgotten now; read again only when the file changed."""
        if self.path is None:
            return self._seen[1]
        try:
            stat = self.path.stat()
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if mark != self._seen[0]:
                rows = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines() if line]
                self._seen = (mark, Forgotten(tuple(Tombstone(**row) for row in rows)))
        except FileNotFoundError:
            self._seen = ((), Forgotten())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}", hint="check its permissions") from error
        except (ValueError, TypeError) as error:
            # Going on without it would show what was to be forgotten.
            message = f"{self.path} is not a list of tombstones: {error}"
            raise StoreError(message, hint="mend it, or delete it and forget again") from error
        return self._seen[1]

    def add(self, stones: Iterable[Tombstone]) -> Forgotten:
        """Adds tombstones that are not there yet."""
        with self._changing():
            known = self.load().stones
            have = {(one.hash, one.place) for one in known}
            new = {(one.hash, one.place): one for one in stones if (one.hash, one.place) not in have}
            return self._save((*known, *new.values())) if new else self.load()

    def lift(self, which: Callable[[Tombstone], bool]) -> int:
        """Takes tombstones away and says how many."""
        with self._changing():
            known = self.load().stones
            kept = tuple(one for one in known if not which(one))
            if len(kept) < len(known):
                self._save(kept)
            return len(known) - len(kept)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """From the look to the save nobody else saves: who remembers with force lifts while others forget."""
        lock = self.path.with_suffix(".lock") if self.path else None
        with locked(lock, wait_s=_LOCK_WAIT_S) as mine:
            if not mine:
                raise StoreBusyError("another process is changing what is forgotten here", hint="try again")
            yield

    def _save(self, stones: tuple[Tombstone, ...]) -> Forgotten:
        if self.path is None:
            self._seen = ((), Forgotten(stones))
            return self._seen[1]
        data = "".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in stones).encode()
        fresh = self.path.with_suffix(".new")
        try:
            handle = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
            settle(self.path.parent)  # a cut of power must not bring back what a receipt says is gone
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}", hint="check the disk") from error
        return self.load()


class StoredTombstones(Tombstones):
    """Tombstones kept among what a store remembers; changed in one transaction, so that no machine loses another's."""

    def __init__(self, store: Store) -> None:
        super().__init__(None)
        self._store = store
        self._known: tuple[object, Forgotten] = (None, Forgotten())

    def load(self) -> Forgotten:
        """What is forgotten now; read again only when another save was counted."""
        count = self._store.get_meta(_COUNT)
        if count != self._known[0]:
            rows = json.loads(str(self._store.get_meta(_KEY) or "[]"))
            self._known = (count, Forgotten(tuple(Tombstone(**row) for row in rows)))
        return self._known[1]

    def add(self, stones: Iterable[Tombstone]) -> Forgotten:
        """Adds tombstones that are not there yet."""
        with self._store.writing():
            return super().add(stones)

    def lift(self, which: Callable[[Tombstone], bool]) -> int:
        """Takes tombstones away and says how many."""
        with self._store.writing():
            return super().lift(which)

    def _save(self, stones: tuple[Tombstone, ...]) -> Forgotten:
        count = int(self._store.get_meta(_COUNT) or 0) + 1
        self._store.set_meta(_KEY, json.dumps([dataclasses.asdict(one) for one in stones]))
        self._store.set_meta(_COUNT, count)
        return Forgotten(stones)


def tombstones_of(store: Store) -> Tombstones:
    """Where a store's tombstones are: beside its file, or in it where it has none."""
    return Tombstones(store.file.with_name(NAME)) if store.file else StoredTombstones(store)
