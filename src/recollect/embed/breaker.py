"""A model that may hang: every call has a deadline, and one that failed is left alone for a while.

The call runs on a daemon thread that is abandoned when it is late, so neither a search nor the end of the process
waits for it. After a pause one call is let through as a probe; nobody waits long for that one either.
"""

from __future__ import annotations

import atexit
import inspect
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from typing import Any

from recollect.errors import EmbedderError, QuotaError, RejectedError
from recollect.ports import Embedder, Role, Vectors

PAUSE_S, MOST_PAUSE_S = 5.0, 300.0
QUOTA_PAUSE_S, MOST_QUOTA_PAUSE_S = 900.0, 7200.0  # money does not come back within seconds
PROBE_WAIT_S = 0.25
_LAST_WORDS_S = 2.0
_PLAN = "look at your plan there and run recollect index when it is settled, or set another embed.model"
_HINT = "recollect doctor --deep asks each model and says what to do"


def _settle_down() -> None:
    """At the end of a program, calls that were given up get a moment: native code must not outlive the interpreter."""
    until = time.monotonic() + _LAST_WORDS_S
    for thread in threading.enumerate():
        if thread.name.startswith("embed "):
            thread.join(max(0.0, until - time.monotonic()))


atexit.register(_settle_down)


class Breaker:
    """Closed while calls succeed; open for a pause after one failed, twice as long each time; then one probe."""

    def __init__(
        self,
        *,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
        before: tuple[int, float] = (0, 0.0),
        told: Callable[[int, float], None] | None = None,
    ) -> None:
        """`before` is what another process learnt (failures, seconds of rest left); `told` hears of every change."""
        self.clock = clock
        self.error: EmbedderError | None = None
        self._pause_s = pause_s
        self._told = told
        self._failures, left_s = before
        self._inherited = bool(self._failures)
        self._until = clock() + min(MOST_QUOTA_PAUSE_S, max(0.0, left_s))
        self._probing: float | None = None
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float:
        """Seconds until the next probe; 0 when calls go through."""
        return max(0.0, self._until - self.clock()) if self._failures else 0.0

    def enter(self, limit_s: float) -> str:
        """`go`, `probe` or `stop`; a probe that has not come back within `limit_s` is one more failure."""
        with self._lock:
            if not self._failures:
                return "go"
            now = self.clock()
            if self._probing is not None and now - self._probing > limit_s:
                self._fail(self.error)
            if now < self._until or self._probing is not None:
                return "stop"
            if self._inherited:
                self._inherited = False
                return "go"  # a process that ends at once has to wait for its probe
            self._probing = now
            return "probe"

    def succeed(self) -> None:
        """Lets calls through again."""
        with self._lock:
            changed = self._failures > 0
            self._failures, self._probing, self.error = 0, None, None
            if changed and self._told:
                self._told(0, 0.0)

    def fail(self, error: EmbedderError) -> None:
        """Stops calls for a while."""
        with self._lock:
            self._fail(error)

    def _fail(self, error: EmbedderError | None) -> None:
        self._failures += 1
        self._probing = None
        self.error = error
        spent = isinstance(error, QuotaError)
        first_s, most_s = (QUOTA_PAUSE_S, MOST_QUOTA_PAUSE_S) if spent else (self._pause_s, MOST_PAUSE_S)
        rest_s = min(most_s, first_s * 2 ** min(self._failures - 1, 10))
        self._until = self.clock() + rest_s
        self._inherited = False
        if self._told:
            self._told(self._failures, rest_s)


