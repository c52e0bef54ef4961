"""The schema of the SQLite index, and the migrations that bring an older file up to date.

Append to `MIGRATIONS`, never edit: `user_version` counts those that ran. Each is a function with a
name and a test.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import apsw

from notewell.errors import StoreError, StoreVersionError
from notewell.opener import ANYWHERE

APPLICATION_ID = 0x6E6F7465  # "note"
_PLAUSIBLE_VERSION = 1000
_LISTING = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name, type"

COUNTERS = (
    "generation",  # changes of chunks or vectors
    "chunks",  # changes of chunks
    "documents",  # changes of documents, which filters choose by
    "judged",  # changes of relations
    "rows",  # the last number of a row
    "words",  # the last number of a word
    "sealed",  # rows up to this one are in keyword segments
    "epoch",  # how often words were deleted
    "vector_log",  # the last entry of the log that was deleted from it
    "stale_forms",  # forms without a chunk whose traits are still there
)


def create_tables(db: apsw.Connection) -> None:
    """Schema 1: everything in schema.sql, whose very spaces are compared with those of a file
    (`is_expected`).
    """
    db.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")).fetchall()
    db.executemany("INSERT INTO meta VALUES (?, 0)", [(key,) for key in COUNTERS])


def add_windows(db: apsw.Connection) -> None:
    """Schema 2: the windows of texts (see `window_codes`), each with a vector of the same text and
    model.
    """
    db.execute(  # the spaces, even the last ones, are compared with those of a file too
        "\n        CREATE TABLE windows ("
        "\n            model INTEGER NOT NULL REFERENCES models (id),"
        " content_hash BLOB NOT NULL, codes BLOB NOT NULL,"
        "\n            PRIMARY KEY (model, content_hash)"
        "\n        ) WITHOUT ROWID"
        "\n        "
    ).fetchall()


MIGRATIONS: tuple[Callable[[apsw.Connection], None], ...] = (create_tables, add_windows)


def version_of(db: apsw.Connection) -> int:
    """How many migrations a file has seen."""
    return int(_one(db, "PRAGMA user_version"))


def check_version(db: apsw.Connection, name: str) -> None:
    """Raises an error where a file belongs to another program or to a newer version."""
    try:
        version = version_of(db)
    except apsw.IOError:
        # The first page does not match its checksum. If it names a plausible later version, a newer
        # program may have written it without checksums: it is left alone, like any newer file.
        version = _version_in_header(name)
        if not len(MIGRATIONS) < version < _PLAUSIBLE_VERSION:
            raise
    else:
        if version and _one(db, "PRAGMA application_id") != APPLICATION_ID:
            raise _foreign(name)
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            (
                f"the index {name} was written by a newer notewell"
                f" (schema {version}; this one knows {len(MIGRATIONS)})"
            ),
            hint="upgrade notewell, or keep a second index with index.path",
        )


def migrate(db: apsw.Connection, name: str) -> None:
    """Runs the migrations that a file has not seen; inside a transaction."""
    version = version_of(db)  # another process may have been faster
    if not version and _one(db, "SELECT count(*) FROM sqlite_master"):
        raise _foreign(name)
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        migration(db)
        db.execute(f"PRAGMA user_version = {number}")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def is_expected(db: apsw.Connection) -> bool:
    """Whether a file has exactly the tables, indexes and triggers that the migrations make."""
    return bool(db.execute(_LISTING).fetchall() == _expected(MIGRATIONS))


@lru_cache(maxsize=1)
def _expected(migrations: tuple[Callable[[apsw.Connection], None], ...]) -> list[tuple[Any, ...]]:
    db = apsw.Connection(":memory:")
    try:
        for migration in migrations:
            migration(db)
        return db.execute(_LISTING).fetchall()
    finally:
        db.close()


def _foreign(name: str) -> StoreError:
    return StoreError(
        f"{name} is a database of another program", hint="set index.path to another file"
    )


def _one(db: apsw.Connection, sql: str) -> Any:
    return db.execute(sql).fetchall()[0][0]


def _version_in_header(name: str) -> int:
    """The version in the header of a file (bytes 60 to 63) if bytes 68 to 71 have our application
    id, else 0.
    """
    head = ANYWHERE.read(name, most=100, cut=True)
    return int.from_bytes(head[60:64]) if int.from_bytes(head[68:72]) == APPLICATION_ID else 0
