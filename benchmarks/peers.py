"""Other search libraries over the same chunks, vectors and questions, each in an environment of its
own.

One that cannot be installed or does not run is skipped, and its line says why. Each is asked for
the 50 best, one question at a time; ours is the whole search with its explanation, so its legs are
the fairer comparison.
"""

# ruff: noqa: E501 - the scripts below are other people's interfaces, one call a line
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Clustered, number

from notewell.index.documents import embed_text
from notewell.memory import Memory
from notewell.store.sqlite.store import SqliteStore

ENVIRONMENTS = Path(__file__).with_name(".peers")
_MOST = 20_000
_WAIT_S = 240
_RANKING_S = 1800
_COMMON = """
import json, sys, time
import numpy as np
"""
_SPEED = """
folder = sys.argv[1]
texts = json.load(open(folder + "/texts.json"))
questions = json.load(open(folder + "/questions.json"))
vectors = np.load(folder + "/vectors.npy")
asked = np.load(folder + "/asked.npy")
begun = time.perf_counter()
ask = build(texts, vectors, folder)
index_s = time.perf_counter() - begun
ask(questions[0], asked[0])
took = []
until = time.perf_counter() + 45
for question, vector in zip(questions, asked):
    begun = time.perf_counter()
    if begun > until and len(took) >= 5:  # a slow one is asked fewer questions
        break
    ask(question, vector)
    took.append(1000 * (time.perf_counter() - begun))
print(json.dumps([len(texts) / index_s, *np.percentile(took, (50, 95, 99))]))
"""
_RANKING = """
import os
found, took = [], []
for folder in sys.argv[1:]:
    texts = json.load(open(folder + "/texts.json"))
    questions = json.load(open(folder + "/questions.json"))
    vectors = np.load(folder + "/vectors.npy") if os.path.exists(folder + "/vectors.npy") else None
    asked = np.load(folder + "/asked.npy") if vectors is not None else [None] * len(questions)
    ask = build(texts, vectors, folder)
    for question, vector in zip(questions, asked):
        begun = time.perf_counter()
        found.append([int(n) for n in ask(question, vector)])
        took.append(1000 * (time.perf_counter() - begun))
print(json.dumps([found, float(np.median(took))]))
"""
# Each script defines `build(texts, vectors, folder)`, which returns `ask(question, vector)`: the
# numbers of the 50 best.
PEERS: dict[str, tuple[str, Sequence[str], str]] = {
    "sqlite-vec (brute force)": (
        "vector",
        ("sqlite-vec", "apsw"),
        """
import apsw, sqlite_vec
def build(texts, vectors, folder):
    db = apsw.Connection(folder + "/vec.db")
    db.enable_load_extension(True); db.load_extension(sqlite_vec.loadable_path())
    db.execute("create virtual table v using vec0(e float[%d])" % vectors.shape[1])
    with db:
        db.executemany("insert into v(rowid, e) values (?, ?)", ((i, x.tobytes()) for i, x in enumerate(vectors)))
    sql = "select rowid, distance from v where e match ? order by distance limit 50"
    return lambda question, vector: [row for row, _ in db.execute(sql, (vector.tobytes(),))]
""",
    ),
    "bm25s": (
        "lexical",
        ("bm25s", "PyStemmer"),
        """
import bm25s, Stemmer
stem = Stemmer.Stemmer("english")
def build(texts, vectors, folder):
    made = bm25s.BM25()
    made.index(bm25s.tokenize(texts, stemmer=stem, show_progress=False), show_progress=False)
    def ask(question, vector):
        words = bm25s.tokenize([question], stemmer=stem, show_progress=False)
        return made.retrieve(words, k=min(50, len(texts)), show_progress=False)[0][0]
    return ask
""",
    ),
    "tantivy": (
        "lexical",
        ("tantivy",),
        """
import re, tantivy
def build(texts, vectors, folder):
    schema = tantivy.SchemaBuilder().add_text_field("body", stored=False, tokenizer_name="en_stem").add_integer_field("n", stored=True).build()
    made = tantivy.Index(schema)
    writer = made.writer()
    for i, text in enumerate(texts):
        writer.add_document(tantivy.Document(body=text, n=i))
    writer.commit(); writer.wait_merging_threads(); made.reload()
    searcher = made.searcher()
    def ask(question, vector):
        words = " ".join(re.findall(r"\\w+", question.lower()))
        return [searcher.doc(at)["n"][0] for _, at in searcher.search(made.parse_query(words, ["body"]), 50).hits]
    return ask
""",
    ),
    "LanceDB hybrid": (
        "hybrid",
        ("lancedb", "pandas"),
        """
import lancedb, pyarrow as pa
def build(texts, vectors, folder):
    db = lancedb.connect(folder + "/lance")
    table = db.create_table("t", pa.table({"n": list(range(len(texts))), "text": texts,
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])}))
    table.create_fts_index("text")
    def ask(question, vector):
        return table.search(query_type="hybrid").vector(vector).text(question).limit(50).to_arrow()["n"].to_pylist()
    return ask
""",
    ),
    "Chroma": (
        "vector",
        ("chromadb",),
        """
import chromadb
def build(texts, vectors, folder):
    made = chromadb.PersistentClient(folder + "/chroma").create_collection("notes", configuration={"hnsw": {"space": "cosine"}})
    for i in range(0, len(texts), 2000):
        part = slice(i, i + 2000)
        made.add(ids=[str(n) for n in range(i, i + len(texts[part]))], embeddings=vectors[part], documents=texts[part])
    most = min(50, len(texts))
    return lambda question, vector: made.query(query_embeddings=vector[None], n_results=most)["ids"][0]
""",
    ),
    "memsearch on Milvus Lite": (
        "hybrid",
        ("memsearch", "milvus-lite"),
        """
from memsearch.store import MilvusStore
def build(texts, vectors, folder):
    store = MilvusStore(folder + "/milvus.db", dimension=vectors.shape[1], _create_if_missing=True)
    for i in range(0, len(texts), 1000):
        store.upsert([{"chunk_hash": "%016x" % n, "embedding": vectors[n].tolist(), "content": texts[n], "source": "notes.md",
            "heading": "", "heading_level": 1, "start_line": n, "end_line": n} for n in range(i, min(len(texts), i + 1000))])
    return lambda question, vector: [r["start_line"] for r in store.search(vector.tolist(), query_text=question, top_k=50)]
""",
    ),
}


