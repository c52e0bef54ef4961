"""Segments load fast, take a vector's bytes once, follow every change, and are not believed when
damaged.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell.errors import StoreDamagedError
from notewell.store.rows import hash_of
from notewell.store.sqlite.sizes import DEFAULT_SIZES, SegmentSizes
from notewell.store.sqlite.store import SqliteStore
from notewell.store.sqlite.vector_matrix import to_blob
from notewell.types import Chunk, Document, Facts, Filters
from tests.store.made import put_document
from tests.store.sqlite.test_vector_matrix import DIM, units

LOOSE, SEGMENT = DEFAULT_SIZES.loose_vectors, DEFAULT_SIZES.vectors
SMALL = SegmentSizes(vectors=8, loose_vectors=16)
MODEL = f"model@{DIM}"
COUNT = LOOSE + 300
QUESTION = units(1, seed=99)[0]


def put(store: SqliteStore, path: str, numbers: range) -> None:
    chunks = [Chunk(f"id{n}", path, "memory", n, n, (), f"text {n}", f"hash{n}") for n in numbers]
    put_document(store, Document(path, "memory", 1, 1, path), "digest", Facts(), chunks)


def answer(store: SqliteStore) -> Any:
    found = store.vectors.nearest(MODEL, QUESTION, 20, Filters())
    rows = store.documents.chunks([s.row for s in found.rows])
    return found.count, [(rows[s.row].id, s.score) for s in found.rows]


def fresh(store: SqliteStore, sizes: SegmentSizes = DEFAULT_SIZES) -> Any:
    """What a process that opens the file now would answer."""
    other = SqliteStore(Path(store.name), read_only=True, sizes=sizes)
    try:
        return answer(other)
    finally:
        other.close()


def one_by_one(store: SqliteStore) -> Any:
    """The answer from the rows themselves, by another way than the store's: the truth that it must
    agree with.
    """
    found = store.connection.all(
        "SELECT c.id, v.content_hash FROM chunks c"
        " JOIN vectors v ON v.content_hash = c.content_hash"
        " WHERE v.model = (SELECT id FROM models WHERE name = ?) ORDER BY c.row",
        (MODEL,),
    )
    kept: dict[str, Any] = {}
    for i in range(0, len(found), 900):
        kept |= store.vectors.by_hash(MODEL, [hash_of(key) for _, key in found[i : i + 900]])
    scores = np.stack([kept[hash_of(key)] for _, key in found]) @ QUESTION
    best = sorted(zip((-scores).tolist(), (name for name, _ in found), strict=True))[:20]
    return len(found), [(name, pytest.approx(-score, abs=3e-6)) for score, name in best]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index.sqlite")
    vectors = units(COUNT, seed=1)
    with made.writing():
        for first in range(0, COUNT, 100):
            put(made, f"{first}.md", range(first, min(COUNT, first + 100)))
        made.vectors.put_vectors(MODEL, {f"hash{n}": v for n, v in enumerate(vectors)})
    yield made
    made.close()


def test_vectors_in_segments_take_their_bytes_once(store: SqliteStore) -> None:
    assert store.connection.all("SELECT count(*) FROM vector_segments") == [(LOOSE // SEGMENT,)]
    assert store.connection.all(
        "SELECT count(*), sum(length(vector)) FROM vectors WHERE slot IS NULL"
    ) == [(300, 300 * DIM)]
    assert store.connection.all(
        "SELECT sum(length(vector)) FROM vectors WHERE slot IS NOT NULL"
    ) == [(0,)]
    assert answer(store) == fresh(store) == one_by_one(store)
    assert not store.vectors.pack(), "nothing is due"
    assert store.audit() == []
    for n in (0, SEGMENT, COUNT - 1):
        kept = store.vectors.by_hash(MODEL, [f"hash{n}"])[f"hash{n}"]
        assert float(kept @ units(COUNT, seed=1)[n]) > 0.999


def test_a_process_that_starts_after_a_sync_reads_few_vectors_by_themselves(
    store: SqliteStore,
) -> None:
    put(store, "more.md", range(20_000, 20_000 + SEGMENT))
    store.vectors.put_vectors(
        MODEL, {f"hash{20_000 + n}": v for n, v in enumerate(units(SEGMENT, seed=2))}
    )
    before, waiting = fresh(store), "SELECT count(*) FROM vectors WHERE slot IS NULL"
    assert store.connection.all(waiting) == [(300 + SEGMENT,)]
    assert store.vectors.pack()
    assert store.connection.all(waiting) == [(300,)]
    assert store.connection.all("SELECT count(*) FROM vector_log") == [(0,)]
    assert answer(store) == fresh(store) == before == one_by_one(store)
    assert store.audit() == []


def test_every_change_after_packing_is_seen_by_all(store: SqliteStore) -> None:
    reader = SqliteStore(Path(store.name), read_only=True)
    base = reader.vectors.matrix(MODEL).base
    put(store, "new.md", range(10_000, 10_003))
    store.vectors.put_vectors(MODEL, {"hash10000": QUESTION})
    assert answer(reader)[1][0] == ("id10000", pytest.approx(1.0, abs=1e-4))
    store.vectors.put_vectors(MODEL, {"hash10001": -QUESTION, "hash10000": -QUESTION})
    assert answer(reader) == answer(store) == fresh(store) == one_by_one(store)
    store.documents.drop(["100.md"])
    store.documents.drop(["new.md"])
    put(store, "0.md", range(50))
    assert answer(reader) == answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT - 150
    assert reader.vectors.matrix(MODEL).base.codes is base.codes, "small changes reload nothing"
    reader.close()


def test_another_model_does_not_disturb(store: SqliteStore) -> None:
    before = answer(store)
    store.vectors.put_vectors("other@8", {"hash1": units(1, seed=3, dim=8)[0]})
    assert answer(store) == fresh(store) == before
    assert store.vectors.nearest("other@8", units(1, seed=3, dim=8)[0], 5, Filters()).count == 1


def test_a_damaged_segment_is_not_believed(store: SqliteStore) -> None:
    store.connection.db.execute(
        "UPDATE vector_segments SET codes = zeroblob(length(codes)) WHERE id = 1"
    )
    store.vectors.forget()
    for read in (answer, fresh):
        with pytest.raises(StoreDamagedError):
            read(store)
    assert "damaged" in store.audit()[0]


def test_a_damaged_map_is_made_again(store: SqliteStore) -> None:
    before = answer(store)
    store.connection.db.execute("UPDATE vector_maps SET rows = zeroblob(length(rows))")
    assert fresh(store) == before
    put(store, "more.md", range(20_000, 20_000 + 2 * LOOSE + 1))
    assert store.vectors.pack()
    assert fresh(store) == before
    assert store.vectors._segments.read_map(1) is not None


def test_a_lost_segment_is_seen_by_the_audit(store: SqliteStore) -> None:
    store.connection.db.execute("DELETE FROM vector_segments WHERE id = 2")
    assert store.audit() == [f"{SEGMENT} vectors are in no segment"]


def test_passages_that_say_the_same_share_a_vector(store: SqliteStore) -> None:
    twins = [
        Chunk(f"twin{n}", "twins.md", "memory", n, n, (), f"text {n}", f"hash{n}")
        for n in range(0, 40, 3)
    ]
    put_document(store, Document("twins.md", "memory", 1, 1, "twins.md"), "digest", Facts(), twins)
    put(store, "more.md", range(20_000, 20_000 + 2 * LOOSE + 1))
    store.vectors.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT + len(twins)


def test_many_changes_are_mapped_again(store: SqliteStore) -> None:
    many = 3 * LOOSE
    put(store, "more.md", range(20_000, 20_000 + many))
    assert answer(store) == fresh(store)
    store.vectors.put_vectors(
        MODEL, {f"hash{20_000 + n}": v for n, v in enumerate(units(many, seed=5))}
    )
    assert answer(store) == fresh(store) == one_by_one(store)
    store.vectors.pack()
    assert store.connection.all("SELECT count(*) FROM vector_log")[0][0] <= 2 * LOOSE
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT + many
    store.documents.drop(["more.md"])
    store.vectors.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert answer(store)[0] == COUNT


def test_segments_of_vectors_that_are_gone_give_their_room_back(store: SqliteStore) -> None:
    store.documents.drop([f"{first}.md" for first in range(0, SEGMENT, 100)])
    store.vectors.trim(0)
    assert store.connection.all("SELECT count(*) FROM vector_segments") == [(LOOSE // SEGMENT - 1,)]
    assert answer(store) == fresh(store) == one_by_one(store)
    store.vectors.pack()
    assert answer(store) == fresh(store) == one_by_one(store)
    assert store.audit() == []


def test_a_forgotten_vector_leaves_no_copy(store: SqliteStore) -> None:
    blob = to_blob(units(COUNT, seed=1)[150])
    file = Path(store.name)
    assert blob in file.read_bytes() + Path(f"{file}-wal").read_bytes()
    store.documents.drop(["100.md"])
    store.scrub()
    assert blob not in file.read_bytes()
    assert answer(store)[0] == COUNT - 100
    store.vectors.pack()
    assert blob not in file.read_bytes() + Path(f"{file}-wal").read_bytes()
    assert answer(store) == fresh(store) == one_by_one(store)


def test_prune_leaves_no_stale_vectors(store: SqliteStore) -> None:
    reader = SqliteStore(Path(store.name), read_only=True)
    assert answer(reader)[0] == COUNT
    store.vectors.prune([])
    assert answer(reader)[0] == answer(store)[0] == 0
    store.vectors.put_vectors(MODEL, {"hash7": QUESTION})
    assert answer(reader) == answer(store) == (1, [("id7", pytest.approx(1.0, abs=1e-4))])
    reader.close()


def test_the_record_of_changes_does_not_grow_for_ever(tmp_path: Path) -> None:
    made = SqliteStore(tmp_path / "index.sqlite")
    for turn in range(5):
        put(made, "a.md", range(turn * LOOSE, (turn + 1) * LOOSE))
        made.vectors.pack()
    assert made.connection.all("SELECT count(*) FROM vector_log")[0][0] <= 4 * LOOSE
    made.close()


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_of_changes_is_followed_by_all(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    vectors = units(200, seed=seed)
    store = SqliteStore(tmp_path / "index.sqlite", sizes=SMALL)
    reader = SqliteStore(tmp_path / "index.sqlite", read_only=True, sizes=SMALL)
    seen: set[str] = set()

    def some(most: int) -> list[int]:
        return dice.sample(range(200), dice.randint(1, most))

    def write() -> None:
        path = f"{dice.randrange(12)}.md"
        # The same text may stand in many notes: an id is of a note and a text, a hash of the text
        # alone.
        chunks = [
            Chunk(f"{path}{n}", path, "memory", n, n, (), f"text {n}", f"hash{n}") for n in some(30)
        ]
        put_document(store, Document(path, "memory", 1, 1, path), "digest", Facts(), chunks)

    acts = {
        "write": write,
        "vectors": lambda: store.vectors.put_vectors(
            MODEL, {f"hash{n}": vectors[n] for n in some(40)}
        ),
        "other": lambda: store.vectors.put_vectors(
            f"other@{DIM}", {f"hash{n}": vectors[n] for n in some(40)}
        ),
        "drop": lambda: store.documents.drop([f"{dice.randrange(12)}.md"]),
        "trim": lambda: store.vectors.trim(dice.choice((0, 20 * DIM))),
        "scrub": store.scrub,
        "prune": lambda: store.vectors.prune(dice.choice(([MODEL], [MODEL, f"other@{DIM}"]))),
        "pack": store.vectors.pack,
    }
    for act in dice.choices(list(acts), (8, 8, 3, 2, 2, 1, 1, 4), k=60):
        acts[act]()
        seen.add(act)
        if store.vectors.coverage(MODEL)[0]:
            want = one_by_one(store)
            for found in (answer(store), answer(reader), fresh(store, SMALL)):
                assert found[0] == want[0], act
                assert [score for _, score in found[1]] == [score for _, score in want[1]], act
        assert store.audit() == [], act
    assert seen >= {"write", "vectors", "pack"}
    assert store.connection.all("SELECT count(*) FROM vector_segments")[0][0]
    reader.close()
    store.close()


def test_readers_beside_a_writer_never_miss_what_stays(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite", sizes=SMALL)
    vectors = units(400, seed=2)
    put(store, "stays.md", range(1000, 1001))
    store.vectors.put_vectors(MODEL, {"hash1000": QUESTION})
    done = threading.Event()
    wrong: list[Any] = []

    def ask() -> None:
        reader = SqliteStore(tmp_path / "index.sqlite", read_only=True, sizes=SMALL)
        try:
            while not done.is_set():
                found = reader.vectors.nearest(MODEL, QUESTION, 3, Filters())
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
        store.vectors.put_vectors(MODEL, {f"hash{n}": vectors[n] for n in numbers})
        if turn % 5 == 4:
            store.vectors.trim(0)
        store.vectors.pack()
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert fresh(store, SMALL) == answer(store) == one_by_one(store)
    store.close()
