"""What only the PostgreSQL store promises: schema, workspaces, claims, notices, locks; the port is in conformance."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psycopg
import pytest

from recollect.errors import StoreBusyError, StoreError, StoreVersionError
from recollect.ports import Sought
from recollect.store import postgres_vectors
from recollect.store.postgres import PostgresStore
from recollect.store.postgres_pool import driver, shown
from recollect.types import Chunk, Document, Facts, Filters
from tests.postgres import Server

MODEL = "model@4"


@pytest.fixture
def store(database: str, tmp_path: Path) -> Iterator[PostgresStore]:
    made = PostgresStore(database, workspace=str(tmp_path))
    yield made
    made.close()


def chunk(path: str, text: str, line: int = 1) -> Chunk:
    return Chunk(f"{path}/{text}", path, "memory", line, line, (), text, f"hash of {text}")


def put(store: PostgresStore, path: str, *texts: str) -> list[Chunk]:
    chunks = [chunk(path, text, n) for n, text in enumerate(texts, start=1)]
    store.put(Document(path, "memory", 1, 1, ""), f"digest of {texts}", Facts(), chunks)
    return store.chunks_of(path)


def unit(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    made = np.asarray(values, dtype=np.float32)
    return made / np.float32(np.linalg.norm(made))


def test_the_address_is_shown_without_its_password() -> None:
    url = "postgresql://mira:secret@db.example:5433/notes?sslmode=require"
    assert shown(url) == "postgresql://mira@db.example:5433/notes"
    assert shown("host=db.example dbname=notes password=secret") == "postgresql://db.example/notes"
    with pytest.raises(StoreError, match="not one that PostgreSQL understands") as caught:
        shown("postgresql://mira:sec%ret@db.example/notes")
    assert "sec" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError) as caught:
        driver()
    assert caught.value.hint == "pip install 'recollect[postgres]'"


def test_who_uses_a_file_never_loads_the_driver() -> None:
    code = "import sys, recollect.memory; print([m for m in sys.modules if 'psycopg' in m or 'store.postgres' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_workspaces_and_agents_do_not_see_one_another(database: str, tmp_path: Path) -> None:
    stores = [PostgresStore(database, workspace=str(tmp_path), agent=agent) for agent in ("", "one", "two")]
    for n, one in enumerate(stores):
        put(one, "same.md", f"apple {n}")
        one.put_vectors(MODEL, {f"hash of apple {n}": unit(1, n, 0, 0)})
    for n, one in enumerate(stores):
        (only,) = one.chunks_of("same.md")
        assert only.text == f"apple {n}"
        assert [s.row for s in one.lexical(Sought(("appl",)), 9, Filters())] == [only.row]
        assert [s.row for s in one.nearest(MODEL, unit(1, 0, 0, 0), 9, Filters()).rows] == [only.row]
        assert one.term_counts(["appl"]).found_in == {"appl": 1}, "statistics are the workspace's own"
        assert one.counts()["chunks"] == 1
        one.close()


def test_many_that_open_an_empty_database_at_once_make_one_schema(postgres: Server) -> None:
    url = postgres.database("empty")

    def opened(n: int) -> int:
        store = PostgresStore(url, workspace=f"w{n % 2}")
        put(store, f"{n}.md", "text")
        store.close()
        return n

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(opened, range(6))) == list(range(6))
    name = Server.name_in(url)
    assert postgres.execute("SELECT version FROM recollect.versions", name) == [(1,)]
    for n in range(2):
        store = PostgresStore(url, workspace=f"w{n}")
        assert len(store.documents()) == 3
        assert store.audit() == []
        store.close()


def test_a_newer_schema_is_refused_and_left_alone(postgres: Server) -> None:
    url = postgres.database("empty")
    PostgresStore(url, workspace="w").close()
    name = Server.name_in(url)
    postgres.execute("INSERT INTO recollect.versions VALUES (99)", name)
    with pytest.raises(StoreVersionError, match="newer recollect"):
        PostgresStore(url, workspace="w")
    assert postgres.execute("SELECT max(version) FROM recollect.versions", name) == [(99,)]


def test_an_empty_database_is_not_made_by_a_reader(postgres: Server) -> None:
    url = postgres.database("empty")
    with pytest.raises(StoreVersionError, match="older version or empty"):
        PostgresStore(url, workspace="w", read_only=True)


def test_a_database_without_the_extension_says_what_is_to_be_done(postgres: Server) -> None:
    with pytest.raises(StoreError, match="lacks pgvector") as caught:
        PostgresStore(postgres.database(), workspace="w")
    assert "CREATE EXTENSION vector" in caught.value.hint


def test_a_reader_reads_and_does_not_write(store: PostgresStore, database: str) -> None:
    put(store, "a.md", "apple")
    reader = PostgresStore(database, workspace=store.workspace, read_only=True)
    assert len(reader.lexical(Sought(("appl",)), 5, Filters())) == 1
    with pytest.raises(StoreError, match="takes no writes"):
        put(reader, "b.md", "pear")
    assert reader.lag_s() is None
    with pytest.raises(StoreError, match="has no workspace"):
        PostgresStore(database, workspace="never made", read_only=True)
    reader.close()


def test_a_closed_store_says_so(database: str, tmp_path: Path) -> None:
    store = PostgresStore(database, workspace=str(tmp_path))
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.documents()


def test_two_syncs_of_one_document_converge(store: PostgresStore, database: str) -> None:
    """Both write versions of the same documents again and again: what is left is one version of each, whole."""
    others = [PostgresStore(database, workspace=store.workspace) for _ in range(3)]

    def write(who: int) -> None:
        for n in range(6):
            for name in ("a.md", "b.md") if who % 2 else ("b.md", "a.md"):
                put(others[who], name, *(f"version{who}x{n} word{line}" for line in range(4)))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    for name in ("a.md", "b.md"):
        versions = {c.text.split()[0] for c in store.chunks_of(name)}
        assert len(store.chunks_of(name)) == 4
        assert len(versions) == 1
    assert store.audit() == []
    for other in others:
        other.close()


def test_writers_and_readers_side_by_side(database: str, tmp_path: Path) -> None:
    crowd(database, str(tmp_path), writers=4, readers=4, seconds=1.5)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_eight_writers_and_eight_readers_for_a_minute(database: str, tmp_path: Path) -> None:
    crowd(database, str(tmp_path), writers=8, readers=8, seconds=60)


def crowd(url: str, workspace: str, *, writers: int, readers: int, seconds: float) -> None:
    """Nobody meets an error, every document is there at the end, and no reader sees half of one."""
    until = time.monotonic() + seconds
    written: dict[str, int] = {}

    def write(who: int) -> None:
        store = PostgresStore(url, workspace=workspace)
        n = 0
        while time.monotonic() < until:
            path = f"{who}/{n % 20}.md"
            chunks = put(store, path, *(f"apple turn{n} line{line}" for line in range(3)))
            store.put_vectors(MODEL, {c.content_hash: unit(1, who, n % 7, 1) for c in chunks})
            written[path] = n
            n += 1
        store.close()

    def read(who: int) -> None:
        store = PostgresStore(url, workspace=workspace)
        while time.monotonic() < until:
            found = store.lexical(Sought(("appl",)), 20, Filters())
            store.nearest(MODEL, unit(1, who, 1, 1), 20, Filters())
            for path in list(written)[:3]:
                seen = store.chunks_of(path)
                assert len(seen) == 3
                assert len({c.text.split()[1] for c in seen}) == 1, "one version, whole"
            assert len(found) <= 20
        store.close()

    with ThreadPoolExecutor(writers + readers) as pool:
        for done in [*(pool.submit(write, n) for n in range(writers)), *(pool.submit(read, n) for n in range(readers))]:
            done.result()
    store = PostgresStore(url, workspace=workspace)
    for path, n in written.items():
        assert {c.text.split()[1] for c in store.chunks_of(path)} == {f"turn{n}"}
    assert set(store.documents()) == set(written)
    assert store.audit() == []
    store.close()


def test_claims_are_for_one_worker_each(store: PostgresStore, database: str) -> None:
    put(store, "a.md", *(f"text {n}" for n in range(60)))
    workers = [PostgresStore(database, workspace=store.workspace) for _ in range(4)]
    done: Counter[int] = Counter()

    def work(worker: PostgresStore) -> None:
        while rows := worker.claim(MODEL, 7, 30.0):
            done.update(rows)
            chunks = worker.chunks(rows)
            worker.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks.values()})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, workers))
    assert len(done) == 60
    assert set(done.values()) == {1}, "no text was embedded twice"
    assert store.missing(MODEL) == []
    for worker in workers:
        worker.close()


def test_a_lease_runs_out_is_given_back_or_ends_with_the_text(store: PostgresStore) -> None:
    one, two, three = put(store, "a.md", "one", "two", "three")
    assert store.claim(MODEL, 1, 30.0) == [three.row], "in the order of missing"
    assert store.claim(MODEL, 5, 0.0) == [two.row, one.row]
    assert store.claim(MODEL, 1, 30.0) == [two.row], "its lease had run out"
    assert store.claim(MODEL, 5, 30.0) == [one.row]
    assert store.claim(MODEL, 5, 30.0) == []
    store.release(MODEL, [three.content_hash])
    assert store.claim(MODEL, 5, 30.0) == [three.row]
    store.release(MODEL, [c.content_hash for c in (one, two, three)])
    store.refuse(MODEL, {two.content_hash: "no"})
    put(store, "a.md", "one")
    assert store.claim(MODEL, 5, 30.0) == [one.row]
    put(store, "a.md", "one", "four")
    assert store.chunks(store.claim(MODEL, 5, 30.0)).popitem()[1].text == "four"


def test_a_change_is_heard_of(store: PostgresStore, database: str) -> None:
    assert store.listen(0.01) is None
    heard: list[int | None] = []
    other = PostgresStore(database, workspace=store.workspace)
    thread = threading.Thread(target=lambda: heard.append(other.listen(20.0)))
    thread.start()
    while thread.is_alive():
        put(store, "a.md", f"text {time.monotonic_ns()}")
        thread.join(0.02)
    assert heard[0] is not None
    assert 0 < heard[0] <= store.generation
    other.close()


def test_the_index_lock_is_for_one_at_a_time_and_of_one_workspace(store: PostgresStore, database: str) -> None:
    other = PostgresStore(database, workspace=store.workspace)
    elsewhere = PostgresStore(database, workspace=store.workspace, agent="another")
    with store.exclusive(0.0) as mine:
        assert mine
        with other.exclusive(0.02) as theirs, elsewhere.exclusive(0.0) as free:
            assert (theirs, free) == (False, True)
    with other.exclusive(0.0) as theirs:
        assert theirs
    for one in (other, elsewhere):
        one.close()


def test_whoever_waits_too_long_for_the_write_lock_is_told(store: PostgresStore, database: str) -> None:
    other = PostgresStore(database, workspace=store.workspace, timeout_s=0.2)
    with store.writing(), pytest.raises(StoreBusyError):
        other.set_meta("key", "value")
    other.set_meta("key", "value")
    assert store.get_meta("key") == "value"
    other.close()


def test_vectors_come_in_while_others_do(store: PostgresStore, database: str) -> None:
    chunks = put(store, "a.md", *(f"text {n}" for n in range(40)))
    other = PostgresStore(database, workspace=store.workspace)
    with store.writing(shared=True):
        store.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks[:20]})
        store._local.changed = False  # the count of changes is the one row that both write
        store._run("SELECT 1")
    other.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks[20:]})
    assert store.coverage(MODEL) == (40, 40)
    other.close()


def test_a_large_workspace_gets_an_index_that_finds_the_same(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", 1000)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(3000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = put(store, "a.md", *(f"text {n}" for n in range(1500)))
    chunks += put(store, "b.md", *(f"more {n}" for n in range(1500)))
    store.put_vectors("m", {c.content_hash: v for c, v in zip(chunks, vectors, strict=True)})
    questions = vectors[:20] + rng.normal(size=(20, 32)).astype(np.float32) * 0.3
    exact = [store.nearest("m", q, 50, Filters()) for q in questions]
    only = [store.nearest("m", q, 50, Filters(path="b.md")) for q in questions]
    assert store.settle("m")
    assert store.settle("m"), "there already"
    shared = few = 0
    for q, truth, narrow in zip(questions, exact, only, strict=True):
        found = store.nearest("m", q, 50, Filters())
        scores = {s.row: s.score for s in truth.rows}
        shared += len(scores.keys() & {s.row for s in found.rows})
        assert all(scores[s.row] == s.score for s in found.rows if s.row in scores), "cosines are computed exactly"
        assert (found.mean, found.deviation) == pytest.approx((truth.mean, truth.deviation), abs=0.01)
        assert found.count == 3000
        few += len({s.row for s in narrow.rows} & {s.row for s in store.nearest("m", q, 50, Filters(path="b.md")).rows})
    assert shared / 1000 >= 0.98
    assert few / 1000 >= 0.98, "a filter does not starve it"
    store.put_vectors("m", {chunks[0].content_hash: questions[0] / np.linalg.norm(questions[0])})
    assert store.nearest("m", questions[0], 1, Filters()).rows[0].row == chunks[0].row, "what comes later is in it"
    indexes = f"SELECT count(*) FROM pg_class WHERE relname LIKE 'vectors\\_hnsw\\_{store._w}\\_%%'"
    assert store._all(indexes, {"x": 1}) == [(1,)]
    store.prune([])
    assert store._all(indexes, {"x": 1}) == [(0,)], "a model takes its index along"


def test_a_name_of_another_role_is_refused_with_the_reason(database: str, postgres: Server, tmp_path: Path) -> None:
    PostgresStore(database, workspace=str(tmp_path)).close()
    name = Server.name_in(database)
    with pytest.raises(StoreError, match="may not") as caught:
        PostgresStore(postgres.url(name, "bob"), workspace=str(tmp_path))
    assert isinstance(caught.value.__cause__, psycopg.Error)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM recollect.postings WHERE workspace = {w} AND term = 'appl'", "passages have no keywords"),
        ("UPDATE recollect.terms SET found_in = 9 WHERE workspace = {w}", "words are not counted as they stand"),
        ("UPDATE recollect.state SET chunks = 9 WHERE workspace = {w}", "counts of passages are wrong"),
        ("DELETE FROM recollect.unjudged WHERE workspace = {w}", "passages were never compared"),
        ("DELETE FROM recollect.models WHERE workspace = {w}", "vectors have no model"),
    ],
)
def test_an_audit_names_what_does_not_agree(store: PostgresStore, postgres: Server, damage: str, told: str) -> None:
    (one,) = put(store, "a.md", "apple")
    store.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    assert store.audit() == []
    postgres.execute(damage.format(w=store._w), store.name.rpartition("/")[2])
    assert any(told in fault for fault in store.audit())


def test_a_deadlock_is_tried_again(store: PostgresStore, database: str) -> None:
    """Two write the same two rows, each from its own end: the server ends one of them, and both are written."""
    other = PostgresStore(database, workspace=store.workspace)
    both = threading.Barrier(2, timeout=20)
    tries: Counter[str] = Counter()

    def write(who: PostgresStore, name: str, *keys: str) -> None:
        def work() -> None:
            tries[name] += 1
            for n, key in enumerate(keys):
                who.set_meta(key, name)
                if not n and tries[name] == 1:
                    both.wait()

        who._written(work, shared=True)

    with ThreadPoolExecutor(2) as pool:
        for done in (pool.submit(write, store, "one", "a", "b"), pool.submit(write, other, "two", "b", "a")):
            done.result()
    assert sorted(tries.values()) == [1, 2]
    assert store.get_meta("a") == store.get_meta("b")
    other.close()
