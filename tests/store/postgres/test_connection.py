"""A server that is down, dies, is slow, is full or is a replica: a clear error in time, and nothing
half written.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from notewell.errors import StoreAwayError, StoreBusyError, StoreError
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.postgres import Server, new_folder, programs, running, within_reach
from tests.store.made import put_document

MODEL = "model@4"
APPLE = Sought(("appl",))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server for these tests alone, to be stopped and killed; each leaves it running."""
    with running() as made:
        yield made


def put(store: PostgresStore, path: str, *texts: str) -> None:
    chunks = [
        Chunk(f"{path}/{text}", path, "memory", n, n, (), text, f"{path} {text}")
        for n, text in enumerate(texts, start=1)
    ]
    put_document(store, Document(path, "memory", 1, 1, ""), "digest", Facts(), chunks)


def test_a_server_that_does_not_exist_is_reported_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("none")
    with pytest.raises(StoreAwayError, match="cannot be reached") as caught:
        PostgresStore(
            f"postgresql://mira:secret@/notes?host={folder}", workspace="w", timeout_s=3600.0
        )
    assert "secret" not in f"{caught.value}{caught.value.hint}"


def test_a_server_that_went_away_is_an_error_and_one_that_came_back_answers(server: Server) -> None:
    store = PostgresStore(server.database("empty"), workspace="w", timeout_s=3600.0)
    put(store, "a.md", "apple")
    server.stop("fast")
    with pytest.raises(StoreAwayError):
        store.keywords.lexical(APPLE, 5, Filters())
    with pytest.raises(StoreAwayError):
        put(store, "b.md", "apple")
    server.start()
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 1
    server.stop("fast")
    server.start()
    put(store, "b.md", "apple")  # on a connection that broke while idle
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 2
    store.close()


def test_a_read_whose_connection_was_cut_is_tried_again(server: Server) -> None:
    store = PostgresStore(server.database("empty"), workspace="w")
    put(store, "a.md", "apple")
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'owner'"
    assert server.execute(cut)[0][0] >= 1
    assert len(store.keywords.lexical(APPLE, 5, Filters())) == 1
    server.execute(cut)
    assert store.vectors.nearest(MODEL, np.ones(4, dtype=np.float32), 5, Filters()).rows == ()
    store.close()


def test_a_transaction_whose_connection_was_cut_leaves_nothing(server: Server) -> None:
    store = PostgresStore(server.database("empty"), workspace="w")
    put(store, "kept.md", "apple")

    def write() -> None:
        with store.writing():
            put(store, "lost.md", "apple")
            server.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = "
                "'owner'"
            )
            put(store, "lost too.md", "apple")

    with pytest.raises(StoreAwayError):
        write()
    assert list(store.documents.stored()) == ["kept.md"]
    put(store, "again.md", "apple")
    assert store.audit() == []
    store.close()


def test_kill_nine_in_the_middle_of_writes_leaves_no_half_documents(server: Server) -> None:
    """What was acknowledged is there; anything else is there completely or not at all."""
    url = server.database("empty")
    acknowledged: dict[str, int] = {}
    for round_ in range(3):
        stop = threading.Event()

        def write(who: int, stop: threading.Event = stop, round_: int = round_) -> None:
            with (
                contextlib.suppress(StoreError),
                contextlib.closing(PostgresStore(url, workspace="w", timeout_s=5.0)) as store,
            ):
                for n in range(10_000):
                    if stop.is_set():
                        break
                    path, turn = f"{who}/{n % 9}.md", round_ * 100_000 + n
                    put(store, path, *(f"apple turn{turn} line{line}" for line in range(5)))
                    acknowledged[path] = turn
                    keys = [f"{path} apple turn{turn} line{line}" for line in range(5)]
                    store.vectors.put_vectors(
                        MODEL, {key: np.ones(4, dtype=np.float32) for key in keys}
                    )

        threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        before = len(acknowledged)
        while (
            len(acknowledged) < before + 6
            and max(acknowledged.values(), default=-1) < round_ * 100_000 + 3
        ):
            assert time.monotonic() < until
            time.sleep(0.01)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join(60)
        server.start()
        store = PostgresStore(url, workspace="w")
        assert store.audit() == []
        for path, turn in acknowledged.items():
            texts = [c.text for c in store.documents.chunks_of(path)]
            assert len(texts) == 5
            (version,) = {int(text.split()[1].removeprefix("turn")) for text in texts}
            assert version >= turn, "nothing that was acknowledged is lost"
            acknowledged[path] = version
        store.close()


