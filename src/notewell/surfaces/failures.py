"""What every surface makes of an error: one shape for programs, and for those that nobody expected
an id and a log.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import platform
import sys
import traceback
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from notewell import __version__
from notewell.errors import NotewellError, NotInstalledError
from notewell.opener import beside
from notewell.settings import state_folder

LOG = "errors.log"
MOST_BYTES = 200_000
_ENTRY_BYTES = 20_000
_CAUSES = 3


class UnexpectedError(NotewellError):
    """A fault of ours; its message holds nothing of what was being read, only the id of what is in
    the log.
    """


def wire(code: str, message: str, hint: str = "") -> dict[str, Any]:
    """A failure as programs get it, over every surface."""
    return {"error": {"code": code, "message": message, "hint": hint}}


def without_mcp() -> NotInstalledError | None:
    """The error of an installation that lacks what speaks MCP."""
    if find_spec("mcp") is not None:
        return None
    return NotInstalledError(
        "the MCP server needs a package that is not installed", hint='pip install "notewell[mcp]"'
    )


def code_of(error: NotewellError) -> str:
    """The code of an error: its name in snake case, such as `store_busy`."""
    kind = type(error).__name__.removesuffix("Error").lstrip("_")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind).lstrip("_")


def known(error: Exception, env: Mapping[str, str] | None = None) -> NotewellError:
    """The error itself if it is one of ours; any other is written to the log, and told in a
    sentence.
    """
    if isinstance(error, NotewellError):
        return error
    number = fingerprint(error)
    try:
        where = record(error, env)
        hint = f"the details are in {where}; please report them with the id {number}"
    except Exception as fault:  # noqa: BLE001 - the log must never be what ends a command
        hint = (
            f"the details could not be written ({type(fault).__name__}); set XDG_STATE_HOME to "
            "a folder that can"
        )
    return UnexpectedError(
        f"something went wrong inside notewell ({type(error).__name__}, id {number})", hint=hint
    )


def record(error: BaseException, env: Mapping[str, str] | None = None) -> Path:
    """Writes an error to the log, without secrets, and returns the file."""
    return _log(fingerprint(error), error, state_folder(os.environ if env is None else env))


def fingerprint(error: BaseException) -> str:
    """An id that is the same whenever the same error is raised in the same place."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        type(error).__name__,
        *(f"{Path(f.filename).name}:{f.name}:{f.lineno}" for f in frames[-_CAUSES:]),
    ]
    return hashlib.blake2b("\n".join(places).encode("utf-8", "replace"), digest_size=4).hexdigest()


def _log(number: str, error: BaseException, folder: Path) -> Path:
    """Adds an error to the log that only its owner can read; the oldest entries go when it is
    full.
    """
    from notewell.text.redact import Redactor  # noqa: PLC0415 - only where something went wrong

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    head = (
        f"== {number} {now} notewell {__version__} Python {platform.python_version()} "
        f"{sys.platform}"
    )
    text = "".join(traceback.format_exception(error))[-_ENTRY_BYTES:]
    entry = f"{head}\n{Redactor()(text).text}\n".encode("utf-8", "replace")
    file = folder / LOG
    with os.fdopen(beside(file).open(file, os.O_RDWR | os.O_CREAT), "r+b") as log:
        end = log.seek(0, os.SEEK_END)
        if end + len(entry) > MOST_BYTES:
            log.seek(max(0, end - MOST_BYTES // 2))
            kept = log.read(MOST_BYTES)
            log.seek(0)
            log.write(kept[max(0, kept.find(b"\n== ") + 1) :])
            log.truncate()
        log.write(entry)
    with contextlib.suppress(OSError):
        file.chmod(0o600)
    return file
