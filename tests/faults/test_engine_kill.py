"""An engine that is killed at any moment, among many callers: no wrong answer, no orphan, no stale
lock.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from notewell.store.lock import locked
from notewell.surfaces.engine.attach import NoAnswerError, ask
from tests.surfaces.engine.conftest import Desk, desk, until  # noqa: F401 - a fixture

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets with a path")
CLIENTS = 20
STREAMS: dict[str, Any] = {
    "terminals": [False, False, False],
    "encodings": [["utf-8", "strict"]] * 2,
    "plain": True,
}
# Not wrong: an engine of a busy machine may still be reading the notes when it is asked, and says
# so.
INDEXING = b"note: this process is indexing; this answer may miss its latest notes\n"
QUESTIONS = ("staging port", "deploy", "walrus", "when do we deploy", "port of staging")


def lives(desk: Desk, *, rounds: int, seed: int) -> Counter[str]:  # noqa: F811
    """Kills engine after engine while clients ask; returns how often they were answered, and how
    often left alone.
    """
    chance = random.Random(seed)
    (desk.root / "memory/walrus.md").write_text("The walrus was seen at noon.\n")
    right = {q: desk.alone("search", q).stdout for q in QUESTIONS}
    counts: Counter[str] = Counter()
    wrong: list[tuple[str, bytes]] = []
    over = threading.Event()

    def client(number: int) -> None:
        own = random.Random(seed * 1000 + number)
        while not over.is_set():
            question = own.choice(QUESTIONS)
            try:
                found = ask(desk.place, "search", line=["search", question], **STREAMS)
            except NoAnswerError as error:
                counts["hung" if error.hung else "alone"] += 1  # and answers itself
                time.sleep(0.02)
                continue
            counts["answered"] += 1
            if found.out != right[question] or found.err not in (b"", INDEXING):
                wrong.append((question, found.out + found.err))

    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        for number in range(rounds):
            engine = desk.spawn("engine", "run")
            until(
                lambda: os.path.exists(desk.place.address) or engine.poll() is not None,  # noqa: B023
                "it listens",
            )
            if number % 2:
                desk.wait_ready()
            time.sleep(chance.random())  # the moment is the point, so chance chooses it
            engine.send_signal(signal.SIGKILL)
            assert engine.wait(timeout=30) == -signal.SIGKILL
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert wrong == []
    # and whole commands, beside one that comes and one that was killed
    for question, expected in right.items():
        assert desk.run("search", question).stdout == expected
    desk.wait_ready()
    assert desk.run("search", "walrus").stdout == right["walrus"]
    desk.run("engine", "stop")
    until(lambda: not os.path.exists(desk.place.address), "the last one has ended")
    with locked(Path(desk.place.lock), wait_s=30.0) as mine:
        assert mine, "nobody holds the lock"
        # One that was started beside another waits some seconds for its place, and then ends by
        # itself.
        until(lambda: not left_running(desk.root), "none is left running")
    return counts


def left_running(root: Path) -> list[str]:
    """Engines of a workspace that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
            if "engine" in words and (
                os.fspath(root) in words or os.readlink(entry.parent / "cwd") == os.fspath(root)
            ):
                found.append(" ".join(words))
        except OSError:
            continue
    return found


def test_a_few_engines_are_killed_among_many_callers(desk: Desk) -> None:  # noqa: F811
    counts = lives(desk, rounds=2, seed=1)
    assert counts["answered"]
    assert counts["alone"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_engines_are_killed_among_many_callers(desk: Desk) -> None:  # noqa: F811
    counts = lives(desk, rounds=200, seed=2)
    assert counts["answered"] > 200