def test_a_slow_statement_ends_at_the_timeout(server: Server) -> None:
    store = PostgresStore(server.database("empty"), workspace="w", timeout_s=0.3)
    with pytest.raises(StoreBusyError, match=r"within 0\.3 s"):
        store.connection.all("SELECT pg_sleep(3600)")
    assert store.documents.stored() == {}, "the next one is answered"
    store.close()


def test_many_searches_at_once_share_a_few_connections(server: Server) -> None:
    store = PostgresStore(server.database("empty"), workspace="w")
    put(store, "a.md", "apple")
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(5):
                assert len(store.keywords.lexical(APPLE, 5, Filters())) == 1
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert (
        server.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'owner'")[0][0] <= 8
    )
    store.close()


def test_a_server_without_a_free_connection_says_that_it_is_busy(server: Server) -> None:
    url = server.database("empty")
    # Not a limit of 1 and a connection that takes it: the server counts a connection until its
    # process has ended, which is some time after the client has closed it or was refused, and
    # longer on a busy machine.
    server.execute(f"ALTER DATABASE {Server.name_in(url)} CONNECTION LIMIT 0")
    with pytest.raises(StoreBusyError) as caught:
        PostgresStore(url, workspace="w")
    assert "pooler" in caught.value.hint
    server.execute(f"ALTER DATABASE {Server.name_in(url)} CONNECTION LIMIT -1")
    PostgresStore(url, workspace="w").close()


def test_a_replica_answers_reports_its_lag_and_takes_over(server: Server) -> None:
    url = server.database("empty")
    store = PostgresStore(url, workspace="w")
    put(store, "a.md", "apple")
    with new_folder() as folder:
        replica = Server(server.programs, folder, hot_standby="on")
        replica.run(
            "pg_basebackup",
            "-D",
            replica.data,
            "-h",
            server.folder,
            "-U",
            "admin",
            "-R",
            "-c",
            "fast",
        )
        replica.start()
        try:
            there = url.replace(str(server.folder), str(folder))
            reader = PostgresStore(there, workspace="w", read_only=True)
            put(store, "b.md", "apple")
            until = time.monotonic() + 60
            while len(reader.keywords.lexical(APPLE, 5, Filters())) < 2:
                assert time.monotonic() < until, "what the primary has comes to the replica"
                time.sleep(0.01)
            assert reader.lag_s() is not None
            assert store.lag_s() is None
            assert reader.shared.listen(0.05) is None
            with pytest.raises(StoreError, match="takes no writes"):
                put(reader, "c.md", "apple")
            replica.execute("SELECT pg_wal_replay_pause()")
            put(store, "c.md", "apple")
            assert len(reader.keywords.lexical(APPLE, 5, Filters())) == 2, (
                "a replica that lags answers with what it has"
            )
            replica.execute("SELECT pg_wal_replay_resume()")
            # The primary dies: an address with both names finds the one that takes writes now.
            both = url.replace(f"host={server.folder}", f"host={server.folder},{folder}")
            pair = PostgresStore(both, workspace="w", timeout_s=60.0)
            while len(reader.documents.stored()) < 3:
                assert time.monotonic() < until
                time.sleep(0.01)
            server.kill()
            replica.run("pg_ctl", "-D", replica.data, "-w", "promote")
            assert len(pair.keywords.lexical(APPLE, 5, Filters())) == 3
            put(pair, "d.md", "apple")
            assert len(reader.keywords.lexical(APPLE, 5, Filters())) == 4
            assert pair.audit() == []
            for one in (reader, pair):
                one.close()
        finally:
            replica.stop()
            server.start()
    store.close()


def test_programs_in_a_private_folder_can_be_started(tmp_path: Path) -> None:
    """A checkout may be readable by its owner alone, and the server does not run as root."""
    closed, package = tmp_path / "closed", programs().parent.parent
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, closed / part.name, symlinks=True)
    closed.chmod(0o700)
    with new_folder() as folder:
        server = (
            Server(within_reach(closed / package.name / "pginstall" / "bin", folder), folder)
            .make()
            .start()
        )
        try:
            assert server.execute("SELECT 1") == [(1,)]
        finally:
            server.stop()
