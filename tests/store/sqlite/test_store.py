from __future__ import annotations

import datetime as dt
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from notewell.errors import StoreBusyError, StoreDamagedError, StoreError, StoreVersionError
from notewell.store import network_fs
from notewell.store.network_fs import on_network
from notewell.store.sqlite import connection as module
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

APPLE = Sought(("appl",))


def fill(store: SqliteStore, count: int = 1, *, words: str = "apple") -> None:
    for n in range(count):
        path = f"memory/{n}.md"
        one = Chunk(f"id{n}", path, "memory", 1, 1, (), f"{words} {n}", f"hash{n}")
        put_document(store, Document(path, "memory", 1, 1, ""), f"{n}", Facts(), [one])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def test_only_the_owner_may_read_the_index(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in file.parent.glob("index.sqlite*")}
    store.close()
    assert modes == dict.fromkeys(["index.sqlite", "index.sqlite-shm", "index.sqlite-wal"], 0o600)


def test_readers_and_the_writer_go_together_through_a_wal_with_a_busy_timeout(file: Path) -> None:
    store = SqliteStore(file)
    assert store.connection.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store.connection.db.execute("PRAGMA busy_timeout").fetchone() == (
        module.BUSY_TIMEOUT_MS,
    )
    store.close()


def test_the_stock_sqlite3_module_reads_chunks_and_words(file: Path) -> None:
    store = SqliteStore(file)
    fill(store, 3)
    store.close()
    db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    assert db.execute("SELECT count(*) FROM chunks").fetchone() == (3,)
    assert {word for (word,) in db.execute("SELECT word FROM words")} >= {"appl", "2"}
    assert db.execute("SELECT count(*) FROM fields").fetchone() == (3,)
    db.close()


@pytest.mark.parametrize(
    "script", ["CREATE TABLE theirs (a)", "CREATE TABLE theirs (a); PRAGMA user_version = 7"]
)
def test_the_database_of_another_program_is_left_alone(file: Path, script: str) -> None:
    db = sqlite3.connect(file)
    db.executescript(script)
    db.close()
    with pytest.raises(StoreError, match="another program") as caught:
        SqliteStore(file)
    assert not isinstance(caught.value, StoreDamagedError | StoreVersionError), (
        "it must not be set aside"
    )
    assert "index.path" in caught.value.hint


def test_a_file_that_is_no_database_is_damage(file: Path) -> None:
    file.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreDamagedError):
        SqliteStore(file)


