"""What is left of deleted text in a database, as far as a client can look: rows, dead rows and
indexes, pages, WAL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from notewell.errors import StoreError
from notewell.store.postgres.connection import Connection
from notewell.store.postgres.schema import TABLES
from notewell.store.values import Remains

_WORDED = {
    "chunks": "heading, text",
    "documents": "path, title, tail",
    "edges": "start_name, start_anchor, end_name, end_anchor",
    "meta": "key, value",
    "refused": "reason",
    "replaced": "target, part",
}
_PAGED = ("chunks", "documents", "postings", "edges")
_MOST_PAGES = 20_000
_KEPT_DEAD = re.compile(r"(\d+) are dead but not yet removable")
_PAGE_READER = (
    "SELECT to_regprocedure('get_raw_page(text, text, bigint)') IS NOT NULL"
    " AND has_function_privilege(to_regprocedure('get_raw_page(text, text, bigint)'), 'EXECUTE')"
    " AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"
)


def remains(db: Connection, probes: Sequence[str]) -> Remains:
    """Looks for probes, which are lines that no note has any more, after the tables were
    vacuumed.
    """
    checked: list[str] = []
    left: list[str] = []
    for found, clean, where in (_rows(db, probes), _dead_rows(db), _pages(db, probes)):
        left += found
        if clean and not found:
            checked.append(where)
    return Remains(tuple(checked), (*left, _copies(db)))


def _rows(db: Connection, probes: Sequence[str]) -> tuple[list[str], bool, str]:
    """Every text of the workspace, as any statement can see it."""
    has = (
        "EXISTS (SELECT 1 FROM unnest(%s::text[]) p WHERE strpos(concat_ws(chr(10), {}), p) > 0)"
    ).format
    found = [
        f"a row of {table} still has it"
        for table, columns in _WORDED.items()
        if probes
        and db.all(
            f"SELECT 1 FROM {table} WHERE workspace = $w AND {has(columns)} LIMIT 1",
            (list(probes),),
        )
    ]
    return found, bool(probes), f"rows: no text of {len(_WORDED)} tables has it"


def _dead_rows(db: Connection) -> tuple[list[str], bool, str]:
    """Rows that were deleted and that the server has not removed, with their entries in indexes.

    A vacuum that finds none left proves it; what is dead but not removable, an older transaction or
    a replica may read.
    """
    said: list[str] = []
    try:
        may = db.maintain("VACUUM (VERBOSE, SKIP_LOCKED)", TABLES, heard=said.append)
    except StoreError as error:
        return [f"dead rows could not be checked: {error}"], False, ""
    if not may:
        return (
            ["this role may not vacuum the tables, so deleted rows stay until the server does"],
            False,
            "",
        )
    numbers = [int(n) for one in said for n in _KEPT_DEAD.findall(one)]
    # one is locked or of another role, or the server speaks another language
    if len(numbers) < len(TABLES):
        return (
            [
                (
                    f"of {len(TABLES) - len(numbers)} tables it is not known "
                    "whether deleted rows are gone"
                )
            ],
            False,
            "",
        )
    if kept := sum(numbers):
        return (
            [
                (
                    f"{kept} deleted rows stay while a transaction that began before, "
                    "or a replica, may read them"
                )
            ],
            False,
            "",
        )
    return [], True, "dead rows and their entries in indexes: vacuumed, none is left"


def _pages(db: Connection, probes: Sequence[str]) -> tuple[list[str], bool, str]:
    """The bytes of the tables' pages, whose free space a vacuum does not overwrite; an
    administrator can read them.
    """
    unread = (
        "free space of the tables' pages may have bytes of it until it is used again; only a "
        "superuser with the"
    )
    if not probes or not db.all(_PAGE_READER)[0][0]:
        return [f"{unread} extension pageinspect can look"], False, ""
    found, count = [], 0
    for table in map(db.partition, _PAGED):
        pages = db.all(
            "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::bigint",
            (table,),
        )[0][0]
        count += pages
        if count > _MOST_PAGES:
            return [f"free space of more than {_MOST_PAGES:,} pages was not looked at"], False, ""
        if any(_has(page, probes) for page in _raw_pages(db, table, pages)):
            found.append(
                f"free space of {table} has bytes of it until it is used again: VACUUM FULL "
                f"notewell.{table}"
            )
    return found, True, f"pages: {count:,} of them have none of its bytes"


def _raw_pages(db: Connection, table: str, pages: int) -> Iterator[bytes]:
    sql = "SELECT get_raw_page(%s, 'main', n) FROM generate_series(%s::bigint, %s::bigint) n"
    for start in range(0, pages, 256):
        for (page,) in db.all(sql, (table, start, min(pages, start + 256) - 1), binary=True):
            yield page


def _has(page: bytes, probes: Sequence[str]) -> bool:
    return any(probe.encode("utf-8", "replace") in page for probe in probes)


def _copies(db: Connection) -> str:
    """Who keeps the log in which the text was written and deleted; no client can read that."""
    archive, slots, replicas = db.all(
        "SELECT current_setting('archive_mode'), (SELECT count(*) FROM pg_replication_slots),"
        " (SELECT count(*) FROM pg_stat_replication)"
    )[0]
    kept: list[Any] = ["the server's WAL until it is recycled"]
    kept += [f"{replicas} replica{'s'[: replicas > 1]}"] if replicas else []
    kept += [f"{slots} replication slot{'s'[: slots > 1]}"] if slots else []
    kept += ["the WAL archive"] if archive != "off" else []
    return f"not checked, since no client can: {', '.join(kept)}, and backups"
