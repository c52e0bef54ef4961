"""One error tree: every leaf says what happened and, in `hint`, what to do.

RecollectError
├── UsageError        the call itself is wrong (exit code 2)
│   ├── SettingsError     a settings file, variable or flag
│   ├── WorkspaceError    the workspace cannot be used
│   └── NotFoundError     a reference names nothing
├── NoteError         a note or links.jsonl cannot be read or written: the disk, or permissions
├── StoreError        the index cannot be read or written
│   ├── StoreAwayError    the server that holds it cannot be reached
│   ├── StoreBusyError    another process holds it
│   ├── StoreDamagedError the file is not a sound index
│   └── StoreVersionError written by a newer version
└── EmbedderError     a model cannot be loaded or does not answer
    ├── QuotaError        the provider's quota is used up; asking again is pointless for now
    └── RejectedError     the provider refuses some of the texts; the rows of all others are inside
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class RecollectError(Exception):
    """A broken promise, with a sentence about it and a hint that mends it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(RecollectError):
    """The caller asked for something that makes no sense."""


class SettingsError(UsageError):
    """A setting has the wrong name, type or value, or comes from a place that may not set it."""


class WorkspaceError(UsageError):
    """The workspace does not exist or is not a folder."""


class NotFoundError(UsageError):
    """An id, path or line range that names nothing."""


class NoteError(RecollectError):
    """A file that the user wrote cannot be read or written; it is as it was."""


class StoreError(RecollectError):
    """The index cannot be read or written."""


class StoreAwayError(StoreError):
    """The server that holds the index cannot be reached, or went away; nothing is half written."""


class StoreBusyError(StoreError):
    """Another process has held the index for longer than we wait."""


class StoreDamagedError(StoreError):
    """The index file is not a sound SQLite file of ours."""


class StoreVersionError(StoreError):
    """The index was written by a newer version of recollect."""


class EmbedderError(RecollectError):
    """The embedding model cannot be loaded or does not answer."""


class QuotaError(EmbedderError):
    """The provider's quota or credit is used up; asking again soon is pointless."""


class RejectedError(EmbedderError):
    """A provider refused some of the texts: `reasons` by their place in the call, `rows` of all the others."""

    def __init__(self, message: str, *, reasons: Mapping[int, str], rows: Mapping[int, Any], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reasons = dict(reasons)
        self.rows = dict(rows)
