"""Work that ends in time, whatever it does."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from notewell.surfaces.hooks.deadline import Sent, end_after, within

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def spin() -> bytes:
    while True:
        pass


def wait() -> bytes:
    time.sleep(5)
    return b""


def die() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def fail() -> bytes:
    raise RuntimeError


def test_what_is_done_in_time_comes_back() -> None:
    large = b"x" * 1_000_000
    assert within(60.0, lambda: large) == large
    assert within(60.0, lambda: b"") == b""


@forks
def test_what_hangs_is_killed() -> None:
    assert within(0.2, spin) is None
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no child is left


@forks
def test_what_dies_or_fails_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert within(60.0, die) is None
    assert within(60.0, fail) is None
    assert capfd.readouterr().out == ""


def test_a_thread_does_it_where_nothing_can_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    assert within(60.0, lambda: b"done") == b"done"
    assert within(0.01, wait) is None


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe where a host writes; ours is stdin."""
    ours, theirs = os.pipe()
    with open(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield theirs


def test_what_a_host_sends_is_there_when_it_has_ended(host: int) -> None:
    sent = Sent()
    os.write(host, b"one ")
    assert sent.within(0.0) is None
    os.write(host, b"two")
    os.close(host)
    assert sent.within(60.0) == b"one two"


def test_the_time_for_stdin_runs_from_its_start_and_not_from_each_wait(
    host: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    sent = Sent()
    waited: list[float] = []
    monkeypatch.setattr(sent._reader, "join", waited.append)
    assert sent.within(3.0) is None
    now = 102.0
    assert sent.within(3.0) is None
    now = 103.5
    assert sent.within(3.0) is None
    assert sent.spent_s() == 3.5
    assert waited == [3.0, 1.0, 0.0]
    os.close(host)


def test_without_stdin_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert Sent().within(60.0) == b""


@forks
def test_a_process_ends_itself() -> None:
    child = os.fork()
    if not child:
        end_after(0.05)
        spin()
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGALRM
