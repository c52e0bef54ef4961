from __future__ import annotations

import json
import os
import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import StoreError
from notewell.index import watch as module
from notewell.index.watch import Watch, Watched, watched
from notewell.memory import Memory
from notewell.types import SyncReport
from tests.conftest import Write

WAIT_S = 60.0
Next = Callable[[Callable[[SyncReport], bool]], SyncReport]


@pytest.fixture(params=["notified", "polled"])
def reports(request: pytest.FixtureRequest, memory: Memory) -> Iterator[Next]:
    """A running watch; what is returned waits for a report of some kind."""
    told: queue.Queue[SyncReport] = queue.Queue()
    poll_s = 0.05 if request.param == "polled" else 0.0
    with memory.watch(told.put, poll_s=poll_s, debounce_s=0.05) as one:
        assert one.wait_first(WAIT_S)
        assert (one.notices, one.alive) == ((), True)

        def next_(wanted: Callable[[SyncReport], bool]) -> SyncReport:
            while True:
                report = told.get(timeout=WAIT_S)
                if wanted(report):
                    return report

        yield next_
    assert not one.alive


def test_notes_that_come_change_move_and_go_are_indexed(
    reports: Next, memory: Memory, root: Path
) -> None:
    assert not (root / "memory").exists(), "the folder appears later"
    (root / "memory/deep/er").mkdir(parents=True)
    (root / "memory/deep/er/a.md").write_text("the walrus note")
    reports(lambda r: r.added == 1)
    assert memory.search("walrus", sync=False).hits
    (root / "memory/deep/er/a.md").write_text("the ocelot note")
    reports(lambda r: r.changed == 1)
    assert memory.search("ocelot", sync=False).hits
    os.rename(root / "memory/deep", root / "memory/moved")
    reports(lambda r: r.dropped == 1)
    assert [h.chunk.path for h in memory.search("ocelot", sync=False).hits] == [
        "memory/moved/er/a.md"
    ]
    shutil.rmtree(root / "memory/moved")
    reports(lambda r: r.dropped == 1)
    (root / "MEMORY.md").write_text("- a capybara\n")
    reports(lambda r: r.added == 1)
    assert memory.search("capybara", sync=False).hits


def test_the_index_itself_wakes_nobody(memory: Memory, root: Path, write: Write) -> None:
    write("memory/a.md", "text")
    syncs: list[int] = []

    def sync() -> SyncReport:
        syncs.append(1)
        return SyncReport()

    one = Watch(lambda: watched(root, ["."]), sync, debounce_s=0.01, ignored=root / ".notewell")
    with one:
        assert one.wait_first(WAIT_S)
        one._changed([str(root / ".notewell/index.sqlite-wal")])
        assert not one._dirty.is_set()
        one._changed([str(root / ".notewell-notes.md")])
        assert one._dirty.is_set() or len(syncs) > 1


def test_folders_are_watched_once_each_and_the_root_flat(root: Path, write: Write) -> None:
    write("memory/a/b.md", "x")
    write("docs/deep/c.md", "x")
    write("one.txt", "x")
    places = watched(root, ["docs", "docs/deep/*.md", "one.txt", "later/notes"])
    assert places == Watched((str(root),), (str(root / "docs"), str(root / "memory")))
    places = watched(root, ["docs/later/x.md", "docs"])
    assert places.deep == (str(root / "docs"), str(root / "memory")), (
        "one that is to come hides none that is there"
    )
    assert watched(root, ["**/*.md"]).deep == (str(root),)