def about() -> list[str]:
    """What the table below says."""
    return [
        (
            "The same chunks, vectors and questions, 50 best, one at a time, in the same run. A ratio "
            "over 1 means that the"
        ),
        (
            "other takes longer than our search of that kind, which also gathers evidence, explains "
            "and cuts snippets. One"
        ),
        "that needs over 45 s for all questions is asked fewer, at least five.",
    ]


def table(root: Path, ours: dict[str, Any], folder: Path) -> list[list[str]]:
    """A line for each peer: kind, chunks a second, percentiles and the ratio to ours."""
    data = folder / "peers"
    data.mkdir()
    _write(root, ours["questions"], data)
    rows = [
        ["library", "kind", "chunks a second", "p50 / p95 / p99 ms", "ratio of p50"],
        ["---"] * 5,
    ]
    for name, (kind, packages, script) in PEERS.items():
        print(name, file=sys.stderr, flush=True)
        try:
            rate, *took = _run(packages, script + _SPEED, [data])
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            rows.append([name, kind, "skipped", _reason(error), ""])
            continue
        rows.append(
            [
                name,
                kind,
                number(rate),
                " / ".join(map(number, took)),
                number(took[0] / ours[kind][0]),
            ]
        )
    for kind in ("lexical", "vector", "hybrid"):
        own = number(ours["chunks"] / ours["index_s"])
        rows.append([f"notewell, {kind}", kind, own, " / ".join(map(number, ours[kind])), "1"])
    leg = ours["vector_leg"]
    rows.append(
        [
            "notewell, its vector leg alone",
            "vector",
            "",
            " / ".join(map(number, leg)),
            number(leg[0] / ours["vector"][0]),
        ]
    )
    return rows


def _write(root: Path, questions: Sequence[str], data: Path) -> None:
    with Memory.open(root, env={}, embed__model="none") as memory:
        assert isinstance(memory.store, SqliteStore)
        rows = [
            r[0]
            for r in memory.store.connection.all(
                "SELECT row FROM chunks ORDER BY row LIMIT ?", (_MOST,)
            )
        ]
        texts = [embed_text(c) for c in memory.store.documents.chunks(rows).values()]
    (data / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    (data / "questions.json").write_text(json.dumps(list(questions)), encoding="utf-8")
    np.save(data / "vectors.npy", Clustered().embed(texts, "document"))
    np.save(data / "asked.npy", Clustered().embed(questions, "query"))


def rankings(name: str, folders: Sequence[Path]) -> tuple[list[list[int]], float] | str:
    """The numbers of the 50 best texts for every question of some folders, and the median ms; or
    why there are none.

    A folder has `texts.json` and `questions.json`, and for kinds with vectors `vectors.npy` and
    `asked.npy`.
    """
    _, packages, script = PEERS[name]
    try:
        found, took_ms = _run(packages, script + _RANKING, folders, wait_s=_RANKING_S)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return _reason(error)
    return found, took_ms


def _run(
    packages: Sequence[str], script: str, folders: Sequence[Path], *, wait_s: float = _WAIT_S
) -> list[Any]:
    python = _environment(packages)
    start = [python, "-c", _COMMON + script, *map(str, folders)]
    done = subprocess.run(start, check=True, capture_output=True, text=True, timeout=wait_s)
    return list(json.loads(done.stdout.splitlines()[-1]))


def _environment(packages: Sequence[str]) -> str:
    """The Python of an environment with these packages, which stays for the next run."""
    venv = ENVIRONMENTS / packages[0]
    python, ready = str(venv / "bin" / "python"), venv / "ready"
    if not ready.exists():
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", venv],
            check=True,
            capture_output=True,
            timeout=_WAIT_S,
        )
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            "numpy",
            *packages,
        ]
        subprocess.run(install, check=True, capture_output=True, timeout=_WAIT_S)
        ready.touch()
    return python


def _reason(error: Exception) -> str:
    # Its command would name places of this machine.
    ended = (
        "took too long" if isinstance(error, subprocess.TimeoutExpired) else "ended without a word"
    )
    said = getattr(error, "stderr", None) or (
        ended if isinstance(error, subprocess.SubprocessError) else str(error)
    )
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    lines = [line for line in text.splitlines() if line.strip() and "WARNING" not in line]
    return (lines[-1] if lines else type(error).__name__)[:100].replace("|", "/")
