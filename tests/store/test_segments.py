"""Segments load fast, take a vector's bytes once, follow every change, and are not believed when damaged."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import StoreDamagedError
from recollect.store.matrix import to_blob
from recollect.store.segments import LOOSE, SEGMENT
from recollect.store.sqlite import SqliteStore
from recollect.types import Chunk, Document, Facts, Filters
from tests.store.test_matrix import DIM, units

MODEL = f"model@{DIM}"
COUNT = LOOSE + 300
QUESTION = units(1, seed=99)[0]


def put(store: SqliteStore, path: str, numbers: range) -> None:
    chunks = [Chunk(f"id{n}", path, "memory", n, n, (), f"text {n}", f"hash{n}") for n in numbers]
    store.put(Document(path, "memory", 1, 1, path), "digest", Facts(), chunks)


def answer(store: SqliteStore) -> Any:
    found = store.nearest(MODEL, QUESTION, 20, Filters())
    rows = store.chunks([s.row for s in found.rows])
    return found.count, [(rows[s.row].id, s.score) for s in found.rows]


def fresh(store: SqliteStore) -> Any:
    """What a process that opens the file now would answer."""
    other = SqliteStore(Path(store.path), read_only=True)
    try:
        return answer(other)
    finally:
        other.close()


def one_by_one(store: SqliteStore) -> Any:
    """The answer from the rows themselves, by another way than the store's: the truth that it must agree with."""
    found = store._all(
        "SELECT c.id, v.content_hash FROM chunks c JOIN vectors v ON v.content_hash = c.content_hash"
        " WHERE v.model = (SELECT id FROM models WHERE name = ?) ORDER BY c.row",
        (MODEL,),
    )
    kept: dict[str, Any] = {}
    for i in range(0, len(found), 900):
        kept |= store.vectors_of(MODEL, [key for _, key in found[i : i + 900]])
    scores = np.stack([kept[key] for _, key in found]) @ QUESTION
    best = sorted(zip((-scores).tolist(), (name for name, _ in found), strict=True))[:20]
    return len(found), [(name, pytest.approx(-score, abs=3e-6)) for score, name in best]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index.sqlite")
    vectors = units(COUNT, seed=1)
    with made.writing():
        for first in range(0, COUNT, 100):
            put(made, f"{first}.md", range(first, min(COUNT, first + 100)))
        made.put_vectors(MODEL, {f"hash{n}": v for n, v in enumerate(vectors)})
    yield made
    made.close()


