from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from notewell.index import read_ahead as module
from notewell.index.read_ahead import Reader, Reading, ReadingAhead, Task, ahead_of, serve
from notewell.index.walk import Walk
from notewell.sources.files import FileSource
from notewell.store.sqlite.store import SqliteStore
from notewell.text.chunk import ChunkSize
from notewell.text.forgotten import Forgotten
from notewell.text.redact import Redactor
from notewell.types import Document, SyncReport
from tests.conftest import Write

READER = Reader(ChunkSize(100, 20), Forgotten(()), Redactor(("hushed [a-z]+",)))
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def notes(root: Path, write: Write) -> Path:
    for number in range(30):
        text = (
            f"---\ntags: [t{number}]\n---\n# Note {number}\n\nSee [[Note {number + 1}]], "
            f"hushed word{number}.\n\n"
        )
        # a while ago
        write(f"memory/{number:02}.md", text + f"A line about harbour {number}.\n" * 20)
    return root


def tasks(root: Path) -> list[Task]:
    return [Task(d, 0) for d in FileSource(root).scan().documents]


def ahead(root: Path) -> ReadingAhead:
    return ReadingAhead(READER, [FileSource(root).detached()], tasks(root))


def rows(store: SqliteStore) -> list[object]:
    """Everything that the order of reading could change."""
    tables = {
        "documents": "id, path, source, size, mtime_ns, digest, name, title, date",
        "chunks": "row, id, document, start_line, end_line, heading, text, content_hash",
        "words": "word, id",
        "fields": "*",
        "edges": "*",
    }
    return [
        store.connection.all(f"SELECT {columns} FROM {table} ORDER BY 1, 2")
        for table, columns in tables.items()
    ]


def synced(
    root: Path, *, ahead_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[SyncReport, SqliteStore]:
    monkeypatch.setattr(module, "AHEAD_BYTES", ahead_bytes)
    monkeypatch.setattr(module, "_BEGUN_BYTES", 2000)
    monkeypatch.setattr(module, "_PART_BYTES", 3000)
    monkeypatch.setattr(module, "_can_start", lambda: True)
    store = SqliteStore(None)
    return Walk([FileSource(root)], store, ChunkSize(100, 20), redactor=Redactor()).sync(), store


def test_a_second_process_returns_what_this_one_would_read(notes: Path) -> None:
    made = ahead(notes)
    found = [made.take(task.document) for task in tasks(notes)]
    made.close()
    assert found == [READER.read(task.document, FileSource(notes)) for task in tasks(notes)]
    assert all(one and one.redacted for one in found)


def test_an_index_is_the_same_with_and_without_a_second_process(
    notes: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/binary.md", b"\0\1\2" * 100)
    write("memory/secret.md", f"the token is {SECRET}\n")
    report, plain = synced(notes, ahead_bytes=10**9, monkeypatch=monkeypatch)
    used: list[Reading | None] = []
    take = ReadingAhead.take

    def counted(self: ReadingAhead, document: Document) -> Reading | None:
        used.append(take(self, document))
        return used[-1]

    monkeypatch.setattr(ReadingAhead, "take", counted)
    other, parallel = synced(notes, ahead_bytes=1, monkeypatch=monkeypatch)
    assert sum(one is not None for one in used) > 20
    assert rows(plain) == rows(parallel)
    assert SECRET not in str(rows(parallel))
    assert (other.added, other.chunks, other.redacted) == (
        report.added,
        report.chunks,
        report.redacted,
    )
    assert (
        [(s.path, s.reason) for s in other.skipped]
        == [(s.path, s.reason) for s in report.skipped]
        != []
    )


def test_a_second_process_that_is_killed_leaves_the_rest_to_this_one(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plain = synced(notes, ahead_bytes=10**9, monkeypatch=monkeypatch)
    take, taken = ReadingAhead.take, []

    def killing(self: ReadingAhead, document: Document) -> object:
        taken.append(document)
        if len(taken) == 8 and self._process is not None:
            self._process.process.kill()
            self._process.process.wait()
            self._part = iter(())
        return take(self, document)

    monkeypatch.setattr(ReadingAhead, "take", killing)
    report, parallel = synced(notes, ahead_bytes=1, monkeypatch=monkeypatch)
    assert report.added == 30
    assert rows(plain) == rows(parallel)


def test_a_python_that_cannot_be_started_is_done_without(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(notes / "no python"))
    made = ahead(notes)
    assert made.take(tasks(notes)[0].document) is None
    made.close()


def test_what_cannot_be_sent_is_read_here(notes: Path) -> None:
    class Odd(FileSource):
        def __reduce__(self) -> str:
            raise pickle.PicklingError("no")

    made = ReadingAhead(READER, [Odd(notes)], tasks(notes))
    assert made.take(tasks(notes)[0].document) is None
    made.close()


def test_a_second_process_starts_only_where_there_is_much_to_read(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ahead_of(READER, [FileSource(notes)], tasks(notes)) is None
    monkeypatch.setattr(module, "AHEAD_BYTES", 1)
    monkeypatch.setattr(module, "_can_start", lambda: False)
    assert ahead_of(READER, [FileSource(notes)], tasks(notes)) is None


def test_a_note_that_changed_a_moment_ago_is_read_when_it_is_stored(
    notes: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AHEAD_BYTES", 1)
    monkeypatch.setattr(module, "_BEGUN_BYTES", 0)
    monkeypatch.setattr(module, "_can_start", lambda: True)
    os.utime(write("memory/00.md", "new\n" * 10))
    made = ahead_of(READER, [FileSource(notes)], tasks(notes))
    assert made is not None
    assert made.take(tasks(notes)[0].document) is None
    assert made.take(tasks(notes)[1].document) is not None
    made.close()


def test_a_sync_before_a_search_starts_no_process(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("no process may start here")

    monkeypatch.setattr("notewell.index.walk.read_ahead.ahead_of", refused)
    report = Walk([FileSource(notes)], SqliteStore(None)).sync(deadline=time.monotonic() + 60)
    assert report.added == 30


def test_one_note_that_fails_is_left_to_the_process_that_asked(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    read: Callable[..., str] = FileSource.read

    def fails(self: FileSource, document: Document) -> str:
        if document.path == "memory/01.md":
            raise RuntimeError("a bug")
        return read(self, document)

    monkeypatch.setattr(FileSource, "read", fails)
    out = io.BytesIO()
    serve(io.BytesIO(pickle.dumps((READER, [FileSource(notes)], tasks(notes)[:3]))), out)
    found = pickle.loads(out.getvalue())  # noqa: S301 - made above
    assert [one and one.what for one in found] == ["read", None, "read"]


@pytest.mark.skipif(sys.platform == "win32", reason="looks for the process by its parent")
def test_the_second_process_ends_with_the_first(notes: Path) -> None:
    code = (
        "import os, sys, pickle\nfrom pathlib import Path\n"
        "from tests.index.test_read_ahead import ahead, tasks\n"
        "root = Path(sys.argv[1])\nmade = ahead(root)\nmade.take(tasks(root)[0].document)\n"
        "print(made._process.process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(notes)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    child = int(done.stdout)
    until = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < until


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        try:
            os.kill(process, 0)
        except OSError:
            return False
        return not Path("/proc").is_dir()
    return stat.rpartition(")")[2].split()[0] != "Z"
