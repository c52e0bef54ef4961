"""The second half of `make bench`, and `make bench-large`: how searches, syncs, memory and disk
grow from 1,000 to 1,000,000 chunks.

Each size is built and measured by a process of its own, so that its peak of memory is its own.
Vectors come from `Clustered`, whose directions are like a model's; the question's vector is given,
so no figure has a model's time in it.
"""

# ruff: noqa: E501 - a row of the page is a line
from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# as the `notewell` command does, before numpy is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import peers
from corpus import Corpus
from measure import WINDOW, Clustered, Precomputed, cpu_s, machine, number

from notewell.index.documents import embed_text
from notewell.memory import Memory
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Filters

SIZES = (1_000, 10_000, 100_000)
LARGE = (1_000_000,)
TARGETS = {10_000: 2.5, 100_000: 8.0, 1_000_000: 30.0}
_UNSPACED = 10_000  # up to this many chunks
_QUESTIONS = 100
_RECALL = 30
_DEEP = 50
_COLD_RUNS = 10
_COLD = """
import os, sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
from notewell.memory import Memory
class Given:
    id, dim, window_dims = sys.argv[3], int(sys.argv[4]), int(sys.argv[4]) // 2
    def embed(self, texts, role):
        import numpy
        return numpy.load(sys.argv[5])[None]
with Memory.open(sys.argv[1], env={}, embedder=Given()) as memory:
    assert memory.search(sys.argv[6], profile=sys.argv[2], sync=False).hits
"""
RESULTS = Path(__file__).with_name("RESULTS.md")


