"""Whatever happens to the index file: the same answer as before, a notice, and no stack trace."""

from __future__ import annotations

import copy
import datetime as dt
import os
import random
import shutil
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.memory import Memory
from notewell.store.sqlite import connection
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.cli.commands import run
from notewell.types import Found
from tests.conftest import sqlite_of
from tests.embed.models import Windowed
from tests.faults.early import seal_early
from tests.faults.lives import make_notes

NOW = dt.datetime(2026, 11, 15, 12)  # noqa: DTZ001 - a day of this place
QUESTIONS = (
    "staging port of the billing service",
    "word17 word40 word111",
    "harbour of Bergen",
    "note-3",
    "word250",
)
PAGE = 8192
NOT_COMPARED = "not compared"
Answers = list[list[tuple[str, int, float]]]


def shown(found: Found) -> list[tuple[str, int, float]]:
    return [(h.chunk.id, h.chunk.start_line, round(h.score, 6)) for h in found.hits]


def ask(memory: Memory) -> tuple[Answers, set[str]]:
    """The answers to all questions, and the notices of any of them.

    `NOT_COMPARED` is among them where a search had no time to look for copies in a new index: it
    shows them all then.
    """
    found: list[Found] = []
    codes: set[str] = set()
    for question in QUESTIONS:
        found.append(memory.search(question, now=NOW, min_score=0.0))
        codes |= {NOT_COMPARED} if memory.store.relations.unjudged(1) else set()
    return [shown(f) for f in found], codes | {n.code for f in found for n in f.notices}


