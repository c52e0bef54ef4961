from __future__ import annotations

import datetime as dt
import gc
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import EmbedderError
from notewell.index import walk as module
from notewell.index.filling import SyncOptions, embed
from notewell.index.outlook import outlook_of
from notewell.index.walk import Walk
from notewell.sources.files import FileSource
from notewell.store.sqlite.store import SqliteStore
from notewell.store.values import Sought
from notewell.text.chunk import ChunkSize
from notewell.types import Document, Edge, End, Facts, Filters, Role, Vectors
from tests.conftest import CountingEmbedder, Write


@pytest.fixture
def store() -> SqliteStore:
    return SqliteStore(None)


@pytest.fixture
def engine(root: Path, store: SqliteStore) -> Walk:
    return Walk([FileSource(root)], store, ChunkSize(100, 20))


def long_note(sections: int = 1, lines: int = 120) -> str:
    return "".join(
        f"## Section {s}\n\n"
        + "".join(
            f"Line {n} of {s} speaks of subject{n * 7 % 31} at length.\n" for n in range(lines)
        )
        for s in range(sections)
    )


def test_a_sync_adds_changes_and_drops_and_counts_them(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    kept, changed, gone = (
        write(f"memory/{name}.md", f"the {name} note") for name in ("kept", "changed", "gone")
    )
    first = engine.sync()
    assert (first.added, first.changed, first.dropped, first.unchanged, first.chunks) == (
        3,
        0,
        0,
        0,
        3,
    )
    write("memory/changed.md", "something else now")
    gone.unlink()
    second = engine.sync()
    assert (second.added, second.changed, second.dropped, second.unchanged) == (0, 1, 1, 1)
    assert {
        c.text for path in store.documents.stored() for c in store.documents.chunks_of(path)
    } == {
        "the kept note",
        "something else now",
    }
    assert (kept.exists(), changed.exists()) == (True, True)


def test_a_second_sync_has_nothing_to_do_and_reads_nothing(
    engine: Walk, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "text")
    engine.sync()

    def never(_self: FileSource, document: Document) -> str:
        raise AssertionError(f"{document.path} was read")

    monkeypatch.setattr(FileSource, "read", never)
    report = engine.sync()
    assert (report.added, report.changed, report.dropped, report.unchanged) == (0, 0, 0, 1)


def test_cycles_are_looked_for_only_where_more_is_to_be_read(
    engine: Walk, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(gc, "collect", looked.append)
    for n in range(3):
        write(f"memory/{n}.md", f"note {n}")
    engine.sync()
    assert looked == []
    monkeypatch.setattr(module, "_COMMIT_EVERY_S", 0.0)
    engine.sync(force=True)
    assert looked == [1, 1]


def test_a_touched_file_with_the_same_words_is_unchanged(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    place = write("memory/a.md", "text")
    engine.sync()
    generation = store.generation
    os.utime(place, (1_000_000_000, 1_000_000_000))
    assert engine.sync().unchanged == 1
    assert store.generation == generation
    assert store.documents.stored()["memory/a.md"].mtime_ns == 1_000_000_000 * 10**9


def test_a_file_edited_in_the_same_second_with_the_same_size_is_seen(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    place = write("memory/a.md", "port 8080", age_s=0)
    before = place.stat()
    engine.sync()
    place.write_text("port 9090")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    engine.sync()
    assert store.documents.chunks_of("memory/a.md")[0].text == "port 9090"


def test_one_changed_file_re_embeds_only_its_new_chunks(
    engine: Walk, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/a.md", "# A\n\nfirst\n\n# B\n\nsecond\n")
    write("memory/b.md", "third")
    engine.sync()
    assert embed(engine, embedder).embedded == 3
    embedder.documents.clear()
    write("memory/a.md", "# A\n\nfirst\n\n# B\n\nsecond, with more\n", age_s=50)
    engine.sync()
    assert embed(engine, embedder).embedded == 1
    assert embedder.documents == ["B\nsecond, with more"]


def test_a_line_inserted_at_the_top_of_a_long_file_re_embeds_at_most_two_chunks(
    engine: Walk, write: Write, embedder: CountingEmbedder, store: SqliteStore
) -> None:
    text = long_note()
    write("memory/long.md", text)
    engine.sync()
    assert embed(engine, embedder).embedded > 15
    embedder.documents.clear()
    write("memory/long.md", text.replace("Line 0", "A line that is new.\nLine 0", 1), age_s=50)
    engine.sync()
    embed(engine, embedder)
    assert 1 <= len(embedder.documents) <= 2
    last = store.documents.chunks_of("memory/long.md")[-1]
    assert last.end_line == text.count("\n") + 1, "lines moved on although nothing was embedded"


def test_renaming_a_folder_of_notes_embeds_nothing(
    engine: Walk, write: Write, embedder: CountingEmbedder, root: Path, store: SqliteStore
) -> None:
    for n in range(5):
        write(f"memory/old/{n}.md", f"note number {n}")
    engine.sync()
    embed(engine, embedder)
    embedder.documents.clear()
    (root / "memory/old").rename(root / "memory/new")
    report = engine.sync()
    assert (report.added, report.dropped) == (5, 5)
    assert embed(engine, embedder).embedded == 0
    assert embedder.documents == []
    assert store.vectors.coverage(embedder.id) == (5, 5)


def test_files_that_cannot_be_indexed_are_reported_one_by_one(engine: Walk, write: Write) -> None:
    write("memory/good.md", "text")
    write("memory/binary.md", b"\0\1\2")
    write("memory/russian.md", "почта".encode("cp1251"))
    report = engine.sync()
    assert report.added == 1
    assert {s.path: s.reason for s in report.skipped} == {
        "memory/binary.md": "a binary file",
        "memory/russian.md": "not UTF-8 text",
    }


def test_a_note_that_becomes_binary_leaves_the_index(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/a.md", "text")
    engine.sync()
    write("memory/a.md", b"\0\0\0\0\0", age_s=50)
    assert [s.reason for s in engine.sync().skipped] == ["a binary file"]
    assert store.documents.stored() == {}


def test_a_file_that_vanishes_between_scan_and_read_is_reported(
    engine: Walk, write: Write, monkeypatch: pytest.MonkeyPatch, store: SqliteStore
) -> None:
    gone, stays = write("memory/gone.md", "x"), write("memory/stays.md", "y")
    read = FileSource.read

    def vanishing(self: FileSource, document: Document) -> str:
        gone.unlink(missing_ok=True)
        return read(self, document)

    monkeypatch.setattr(FileSource, "read", vanishing)
    report = engine.sync()
    assert [(s.path, s.reason) for s in report.skipped] == [
        ("memory/gone.md", "vanished before it could be read")
    ]
    assert list(store.documents.stored()) == ["memory/stays.md"]
    assert stays.exists()


def test_a_file_that_cannot_be_read_for_now_keeps_what_was_indexed(
    engine: Walk, write: Write, monkeypatch: pytest.MonkeyPatch, store: SqliteStore
) -> None:
    write("memory/a.md", "known words")
    engine.sync()
    write("memory/a.md", "changed words", age_s=50)

    def denied(_self: FileSource, _document: Document) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileSource, "read", denied)
    assert [s.reason for s in engine.sync().skipped] == ["cannot be read: Permission denied"]
    assert store.documents.chunks_of("memory/a.md")[0].text == "known words"


def test_a_scan_that_was_cut_drops_nothing_and_says_so(
    engine: Walk, write: Write, store: SqliteStore
) -> None:
    write("memory/a.md", "text")
    engine.sync()
    report = engine.sync(deadline=0.0)
    assert not report.complete
    assert list(store.documents.stored()) == ["memory/a.md"]


def test_force_reads_all_again_and_keeps_vectors(
    engine: Walk, write: Write, embedder: CountingEmbedder, store: SqliteStore
) -> None:
    write("memory/a.md", "text")
    engine.sync()
    embed(engine, embedder)
    report = engine.sync(force=True)
    assert (report.changed, report.unchanged) == (1, 0)
    assert embed(engine, embedder).embedded == 0


def test_other_chunk_sizes_or_another_analyser_make_the_index_anew(
    engine: Walk, write: Write, root: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/long.md", long_note())
    few = engine.sync().chunks
    smaller = Walk([FileSource(root)], store, ChunkSize(50, 10))
    assert smaller.sync().chunks > few
    assert smaller.sync().unchanged == 1, "once"
    monkeypatch.setattr(module, "ANALYSER", "words-other")
    assert smaller.sync().changed == 1
    assert smaller.sync().unchanged == 1


def test_an_interrupted_first_sync_goes_on_where_it_stopped(
    engine: Walk, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "first")
    write("memory/b.md", "second")
    monkeypatch.setattr(module, "_COMMIT_EVERY_S", 0.0)  # every note in a transaction of its own
    read = FileSource.read

    def interrupted(self: FileSource, document: Document) -> str:
        if document.path == "memory/b.md":
            raise KeyboardInterrupt
        return read(self, document)

    monkeypatch.setattr(FileSource, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.sync()
    monkeypatch.setattr(FileSource, "read", read)
    report = engine.sync()
    assert (report.added, report.unchanged) == (1, 1)


class FailingEmbedder(HashedEmbedder):
    """A model that answers so many batches and then no more."""

    def __init__(self, batches: int) -> None:
        super().__init__()
        self.left = batches

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        if not self.left:
            raise EmbedderError("the model does not answer", hint="wait")
        self.left -= 1
        return super().embed(texts, role)


def test_a_model_that_fails_halfway_keeps_what_it_gave_and_goes_on_later(
    engine: Walk, write: Write, store: SqliteStore, embedder: CountingEmbedder
) -> None:
    for n in range(5):
        write(f"memory/{n}.md", f"note {n}")
    engine.sync()
    report = embed(engine, FailingEmbedder(batches=2), SyncOptions(batch=2))
    assert (report.embedded, report.pending) == (4, 1)
    assert [(n.code, n.message, n.hint) for n in report.notices] == [
        ("embedder_failed", "the model does not answer", "wait")
    ]
    assert embed(engine, embedder).embedded == 1


def test_embedding_stops_at_its_deadline(
    engine: Walk, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/a.md", "text")
    engine.sync()
    report = embed(engine, embedder, SyncOptions(deadline=0.0))
    assert (report.embedded, report.pending) == (0, 1)


def test_the_newest_notes_get_their_vectors_first(
    engine: Walk, write: Write, embedder: CountingEmbedder
) -> None:
    for day in ("2026-03-02", "2026-01-05", "2026-11-20"):
        write(f"memory/{day}.md", f"note of {day}")
    write("MEMORY.md", "curated")
    engine.sync()
    embed(engine, embedder)
    assert embedder.documents == [
        "curated",
        "note of 2026-11-20",
        "note of 2026-03-02",
        "note of 2026-01-05",
    ]


def test_a_text_that_stands_twice_is_embedded_once(
    engine: Walk, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/a.md", "same words")
    write("memory/b.md", "same words")
    engine.sync()
    embed(engine, embedder)
    assert embedder.documents == ["same words"]


def test_keywords_are_there_from_the_first_committed_note_on(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COMMIT_EVERY_S", 0.0)
    for n in range(3):
        write(f"memory/{n}.md", "apple")
    seen: list[int] = []
    engine.sync(
        progress=lambda _what, _done, _total: seen.append(
            len(store.keywords.lexical(Sought(("appl",)), 9, Filters()))
        )
    )
    assert seen == [1, 2, 3]


def facts(store: SqliteStore, path: str) -> Facts:
    return store.documents.chunks_of(path)[0].facts


def test_front_matter_says_what_a_note_is(engine: Walk, write: Write, store: SqliteStore) -> None:
    write(
        "memory/plan.md",
        (
            "---\ntitle: The plan\ndate: 2026-04-05\nimportance: high\npinned: yes\nsupersedes: "
            "[memory/old.md]\n---\ntext"
        ),
    )
    write("memory/2026-02-10.md", "# Standup\n\ntext\n")
    write("MEMORY.md", "fact\n")
    engine.sync()
    assert facts(store, "memory/plan.md") == Facts(
        "The plan", dt.date(2026, 4, 5), importance=0.5, pinned=True, supersedes=("memory/old.md",)
    )
    assert facts(store, "memory/2026-02-10.md") == Facts("Standup", dt.date(2026, 2, 10))
    assert facts(store, "MEMORY.md") == Facts("MEMORY", evergreen=True)


def test_the_outlook_is_what_a_sync_would_do(engine: Walk, write: Write) -> None:
    for name in ("same", "touched", "changed", "gone", "turned"):
        write(f"memory/{name}.md", name, age_s=0)
    engine.sync()
    write("memory/changed.md", "other words")
    write("memory/touched.md", "touched", age_s=30)
    write("memory/turned.md", b"\0")
    write("memory/new.md", "new")
    write("memory/binary.md", b"\0")
    write("memory/gone.md", "").unlink()
    outlook = outlook_of(engine)
    assert (outlook.on_disk, outlook.to_add, outlook.to_change, outlook.to_drop) == (4, 1, 1, 2)
    assert {s.path for s in outlook.skipped} == {"memory/binary.md", "memory/turned.md"}
    report = engine.sync()
    assert (report.added, report.changed) == (1, 1)
    after = outlook_of(engine)
    assert (after.on_disk, after.to_add, after.to_change, after.to_drop) == (4, 0, 0, 0)


@pytest.mark.parametrize(
    ("place", "case"),
    [
        ("memory/a.md", ("", "untrusted", "owner")),
        ("memory/a.md", ("untrusted", "owner", "untrusted")),
        ("memory/a.md", ("Agent", "owner", "agent")),
        ("memory/a.md", ("nobody", "owner", "owner")),
        ("docs/a.md", ("", "untrusted", "untrusted")),
        ("docs/a.md", ("owner", "untrusted", "untrusted")),
        ("docs/a.md", ("untrusted", "agent", "untrusted")),
        ("docs/a.md", ("", "owner", "owner")),
    ],
)
def test_a_note_may_ask_for_less_trust_but_never_for_more(
    root: Path, store: SqliteStore, write: Write, place: str, case: tuple[str, str, str]
) -> None:
    said, extra, origin = case
    write(place, f"---\norigin: {said}\n---\nsome words" if said else "some words")
    Walk([FileSource(root, extra_paths=["docs"])], store, extra_origin=extra).sync()
    assert {c.origin for c in store.documents.chunks_of(place)} == {origin}
    (only,) = store.keywords.lexical(Sought(("word",)), 5, Filters(origin=origin))
    assert only.row == store.documents.chunks_of(place)[0].row


def test_a_changed_trust_reaches_files_that_did_not_change(
    root: Path, store: SqliteStore, write: Write
) -> None:
    write("docs/a.md", "some words")
    source = FileSource(root, extra_paths=["docs"])
    Walk([source], store).sync()
    Walk([source], store, extra_origin="untrusted").sync()
    assert store.documents.chunks_of("docs/a.md")[0].origin == "untrusted"
    Walk([source], store).sync()
    assert store.documents.chunks_of("docs/a.md")[0].origin == "owner"


class Chained(FileSource):
    """A source that knows that every file continues the first."""

    def edges(self, document: Document) -> list[Edge]:
        first = document.path == "memory/first.md"
        return [] if first else [Edge("derives_from", End(document.path), End("first"))]


def test_a_source_may_hand_in_edges_of_its_own(
    root: Path, store: SqliteStore, write: Write
) -> None:
    write("memory/first.md", "begin")
    write("memory/b.md", "again [[c]]")
    Walk([Chained(root)], store).sync()
    assert [(e.kind, e.end.name) for e in store.history.edges_from(["b"])] == [
        ("references", "c"),
        ("derives_from", "first"),
    ]
    assert store.history.edges_from(["first"]) == []


class Clock:
    """A monotonic clock that moves on by a step whenever it is looked at."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def dated(count: int) -> list[str]:
    first = dt.date(2026, 1, 1)
    return [f"memory/{first + dt.timedelta(days=n)}.md" for n in range(count)]


def test_a_deadline_bounds_indexing_too_and_the_newest_notes_come_first(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in dated(200):
        write(path, f"note of {path}")
    clock = Clock(0.01)
    monkeypatch.setattr("notewell.index.walk.time.monotonic", clock)
    first = engine.sync(deadline=2.0)
    assert 64 < first.added < 200
    assert (first.left, first.complete) == (200 - first.added, False)
    assert sorted(store.documents.stored()) == dated(200)[-first.added :]
    assert store.documents.chunks_of(dated(200)[-1]), "a partial index answers"
    late = engine.sync(deadline=clock.now + 0.03)
    assert late.added == 64, "every sync gets on a little, however late it is"
    while not engine.sync(deadline=clock.now + 2.0).complete:
        pass
    assert len(store.documents.stored()) == 200


def test_a_file_too_large_for_the_time_left_waits_for_a_sync_without_deadline(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/2026-01-02.md", "words " * 400_000)
    write("memory/2026-01-01.md", "a small note")
    monkeypatch.setattr("notewell.index.walk.time.monotonic", lambda: 0.0)
    report = engine.sync(deadline=1.0)
    assert (report.added, report.left, report.complete) == (1, 1, False)
    assert list(store.documents.stored()) == ["memory/2026-01-01.md"]
    assert engine.sync().added == 1


def test_a_large_note_that_was_saved_just_before_it_was_indexed_is_not_new(
    engine: Walk, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/2026-01-02.md", "words " * 400_000, age_s=0.0)
    write("memory/2026-01-01.md", "a small note", age_s=0.0)
    assert engine.sync().added == 2
    with monkeypatch.context() as patched:
        patched.setattr("notewell.index.walk.time.monotonic", lambda: 0.0)
        report = engine.sync(deadline=1.0)
        assert (report.unchanged, report.left, report.complete) == (2, 0, True)
    write("memory/2026-01-02.md", "world " * 400_000, age_s=0.0)
    with monkeypatch.context() as patched:
        patched.setattr("notewell.index.walk.time.monotonic", lambda: 0.0)
        report = engine.sync(deadline=1.0)
        assert (report.left, report.complete) == (1, False), "this one is"
    assert engine.sync().changed == 1, "without a deadline it is read, whatever its size"


def test_a_new_analysis_goes_on_where_a_deadline_cut_it(
    root: Path, write: Write, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in dated(200):
        write(path, f"note of {path}")
    Walk([FileSource(root)], store, ChunkSize(100, 20)).sync()
    other = Walk([FileSource(root)], store, ChunkSize(200, 20))
    clock = Clock(0.01)
    monkeypatch.setattr("notewell.index.walk.time.monotonic", clock)
    done = 0
    for _ in range(20):
        report = other.sync(deadline=clock.now + 1.0)
        done += report.changed
        if report.complete:
            break
    assert report.complete
    assert done == 200, "each was made anew once"
    assert other.sync().unchanged == 200


def test_vectors_of_the_newest_notes_come_first_in_whatever_order_they_were_indexed(
    engine: Walk,
    write: Write,
    store: SqliteStore,
    embedder: CountingEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in (1, 3, 2):
        write(f"memory/2026-01-{n:02}.md", f"note of day{n}")
    engine.sync(deadline=time.monotonic() + 60)
    embed(engine, embedder)
    assert embedder.documents == ["note of day3", "note of day2", "note of day1"]