def test_a_missing_table_is_damage_but_a_bad_question_is_not(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    with pytest.raises(StoreError, match="did not understand") as caught:
        store.connection.all("SELECT row FROM fields WHERE ((")
    assert not isinstance(caught.value, StoreDamagedError)
    store.connection.db.execute("DROP TABLE documents")
    with pytest.raises(StoreDamagedError, match="lacks a table"):
        store.documents.stored()
    store.close()


def test_check_finds_broken_vectors(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    store.vectors.put_vectors("m", {"hash0": np.ones(4, dtype=np.float32)})
    store.check()
    store.connection.db.execute("UPDATE vectors SET vector = x'00'")
    with pytest.raises(StoreDamagedError, match="broken vectors"):
        store.check()
    store.close()


def test_a_full_disk_is_said_and_nothing_is_half_written(file: Path) -> None:
    store = SqliteStore(file)
    fill(store, 2)
    pages = store.connection.db.execute("PRAGMA page_count").fetchall()[0][0]
    store.connection.db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(StoreError, match="disk is full") as caught:
        fill(store, 200, words="a much longer text " * 50)
    assert "free some space" in caught.value.hint
    store.connection.db.execute("PRAGMA max_page_count = 1000000").fetchall()
    store.check()
    assert all(len(store.documents.chunks_of(path)) == 1 for path in store.documents.stored()), (
        "whole documents only"
    )
    fill(store, 200)
    assert store.counts()["chunks"] == 200, "once there is space, it goes on"
    store.close()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file") as caught:
        SqliteStore(tmp_path / "nowhere" / "index.sqlite")
    assert "index.path" in caught.value.hint


def test_a_model_that_changed_its_dimensions_under_its_name_is_refused(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    store.vectors.put_vectors("m", {"hash0": np.ones(4, dtype=np.float32)})
    with pytest.raises(StoreError, match="5 dimensions, the index has 4"):
        store.vectors.put_vectors("m", {"hash0": np.ones(5, dtype=np.float32)})
    with pytest.raises(StoreError, match="5 dimensions, the index 4"):
        store.vectors.nearest("m", np.ones(5, dtype=np.float32), 3, Filters())
    store.close()


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fourteen hours before Greenwich, where a new day begins first."""
    monkeypatch.setenv("TZ", "XXX-14")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_an_undated_file_counts_by_the_local_day_of_its_last_change() -> None:
    store = SqliteStore(None)
    early = dt.datetime(2026, 5, 5, 0, 30)  # noqa: DTZ001 - half past midnight here is the day before in Greenwich
    one = Chunk("id", "a.md", "memory", 1, 1, (), "apple", "hash")
    put_document(
        store,
        Document("a.md", "memory", 1, int(early.timestamp()) * 10**9, ""),
        "d",
        Facts(),
        [one],
    )
    assert (
        len(store.keywords.lexical(APPLE, 5, Filters(since=early.date(), until=early.date()))) == 1
    )


WRITER = """
import sys
from pathlib import Path
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Chunk, Document, Facts
from tests.store.made import put_document
store = SqliteStore(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    path = f"{sys.argv[2]}/{n}.md"
    one = Chunk(path, path, "memory", 1, 1, (), "apple", path)
    put_document(store, Document(path, "memory", 1, 1, ""), "d", Facts(), [one])
store.close()
"""


def test_two_processes_write_one_after_the_other(file: Path) -> None:
    SqliteStore(file).close()
    command = [sys.executable, "-c", WRITER, str(file)]
    both = [subprocess.Popen([*command, name, "60"]) for name in ("a", "b")]
    assert [p.wait(timeout=30) for p in both] == [0, 0]
    store = SqliteStore(file)
    assert store.counts()["chunks"] == 120
    assert store.generation == 120
    store.check()
    store.close()


def test_a_transaction_holds_the_write_lock_from_its_first_moment(file: Path) -> None:
    store, other = SqliteStore(file), apsw.Connection(str(file))
    with store.writing(), pytest.raises(apsw.BusyError):
        other.execute("BEGIN IMMEDIATE")
    other.execute("BEGIN IMMEDIATE; ROLLBACK")
    other.close()
    store.close()


def test_a_writer_that_never_lets_go_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_MS", 20)
    store = SqliteStore(file)
    other = apsw.Connection(str(file))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another process"):
        fill(store)
    other.close()
    fill(store)
    store.close()


def test_a_change_by_another_connection_is_seen(file: Path) -> None:
    one, other = SqliteStore(file), SqliteStore(file)
    assert one.vectors.missing("m") == []
    assert one.vectors.nearest("m", np.ones(1, dtype=np.float32), 5, Filters()).rows == ()
    fill(other)
    other.vectors.put_vectors("m", {"hash0": np.ones(1, dtype=np.float32)})
    assert len(one.keywords.lexical(APPLE, 5, Filters())) == 1
    assert len(one.vectors.nearest("m", np.ones(1, dtype=np.float32), 5, Filters()).rows) == 1
    one.close()
    other.close()


def test_threads_read_while_one_writes(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    done = threading.Event()

    def read() -> int:
        least = 1
        while not done.is_set():
            found = len(store.keywords.lexical(APPLE, 1000, Filters()))
            assert found >= least, "a committed note never vanishes"
            least = found
        return least

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        fill(store, 150)
        done.set()
        assert all(r.result(timeout=60) >= 1 for r in readers)
    store.close()


def test_a_word_that_one_thread_looks_up_is_never_unknown_to_another(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, also = Connection.all, [0]

    def interrupted(self: Connection, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        if "FROM words" in sql and not also:
            also.append(0)
            with ThreadPoolExecutor(1) as pool:
                also.append(
                    len(pool.submit(store.keywords.lexical, APPLE, 5, Filters()).result(timeout=60))
                )
        return read(self, sql, values)

    monkeypatch.setattr(Connection, "all", interrupted)
    store = SqliteStore(file)
    fill(store)
    also.clear()
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 1
    assert also == [0, 1]
    store.close()


def test_a_thread_that_ends_takes_its_connection_along(file: Path) -> None:
    store = SqliteStore(file)
    for _ in range(5):
        thread = threading.Thread(target=store.documents.stored)
        thread.start()
        thread.join()
    assert len(store.connection._readers) == 0
    store.close()


def test_close_waits_for_those_who_read(file: Path) -> None:
    for _ in range(20):
        store = SqliteStore(file)
        fill(store, 3)
        begun = threading.Barrier(4)

        def read(store: SqliteStore = store, begun: threading.Barrier = begun) -> str:
            begun.wait()
            try:
                while True:
                    store.keywords.lexical(APPLE, 5, Filters())
            except StoreError as error:
                return str(error)

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            begun.wait()
            store.close()
            assert {r.result(timeout=60) for r in readers} == {"the memory is closed"}


def test_a_closed_store_says_so(file: Path) -> None:
    store = SqliteStore(file)
    store.documents.stored()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.documents.stored()
    with pytest.raises(StoreError, match="closed"):
        fill(store)


def test_an_index_on_read_only_media_can_be_searched(file: Path) -> None:
    store = SqliteStore(file)
    fill(store)
    store.close()
    reader = SqliteStore(file, read_only=True)
    assert len(reader.keywords.lexical(APPLE, 5, Filters())) == 1
    with pytest.raises(StoreError, match="cannot be written"):
        fill(reader)
    reader.close()


@pytest.mark.parametrize(
    ("kind", "place", "expected"),
    [
        ("ext4", "/", False),
        ("nfs4", "/", True),
        ("nfs4", "/somewhere/else", False),
        ("cifs", "SHARE", True),
        ("fuse.sshfs", "/", True),
        ("tmpfs", "/", False),
    ],
)
def test_network_file_systems_are_known_by_their_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str, expected: bool
) -> None:
    folder = tmp_path / "a share"
    folder.mkdir()
    mount = place.replace("SHARE", str(folder).replace(" ", "\\040"))
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\nx / ext4 rw 0 0\nhost:/x {mount} {kind} rw 0 0\n")
    monkeypatch.setattr(network_fs, "MOUNTS", mounts)
    assert on_network(folder) is expected


def test_without_a_list_of_mounts_nothing_is_on_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_fs, "MOUNTS", tmp_path / "none")
    assert not on_network(tmp_path)


def test_on_the_network_a_rollback_journal_is_used(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def everywhere(_path: Path) -> bool:
        return True

    monkeypatch.setattr(module, "on_network", everywhere)
    store: Any = SqliteStore(file)
    assert store.connection.db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    fill(store)
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 1
    store.close()


def test_a_sound_index_that_grew_since_the_last_look_is_still_sound(file: Path) -> None:
    store = SqliteStore(file)
    assert store.audit() == []
    fill(store, 3)
    assert store.audit() == []
    fill(store, 30, words="pear")
    store.check()
    assert store.audit() == []
    store.close()


def look(file: Path) -> None:
    store = SqliteStore(file)
    try:
        store.check()
    finally:
        store.close()


def test_a_flipped_bit_on_any_page_is_damage(file: Path) -> None:
    store = SqliteStore(file)
    fill(store, 200)
    store.connection.db.execute("VACUUM")  # no page is free, so all of them are read
    store.close()
    whole = file.read_bytes()
    assert whole[20] == 8, "room for a checksum"
    for page in range(len(whole) // 8192):
        data = bytearray(whole)
        data[page * 8192 + 8192 // 2] ^= 4
        file.write_bytes(data)
        with pytest.raises(StoreDamagedError):
            look(file)


def test_other_databases_of_the_process_are_left_as_they_are(tmp_path: Path, file: Path) -> None:
    usual = apsw.vfs_names()[0]
    SqliteStore(file).close()
    assert apsw.vfs_names()[0] == usual != "cksmvfs"


def test_a_file_that_was_swapped_and_a_wal_that_was_taken_are_noticed(
    file: Path, tmp_path: Path
) -> None:
    store = SqliteStore(file)
    fill(store)
    assert not store.swapped()
    Path(f"{file}-wal").rename(tmp_path / "aside")
    with pytest.raises(StoreDamagedError, match="WAL"):
        store.swapped()
    (tmp_path / "aside").rename(f"{file}-wal")
    assert not store.swapped()
    file.rename(tmp_path / "old.sqlite")
    assert store.swapped()
    SqliteStore(file).close()
    assert store.swapped()
    store.close()


def test_without_the_extension_an_index_works_as_before(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "checking_vfs", lambda: None)
    store = SqliteStore(file)
    fill(store, 3)
    assert store.audit() == []
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 3
    store.close()
    monkeypatch.undo()
    look(file)


def test_a_file_that_another_process_is_just_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a new file is in WAL mode SQLite says `busy` at once, whatever the timeout."""
    prepare, times = Connection._prepare, []

    def busy_at_first(self: Connection) -> None:
        times.append(1)
        if len(times) < 3:
            raise apsw.BusyError("locked")
        prepare(self)

    monkeypatch.setattr(Connection, "_prepare", busy_at_first)
    monkeypatch.setattr("notewell.store.sqlite.connection._OPEN_AGAIN_S", 0.0)
    (tmp_path / "index.sqlite").touch()
    SqliteStore(tmp_path / "index.sqlite").close()
    assert len(times) == 3
    times.clear()
    monkeypatch.setattr("notewell.store.sqlite.connection.BUSY_TIMEOUT_MS", 0)
    with pytest.raises(StoreBusyError, match="writing"):
        SqliteStore(tmp_path / "other.sqlite")
