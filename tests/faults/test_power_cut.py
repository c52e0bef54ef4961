"""A cut of power at any byte of the WAL: what is left opens, is whole, and is a moment that there
really was.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import StoreDamagedError
from notewell.memory import Memory
from notewell.store.sqlite.store import SqliteStore
from tests.conftest import sqlite_of
from tests.faults.early import seal_early
from tests.faults.lives import make_notes
from tests.faults.test_kill_index import content

HEADER, FRAME = 32, 24
Moment = tuple[int, int, int]


def moment(store: SqliteStore) -> Moment:
    """What tells one moment of an index from another."""
    generation, documents, vectors = store.connection.all(
        "SELECT (SELECT value FROM meta WHERE key = 'generation'), "
        "(SELECT count(*) FROM documents), (SELECT count(*) FROM vectors)"
    )[0]
    return generation, documents, vectors


class History:
    """An index in the making, with a copy of its file and WAL, and every moment that it went
    through.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        make_notes(root, notes=6)
        self.root, self.folder = root, folder
        file = folder / "live.sqlite"
        with Memory.open(root, embedder=HashedEmbedder(), index__path=str(file)) as memory:
            memory.sync()
            for n in range(6):
                (root / f"memory/note-{n}.md").write_text(
                    f"# Note {n}\n\nWritten again, as revision {n}.\n" * 20
                )
                memory.sync()
            sqlite_of(memory).connection.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            for n in range(3):
                (root / f"memory/late-{n}.md").write_text(
                    f"# Late {n}\n\nThe harbour is closed on day {n}.\n"
                )
                memory.sync()
            shutil.copy(file, folder / "cut.sqlite")
            shutil.copy(f"{file}-wal", folder / "cut.sqlite-wal")
            self.last = moment(sqlite_of(memory))
        self.wal = (folder / "cut.sqlite-wal").read_bytes()
        self.page = struct.unpack(">I", self.wal[8:12])[0]
        self.frames = (len(self.wal) - HEADER) // (FRAME + self.page)

    def after(self, wal: bytes | None, *, name: str) -> tuple[Moment, list[str]]:
        """The moment that is found with this WAL, and what does not agree."""
        file = self.folder / f"{name}.sqlite"
        shutil.copy(self.folder / "cut.sqlite", file)
        if wal is not None:
            Path(f"{file}-wal").write_bytes(wal)
        store = SqliteStore(file)
        try:
            found = moment(store), [*store.audit()]
        finally:
            store.close()
        return found

    def whole_again(self, name: str) -> None:
        """The next sync makes of it what there would be without a cut."""
        file, fresh = self.folder / f"{name}.sqlite", self.folder / f"{name}-fresh.sqlite"
        for place in (file, fresh):
            with Memory.open(
                self.root, embedder=HashedEmbedder(), index__path=str(place)
            ) as memory:
                memory.sync()
                assert (
                    memory.search("harbour closed on day 2").hits[0].chunk.path
                    == "memory/late-2.md"
                )
        one, other = content(file), content(fresh)
        one["vectors"] = [v for v in one["vectors"] if v in other["vectors"]]
        assert one == other


@pytest.fixture(scope="module", autouse=True)
def early() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        seal_early(patch.setattr)
        yield


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("power")
    root = folder / "workspace"
    root.mkdir()
    return History(root, folder)


def cuts(history: History, every: int) -> list[int]:
    """Frame borders, and places inside the header and inside frames."""
    frame = FRAME + history.page
    borders = [HEADER + n * frame for n in range(0, history.frames + 1, every)]
    return [
        0,
        5,
        HEADER - 1,
        *borders,
        *(b + FRAME // 2 for b in borders),
        *(b + frame // 2 for b in borders),
    ]


def check_cuts(history: History, every: int) -> None:
    seen: list[Moment] = []
    for n, length in enumerate(sorted(set(cuts(history, every)))):
        found, faults = history.after(history.wal[:length], name=f"cut-{n}")
        assert faults == [], length
        assert not seen or found >= seen[-1], "a longer WAL never tells of an earlier moment"
        seen.append(found)
        if n % 25 == 0:
            history.whole_again(f"cut-{n}")
        for left in history.folder.glob(f"cut-{n}*"):
            left.unlink()
    assert seen[-1] == history.last
    assert len(set(seen)) > 3, "the cuts lie in the middle of history"


def test_a_wal_that_is_cut_off(history: History) -> None:
    check_cuts(history, every=max(1, history.frames // 10))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_wal_that_is_cut_off_anywhere(history: History) -> None:
    check_cuts(history, every=1)


def spoilt(history: History, chance: random.Random) -> tuple[bytes, int]:
    """The WAL with its tail as a disk may leave it that wrote pages in another order; and the first
    frame of that.
    """
    frame = FRAME + history.page
    frames = [
        history.wal[HEADER + n * frame : HEADER + (n + 1) * frame] for n in range(history.frames)
    ]
    first = chance.randrange(history.frames)
    tail = frames[first:]
    match chance.randrange(4):
        case 0:
            chance.shuffle(tail)
        case 1:
            tail[0] = bytes(frame)
        case 2:
            tail[0] = tail[0][: FRAME + 512] + bytes(frame - FRAME - 512)
        case _:
            at = chance.randrange(frame)
            tail[0] = (
                tail[0][:at] + bytes([tail[0][at] ^ (1 << chance.randrange(8))]) + tail[0][at + 1 :]
            )
    return history.wal[:HEADER] + b"".join([*frames[:first], *tail]), first


def check_spoilt(history: History, times: int) -> None:
    chance = random.Random(4)
    frame = FRAME + history.page
    for n in range(times):
        wal, first = spoilt(history, chance)
        found, faults = history.after(wal, name=f"spoilt-{n}")
        assert faults == []
        least, _ = history.after(history.wal[: HEADER + first * frame], name=f"least-{n}")
        assert least <= found <= history.last, (
            "all that was written before the spoilt frame is there"
        )
        if n % 10 == 0:
            history.whole_again(f"spoilt-{n}")
        for left in history.folder.glob(f"*-{n}*"):
            left.unlink()


def test_a_wal_whose_tail_was_written_in_another_order(history: History) -> None:
    check_spoilt(history, 12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_wal_whose_tail_was_written_in_any_order(history: History) -> None:
    check_spoilt(history, 500)


def test_a_wal_that_is_gone_or_somebody_elses(history: History, tmp_path: Path) -> None:
    found, faults = history.after(None, name="gone")
    assert faults == []
    assert found <= history.last
    history.whole_again("gone")
    # an empty file is filled in place, so that its WAL has all of it
    (tmp_path / "whole.sqlite").touch()
    wals = []
    for name in ("whole", "part"):
        other = SqliteStore(tmp_path / f"{name}.sqlite")
        other.set_meta("a", "b")
        wals.append((tmp_path / f"{name}.sqlite-wal").read_bytes())
        other.close()
    # The WAL of another database is a history of its own, and SQLite takes it: an index that is
    # empty, but whole.
    _, faults = history.after(wals[0], name="theirs")
    assert faults == []
    history.whole_again("theirs")
    # Pages of another database among ours are damage, which is seen at the latest by who looks for
    # it.
    try:
        _, faults = history.after(wals[1], name="mixed")
    except StoreDamagedError as error:
        faults = [str(error)]
    assert faults
    history.whole_again("mixed")
