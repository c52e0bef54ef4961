"""A caller's side of an engine: one line asks, one line greets, empty lines say that it is alive,
then the answer.

Whoever hears nothing for a moment does the work itself.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, NamedTuple

from notewell import __version__
from notewell.surfaces.engine.place import Place, is_busy

SILENCE_S = 0.2
STARVED_S = 5.0  # how long it may be silent while it works on a machine that has no time for it
MOST_BYTES = 16_000_000  # of one line
# the key of the version in the first line of either side, which no later version may change
VERSION = "notewell"
_READ_BYTES = 1 << 16


class NoAnswerError(Exception):
    """The engine does not answer this; `start` says whether another one may be started, `hung`
    whether it is silent.
    """

    def __init__(self, why: str, *, start: bool, hung: bool = False) -> None:
        super().__init__(why)
        self.start, self.hung = start, hung


class Answer(NamedTuple):
    """What a command would have written."""

    out: bytes
    err: bytes


class Attached:
    """A connection to an engine that has greeted."""

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.rest = b""

    def close(self) -> None:
        """Ends it."""
        self.socket.close()

    def line(self) -> dict[str, Any]:
        """The next line that says something."""
        while True:
            line, mark, rest = self.rest.partition(b"\n")
            if not mark:
                self._read()
                continue
            self.rest = rest
            if line.strip():
                try:
                    found = json.loads(line)
                except ValueError:
                    found = None
                if not isinstance(found, dict):
                    raise NoAnswerError("the engine does not speak our language", start=False)
                return found

    def take(self, size: int) -> bytes:
        """So many bytes."""
        while len(self.rest) < size:
            self._read()
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def _read(self) -> None:
        begun = time.monotonic()
        part = None
        while part is None:
            try:
                part = self.socket.recv(_READ_BYTES)
            except TimeoutError as error:
                if time.monotonic() - begun > STARVED_S or not is_busy(self.socket):
                    raise NoAnswerError("the engine is silent", start=True, hung=True) from error
            except OSError as error:
                raise NoAnswerError(f"the engine is gone: {error}", start=True) from error
        if not part:
            raise NoAnswerError("the engine is gone", start=True)
        self.rest += part


def attach(
    place: Place, call: str, *, waits: bool = False, silence_s: float = SILENCE_S, **given: Any
) -> Attached:
    """A connection to the engine at a place, which has got a call; NoAnswerError if it will not
    answer it.

    One that is being started is good enough only for a caller that `waits`.
    """
    asked = json.dumps({VERSION: __version__, "call": call, **given}).encode() + b"\n"
    if len(asked) > MOST_BYTES:
        raise NoAnswerError("there is too much to ask", start=False)
    until = time.monotonic() + silence_s
    try:
        made = Attached(place.connect(within_s=silence_s))
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoAnswerError("no engine runs", start=True) from error
    except PermissionError as error:
        raise NoAnswerError(str(error), start=False) from error
    except OSError as error:  # its queue is full, or it does not answer
        raise NoAnswerError(
            f"the engine cannot be reached: {error}", start=True, hung=True
        ) from error
    try:
        try:
            made.socket.sendall(asked)
        except OSError as error:
            raise NoAnswerError(f"the engine is gone: {error}", start=True) from error
        made.socket.settimeout(max(0.01, until - time.monotonic()))
        hello = made.line()
        made.socket.settimeout(silence_s)
        if hello.get(VERSION) != __version__:
            raise NoAnswerError(f"the engine is of version {hello.get(VERSION)}", start=True)
        if not hello.get("ready") and not waits:
            raise NoAnswerError("the engine is being started", start=False)
    except BaseException:
        made.close()
        raise
    return made


def ask(place: Place, call: str, *, silence_s: float = SILENCE_S, **given: Any) -> Answer:
    """The answer of the engine to a call; NoAnswerError if it has none."""
    made = attach(place, call, silence_s=silence_s, **given)
    try:
        head = accepted(made)
        return Answer(made.take(int(head["out"])), made.take(int(head["err"])))
    finally:
        made.close()


def accepted(made: Attached) -> dict[str, Any]:
    """The line that comes before an answer; NoAnswerError if it says that there is none."""
    head = made.line()
    if "declined" in head:
        raise NoAnswerError(str(head["declined"]), start=bool(head.get("ends")))
    return head
