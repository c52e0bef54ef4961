"""A switch of models, killed in the middle any number of times, while searches go on: none fails,
none is empty.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notewell import Memory
from notewell.types import Found

OLD, NEW = "hashed@256", "hashed@512"
COMMAND = [sys.executable, "-m", "notewell.surfaces.cli.main"]
UNTIL = """
import sys
from notewell import Memory

def told(what, done, total):
    if what == "vectors" and done >= int(sys.argv[3]):
        print(done, flush=True)
        sys.stdin.read()  # in the middle of its work, until it is killed

with Memory.open(sys.argv[1], embed__model=sys.argv[2]) as memory:
    memory.sync(progress=told)
"""


def make_notes(root: Path, chunks: int) -> None:
    """So many passages, ten a note."""
    chance = random.Random(11)
    words = [f"word{n}" for n in range(900)]
    folder = root / "memory"
    folder.mkdir(parents=True)
    for n in range(chunks // 10):
        parts = [
            f"## Topic {n}-{k}\n\n{' '.join(chance.choices(words, k=40))}.\n\n" for k in range(10)
        ]
        (folder / f"note-{n}.md").write_text("".join(parts))


def start(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "index", "--model", NEW, "--json", "-w", str(root)], stdout=subprocess.PIPE
    )


def killed_after(root: Path, passages: int) -> None:
    """A switch that is killed when it says that it made so many vectors: SIGKILL, no last word."""
    command = [sys.executable, "-c", UNTIL, str(root), NEW, str(passages)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert int(process.stdout.readline()) >= passages
        finally:
            process.kill()


def vectors(memory: Memory, model: str) -> int:
    return memory.store.vectors.coverage(model)[0]


class Watcher(threading.Thread):
    """Searches all the time until it is told to stop, and keeps what it was told."""

    def __init__(self, memory: Memory, seed: int) -> None:
        super().__init__()
        self.memory, self.chance, self.stop = memory, random.Random(seed), threading.Event()
        self.found: list[Found] = []
        self.errors: list[BaseException] = []

    def run(self) -> None:
        while not self.stop.is_set():
            words = " ".join(f"word{self.chance.randrange(900)}" for _ in range(3))
            try:
                self.found.append(self.memory.search(words, min_score=0.0))
            except BaseException as error:  # noqa: BLE001 - none may fail, whatever it is
                self.errors.append(error)


@contextmanager
def searching(root: Path, threads: int = 2) -> Iterator[tuple[Memory, list[Watcher]]]:
    """A process of its own would be another Memory on the same file, which is what this is."""
    with Memory.open(root, embed__model=NEW) as memory:
        watchers = [Watcher(memory, seed) for seed in range(threads)]
        for watcher in watchers:
            watcher.start()
        try:
            yield memory, watchers
        finally:
            for watcher in watchers:
                watcher.stop.set()
            for watcher in watchers:
                watcher.join(60)


def other_process(root: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*COMMAND, "search", "word1 word2 word3", "--model", NEW, "--json", "-w", str(root)],
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def switch(root: Path, chunks: int, *, kills: int) -> None:
    make_notes(root, chunks)
    with Memory.open(root, embed__model="hashed") as memory:
        assert memory.sync().embedded == chunks
    killed_at: list[int] = []
    with searching(root) as (memory, watchers):
        for n in range(kills):
            wanted = chunks * (n + 1) // (kills + 2)
            killed_after(root, wanted - (killed_at[-1] if killed_at else 0))
            killed_at.append(vectors(memory, NEW))
            assert killed_at[-1] < chunks, "killed in the middle"
            assert other_process(root)["embedder"] == OLD
        last = start(root)
        out, _ = last.communicate(timeout=120)
        assert last.returncode == 0
        report = json.loads(out)
        # Threads that search at once share what one of them learned a moment ago.
        until = time.monotonic() + 60
        while any(w.found[-1].embedder != NEW for w in watchers) and time.monotonic() < until:
            watchers[0].stop.wait(0.05)
    assert report["embedded"] == chunks - killed_at[-1], "it went on where it was killed"
    assert (report["pending"], [n["code"] for n in report["notices"]]) == (0, ["model_switched"])
    assert other_process(root)["embedder"] == NEW
    for watcher in watchers:
        assert watcher.errors == []
        assert all(f.hits for f in watcher.found), "none is empty"
        assert {f.mode for f in watcher.found} == {"hybrid"}, "meaning took part all the time"
        models = [f.embedder for f in watcher.found]
        flips = sum(a != b for a, b in itertools.pairwise(models))
        assert (models[0], models[-1], flips) == (OLD, NEW, 1), (
            "one moment divides the old from the new"
        )
    with Memory.open(root, embed__model=NEW) as memory:
        assert vectors(memory, OLD) == chunks, "the old ones are kept"


def test_a_switch_that_is_killed(tmp_path: Path) -> None:
    switch(tmp_path, 500, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_switch_of_5000_passages_that_is_killed_five_times(tmp_path: Path) -> None:
    switch(tmp_path, 5000, kills=5)
