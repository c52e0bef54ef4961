"""Calls to a model that may hang: each has a deadline, and a model that failed is not called for a
while.

A call runs on a daemon thread that is abandoned when it is late, so neither a search nor the end of
the process waits for it. After a pause one call is let through as a probe, which no caller waits
for long.
"""

from __future__ import annotations

import atexit
import copy
import inspect
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from notewell.embed.embedder import Embedder, PassageVectors, room_of
from notewell.errors import EmbedderError, QuotaError, RejectedError
from notewell.opener import MOST_SETTINGS_BYTES, beside
from notewell.types import Role, Vectors

PAUSE_S, MOST_PAUSE_S = 5.0, 300.0
QUOTA_PAUSE_S, MOST_QUOTA_PAUSE_S = 900.0, 7200.0  # a quota does not come back within seconds
PROBE_WAIT_S = 0.25
_EXIT_WAIT_S = 2.0
_AT_WORK = 0.01  # a share of the processor that nobody uses who only waits
_OUTAGES_LOCK = threading.Lock()
QUOTA_HINT = "check your plan there, then run notewell index, or set another embed.model"
_HINT = "notewell doctor --deep tests each model and says what to do"
Result = TypeVar("Result")


def _wait_at_exit() -> None:
    """Gives abandoned calls a moment to end: native code must not outlive the interpreter.

    The moment is one of processor time, for a busy machine, and ends where nothing is at work.
    """
    begun = time.process_time()
    for thread in threading.enumerate():
        while thread.name.startswith("embed ") and thread.is_alive():
            before = time.process_time()
            if before - begun >= _EXIT_WAIT_S:
                return
            thread.join(_EXIT_WAIT_S)
            if time.process_time() - before < _AT_WORK * _EXIT_WAIT_S:
                return


atexit.register(_wait_at_exit)


class Breaker:
    """Closed while calls succeed; open for a pause after a failure, twice as long each time; then
    one probe.
    """

    def __init__(
        self,
        *,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
        before: tuple[int, float] = (0, 0.0),
        changed: Callable[[int, float], None] | None = None,
    ) -> None:
        """`before` are the failures in a row and the seconds of pause left in another process;
        `changed` gets both.
        """
        self.clock = clock
        self.error: EmbedderError | None = None
        self._pause_s = pause_s
        self._changed = changed
        self._failures, left_s = before
        self._inherited = bool(self._failures)
        self._until = clock() + min(MOST_QUOTA_PAUSE_S, max(0.0, left_s))
        self._probing: float | None = None
        self._lock = threading.RLock()

    @property
    def left_s(self) -> float:
        """Seconds until the next probe; 0 when calls go through."""
        return max(0.0, self._until - self.clock()) if self._failures else 0.0

    def enter(self, limit_s: float) -> str:
        """`go`, `probe` or `stop`; a probe without an answer after `limit_s` is one more
        failure.
        """
        with self._lock:
            if not self._failures:
                return "go"
            now = self.clock()
            if self._probing is not None and now - self._probing > limit_s:
                self.fail(self.error)
            if now < self._until or self._probing is not None:
                return "stop"
            if self._inherited:
                self._inherited = False
                return "go"  # a short command must wait for its probe: it makes no second call
            self._probing = now
            return "probe"

    def succeed(self) -> None:
        """Lets calls through again."""
        with self._lock:
            recovered = self._failures > 0
            self._failures, self._probing, self.error = 0, None, None
            if recovered and self._changed:
                self._changed(0, 0.0)

    def fail(self, error: EmbedderError | None) -> None:
        """Stops calls for a while."""
        quota = isinstance(error, QuotaError)
        first_s, most_s = (
            (QUOTA_PAUSE_S, MOST_QUOTA_PAUSE_S) if quota else (self._pause_s, MOST_PAUSE_S)
        )
        with self._lock:
            pause_s = min(most_s, first_s * 2 ** min(self._failures, 10))
            self._failures += 1
            self.error, self._probing, self._inherited = error, None, False
            self._until = self.clock() + pause_s
            if self._changed:
                self._changed(self._failures, pause_s)


