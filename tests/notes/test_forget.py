from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import apsw
import pytest

from notewell.errors import NotFoundError, StoreError, UsageError
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.sources.source import Scanned
from notewell.store.lock import locked
from notewell.text.words import index_terms
from notewell.types import Document
from tests.conftest import CountingEmbedder, Write, sqlite_of

NOW = dt.datetime(2026, 2, 10, 14, 5)  # noqa: DTZ001 - the day of this place
FORGOTTEN = "The quixotic vault code of the Lisbon office is xylophone seven four nine."
RARE = ("quixotic", "xylophone", "lisbon", "vault")


def bytes_of(folder: Path, *, but: str = "none") -> bytes:
    return b"".join(
        p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and but not in str(p)
    ).lower()


def has_none(data: bytes) -> bool:
    stems = {stem for word in RARE for stem in index_terms(word)[0].split()}
    return not any(word.encode() in data for word in {*RARE, *stems, FORGOTTEN.lower()})


@pytest.fixture
def filled(memory: Memory, write: Write) -> Memory:
    """Enough other notes that the index has many pages and segments, and the secret in the middle
    of one.
    """
    for n in range(40):
        write(
            f"memory/note{n}.md",
            f"# Note {n}\n\n" + "".join(f"Line {k} of {n} on topic{k}.\n" for k in range(60)),
        )
    write(
        "memory/2026-01-05.md",
        f"# Standup\n\nBefore it.\n\n- {FORGOTTEN}\n- Another item stays.\n\nAfter it.\n",
    )
    memory.sync()
    return memory


def test_without_yes_it_only_shows_what_would_go(filled: Memory, root: Path) -> None:
    note = (root / "memory/2026-01-05.md").read_bytes()
    chunk = filled.search("quixotic vault", now=NOW).hits[0].chunk
    shown = filled.forget(chunk.id)
    assert (shown.id, shown.proved) == ("", False)
    assert [(p.citation, p.text) for p in shown.pieces] == [(chunk.citation, chunk.text)]
    assert filled.search("quixotic vault", now=NOW).hits[0].chunk == chunk
    assert (root / "memory/2026-01-05.md").read_bytes() == note


def test_after_it_no_byte_is_left_beside_the_notes(filled: Memory, root: Path) -> None:
    assert not has_none(bytes_of(root / ".notewell"))
    receipt = filled.forget(query="quixotic xylophone", yes=True, now=NOW)
    assert [p.citation for p in receipt.pieces] == ["memory/2026-01-05.md#L5"]
    assert receipt.proved, receipt
    assert (receipt.searched, receipt.tombstones, receipt.files) == (1, 1, ())
    assert (receipt.chunks, receipt.vectors) == (1, 1)
    assert has_none(bytes_of(root / ".notewell"))
    assert FORGOTTEN in (root / "memory/2026-01-05.md").read_text(), (
        "files are left alone unless told"
    )
    found = filled.search("another item stays", now=NOW).hits[0].chunk
    assert "Another item stays." in found.text
    assert has_none(found.text.encode().lower())
    assert filled.store.vectors.coverage("hashed@256")[0] > 0


def test_it_does_not_come_back_from_anywhere(filled: Memory, write: Write, root: Path) -> None:
    filled.forget(query="quixotic", yes=True, everywhere=True, now=NOW)
    write(
        "memory/2026-01-05.md",
        f"# Standup\n\nEdited around it.\n\n- {FORGOTTEN}\n- New item.\n",
        age_s=5,
    )
    write("memory/copy.md", f"# Copied\n\nThey said: {FORGOTTEN.lower()} And more of it.\n")
    report = filled.sync()
    assert report.forgotten == 2
    assert not filled.forget(query="quixotic").pieces
    (root / ".notewell/index.sqlite").unlink()
    for end in ("-wal", "-shm"):
        (root / f".notewell/index.sqlite{end}").unlink(missing_ok=True)
    with Memory.open(root, embed__model="none") as again:
        again.sync()
        assert not again.forget(query="quixotic").pieces, (
            "an index made anew does not know it either"
        )
        assert again.forget(query="copied").pieces == ()
        assert again.search("And more of it", now=NOW).hits
        again.close()
    assert has_none(bytes_of(root / ".notewell"))


