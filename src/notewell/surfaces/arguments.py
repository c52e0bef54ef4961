"""Arguments that people and programs give in the same way: days and filters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NoReturn

from notewell.errors import UsageError
from notewell.settings import AGENTS
from notewell.types import Filters

SOURCES = ("memory", "extra", "sessions", "media", "documents", *AGENTS)


class ArgumentError(UsageError):
    """An argument is missing, of the wrong type or out of range; the message says what would be
    right.
    """


def short(value: Any) -> str:
    """A value as Python writes it, cut for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def local_now() -> dt.datetime:
    """The time now; days in notes and questions are local days."""
    return dt.datetime.now()  # noqa: DTZ005


def day(text: str | None, name: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    """The day that a text names, or None without one; for a longer time its first day, or with
    `end` its last.
    """
    if not text:
        return None
    from notewell.text.dates import parse_day  # noqa: PLC0415

    return parse_day(text, now, end=end) or _not_a_date(name, text)


def days(text: str | None, name: str) -> tuple[dt.date, dt.date] | None:
    """The first and the last day of the time that a text names, or None without one."""
    if not text:
        return None
    from notewell.text.dates import parse_span  # noqa: PLC0415

    span = parse_span(text, local_now()) or _not_a_date(name, text)
    return span.start, span.end


def _not_a_date(name: str, text: str) -> NoReturn:
    raise ArgumentError(
        f"{name} {short(text)} is not a date", hint='try 2026-03-19, 2026-03, "last week" or 30d'
    )


def filters(
    given: Mapping[str, Any], now: dt.datetime, *, flags: bool = False
) -> tuple[Filters, dt.datetime]:
    """The filters of a search, and its clock, which `as_of` turns back; with `flags` messages write
    `--as-of`.
    """

    def name(key: str) -> str:
        return f"--{key.replace('_', '-')}" if flags else key

    past = day(given.get("as_of"), name("as_of"), now, end=True)
    now = dt.datetime.combine(past, dt.time.max) if past else now
    since, until = (
        day(given.get("since"), name("since"), now),
        day(given.get("until"), name("until"), now, end=True),
    )
    if since and until and since > until:
        raise ArgumentError(
            f"{name('since')} {since} is after {name('until')} {until}", hint="swap them"
        )
    path, source, origin = (given.get(key) or "" for key in ("path", "source", "origin"))
    return Filters(since, until, path, source, origin, past), now
