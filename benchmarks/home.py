"""`python benchmarks/home.py`: how fast a server answers what the page asks, over 10,000 notes
without vectors.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Figure, machine
from run import about, line, table
from serving import cpu, serving

import notes
from notewell.memory import Memory

NOTES = 10_000
HOME_MS = 200.0


def asking(port: int) -> Callable[[str], Any]:
    """A client that keeps its connection, as a browser does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(path: str) -> Any:
        connection.request("GET", path)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200, found
        return found

    return ask


def times(pid: int, ask: Callable[[int], Any], count: int) -> tuple[list[float], float]:
    """Milliseconds of each call, and the CPU time of one in the server."""
    took, spent = [], cpu(pid)
    for number in range(count):
        begun = time.perf_counter()
        ask(number)
        took.append((time.perf_counter() - begun) * 1000)
    return took, (cpu(pid) - spent) * 1000 / count


def figures(root: Path, port: int, pid: int) -> Iterator[Figure]:
    """What the page asks, each warm."""
    ask = asking(port)
    home = ask("/api/home")
    paths = [one["path"] for one in home["lately"]]

    def changed(number: int) -> Any:
        (root / "memory/bench-home.md").write_text(
            f"# Bench\n\nState {number}.\n", encoding="utf-8"
        )
        return ask("/api/home")

    for key, what, call, count, target in (
        ("home", "/api/home, nothing changed", lambda _: ask("/api/home"), 50, HOME_MS),
        ("home_changed", "/api/home after a note changed, with its indexing", changed, 10, None),
        ("days", "/api/days", lambda _: ask("/api/days"), 20, None),
        ("note", "/api/note", lambda n: ask(f"/api/note?path={paths[n % len(paths)]}"), 20, None),
        (
            "search",
            "/api/search",
            lambda n: ask(f"/api/search?query=harbour+lantern+{n}"),
            50,
            None,
        ),
        (
            "render",
            "/api/search, rendered",
            lambda n: ask(f"/api/search?query=orchard+kettle+{n}&render=1"),
            50,
            None,
        ),
    ):
        took, each = times(pid, call, count)
        how = f"{count} calls, wall; p95 {np.percentile(took, 95):.0f}; CPU {each:.0f} each"
        yield Figure(key, what, statistics.median(took), "ms", how, target)


def main(arguments: Sequence[str]) -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="make the workspace here, or use the one there"
    )
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="notewell-home-") as folder:
        base = asked.keep or Path(folder)
        root, home = base / "workspace", base / "home"
        home.mkdir(parents=True, exist_ok=True)
        if not root.exists():
            notes.write_workspace(root, asked.notes)
        (root / "notewell.toml").write_text('[embed]\nmodel = "none"\n', encoding="utf-8")
        with Memory.open(root, env={}) as memory:
            memory.sync()
            chunks = memory.store.counts()["chunks"]
        with serving(root, home) as (port, pid):
            made = list(figures(root, port, pid))
    print(f"{chunks:,} passages; {about(machine(), asked.notes)}\n")
    print(table([line(f) for f in made]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
