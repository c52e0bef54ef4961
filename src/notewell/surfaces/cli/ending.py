"""How a command ends that fails: text on stderr, with `--json` also one object on stdout, and the
exit code.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import click

from notewell.errors import NotewellError, UsageError
from notewell.surfaces import failures
from notewell.surfaces.cli import render
from notewell.surfaces.cli.options import emit

_OS_HINT = "check the path, its permissions and the space on the disk"


class FailedAnswer(Exception):  # noqa: N818 - it carries an answer
    """A command has its answer, but the answer is a failure: `wire` is what `--json` shows beside
    the error.
    """

    def __init__(self, error: NotewellError, wire: Mapping[str, Any]) -> None:
        super().__init__(str(error))
        self.error, self.wire = error, wire


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, even one that cannot be understood otherwise."""
    own = list(arguments)[: arguments.index("--") if "--" in arguments else None]
    return "--json" in own or "--format=json" in own or ("--format", "json") in pairwise(own)


def colour() -> bool | None:
    """Whether to use colours: no where the user or the terminal says so, else None, which lets the
    output decide.
    """
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def failed(error: Exception, *, as_json: bool) -> int:
    """Tells an error and returns the exit code."""
    wire: Mapping[str, Any] = {}
    if isinstance(error, FailedAnswer):
        wire, error = error.wire, error.error
    if isinstance(error, click.ClickException):
        error.show()
        name = (
            error.ctx.command_path
            if isinstance(error, click.UsageError) and error.ctx
            else "notewell"
        )
        told = failures.wire("usage", error.format_message(), f"{name} --help shows what it takes")
        code = error.exit_code
    else:
        code, told = _told(error)
    if as_json:
        with contextlib.suppress(OSError, ValueError):  # stdout is closed
            emit({**wire, **told})
    return code


def _told(error: Exception) -> tuple[int, dict[str, Any]]:
    """Prints an error that is not of the command line's own and returns the exit code and the
    failure.
    """
    if isinstance(error, OSError):
        message, code, hint = (
            f"{error.strerror or error}: {error.filename or ''}".rstrip(": "),
            "os",
            "",
        )
    else:
        fault = failures.known(error)
        message, code, hint = str(fault), failures.code_of(fault), fault.hint
    with contextlib.suppress(OSError, ValueError):
        click.secho(render.one_line(f"error: {message}"), err=True, fg="red", color=colour())
        if hint:
            click.secho(render.one_line(f"hint: {hint}"), err=True, color=colour())
    return 2 if isinstance(error, UsageError) else 1, failures.wire(code, message, hint or _OS_HINT)


def thread_failed(failure: threading.ExceptHookArgs) -> None:
    """Tells what ended a thread in the background, as it would end a command."""
    if isinstance(failure.exc_value, Exception):
        _told(failure.exc_value)


def reader_left() -> None:
    """Lets the rest of the output go nowhere, since nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
