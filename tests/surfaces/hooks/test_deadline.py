"""Work that ends in time, whatever it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from notewell.surfaces.hooks.deadline import detached, end_after, within

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
    assert within(20.0, lambda: large) == large
    assert within(20.0, lambda: b"") == b""


@forks
def test_what_hangs_is_killed() -> None:
    begun = time.monotonic()
    assert within(0.2, spin) is None
    assert time.monotonic() - begun < 10
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no child is left


@forks
def test_what_dies_or_fails_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert within(20.0, die) is None
    assert within(20.0, fail) is None
    assert capfd.readouterr().out == ""


def test_a_thread_does_it_where_nothing_can_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    assert within(20.0, lambda: b"done") == b"done"
    assert within(0.01, wait) is None


@forks
def test_a_process_ends_itself() -> None:
    child = os.fork()
    if not child:
        end_after(0.05)
        spin()
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGALRM


def test_what_is_detached_outlives_its_parent(tmp_path: Path) -> None:
    place = tmp_path / "done"
    late = f"import pathlib, sys; sys.stdin.read(); pathlib.Path({str(place)!r}).write_text('yes')"
    start = f"from {detached.__module__} import detached; detached([{sys.executable!r}, '-c', {late!r}])"
    subprocess.run([sys.executable, "-W", "error", "-c", start], check=True, timeout=60)
    until = time.monotonic() + 30
    while not (place.exists() and place.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    assert place.read_text() == "yes"
