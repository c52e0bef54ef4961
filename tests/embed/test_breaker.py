"""A call ends by its deadline, and a model that failed is left alone until a probe comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from notewell.embed import breaker as breaker_module
from notewell.embed.breaker import MOST_PAUSE_S, MOST_QUOTA_PAUSE_S, QUOTA_PAUSE_S, Breaker, Guarded
from notewell.embed.embedder import PassageVectors
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import EmbedderError, QuotaError, RejectedError
from notewell.types import Role, Vectors
from tests.embed.models import Flapping, Hanging, Named, Refusing, Windowed


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_at_the_end_who_works_is_waited_for_by_processor_time_and_who_hangs_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used_s = [0.0]
    go = threading.Event()
    joined: list[float | None] = []

    class Call(threading.Thread):
        """A call on a machine that gives it a sixteenth of a processor."""

        def join(self, timeout: float | None = None) -> None:
            joined.append(timeout)
            used_s[0] += share * (timeout or 0.0)

    monkeypatch.setattr(time, "process_time", lambda: used_s[0])
    call = Call(target=go.wait, name="embed busy")
    call.start()
    try:
        monkeypatch.setattr(threading, "enumerate", lambda: [threading.main_thread(), call])
        share = 0.0625
        breaker_module._wait_at_exit()
        assert joined == [2.0] * 16, "two seconds of it"
        share = 0.0
        breaker_module._wait_at_exit()
        assert len(joined) == 17
    finally:
        go.set()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of a sound model is waited for, however busy the machine is."""
    monkeypatch.setattr("notewell.embed.breaker.PROBE_WAIT_S", 60.0)


def guarded(model: Named, clock: Clock, *, deadline_s: float = 0.05) -> Guarded:
    return Guarded(model, deadline_s=deadline_s, breaker=Breaker(pause_s=5.0, clock=clock))


def until(true: Callable[[], bool]) -> None:
    """Waits for another thread, which has no reason to take long."""
    event = threading.Event()
    for _ in range(12_000):
        if true():
            return
        event.wait(0.005)
    raise AssertionError("it never came about")


def test_a_sound_model_gives_its_rows(clock: Clock) -> None:
    model = Named()
    found = guarded(model, clock, deadline_s=30).embed(["a", "b"], "document")
    assert np.array_equal(found, HashedEmbedder(64).embed(["a", "b"], "document"))


def test_a_dead_model_is_asked_once_and_then_left_alone_for_a_pause(clock: Clock) -> None:
    model = Flapping(dead=True)
    one = guarded(model, clock, deadline_s=30)
    with pytest.raises(EmbedderError, match="connection refused") as caught:
        one.embed(["x"], "query")
    assert caught.value.hint == "start the server"
    for _ in range(5):
        with pytest.raises(
            EmbedderError, match=r"connection refused; it is asked again in 5 s"
        ) as caught:
            one.embed(["x"], "query")
        assert caught.value.hint == "start the server"
    assert len(model.calls) == 1


def test_after_the_pause_a_probe_that_succeeds_lets_calls_through(clock: Clock) -> None:
    model = Flapping(dead=True)
    one = guarded(model, clock, deadline_s=30)
    with pytest.raises(EmbedderError):
        one.embed(["x"], "query")
    model.dead = False
    clock.now += 5.1
    assert one.embed(["x"], "query").shape == (1, 64)
    assert one.embed(["x"], "query").shape == (1, 64)
    assert (one.breaker.left_s, one.breaker.error) == (0.0, None)


def test_each_failed_probe_doubles_the_pause_up_to_a_limit(clock: Clock) -> None:
    one = guarded(Flapping(dead=True), clock, deadline_s=30)
    pauses = []
    for _ in range(10):
        with pytest.raises(EmbedderError):
            one.embed(["x"], "query")
        pauses.append(one.breaker.left_s)
        clock.now += one.breaker.left_s + 0.1
    assert pauses[:4] == [5.0, 10.0, 20.0, 40.0]
    assert pauses[-1] == MOST_PAUSE_S


def test_a_hanging_model_costs_its_deadline_once(clock: Clock) -> None:
    model = Hanging()
    one = guarded(model, clock)
    try:
        with pytest.raises(EmbedderError, match=r"hanging did not answer within 0\.05 s"):
            one.embed(["x"], "query")
        one.deadline_s = 30.0
        with pytest.raises(EmbedderError, match="asked again"):
            one.embed(["x"], "query")
        assert len(model.calls) == 1
    finally:
        model.go.set()


