"""Traits of forms on disk: those of deleted forms find nothing, and are deleted many at a time."""

from __future__ import annotations

from pathlib import Path

import apsw

from notewell.store.sqlite.sizes import SegmentSizes
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Copy
from notewell.types import Chunk, Document, Facts
from tests.store.made import put_document


def put(store: SqliteStore, count: int) -> list[Chunk]:
    for n in range(count):
        one = Chunk(f"id{n}", f"memory/{n}.md", "memory", 1, 1, (), f"apple {n}", f"hash{n}")
        put_document(store, Document(one.path, "memory", 1, 1, ""), f"{n}", Facts(), [one])
    return [store.documents.chunks_of(f"memory/{n}.md")[0] for n in range(count)]


def traits_kept(store: SqliteStore) -> int:
    return int(store.connection.own("SELECT count(*) FROM traits")[0][0])


def test_a_form_outlives_the_row_that_had_it_first() -> None:
    store = SqliteStore(None)
    chunks = put(store, 3)
    store.relations.put_copies(  # the first two are copies; traits come with the first of them
        [
            Copy(
                c,
                b"form%d" % (n // 2),
                b"form%d" % (n // 2),
                "1",
                traits=() if n == 1 else [7, 2**62 + n],
            )
            for n, c in enumerate(chunks)
        ]
    )
    assert list(store.relations.forms_like([7], 5)) == [b"form1", b"form0"]
    assert list(store.relations.forms_like([2**62], 5)) == [b"form0"]
    assert store.relations.known_forms([b"form0"], [7, 8, 2**62 + 2]) == (
        {b"form0"},
        {7, 2**62 + 2},
    )
    assert store.audit() == []
    store.documents.drop(["memory/0.md"])
    assert store.relations.forms_like([7], 5)[b"form0"].id == "id1"
    store.documents.drop(["memory/1.md"])
    assert list(store.relations.forms_like([7], 5)) == [b"form1"]


def test_traits_of_what_went_find_nothing_and_go_many_at_once(tmp_path: Path) -> None:
    store = SqliteStore(
        tmp_path / "index.sqlite", sizes=SegmentSizes(stale_traits=10, check_dropped=1000)
    )
    chunks = put(store, 20)
    store.relations.put_copies(
        [
            Copy(c, b"form%d" % n, b"group%d" % n, "1", traits=[1, 100 + n])
            for n, c in enumerate(chunks)
        ]
    )
    assert traits_kept(store) == 40
    store.documents.drop([c.path for c in chunks[4:]])
    assert len(store.relations.forms_like([1], 50)) == 4, "deleted ones do not hide the others"
    assert store.relations.known_forms([], [1, 103, 104]) == (set(), {1, 103})
    assert traits_kept(store) == 40
    with store.writing():
        store.relations.sweep_traits()
    assert traits_kept(store) == 8
    store.documents.drop([chunks[0].path])
    store.scrub()
    assert traits_kept(store) == 6, "nothing is left of what is to be forgotten"
    assert store.audit() == []
    store.close()


def test_a_reset_leaves_no_trait(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    store = SqliteStore(file)
    (chunk,) = put(store, 1)
    store.relations.put_copies([Copy(chunk, b"form", b"form", "1", traits=[1])])
    store.relations.reset_judgements()
    store.close()
    db = apsw.Connection(str(file))
    assert db.execute(
        "SELECT (SELECT count(*) FROM forms), (SELECT count(*) FROM traits)"
    ).fetchall() == [(0, 0)]
    db.close()
