"""Notices about notes that a search cannot see: those that could not be read, and those read only
in part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from notewell.settings import AGENTS
from notewell.store.rows import path_matcher
from notewell.text.dates import date_of_path
from notewell.text.private import CLOSING, is_about_unclosed
from notewell.text.words import counted
from notewell.types import Filters, Notice, Skipped

_NAMED = 3
_LONGEST_NAME, _LONGEST_REASON = 80, 60
_SOURCES = ("memory", "extra", "sessions", "documents", *AGENTS)
_IGNORE = "fix them, or list them in .notewellignore; notewell status names them all"


def unread_notices(
    skipped: Iterable[Skipped], filters: Filters, shown: Collection[str]
) -> list[Notice]:
    """What an answer may miss, of the notes that the filters let through: how many, the first
    names, and a cure.

    A note of which a part is private, maybe on purpose, is only named by an answer that has it
    among the `shown` paths, or that has nothing.
    """
    inside = [s for s in skipped if s.source in _SOURCES and _in_scope(s, filters)]
    unread = [s for s in inside if not s.partly]
    # a bad line does not lose a conversation
    partly = [s for s in inside if s.partly and s.source != "sessions"]
    private = [s for s in partly if is_about_unclosed(s.reason) and (not shown or s.path in shown)]
    partly = [s for s in partly if not is_about_unclosed(s.reason)]
    found = []
    if unread:
        message = (
            f"{_count(unread)} cannot be read, so this answer may miss something: {_names(unread)}"
        )
        found.append(Notice("unread_notes", message, _IGNORE))
    if partly:
        message = f"only the first part of {_count(partly)} is searched: {_names(partly)}"
        found.append(Notice("partly_read", message, cure(partly[0])))
    if private:
        message = f"a part of {_count(private)} is not searched: {_names(private)}"
        found.append(Notice("private_unclosed", message, cure(private[0])))
    return found


def cure(skipped: Skipped) -> str:
    """What helps with a file that was not read, or only partly."""
    if is_about_unclosed(skipped.reason):
        return (
            f"write {CLOSING} where the private part ends, and put a mark that is only "
            "mentioned in back quotes"
        )
    if skipped.partly:
        return (
            "split what is so large, or raise max_file_bytes (notewell config shows where it is "
            "set)"
        )
    return "fix the file, or list it in .notewellignore"


def _in_scope(skipped: Skipped, filters: Filters) -> bool:
    """Whether a search with these filters would look into a file; what nobody knows of it does not
    leave it out.
    """
    day = date_of_path(skipped.path)
    return not (
        (filters.source and skipped.source != filters.source)
        or (filters.path and not path_matcher(filters.path)(skipped.path))
        or (day and filters.since and day < filters.since)
        or (day and filters.until and day > filters.until)
        or (day and filters.as_of and day > filters.as_of)
    )


def _count(skipped: Sequence[Skipped]) -> str:
    return counted(
        len(skipped), "file" if any(s.source == "documents" for s in skipped) else "note"
    )


def _names(skipped: Sequence[Skipped]) -> str:
    first = [
        f"{_short(s.path, _LONGEST_NAME)} ({_short(s.reason, _LONGEST_REASON)})"
        for s in skipped[:_NAMED]
    ]
    return ", ".join(first) + (", …" if len(skipped) > _NAMED else "")


def _short(text: str, most: int) -> str:
    """A name on one line: whoever made the file chose it, and it is shown among our own words."""
    plain = "".join(char if char.isprintable() else "�" for char in text)
    return plain if len(plain) <= most else f"{plain[: most // 2]}…{plain[-most // 2 :]}"
