from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pytest

from notewell.errors import StoreError
from notewell.memory import Memory
from notewell.notes.tombstones import (
    NAME,
    StoredTombstones,
    TombstoneFile,
    Tombstones,
    tombstones_of,
)
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.cli.commands import run
from notewell.text.forgotten import Forgotten, Tombstone, tombstones
from notewell.types import Notice
from tests.conftest import Write

FORGOTTEN = "The vault code of the Lisbon office is seven four nine."
OTHER = "Nobody must know about the surprise party in June."


def stones(text: str, receipt: str = "") -> list[Tombstone]:
    return tombstones(text, "a", everywhere=True, receipt=receipt)


def test_they_are_kept_once_each_and_seen_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / NAME
    one, two = Tombstones(TombstoneFile(file)), Tombstones(TombstoneFile(file))
    assert two.load().stones == ()
    one.add(stones(FORGOTTEN))
    one.add([*stones(FORGOTTEN), *stones(OTHER, "r2")])
    assert len(two.load().stones) == 2
    assert two.load().signature == one.load().signature != ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert two.lift(lambda stone: stone.receipt == "r2") == 1
    assert two.lift(lambda stone: stone.receipt == "r2") == 0
    assert len(one.load().stones) == 1
    assert len(one.add(stones(OTHER, "r2")).stones) == 2, "what was lifted can be forgotten again"
    file.unlink()
    assert one.load().stones == ()


def test_without_a_place_they_live_as_long_as_the_memory() -> None:
    one = Tombstones()
    assert one.add(stones(FORGOTTEN)).has(FORGOTTEN, "b")
    assert one.lift(lambda _: True) == 1
    assert one.load().stones == ()


def test_a_broken_file_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    file = tmp_path / NAME
    good = {"hash": "a", "opening": 2, "words": 3}
    rows = [
        [1],
        7,
        {},
        {"hash": "a"},
        *({**good, **wrong} for wrong in ({"hash": 1}, {"words": 0}, {"made": 5}, {"x": 1})),
    ]
    for wrong in ("{no json", "[" * 100_000, "\x00", *map(json.dumps, rows)):
        file.write_text(f"{wrong}\n")
        with pytest.raises(StoreError, match="cannot be read as tombstones") as caught:
            Tombstones(TombstoneFile(file)).load()
        assert caught.value.hint
    with pytest.raises(StoreError, match="cannot be written"):
        Tombstones(TombstoneFile(file / NAME)).add(stones(FORGOTTEN))


def test_neither_a_link_nor_a_pipe_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link"):
        with pytest.raises(StoreError, match="cannot be read"):
            TombstoneFile(tmp_path / name).load()


def test_a_file_of_an_earlier_version_is_read_and_one_of_ours_reads_the_same_there(
    tmp_path: Path,
) -> None:
    file = tmp_path / NAME
    (old,) = stones(FORGOTTEN, "r1")
    row = {name: value for name, value in asdict(old).items() if name != "lifted"}
    file.write_text(json.dumps(row) + "\n")
    one = Tombstones(TombstoneFile(file))
    assert one.load().has(FORGOTTEN, "any note")
    one.add(stones(OTHER))
    assert all("lifted" not in json.loads(line) for line in file.read_text().splitlines())


def test_in_a_store_they_are_seen_by_all_who_share_it_and_none_loses_anothers(
    tmp_path: Path,
) -> None:
    stores = [SqliteStore(tmp_path / "shared.sqlite") for _ in range(2)]
    one, two = (Tombstones(StoredTombstones(store)) for store in stores)
    one.add(stones(FORGOTTEN))
    two.add(stones(OTHER, "r2"))
    assert one.load().has(FORGOTTEN, "b")
    assert one.load().has(OTHER, "b")
    assert one.load().signature == two.load().signature
    assert one.lift(lambda stone: stone.receipt == "r2") == 1
    assert not two.load().has(OTHER, "b")
    for store in stores:
        store.close()


