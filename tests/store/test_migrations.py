"""What an older index holds is there after it was opened by a newer version."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np

from recollect.store.schema import APPLICATION_ID, MIGRATIONS
from recollect.store.sqlite import SqliteStore, _migrating
from recollect.sync.consolidate import consolidate
from recollect.types import Filters
from tests.conftest import sqlite_of

EDGES = next(n for n, script in enumerate(MIGRATIONS, start=1) if "CREATE TABLE edges" in script)
NARROW = next(n for n, script in enumerate(MIGRATIONS) if "RENAME COLUMN content_hash TO hash" in script)


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


def test_an_index_from_before_the_narrow_tables_answers_the_same(tmp_path: Path) -> None:
    """Hashes as digits, kin with every copy, forms with every first row: all of it is there after the conversion."""
    from recollect.memory import Memory

    (tmp_path / "memory").mkdir()
    for n in range(6):
        who = f"The harbour master is called Nora and lives at pier {n % 3}."
        text = f"# Day {n}\n\n{who}\n\n# Port\n\nThe port is {8080 + n}."
        (tmp_path / f"memory/2026-01-0{n + 1}.md").write_text(text)

    def answers() -> tuple[object, ...]:
        with Memory.open(tmp_path, embed__model="hashed") as memory:
            store = sqlite_of(memory)
            rows = [r[0] for r in store._all("SELECT row FROM chunks ORDER BY row")]
            chunks = list(store.chunks(rows).values())
            found = [
                [(h.chunk.id, round(h.score, 9), h.vector_score) for h in memory.search(question, sync=False).hits]
                for question in ("who is the harbour master", "port 8082", "pier")
            ]
            vectors = store.vectors_of(str(store.get_meta("model")), [c.content_hash for c in chunks])
            kept = {key: vector.tolist() for key, vector in vectors.items()}
            traits = [t + 2**31 for (t,) in store._all("SELECT DISTINCT trait FROM traits")]
            like = {form: c.id for form, c in store.forms_like(traits, 99).items()}
            related, judged = store.relations(chunks, Filters()), store.judgements(rows)
            return chunks, found, kept, related, judged, like, store.audit()

    with Memory.open(tmp_path, embed__model="hashed") as memory:
        memory.sync()
        index = Path(memory.store.name)
    before = answers()
    assert before[3]
    assert before[-1] == []
    older = tmp_path / "older.sqlite"
    db = apsw.Connection(str(older))
    _migrating(db)
    for script in MIGRATIONS[:NARROW]:
        db.execute(script).fetchall()
    db.execute(f"PRAGMA user_version = {NARROW}; PRAGMA application_id = {APPLICATION_ID}").fetchall()
    db.execute("ATTACH ? AS now", (str(index),))
    tables = "documents chunks models words fields edges copies traits conflicts replaced"
    for table in tables.split():
        columns = ", ".join(r[0] for r in db.execute(f"SELECT name FROM main.pragma_table_info('{table}')"))
        known = columns.replace("content_hash", "lower(hex(content_hash))")
        db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {known} FROM now.{table}")
    columns = "row, content_hash, model, vector, place"
    db.execute(f"INSERT INTO main.vectors ({columns}) SELECT {columns} FROM now.vectors")
    db.execute("INSERT INTO main.forms SELECT row, form FROM now.copies WHERE row IN (SELECT row FROM now.traits)")
    db.execute("INSERT OR REPLACE INTO main.meta SELECT * FROM now.meta")
    db.execute("DELETE FROM main.unjudged")
    assert db.execute("SELECT typeof(content_hash), length(content_hash) FROM main.chunks").fetchone() == ("text", 32)
    db.close()
    for end in ("", "-wal", "-shm"):
        Path(f"{index}{end}").unlink(missing_ok=True)
    older.rename(index)
    assert answers() == before
    store = SqliteStore(index)
    assert store._all("SELECT typeof(content_hash), length(content_hash) FROM chunks LIMIT 1") == [("blob", 16)]
    digits = store._all("SELECT typeof(hash), length(hash), length(content_hash) FROM vectors LIMIT 1")
    assert digits == [("blob", 16, 32)]
    store.drop(["memory/2026-01-01.md", "memory/2026-01-02.md"])
    assert store.audit() == []
    store.close()
