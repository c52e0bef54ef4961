"""What is kept of earlier readings is never older than the index, whichever connection changed
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from notewell.store.sqlite import read_cache
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Copy, Sought
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document

NONE = Filters()


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    """One that reads and, as another process would be, one that writes."""
    reader, writer = SqliteStore(tmp_path / "index.sqlite"), SqliteStore(tmp_path / "index.sqlite")
    yield reader, writer
    reader.close()
    writer.close()


def put(store: SqliteStore, path: str, text: str, *, title: str = "", line: int = 1) -> Chunk:
    one = Chunk(f"id {path}", path, "memory", line, line, (), text, f"hash {text}")
    put_document(store, Document(path, "memory", 1, 1, ""), text + title, Facts(title=title), [one])
    return store.documents.chunks_of(path)[0]


def test_what_another_writes_is_seen_at_once(stores: tuple[SqliteStore, SqliteStore]) -> None:
    reader, writer = stores
    one = put(writer, "a.md", "the kettle is red")
    assert reader.documents.chunks([one.row])[one.row] == one
    assert (
        reader.documents.chunks([one.row])[one.row] is reader.documents.chunks([one.row])[one.row]
    ), "it was kept"
    put(writer, "a.md", "the kettle is red", title="Kettle", line=7)
    assert (
        reader.documents.chunks([one.row])[one.row].facts.title,
        reader.documents.chunks([one.row])[one.row].start_line,
    ) == (
        "Kettle",
        7,
    )
    assert reader.keywords.term_places([one.row], Sought(("kettl", "zebra"))).body.T.tolist() == [
        [0, 0, 1]
    ]
    two = put(writer, "b.md", "a zebra")
    assert reader.keywords.term_places([two.row], Sought(("zebra",))).body.T.tolist() == [
        [0, 0, 1]
    ], "a new word is known"
    writer.documents.drop(["a.md"])
    assert reader.documents.chunks([one.row, two.row]) == {two.row: two}
    assert reader.keywords.term_places([one.row], Sought(("kettl",))).rows == []


def test_a_later_judgement_counts(stores: tuple[SqliteStore, SqliteStore]) -> None:
    reader, writer = stores
    one, two = put(writer, "a.md", "the kettle is red"), put(writer, "b.md", "The kettle is red!")
    assert reader.relations.related([one, two], NONE) == {}
    writer.relations.put_copies([Copy(one, b"f", b"f", "1"), Copy(two, b"g", b"g", "2")])
    assert reader.relations.related([one, two], NONE) == {}
    writer.relations.join(b"f", b"g")
    assert reader.relations.related([one, two], NONE)[one.row].superseded_by == two.id
    writer.relations.reset_judgements()
    assert reader.relations.related([one, two], NONE) == {}


def test_a_transaction_reads_its_own_and_what_it_takes_back_is_not_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    one = put(store, "a.md", "the kettle is red")
    assert store.documents.chunks([one.row])
    rows: list[int] = []

    def begun_and_given_up() -> None:
        with store.writing():
            rows.append(row := put(store, "b.md", "a zebra").row)
            assert store.documents.chunks([row])[row].text == "a zebra"
            assert store.keywords.term_places([row], Sought(("zebra",))).body.T.tolist() == [
                [0, 0, 1]
            ]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        begun_and_given_up()
    assert list(store.documents.chunks([one.row, *rows])) == [one.row]
    assert store.keywords.term_counts(["zebra"]).found_in == {"zebra": 0}
    store.close()


def test_a_full_cache_is_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_cache, "MOST", 3)
    store = SqliteStore(tmp_path / "index.sqlite")
    chunks = [put(store, f"{n}.md", f"text {n}") for n in range(12)]
    for some in (chunks[:4], chunks[4:9], chunks[2:6], chunks):
        assert list(store.documents.chunks([c.row for c in some]).values()) == some
    kept = store.connection._cache
    assert len(kept.chunks) == 12
    store.documents.chunks([chunks[0].row])
    assert store.connection._cache is not kept
    assert list(store.connection._cache.chunks) == [chunks[0].row]
    store.close()


def test_what_is_read_in_one_reading_is_of_one_moment(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    reader, writer = stores
    one = put(writer, "a.md", "the kettle is red")
    with reader.reading():
        assert reader.keywords.term_counts(["kettl"]).found_in == {"kettl": 1}
        two = put(writer, "b.md", "a kettle and a zebra")
        writer.documents.drop(["a.md"])
        with reader.reading():
            assert list(reader.documents.chunks([one.row, two.row])) == [one.row], (
                "a reading inside it sees the same"
            )
        assert reader.keywords.term_counts(["kettl", "zebra"]).found_in == {"kettl": 1, "zebra": 0}
        assert [s.row for s in reader.keywords.lexical(Sought(("kettl",)), 5, NONE)] == [one.row]
    assert list(reader.documents.chunks([one.row, two.row])) == [two.row]
    assert [s.row for s in reader.keywords.lexical(Sought(("kettl",)), 5, NONE)] == [two.row]


def test_a_reading_reads_meta_once_and_a_write_inside_it_is_seen_by_itself_alone(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    reader, writer = stores
    writer.set_meta("key", "before")
    asked: list[str] = []

    def note(_cursor: apsw.Cursor, sql: str, _values: apsw.Bindings | None) -> bool:
        asked.append(sql)
        return True

    with reader.reading():
        assert reader.connection._thread.db is not None
        reader.connection._thread.db.exec_trace = note
        writer.set_meta("key", "after")
        assert [reader.get_meta("key") for _ in range(3)] == ["before"] * 3
        assert reader.meta()["key"] == "before"
        assert reader.generation == 0
        assert asked == []
        with reader.writing():
            assert reader.get_meta("key") == "after", "a transaction sees what it would change"
    assert reader.get_meta("key") == "after"


def test_what_a_store_counts_for_itself_is_not_remembered() -> None:
    store = SqliteStore(None)
    put(store, "a.md", "the kettle is red")
    store.set_meta("mine", 1)
    assert store.remembered() == {"mine": 1}