def test_two_machines_learn_from_each_other_what_is_forgotten_and_what_is_lifted(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "shared.sqlite")
    files = [TombstoneFile(tmp_path / f"{n}.jsonl") for n in range(2)]
    Tombstones(files[0]).add(stones(FORGOTTEN, "r1"))
    one, two = (Tombstones(file, StoredTombstones(store)) for file in files)
    assert not two.share().stones
    assert one.share().has(FORGOTTEN, "b")
    assert two.share().has(FORGOTTEN, "b"), "the store brought it"
    assert len(Tombstones(files[1]).load().stones) == 1, (
        "and it is in the files of the other one now"
    )
    assert Tombstones(files[1]).lift(lambda stone: stone.receipt == "r1") == 1, (
        "by somebody without the store"
    )
    assert not two.share().stones
    assert not one.share().stones, "a place that has not heard of it does not bring it back"
    assert not two.share().stones
    store.close()


def test_they_are_in_the_folder_of_the_workspace_wherever_the_index_is(
    tmp_path: Path, root: Path
) -> None:
    def places(store: SqliteStore, root: Path | None = None) -> list[object]:
        return [getattr(place, "path", type(place)) for place in tombstones_of(store, root).places]

    own, other = root / ".notewell" / NAME, SqliteStore(tmp_path / "other.sqlite")
    assert places(SqliteStore(None), root) == places(other, root) == [own]
    assert places(other) == [tmp_path / NAME]
    assert places(SqliteStore(None)) == [StoredTombstones]
    (root / ".notewell").symlink_to(tmp_path)
    assert places(other, root) == [tmp_path / NAME], "a link is not followed"
    other.close()


def opened(root: Path, index: Path | None = None) -> Memory:
    return Memory.open(root, index=index, embed__model="none")


def knows(memory: Memory, words: str = "Lisbon vault") -> bool:
    return any("Lisbon" in h.chunk.text for h in memory.search(words, min_score=0.0).hits)


