"""Traits of forms on disk: what an older file has comes over, and what went is passed over and goes."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import recollect.store.sqlite as module
from recollect.ports import Copy
from recollect.store import kin
from recollect.store.schema import MIGRATIONS
from recollect.store.sqlite import SqliteStore
from recollect.types import Chunk, Document, Facts

BEFORE_FORMS = next(n for n, script in enumerate(MIGRATIONS) if "CREATE TABLE forms" in script)


def put(store: SqliteStore, count: int) -> list[Chunk]:
    for n in range(count):
        one = Chunk(f"id{n}", f"memory/{n}.md", "memory", 1, 1, (), f"apple {n}", f"hash{n}")
        store.put(Document(one.path, "memory", 1, 1, ""), f"{n}", Facts(), [one])
    return [store.chunks_of(f"memory/{n}.md")[0] for n in range(count)]


def traits_kept(store: SqliteStore) -> int:
    return int(store._one("SELECT count(*) FROM traits"))


def test_traits_of_an_older_file_find_the_same_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "index.sqlite"
    with monkeypatch.context() as older:
        older.setattr(module, "MIGRATIONS", MIGRATIONS[:BEFORE_FORMS])
        store = SqliteStore(file)
        chunks = put(store, 3)
        with store.writing():
            for n, chunk in enumerate(chunks):
                form = b"form%d" % (n // 2)  # the first two are copies
                values = (chunk.row, form, form, "1", chunk.id)
                store._db.execute("INSERT INTO copies VALUES (?, ?, ?, ?, ?)", values)
                if n != 1:
                    for trait in (7, 2**62 + n):
                        store._db.execute("INSERT INTO traits VALUES (?, ?, ?)", (trait, chunk.row, form))
            store._db.execute("DELETE FROM unjudged")
        store.close()
    store = SqliteStore(file)
    assert list(store.forms_like([7], 5)) == [b"form1", b"form0"]
    assert list(store.forms_like([2**62], 5)) == [b"form0"]
    assert store.kin_known([b"form0"], [7, 8, 2**62 + 2]) == ({b"form0"}, {7, 2**62 + 2})
    assert store.audit() == []
    store.drop(["memory/0.md"])
    assert store.forms_like([7], 5)[b"form0"].id == "id1", "a form outlives the row that it is named by"
    store.drop(["memory/1.md"])
    assert list(store.forms_like([7], 5)) == [b"form1"]
    store.close()


def test_traits_of_what_went_find_nothing_and_go_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    chunks = put(store, 20)
    store.put_copies([Copy(c, b"form%d" % n, b"kin%d" % n, "1", traits=[1, 100 + n]) for n, c in enumerate(chunks)])
    assert traits_kept(store) == 40
    store.drop([c.path for c in chunks[4:]])
    assert len(store.forms_like([1], 50)) == 4, "those that went do not stand in the way of the others"
    assert store.kin_known([], [1, 103, 104]) == (set(), {1, 103})
    assert traits_kept(store) == 40
    monkeypatch.setattr(kin, "_STALE", 10)
    with store.writing():
        store._sweep_traits()
    assert traits_kept(store) == 8
    store.drop([chunks[0].path])
    store.scrub()
    assert traits_kept(store) == 6, "nothing is left of what is to be forgotten"
    assert store.audit() == []
    store.close()


def test_what_was_judged_anew_leaves_no_trait(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    store = SqliteStore(file)
    (chunk,) = put(store, 1)
    store.put_copies([Copy(chunk, b"form", b"form", "1", traits=[1])])
    store.judge_anew()
    store.close()
    db = apsw.Connection(str(file))
    assert db.execute("SELECT (SELECT count(*) FROM forms), (SELECT count(*) FROM traits)").fetchall() == [(0, 0)]
    db.close()
