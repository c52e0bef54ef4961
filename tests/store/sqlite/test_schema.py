"""Migrations run once, in order, whole or not at all; a newer file is left alone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import numpy as np
import pytest

from notewell.errors import StoreDamagedError, StoreError, StoreVersionError
from notewell.store.sqlite import schema
from notewell.store.sqlite.schema import APPLICATION_ID, COUNTERS, MIGRATIONS
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def fill(store: SqliteStore) -> None:
    one = Chunk("id", "memory/a.md", "memory", 1, 1, (), "apple", "hash")
    put_document(store, Document("memory/a.md", "memory", 1, 1, ""), "digest", Facts(), [one])


def pragma(file: Path, name: str) -> int:
    db = sqlite3.connect(file)
    try:
        return int(db.execute(f"PRAGMA {name}").fetchone()[0])
    finally:
        db.close()


def add_colour(db: apsw.Connection) -> None:
    db.execute("ALTER TABLE chunks ADD COLUMN colour TEXT")


def fail_halfway(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE half (a)")
    db.execute("ALTER TABLE nowhere ADD COLUMN b")


def test_a_new_file_has_every_migration_and_our_application_id(file: Path) -> None:
    store = SqliteStore(file)
    assert {key: store.get_meta(key) for key in COUNTERS} == dict.fromkeys(COUNTERS, 0)
    store.close()
    assert (pragma(file, "user_version"), pragma(file, "application_id")) == (
        len(MIGRATIONS),
        APPLICATION_ID,
    )


def test_every_migration_has_a_name_and_a_docstring() -> None:
    assert MIGRATIONS[0] is schema.create_tables
    assert all(m.__name__ != "<lambda>" and m.__doc__ for m in MIGRATIONS)


def test_only_migrations_that_a_file_has_not_seen_are_run(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(file)
    fill(store)
    store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, add_colour))
    for _ in range(2):
        store = SqliteStore(file)
        assert len(store.keywords.lexical(Sought(("appl",)), 5, Filters())) == 1, (
            "what was there is still there"
        )
        assert store.connection.all("SELECT colour FROM chunks") == [(None,)]
        store.close()
    assert pragma(file, "user_version") == len(MIGRATIONS) + 1


def test_a_migration_that_fails_leaves_the_file_at_its_version(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(file).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, add_colour, fail_halfway))
    with pytest.raises(StoreError):
        SqliteStore(file)
    assert pragma(file, "user_version") == len(MIGRATIONS)
    db = sqlite3.connect(file)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    assert (
        "colour"
        not in db.execute("SELECT sql FROM sqlite_master WHERE name = 'chunks'").fetchone()[0]
    )
    db.close()


MIGRATOR = """
import sys, time
from pathlib import Path
from notewell.store.sqlite import schema
from notewell.store.sqlite.store import SqliteStore
def add_colour(db):
    time.sleep(0.3)
    db.execute("ALTER TABLE chunks ADD COLUMN colour TEXT")
schema.MIGRATIONS = (*schema.MIGRATIONS, add_colour)
SqliteStore(Path(sys.argv[1])).close()
"""


def test_of_two_processes_that_migrate_at_once_one_does_it(file: Path) -> None:
    SqliteStore(file).close()
    both = [subprocess.Popen([sys.executable, "-c", MIGRATOR, str(file)]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert pragma(file, "user_version") == len(MIGRATIONS) + 1


def test_an_older_file_that_cannot_be_written_is_not_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(file).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, add_colour))
    with pytest.raises(StoreVersionError, match="older"):
        SqliteStore(file, read_only=True)


def test_a_newer_index_is_left_alone(file: Path) -> None:
    SqliteStore(file).close()
    db = sqlite3.connect(file)
    db.execute("PRAGMA journal_mode = delete")
    db.execute("PRAGMA user_version = 999")
    db.close()
    before = file.read_bytes()
    with pytest.raises(StoreVersionError, match="newer notewell") as caught:
        SqliteStore(file)
    assert "upgrade" in caught.value.hint
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == ["index.sqlite"]


def test_a_copy_with_a_table_of_somebody_else_is_not_trusted(file: Path, tmp_path: Path) -> None:
    store = SqliteStore(file)
    store.set_meta("analysis", "done")
    store.close()
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(file.read_bytes())
    store = SqliteStore(copy)
    assert store.get_meta("analysis") is None, "every note is read again"
    store.connection.db.execute(
        "CREATE TRIGGER theirs AFTER INSERT ON chunks BEGIN DELETE FROM documents; END"
    )
    store.close()
    again = tmp_path / "again.sqlite"
    again.write_bytes(copy.read_bytes())
    with pytest.raises(StoreDamagedError, match="not ours"):
        SqliteStore(again)


def test_an_index_without_windows_gets_their_table(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        old.setattr(schema, "MIGRATIONS", (schema.create_tables,))
        db = apsw.Connection(str(file))
        schema.migrate(db, str(file))
        db.execute("INSERT INTO models (name, dim) VALUES ('m', 4)")
        db.close()
    assert pragma(file, "user_version") == 1
    store = SqliteStore(file)
    fill(store)
    (one,) = store.documents.chunks_of("memory/a.md")
    assert store.vectors.windows("m", [one.row]) == {}
    store.vectors.put_vectors(
        "m", {"hash": np.ones(4, dtype=np.float32)}, windows={"hash": b"codes"}
    )
    assert store.vectors.windows("m", [one.row]) == {one.row: b"codes"}
    store.close()
    assert pragma(file, "user_version") == len(MIGRATIONS) == 2


def test_a_vector_shares_its_page_with_others(file: Path) -> None:
    store = SqliteStore(file)
    store.vectors.put_vectors(
        "m", {f"hash{i}": np.ones(384, dtype=np.float32) for i in range(1000)}
    )
    store.close()
    assert pragma(file, "page_count") * pragma(file, "page_size") < 1000 * 384 * 4 * 1.3