def test_no_other_index_of_the_workspace_brings_forgotten_text_back(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    with opened(root, tmp_path / "old.sqlite") as old, opened(root) as memory:
        old.index.keep_warm()
        assert knows(old)
        receipt = memory.forget("memory/a.md:3", yes=True)
        assert receipt.proved
        assert not knows(old), "one that is open already"
        with opened(root, tmp_path / "new.sqlite") as new:
            assert not knows(new)
            assert new.unforget(receipt.id)[0] == 1
        assert knows(memory)
        assert knows(old)


def test_what_another_index_forgot_is_forgotten_here_and_in_a_copy_of_the_folder(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    with opened(root, tmp_path / "x.sqlite") as memory:
        assert memory.forget(query="Lisbon vault", yes=True).proved
    assert sorted(p.name for p in (root / ".notewell").iterdir()) == [
        ".gitignore",
        NAME,
        "forgotten.lock",
    ]
    assert (root / ".notewell" / NAME).stat().st_mode & 0o777 == 0o600
    with opened(root) as memory:
        assert not knows(memory)
    shutil.copytree(root, tmp_path / "copy")
    for left in (tmp_path / "copy/.notewell").glob("index*"):
        left.unlink()
    with opened(tmp_path / "copy") as memory:
        assert not knows(memory)


def test_those_that_an_earlier_version_kept_beside_an_index_hold_and_move_to_the_workspace(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    Tombstones(TombstoneFile(tmp_path / NAME)).add(stones(FORGOTTEN, "r1"))
    with opened(root) as memory:
        assert knows(memory)
        with opened(root, tmp_path / "x.sqlite") as other:
            assert not knows(other)
        assert not knows(memory)
        assert memory.unforget("r1")[0] == 1
    with opened(root, tmp_path / "x.sqlite") as other:
        assert knows(other), "lifted here is lifted there"


def test_a_workspace_that_cannot_be_written_has_them_with_the_user_for_every_index(
    root: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\n{OTHER}\n")
    with opened(root) as memory:
        memory.forget(query="Lisbon vault", yes=True)
    before = (root / ".notewell" / NAME).read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(
            "notewell.notes.tombstones.os.access",
            lambda path, _mode: not str(path).startswith(str(root)),
        )
        with opened(root, tmp_path / "mine.sqlite") as memory:
            assert not knows(memory)
            receipt = memory.forget(query="surprise party", yes=True)
            assert receipt.proved
        with opened(root, tmp_path / "another.sqlite") as memory:
            assert not memory.search("surprise party", min_score=0.0).hits
    assert (root / ".notewell" / NAME).read_bytes() == before
    assert not (tmp_path / NAME).exists()
    with opened(root) as memory:
        assert not memory.search("surprise party", min_score=0.0).hits, (
            "now that it can be written, too"
        )
    assert receipt.id in (root / ".notewell" / NAME).read_text()


def codes(notices: Iterable[Notice]) -> list[str]:
    return [notice.code for notice in notices]


def test_with_a_broken_file_searches_answer_and_say_so_but_nothing_is_indexed_or_forgotten(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    with opened(root) as memory:
        memory.forget(query="Lisbon vault", yes=True)
        file = root / ".notewell" / NAME
        good = file.read_text()
        file.write_text(f"{good}{{")
        write("memory/b.md", "# New\n\nTea at five.\n")
        found = memory.search("Tea", min_score=0.0)
        assert [h.chunk.path for h in found.hits] == ["memory/a.md"]
        assert (found.stale, codes(found.notices)) == (True, ["forgotten_unread"])
        assert not knows(memory)
        assert codes(memory.status().notices) == ["forgotten_unread"]
        assert memory.why("Tea", "memory/a.md")[1].lines
        for act in (
            memory.sync,
            lambda: memory.forget("memory/a.md", yes=True),
            lambda: memory.remember("Coffee."),
        ):
            with pytest.raises(StoreError, match="cannot be read as tombstones"):
                act()
        assert run(["doctor", "-w", str(root)]) == 1
        assert "forgotten: " in capsys.readouterr().out
        file.write_text(good)
        assert len(memory.search("Tea", min_score=0.0).hits) == 2
        assert not knows(memory)


def test_a_folder_that_lets_nobody_in_is_a_notice_and_nothing_is_forgotten_for_good(
    root: Path, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n")
    looked = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        if path.parent == root / ".notewell":
            raise PermissionError(13, "Permission denied")
        return looked(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    with opened(root, tmp_path / "mine.sqlite") as memory:
        found = memory.search("Lisbon vault", min_score=0.0)
        assert (len(found.hits), codes(found.notices)) == (1, ["forgotten_unread"])
        with pytest.raises(StoreError, match="nothing can be forgotten for good"):
            memory.forget("memory/a.md", yes=True)
        assert knows(memory)


def test_what_is_forgotten_twice_has_two_receipts_and_either_makes_it_known_again(
    root: Path, write: Write
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    with opened(root) as memory:
        for which in range(2):
            signatures = set()
            receipts = []
            for from_files in (False, True):  # as after a kill between the two
                receipts.append(memory.forget("memory/a.md:3", yes=True, from_files=from_files).id)
                signatures.add(memory.index.tombstones.load().signature)
            assert len(signatures) == 1, "the second one changes nothing in the index"
            assert "Lisbon" not in (root / "memory/a.md").read_text()
            write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
            assert not knows(memory)
            assert memory.unforget(receipts[which])[0] == 2
            assert knows(memory)


@pytest.mark.parametrize("what", ["forget", "rename"])
def test_what_another_index_forgets_at_the_same_moment_is_forgotten_here_too(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    write("memory/b.md", f"# Work\n\n{OTHER}\n\nCoffee at five.\n")
    with opened(root) as memory:
        if what == "rename":
            memory.forget("memory/a.md:3", yes=True)
        add = Tombstones.add

        def raced(own: Tombstones, new: Iterable[Tombstone]) -> Forgotten:
            add(
                Tombstones(TombstoneFile(root / ".notewell" / NAME)),
                tombstones(OTHER, "memory/b.md", receipt="r2"),
            )
            return add(own, new)

        with monkeypatch.context() as patched:
            patched.setattr(Tombstones, "add", raced)
            if what == "forget":
                memory.forget("memory/a.md:3", yes=True)
            else:
                (root / "memory/a.md").rename(root / "memory/c.md")
                memory.sync()
        assert not knows(memory)
        assert not memory.search("surprise party", min_score=0.0).hits


def test_migrate_takes_along_what_the_workspace_forgot(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", f"# Office\n\n{FORGOTTEN}\n\nTea at four.\n")
    with opened(root) as memory:
        memory.forget(query="Lisbon vault", yes=True)
    there = str(tmp_path / "there.sqlite")
    assert run(["migrate", str(root / ".notewell/index.sqlite"), there, "-w", str(root)]) == 0
    with opened(root, Path(there)) as memory:
        assert not knows(memory)
