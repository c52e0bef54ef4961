"""Work that must end in time, whatever hangs in it."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_READ_BYTES = 1 << 16
_MOST_BYTES = 10_000_000


class Sent:
    """What a host writes to our stdin, read by a thread: its end may never come."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._found: list[bytes] = []
        # `main` leaves at once while a thread of this name runs.
        self._reader = threading.Thread(target=self._read, name="load stdin", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self._found.append(sys.stdin.buffer.read(_MOST_BYTES) if sys.stdin is not None else b"")

    def within(self, seconds: float) -> bytes | None:
        """All of it, if it ends in this time, which began when it was first waited for; else
        None.
        """
        self._reader.join(max(0.0, seconds - self.spent_s()))
        return self._found[0] if self._found else None

    def spent_s(self) -> float:
        """How long ago that was."""
        return time.monotonic() - self._begun


def user_deadline(env: Mapping[str, str]) -> float:
    """The user's deadline for a hook; no workspace decides how long its host waits."""
    from notewell.settings import HookSettings, load  # noqa: PLC0415

    try:
        return load(Path(os.devnull), env=env).hook.deadline_s
    except Exception:  # noqa: BLE001 - settings that cannot be read are reported by every other command
        return HookSettings().deadline_s


def within(seconds: float, work: Callable[[], bytes]) -> bytes | None:
    """What the work returns, or None if it is not done in time or dies; what hangs is killed with
    its process.
    """
    if not hasattr(os, "fork"):
        return _in_thread(seconds, work)
    until = time.monotonic() + seconds
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _do(work, writer, seconds)
    os.close(writer)
    try:
        return _read(reader, until)
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)  # it is done, or late
        os.waitpid(child, 0)


def _do(work: Callable[[], bytes], writer: int, seconds: float) -> None:
    """The life of the child; it outlives its parent by no more than a second."""
    end_after(seconds + 1)
    code = 1
    try:
        with os.fdopen(writer, "wb") as out:
            out.write(b"+" + work())
        code = 0
    finally:
        os._exit(code)


def _read(reader: int, until: float) -> bytes | None:
    """All that the child writes, if it ends in time; what was done begins with a mark."""
    parts: list[bytes] = []
    while (left := until - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        part = os.read(reader, _READ_BYTES)
        if not part:
            whole = b"".join(parts)
            return whole[1:] if whole[:1] == b"+" else None
        parts.append(part)
    return None


def _in_thread(seconds: float, work: Callable[[], bytes]) -> bytes | None:
    """The same where processes cannot be forked; `main` leaves at once while a thread of this name
    runs.
    """
    found: list[bytes] = []
    thread = threading.Thread(
        target=lambda: found.append(work()), name="load for a hook", daemon=True
    )
    thread.start()
    thread.join(seconds)
    return found[0] if found else None


def end_after(seconds: float) -> None:
    """Ends this process after so long, by the system itself where that can be asked for."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds))
        return
    timer = threading.Timer(math.ceil(seconds), os._exit, (1,))
    timer.daemon = True
    timer.start()
