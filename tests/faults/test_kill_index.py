"""An index that was killed at any moment, any number of times, ends up as one that never was."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from notewell.store.rows import hash_of
from notewell.store.sqlite.store import SqliteStore

NOTES = 300
# The same command, with a second process that reads all notes ahead.
AHEAD = (
    "import notewell.index.read_ahead as r\n"
    "r.AHEAD_BYTES, r._BEGUN_BYTES, r._can_start = 1, 0, lambda: True\n"
    "from notewell.surfaces.cli.main import main\nmain()"
)
Content = dict[str, list[tuple[Any, ...]]]
Whole = tuple[Content, float]


def make_notes(root: Path) -> None:
    chance = random.Random(7)
    words = [f"word{n}" for n in range(400)]
    for n in range(NOTES):
        path = root / "memory" / f"part{n % 5}" / f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}-{n}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"## Topic {k}\n\n{' '.join(chance.choices(words, k=60))}.\n\n" for k in range(6)]
        path.write_text(f"# Note {n}\n\n" + "".join(parts))
        os.utime(path, (time.time() - 60, time.time() - 60))


def index(root: Path, index: Path, *, ahead: bool = False) -> subprocess.Popen[bytes]:
    start = ["-c", AHEAD] if ahead else ["-m", "notewell.surfaces.cli.main"]
    command = [sys.executable, *start, "index", "--model", "hashed", "--json"]
    return subprocess.Popen(
        [*command, "-w", str(root), "--index", str(index)], stdout=subprocess.PIPE
    )


def run_to_the_end(root: Path, file: Path) -> dict[str, Any]:
    out, _ = index(root, file).communicate(timeout=60)
    report: dict[str, Any] = json.loads(out)
    return report


def content(file: Path) -> Content:
    """All that an index holds, without row numbers and times."""
    db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    tables = {
        "documents": (
            "SELECT path, source, size, mtime_ns, digest, name, title, date, evergreen "
            "FROM documents"
        ),
        "chunks": "SELECT d.path, c.id, c.start_line, c.end_line, c.heading, c.text, c.content_hash"
        " FROM chunks c JOIN documents d ON d.id = c.document",
        "vectors": "SELECT m.name, v.content_hash FROM vectors v JOIN models m ON m.id = v.model",
    }
    found = {name: sorted(db.execute(sql).fetchall(), key=repr) for name, sql in tables.items()}
    assert db.execute("SELECT count(*) FROM fields").fetchone() == (len(found["chunks"]),), (
        "no term without its chunk"
    )
    db.close()
    store = SqliteStore(file, read_only=True)
    terms = store.keywords.chunk_terms(
        [r[0] for r in store.connection.all("SELECT row FROM chunks")]
    )
    found["terms"] = sorted(
        ((c.id, terms[row]) for row, c in store.documents.chunks(list(terms)).items()), key=repr
    )
    # In a row of its own or in a segment with others, which depends on the moment: what counts is
    # the vector.
    rows = {
        m: store.vectors.by_hash(m, [hash_of(key) for n, key in found["vectors"] if n == m])
        for m, _, _ in store.vectors.models()
    }
    found["vectors"] = [
        (name, key, rows[name][hash_of(key)].tobytes()) for name, key in found["vectors"]
    ]
    found["audit"] = [(fault,) for fault in store.audit()]
    store.close()
    return found


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("notes")
    make_notes(root)
    return root


@pytest.fixture(scope="module")
def undisturbed(notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    file = tmp_path_factory.mktemp("undisturbed") / "index.sqlite"
    begun = time.monotonic()
    report = run_to_the_end(notes, file)
    assert (report["added"], report["pending"]) == (NOTES, 0)
    return content(file), time.monotonic() - begun


def kill_and_finish(
    notes: Path, file: Path, *, kills: int, whole_s: float, seed: int, ahead: bool = False
) -> None:
    """Kills so many runs, each at a random moment, and lets a last one end."""
    chance = random.Random(seed)
    killed = 0
    while killed < kills:
        process = index(notes, file, ahead=ahead)
        try:
            process.communicate(timeout=chance.uniform(0.2, 1.0) * whole_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            killed += 1
        else:  # it was faster than thought: begin again, and strike earlier
            whole_s *= 0.7
            for left in file.parent.glob(f"{file.name}*"):
                left.unlink()
    run_to_the_end(notes, file)


def test_killed_five_times_the_index_is_the_same(
    notes: Path, undisturbed: Whole, tmp_path: Path
) -> None:
    expected, whole_s = undisturbed
    kill_and_finish(notes, tmp_path / "index.sqlite", kills=5, whole_s=min(whole_s, 1.5), seed=0)
    assert content(tmp_path / "index.sqlite") == expected


def test_killed_while_a_second_process_reads_ahead_the_index_is_the_same(
    notes: Path, undisturbed: Whole, tmp_path: Path
) -> None:
    expected, whole_s = undisturbed
    kill_and_finish(
        notes, tmp_path / "index.sqlite", kills=3, whole_s=min(whole_s, 1.5), seed=1, ahead=True
    )
    assert content(tmp_path / "index.sqlite") == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_killed_fifty_times_the_index_is_the_same(
    notes: Path, undisturbed: Whole, tmp_path: Path, seed: int
) -> None:
    expected, whole_s = undisturbed
    kill_and_finish(notes, tmp_path / "index.sqlite", kills=5, whole_s=whole_s, seed=seed)
    assert content(tmp_path / "index.sqlite") == expected


def test_two_runs_at_once_make_one_index(notes: Path, undisturbed: Whole, tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    both = [index(notes, file) for _ in range(2)]
    reports = [json.loads(p.communicate(timeout=60)[0]) for p in both]
    assert [p.returncode for p in both] == [0, 0]
    assert sorted(r["added"] for r in reports) == [0, NOTES], (
        "one did the work, the other waited and found it done"
    )
    assert content(file) == undisturbed[0]
