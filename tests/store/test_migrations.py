"""What an older index holds is there after it was opened by a newer version."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np

from recollect.store.schema import APPLICATION_ID, MIGRATIONS
from recollect.store.sqlite import SqliteStore
from recollect.sync.consolidate import consolidate
from recollect.types import Filters
from tests.conftest import sqlite_of

EDGES = next(n for n, script in enumerate(MIGRATIONS, start=1) if "CREATE TABLE edges" in script)


def test_vectors_of_the_first_schema_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    vectors = {f"hash{i}": np.full(4, i, dtype="<f4") for i in range(3)}
    db = apsw.Connection(str(file))
    db.execute(MIGRATIONS[0]).fetchall()
    db.execute(f"PRAGMA user_version = 1; PRAGMA application_id = {APPLICATION_ID}").fetchall()
    db.execute("INSERT INTO models (name, dim) VALUES ('m', 4)")
    db.executemany("INSERT INTO vectors VALUES (?, 1, ?)", [(key, v.tobytes()) for key, v in vectors.items()])
    db.close()
    store = SqliteStore(file)
    found = store._all("SELECT content_hash, vector FROM vectors ORDER BY content_hash")
    assert found == [(key, v.tobytes()) for key, v in vectors.items()]
    store.put_vectors("m", {"hash0": np.ones(4, dtype=np.float32)})
    assert store.models() == [("m", 4, 3)]
    store.close()


def test_a_vector_shares_its_page_with_others(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    store.put_vectors("m", {f"hash{i}": np.ones(384, dtype=np.float32) for i in range(1000)})
    pages = store._all("PRAGMA page_count")[0][0] * store._all("PRAGMA page_size")[0][0]
    store.close()
    assert pages < 1000 * 384 * 4 * 1.3


def test_notes_indexed_before_there_were_edges_are_read_again(tmp_path: Path) -> None:
    from recollect.memory import Memory

    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.md").write_text("[[b]]")
    with Memory.open(tmp_path, embed__model="none") as memory:
        memory.sync()
        index = Path(memory.store.name)
        analysis = memory.store.get_meta("analysis")
        columns = (
            "id, path, source, size, mtime_ns, synced_ns, digest, name, title, date, evergreen, importance, pinned"
        )
        (known,) = sqlite_of(memory)._all(f"SELECT {columns}, supersedes FROM documents")
    index.unlink()
    db = apsw.Connection(str(index))
    for script in MIGRATIONS[: EDGES - 1]:
        db.execute(script).fetchall()
    db.execute(f"PRAGMA user_version = {EDGES - 1}; PRAGMA application_id = {APPLICATION_ID}").fetchall()
    db.execute(f"INSERT INTO documents ({columns}, supersedes) VALUES ({','.join('?' * len(known))})", known)
    db.execute("INSERT INTO meta VALUES ('analysis', ?)", (analysis,))
    db.close()
    with Memory.open(tmp_path, embed__model="none") as memory:
        assert len(memory.trace("memory/a.md")[0].hops) == 1


def test_chunks_of_an_older_schema_wait_for_judgement(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    db = apsw.Connection(str(file))
    for script in MIGRATIONS[:2]:
        db.execute(script).fetchall()
    db.execute(f"PRAGMA user_version = 2; PRAGMA application_id = {APPLICATION_ID}").fetchall()
    db.execute("INSERT INTO documents VALUES (1, 'a.md', 'memory', 1, 1, 1, 'd', 'a', 'a', NULL, 0, 0, 0, '[]')")
    for row in (1, 2):
        db.execute(
            "INSERT INTO chunks VALUES (?, ?, 1, 1, 1, '[]', 'The port is 8080.', ?, 1)", (row, f"c{row}", f"h{row}")
        )
    db.close()
    store = SqliteStore(file)
    assert store.unjudged(5) == [1, 2]
    assert consolidate(store).judged == 2
    assert len(store.relations(list(store.chunks([1, 2]).values()), Filters())) == 1
    store.close()
