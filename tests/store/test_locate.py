"""How an index comes to be and is set aside, by several processes at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.store.locate import REOPENED, open_store, set_aside
from notewell.store.nearest import find_workspace
from notewell.store.sqlite.connection import inode_of
from notewell.store.sqlite.store import SqliteStore

OPENER = """
import sys
from pathlib import Path
from notewell.store.locate import open_store
store, notices = open_store(Path(sys.argv[1]))
store.set_meta(sys.argv[2], "was here")
print(*(notice.code for notice in notices))
"""


def open_at_once(file: Path, count: int) -> list[str]:
    """What so many processes were told that opened an index at once."""
    command = [sys.executable, "-c", OPENER, str(file)]
    running = [
        subprocess.Popen([*command, f"key{n}"], stdout=subprocess.PIPE) for n in range(count)
    ]
    told = [process.communicate(timeout=50)[0].decode().strip() for process in running]
    assert [process.returncode for process in running] == [0] * count
    return told


def test_processes_that_make_an_index_at_once_make_one(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    assert open_at_once(file, 8) == [""] * 8
    store = SqliteStore(file)
    assert [store.get_meta(f"key{n}") for n in range(8)] == ["was here"] * 8
    store.close()
    assert [p.name for p in tmp_path.iterdir()] == ["index.sqlite"]


def test_of_processes_that_find_damage_one_sets_it_aside(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    file.write_bytes(b"this was an index once" * 1000)
    told = open_at_once(file, 6)
    assert told.count("index_rebuilt") == 1
    assert set(told) <= {"index_rebuilt", "index_reopened", ""}
    store = SqliteStore(file)
    assert [store.get_meta(f"key{n}") for n in range(6)] == ["was here"] * 6
    store.close()
    assert len(list(tmp_path.glob("*.damaged-*.sqlite"))) == 1


def test_a_file_that_is_another_one_by_now_is_not_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    SqliteStore(file).close()
    seen = inode_of(file)
    (tmp_path / "kept").hardlink_to(file)  # so that the number of the file is not given away again
    file.unlink()
    SqliteStore(file).close()
    assert set_aside(file, seen) is REOPENED
    assert not list(tmp_path.glob("*.damaged-*"))


def test_what_a_killed_maker_left_goes_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "index.sqlite.0011aabb.new"
    left.write_bytes(b"half of an index")
    open_store(tmp_path / "index.sqlite")[0].close()
    assert left.exists(), "its maker may be at work"
    (tmp_path / "index.sqlite").unlink()
    hour_later = time.time() + 3601
    monkeypatch.setattr("time.time", lambda: hour_later)
    open_store(tmp_path / "index.sqlite")[0].close()
    assert not left.exists()


def test_without_hard_links_an_index_is_made_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_arguments: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", no_links)
    store, notices = open_store(tmp_path / "index.sqlite")
    store.set_meta("a", "b")
    store.close()
    assert notices == ()
    assert [p.name for p in tmp_path.iterdir()] == ["index.sqlite"]


def test_an_index_of_the_home_folder_claims_no_folder_below_it(own_environment: Path) -> None:
    (own_environment / "notes").mkdir()
    (own_environment / "a.md").write_text("The kiln is hot.\n")
    (own_environment / "notes/b.md").write_text("The kettle is red.\n")
    with Memory.open(own_environment, embed__model="none") as memory:
        found = memory.search("kiln")
        assert found.hits
        assert [n.code for n in found.notices] == ["index_elsewhere"]
    assert not (own_environment / ".notewell").exists()
    assert find_workspace(own_environment / "notes", {}) == own_environment / "notes"
    (own_environment / "MEMORY.md").write_text("- mine\n")
    with Memory.open(own_environment, embed__model="none") as memory:
        memory.sync()
    assert (own_environment / ".notewell").is_dir(), "who keeps a memory there means it"