def test_a_probe_that_is_slow_is_not_waited_for_but_closes_the_breaker_when_it_comes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Hanging()
    one = guarded(model, clock)
    with pytest.raises(EmbedderError):
        one.embed(["x"], "query")
    clock.now += 5.1
    one.deadline_s = 30.0
    monkeypatch.setattr("notewell.embed.breaker.PROBE_WAIT_S", 0.05)
    with pytest.raises(EmbedderError, match="asked again"):
        one.embed(["x"], "query")  # the probe
    with pytest.raises(EmbedderError, match="asked again"):
        one.embed(["x"], "query")
    until(lambda: len(model.calls) > 1)
    assert len(model.calls) == 2, "one probe at a time"
    model.go.set()
    until(lambda: one.breaker.error is None)
    assert one.embed(["x"], "query").shape == (1, 64)


def test_a_probe_that_never_comes_back_is_one_more_failure(clock: Clock) -> None:
    model = Hanging()
    one = guarded(model, clock, deadline_s=0.02)
    try:
        with pytest.raises(EmbedderError):
            one.embed(["x"], "query")
        clock.now += 5.1
        with pytest.raises(EmbedderError):
            one.embed(["x"], "query")
        clock.now += 1.0
        with pytest.raises(EmbedderError):
            one.embed(["x"], "query")
        assert one.breaker.left_s == pytest.approx(10.0)
    finally:
        model.go.set()


def test_a_model_that_answers_after_it_was_given_up_does_not_count_as_well(clock: Clock) -> None:
    model = Hanging()
    one = guarded(model, clock)
    with pytest.raises(EmbedderError):
        one.embed(["x"], "query")
    clock.now += 1.0
    model.go.set()
    until(lambda: not any(t.name == "embed hanging" for t in threading.enumerate()))
    assert one.breaker.left_s == pytest.approx(4.0), (
        "too late is no answer, and no second failure either"
    )


def test_asked_anyway_a_resting_model_is_asked(clock: Clock) -> None:
    model = Flapping(dead=True)
    one = guarded(model, clock, deadline_s=30)
    with pytest.raises(EmbedderError):
        one.embed(["x"], "query")
    model.dead = False
    assert one.within(30, anyway=True).embed(["x"], "document").shape == (1, 64)
    assert one.embed(["x"], "query").shape == (1, 64)


def test_a_refused_text_is_no_failure_of_the_model(clock: Clock) -> None:
    one = guarded(Refusing("bad"), clock, deadline_s=30)
    with pytest.raises(RejectedError):
        one.embed(["bad", "good"], "document")
    assert one.embed(["good"], "query").shape == (1, 64)


class Wrong(HashedEmbedder):
    def __init__(self, rows: Vectors | Exception) -> None:
        super().__init__(4)
        self.rows = rows

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if isinstance(self.rows, Exception):
            raise self.rows
        return self.rows


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.ones((3, 4), dtype=np.float32), "for 2 texts"),
        (np.ones(4, dtype=np.float32), "for 2 texts"),
        (np.ones((2, 0), dtype=np.float32), "for 2 texts"),
        (np.full((2, 4), np.nan, dtype=np.float32), "not a number"),
        (RuntimeError("out of memory"), "out of memory"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_whatever_a_model_does_wrong_is_one_kind_of_error(
    rows: Vectors | Exception, words: str
) -> None:
    with pytest.raises(EmbedderError, match=words) as caught:
        Guarded(Wrong(rows), deadline_s=30).embed(["a", "b"], "document")
    assert caught.value.hint


def test_a_deadline_meant_for_a_few_texts_grows_with_the_batch() -> None:
    seen: list[float] = []

    class Patient(HashedEmbedder):
        def embed(self, texts: Sequence[str], role: Role, *, deadline_s: float = 0.0) -> Vectors:
            seen.append(deadline_s)
            return super().embed(texts, role)

    limited = Guarded(Patient()).within(10.0, per=8)
    for count in (1, 8, 64):
        limited.embed(["x"] * count, "document")
    assert seen == [10.0, 10.0, 80.0], "and a model that knows of deadlines is told"


def test_close_ends_every_wait_and_refuses_new_calls() -> None:
    model = Hanging()
    one = Guarded(model, deadline_s=30)
    errors: list[str] = []

    def ask() -> None:
        try:
            one.embed(["x"], "query")
        except EmbedderError as error:
            errors.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: bool(model.calls))
    one.close()
    thread.join(60)
    with pytest.raises(EmbedderError, match="closed"):
        one.embed(["x"], "query")
    assert errors == ["the memory is closed"]
    model.go.set()


