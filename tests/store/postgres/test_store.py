"""What only the PostgreSQL store promises: schema, workspaces, claims, notifications, locks; see
also conformance.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest

from notewell.errors import StoreBusyError, StoreError, StoreVersionError
from notewell.store.postgres import schema
from notewell.store.postgres import shared as shared_
from notewell.store.postgres.pool import Pool, display_name, driver
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.postgres import Server
from tests.store.made import put_document

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
    put_document(store, Document(path, "memory", 1, 1, ""), f"digest of {texts}", Facts(), chunks)
    return store.documents.chunks_of(path)


def unit(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    made = np.asarray(values, dtype=np.float32)
    return made / np.float32(np.linalg.norm(made))


def test_the_address_is_shown_without_its_password() -> None:
    url = "postgresql://mira:secret@db.example:5433/notes?sslmode=require"
    assert display_name(url) == "postgresql://mira@db.example:5433/notes"
    assert (
        display_name("host=db.example dbname=notes password=secret")
        == "postgresql://db.example/notes"
    )
    with pytest.raises(StoreError, match="not one that PostgreSQL understands") as caught:
        display_name("postgresql://mira:sec%ret@db.example/notes")
    assert "sec" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError) as caught:
        driver()
    assert caught.value.hint == "pip install 'notewell[postgres]'"


def test_an_index_in_a_file_never_loads_the_driver() -> None:
    code = (
        "import sys, notewell.memory; print([m for m in sys.modules if 'psycopg' in m or "
        "'store.postgres' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_workspaces_and_agents_do_not_see_one_another(database: str, tmp_path: Path) -> None:
    stores = [
        PostgresStore(database, workspace=str(tmp_path), agent=agent)
        for agent in ("", "one", "two")
    ]
    for n, one in enumerate(stores):
        put(one, "same.md", f"apple {n}")
        one.vectors.put_vectors(MODEL, {f"hash of apple {n}": unit(1, n, 0, 0)})
    for n, one in enumerate(stores):
        (only,) = one.documents.chunks_of("same.md")
        assert only.text == f"apple {n}"
        assert [s.row for s in one.keywords.lexical(Sought(("appl",)), 9, Filters())] == [only.row]
        assert [s.row for s in one.vectors.nearest(MODEL, unit(1, 0, 0, 0), 9, Filters()).rows] == [
            only.row
        ]
        assert one.keywords.term_counts(["appl"]).found_in == {"appl": 1}, (
            "statistics are the workspace's own"
        )
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
    assert postgres.execute("SELECT version FROM notewell.versions ORDER BY 1", name) == [
        (n + 1,) for n in range(len(schema.MIGRATIONS))
    ]
    for n in range(2):
        store = PostgresStore(url, workspace=f"w{n}")
        assert len(store.documents.stored()) == 3
        assert store.audit() == []
        store.close()


def test_a_newer_schema_is_refused_and_left_alone(postgres: Server) -> None:
    url = postgres.database("empty")
    PostgresStore(url, workspace="w").close()
    name = Server.name_in(url)
    postgres.execute("INSERT INTO notewell.versions VALUES (99)", name)
    with pytest.raises(StoreVersionError, match="newer notewell"):
        PostgresStore(url, workspace="w")
    assert postgres.execute("SELECT max(version) FROM notewell.versions", name) == [(99,)]


def test_an_older_database_is_brought_up_to_date_for_all_its_roles(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.database("empty")
    name = Server.name_in(url)
    with monkeypatch.context() as old, closing(Pool(url, read_only=False, timeout_s=9.0)) as pool:
        old.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        with pool.use() as raw:
            schema.migrate(raw, name="an old one", read_only=False)
    tables = "vectors, chunks, documents, state, meta, models, unjudged, pending, workspaces"
    w = 1
    document = (
        "path, source, digest, size, mtime_ns, changed, synced_ns, name, title, evergreen, "
        "importance, pinned"
    )
    chunk = (
        "id, document, start_line, end_line, heading, text, content_hash, length, origin, "
        "head, body, exact"
    )
    for sql in (
        f"SET search_path TO notewell; GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO bob",
        "GRANT USAGE ON SCHEMA notewell TO bob; GRANT SELECT ON notewell.versions TO bob",
        "GRANT MAINTAIN ON ALL TABLES IN SCHEMA notewell TO bob",
        (
            "INSERT INTO notewell.workspaces (name, agent, owner, members) "
            "VALUES ('w', '', 'owner', '{bob}')"
        ),
        f"INSERT INTO notewell.state (workspace) VALUES ({w})",
        (
            f"INSERT INTO notewell.documents (workspace, {document}, supersedes, tail)"
            f" VALUES ({w}, 'a.md', 'memory', '', 1, 1, '', 1, 'a', '', false, 0, false, '[]', '')"
        ),
        (
            f"INSERT INTO notewell.chunks (workspace, {chunk}) SELECT {w}, 'id' || n, d.id,"
            " n, n, '[]', 'plum', 'hash' || n, 1, '', 'a', 'plum plum', ''"
            " FROM notewell.documents d, generate_series(1, 300) n"
        ),
        f"INSERT INTO notewell.postings SELECT {w}, 'plum', row, 2, 0, 2 FROM notewell.chunks",
        f"INSERT INTO notewell.postings SELECT {w}, 'a', row, 0, 1, 2 FROM notewell.chunks",
        f"INSERT INTO notewell.terms VALUES ({w}, 'plum', 300), ({w}, 'a', 300)",
        f"INSERT INTO notewell.unjudged SELECT {w}, row FROM notewell.chunks",
        "UPDATE notewell.state SET chunks = 300, length = 300",
        "ANALYZE",
    ):
        postgres.execute(sql, name)
    owner = PostgresStore(url, workspace="w")
    assert owner.audit() == []
    assert owner.keywords.term_counts(["plum"]).found_in == {"plum": 300}
    bob = PostgresStore(postgres.url(name, "bob"), workspace="w", owner="owner")
    rows = [one.row for one in bob.keywords.lexical(Sought(("plum",)), 400, Filters())]
    assert len(rows) == 300
    bob.vectors.put_vectors(MODEL, {"hash1": unit(1, 0, 0, 0)}, windows={"hash1": b"codes"})
    assert list(owner.vectors.windows(MODEL, rows).values()) == [b"codes"]
    assert bob.scrub()[1], "it may vacuum what it may write"
    assert all(check.verdict != "fail" for check in owner.shared.health())
    bob.close()
    owner.close()


def test_an_empty_database_is_not_made_by_a_reader(postgres: Server) -> None:
    url = postgres.database("empty")
    with pytest.raises(StoreVersionError, match="older version or empty"):
        PostgresStore(url, workspace="w", read_only=True)


def test_a_database_without_the_extension_says_what_to_do(postgres: Server) -> None:
    with pytest.raises(StoreError, match="lacks pgvector") as caught:
        PostgresStore(postgres.database(), workspace="w")
    assert "CREATE EXTENSION vector" in caught.value.hint


def test_a_reader_reads_and_does_not_write(store: PostgresStore, database: str) -> None:
    put(store, "a.md", "apple")
    reader = PostgresStore(database, workspace=store.workspace, read_only=True)
    assert len(reader.keywords.lexical(Sought(("appl",)), 5, Filters())) == 1
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
        store.documents.stored()


def test_two_syncs_of_one_document_converge(store: PostgresStore, database: str) -> None:
    """Both write versions of the same documents again and again: one complete version of each is
    left.
    """
    others = [PostgresStore(database, workspace=store.workspace) for _ in range(3)]

    def write(who: int) -> None:
        for n in range(6):
            for name in ("a.md", "b.md") if who % 2 else ("b.md", "a.md"):
                put(others[who], name, *(f"version{who}x{n} word{line}" for line in range(4)))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    for name in ("a.md", "b.md"):
        versions = {c.text.split()[0] for c in store.documents.chunks_of(name)}
        assert len(store.documents.chunks_of(name)) == 4
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
    """No errors, every document is there at the end, and no reader sees half of one."""
    until = time.monotonic() + seconds
    written: dict[str, int] = {}

    def write(who: int) -> None:
        store = PostgresStore(url, workspace=workspace)
        n = 0
        while time.monotonic() < until:
            path = f"{who}/{n % 20}.md"
            chunks = put(store, path, *(f"apple turn{n} line{line}" for line in range(3)))
            store.vectors.put_vectors(
                MODEL, {c.content_hash: unit(1, who, n % 7, 1) for c in chunks}
            )
            written[path] = n
            n += 1
        store.close()

    def read(who: int) -> None:
        store = PostgresStore(url, workspace=workspace)
        while time.monotonic() < until:
            found = store.keywords.lexical(Sought(("appl",)), 20, Filters())
            store.vectors.nearest(MODEL, unit(1, who, 1, 1), 20, Filters())
            for path in list(written)[:3]:
                seen = store.documents.chunks_of(path)
                assert len(seen) == 3
                assert len({c.text.split()[1] for c in seen}) == 1, "one version, whole"
            assert len(found) <= 20
        store.close()

    with ThreadPoolExecutor(writers + readers) as pool:
        for done in [
            *(pool.submit(write, n) for n in range(writers)),
            *(pool.submit(read, n) for n in range(readers)),
        ]:
            done.result()
    store = PostgresStore(url, workspace=workspace)
    for path, n in written.items():
        assert {c.text.split()[1] for c in store.documents.chunks_of(path)} == {f"turn{n}"}
    assert set(store.documents.stored()) == set(written)
    assert store.audit() == []
    store.close()


def test_claims_are_for_one_worker_each(store: PostgresStore, database: str) -> None:
    put(store, "a.md", *(f"text {n}" for n in range(60)))
    workers = [PostgresStore(database, workspace=store.workspace) for _ in range(4)]
    done: Counter[int] = Counter()

    def work(worker: PostgresStore) -> None:
        while rows := worker.shared.claim(MODEL, 7, 30.0):
            done.update(rows)
            chunks = worker.documents.chunks(rows)
            worker.vectors.put_vectors(
                MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks.values()}
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, workers))
    assert len(done) == 60
    assert set(done.values()) == {1}, "no text was embedded twice"
    assert store.vectors.missing(MODEL) == []
    for worker in workers:
        worker.close()


def test_a_worker_gets_work_that_another_one_has_just_listed(
    store: PostgresStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, "a.md", *(f"text {n}" for n in range(6)))
    other = PostgresStore(database, workspace=store.workspace)
    list_missing = other.shared._list_missing

    def late(model: str) -> int:
        assert store.shared._list_missing(model) == 6
        return list_missing(model)

    monkeypatch.setattr(other.shared, "_list_missing", late)
    assert len(other.shared.claim(MODEL, 3, 30.0)) == 3
    other.close()


def test_values_are_read_once_inside_reading(store: PostgresStore, database: str) -> None:
    other = PostgresStore(database, workspace=store.workspace)
    store.set_meta("key", "old")
    with store.reading(), store.reading():
        assert (store.get_meta("key"), store.get_meta("none"), store.get_meta("chunks")) == (
            "old",
            None,
            0,
        )
        other.set_meta("key", "new")
        put(other, "a.md", "text")
        assert store.get_meta("key") == store.meta()["key"] == "old"
        assert store.get_meta("chunks") == 1, "a search must see that chunks changed"
        store.set_meta("mine", 1)
        assert store.get_meta("key") == "new", "after a write of its own a thread reads again"
        with store.writing():
            store.set_meta("mine", 2)
            assert store.get_meta("mine") == 2
    assert store.remembered() == {"key": "new", "mine": 2}
    assert store.meta() == {"key": "new", "mine": 2, "generation": 1, "chunks": 1}
    other.close()


def test_a_lease_runs_out_is_given_back_or_ends_with_the_text(store: PostgresStore) -> None:
    one, two, three = put(store, "a.md", "one", "two", "three")
    assert store.shared.claim(MODEL, 1, 30.0) == [three.row], "in the order of `missing`"
    assert store.shared.claim(MODEL, 5, 0.0) == [two.row, one.row]
    assert store.shared.claim(MODEL, 1, 30.0) == [two.row], "its lease had run out"
    assert store.shared.claim(MODEL, 5, 30.0) == [one.row]
    assert store.shared.claim(MODEL, 5, 30.0) == []
    store.shared.release(MODEL, [three.content_hash])
    assert store.shared.claim(MODEL, 5, 30.0) == [three.row]
    store.shared.release(MODEL, [c.content_hash for c in (one, two, three)])
    store.vectors.refuse(MODEL, {two.content_hash: "no"})
    put(store, "a.md", "one")
    assert store.shared.claim(MODEL, 5, 30.0) == [one.row]
    put(store, "a.md", "one", "four")
    assert store.documents.chunks(store.shared.claim(MODEL, 5, 30.0)).popitem()[1].text == "four"


def test_a_listener_gets_the_generation_of_a_change(store: PostgresStore, database: str) -> None:
    assert store.shared.listen(0.01) is None
    received: list[int | None] = []
    other = PostgresStore(database, workspace=store.workspace)
    thread = threading.Thread(target=lambda: received.append(other.shared.listen(60.0)))
    thread.start()
    while thread.is_alive():
        put(store, "a.md", f"text {time.monotonic_ns()}")
        thread.join(0.02)
    assert received[0] is not None
    assert 0 < received[0] <= store.generation
    other.close()


def test_the_index_lock_is_for_one_process_and_one_workspace(
    store: PostgresStore, database: str
) -> None:
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


def test_waiting_too_long_for_the_write_lock_is_an_error(
    store: PostgresStore, database: str
) -> None:
    other = PostgresStore(database, workspace=store.workspace, timeout_s=0.2)
    with store.writing(), pytest.raises(StoreBusyError):
        other.set_meta("key", "value")
    other.set_meta("key", "value")
    assert store.get_meta("key") == "value"
    other.close()


def test_two_processes_add_vectors_at_the_same_time(store: PostgresStore, database: str) -> None:
    chunks = put(store, "a.md", *(f"text {n}" for n in range(40)))
    other = PostgresStore(database, workspace=store.workspace)
    with store.connection.writing(shared=True):  # not held up by this one, nor by its lock
        other.vectors.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks[20:]})
        store.vectors.put_vectors(MODEL, {c.content_hash: unit(1, 0, 0, 0) for c in chunks[:20]})
    assert store.vectors.coverage(MODEL) == (40, 40)
    other.close()


def test_a_large_workspace_gets_an_index_that_finds_the_same(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_, "EXACT_UP_TO", 1000)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(3000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = put(store, "a.md", *(f"text {n}" for n in range(1500)))
    chunks += put(store, "b.md", *(f"more {n}" for n in range(1500)))
    store.vectors.put_vectors(
        "m", {c.content_hash: v for c, v in zip(chunks, vectors, strict=True)}
    )
    questions = vectors[:20] + rng.normal(size=(20, 32)).astype(np.float32) * 0.3
    exact = [store.vectors.nearest("m", q, 50, Filters()) for q in questions]
    only = [store.vectors.nearest("m", q, 50, Filters(path="b.md")) for q in questions]
    assert store.shared.settle("m")
    assert store.shared.settle("m"), "there already"
    shared = few = 0
    for q, truth, narrow in zip(questions, exact, only, strict=True):
        found = store.vectors.nearest("m", q, 50, Filters())
        scores = {s.row: s.score for s in truth.rows}
        shared += len(scores.keys() & {s.row for s in found.rows})
        assert all(scores[s.row] == s.score for s in found.rows if s.row in scores), (
            "cosines are computed exactly"
        )
        assert (found.mean, found.deviation) == pytest.approx(
            (truth.mean, truth.deviation), abs=0.01
        )
        assert found.count == 3000
        few += len(
            {s.row for s in narrow.rows}
            & {s.row for s in store.vectors.nearest("m", q, 50, Filters(path="b.md")).rows}
        )
    assert shared / 1000 >= 0.98
    assert few / 1000 >= 0.98, "a filter does not starve it"
    store.vectors.put_vectors(
        "m", {chunks[0].content_hash: questions[0] / np.linalg.norm(questions[0])}
    )
    assert store.vectors.nearest("m", questions[0], 1, Filters()).rows[0].row == chunks[0].row, (
        "what comes later is in it"
    )
    indexes = "SELECT count(*) FROM pg_class WHERE starts_with(relname, 'vectors_hnsw_$w_')"
    assert store.connection.all(indexes) == [(1,)]
    store.vectors.prune([])
    assert store.connection.all(indexes) == [(0,)], "the index of a model goes with it"


def test_a_name_of_another_role_is_refused_with_the_reason(
    database: str, postgres: Server, tmp_path: Path
) -> None:
    PostgresStore(database, workspace=str(tmp_path)).close()
    name = Server.name_in(database)
    with pytest.raises(StoreError, match="may not") as caught:
        PostgresStore(postgres.url(name, "bob"), workspace=str(tmp_path))
    assert isinstance(caught.value.__cause__, psycopg.Error)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (
            "DELETE FROM notewell.postings WHERE workspace = {w} AND term = 'appl'",
            "passages lack keywords",
        ),
        ("UPDATE notewell.postings SET n = 9 WHERE workspace = {w}", "words are counted wrong"),
        (
            "UPDATE notewell.state SET chunks = 9 WHERE workspace = {w}",
            "counts of passages are wrong",
        ),
        ("DELETE FROM notewell.unjudged WHERE workspace = {w}", "passages were never compared"),
        ("DELETE FROM notewell.models WHERE workspace = {w}", "vectors have no model"),
    ],
)
def test_an_audit_reports_what_disagrees(
    store: PostgresStore, postgres: Server, damage: str, fault: str
) -> None:
    (one,) = put(store, "a.md", "apple")
    store.vectors.put_vectors(MODEL, {one.content_hash: unit(1, 0, 0, 0)})
    assert store.audit() == []
    postgres.execute(damage.format(w=store.connection.workspace), store.name.rpartition("/")[2])
    assert any(fault in found for found in store.audit())


def test_a_deadlock_is_tried_again(store: PostgresStore, database: str) -> None:
    """Two write the same two rows, each from its own end: the server ends one of them, and both are
    written.
    """
    other = PostgresStore(database, workspace=store.workspace)
    both = threading.Barrier(2, timeout=60)
    tries: Counter[str] = Counter()

    def write(who: PostgresStore, name: str, *keys: str) -> None:
        def work() -> None:
            tries[name] += 1
            for n, key in enumerate(keys):
                who.set_meta(key, name)
                if not n and tries[name] == 1:
                    both.wait()

        who.connection.write(work, shared=True)

    with ThreadPoolExecutor(2) as pool:
        for done in (
            pool.submit(write, store, "one", "a", "b"),
            pool.submit(write, other, "two", "b", "a"),
        ):
            done.result()
    assert sorted(tries.values()) == [1, 2]
    assert store.get_meta("a") == store.get_meta("b")
    other.close()
