"""What people and agents wait for beside an engine: whole processes of `search`, `hook` and `mcp`,
and their memory.

The notes and their vectors are made up, as in `make bench`; questions are embedded by the packaged
model.

    .venv/bin/python benchmarks/engine.py --notes 10000
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from measure import Clustered, Figure, machine
from run import about, line, table
from serving import Client, environment, resident

import notes
from notewell.memory import Memory

NOTEWELL = [sys.executable, "-m", "notewell"]
WINDOWS = 9


class Bench:
    """A workspace with an engine, and commands beside it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        runtime = home / "run"
        runtime.mkdir(mode=0o700, exist_ok=True)
        self.beside = {
            **environment(home),
            "NOTEWELL_ENGINE_ENABLED": "1",
            "XDG_RUNTIME_DIR": str(runtime),
        }
        self.alone = environment(home)

    def run(self, *words: str, env: dict[str, str], sent: str = "") -> bytes:
        """One command; SystemExit if it fails."""
        command = [*NOTEWELL, *words]
        done = subprocess.run(
            command, cwd=self.root, env=env, input=sent.encode(), capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr.decode())
        return done.stdout

    def engines(self) -> list[dict[str, object]]:
        """The engines that run."""
        found: list[dict[str, object]] = json.loads(
            self.run("engine", "status", "--json", env=self.beside)
        )["engines"]
        return found

    def start(self) -> int:
        """Lets a search start an engine, and waits until it has loaded everything."""
        self.run("search", "anything", env=self.beside)
        while not (found := self.engines()) or not found[0].get("ready"):
            time.sleep(0.1)
        self.run("search", "anything", env=self.beside)
        time.sleep(5.0)  # it goes on to load what only some callers need
        return int(str(self.engines()[0]["pid"]))


def spent(call: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU milliseconds of a command."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    call()
    wall = time.perf_counter() - begun
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) * 1000


def timed(
    key: str, what: str, calls: Sequence[Callable[[], object]], target: float | None
) -> Iterator[Figure]:
    """The figures of some commands: half of them take longer than this, in wall and in CPU time of
    their process.
    """
    took = [spent(call) for call in calls]
    walls, cpus = [t[0] for t in took], [t[1] for t in took]
    how = f"{len(took)} processes, wall; best {min(walls):.0f}"
    yield Figure(key, f"{what}, p50", statistics.median(walls), "ms", how, target)
    yield Figure(
        f"{key}_cpu", "the same, CPU time of the process", statistics.median(cpus), "ms", "median"
    )


def searches(bench: Bench, questions: Sequence[str]) -> Iterator[Figure]:
    """Searches alone, beside the engine, and just after a note was saved."""

    def search(question: str, env: dict[str, str]) -> Callable[[], object]:
        return lambda: bench.run("search", question, env=env)

    def saved(number: int) -> Callable[[], object]:
        def call() -> None:
            (bench.root / f"memory/saved-{number}.md").write_text(
                f"The walrus {number} likes fish.\n", encoding="utf-8"
            )
            found = bench.run("search", f"walrus {number}", "--json", env=bench.beside).decode()
            if f"saved-{number}.md" not in found:
                raise SystemExit(
                    f"a note that was saved is not found: {json.loads(found)['notices']}"
                )

        return call

    third = len(questions) // 3
    yield from timed(
        "alone",
        "search in a process alone",
        [search(q, bench.alone) for q in questions[:third]],
        None,
    )
    asked = [search(q, bench.beside) for q in questions[third:]]
    yield from timed("search", "search beside an engine, whole process", asked, 120.0)
    changed = [saved(n) for n in range(10)]
    yield from timed("saved", "the same, with a note saved just before", changed, None)


def hooks(bench: Bench, questions: Sequence[str]) -> Iterator[Figure]:
    """The hook that an agent waits for at every prompt."""

    def prompt(number: int, question: str) -> Callable[[], object]:
        sent = json.dumps({"prompt": question, "session_id": f"s{number}", "cwd": str(bench.root)})
        return lambda: bench.run("hook", "prompt", env=bench.beside, sent=sent)

    asked = [prompt(n, q) for n, q in enumerate(questions)]
    yield from timed("hook", "prompt hook beside an engine, whole process", asked, 120.0)


def windows(bench: Bench, engine: int) -> Iterator[Figure]:
    """Agents' windows: what each takes, and all of them together."""
    firsts, clients = [], []
    for _ in range(WINDOWS):
        begun = time.perf_counter()
        clients.append(Client(bench.root, env=bench.beside))
        firsts.append((time.perf_counter() - begun) * 1000)
    for client in clients:
        client.search("which day is best for a release")
    sizes = [resident(client.process.pid) for client in clients]
    whole = sum(sizes) + resident(engine)
    for client in clients:
        client.close()
    how = f"{WINDOWS} processes, wall; best {min(firsts):.0f}"
    what = "first MCP answer beside an engine, from process start, p50"
    yield Figure("mcp", what, statistics.median(firsts), "ms", how, 150.0)
    yield Figure(
        "mcp_mb", "memory of such a window", max(sizes), "MB", f"largest of {WINDOWS}", 40.0
    )
    yield Figure("all_mb", f"memory of {WINDOWS} windows and the engine", whole, "MB", "resident")


def main(arguments: Sequence[str]) -> int:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=45)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="make the workspace here, or use the one there"
    )
    asked = parser.parse_args(arguments)
    host = machine()
    with tempfile.TemporaryDirectory(prefix="notewell-engine-") as folder:
        base = asked.keep or Path(folder)
        root, home = base / "workspace", base / "home"
        home.mkdir(parents=True, exist_ok=True)
        if not root.exists():
            notes.write_workspace(root, asked.notes)
            with Memory.open(root, env={}, embedder=Clustered()) as memory:
                memory.sync()
        questions = list(dict.fromkeys(notes.questions(notes.Prose(11), root, 2 * asked.rounds)))
        with Memory.open(root, env={}) as memory:
            chunks = memory.store.counts()["chunks"]
        bench = Bench(root, home)
        engine = bench.start()
        try:
            figures = [
                *searches(bench, questions[: asked.rounds]),
                *hooks(bench, questions[asked.rounds :]),
            ]
            figures += windows(bench, engine)
        finally:
            bench.run("engine", "stop", "--all", env=bench.beside)
    print(f"{chunks:,} passages; {about(host, asked.notes)}\n")
    print(table([line(f) for f in figures]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