class Outages:
    """A small file of the models that fail at the moment: a short command has no other memory of
    it.

    For each it holds the failures in a row and the end of the pause. It holds only numbers, never
    text: it is next to the index, which may come from somebody else.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock

    def read(self, model: str) -> tuple[int, float]:
        """Failures in a row and the seconds of the pause left; 0 and 0 for a model without an
        entry.
        """
        entry: Any = self._read_all().get(model)
        try:
            failures, until = int(entry[0]), float(entry[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            return 0, 0.0
        left_s = until - self._clock()
        # Longer than any pause: the clock was set back since, and nobody knows how much is left.
        return (
            (failures, left_s) if 0 < failures < 1000 and left_s <= MOST_QUOTA_PAUSE_S else (0, 0.0)
        )

    def write(self, model: str, failures: int, pause_s: float) -> None:
        """Records a failure, or with 0 failures that the model works; an error in writing is
        ignored.
        """
        with _OUTAGES_LOCK, suppress(OSError):
            entries = self._read_all()
            if failures:
                entries[model] = [failures, self._clock() + pause_s]
            elif entries.pop(model, None) is None:
                return
            beside(self._path).replace(
                self._path, json.dumps(entries).encode(), mode=0o600, writer=f".{os.getpid()}"
            )

    def _read_all(self) -> dict[str, Any]:
        try:
            entries = json.loads(beside(self._path).read(self._path, most=MOST_SETTINGS_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return entries if isinstance(entries, dict) else {}


class Guarded:
    """An embedder whose calls end by a deadline and pause after a failure; every failure is an
    EmbedderError.
    """

    def __init__(
        self, inner: Embedder, *, deadline_s: float = 3.0, breaker: Breaker | None = None
    ) -> None:
        self.inner = inner
        self.id = inner.id
        self.dim = inner.dim
        self.usd_per_million: float | None = getattr(inner, "usd_per_million", None)
        self.window_dims: int = getattr(inner, "window_dims", 0)
        self.every_script: bool = getattr(inner, "every_script", False)
        self.room = room_of(inner)
        self.deadline_s = deadline_s
        self.breaker = breaker or Breaker()
        self.texts_per_deadline = 0
        self.anyway = False
        self._waiting: set[Future[Any]] = set()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._keeps_deadline = "deadline_s" in inspect.signature(inner.embed).parameters

    def within(self, deadline_s: float, *, per: int = 0, anyway: bool = False) -> Guarded:
        """The same model with a deadline that grows with the batch if it is meant for `per` texts;
        see `embed`.
        """
        other = copy.copy(self)
        other.deadline_s, other.texts_per_deadline, other.anyway = deadline_s, per, anyway
        return other

    def embed(
        self,
        texts: Sequence[str],
        role: Role,
        *,
        deadline_s: float | None = None,
        anyway: bool = False,
    ) -> Vectors:
        """Rows by the deadline, or EmbedderError; `anyway` calls the model even during a pause."""
        inner: Any = self.inner

        def call(**deadline: float) -> Vectors:
            return _checked(inner.embed(texts, role, **deadline), len(texts), self.id)

        return self._called(call, len(texts), deadline_s=deadline_s, anyway=anyway)

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        """The same for the windows of texts, if the model has any."""
        inner: Any = self.inner

        def call(**deadline: float) -> Sequence[PassageVectors]:
            found: Sequence[PassageVectors] = inner.embed_passages(texts, **deadline)
            if texts or found:
                _checked([one.whole for one in found], len(texts), self.id)
            for one in found:
                _check_windows(one, self.window_dims, self.id)
            return found

        return self._called(call, len(texts))

    def _called(
        self,
        call: Callable[..., Result],
        count: int,
        *,
        deadline_s: float | None = None,
        anyway: bool = False,
    ) -> Result:
        """What a call for so many texts returns, by the deadline."""
        limit_s = self.deadline_s if deadline_s is None else deadline_s
        if self.texts_per_deadline:
            limit_s *= max(1.0, count / self.texts_per_deadline)
        gate = "go" if anyway or self.anyway else self.breaker.enter(limit_s)
        if gate == "stop":
            raise self._paused()
        future: Future[Result] = Future()
        with self._lock:
            if self._closed.is_set():
                raise _closed()
            self._waiting.add(future)
        thread = threading.Thread(
            target=self._run, args=(future, call, limit_s), name=f"embed {self.id}", daemon=True
        )
        thread.start()
        try:
            return future.result(timeout=limit_s if gate == "go" else min(limit_s, PROBE_WAIT_S))
        except TimeoutError:
            if gate == "probe":
                # the probe goes on, and closes the breaker for the next call
                raise self._paused() from None
            return self._give_up(future, limit_s)
        except KeyboardInterrupt:
            getattr(self.inner, "cut", lambda: None)()  # a remote model need not be waited for
            # native code of a local model must not run on while the process ends
            thread.join(_EXIT_WAIT_S)
            raise
        finally:
            with self._lock:
                self._waiting.discard(future)

    def _give_up(self, future: Future[Result], limit_s: float) -> Result:
        """Fails a late call, unless its rows came at the last moment."""
        # a little of the deadline is spent before the call
        shown = round(limit_s, 1 if limit_s >= 0.5 else 2)
        error = EmbedderError(f"{self.id} did not answer within {shown:g} s", hint=_HINT)
        with suppress(InvalidStateError):
            future.set_exception(error)
            self.breaker.fail(error)
        return future.result()

    def _paused(self) -> EmbedderError:
        last, left_s = self.breaker.error, self.breaker.left_s
        # from another process; only a used-up quota pauses so long
        if last is None and left_s > MOST_PAUSE_S:
            last = QuotaError(f"the quota of {self.id} was used up", hint=QUOTA_HINT)
        reason = f"{last}; " if last is not None else f"{self.id} did not answer a moment ago; "
        when = f"{left_s:.0f} s" if left_s < 120 else f"{left_s / 60:.0f} min"
        kind = QuotaError if isinstance(last, QuotaError) else EmbedderError
        return kind(
            f"{reason}it is asked again in {when}", hint=last.hint if last is not None else _HINT
        )

    def _run(self, future: Future[Result], call: Callable[..., Result], limit_s: float) -> None:
        """Calls the model, on its own thread; a call that nobody waits for any more does not change
        the breaker.
        """
        begun = self.breaker.clock()
        failure: EmbedderError | None = None
        try:
            rows = call(**({"deadline_s": limit_s} if self._keeps_deadline else {}))
        except EmbedderError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - anybody's model may fail in any way, and keywords still answer
            failure = EmbedderError(
                f"{self.id} failed: {str(error) or type(error).__name__}", hint=_HINT
            )
        on_time = self.breaker.clock() - begun <= limit_s
        if isinstance(failure, RejectedError) or (failure is None and on_time):
            self.breaker.succeed()
        elif not future.done():
            self.breaker.fail(
                failure or EmbedderError(f"{self.id} took over {limit_s:g} s", hint=_HINT)
            )
        with suppress(InvalidStateError):
            if failure is None:
                future.set_result(rows)
            else:
                future.set_exception(failure)

    def close(self) -> None:
        """Ends every wait at once; calls that still run are abandoned."""
        with self._lock:
            self._closed.set()
            waiting = list(self._waiting)
        for future in waiting:
            with suppress(InvalidStateError):
                future.set_exception(_closed())
        close_model(self.inner)


def close_model(model: Embedder | None) -> None:
    """Closes a model that can be closed."""
    end = getattr(model, "close", None)
    if callable(end):
        end()


def _closed() -> EmbedderError:
    return EmbedderError("the memory is closed", hint="open it again")


def _checked(rows: Vectors | Sequence[Vectors], count: int, name: str) -> Vectors:
    """The rows of a model, if there is one of finite numbers for each text."""
    import numpy as np  # noqa: PLC0415

    rows = np.asarray(rows, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise EmbedderError(
            f"{name} returned rows of shape {rows.shape} for {count} texts", hint=_HINT
        )
    if not np.isfinite(rows).all():
        raise EmbedderError(
            f"{name} returned a vector with a value that is not a number", hint=_HINT
        )
    return rows


def _check_windows(found: PassageVectors, dims: int, name: str) -> None:
    """Raises EmbedderError unless each window has its span, and finite numbers in the dimensions
    that are kept.
    """
    import numpy as np  # noqa: PLC0415

    windows = np.asarray(found.windows)
    if len(windows) != len(found.spans) or (
        len(windows) and (windows.ndim != 2 or windows.shape[1] < dims)
    ):
        shape = f"{windows.shape} for {len(found.spans)} spans"
        raise EmbedderError(f"{name} returned windows of shape {shape}", hint=_HINT)
    if not np.isfinite(windows).all():
        raise EmbedderError(
            f"{name} returned a window with a value that is not a number", hint=_HINT
        )