class Sample:
    """A workspace with an index, its bytes, its answers and the pages of each class."""

    def __init__(self, root: Path, *, notes: int = 12) -> None:
        self.root = root
        make_notes(root, notes=notes)
        (root / "memory/harbour.md").write_text(
            "The harbour of Bergen.\n\n" + "Long text without end. " * 900
        )
        self.file = root / ".notewell/index.sqlite"
        with self.open() as memory:
            memory.sync()
            (root / "memory/harbour.md").write_text("The harbour of Bergen is closed.\n")
            memory.sync()
            self.answers, notices = ask(memory)
            assert notices == set()
            self.keywords = [shown(memory.search(q, now=NOW, profile="lexical")) for q in QUESTIONS]
            self.pages = self._pages(sqlite_of(memory))
        self.bytes = self.file.read_bytes()

    def open(self) -> Memory:
        return Memory.open(self.root, embedder=Windowed("hashed@256", 256))

    @staticmethod
    def _pages(store: SqliteStore) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for number, name, kind in store.connection.all("SELECT pageno, name, pagetype FROM dbstat"):
            found["schema" if name == "sqlite_schema" else f"{name} {kind}"].append(number)
        found["header"] = [1]
        used = {n for pages in found.values() for n in pages}
        found["freelist"] = [
            n
            for n in range(1, store.connection.all("PRAGMA page_count")[0][0] + 1)
            if n not in used
        ]
        return found

    def restore(self) -> None:
        for left in self.file.parent.glob("index*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        self.file.write_bytes(self.bytes)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("damage") / "workspace"
    root.mkdir()
    return Sample(root)


def check_answers(sample: Sample, what: str) -> set[str]:
    """The answers are as they were, at the latest after a sync; the vectors too are mended by
    themselves.
    """
    with sample.open() as memory:
        answers, notices = ask(memory)
        assert "vector_failed" not in notices, what
        if NOT_COMPARED in notices:
            memory.sync()
            again, _ = ask(memory)
            assert again == sample.answers, what
        else:
            assert answers == sample.answers, what
        assert all(answers), what
    return notices - {NOT_COMPARED}


def flip_pages(sample: Sample, each: int, part: int = 0, parts: int = 1) -> dict[str, set[str]]:
    chance = random.Random(3)
    told: dict[str, set[str]] = defaultdict(set)
    flips = 0
    for kind, pages in sorted(sample.pages.items())[part::parts]:
        for _ in range(each if pages else 0):
            data = bytearray(sample.bytes)
            page = chance.choice(pages)
            size = 100 if kind == "header" else PAGE
            at = (page - 1) * PAGE + chance.randrange(size)
            for offset in range(chance.choice([1, 1, 16, 400])):
                if at + offset < page * PAGE:
                    data[at + offset] ^= chance.randrange(1, 256)
            version = int.from_bytes(data[60:64])
            if version != int.from_bytes(sample.bytes[60:64]) and version < 1000:
                continue  # that says it is of a newer version, which is left alone: see below
            sample.restore()
            sample.file.write_bytes(data)
            told[kind] |= check_answers(sample, f"{kind}, page {page}, byte {at}")
            flips += 1
    print(f"{flips} flips on pages of {len(told)} classes")  # noqa: T201 - the report of a long run
    return told


@pytest.mark.parametrize("part", range(4))
def test_flipped_bytes_on_pages_of_every_class(sample: Sample, part: int) -> None:
    kinds = " ".join(sample.pages)
    for wanted in (
        "header",
        "schema",
        "chunks leaf",
        "chunks internal",
        "fields leaf",
        "words leaf",
        "vectors",
        "windows",
        "freelist",
    ):
        assert wanted in kinds, kinds
    assert sample.pages["freelist"], "there are free pages"
    told = flip_pages(sample, 1, part, 4)
    assert sum("index_rebuilt" in codes for codes in told.values()) >= 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_flipped_bytes_many_times_on_pages_of_every_class(sample: Sample) -> None:
    flip_pages(sample, 40)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """A sample with what only large indexes have: word lists that are sealed, vectors in segments,
    overflow pages.
    """
    root = tmp_path_factory.mktemp("sealed") / "workspace"
    root.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        seal_early(patch.setattr)
        yield Sample(root, notes=30)


BULKY = (
    "keyword_segments",
    "postings",
    "vector_segments",
    "vector_maps",
    "words",
    "vectors",
    "windows",
)


def bulky(sample: Sample) -> Sample:
    """Only the pages of those tables."""
    held = {kind: pages for kind, pages in sample.pages.items() if kind.split()[0] in BULKY}
    chosen = copy.copy(sample)
    chosen.pages = held
    return chosen


def test_flipped_bytes_on_pages_of_sealed_lists_and_segments(sealed: Sample) -> None:
    kinds = " ".join(sealed.pages)
    for wanted in (
        "keyword_segments leaf",
        "postings leaf",
        "vector_segments overflow",
        "vector_maps leaf",
    ):
        assert wanted in kinds, kinds
    told = flip_pages(bulky(sealed), 1)
    assert sum("index_rebuilt" in codes for codes in told.values()) >= 2


VECTORS = ("models", "vectors", "windows", "vector_segments", "vector_maps")


@pytest.mark.parametrize("part", range(5))
def test_a_flipped_bit_in_vectors_is_seen_by_doctor_and_fixed_by_the_next_sync(
    sealed: Sample, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    pages = [
        (kind, page)
        for kind in sorted(sealed.pages)
        if kind.split()[0] in VECTORS
        for page in sealed.pages[kind]
    ]
    chance = random.Random(part)
    for n in range(part * 5, part * 5 + 5):
        kind, page = pages[n % len(pages)]
        at = (page - 1) * PAGE + chance.randrange(PAGE)
        data = bytearray(sealed.bytes)
        data[at] ^= 1 << chance.randrange(8)
        sealed.restore()
        sealed.file.write_bytes(data)
        if n % 5 == 0:
            assert run(["doctor", "-w", str(sealed.root), "--model", "hashed"]) == 1, kind
            assert "damaged" in capsys.readouterr().out
        with sealed.open() as memory:
            if n % 2:
                ask(memory)  # the search that meets it
            report = memory.sync()
            codes = [notice.code for notice in report.notices]
            assert codes == ["index_rebuilt"], (kind, page, at, codes)
            found = [memory.search(q, now=NOW, min_score=0.0) for q in QUESTIONS]
            assert [shown(f) for f in found] == sealed.answers, (kind, page, at)
            assert {f.mode for f in found} == {"hybrid"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_flipped_bytes_many_times_on_pages_of_sealed_lists_and_segments(sealed: Sample) -> None:
    flip_pages(bulky(sealed), 40)


def as_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "inside").write_text("x")


def gone(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def text_instead(file: Path) -> None:
    file.write_text("not a database, but a text of some length " * 300)


def truncated(share: float) -> Callable[[Path], None]:
    def cut(file: Path) -> None:
        data = file.read_bytes()
        file.write_bytes(data[: int(len(data) * share)])

    return cut


WAYS: dict[str, Callable[[Path], None]] = {
    "a folder": as_folder,
    "gone": gone,
    "empty": empty,
    "a text": text_instead,
    "a tenth": truncated(0.1),
    "half": truncated(0.5),
    "all but a byte": truncated(0.99999),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_something_else(
    sample: Sample, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.restore()
    WAYS[way](sample.file)
    notices = check_answers(sample, way)
    if way != "all but a byte":  # the last page is a free one, and nobody reads it
        assert ("index_rebuilt" in notices) == (way not in ("gone", "empty")), (
            "a notice, unless there was nothing"
        )
    sample.restore()
    WAYS[way](sample.file)
    assert run(["search", QUESTIONS[0], "-w", str(sample.root), "--model", "hashed"]) == 0
    said = capsys.readouterr()
    assert "8000" in said.out
    assert "Traceback" not in said.out + said.err


def test_a_folder_of_another_name_is_somebodys_own(sample: Sample, tmp_path: Path) -> None:
    place = tmp_path / "photos"
    place.mkdir()
    (place / "holiday.jpg").write_text("x")
    code = run(
        ["search", "word1", "-w", str(sample.root), "--index", str(place), "--model", "none"]
    )
    assert code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["photos"]


def swap_by_copy(file: Path) -> None:
    """Another index takes the name, as a backup that is put back does."""
    other = file.with_name("other")
    store = SqliteStore(other)
    store.set_meta("analysis", "of somebody else")
    store.close()
    os.replace(other, file)


def delete_all(file: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)


def delete_wal(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def folder_under_it(file: Path) -> None:
    file.unlink()
    file.mkdir()


UNDER = {
    "another index": swap_by_copy,
    "nothing": delete_all,
    "no WAL": delete_wal,
    "a folder": folder_under_it,
}


@pytest.mark.parametrize("under", UNDER)
def test_a_file_that_is_swapped_under_an_open_memory(sample: Sample, under: str) -> None:
    sample.restore()
    with sample.open() as memory:
        assert ask(memory)[0] == sample.answers
        UNDER[under](sample.file)
        answers: list[Any] = []
        # its connection is a new one
        thread = threading.Thread(target=lambda: answers.append(ask(memory)))
        thread.start()
        thread.join()
        assert answers[0][0] == sample.answers
        assert answers[0][1] & {"index_reopened", "index_rebuilt"}
        assert ask(memory)[0] == sample.answers
        assert memory.store.audit() == []
    assert check_answers(sample, under) == set()


def test_two_memories_on_a_damaged_file_make_one_new_index(sample: Sample) -> None:
    sample.restore()
    with sample.open() as one, sample.open() as other:
        ask(one), ask(other)
        sqlite_of(one).connection.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with sample.file.open("r+b") as file:
            file.seek(PAGE)
            file.write(os.urandom(len(sample.bytes) - PAGE))
        for memory in (one, other):
            for thread in list(sqlite_of(memory).connection._readers):
                thread.execute("PRAGMA shrink_memory")
        for memory in (one, other, one, other):
            # as a new thread would read
            sqlite_of(memory).connection._thread = connection._Thread()
            assert ask(memory)[0] == sample.answers
        assert len(list(sample.file.parent.glob("index.damaged-*.sqlite"))) == 1, (
            "the second found it mended"
        )


NEWER = """
import sys, pathlib
from notewell.store.sqlite import schema, store
schema.MIGRATIONS = (*schema.MIGRATIONS, lambda db: db.execute("CREATE TABLE later (a)"))
store = store.SqliteStore(pathlib.Path(sys.argv[1]))
store.set_meta("later", "yes")
store.close()
"""


def test_an_older_program_leaves_a_newer_index_alone(
    sample: Sample, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.restore()
    subprocess.run([sys.executable, "-c", NEWER, str(sample.file)], check=True)
    newer = sample.file.read_bytes()
    for command in (
        ["search", "word1"],
        ["index"],
        ["index", "--force"],
        ["status"],
        ["remember", "a text"],
    ):
        assert run([*command, "-w", str(sample.root), "--model", "none"]) == 1
        said = capsys.readouterr().err
        assert "newer notewell" in said
        assert "upgrade" in said
        assert "Traceback" not in said
    assert sample.file.read_bytes() == newer
    assert not list(sample.file.parent.glob("*damaged*"))


def test_a_newer_program_that_comes_while_an_older_one_is_open(sample: Sample) -> None:
    sample.restore()
    with sample.open() as memory:
        assert ask(memory)[0] == sample.answers
        subprocess.run([sys.executable, "-c", NEWER, str(sample.file)], check=True)
        assert ask(memory)[0] == sample.answers, "what is open goes on"
    assert not list(sample.file.parent.glob("*damaged*"))


def test_on_a_network_file_system_there_is_no_wal(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample.restore()
    monkeypatch.setattr(connection, "on_network", lambda _path: True)
    with sample.open() as memory:
        assert ask(memory) == (sample.answers, set())
        assert sqlite_of(memory).connection.db.execute("PRAGMA journal_mode").fetchall() == [
            ("delete",)
        ]
        assert not Path(f"{sample.file}-wal").exists()
        (sample.root / "memory/net.md").write_text("The quokka lives on Rottnest.\n")
        assert memory.search("quokka Rottnest").hits[0].chunk.path == "memory/net.md"
        (sample.root / "memory/net.md").unlink()
        memory.sync()
        assert memory.store.audit() == []


@pytest.mark.parametrize("year", [1971, 2099])
def test_a_clock_that_jumps(sample: Sample, monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    sample.restore()
    then = int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp() * 1e9)
    with sample.open() as memory:
        monkeypatch.setattr("time.time_ns", lambda: then)
        place = sample.root / "memory/jump.md"
        place.write_text("The quokka lives on Rottnest.\n")
        assert memory.search("quokka Rottnest").hits[0].chunk.path == "memory/jump.md"
        place.write_text("The numbat lives on Rottnest!\n")
        os.utime(place, ns=(then, then))
        assert "numbat" in memory.search("numbat Rottnest").hits[0].chunk.text
        monkeypatch.undo()
        place.write_text("The wombat lives in Bendigo.\n")
        assert "wombat" in memory.search("wombat Bendigo").hits[0].chunk.text
        place.unlink()
        assert ask(memory)[0] == sample.answers


def test_without_a_place_for_temporary_files(sample: Sample, tmp_path: Path) -> None:
    sample.restore()
    nowhere = str(tmp_path / "nowhere")
    env = {
        **os.environ,
        "TMPDIR": nowhere,
        "SQLITE_TMPDIR": nowhere,
        "TMP": nowhere,
        "TEMP": nowhere,
    }
    command = [sys.executable, "-m", "notewell.surfaces.cli.main"]
    for words in (
        ["index", "--force"],
        ["index", "--prune"],
        ["remember", "The quokka lives on Rottnest."],
        ["search", "quokka"],
        ["forget", "--query", "quokka", "--yes", "--from-files"],
    ):
        done = subprocess.run(
            [*command, *words, "-w", str(sample.root), "--model", "hashed"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            cwd=sample.root,
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    for note in sample.root.glob("memory/20*.md"):
        note.unlink()
    (sample.root / ".notewell/forgotten.jsonl").unlink()


def test_on_read_only_media_an_index_is_searched_as_it_is(sample: Sample) -> None:
    sample.restore()
    store = SqliteStore(sample.file, read_only=True)
    assert store.audit() == []
    assert store.counts()["documents"] == 25
    store.close()
    assert sample.file.read_bytes() == sample.bytes, "and nothing of it changes"
