"""Which documents were ever shown in an answer: a small file beside the index, written when a
server is idle or ends.

Searches only add to a set in memory. The file has hashes of paths, so that it tells nothing of a
note that is gone; it may be deleted at any time, and then counting begins again.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from notewell.opener import beside
from notewell.store.lock import locked

SHOWN_FILE = "shown.txt"
_MOST_BYTES = 4_000_000
_LOCK_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Shown:
    """Since when what is shown is counted, and the keys of what was."""

    since: dt.date
    keys: frozenset[str] = frozenset()

    def __contains__(self, path: str) -> bool:
        return key_of(path) in self.keys


def key_of(path: str) -> str:
    """The hash of a path."""
    return hashlib.blake2b(path.encode("utf-8", "replace"), digest_size=6).hexdigest()


def record(file: Path | None, paths: Iterable[str], *, today: dt.date) -> Shown:
    """Adds paths to what was shown before, and returns all of it; without a place for it, only
    these.
    """
    new = frozenset(map(key_of, paths))
    if file is None:
        return Shown(today, new)
    known = _read(file)
    if known is not None and new <= known.keys:
        return known
    with (
        contextlib.suppress(OSError),
        locked(file.with_suffix(".lock"), wait_s=_LOCK_WAIT_S) as mine,
    ):
        known = _read(file)  # another process may have added some
        made = Shown(known.since, known.keys | new) if known else Shown(today, new)
        text = "\n".join((made.since.isoformat(), *sorted(made.keys))) + "\n"
        if mine and len(text) < _MOST_BYTES:
            beside(file).replace(file, text.encode(), mode=0o600)
        return made
    return Shown(known.since, known.keys | new) if known else Shown(today, new)


def _read(file: Path) -> Shown | None:
    """What a file has; None without one, and for one that something else wrote."""
    try:
        first, *rest = beside(file).read(file, most=_MOST_BYTES).decode("ascii").splitlines()
        return Shown(dt.date.fromisoformat(first), frozenset(rest))
    except (OSError, ValueError):
        return None
