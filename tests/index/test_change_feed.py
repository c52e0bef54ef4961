from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest

from notewell.errors import StoreAwayError
from notewell.index.watch import ChangeFeed
from notewell.store.postgres.store import PostgresStore
from notewell.types import Document, Facts
from tests.conformance.test_store import chunk
from tests.store.made import put_document


@pytest.fixture
def stores(
    database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[PostgresStore]]:
    name = str(tmp_path_factory.mktemp("heard"))
    made = [PostgresStore(database, workspace=name) for _ in range(2)]
    yield made
    for store in made:
        store.close()


def put(store: PostgresStore, path: str) -> None:
    put_document(
        store, Document(path, "memory", 1, 1, path), path, Facts(), [chunk(path, f"text of {path}")]
    )


def test_a_change_of_another_machine_is_heard_at_once_and_none_is_lost(
    stores: list[PostgresStore],
) -> None:
    ours, theirs = stores
    heard: queue.Queue[int] = queue.Queue()
    hearing = ChangeFeed(ours.shared, heard.put)
    assert hearing.wait_ready(60.0)
    for n in range(5):
        put(theirs, f"memory/{n}.md")
    while heard.get(timeout=60.0) < theirs.generation:
        pass
    hearing.close()


def test_a_change_between_a_look_and_the_wait_ends_the_wait_at_once(
    stores: list[PostgresStore],
) -> None:
    ours, theirs = stores
    looked = ours.generation
    put(theirs, "memory/late.md")
    assert ours.shared.listen(60.0, since=looked) == theirs.generation > looked


def test_a_server_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notewell.index.watch._AGAIN_S", 0.0)
    heard: queue.Queue[int] = queue.Queue()

    class Moody:
        """Away at every second question; changed whenever it is asked."""

        asked = 0

        @property
        def generation(self) -> int:
            self.asked += 1
            if self.asked % 2:
                raise StoreAwayError("away")
            return self.asked

        def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
            return None

    hearing = ChangeFeed(Moody(), heard.put)  # type: ignore[arg-type]  # all that it asks of a store
    assert [heard.get(timeout=60.0) for _ in range(3)] == [4, 6, 8]
    hearing.close()
