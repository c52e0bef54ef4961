"""Readers, indexers, a watcher and a switch of models on one index at once, each in a process of
its own.

`python -m tests.faults.crowd FOLDER SECONDS` prints one JSON object: what each was told, and every
broken promise.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from notewell import Memory
from notewell.errors import NotewellError
from notewell.store.sqlite.checksum_vfs import checking_vfs
from tests.faults.early import seal_early
from tests.faults.lives import Say, asked, faults, forked, lines, make_notes

READERS, INDEXERS = 8, 2
FACT = "The codeword of the harbour master is zanzibar.\n"
EXPECTED = {
    "indexing",
    "sync_cut",
    "scan_cut",
    "not_embedded",
    "embedding",
    "model_switching",
    "model_switched",
}


def beacon(root: Path, number: int) -> None:
    """The note that says how late it is; whoever reads it sees all of it."""
    place = root / "memory/beacon.md"
    fresh = place.with_suffix(".new")
    fresh.write_text(f"The lighthouse beacon stands at number {number} now.\n")
    os.replace(fresh, place)


def reader(root: Path, until: float, seed: int) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        chance = random.Random(seed)
        told: Counter[str] = Counter()
        latest = -1
        with Memory.open(root, embed__model="hashed") as memory:
            while time.time() < until:
                found = memory.search("where does the lighthouse beacon stand", min_score=0.0)
                said = re.findall(r"number (\d+) now", " ".join(h.chunk.text for h in found.hits))
                number = max(map(int, said), default=-1)
                if number < latest:
                    say(f"! after {latest} it was {number} again")
                latest = max(latest, number)
                told.update(n.code for n in found.notices)
                told["searches"] += 1
                sure = memory.search("codeword of the harbour master", sync=chance.random() < 0.5)
                if not sure.hits or "zanzibar" not in sure.hits[0].chunk.text:
                    say(
                        f"! a wrong answer: {[h.chunk.path for h in sure.hits]} "
                        f"{[n.code for n in sure.notices]}"
                    )
                words = " ".join(f"word{chance.randrange(300)}" for _ in range(3))
                if not memory.search(words, min_score=0.0, sync=False).hits:
                    say(f"! nothing for {words}")
        say(json.dumps(told | {"latest": latest}))

    return work


def indexer(root: Path, until: float, seed: int) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        chance = random.Random(seed)
        runs = 0
        with Memory.open(root, embed__model="hashed") as memory:
            while time.time() < until:
                place = root / f"memory/busy-{seed}-{chance.randrange(5)}.md"
                place.write_text(
                    f"# Busy\n\nSomething new at {time.time()} with word{chance.randrange(300)}.\n"
                )
                memory.sync(force=chance.random() < 0.1)
                runs += 1
        say(json.dumps({"runs": runs}))

    return work


def watcher(root: Path, until: float) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        reports: list[Any] = []
        with (
            Memory.open(root, embed__model="hashed") as memory,
            memory.watch(reports.append, poll_s=0.1),
        ):
            while time.time() < until:
                time.sleep(0.05)
        say(json.dumps({"reports": len(reports)}))

    return work


def switcher(root: Path, until: float) -> Callable[[Say], None]:
    def work(say: Say) -> None:
        switches = 0
        while time.time() < until:
            with Memory.open(
                root, embed__model=("hashed@512", "hashed@256")[switches % 2]
            ) as memory:
                memory.sync()
                memory.prune()
            switches += 1
        say(json.dumps({"switches": switches}))

    return work


def main(folder: Path, seconds: float) -> dict[str, Any]:
    """All of them for so many seconds, while the beacon counts."""
    root = folder / "workspace"
    root.mkdir(parents=True)
    checking_vfs()
    seal_early()

    def prepare() -> list[str]:
        make_notes(root)
        (root / "memory/harbour.md").write_text(FACT)
        beacon(root, 0)
        with Memory.open(root, embed__model="hashed") as memory:
            memory.sync()
        return []

    broken = asked(prepare)
    until = time.time() + seconds
    crowd = {f"reader {n}": reader(root, until, n) for n in range(READERS)}
    crowd |= {f"indexer {n}": indexer(root, until, 100 + n) for n in range(INDEXERS)}
    crowd |= {"watcher": watcher(root, until), "switcher": switcher(root, until)}
    running = {name: forked(work) for name, work in crowd.items()}
    number = 0
    while time.time() < until - 1.0:
        number += 1
        beacon(root, number)
        time.sleep(0.05)
    told: dict[str, Any] = {}
    for name, (child, out) in running.items():
        for line in lines(out):
            if line.startswith("! "):
                broken.append(f"{name}: {line}")
            else:
                told[name] = json.loads(line)
        _, status = os.waitpid(child, 0)
        if status:
            broken.append(f"{name} ended with {status}")

    def at_the_end() -> list[str]:
        try:
            with Memory.open(root, embed__model="hashed") as memory:
                memory.sync()
                text = (
                    memory.search("where does the lighthouse beacon stand", min_score=0.0)
                    .hits[0]
                    .chunk.text
                )
            late = [] if f"number {number} now" in text else [f"{text} is not {number}"]
            return [*late, *faults(root)]
        except NotewellError as error:
            return [str(error)]

    broken += asked(at_the_end)
    return {"seconds": seconds, "beacon": number, "told": told, "broken": broken}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), float(sys.argv[2]))))  # noqa: T201
