from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import StoreError
from recollect.store.sqlite import SqliteStore
from recollect.store.tombstones import StoredTombstones, Tombstones, tombstones_of
from recollect.text.forgotten import tombstones

FORGOTTEN = "The vault code of the Lisbon office is seven four nine."
OTHER = "Nobody must know about the surprise party in June."


def test_they_are_kept_once_each_and_seen_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / "forgotten.jsonl"
    one, two = Tombstones(file), Tombstones(file)
    assert two.load().stones == ()
    one.add(tombstones(FORGOTTEN, "a"))
    one.add([*tombstones(FORGOTTEN, "a"), *tombstones(OTHER, "a", receipt="r2")])
    assert len(two.load().stones) == 2
    assert two.load().signature == one.load().signature != ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert two.lift(lambda stone: stone.receipt == "r2") == 1
    assert two.lift(lambda stone: stone.receipt == "r2") == 0
    assert len(one.load().stones) == 1
    file.unlink()
    assert one.load().stones == ()


def test_without_a_file_they_live_as_long_as_the_memory() -> None:
    one = Tombstones(None)
    assert one.add(tombstones(FORGOTTEN, "a")).has(FORGOTTEN, "b")
    assert one.lift(lambda _: True) == 1
    assert one.load().stones == ()


def test_a_broken_file_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / "forgotten.jsonl"
    file.write_text("{no json\n")
    with pytest.raises(StoreError, match="not a list of tombstones") as caught:
        Tombstones(file).load()
    assert caught.value.hint
    with pytest.raises(StoreError, match="cannot be written"):
        Tombstones(tmp_path / "missing" / "forgotten.jsonl").add(tombstones(FORGOTTEN, "a"))


def test_in_a_store_they_are_seen_by_all_who_share_it_and_none_loses_anothers(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "shared.sqlite") for _ in range(2)]
    one, two = (StoredTombstones(store) for store in stores)
    one.add(tombstones(FORGOTTEN, "a"))
    two.add(tombstones(OTHER, "a", receipt="r2"))
    assert one.load().has(FORGOTTEN, "b")
    assert one.load().has(OTHER, "b")
    assert one.load().signature == two.load().signature
    assert one.lift(lambda stone: stone.receipt == "r2") == 1
    assert not two.load().has(OTHER, "b")
    for store in stores:
        store.close()


def test_a_file_has_them_beside_it_and_a_store_without_one_inside(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    assert tombstones_of(store).path == tmp_path / "forgotten.jsonl"
    assert isinstance(tombstones_of(SqliteStore(None)), StoredTombstones)
    store.close()
