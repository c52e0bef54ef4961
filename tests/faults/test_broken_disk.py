"""A disk that is full or fails at any one call, or from any one call on: nothing half, a hint, and
then it works.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell import opener as opener_
from notewell import settings as settings_
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import NotewellError
from notewell.memory import Memory
from notewell.notes import editor as notes_
from notewell.notes import forget as forget_
from notewell.store.sqlite.store import SqliteStore
from tests.faults.broken_disk import FATE, VFS, BrokenOs, Fate, broken_disk
from tests.faults.early import seal_early
from tests.faults.lives import faults, make_notes
from tests.faults.test_kill_index import content

NOW = dt.datetime(2026, 11, 15, 12)  # noqa: DTZ001 - a day of this place
Work = Callable[[Memory], object]


@pytest.fixture(scope="module", autouse=True)
def early() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        seal_early(patch.setattr)
        yield


@pytest.fixture
def fate() -> Iterator[Fate]:
    with broken_disk() as fate:
        yield fate


def on_broken_disk(root: Path, file: Path) -> Memory:
    settings = settings_.load(root, env={}, flags={"index.path": str(file)})
    store = SqliteStore(file, vfs=VFS)
    return Memory(root, settings, store, embedder=HashedEmbedder(), env={})


def attempt(work: Callable[[], object]) -> str:
    """What a user would be told; anything but an error of ours with a hint is a fault of ours."""
    try:
        work()
    except NotewellError as error:
        assert error.hint, error  # noqa: PT017 - whether it fails at all is not known
        return str(error)
    return ""


def index_all(root: Path, file: Path) -> None:
    with on_broken_disk(root, file) as memory:
        memory.sync()


def every_failure(root: Path, folder: Path, fate: Fate, *, most: int, seed: int = 0) -> None:
    """Fails so many calls, one after the other or from one on, spread over the whole run."""
    good = folder / "good.sqlite"
    fate.set(0, full=True)
    index_all(root, good)
    calls, expected = fate.calls, content(good)
    step = max(1, calls // most)
    struck = 0
    for n in range(1 + seed % step, calls + 1, step):
        for kind in range(4):
            file = folder / f"{n}-{kind}.sqlite"
            fate.set(n, full=kind % 2 == 0, for_good=kind >= 2)
            told = attempt(lambda file=file: index_all(root, file))  # type: ignore[misc]
            hit = sum(fate.struck.values())
            struck += bool(hit)
            fate.set(0, full=True)
            with Memory.open(root, embedder=HashedEmbedder(), index__path=str(file)) as memory:
                assert memory.store.audit() == [], (n, kind, told)
                assert not [m.code for m in memory.notices if m.code.startswith("index_")], (
                    n,
                    kind,
                    told,
                )
                memory.sync()
            assert content(file) == expected, (n, kind, told)
            for left in folder.glob(f"{n}-{kind}.*"):
                left.unlink()
    assert struck >= min(most, calls), "the disk really failed"


def test_a_disk_that_fails_while_an_index_is_made(root: Path, tmp_path: Path, fate: Fate) -> None:
    make_notes(root, notes=3)
    every_failure(root, tmp_path, fate, most=7)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_disk_that_fails_at_every_single_call(root: Path, tmp_path: Path, fate: Fate) -> None:
    make_notes(root, notes=4)
    every_failure(root, tmp_path, fate, most=100_000)


def test_a_disk_that_fails_while_a_search_brings_the_index_up_to_date(
    root: Path, tmp_path: Path, fate: Fate
) -> None:
    make_notes(root, notes=3)
    file = tmp_path / "index.sqlite"
    fate.set(0, full=True)
    index_all(root, file)
    for n in range(1, 12):
        (root / "memory/new.md").write_text(f"The harbour is closed on day {n}.\n")
        with on_broken_disk(root, file) as memory:
            fate.set(n, full=n % 2 == 0, for_good=True)
            found = memory.search("staging port of the billing service", now=NOW)
            assert found.hits, "the answer is poorer, and never empty for that reason"
            codes = [m.code for m in found.notices]
            fate.set(0, full=True)
            if "not_synced" not in codes:
                assert (
                    memory.search("harbour closed", now=NOW)
                    .hits[0]
                    .chunk.text.endswith(f"day {n}.")
                )
            assert (
                memory.search(f"harbour closed on day {n}", now=NOW).hits[0].chunk.path
                == "memory/new.md"
            )
            assert memory.store.audit() == []


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fate]:
    for module in (notes_, forget_, opener_):  # tombstones are written by the opener
        monkeypatch.setattr(module, "os", BrokenOs())
    FATE.set(0, full=True)
    yield FATE
    FATE.set(0, full=True)


ENTRY = "The harbour of Bergen is closed on Sundays."
LONG = ENTRY + " " + "It goes on and on." * 200
REMEMBER: dict[str, Work] = {
    "a short text into a new note": lambda m: m.remember(ENTRY, now=NOW),
    "a long text into a new note": lambda m: m.remember(LONG, now=NOW),
    "a text at the end of a note": lambda m: m.remember(ENTRY, file="memory/note-1.md", now=NOW),
    "a text in the middle of a note": lambda m: m.remember(
        ENTRY, file="memory/note-1.md", heading="Topic 1", now=NOW
    ),
}


def notes_of(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.glob("memory/*"))}


@pytest.mark.parametrize("what", REMEMBER)
def test_a_disk_that_fails_while_a_note_is_written(root: Path, shim: Fate, what: str) -> None:
    make_notes(root, notes=2)
    before = notes_of(root)
    with Memory.open(root, embed__model="none") as memory:
        shim.set(0, full=True)
        REMEMBER[what](memory)
        calls, after = shim.calls, notes_of(root)
        assert calls >= 1
        for n in range(1, calls + 1):
            for kind in range(4):
                for path in root.glob("memory/*"):
                    path.unlink()
                for name, data in before.items():
                    (root / name).write_bytes(data)
                memory.sync()
                shim.set(n, full=kind % 2 == 0, for_good=kind >= 2)
                told = attempt(lambda: REMEMBER[what](memory))
                shim.set(0, full=True)
                assert notes_of(root) in (before, after), (
                    f"half an entry, or a file left over, after call {n}: {told}"
                )
                assert told or notes_of(root) == after, "what is reported as done is there"
                attempt(lambda: REMEMBER[what](memory))
                assert notes_of(root) == after, "the next time works, and twice is once"
                assert (
                    memory.search("harbour of Bergen closed", now=NOW)
                    .hits[0]
                    .chunk.text.find("Bergen")
                    >= 0
                )
    assert faults(root) == []


def test_a_disk_that_fails_while_something_is_forgotten(root: Path, shim: Fate) -> None:
    make_notes(root, notes=1)
    place = root / "memory/secret.md"
    whole = (
        "# Secrets\n\nThe harbour of Bergen is closed.\n\nThe codeword is zanzibar, as "
        "everybody knows.\n"
    )
    less = whole.replace("The codeword is zanzibar, as everybody knows.\n", "")
    n, calls = 0, 99
    while n <= calls:
        place.write_text(whole)
        with Memory.open(root, embed__model="none") as memory:
            for receipt in {s.receipt for s in memory.index.tombstones.load().stones}:
                memory.unforget(receipt)
            memory.sync()
            shim.set(n, full=n % 2 == 0, for_good=n % 3 == 0)
            told = attempt(lambda m=memory: m.forget(query="zanzibar", yes=True, from_files=True))  # type: ignore[misc]
            calls = shim.calls if n == 0 else calls
            shim.set(0, full=True)
            text = place.read_text()
            assert text == whole or ("zanzibar" not in text and "Bergen" in text), f"{n}: {text!r}"
            if not told:
                assert not memory.search("zanzibar", now=NOW).hits
            assert memory.forget(query="zanzibar", yes=True, from_files=True).still_found == ()
            assert not [
                h
                for h in memory.search("codeword zanzibar", now=NOW).hits
                if "zanzibar" in h.chunk.text
            ]
        assert not list(root.glob("memory/.*")), "no temporary file is left"
        n += 1
    assert calls > 3
    assert len(less) < len(whole)
    assert faults(root) == []