def test_vectors_in_segments_take_their_bytes_once(store: SqliteStore) -> None:
    assert store._all("SELECT count(*) FROM segments") == [(LOOSE // SEGMENT,)]
    assert store._all("SELECT count(*), sum(length(vector)) FROM vectors WHERE place IS NULL") == [(300, 300 * DIM)]
    assert store._all("SELECT sum(length(vector)) FROM vectors WHERE place IS NOT NULL") == [(0,)]
    assert answer(store) == fresh(store) == one_by_one(store)
    assert not store.pack(), "nothing is due"
    assert store.audit() == []
    for n in (0, SEGMENT, COUNT - 1):
        kept = store.vectors_of(MODEL, [f"hash{n}"])[f"hash{n}"]
        assert float(kept @ units(COUNT, seed=1)[n]) > 0.999


def test_every_change_after_packing_is_seen_by_all(store: SqliteStore) -> None:
    reader = SqliteStore(Path(store.path), read_only=True)
    base = reader._matrix(MODEL).base
    put(store, "new.md", range(10_000, 10_003))
    store.put_vectors(MODEL, {"hash10000": QUESTION})
    assert answer(reader)[1][0] == ("id10000", pytest.approx(1.0, abs=1e-4))
    store.put_vectors(MODEL, {"hash10001": -QUESTION, "hash10000": -QUESTION})
    assert answer(reader) == answer(store) == fresh(store) == one_by_one(store)
    store.drop(["100.md"])
    store.drop(["new.md"])
    put(store, "0.md", range(50))
    assert answer(reader) == answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT - 150
    assert reader._matrix(MODEL).base.codes is base.codes, "small changes reload nothing"
    reader.close()


def test_another_model_does_not_disturb(store: SqliteStore) -> None:
    before = answer(store)
    store.put_vectors("other@8", {"hash1": units(1, seed=3, dim=8)[0]})
    assert answer(store) == fresh(store) == before
    assert store.nearest("other@8", units(1, seed=3, dim=8)[0], 5, Filters()).count == 1


def test_a_damaged_segment_is_not_believed(store: SqliteStore) -> None:
    store._db.execute("UPDATE segments SET codes = zeroblob(length(codes)) WHERE id = 1")
    store._matrices.clear()
    for read in (answer, fresh):
        with pytest.raises(StoreDamagedError):
            read(store)
    assert "damaged" in store.audit()[0]


def test_a_damaged_map_is_made_again(store: SqliteStore) -> None:
    before = answer(store)
    store._db.execute("UPDATE packs SET rows = zeroblob(length(rows))")
    assert fresh(store) == before
    put(store, "more.md", range(20_000, 20_000 + 2 * LOOSE + 1))
    assert store.pack()
    assert fresh(store) == before
    assert store._map(1) is not None


def test_a_lost_segment_is_seen_by_the_audit(store: SqliteStore) -> None:
    store._db.execute("DELETE FROM segments WHERE id = 2")
    assert store.audit() == [f"{SEGMENT} vectors are in no segment"]


def test_passages_that_say_the_same_share_a_vector(store: SqliteStore) -> None:
    twins = [Chunk(f"twin{n}", "twins.md", "memory", n, n, (), f"text {n}", f"hash{n}") for n in range(0, 40, 3)]
    store.put(Document("twins.md", "memory", 1, 1, "twins.md"), "digest", Facts(), twins)
    put(store, "more.md", range(20_000, 20_000 + 2 * LOOSE + 1))
    store.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT + len(twins)


def test_many_changes_are_mapped_again(store: SqliteStore) -> None:
    many = 3 * LOOSE
    put(store, "more.md", range(20_000, 20_000 + many))
    assert answer(store) == fresh(store)
    store.put_vectors(MODEL, {f"hash{20_000 + n}": v for n, v in enumerate(units(many, seed=5))})
    assert answer(store) == fresh(store) == one_by_one(store)
    store.pack()
    assert store._all("SELECT count(*) FROM moved")[0][0] <= 2 * LOOSE
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT + many
    store.drop(["more.md"])
    store.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT


def test_segments_of_vectors_that_are_gone_give_their_room_back(store: SqliteStore) -> None:
    store.drop([f"{first}.md" for first in range(0, SEGMENT, 100)])
    store.trim(0)
    assert store._all("SELECT count(*) FROM segments") == [(LOOSE // SEGMENT - 1,)]
    assert answer(store) == fresh(store) == one_by_one(store)
    store.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert store.audit() == []


def test_a_forgotten_vector_leaves_no_copy(store: SqliteStore) -> None:
    blob = to_blob(units(COUNT, seed=1)[150])
    file = Path(store.path)
    assert blob in file.read_bytes() + Path(f"{file}-wal").read_bytes()
    store.drop(["100.md"])
    store.scrub()
    assert blob not in file.read_bytes()
    assert answer(store)[0] == COUNT - 100
    store.pack()
    assert blob not in file.read_bytes() + Path(f"{file}-wal").read_bytes()
    assert answer(store) == fresh(store) == one_by_one(store)


def test_prune_leaves_no_stale_vectors(store: SqliteStore) -> None:
    reader = SqliteStore(Path(store.path), read_only=True)
    assert answer(reader)[0] == COUNT
    store.prune([])
    assert answer(reader)[0] == answer(store)[0] == 0
    store.put_vectors(MODEL, {"hash7": QUESTION})
    assert answer(reader) == answer(store) == (1, [("id7", pytest.approx(1.0, abs=1e-4))])
    reader.close()


def test_the_record_of_changes_does_not_grow_for_ever(tmp_path: Path) -> None:
    made = SqliteStore(tmp_path / "index.sqlite")
    for turn in range(5):
        put(made, "a.md", range(turn * LOOSE, (turn + 1) * LOOSE))
        made.pack()
    assert made._all("SELECT count(*) FROM moved")[0][0] <= 4 * LOOSE
    made.close()


def test_floats_of_an_older_index_become_bytes(tmp_path: Path) -> None:
    import apsw

    from recollect.store.schema import APPLICATION_ID, MIGRATIONS

    file = tmp_path / "index.sqlite"
    db = apsw.Connection(str(file))
    before = next(n for n, script in enumerate(MIGRATIONS) if "ADD COLUMN place" in script)
    for script in MIGRATIONS[:before]:
        db.execute(script).fetchall()
    db.execute(f"PRAGMA user_version = {before}; PRAGMA application_id = {APPLICATION_ID}").fetchall()
    vectors = units(30, seed=4)
    db.execute("INSERT INTO models (name, dim) VALUES (?, ?)", (MODEL, DIM))
    rows = [(f"hash{n}", v.tobytes()) for n, v in enumerate(vectors)]
    db.executemany("INSERT INTO vectors (content_hash, model, vector) VALUES (?, 1, ?)", rows)
    db.close()
    made = SqliteStore(file)
    made.check()
    put(made, "a.md", range(30))
    kept = made.vectors_of(MODEL, ["hash3"])["hash3"]
    assert float(np.dot(kept, vectors[3])) > 0.999
    assert answer(made)[0] == 30
    made.close()


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_of_changes_is_followed_by_all(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.store.segments.SEGMENT", 8)
    monkeypatch.setattr("recollect.store.segments.LOOSE", 16)
    dice = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    vectors = units(200, seed=seed)
    store = SqliteStore(tmp_path / "index.sqlite")
    reader = SqliteStore(tmp_path / "index.sqlite", read_only=True)
    seen: set[str] = set()

    def some(most: int) -> list[int]:
        return dice.sample(range(200), dice.randint(1, most))

    def write() -> None:
        path = f"{dice.randrange(12)}.md"
        # The same text may stand in many notes: an id is of a note and a text, a hash of the text alone.
        chunks = [Chunk(f"{path}{n}", path, "memory", n, n, (), f"text {n}", f"hash{n}") for n in some(30)]
        store.put(Document(path, "memory", 1, 1, path), "digest", Facts(), chunks)

    acts = {
        "write": write,
        "vectors": lambda: store.put_vectors(MODEL, {f"hash{n}": vectors[n] for n in some(40)}),
        "other": lambda: store.put_vectors(f"other@{DIM}", {f"hash{n}": vectors[n] for n in some(40)}),
        "drop": lambda: store.drop([f"{dice.randrange(12)}.md"]),
        "trim": lambda: store.trim(dice.choice((0, 20 * DIM))),
        "scrub": store.scrub,
        "prune": lambda: store.prune(dice.choice(([MODEL], [MODEL, f"other@{DIM}"]))),
        "pack": store.pack,
    }
    for act in dice.choices(list(acts), (8, 8, 3, 2, 2, 1, 1, 4), k=60):
        acts[act]()
        seen.add(act)
        if store.coverage(MODEL)[0]:
            want = one_by_one(store)
            for found in (answer(store), answer(reader), fresh(store)):
                assert found[0] == want[0], act
                assert [score for _, score in found[1]] == [score for _, score in want[1]], act
        assert store.audit() == [], act
    assert seen >= {"write", "vectors", "pack"}
    assert store._all("SELECT count(*) FROM segments")[0][0]
    reader.close()
    store.close()


def test_readers_beside_a_writer_never_miss_what_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.store.segments.SEGMENT", 8)
    monkeypatch.setattr("recollect.store.segments.LOOSE", 16)
    store = SqliteStore(tmp_path / "index.sqlite")
    vectors = units(400, seed=2)
    put(store, "stays.md", range(1000, 1001))
    store.put_vectors(MODEL, {"hash1000": QUESTION})
    done = threading.Event()
    wrong: list[Any] = []

    def ask() -> None:
        reader = SqliteStore(tmp_path / "index.sqlite", read_only=True)
        try:
            while not done.is_set():
                found = reader.nearest(MODEL, QUESTION, 3, Filters())
                if not found.rows or found.rows[0].score < 0.999:
                    wrong.append(found)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is about
            wrong.append(error)
        finally:
            reader.close()

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(40):
        numbers = range(turn * 10, turn * 10 + 10)
        put(store, f"{turn % 4}.md", numbers)
        store.put_vectors(MODEL, {f"hash{n}": vectors[n] for n in numbers})
        if turn % 5 == 4:
            store.trim(0)
        store.pack()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert fresh(store) == answer(store) == one_by_one(store)
    store.close()
