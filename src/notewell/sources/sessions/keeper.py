"""What is known of a program that keeps conversations: where they are, and whose."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notewell.opener import is_in
from notewell.sources.sessions.foreign_db import ForeignDb

Record = Mapping[str, Any]
_TOO_LARGE = 1 << 62  # for a store


@functools.lru_cache(maxsize=4096)
def real(folder: str) -> str:
    """The folder itself, where links are on the way; thousands of conversations share a few
    folders.
    """
    try:
        return os.path.realpath(folder)
    except ValueError:  # no folder has such a name
        return ""


def as_number(value: Any) -> int:
    """A number as some program wrote it; 0 for anything else, which any column and any JSON may
    hold.
    """
    return int(value) if isinstance(value, int | float) and abs(value) < _TOO_LARGE else 0


def as_json(value: Any) -> Any:
    """What some program wrote as JSON; None for what is none."""
    try:
        return json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return None


def as_object(value: Any) -> dict[str, Any]:
    """An object that some program wrote as JSON; empty for anything else."""
    found = as_json(value)
    return found if isinstance(found, dict) else {}


def as_text(value: Any) -> str:
    """A text as some program wrote it; empty for anything else."""
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Where:
    """Whose conversations are looked for: those of a workspace, or with `everyone` those of every
    folder.
    """

    root: str
    env: Mapping[str, str]
    everyone: bool = False

    def home(self, variable: str, *usual: str) -> str:
        """The folder of a program: the value of its variable, else a usual one below the home of
        the user.
        """
        if found := self.env.get(variable, "") if variable else "":
            return found
        # which stays `~` for a user without a home, and is not a folder of ours then
        home = os.path.expanduser("~")
        return os.path.join(home if os.path.isabs(home) else os.devnull, *usual)

    def data(self, *usual: str) -> str:
        """A folder of a program in the user's data folder, by the rules of XDG."""
        return self._xdg("XDG_DATA_HOME", (".local", "share"), usual)

    def config(self, *usual: str) -> str:
        """A folder of a program in the user's settings folder, by the rules of XDG."""
        return self._xdg("XDG_CONFIG_HOME", (".config",), usual)

    def _xdg(self, variable: str, base: Sequence[str], usual: Sequence[str]) -> str:
        found = self.env.get(variable, "")
        return os.path.join(found, *usual) if os.path.isabs(found) else self.home("", *base, *usual)

    def owns(self, folder: str) -> bool:
        """Whether a conversation in a folder is one of those looked for."""
        return self.everyone or (bool(folder) and is_in(real(folder), self.root))

    @property
    def slug(self) -> str:
        """The name that some programs give to the folder of this workspace's conversations."""
        return re.sub(r"[^A-Za-z0-9]", "-", self.root)


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation in a database: when it changed, how many messages it has, and what is known
    of it.

    Without a `folder` its records name one. Of one that is `lacking`, some records cannot be
    unpacked here.
    """

    id: str
    folder: str | None
    changed_ms: int
    title: str = ""
    subagent: bool = False
    messages: int = 0
    lacking: bool = False


@dataclass(frozen=True, slots=True)
class Files:
    """A program that keeps one file for each conversation.

    `globs` names the files, `homes` its folders. With `by_project` each project has a folder, else
    a file says where its conversation was held, or `about` does: the folder and the title, from
    what is beside a file.
    """

    name: str
    versions: str
    homes: Callable[[Where], Sequence[str]]
    globs: Callable[[Where], Iterator[str]]
    by_project: bool = False
    accepts: Callable[[Where, str], bool] = Where.owns
    about: Callable[[str], tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A program that keeps all conversations in databases.

    `talks` lists those of a database, and `records` yields the line and the record of each message
    from a line on, as `{role, content, timestamp}` or in a form that TranscriptReader knows.
    `layout` says how an unknown one is reported: the tables and columns that must be there.
    `deleted` yields what the user deleted, where the program tells.
    """

    name: str
    versions: str
    files: Callable[[Where], Iterator[str]]
    talks: Callable[[ForeignDb, Where], Iterator[Talk]]
    records: Callable[[ForeignDb, str, int], Iterator[tuple[int, Record]]]
    layouts: tuple[Mapping[str, Sequence[str]], ...]
    accepts: Callable[[Where, str], bool] = Where.owns
    deleted: Callable[[ForeignDb], Iterator[str]] | None = None

    def unknown(self, db: ForeignDb) -> str:
        """Why a database cannot be read; empty if its tables are known."""
        lacks = [db.lacks(layout) for layout in self.layouts]
        if "" in lacks:
            return ""
        return (
            f"an unknown version of {self.name}: no {min(lacks, key=len)} in it; "
            f"{self.versions} can be read"
        )
