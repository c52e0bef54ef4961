"""What hooks remember, in the user's state folder and readable by nobody else: what was injected,
when, and for what.

Everything is bounded: the logs are cut at their oldest end, a session is forgotten after some days.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from notewell.errors import UsageError
from notewell.opener import beside
from notewell.settings import state_folder
from notewell.text.words import query_terms

_MOST_BYTES = 400_000
_MOST_SEEN = 500
_MOST_SESSIONS = 500
_SESSION_DAYS = 14
_DAY_S = 86_400
_LONGEST_PROMPT, _READ_OF_PROMPT = 160, 20_000
_ALIKE = 0.5  # the share of the words of the shorter of two prompts that the other has


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage that was injected; `content` is the hash of its text. A line of a brief has only
    its place.
    """

    citation: str
    content: str = ""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Injected:
    """What one hook gave to a model; the prompt is redacted and shortened, and empty at the start
    of a session.
    """

    id: str
    time: str
    host: str
    workspace: str
    prompt: str
    tokens: int
    passages: tuple[Passage, ...]
    useless: bool = False


class Journal:
    """The files of all hooks of this user."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = state_folder(env) / "hooks"
        self._log, self._marks = self.folder / "injected.jsonl", self.folder / "useless.jsonl"

    def seen(self, session: str) -> set[str]:
        """The hashes of what a session was given already."""
        return set(_read(self._session(session)).split()[-_MOST_SEEN:]) if session else set()

    def saw(self, session: str, contents: Iterable[str]) -> None:
        """Remembers that a session has got these texts."""
        if session:
            _append(self._session(session), "".join(f"{content}\n" for content in contents))

    def forget(self, session: str) -> None:
        """Forgets what a session was given, since the model does not have it any more."""
        if session:
            self._session(session).unlink(missing_ok=True)

    def _session(self, session: str) -> Path:
        return (
            self.folder
            / "sessions"
            / hashlib.blake2b(session.encode("utf-8", "replace"), digest_size=8).hexdigest()
        )

    def sweep(self) -> None:
        """Removes what is left of old sessions, and of the oldest if there are very many."""
        with contextlib.suppress(OSError):
            found = sorted(
                ((e.stat().st_mtime, e.path) for e in os.scandir(self.folder / "sessions")),
                reverse=True,
            )
            oldest = time.time() - _SESSION_DAYS * _DAY_S
            for number, (when, path) in enumerate(found):
                if number >= _MOST_SESSIONS or when < oldest:
                    os.unlink(path)

    def due(self, workspace: Path, every_s: float) -> bool:
        """Whether the last work in the background for a workspace began so long ago; if so, one
        begins now.
        """
        key = hashlib.blake2b(str(workspace).encode("utf-8", "replace"), digest_size=8).hexdigest()
        place = self.folder / "kept" / key
        with contextlib.suppress(OSError):
            if 0 <= time.time() - place.stat().st_mtime < every_s:
                return False
        _append(place, "")
        os.utime(place)
        return True

    def add(
        self,
        *,
        host: str,
        workspace: Path,
        prompt: str,
        tokens: int,
        passages: Sequence[Passage],
        now: dt.datetime,
    ) -> None:
        """Writes down what was injected."""
        when = now.astimezone().isoformat(timespec="seconds")
        number = hashlib.blake2b(
            f"{time.time_ns()} {os.getpid()}".encode(), digest_size=3
        ).hexdigest()
        entry = Injected(
            number, when, host, str(workspace), shortened(prompt), tokens, tuple(passages)
        )
        _append(self._log, _line(asdict(entry)))

    def entries(self) -> list[Injected]:
        """What was injected, the oldest first."""
        marked = {(row.get("id"), row.get("content")) for row in _rows(self._marks)}
        found = (_entry(row) for row in _rows(self._log))
        return [
            entry
            if not any((entry.id, p.content) in marked for p in entry.passages)
            else _marked(entry)
            for entry in found
            if entry
        ]

    def mark(self, name: str) -> Injected:
        """Marks what an entry injected as useless, or with `ID.2` its second passage only."""
        number, dot, which = name.partition(".")
        entry = next((e for e in self.entries() if e.id == number), None)
        at = int(which) - 1 if which.isdecimal() else -1
        if entry is None or (dot and not 0 <= at < len(entry.passages)):
            raise UsageError(
                f"nothing that was injected is called {name!r}",
                hint="notewell hook log lists all of it",
            )
        if not entry.prompt:
            raise UsageError(
                f"{name} is a brief and belongs to no prompt",
                hint="hook.brief_tokens = 0 turns briefs off",
            )
        for passage in entry.passages[at : at + 1] if dot else entry.passages:
            row = {"id": entry.id, "content": passage.content, "prompt": entry.prompt}
            _append(self._marks, _line(row))
        return _marked(entry)

    def useless_for(self, prompt: str) -> set[str]:
        """The hashes of texts that were marked as useless for a prompt like this one."""
        rows = [row for row in _rows(self._marks) if isinstance(row.get("prompt"), str)]
        words = _words(shortened(prompt)) if rows else ()
        return {str(row.get("content")) for row in rows if _alike(words, _words(row["prompt"]))}


def shortened(prompt: str) -> str:
    """A prompt as it may be written down: one line, without secrets, and not all of it."""
    from notewell.text.redact import Redactor  # noqa: PLC0415 - most prompts get nothing

    return Redactor()(" ".join(prompt[:_READ_OF_PROMPT].split())).text[:_LONGEST_PROMPT]


def _words(text: str) -> Collection[str]:
    return frozenset(query_terms(text).words)


def _alike(one: Collection[str], other: Collection[str]) -> bool:
    least = min(len(one), len(other))
    return bool(least) and len(set(one) & set(other)) >= _ALIKE * least


def _marked(entry: Injected) -> Injected:
    return Injected(
        **{name: getattr(entry, name) for name in Injected.__slots__ if name != "useless"},
        useless=True,
    )


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _entry(row: Mapping[str, Any]) -> Injected | None:
    """A line of the log; None for one that somebody else wrote."""
    try:
        passages = tuple(Passage(**one) for one in row["passages"])
        return Injected(**{**row, "passages": passages})
    except (KeyError, TypeError):
        return None


def _read(file: Path) -> str:
    try:
        return beside(file).read(file, most=2 * _MOST_BYTES, cut=True).decode("utf-8", "replace")
    except OSError:
        return ""


def _rows(file: Path) -> list[dict[str, Any]]:
    found = []
    for line in _read(file).splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                found.append(row)
    return found


def _append(file: Path, text: str) -> None:
    """Adds to a file that only its owner can read; half of one that is full goes."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    opener = beside(file)
    handle = opener.open(file, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    with os.fdopen(handle, "ab") as out:
        out.write(text.encode("utf-8", "replace"))
        full = out.tell() > _MOST_BYTES
    if full:
        rest = _read(file)[-_MOST_BYTES // 2 :].partition("\n")[2]
        opener.replace(file, rest.encode("utf-8", "replace"), mode=0o600, writer=str(os.getpid()))
