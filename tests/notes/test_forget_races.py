"""Forgetting while others write, after a kill, under a clock that is set back: nothing else goes,
none comes back.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import StoreError
from notewell.memory import Memory
from notewell.notes.editor import Notes
from notewell.notes.forget import cut_out
from notewell.notes.selection import Piece
from notewell.sources.files import FileSource
from notewell.sources.source import Known, Scanned
from notewell.text.forgotten import tombstones
from notewell.types import Role, Vectors
from tests.conftest import Write, sqlite_of

NOW = dt.datetime(2026, 2, 10, 14, 5)  # noqa: DTZ001 - the day of this place
SECRET = "The vault code of the Lisbon office is seven four nine."
OTHER = "Nobody must know about the surprise party in June."


def killed_forgetting(memory: Memory, text: str, path: str) -> None:
    """What a process leaves that is killed right after its first step."""
    memory.index.tombstones.add(tombstones(text, path, receipt="killed"))


def shows(memory: Memory) -> bool:
    return any(
        "Lisbon" in h.chunk.text
        for h in memory.search("vault code Lisbon", now=NOW, min_score=0.0).hits
    )


def test_a_lift_and_an_addition_at_once_lose_neither(
    root: Path, memory: Memory, write: Write
) -> None:
    write("memory/a.md", "Something else.\n")
    memory.sync()  # an index has a place, and so have its tombstones, once there is a note
    own = memory.index.tombstones
    own.add(tombstones(SECRET, "a.md", receipt="lifted"))
    with Memory.open(root, embed__model="none") as other:
        adding = threading.Thread(
            target=lambda: other.index.tombstones.add(tombstones(OTHER, "a.md", receipt="kept"))
        )

        def which(_: object) -> bool:
            if not adding.ident:
                adding.start()
                # without a lock it would be done by now, and its line lost with the save
                adding.join(0.2)
            return True

        assert own.lift(which) == 1
        adding.join()
        assert [one.receipt for one in own.load().stones] == ["kept"]


def test_a_forgetting_does_not_vouch_for_one_that_was_killed_before_it(
    memory: Memory, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/far/one.md", f"# Far\n\n{SECRET}\n")
    write("memory/two.md", f"# Near\n\n{OTHER}\n")
    memory.sync()
    killed_forgetting(memory, SECRET, "memory/far/one.md")
    real = FileSource.scan_changes

    def without_far(self: FileSource, known: Known, *, deadline: float | None = None) -> Scanned:
        """As when a folder cannot be listed for a while."""
        found = real(self, known, deadline=deadline)
        near = tuple(d for d in found.documents if "far" not in d.path)
        return Scanned(
            near,
            found.skipped,
            complete=False,
            same={path for path in found.same if "far" not in path},
        )

    monkeypatch.setattr(FileSource, "scan_changes", without_far)
    assert memory.forget(query="surprise party", yes=True, now=NOW).id
    monkeypatch.undo()
    memory.sync()
    assert not shows(memory)


@pytest.mark.parametrize("year", [1971, 2099])
def test_a_clock_that_is_set_back_hides_no_document_from_being_looked_through(
    memory: Memory, write: Write, monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    write("memory/one.md", f"# One\n\n{SECRET}\n")
    then = int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp() * 1e9)
    monkeypatch.setattr(time, "time_ns", lambda: then)
    memory.sync()
    monkeypatch.undo()
    killed_forgetting(memory, SECRET, "memory/one.md")
    memory.sync()
    assert not shows(memory)


def test_a_vector_that_was_under_way_is_not_kept(root: Path, write: Write) -> None:
    write("memory/one.md", f"# One\n\n{SECRET}\n")
    write("memory/two.md", "# Two\n\nSomething else that stays where it is.\n")

    class Slow(HashedEmbedder):
        """While it works, another process forgets."""

        forgotten = False

        def embed(self, texts: Sequence[str], role: Role) -> Vectors:
            if not self.forgotten:
                self.forgotten = True
                with Memory.open(root, embed__model="none") as other:
                    assert other.forget(query="vault Lisbon", yes=True, now=NOW).id
            return super().embed(texts, role)

    with Memory.open(root, embedder=Slow()) as memory:
        report = memory.sync()
        assert report.pending == 0
        store = sqlite_of(memory)
        kept = store.connection.all(
            "SELECT content_hash FROM vectors EXCEPT SELECT content_hash FROM chunks"
        )
        assert kept == [], "no vector of a text that is gone"
        have, all_of_them = store.vectors.coverage(
            memory.search("something else", now=NOW).embedder
        )
        assert have == all_of_them > 0


def test_lines_that_moved_meanwhile_are_not_cut() -> None:
    pieces = [Piece("a.md", "memory", 3, 5, SECRET), Piece("a.md", "memory", 4, 6, OTHER)]
    text = "# A\n\nkept one\nkept two\nkept three\nkept four\n\n" + f"{SECRET}\n{OTHER}\n"
    with pytest.raises(StoreError, match="changed in the meantime") as caught:
        cut_out(text, pieces, str)
    assert caught.value.hint


def test_a_note_that_grew_meanwhile_is_not_deleted(
    memory: Memory, write: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = write("memory/one.md", f"# One\n\n{SECRET}\n")
    memory.sync()
    real = Notes.remove

    def late(self: Notes, location: str, **options: object) -> None:
        with Path(location).open("a") as file:
            file.write("\nA memory of another process.\n")
        real(self, location, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Notes, "remove", late)
    with pytest.raises(StoreError, match="changed in the meantime"):
        memory.forget("memory/one.md", yes=True, from_files=True, backup=False, now=NOW)
    assert "A memory of another process." in note.read_text()
    monkeypatch.undo()
    assert memory.search("memory of another process", now=NOW).hits
    assert memory.forget("memory/one.md", yes=True, from_files=True, now=NOW).files[0].deleted
    assert not note.exists()


def test_what_a_killed_writer_left_beside_a_note_goes_with_the_next_change(
    memory: Memory, write: Write, root: Path
) -> None:
    write("memory/one.md", f"# One\n\n{SECRET}\n\nKept.\n")
    left = write("memory/.abc.notewell-new", SECRET)
    memory.sync()
    assert memory.forget(
        query="vault Lisbon", yes=True, from_files=True, backup=False, now=NOW
    ).files
    assert not left.exists()
    assert SECRET not in "".join(p.read_text() for p in root.rglob("memory/*"))