def test_what_another_process_learnt_holds_and_the_first_probe_is_waited_for(clock: Clock) -> None:
    changes: list[tuple[int, float]] = []
    model = Flapping()
    breaker = Breaker(clock=clock, before=(2, 7.0), changed=lambda n, s: changes.append((n, s)))
    one = Guarded(model, deadline_s=30, breaker=breaker)
    with pytest.raises(
        EmbedderError, match="flapping did not answer a moment ago; it is asked again in 7 s"
    ):
        one.embed(["x"], "query")
    assert (model.calls, changes) == ([], [])
    clock.now += 7.1
    model.dead = True
    with pytest.raises(EmbedderError, match="connection refused"):
        one.embed(["x"], "query")
    assert changes == [(3, 20.0)]
    clock.now += 20.1
    model.dead = False
    one.embed(["x"], "query")
    assert changes[-1] == (0, 0.0)


class Spent(Named):
    """A model whose quota is used up."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.calls.append((role, len(texts)))
        raise QuotaError("the quota is used up", hint="look at your plan")


def test_a_used_up_quota_is_not_asked_for_again_for_a_long_while(clock: Clock) -> None:
    model = Spent()
    one = guarded(model, clock, deadline_s=30)
    with pytest.raises(QuotaError, match="used up"):
        one.embed(["x"], "query")
    clock.now += QUOTA_PAUSE_S - 60
    with pytest.raises(QuotaError, match="used up; it is asked again in 60 s") as caught:
        one.embed(["x"], "query")
    assert caught.value.hint == "look at your plan"
    assert len(model.calls) == 1
    for _ in range(12):
        clock.now += MOST_QUOTA_PAUSE_S + 1
        with pytest.raises(QuotaError):
            one.embed(["x"], "query")
    assert one.breaker.left_s == pytest.approx(MOST_QUOTA_PAUSE_S)


def test_another_process_hears_that_a_quota_is_used_up(clock: Clock) -> None:
    changes: list[tuple[int, float]] = []
    first = Guarded(
        Spent(), breaker=Breaker(clock=clock, changed=lambda *change: changes.append(change))
    )
    with pytest.raises(QuotaError):
        first.embed(["x"], "query")
    assert changes == [(1, QUOTA_PAUSE_S)]
    model = Spent()
    second = Guarded(model, breaker=Breaker(clock=clock, before=changes[0]))
    with pytest.raises(
        QuotaError, match=r"the quota of \S+ was used up; it is asked again in 15 min"
    ) as caught:
        second.embed(["x"], "query")
    assert "plan" in caught.value.hint
    assert model.calls == []


def test_windows_come_by_the_same_deadline_and_breaker(clock: Clock) -> None:
    model = Windowed()
    one = guarded(model, clock, deadline_s=30)
    assert (one.window_dims, one.within(5).window_dims, guarded(Named(), clock).window_dims) == (
        64,
        64,
        0,
    )
    (found,) = one.embed_passages(["a first line\nand a second"])
    assert found.spans == [(0, 12), (13, 25)]
    go = threading.Event()

    class Slow(Windowed):
        def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
            go.wait()
            return super().embed_passages(texts)

    slow = guarded(Slow(), clock)
    with pytest.raises(EmbedderError, match="did not answer within"):
        slow.embed_passages(["x"])
    with pytest.raises(EmbedderError, match="asked again"):
        slow.embed_passages(["x"])
    go.set()


@pytest.mark.parametrize(
    ("windows", "spans", "fault"),
    [
        (np.ones((2, 64)), [(0, 1)], "shape"),
        (np.ones((1, 63)), [(0, 1)], "shape"),
        (np.ones(64), [(0, 1)] * 64, "shape"),
        (np.full((1, 64), np.nan), [(0, 1)], "not a number"),
    ],
)
def test_windows_that_make_no_sense_are_a_failure(
    clock: Clock, windows: Vectors, spans: list[tuple[int, int]], fault: str
) -> None:
    class Broken(Windowed):
        def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
            return [
                PassageVectors(one.whole, windows, spans) for one in super().embed_passages(texts)
            ]

    with pytest.raises(EmbedderError, match=fault):
        guarded(Broken(), clock, deadline_s=30).embed_passages(["x"])
