"""One tree of errors; each has a sentence about what happened and, in `hint`, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


class NotewellError(Exception):
    """Something failed: a sentence about it, and a hint how to fix it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(NotewellError):
    """The call itself is wrong (exit code 2)."""


class SettingsError(UsageError):
    """A setting has the wrong name, type or value, or may not be set there."""


class WorkspaceError(UsageError):
    """The workspace does not exist or is not a folder."""


class NotFoundError(UsageError):
    """There is nothing at an id, path or line range."""


class NotInstalledError(UsageError):
    """A part that an extra brings is not installed."""


class NoteError(NotewellError):
    """A file of the user cannot be read or written; it was not changed."""


class ChangedError(NoteError):
    """A file is not as it was when a change to it was shown; nothing was written."""


class StoreError(NotewellError):
    """The index cannot be read or written."""


class StoreAwayError(StoreError):
    """The server that holds the index cannot be reached or was lost; nothing is half written."""


class StoreBusyError(StoreError):
    """Another process holds the index for longer than we wait."""


class StoreDamagedError(StoreError):
    """The file is damaged, or is not an index."""


class StoreVersionError(StoreError):
    """The index was written by a newer version of notewell."""


class EmbedderError(NotewellError):
    """The embedding model cannot be loaded or does not answer; `rows` it had made by then, by index
    in the call.
    """

    rows: Mapping[int, Any] = MappingProxyType({})


class QuotaError(EmbedderError):
    """The provider's quota or credit is used up; trying again soon is useless."""


class RejectedError(EmbedderError):
    """A provider rejected some of the texts: `reasons` by their index in the call, `rows` of all
    the others.
    """

    def __init__(
        self, message: str, *, reasons: Mapping[int, str], rows: Mapping[int, Any], hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.reasons = dict(reasons)
        self.rows = dict(rows)