def spent(call: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of a call, with those of processes that it started."""
    wall, cpu = time.perf_counter(), cpu_s()
    call()
    return time.perf_counter() - wall, cpu_s() - cpu


def build(root: Path, chunks: int) -> dict[str, Any]:
    """Writes a workspace and indexes it; what that took, and what it takes on disk."""
    corpus = Corpus()
    corpus.write(root, chunks)
    questions = corpus.questions(root, _QUESTIONS)
    text = sum(p.stat().st_size for p in root.rglob("*.md"))
    index = root / ".notewell" / "index.sqlite"
    with Memory.open(root, env={}, embedder=Clustered(), consolidate=False) as memory:
        wall, cpu = spent(lambda: memory.sync(embed=False))
        made = memory.store.counts()["chunks"]
        vectors = spent(memory.sync)[1]
    keywords = {
        "chunks": made,
        "text_bytes": text / made,
        "index_s": wall,
        "index_cpu_s": cpu,
        "vectors_cpu_s": vectors,
    }
    with Memory.open(root, env={}, embedder=Clustered()) as memory:
        judged = spent(memory.sync)[1]
    return keywords | {
        "judge_cpu_s": judged,
        "disk_bytes": index.stat().st_size / made,
        "questions": questions,
    }


def syncs(root: Path) -> dict[str, Any]:
    """A sync that finds nothing to do, and one that finds a changed note."""
    with Memory.open(root, env={}, embedder=Clustered()) as memory:
        memory.sync()
        same = min(spent(memory.sync) for _ in range(3))
        note = sorted((root / "memory").rglob("*.md"))[0]
        note.write_text(
            note.read_text(encoding="utf-8") + "\n\nA line about the harbour master.\n",
            encoding="utf-8",
        )
        one = spent(memory.sync)
        files = memory.store.counts()["documents"]
    return {
        "files": files,
        "unchanged_s": same[0],
        "unchanged_cpu_s": same[1],
        "one_s": one[0],
        "one_cpu_s": one[1],
    }


def searches(root: Path, questions: Sequence[str]) -> dict[str, Any]:
    """The first search of a process and the following ones, by leg; with a filter; and how exact
    the vector leg is.
    """
    model = Precomputed(Clustered(), questions)
    out: dict[str, Any] = {}
    begun = time.perf_counter()
    with Memory.open(root, env={}, embedder=model) as memory:
        out["open_ms"] = 1000 * (time.perf_counter() - begun)
        memory.search(questions[0], sync=False)
        out["cold_ms"] = 1000 * (time.perf_counter() - begun)
        filters = Filters(path="memory/topics")
        for name, profile, chosen in (
            ("new", "default", None),
            ("lexical", "lexical", None),
            ("vector", "vector", None),
            ("hybrid", "default", None),
            ("filtered", "default", filters),
        ):
            out |= timed(name, memory, questions, profile=profile, filters=chosen)
        store, asked = memory.store, model.embed(questions, "query")
        name = str(store.get_meta("model"))
        took = [
            spent(lambda: store.vectors.nearest(name, vector, _DEEP, Filters()))  # noqa: B023
            for vector in asked
        ]
        out["vector_leg"] = [
            1000 * float(v) for v in np.percentile([t[0] for t in took], (50, 95, 99))
        ]
        out["vector_leg_cpu"] = 1000 * float(np.median([t[1] for t in took]))
        out["peak_mb"] = peak_mb()
        out["recall"] = recall(memory, model, questions[:_RECALL])
    model.window_dims = 0
    with Memory.open(root, env={}, embedder=model) as memory:
        timed("new", memory, questions)
        out |= timed("vector_whole", memory, questions, profile="vector") | timed(
            "whole", memory, questions
        )
    return out


def timed(
    name: str,
    memory: Memory,
    questions: Sequence[str],
    *,
    profile: str = "default",
    filters: Filters | None = None,
) -> dict[str, Any]:
    """Wall and CPU time of warm searches."""
    memory.search(questions[0], profile=profile, filters=filters, sync=False)
    took = [
        spent(lambda: memory.search(q, profile=profile, filters=filters, sync=False))  # noqa: B023
        for q in questions
    ]
    wall = [1000 * float(v) for v in np.percentile([t[0] for t in took], (50, 95, 99))]
    return {name: wall, f"{name}_cpu": 1000 * float(np.median([t[1] for t in took]))}


def unspaced(root: Path, chunks: int) -> dict[str, Any]:
    """The same searches over as many passages of a script without spaces."""
    corpus = Corpus(unspaced=True)
    corpus.write(root, chunks)
    questions = corpus.questions(root, _QUESTIONS)
    with Memory.open(root, env={}, embedder=Clustered()) as memory:
        memory.sync()
    with Memory.open(root, env={}, embedder=Precomputed(Clustered(), questions)) as memory:
        timed("new", memory, questions)
        return timed("unspaced", memory, questions)


def peak_mb() -> float:
    """The most memory that this process has had; not that of the one that started it."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    return int(found[1]) / 1024 if found else 0.0


def cold(root: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Whole processes that open the index and answer one question, the file being in the system's
    cache.
    """
    model = Clustered()
    place = root.with_suffix(".npy")
    out: dict[str, Any] = {}
    for name, profile in (("lexical", "lexical"), ("vector", "vector"), ("hybrid", "default")):
        took = []
        for question in questions[:_COLD_RUNS]:
            np.save(place, model.embed([question], "query")[0])
            start = [
                sys.executable,
                "-c",
                _COLD,
                str(root),
                profile,
                model.id,
                str(model.dim),
                str(place),
                question,
            ]
            took.append(spent(lambda: subprocess.run(start, check=True, capture_output=True))[0])  # noqa: B023
        out[f"cold_{name}"] = [1000 * float(v) for v in np.percentile(took, (50, 95, 99))]
    version = [sys.executable, "-m", "notewell.surfaces.cli.main", "--version"]
    starts = [
        spent(lambda: subprocess.run(version, check=True, capture_output=True))[0] for _ in range(5)
    ]
    return out | {"start_ms": 1000 * float(np.median(starts))}


def recall(memory: Memory, model: Precomputed, questions: Sequence[str]) -> float:
    """The share of the exact fifty nearest, by the floats that the model gave, which the vector leg
    brings.
    """
    store, clustered = memory.store, Clustered()
    assert isinstance(store, SqliteStore)
    best: list[list[tuple[float, int]]] = [[] for _ in questions]
    asked = model.embed(questions, "query")
    rows = [r[0] for r in store.connection.all("SELECT row FROM chunks ORDER BY row")][:20_000]
    for i in range(0, len(rows), 900):
        chunks = list(store.documents.chunks(rows[i : i + 900]).values())
        cosines = clustered.embed([embed_text(c) for c in chunks], "document") @ asked.T
        for n in range(len(questions)):
            best[n] += [
                (float(cosine), c.row) for cosine, c in zip(cosines[:, n], chunks, strict=True)
            ]
    only = np.asarray(rows)
    matrix = store.vectors.matrix(store.get_meta("model"))
    found = 0
    for n, exact in enumerate(best):
        exact.sort(reverse=True)
        got = {s.row for s in matrix.nearest(asked[n], _DEEP, only).rows[:_DEEP]}
        found += len(got & {row for _, row in exact[:_DEEP]})
    return found / (_DEEP * len(questions))


def measured(chunks: int, folder: Path) -> dict[str, Any]:
    """Everything about one size, each part in a process of its own."""
    root = folder / f"{chunks}"
    built = _child("build", root, chunks)
    (folder / f"{chunks}.json").write_text(json.dumps(built["questions"]), encoding="utf-8")
    found = (
        built
        | _child("searches", root, chunks)
        | _child("cold", root, chunks)
        | _child("syncs", root, chunks)
    )
    if chunks <= _UNSPACED:
        found |= _child("unspaced", folder / f"{chunks}-unspaced", chunks)
    print(
        f"{chunks:,} chunks: {json.dumps({k: v for k, v in found.items() if k != 'questions'})}",
        file=sys.stderr,
    )
    return found


def _child(part: str, root: Path, chunks: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--part", part, str(root), str(chunks)],
        check=True,
        capture_output=True,
    )
    return dict(json.loads(done.stdout))


def page(
    host: dict[str, Any], sizes: dict[int, dict[str, Any]], others: Sequence[Sequence[str]]
) -> str:
    """The figures as Markdown."""
    out = [
        "# How it grows",
        "",
        (
            "Written by `make bench` (1,000 to 100,000 chunks) and `make bench-large` (a million "
            "too). Prose with Zipfian"
        ),
        (
            "words, vectors of 384 dimensions in 200 clusters with windows of 192, the question's "
            "vector given, wall time unless it says CPU."
        ),
        "",
        (
            f"{host['processor']}, {host['cores']} cores of which {host['free_cores']:g} were to be had at the start,"
            f" {host['memory_gb']:g} GB, {host['system']}, Python {host['python']}, SQLite {host['sqlite']},"
            f" load {host['load']:g} at the start."
        ),
        "",
    ]
    names = [f"{n:,}" for n in sizes]
    rows: list[tuple[str, Callable[[int, dict[str, Any]], str]]] = [
        (
            "warm hybrid search, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["hybrid"])),
        ),
        ("target of its p50, ms", lambda n, _: number(TARGETS[n]) if n in TARGETS else ""),
        ("the same, CPU, p50 ms", lambda _, f: number(f["hybrid_cpu"])),
        (
            "the same, without windows, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["whole"])),
        ),
        (
            "warm hybrid search in Chinese characters, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f.get("unspaced", ()))),
        ),
        (
            "the first time, where the passages were not read before, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["new"])),
        ),
        (
            "warm lexical search, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["lexical"])),
        ),
        (
            "warm vector search, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["vector"])),
        ),
        (
            "the same, without windows, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["vector_whole"])),
        ),
        (
            "the vector leg alone, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["vector_leg"])),
        ),
        ("the same, CPU, p50 ms", lambda _, f: number(f["vector_leg_cpu"])),
        (
            "warm hybrid search in one folder, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["filtered"])),
        ),
        (
            "a new process and its first hybrid search, p50 / p95 / p99 ms",
            lambda _, f: " / ".join(map(number, f["cold_hybrid"])),
        ),
        ("the same, lexical", lambda _, f: " / ".join(map(number, f["cold_lexical"]))),
        ("the same, vector", lambda _, f: " / ".join(map(number, f["cold_vector"]))),
        (
            "start of a process that does nothing (`--version`), ms",
            lambda _, f: number(f["start_ms"]),
        ),
        ("opening the index, ms", lambda _, f: number(f["open_ms"])),
        (
            "opening and first search in a process that has loaded its modules, ms",
            lambda _, f: number(f["cold_ms"]),
        ),
        ("peak memory of searching, MB", lambda _, f: number(f["peak_mb"])),
        ("recall@50 of the vector leg against floats", lambda _, f: f"{f['recall']:.4f}"),
        (
            "index rate without vectors, chunks a second",
            lambda _, f: number(f["chunks"] / f["index_s"]),
        ),
        ("the same, chunks a CPU second", lambda _, f: number(f["chunks"] / f["index_cpu_s"])),
        (
            "storing vectors (made, not embedded), chunks a CPU second",
            lambda _, f: number(f["chunks"] / f["vectors_cpu_s"]),
        ),
        (
            "copies and contradictions, chunks a CPU second",
            lambda _, f: number(f["chunks"] / f["judge_cpu_s"]),
        ),
        ("files", lambda _, f: f"{f['files']:,}"),
        ("sync, nothing changed, ms (CPU)", lambda _, f: _ms(f, "unchanged")),
        ("sync, one note changed, ms (CPU)", lambda _, f: _ms(f, "one")),
        ("bytes of text a chunk", lambda _, f: number(f["text_bytes"])),
        ("bytes on disk a chunk", lambda _, f: number(f["disk_bytes"])),
        (
            "target: 2.5 × text + 384, and 102 a window",
            lambda _, f: number((2.5 + 102 / WINDOW) * f["text_bytes"] + 384),
        ),
    ]
    out += ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    out += [
        f"| {what} | " + " | ".join(cell(n, f) for n, f in sizes.items()) + " |"
        for what, cell in rows
    ]
    if others:
        out += [
            "",
            "## Beside others",
            "",
            *peers.about(),
            "",
            *("| " + " | ".join(row) + " |" for row in others),
        ]
    return "\n".join(out) + "\n"


def _ms(figures: dict[str, Any], what: str) -> str:
    return f"{number(1000 * figures[f'{what}_s'])} ({number(1000 * figures[f'{what}_cpu_s'])})"


def main(arguments: Sequence[str]) -> int:
    """Measures each size and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--large",
        action="store_true",
        help="a million chunks as well; takes an hour and 8 GB of disk",
    )
    parser.add_argument("--sizes", type=int, nargs="*", help="these numbers of chunks instead")
    parser.add_argument(
        "--no-peers",
        action="store_true",
        help="without other libraries, which need the network once",
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.part:
        part, root, chunks = asked.part[0], Path(asked.part[1]), int(asked.part[2])
        questions = root.with_suffix(".json")
        found = (
            build(root, chunks)
            if part == "build"
            else unspaced(root, chunks)
            if part == "unspaced"
            else syncs(root)
            if part == "syncs"
            else {"cold": cold, "searches": searches}[part](
                root, json.loads(questions.read_text(encoding="utf-8"))
            )
        )
        print(json.dumps(found))
        return 0
    host = machine()
    sizes: dict[int, dict[str, Any]] = {}
    others: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="notewell-scale-") as name:
        folder = Path(name)
        wanted = asked.sizes or [*SIZES, *(LARGE if asked.large else ())]
        for chunks in wanted:
            print(f"{chunks:,} chunks", file=sys.stderr, flush=True)
            sizes[chunks] = measured(chunks, folder)
        if not asked.no_peers:
            middle = min(wanted, key=lambda n: abs(n - 10_000))
            others = peers.table(folder / f"{middle}", sizes[middle], folder)
    text = page(host, sizes, others)
    asked.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