class Guarded:
    """An embedder whose calls end by a deadline and stop for a while after a failure; any failure is EmbedderError."""

    def __init__(self, inner: Embedder, *, deadline_s: float = 3.0, breaker: Breaker | None = None) -> None:
        self.inner = inner
        self.deadline_s = deadline_s
        self.breaker = breaker or Breaker()
        self._open: set[Future[Vectors]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._patient = "deadline_s" in inspect.signature(inner.embed).parameters

    @property
    def id(self) -> str:
        """The model's own id."""
        return self.inner.id

    @property
    def dim(self) -> int:
        """The dimensions the model says it has."""
        return self.inner.dim

    @property
    def usd_per_million(self) -> float | None:
        """What a million tokens cost, in US dollars, where the model has a price."""
        price: float | None = getattr(self.inner, "usd_per_million", None)
        return price

    def embed(
        self, texts: Sequence[str], role: Role, *, deadline_s: float | None = None, anyway: bool = False
    ) -> Vectors:
        """Rows by the deadline or EmbedderError; `anyway` asks even a model that failed a moment ago."""
        limit_s = self.deadline_s if deadline_s is None else deadline_s
        gate = "go" if anyway else self.breaker.enter(limit_s)
        if gate == "stop":
            raise self._resting()
        call = _Call(self, texts, role, limit_s)
        with self._lock:
            if self._closed:
                raise EmbedderError("the memory is closed", hint="open it again")
            self._open.add(call.future)
        thread = threading.Thread(target=call.run, name=f"embed {self.id}", daemon=True)
        thread.start()
        try:
            return call.future.result(timeout=limit_s if gate == "go" else min(limit_s, PROBE_WAIT_S))
        except LateError:
            if gate == "probe":
                raise self._resting() from None  # it goes on, and closes the breaker for the next question
            shown = round(limit_s, 1 if limit_s >= 0.5 else 2)  # a hundredth went by before it was asked
            error = EmbedderError(f"{self.id} did not answer within {shown:g} s", hint=_HINT)
            call.given_up = True
            self.breaker.fail(error)
            raise error from None
        except KeyboardInterrupt:
            thread.join(_LAST_WORDS_S)  # native code of a local model should not be at work when the process ends
            raise
        finally:
            with self._lock:
                self._open.discard(call.future)

    def _resting(self) -> EmbedderError:
        last, left_s = self.breaker.error, self.breaker.left_s
        if last is None and left_s > MOST_PAUSE_S:  # what another process learnt; nothing else rests so long
            last = QuotaError(f"the quota of {self.id} was used up", hint=_PLAN)
        reason = f"{last}; " if last is not None else f"{self.id} did not answer a moment ago; "
        when = f"{left_s:.0f} s" if left_s < 120 else f"{left_s / 60:.0f} min"
        kind = QuotaError if isinstance(last, QuotaError) else EmbedderError
        return kind(f"{reason}it is asked again in {when}", hint=last.hint if last is not None else _HINT)

    def ask(self, texts: Sequence[str], role: Role, deadline_s: float) -> Vectors:
        """The bare call; a model that knows of deadlines gives up by itself."""
        inner: Any = self.inner
        more = {"deadline_s": deadline_s} if self._patient else {}
        return _sound(inner.embed(texts, role, **more), len(texts), self.id)

    def within(self, deadline_s: float, *, per: int = 0, anyway: bool = False) -> Limited:
        """The same model with another deadline, which grows with the batch where it is meant for `per` texts."""
        return Limited(self, deadline_s, per, anyway=anyway)

    def close(self) -> None:
        """Ends every wait at once; what still runs is abandoned."""
        with self._lock:
            self._closed = True
            waiting = list(self._open)
        for future in waiting:
            with suppress(InvalidStateError):
                future.set_exception(EmbedderError("the memory is closed", hint="open it again"))
        for name in ("cancel", "close"):
            end = getattr(self.inner, name, None)
            if callable(end):
                end()
                break


class Limited:
    """A guarded model with a deadline of its own, as a plain embedder."""

    def __init__(self, guarded: Guarded, deadline_s: float, per: int, *, anyway: bool) -> None:
        self.guarded = guarded
        self.id = guarded.id
        self.dim = guarded.dim
        self.usd_per_million = guarded.usd_per_million
        self._deadline_s = deadline_s
        self._per = per
        self._anyway = anyway

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Rows by the deadline or EmbedderError."""
        grown = max(1.0, len(texts) / self._per) if self._per else 1.0
        return self.guarded.embed(texts, role, deadline_s=self._deadline_s * grown, anyway=self._anyway)


class _Call:
    """One call on a thread of its own, and what it means for the breaker."""

    def __init__(self, guarded: Guarded, texts: Sequence[str], role: Role, limit_s: float) -> None:
        self.future: Future[Vectors] = Future()
        self.given_up = False
        self._guarded, self._texts, self._role, self._limit_s = guarded, texts, role, limit_s

    def run(self) -> None:
        breaker = self._guarded.breaker
        begun = breaker.clock()
        try:
            rows = self._guarded.ask(self._texts, self._role, self._limit_s)
        except RejectedError as error:
            breaker.succeed()
            self._settle(error)
        except EmbedderError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - anybody's model may fail in any way, and keywords still answer
            self._failed(EmbedderError(f"{self._guarded.id} failed: {str(error) or type(error).__name__}", hint=_HINT))
        else:
            if breaker.clock() - begun <= self._limit_s:
                breaker.succeed()
            elif not self.given_up:
                breaker.fail(EmbedderError(f"{self._guarded.id} took over {self._limit_s:g} s", hint=_HINT))
            with suppress(InvalidStateError):
                self.future.set_result(rows)

    def _failed(self, error: EmbedderError) -> None:
        if not self.given_up:
            self._guarded.breaker.fail(error)
        self._settle(error)

    def _settle(self, error: EmbedderError) -> None:
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def _sound(rows: Vectors, count: int, name: str) -> Vectors:
    """Rows as they must be: one for each text, all of them numbers."""
    import numpy as np  # noqa: PLC0415

    rows = np.asarray(rows, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise EmbedderError(f"{name} gave rows of the shape {rows.shape} for {count} texts", hint=_HINT)
    if not np.isfinite(rows).all():
        raise EmbedderError(f"{name} gave a vector with a value that is no number", hint=_HINT)
    return rows