def test_copies_in_other_notes_leave_the_index_too(
    memory: Memory, write: Write, root: Path
) -> None:
    write("memory/a.md", f"# A\n\n{FORGOTTEN}\n")
    write("memory/b.md", f"# B\n\nFirst.\n\n{FORGOTTEN} Said again.\n")
    memory.sync()
    receipt = memory.forget("memory/a.md:3", yes=True, everywhere=True, now=NOW)
    assert receipt.proved
    assert (receipt.everywhere, receipt.elsewhere) == (True, ("memory/b.md#L3-L5",))
    assert has_none(bytes_of(root / ".notewell"))
    assert memory.search("said again", now=NOW).hits


def test_from_files_cuts_it_out_and_keeps_a_backup(filled: Memory, root: Path) -> None:
    note = root / "memory/2026-01-05.md"
    before = note.read_bytes()
    receipt = filled.forget(query="quixotic", yes=True, from_files=True, now=NOW)
    assert note.read_text() == "# Standup\n\nBefore it.\n- Another item stays.\n\nAfter it.\n"
    (file,) = receipt.files
    assert (file.path, file.deleted) == ("memory/2026-01-05.md", False)
    backup = Path(file.backup)
    assert (backup.read_bytes(), backup.parent) == (before, root / ".notewell/backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert backup.parent.stat().st_mode & 0o777 == 0o700
    assert has_none(bytes_of(root, but="backup"))
    assert receipt.proved


def test_without_a_backup_no_byte_is_left_at_all_and_earlier_backups_are_named(
    filled: Memory, root: Path
) -> None:
    receipt = filled.forget(query="quixotic", yes=True, from_files=True, backup=False, now=NOW)
    assert receipt.files[0].backup == ""
    assert has_none(bytes_of(root))
    filled.remember(FORGOTTEN, file="memory/x.md", force=True, now=NOW)
    filled.remember("Something else entirely here.", file="memory/x.md", force=True, now=NOW)
    other = filled.forget(query="something else entirely", yes=True, from_files=True, now=NOW)
    assert other.proved
    last = filled.forget(query="quixotic", yes=True, from_files=True, backup=False, now=NOW)
    assert [line for line in last.lingering if other.files[0].backup in line]
    assert not last.proved


def test_a_whole_note_goes_with_its_file(filled: Memory, root: Path) -> None:
    receipt = filled.forget("memory/2026-01-05.md", yes=True, now=NOW)
    assert receipt.pieces[0].whole
    assert filled.store.documents.chunks_of("memory/2026-01-05.md") == [], (
        "not even its headings stay in the index"
    )
    assert filled.sync().forgotten == 0
    assert has_none(bytes_of(root / ".notewell"))
    (root / "memory/2026-01-05.md").write_text("A wholly new sentence about gardening in winter.\n")
    assert filled.search("gardening", now=NOW).hits, "what is new in it is known"
    gone = filled.forget("memory/note3.md", yes=True, from_files=True, now=NOW)
    assert (gone.files[0].deleted, (root / "memory/note3.md").exists()) == (True, False)
    assert Path(gone.files[0].backup).read_text().startswith("# Note 3")


def test_before_a_day_takes_dated_notes_alone(filled: Memory, write: Write) -> None:
    write("memory/2026-01-06.md", "A later note.\n")
    receipt = filled.forget(before=dt.date(2026, 1, 6), yes=True, now=NOW)
    assert [p.path for p in receipt.pieces] == ["memory/2026-01-05.md"]
    assert filled.search("later note", now=NOW).hits
    assert filled.search("topic5", now=NOW).hits


def test_undo_makes_it_known_again(filled: Memory) -> None:
    chunk = filled.search("quixotic", now=NOW).hits[0].chunk
    receipt = filled.forget(chunk.id, yes=True, from_files=False, now=NOW)
    assert not filled.forget(query="quixotic").pieces
    count, backups = filled.unforget(receipt.id)
    assert (count, backups) == (receipt.tombstones, ())
    assert filled.forget(query="quixotic").pieces
    filled.forget(chunk.id, yes=True, from_files=True, now=NOW)
    count, backups = filled.unforget(chunk.id)
    assert (count > 0, len(backups)) == (True, 1)
    with pytest.raises(NotFoundError):
        filled.unforget(receipt.id)


def test_what_was_forgotten_is_not_remembered_by_accident(filled: Memory) -> None:
    receipt = filled.forget(query="quixotic", yes=True, from_files=True, now=NOW)
    with pytest.raises(UsageError, match=receipt.id):
        filled.remember(f"note to self: {FORGOTTEN}", now=NOW)
    done = filled.remember(FORGOTTEN, force=True, now=NOW)
    assert [n.code for n in done.notices] == ["tombstone_lifted"]
    assert filled.search("quixotic", now=NOW).hits[0].chunk.id == done.id


def test_a_piece_of_a_very_long_line_goes_alone(memory: Memory, write: Write, root: Path) -> None:
    words = " ".join(f"Sentence {n} speaks about subject{n} in some detail." for n in range(200))
    write("memory/long.md", words + "\n")
    memory.sync()
    chunk = memory.search("subject120", now=NOW).hits[0].chunk
    receipt = memory.forget(chunk.id, yes=True, from_files=True, now=NOW)
    left = (root / "memory/long.md").read_text()
    assert receipt.proved
    assert "subject120 " not in left
    assert "subject3 " in left
    assert "subject199 " in left
    assert b"subject120" not in bytes_of(root / ".notewell", but="backup")


class Sessions:
    """A source that is not made of notes."""

    name = "sessions"

    def __init__(self, root: Path) -> None:
        self.root = root

    def scan(self, *, deadline: float | None = None) -> Scanned:
        found = sorted(self.root.glob("*.jsonl"))
        stats = [(p, p.stat()) for p in found]
        return Scanned(
            tuple(
                Document(f"sessions/{p.name}", "sessions", s.st_size, 1, str(p)) for p, s in stats
            )
        )

    def document(self, path: str) -> Document | None:
        return next((d for d in self.scan().documents if d.path == path), None)

    def read(self, document: Document) -> str:
        return Path(document.location).read_text()


def test_a_session_goes_by_its_name_and_its_file_is_left_alone(
    filled: Memory, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "4f2a-9b.jsonl").write_text(
        f"user: My neighbour is called Featherstonehaugh.\n\n{FORGOTTEN}\n"
    )
    (tmp_path / "4f2a-77.jsonl").write_text("user: something else\n")
    own = filled.index.walk
    engine = Walk([*own.sources, Sessions(tmp_path)], own.store, own.size, own.tombstones)
    monkeypatch.setattr(filled.index, "walk", engine)
    assert [p.path for p in filled.forget(session="4f2a-9b").pieces] == ["sessions/4f2a-9b.jsonl"]
    assert filled.forget(session="4f2a-9").pieces[0].whole
    receipt = filled.forget(session="4f2a-9b", yes=True, everywhere=True, from_files=True, now=NOW)
    assert (receipt.kept_files, receipt.files) == (("sessions/4f2a-9b.jsonl",), ())
    assert receipt.proved
    assert (tmp_path / "4f2a-9b.jsonl").exists()
    data = bytes_of(root / ".notewell")
    assert b"featherstonehaugh" not in data
    assert has_none(data), "the note that said the same lost it too"
    for name in ("4f2a", "note3", "memory/note3.md"):
        with pytest.raises(NotFoundError):
            filled.forget(session=name)


@pytest.mark.parametrize("wrong", [{}, {"reference": "memory/note3.md", "query": "x"}])
def test_one_way_to_say_it(filled: Memory, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="one way"):
        filled.forget(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", ["memory/none.md", "aaaaaaaaaaaa", "memory/note3.md:900"])
def test_what_is_not_there_is_an_error_and_no_words_are_nothing(
    filled: Memory, reference: str
) -> None:
    with pytest.raises(NotFoundError):
        filled.forget(reference)
    assert filled.forget(query="--- !").pieces == ()
    assert filled.forget(query="nowhere-to-be-found", yes=True).id == ""


def test_a_reader_that_holds_the_wal_is_named(
    filled: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_of(filled).connection.db.set_busy_timeout(1)
    other = apsw.Connection(str(root / ".notewell/index.sqlite"))
    reading = other.execute("SELECT * FROM chunks")
    reading.fetchone()  # a read transaction that stays open
    receipt = filled.forget(query="quixotic", yes=True, now=NOW)
    assert any("another process reads" in line for line in receipt.lingering)
    assert not receipt.proved
    assert receipt.still_found == ()
    reading.close()
    other.close()
    assert filled.store.scrub()[1]
    assert has_none(bytes_of(root / ".notewell"))


def test_it_waits_for_nobody_who_is_indexing_for_long(
    filled: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "notewell.store.sqlite.store.locked", lambda path, *, wait_s: locked(path, wait_s=0.0)
    )
    with filled.store.exclusive(0.0), pytest.raises(StoreError, match="indexing"):
        filled.forget(query="quixotic", yes=True, now=NOW)


def test_a_crash_after_the_tombstones_is_made_good_by_the_next_sync(
    filled: Memory, monkeypatch: pytest.MonkeyPatch, embedder: CountingEmbedder
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("notewell.index.walk.Walk.again", crash)
    with pytest.raises(KeyboardInterrupt):
        filled.forget(query="quixotic", yes=True, now=NOW)
    monkeypatch.undo()
    embedder.documents.clear()
    assert not any(
        "quixotic" in h.chunk.text for h in filled.search("quixotic vault", now=NOW).hits
    )
    assert len(embedder.documents) <= 1, "nothing else was cut or embedded again"
    assert filled.sync().forgotten == 0, "once is enough"


def test_a_damaged_index_that_was_set_aside_goes_too(filled: Memory, root: Path) -> None:
    aside = root / ".notewell/index.damaged-1.sqlite"
    aside.write_bytes(FORGOTTEN.encode())
    assert filled.forget(query="quixotic", yes=True, now=NOW).proved
    assert not aside.exists()
    assert os.listdir(root / ".notewell")


LINE = "Meeting notes follow below, as every week."


@pytest.fixture
def week(memory: Memory, write: Write) -> Memory:
    """Two notes with a line in common."""
    write("memory/mon.md", f"# Monday\n\n{LINE}\n\nThe quixotic plan was dropped altogether.\n")
    write("memory/tue.md", f"# Tuesday\n\n{LINE}\n\nThe harbour opens at noon again.\n")
    memory.sync()
    return memory


def places(memory: Memory, words: str = "meeting notes follow below") -> set[str]:
    return {
        h.chunk.path
        for h in memory.search(words, now=NOW, min_score=0.0).hits
        if "follow below" in h.chunk.text
    }


def test_a_note_is_forgotten_alone_and_others_with_the_same_line_are_named(
    week: Memory, root: Path
) -> None:
    preview = week.forget("memory/mon.md")
    assert preview.elsewhere == ("memory/tue.md#L3-L5",)
    receipt = week.forget("memory/mon.md", yes=True, now=NOW)
    assert (receipt.everywhere, receipt.elsewhere) == (False, preview.elsewhere)
    assert receipt.proved
    assert b"quixotic" not in bytes_of(root / ".notewell")
    assert places(week) == {"memory/tue.md"}
    _, why = week.why("meeting notes", "memory/tue.md:3", now=NOW)
    assert why.rank == 1
    assert week.forget("memory/mon.md").elsewhere == preview.elsewhere


def test_everywhere_it_goes_from_all_of_them_and_they_are_named(week: Memory) -> None:
    receipt = week.forget("memory/mon.md:3", yes=True, everywhere=True, now=NOW)
    assert receipt.elsewhere == ("memory/tue.md#L3-L5",)
    assert receipt.proved
    assert places(week) == set()
    for path in ("memory/mon.md:3", "memory/tue.md:3"):
        _, why = week.why("meeting notes", path, now=NOW)
        assert why.verdict == f"forgotten on 2026-02-10 (receipt {receipt.id}), in every note"


def test_why_says_that_a_passage_was_forgotten_and_where_else_it_is(week: Memory) -> None:
    chunk = week.search("quixotic plan", now=NOW).hits[0].chunk
    receipt = week.forget(chunk.id, yes=True, now=NOW)
    for reference in ("memory/mon.md:3", "memory/mon.md:3-5"):
        _, why = week.why("meeting notes", reference, now=NOW)
        assert (why.verdict, why.rank) == (f"forgotten on 2026-02-10 (receipt {receipt.id})", None)
        assert why.chunk.citation.startswith("memory/mon.md#L")
        assert f"notewell forget --undo {receipt.id} makes it known again" in why.lines
        assert "the same text is in memory/tue.md#L3-L5" in why.lines
    week.forget("memory/mon.md", yes=True, now=NOW)
    assert week.why("meeting notes", "memory/mon.md", now=NOW)[1].verdict.startswith("forgotten on")
    with pytest.raises(NotFoundError, match=f"forgotten on 2026-02-10 .receipt {receipt.id}"):
        week.why("meeting notes", chunk.id, now=NOW)
    with pytest.raises(NotFoundError, match="never"):
        week.why("meeting notes", "never", now=NOW)


def test_why_says_what_part_of_a_note_was_forgotten(week: Memory) -> None:
    receipt = week.forget("memory/mon.md:5", yes=True, now=NOW)
    for reference in ("memory/mon.md", "memory/mon.md:1-5"):
        _, why = week.why("meeting notes", reference, now=NOW)
        assert why.rank is not None
        assert f"1 part of it was forgotten on 2026-02-10 (receipt {receipt.id})" in why.lines[-1]
    assert not any(
        "forgotten" in line for line in week.why("meeting notes", "memory/tue.md", now=NOW)[1].lines
    )


def test_a_renamed_note_stays_forgotten(week: Memory, root: Path) -> None:
    week.forget("memory/mon.md:3", yes=True, now=NOW)
    (root / "memory/mon.md").rename(root / "memory/monday.md")
    assert places(week) == {"memory/tue.md"}
    assert week.search("plan dropped altogether", now=NOW).hits[0].chunk.path == "memory/monday.md"
    (root / "memory/monday.md").rename(root / "memory/week7.md")
    assert places(week) == {"memory/tue.md"}
    assert week.sync().forgotten == 0, "nothing is left to do"


def test_what_was_forgotten_in_one_note_is_remembered_in_another_only_by_force(
    week: Memory,
) -> None:
    receipt = week.forget("memory/mon.md:5", yes=True, from_files=True, now=NOW)
    with pytest.raises(UsageError, match=receipt.id):
        week.remember("The quixotic plan was dropped altogether.", now=NOW)
    done = week.remember("The quixotic plan was dropped altogether.", force=True, now=NOW)
    assert [n.code for n in done.notices] == ["tombstone_lifted"]
    assert week.search("quixotic plan", now=NOW).hits[0].chunk.id == done.id
