"""What is kept of earlier readings is never older than the index, whichever connection changed it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.ports import Copy, Sought
from recollect.store import recent
from recollect.store.sqlite import SqliteStore
from recollect.types import Chunk, Document, Facts, Filters

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
    store.put(Document(path, "memory", 1, 1, ""), text + title, Facts(title=title), [one])
    return store.chunks_of(path)[0]


def test_what_another_writes_is_seen_at_once(stores: tuple[SqliteStore, SqliteStore]) -> None:
    reader, writer = stores
    one = put(writer, "a.md", "the kettle is red")
    assert reader.chunks([one.row])[one.row] == one
    assert reader.chunks([one.row])[one.row] is reader.chunks([one.row])[one.row], "it was kept"
    put(writer, "a.md", "the kettle is red", title="Kettle", line=7)
    assert (reader.chunks([one.row])[one.row].facts.title, reader.chunks([one.row])[one.row].start_line) == (
        "Kettle",
        7,
    )
    assert reader.term_places([one.row], Sought(("kettl", "zebra"))).body.T.tolist() == [[0, 0, 1]]
    two = put(writer, "b.md", "a zebra")
    assert reader.term_places([two.row], Sought(("zebra",))).body.T.tolist() == [[0, 0, 1]], "a new word is known"
    writer.drop(["a.md"])
    assert reader.chunks([one.row, two.row]) == {two.row: two}
    assert reader.term_places([one.row], Sought(("kettl",))).rows == []


def test_a_later_judgement_counts(stores: tuple[SqliteStore, SqliteStore]) -> None:
    reader, writer = stores
    one, two = put(writer, "a.md", "the kettle is red"), put(writer, "b.md", "The kettle is red!")
    assert reader.relations([one, two], NONE) == {}
    writer.put_copies([Copy(one, b"f", b"f", "1"), Copy(two, b"g", b"g", "2")])
    assert reader.relations([one, two], NONE) == {}
    writer.join(b"f", b"g")
    assert reader.relations([one, two], NONE)[one.row].superseded_by == two.id
    writer.judge_anew()
    assert reader.relations([one, two], NONE) == {}


def test_a_transaction_reads_its_own_and_what_it_takes_back_is_not_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    one = put(store, "a.md", "the kettle is red")
    assert store.chunks([one.row])
    rows: list[int] = []

    def begun_and_given_up() -> None:
        with store.writing():
            rows.append(row := put(store, "b.md", "a zebra").row)
            assert store.chunks([row])[row].text == "a zebra"
            assert store.term_places([row], Sought(("zebra",))).body.T.tolist() == [[0, 0, 1]]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        begun_and_given_up()
    assert list(store.chunks([one.row, *rows])) == [one.row]
    assert store.term_counts(["zebra"]).found_in == {"zebra": 0}
    store.close()


def test_it_begins_anew_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 3)
    store = SqliteStore(tmp_path / "index.sqlite")
    chunks = [put(store, f"{n}.md", f"text {n}") for n in range(12)]
    for some in (chunks[:4], chunks[4:9], chunks[2:6], chunks):
        assert list(store.chunks([c.row for c in some]).values()) == some
    kept = store._lately
    assert len(kept.chunks) == 12
    store.chunks([chunks[0].row])
    assert store._lately is not kept
    assert list(store._lately.chunks) == [chunks[0].row]
    store.close()


def test_what_is_read_in_one_reading_is_of_one_moment(stores: tuple[SqliteStore, SqliteStore]) -> None:
    reader, writer = stores
    one = put(writer, "a.md", "the kettle is red")
    with reader.reading():
        assert reader.term_counts(["kettl"]).found_in == {"kettl": 1}
        two = put(writer, "b.md", "a kettle and a zebra")
        writer.drop(["a.md"])
        with reader.reading():
            assert list(reader.chunks([one.row, two.row])) == [one.row], "a reading inside it sees the same"
        assert reader.term_counts(["kettl", "zebra"]).found_in == {"kettl": 1, "zebra": 0}
        assert [s.row for s in reader.lexical(Sought(("kettl",)), 5, NONE)] == [one.row]
    assert list(reader.chunks([one.row, two.row])) == [two.row]
    assert [s.row for s in reader.lexical(Sought(("kettl",)), 5, NONE)] == [two.row]
