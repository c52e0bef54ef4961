"""The tombstones of a workspace: in its own folder, so that every index of it reads them and they
travel with it.

Where that folder cannot be written they are in the user's data folder. An index in a database keeps
them too, for machines that do not share the files. Each place may know more than another: what
holds is all of them together, and a sync writes that to each. A tombstone that was lifted stays as
a mark, so that a place which has not heard of it does not bring it back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from notewell.errors import StoreBusyError, StoreError
from notewell.opener import MOST_KEPT_BYTES, beside, inside
from notewell.store.lock import locked
from notewell.store.own_folder import make_own_folder, own_folder
from notewell.store.ports import Store
from notewell.text.forgotten import Forgotten, Tombstone
from notewell.types import Notice

NAME = "forgotten.jsonl"
_KEY, _COUNT = "tombstones", "tombstones_saved"
_LOCK_WAIT_S = 30.0
_ASK = "ask its owner to let you read it, or work in a copy of the notes"
_TYPES = {f.name: str(f.type) for f in dataclasses.fields(Tombstone)}
_DEFAULTS = {
    f.name: f.default for f in dataclasses.fields(Tombstone) if f.default is not dataclasses.MISSING
}

Stones = tuple[Tombstone, ...]


class Place(Protocol):
    """Where tombstones are kept, with the marks of those that were lifted."""

    def load(self) -> Stones:
        """All of them; the same object as before while nothing changed."""

    def changing(self) -> AbstractContextManager[None]:
        """Locks out others from reading to saving: `remember --force` may lift while another
        process forgets.
        """

    def save(self, stones: Stones) -> None:
        """Replaces them all."""


class HeldTombstones:
    """Tombstones in memory."""

    def __init__(self) -> None:
        self._stones: Stones = ()

    def load(self) -> Stones:
        """All of them."""
        return self._stones

    def changing(self) -> AbstractContextManager[None]:
        """Nobody else changes them."""
        return contextlib.nullcontext()

    def save(self, stones: Stones) -> None:
        """Replaces them all."""
        self._stones = stones


class TombstoneFile:
    """Tombstones in a file, which every change replaces; `root` is the workspace whose own folder
    the file is in.
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path, self._root = path, root
        self._opener = beside(path) if root is None else inside(root)
        self._seen: tuple[tuple[int, ...], Stones] = ((), ())

    def load(self) -> Stones:
        """Read again only when the file changed."""
        mark = self._mark() or ()
        if mark != self._seen[0]:
            self._seen = (mark, self._read() if mark else ())
        return self._seen[1]

    @property
    def closed(self) -> bool:
        """Whether the file is in a folder of another user, who lets nobody in."""
        return self._mark() is None

    def _mark(self) -> tuple[int, ...] | None:
        try:
            there = self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except PermissionError:
            return None
        return (there.st_mtime_ns, there.st_ino, there.st_size)

    def _read(self) -> Stones:
        try:
            data = self._opener.read(self.path, most=MOST_KEPT_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as error:
            # Without it, forgotten text would be shown.
            raise StoreError(
                f"{self.path} cannot be read: {error.strerror}", hint="check its permissions"
            ) from error
        with _checked(str(self.path)):
            return tuple(
                _stone(json.loads(line))
                for line in data.decode("utf-8").split("\n")
                if line.strip()
            )

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Locks out other processes."""
        try:
            if self._root is not None:
                make_own_folder(self._root)
            else:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}", hint="check its folder"
            ) from error
        with locked(self.path.with_suffix(".lock"), wait_s=_LOCK_WAIT_S) as mine:
            if not mine:
                raise StoreBusyError(
                    "another process is changing what is forgotten here", hint="try again"
                )
            yield

    def save(self, stones: Stones) -> None:
        """Replaces the file, completely or not at all."""
        data = "".join(json.dumps(_row(one)) + "\n" for one in stones).encode()
        try:
            # A power cut must not bring back what a receipt says is gone.
            self._opener.replace(self.path, data, mode=0o600)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}", hint="check the disk"
            ) from error


class StoredTombstones:
    """Tombstones in the meta values of a store, changed in one transaction, so that no machine
    loses another's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[object, Stones] = (None, ())

    def load(self) -> Stones:
        """Read again only when another save was counted."""
        count = self._store.get_meta(_COUNT)
        if count != self._known[0]:
            with _checked(self._store.name):
                rows = json.loads(str(self._store.get_meta(_KEY) or "[]"))
                self._known = (count, tuple(map(_stone, rows)))
        return self._known[1]

    def changing(self) -> AbstractContextManager[None]:
        """One transaction."""
        return self._store.writing()

    def save(self, stones: Stones) -> None:
        """Replaces them all, and counts it."""
        count = int(self._store.get_meta(_COUNT) or 0) + 1
        self._store.set_meta(_KEY, json.dumps([_row(one) for one in stones]))
        self._store.set_meta(_COUNT, count)


class Tombstones:
    """What is forgotten in a workspace: kept in all of `places`, and read from `others` besides."""

    def __init__(self, *places: Place, others: Sequence[Place] = ()) -> None:
        self.places = places or (HeldTombstones(),)
        self._others = tuple(others)
        self._seen: tuple[tuple[Stones, ...], Stones, Forgotten] = ((), (), Forgotten())
        self._even: tuple[Stones, ...] | None = (
            None  # what was loaded when all places were found to know the same
        )

    def load(self) -> Forgotten:
        """What is forgotten now."""
        self._merge()
        return self._seen[2]

    def known(self) -> Forgotten:
        """What is forgotten now, or nothing where that cannot be read; only for what brings no text
        into the index.
        """
        try:
            return self.load()
        except StoreError:
            return Forgotten()

    @property
    def fault(self) -> StoreError | None:
        """Why a file of them cannot be read, if so."""
        try:
            for one in self._files():
                one.load()
        except StoreError as error:
            return error
        return None

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Why something may not be known to be forgotten."""
        if fault := self.fault:
            return (
                Notice(
                    "forgotten_unread", f"{fault}; until it can be, no note is indexed", fault.hint
                ),
            )
        message = "{} cannot be opened, so text that its owner forgot may be shown"
        closed = [one.path.parent for one in self._files() if one.closed]
        return tuple(Notice("forgotten_unread", message.format(folder), _ASK) for folder in closed)

    def _files(self) -> list[TombstoneFile]:
        return [one for one in (*self.places, *self._others) if isinstance(one, TombstoneFile)]

    def require_all(self) -> None:
        """Raises StoreError where a place cannot be read: a receipt must not promise what nobody
        knows.
        """
        for notice in self.notices:
            raise StoreError(
                f"nothing can be forgotten for good here: {notice.message}", hint=notice.hint
            )

    def _merge(self) -> Stones:
        """All that any place knows: one that is lifted anywhere is lifted."""
        parts = tuple(place.load() for place in (*self.places, *self._others))
        seen = self._seen[0]
        if len(seen) != len(parts) or any(
            one is not other for one, other in zip(parts, seen, strict=True)
        ):
            found: dict[tuple[str, ...], Tombstone] = {}
            for one in (one for part in parts for one in part):
                if one.lifted or _key(one) not in found:
                    found[_key(one)] = one
            stones = tuple(found.values())
            self._seen = (parts, stones, Forgotten(tuple(one for one in stones if not one.lifted)))
        return self._seen[1]

    def share(self) -> Forgotten:
        """What is forgotten now, after every place has got what any of them knows; one that cannot
        be written waits.
        """
        known = self._merge()
        if self._seen[0] is not self._even:
            if any(set(place.load()) != set(known) for place in self.places):
                with contextlib.suppress(StoreError):
                    self._change(lambda stones: stones)
                self._merge()
            else:
                self._even = self._seen[0]
        return self._seen[2]

    def add(self, stones: Iterable[Tombstone]) -> Forgotten:
        """Adds tombstones that are not there yet."""

        def added(known: Stones) -> Stones:
            have = {_name(one) for one in known if not one.lifted}
            new = {_name(one): one for one in stones if _name(one) not in have}
            again = {_key(one) for one in new.values()}
            return (*(one for one in known if _key(one) not in again), *new.values())

        self._change(added)
        return self.load()

    def lift(self, which: Callable[[Tombstone], bool]) -> int:
        """Lifts tombstones and returns how many."""
        gone = {_key(one) for one in self.load().stones if which(one)}
        if gone:
            self._change(
                lambda known: tuple(
                    dataclasses.replace(one, lifted=True) if _key(one) in gone else one
                    for one in known
                )
            )
        return len(gone)

    def _change(self, change: Callable[[Stones], Stones]) -> None:
        with contextlib.ExitStack() as stack:
            for place in self.places:
                stack.enter_context(place.changing())
            wanted = change(self._merge())
            for place in self.places:
                if set(place.load()) != set(wanted):
                    place.save(wanted)


def _name(one: Tombstone) -> tuple[str, ...]:
    return one.hash, one.place, one.receipt


def _key(one: Tombstone) -> tuple[str, ...]:
    return (*_name(one), one.made)


def _row(one: Tombstone) -> dict[str, Any]:
    """A tombstone without what is usual, so that earlier versions read those that they could have
    made.
    """
    return {
        name: value
        for name, value in dataclasses.asdict(one).items()
        if value != _DEFAULTS.get(name)
    }


def _stone(row: Any) -> Tombstone:
    """A tombstone from a file, which a stranger may have written."""
    if (
        any(type(value).__name__ != _TYPES.get(name) for name, value in row.items())
        or row.get("words", 0) < 1
    ):
        raise TypeError(f"{str(row)[:80]} is not a tombstone")
    return Tombstone(**row)


@contextlib.contextmanager
def _checked(name: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"{name} cannot be read as tombstones: {error}"
        raise StoreError(
            message, hint="put it back from a copy, or delete it and forget again"
        ) from error


def tombstones_of(
    store: Store, root: Path | None = None, away: Path | None = None, *, here: bool = True
) -> Tombstones:
    """Those of the workspace at `root`, in its own folder, or in the folder `away` where that
    cannot be written.

    If not `here`, its own folder is somebody else's, and not looked into.

    An index in a database has them too. Those that earlier versions kept next to an index are read.
    """
    beside_it: Place = (
        TombstoneFile(store.file.with_name(NAME)) if store.file else StoredTombstones(store)
    )
    if root is None:
        return Tombstones(beside_it)
    own = own_folder(root) if here else None
    ours = TombstoneFile(own / NAME, root) if own else None
    far = TombstoneFile(away / NAME) if away else None
    known = {_where(one): one for one in (beside_it, far, ours) if one}
    writable = own is not None and os.access(own if own.is_dir() else root, os.W_OK)
    home = known[_where((ours if writable else far) or beside_it)]
    places = dict.fromkeys((home, beside_it)) if store.shared is not None else (home,)
    return Tombstones(*places, others=[one for one in known.values() if one not in places])


def _where(place: Place) -> object:
    return getattr(place, "path", place)
