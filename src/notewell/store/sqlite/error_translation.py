"""SQLite's errors as ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn

import apsw

from notewell.errors import StoreBusyError, StoreDamagedError, StoreError
from notewell.store.nearest import made_mine

REBUILD = "notewell index --force rebuilds it"


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """Turns SQLite's errors into ours."""
    try:
        yield
    except apsw.Error as error:
        reraise(error, name)


_ERRORS: tuple[
    tuple[type[apsw.Error] | tuple[type[apsw.Error], ...], type[StoreError], str, str], ...
] = (
    (
        (apsw.CorruptError, apsw.NotADBError),
        StoreDamagedError,
        "the index {name} is damaged: {error}",
        REBUILD,
    ),
    # such as a counter that is behind what it counts
    (
        apsw.ConstraintError,
        StoreDamagedError,
        "the index {name} contradicts itself: {error}",
        REBUILD,
    ),
    (
        (apsw.BusyError, apsw.LockedError),
        StoreBusyError,
        "another process has been writing to {name} for too long",
        "wait for it, or end it, and try again",
    ),
    (
        apsw.FullError,
        StoreError,
        "the disk is full",
        "free some space where {name} is; nothing was half written",
    ),
    (
        (apsw.ReadOnlyError, apsw.PermissionsError),
        StoreError,
        "{name} cannot be written",
        "check its permissions, or set index.path",
    ),
    (
        apsw.CantOpenError,
        StoreError,
        "{name} cannot be opened",
        "check that the folder exists and is readable",
    ),
    (
        apsw.IOError,
        StoreError,
        "reading or writing {name} failed: {error}",
        "check the disk it is on",
    ),
    (apsw.ConnectionClosedError, StoreError, "the memory is closed", "open it again"),
    # SQL that is wrong is our mistake, not damage: it must not cost the index.
    (
        apsw.SQLError,
        StoreError,
        "the index did not understand a question: {error}",
        "please report it",
    ),
)


def reraise(error: apsw.Error, name: str) -> NoReturn:
    """Raises our error for one of SQLite's, with a hint that helps; the same error where we have
    none.
    """
    if (
        isinstance(error, apsw.IOError)
        and getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    ):
        message = f"the index {name} is damaged: a page does not match its checksum"
        raise StoreDamagedError(message, hint=REBUILD) from error
    if isinstance(error, apsw.SQLError) and str(error).startswith(
        ("no such table", "vtable constructor failed")
    ):
        raise StoreDamagedError(f"the index {name} lacks a table: {error}", hint=REBUILD) from error
    for kinds, kind, message, hint in _ERRORS:
        if isinstance(error, kinds):
            closed = isinstance(
                error, (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError)
            )
            mine = made_mine(name, os.path.dirname(name)) if closed else ""
            raise kind(
                message.format(name=name, error=error), hint=mine or hint.format(name=name)
            ) from error
    raise error