def test_of_a_folder_of_notes_each_folder_is_watched_by_itself(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a/b/c.md", "node_modules/x/y.md", ".git/objects/z", "d.md"):
        write(path, "x")
    assert watched(root, [], whole=True) == Watched(
        tuple(map(str, (root, root / "a", root / "a/b"))), ()
    )
    monkeypatch.setattr(module, "MOST_FOLDERS", 1)
    assert watched(root, [], whole=True) == Watched((), (str(root),))


def test_a_note_anywhere_in_a_folder_of_notes_wakes_the_watch(
    memory: Memory, root: Path, write: Write
) -> None:
    told: queue.Queue[SyncReport] = queue.Queue()
    with memory.watch(told.put, debounce_s=0.01) as one:
        assert one.wait_first(WAIT_S)
        write("deep/er/a.md", "The capybara swims.\n", age_s=0)
        while not told.get(timeout=WAIT_S).added:
            pass
        assert memory.search("capybara", sync=False).hits
    assert (root / ".notewell").is_dir(), "the index has its place since there is a note"


def test_where_notifications_are_not_to_be_had_it_looks_regularly(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(module, "_Listener", full)
    with memory.watch() as one:
        assert (one.poll_s, [n.code for n in one.notices]) == (module.POLL_S, ["polling"])
    monkeypatch.setattr(module, "on_network", lambda _path: True)
    with memory.watch() as one:
        assert "network" in one.notices[0].message


def test_an_error_is_told_and_the_next_look_goes_on(root: Path) -> None:
    told: queue.Queue[SyncReport] = queue.Queue()
    outcomes = iter([StoreError("another process is indexing", hint="wait")])

    def sync() -> SyncReport:
        for error in outcomes:
            raise error
        return SyncReport(added=1)

    with Watch(lambda: watched(root, []), sync, told.put, poll_s=0.01):
        assert told.get(timeout=WAIT_S).notices[0].code == "not_synced"
        assert told.get(timeout=WAIT_S).added == 1


def test_vectors_come_in_slices_until_all_are_there(root: Path) -> None:
    done = threading.Event()
    left = iter([2, 1, 0])

    def sync() -> SyncReport:
        pending = next(left)
        if not pending:
            done.set()
        return SyncReport(embedded=1, pending=pending)

    with Watch(lambda: watched(root, []), sync, poll_s=1000.0):
        assert done.wait(WAIT_S)


def test_it_starts_once_and_never_opens_a_file_of_the_tree(
    memory: Memory, root: Path, write: Write
) -> None:
    for n in range(200):
        write(f"memory/{n}.md", f"note {n}")
    memory.sync()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    one = memory.watch().start()
    try:
        assert one.wait_first(WAIT_S)
        with pytest.raises(StoreError, match="started"):
            one.start()
        if before:
            assert len(os.listdir("/proc/self/fd")) < before + 20
    finally:
        one.stop()


def test_closing_the_memory_ends_its_watches(root: Path, write: Write) -> None:
    write("memory/a.md", "text")
    memory = Memory.open(root, embed__model="none")
    one = memory.watch(poll_s=0.01).start()
    assert one.wait_first(WAIT_S)
    memory.close()
    assert not one.alive


@pytest.mark.parametrize("named", [True, False])
def test_a_transcript_that_grows_is_heard_at_once(
    root: Path, own_environment: Path, *, named: bool
) -> None:
    slug = re.sub(r"[^A-Za-z0-9]", "-", os.path.realpath(root))
    folder = root.parent / "chats" if named else own_environment / ".claude/projects" / slug
    (folder if named else own_environment / ".claude").mkdir(parents=True)
    flags: dict[str, Any] = {"sessions__paths": str(folder)} if named else {}
    told: queue.Queue[SyncReport] = queue.Queue()

    def say(text: str) -> None:
        record = {"type": "user", "cwd": str(root), "message": {"role": "user", "content": text}}
        with (folder / "one.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    with (
        Memory.open(root, embed__model="none", sources="memory,sessions", **flags) as memory,
        memory.watch(told.put, debounce_s=0.05) as one,
    ):
        assert one.wait_first(WAIT_S)
        assert str(folder if named else own_environment / ".claude") in {
            p for e in one._listeners for p in e.paths
        }
        folder.mkdir(parents=True, exist_ok=True)
        for animal in ("walrus", "ocelot"):
            say(f"Where is the {animal}?")
            while not (report := told.get(timeout=WAIT_S)).added + report.changed:
                pass
            assert memory.search(animal, sync=False).hits


def test_programs_that_are_not_in_use_are_not_watched(own_environment: Path, root: Path) -> None:
    (own_environment / ".codex").mkdir()
    with Memory.open(root, embed__model="none", sources="memory,sessions") as memory:
        assert memory.index.places.watched() == Watched(
            (str(own_environment / ".codex"), str(root)), ()
        )
