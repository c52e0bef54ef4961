"""Places that do not let everything happen: media that cannot be written, no room for temporary
files, a disk that fails while a damaged index is set aside, and network file systems, where there
is no WAL.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import NotewellError
from notewell.memory import Memory
from notewell.settings import Settings
from notewell.store import locate as place_
from notewell.store.sqlite import connection
from notewell.store.sqlite.checksum_vfs import checking_vfs
from notewell.store.sqlite.store import SqliteStore
from tests.conftest import Write, sqlite_of
from tests.faults.broken_disk import FATE, BrokenOs, Fate, broken_disk
from tests.faults.lives import faults, make_notes
from tests.faults.test_broken_disk import every_failure, on_broken_disk

CLI = [sys.executable, "-m", "notewell.surfaces.cli.main"]
NO_ROOM = "no-temporary-files"
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


def on_read_only_media(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a world of its own, in which a folder is on media that cannot be written."""
    apart = ["unshare", "-rm", "sh", "-c", READ_ONLY, "sh", str(folder)]
    return subprocess.run([*apart, *words], capture_output=True, text=True, check=False, timeout=50)


@pytest.fixture
def medium(root: Path, write: Write) -> Path:
    """A workspace with an index, which can be looked at as if it were on such media."""
    if shutil.which("unshare") is None or on_read_only_media(root, "true").returncode:
        pytest.skip("this machine lets nobody mount anything")
    write("memory/a.md", "The quokka lives on Rottnest.\n")
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        memory.sync()
    return root


def test_a_workspace_on_read_only_media_is_indexed_elsewhere_with_a_notice(medium: Path) -> None:
    options = ["--json", "-w", str(medium), "--model", "hashed"]
    found = on_read_only_media(medium, *CLI, "search", "quokka", *options)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["results"][0]["path"] == "memory/a.md"
    assert [n["code"] for n in told["notices"]] == ["index_elsewhere"]
    for words in (["remember", "more"], ["forget", "--query", "quokka", "--yes", "--from-files"]):
        refused = on_read_only_media(medium, *CLI, *words, *options)
        assert refused.returncode == 1
        assert "Read-only file system" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert (medium / "memory/a.md").read_text() == "The quokka lives on Rottnest.\n"


def test_an_index_that_is_named_on_read_only_media_is_searched_as_it_is(medium: Path) -> None:
    file = medium / ".notewell/index.sqlite"
    before = file.read_bytes()
    options = ["--json", "-w", str(medium), "--index", str(file), "--model", "hashed"]
    (medium / "memory/a.md").write_text("The quokka has moved away.\n")
    found = on_read_only_media(medium, *CLI, "search", "quokka", *options)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert "Rottnest" in told["results"][0]["snippet"]
    assert ([n["code"] for n in told["notices"]], told["stale"], told["mode"]) == (
        ["index_read_only"],
        True,
        "hybrid",
    )
    for words in (["status"], ["timeline"], ["doctor", "--deep"], ["forget", "--query", "quokka"]):
        done = on_read_only_media(medium, *CLI, *words, *options)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (
            done.stderr + done.stdout
        )
    for words in (
        ["index"],
        ["index", "--force"],
        ["remember", "more"],
        ["forget", "--query", "quokka", "--yes"],
    ):
        done = on_read_only_media(medium, *CLI, *words, *options)
        assert (done.returncode, "cannot be written" in done.stderr) == (1, True), done.stderr
    assert file.read_bytes() == before


def test_a_damaged_index_on_read_only_media_is_an_error_with_a_hint(medium: Path) -> None:
    file = medium / ".notewell/index.sqlite"
    file.write_bytes(file.read_bytes()[:20_000] + os.urandom(file.stat().st_size - 20_000))
    options = ["--json", "-w", str(medium), "--index", str(file), "--model", "hashed"]
    done = on_read_only_media(medium, *CLI, "search", "quokka", *options)
    assert done.returncode == 1
    assert "hint" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("strike", [1, 2, 3])
def test_a_damaged_index_that_cannot_be_set_aside_is_an_error_with_a_hint(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, strike: int
) -> None:
    write("memory/a.md", "The quokka lives on Rottnest.\n")
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        memory.sync()
    file = root / ".notewell/index.sqlite"
    for end in ("", "-wal", "-shm"):
        Path(f"{file}{end}").write_text("no database at all " * 1000)
    monkeypatch.setattr(place_, "os", BrokenOs())
    FATE.set(strike, full=False, for_good=True)
    try:
        with pytest.raises(NotewellError, match="cannot be set aside") as caught:
            Memory.open(root, embedder=HashedEmbedder())
    finally:
        FATE.set(0, full=True)
    assert caught.value.hint
    monkeypatch.undo()
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        found = memory.search("quokka")
        assert found.hits[0].chunk.path == "memory/a.md"
        assert memory.store.audit() == []


class NoTemporaryFiles(apsw.VFS):
    """A machine that has not a byte left for files without a name."""

    asked = 0

    def __init__(self) -> None:
        self.under = checking_vfs() or ""
        super().__init__(NO_ROOM, self.under)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if name is None:
            self.asked += 1
            raise apsw.FullError("no room for a temporary file")
        return apsw.VFSFile(self.under, name, flags)


def test_with_0_bytes_of_temporary_space_everything_works(root: Path, tmp_path: Path) -> None:
    vfs = NoTemporaryFiles()
    try:
        make_notes(root, notes=8)
        place = tmp_path / "index.sqlite"
        with Memory(
            root, Settings(), SqliteStore(place, vfs=NO_ROOM), embedder=HashedEmbedder(), env={}
        ) as memory:
            memory.sync()
            memory.sync(force=True)
            assert memory.search("staging port of the billing service").hits
            assert memory.forget(query="word17", yes=True).proved
            memory.prune()
            assert memory.store.audit() == []
            memory.store.scrub()
        assert vfs.asked == 0, "nothing of the index is ever put into a temporary file"
    finally:
        vfs.unregister()


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fate]:
    monkeypatch.setattr(connection, "on_network", lambda _path: True)
    with broken_disk() as fate:
        yield fate


def test_a_disk_that_fails_on_a_network_file_system(
    root: Path, tmp_path: Path, network: Fate
) -> None:
    make_notes(root, notes=2)
    every_failure(root, tmp_path, network, most=7)


def test_a_cut_of_power_on_a_network_file_system_is_rolled_back(
    root: Path, tmp_path: Path, network: Fate
) -> None:
    make_notes(root, notes=4)
    file = tmp_path / "index.sqlite"
    with on_broken_disk(root, file) as memory:
        memory.sync()
        before = memory.store.counts()["chunks"]
    cut = tmp_path / "cut.sqlite"
    with on_broken_disk(root, file) as memory, memory.store.writing():
        memory.store.documents.drop(sorted(memory.store.documents.stored())[:4])
        store = sqlite_of(memory)
        # half of it is in the file, the journal knows what was there before
        store.connection.db.cache_flush()
        for end in ("", "-journal"):
            shutil.copy(f"{file}{end}", f"{cut}{end}")
    with Memory.open(root, embedder=HashedEmbedder(), index__path=str(cut)) as memory:
        assert memory.store.counts()["chunks"] == before
        assert memory.store.audit() == []
        assert memory.search("staging port of the billing service").hits
    assert faults(root) == []
