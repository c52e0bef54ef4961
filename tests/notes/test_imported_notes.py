"""Importing: notes with their origin, nothing doubled, no edit lost, nothing half written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.errors import NoteError, UsageError
from notewell.memory import Memory
from notewell.notes import imported_notes
from notewell.notes.imported_notes import LIST, ImportedFile
from notewell.opener import Opener
from notewell.text.markdown import parse
from notewell.text.note_files import safe_name
from tests.conftest import Write
from tests.sources.imports.made import EXPORTS, zipped

FOLDER = "memory/imported/chatgpt"


def conversation(
    *said: str, number: str = "c1", changed: float = 1772359300, title: str = "Port"
) -> dict[str, Any]:
    nodes: dict[str, Any] = {}
    parent = None
    for n, words in enumerate(said):
        role = "assistant" if n % 2 else "user"
        content = {"content_type": "text", "parts": [words]}
        message = {
            "id": f"{number}-{words}",
            "author": {"role": role},
            "create_time": 1772359200 + n,
            "content": content,
        }
        nodes[str(n)] = {"id": str(n), "parent": parent, "message": message}
        parent = str(n)
    made = {
        "conversation_id": number,
        "title": title,
        "create_time": 1772359200,
        "update_time": changed,
    }
    return {**made, "current_node": parent, "mapping": nodes}


@pytest.fixture
def bring(memory: Memory, tmp_path: Path) -> Callable[..., ImportedFile]:
    """Imports conversations and says what became of them."""

    def bring(*conversations: dict[str, Any], dry_run: bool = False) -> ImportedFile:
        place = tmp_path / "conversations.json"
        place.write_text(json.dumps(conversations))
        (done,) = memory.import_files([place], dry_run=dry_run).files
        assert done.error is None, done.error
        return done

    return bring


def notes(root: Path, folder: str = FOLDER) -> list[Path]:
    return sorted((root / folder).glob("*.md"))


def test_a_note_has_title_date_origin_and_id(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    done = bring(conversation("which port?", "8443"))
    assert (done.items, done.new, done.formats) == (1, 1, ("ChatGPT",))
    (note,) = notes(root)
    assert note.name.startswith("2026-03-01-port-")
    front = parse(note.read_text()).front
    assert front == {
        "title": "Port",
        "date": "2026-03-01",
        "origin": "agent",
        "imported_from": "chatgpt",
        "id": "c1",
    }
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert sorted(os.listdir(root / FOLDER)) == [note.name, LIST]


def test_what_is_imported_is_found_with_its_origin(
    memory: Memory, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("which port does the lighthouse use?", "The lighthouse uses 8443."))
    hit = memory.search("port of the lighthouse").hits[0]
    assert hit.chunk.path.startswith(f"{FOLDER}/")
    assert (hit.chunk.origin, hit.chunk.source) == ("agent", "memory")
    assert str(hit.chunk.facts.date) == "2026-03-01"


def test_a_dry_run_writes_nothing(root: Path, bring: Callable[..., ImportedFile]) -> None:
    assert bring(conversation("a"), dry_run=True).new == 1
    assert not (root / "memory").exists()


def test_a_second_import_doubles_nothing_and_adds_what_is_new(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    first, other = conversation("a one", "b two"), conversation("other", number="c2")
    bring(first, other)
    before = {note: note.read_bytes() for note in notes(root)}
    listed = (root / FOLDER / LIST).read_bytes()
    assert bring(first, other).unchanged == 2
    assert {note: note.read_bytes() for note in notes(root)} == before
    assert (root / FOLDER / LIST).read_bytes() == listed
    grown = conversation("a one", "b two", "c three", changed=1772369300, title="Renamed")
    done = bring(grown, other, conversation("third", number="c3"))
    assert (done.new, done.updated, done.unchanged) == (1, 1, 1)
    assert len(notes(root)) == 3
    text = "".join(note.read_text() for note in notes(root))
    assert text.count("a one") == 2  # its heading and its words
    assert text.count("c three") == 2


def test_an_older_export_takes_nothing_away(root: Path, bring: Callable[..., ImportedFile]) -> None:
    bring(conversation("a", "b", "c three", changed=1772369300))
    assert bring(conversation("a", "b")).unchanged == 1
    assert bring(conversation("a", "another branch")).unchanged == 1
    assert "c three" in notes(root)[0].read_text()


def test_edits_stay_and_what_is_new_comes_below_them(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("a one", "b two"))
    (note,) = notes(root)
    edited = note.read_text().replace("b two", "b 2 (checked by me)")
    note.write_text(edited)
    assert bring(conversation("a one", "b two")).unchanged == 1
    assert note.read_text() == edited
    grown = conversation("a one", "b two", "c three", changed=1772369300)
    assert bring(grown).extended == 1
    text = note.read_text()
    assert text.startswith(edited.rstrip())
    assert "b two" not in text
    assert text.count("## c three") == 1
    again = conversation("a one", "b two", "c three", "d four", changed=1772379300)
    assert bring(again).extended == 1
    assert note.read_text().count("## c three") == note.read_text().count("d four") == 1
    assert bring(again).unchanged == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_edits_in_another_encoding_with_other_line_ends_stay(
    root: Path, bring: Callable[..., ImportedFile], encoding: str
) -> None:
    bring(conversation("a one"))
    (note,) = notes(root)
    note.write_bytes((note.read_text() + "mine\n").replace("\n", "\r\n").encode(encoding))
    assert bring(conversation("a one", "b two", changed=1772369300)).extended == 1
    text = note.read_bytes().decode(encoding)
    assert "mine\r\n\r\n**Assistant**" in text
    assert "\n" not in text.replace("\r\n", "")


def test_a_note_that_became_binary_is_left_alone(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("a one"))
    (note,) = notes(root)
    note.write_bytes(bytes(range(256)) * 10)
    assert bring(conversation("a one", "b two", changed=1772369300)).edited == 1
    assert note.read_bytes() == bytes(range(256)) * 10


def test_what_a_person_deleted_or_moved_does_not_come_back(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("a"), conversation("b", number="c2"))
    one, two = notes(root)
    one.unlink()
    two.rename(root / "memory/mine.md")
    grown = [
        conversation(w, "more", number=n, changed=1772369300) for w, n in (("a", "c1"), ("b", "c2"))
    ]
    assert bring(*grown).deleted == 2
    assert notes(root) == []


def test_without_its_list_a_note_is_known_by_its_name(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("a one", "b two"))
    (root / FOLDER / LIST).unlink()
    assert bring(conversation("a one", "b two")).unchanged == 1
    (note,) = notes(root)
    note.write_text(note.read_text() + "\nmine\n")
    assert bring(conversation("a one", "b two", "c three")).extended == 1
    assert note.read_text().count("## a one") == note.read_text().count("## c three") == 1
    assert len(notes(root)) == 1


def test_a_list_with_half_a_line_and_hostile_lines_does_no_harm(
    root: Path, bring: Callable[..., ImportedFile]
) -> None:
    bring(conversation("a one"))
    place = root / FOLDER / LIST
    row = json.loads(place.read_text())
    (root / "memory/precious.md").write_text("mine")
    hostile = [
        {**row, "path": "memory/precious.md"},
        {**row, "path": f"{FOLDER}/../../precious.md"},
        {**row, "parts": 7},
        [],
        {**row, "path": "/etc/passwd"},
        {**row, "more": 1},
        {**row, "id": 5},
    ]
    place.write_text(place.read_text() + "\n".join(map(json.dumps, hostile)) + '\n{"id": "hal')
    assert bring(conversation("a one", "b two", changed=1772369300)).updated == 1
    assert (root / "memory/precious.md").read_text() == "mine"
    assert json.loads(place.read_text().splitlines()[-1])["parts"][0] == row["parts"][0]
    assert bring(conversation("a one", "b two", changed=1772369300)).unchanged == 1


def test_a_list_that_grew_is_shortened(
    root: Path, bring: Callable[..., ImportedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported_notes, "_MANY_LINES", 2)
    for n in range(4):
        bring(conversation(*"abcdef"[: n + 1], changed=1772359300 + n))
    assert len((root / FOLDER / LIST).read_text().splitlines()) < 4
    assert bring(conversation(*"abcd", changed=1772359303)).unchanged == 1


@pytest.mark.parametrize("name", sorted(place.name for place in EXPORTS.iterdir()))
def test_every_format_is_written_once(memory: Memory, root: Path, name: str) -> None:
    (first,) = memory.import_files([EXPORTS / name]).files
    assert first.new == first.items > 0
    (again,) = memory.import_files([EXPORTS / name]).files
    assert (again.new, again.unchanged) == (0, first.items)
    assert memory.sync(embed=False).added == first.items


def test_the_links_of_a_graph_lead_from_note_to_note(memory: Memory, root: Path) -> None:
    memory.import_files([EXPORTS / "memory.jsonl"])
    ravi, mieke, shop = (
        next((root / "memory/imported/mcp-memory").glob(f"{n}-*"))
        for n in ("ravi", "mieke", "clock")
    )
    walk, _ = memory.trace(f"memory/imported/mcp-memory/{ravi.name}")
    found = {hop.node.path for hop in walk.hops if not hop.node.dangling}
    assert {Path(path).name for path in found} >= {mieke.name, shop.name}


def test_the_same_document_under_another_name_is_not_doubled(
    memory: Memory, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text("<p>words")
    (tmp_path / "b.html").write_text("<p>words")
    one, two = memory.import_files([tmp_path / "a.html", tmp_path / "b.html"]).files
    assert (one.new, two.new, two.unchanged) == (1, 0, 1)
    (tmp_path / "a.html").write_text("<p>other words")
    assert memory.import_files([tmp_path / "a.html"]).files[0].updated == 1
    (note,) = notes(root, "memory/imported/html")
    note.write_text(note.read_text() + "mine")
    (tmp_path / "a.html").write_text("<p>quite other words")
    assert memory.import_files([tmp_path / "a.html"]).files[0].edited == 1
    assert "quite" not in note.read_text()


def test_a_refused_file_leaves_nothing_and_the_others_are_imported(
    memory: Memory, root: Path, tmp_path: Path
) -> None:
    good, bad = (
        json.dumps([conversation("a")]),
        json.dumps([conversation("evil", number=str(n)) for n in range(50)]),
    )
    (tmp_path / "bad.zip").write_bytes(zipped({"conversations.json": bad[:-1]}))
    (tmp_path / "good.zip").write_bytes(zipped({"conversations.json": good}))
    done = memory.import_files([tmp_path / "bad.zip", tmp_path / "good.zip", tmp_path / "none.zip"])
    assert [bool(file.error) for file in done.files] == [True, False, True]
    assert isinstance(done.failed[0].error, NoteError)
    assert len(notes(root)) == len(done.written) == 1


def test_a_kill_in_the_middle_ends_well(
    root: Path, bring: Callable[..., ImportedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a note is written and before its line is; and with a draft left by a process that was
    killed.
    """
    many = [conversation("a one", number=f"c{n}") for n in range(4)]

    class Killed(BaseException):
        pass

    opened = Opener.open
    count = 0

    def dies(self: Opener, location: str | Path, *more: Any) -> int:
        nonlocal count
        count += str(location).endswith(LIST) and bool(more)
        if count == 3:
            raise Killed
        return opened(self, location, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Opener, "open", dies)
        with pytest.raises(Killed):
            bring(*many)
    assert len(notes(root)) == 3
    (root / FOLDER / ".draft.notewell-new").write_text("half")
    done = bring(*many)
    assert (done.new, done.unchanged) == (1, 3)
    assert not list((root / FOLDER).glob(".*"))
    grown = [conversation("a one", "b two", number=f"c{n}", changed=1772369300) for n in range(4)]
    assert bring(*grown).updated + bring(*grown).unchanged >= 4
    assert all(note.read_text().count("b two") == 1 for note in notes(root))


def test_another_program_that_is_faster_loses_nothing(
    memory: Memory, root: Path, bring: Callable[..., ImportedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(conversation("a one"))
    (note,) = notes(root)
    change = type(memory.notebook.notes).change
    raced: list[int] = []

    def late(self: Any, location: str, *more: Any, **named: Any) -> bool:
        if not raced:
            raced.append(1)
            note.write_text(note.read_text() + "\nmine\n")
        return change(self, location, *more, **named)

    monkeypatch.setattr(type(memory.notebook.notes), "change", late)
    assert bring(conversation("a one", "b two", changed=1772369300)).extended == 1
    assert "\nmine\n" in note.read_text()
    assert "b two" in note.read_text()


def test_notes_are_not_written_through_a_link(
    root: Path, tmp_path: Path, bring: Callable[..., ImportedFile]
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "memory").mkdir()
    (root / "memory/imported").symlink_to(tmp_path / "outside")
    with pytest.raises(AssertionError, match="leads out"):
        bring(conversation("a"))
    assert os.listdir(tmp_path / "outside") == []


def test_notes_go_where_they_are_read(
    memory: Memory, root: Path, write: Write, tmp_path: Path
) -> None:
    write(".notewellignore", "imported/\n")
    (tmp_path / "a.html").write_text("<p>words")
    (done,) = memory.import_files([tmp_path / "a.html"]).files
    assert isinstance(done.error, UsageError)
    assert not (root / "memory").exists()


def test_where_the_folder_itself_is_the_memory_no_memory_folder_is_made(
    root: Path, write: Write
) -> None:
    write("notes/a.md", "# a\n\nwords")
    (root / "imported").mkdir()
    with Memory.open(root, embed__model="none", extra_paths=["notes", "imported"]) as memory:
        memory.import_files([EXPORTS / "chatgpt.json"])
        assert memory.search("staging").hits
    assert notes(root, "imported/chatgpt")
    assert not (root / "memory").exists()


def test_notes_of_the_workspace_are_not_imported_into_it(
    memory: Memory, root: Path, write: Write
) -> None:
    write("memory/a.md", "# a\n\nwords")
    write("drafts/b.md", "# b\n\nwords")
    one, whole = memory.import_files([root / "memory/a.md", root]).files
    assert "already" in str(one.error)
    assert (whole.new, [Path(s.path).name for s in whole.skipped]) == (1, ["a.md"])


HOSTILE = [
    "../../etc/passwd",
    "a/b\\c",
    "CON",
    "x" * 5000,
    "日本語" * 200,
    "\x1b[2J\u202e",
    "",
    ".hidden",
    "🎉",
    "a\nb",
]


@pytest.mark.parametrize("title", HOSTILE)
def test_a_hostile_title_makes_a_harmless_name(
    root: Path, bring: Callable[..., ImportedFile], title: str
) -> None:
    bring(conversation("a", title=title), conversation("a", number="c2", title=title))
    made = notes(root)
    assert len(made) == 2
    assert all(
        len(note.name.encode()) < 120 and note.name.startswith("2026-03-01-") for note in made
    )
    assert all(c.isalnum() or c in "-." for note in made for c in note.name)


@given(title=st.text())
@settings(max_examples=200, deadline=None)
def test_any_title_makes_a_harmless_name(title: str) -> None:
    name = safe_name(title)
    assert len(name.encode()) <= 80
    assert all(c.isalnum() or c == "-" for c in name)
    assert not name.startswith("-")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    place = tmp_path / "many.json"
    place.write_text(json.dumps([conversation("a", "b", number=str(n)) for n in range(300)]))
    return place


def test_two_imports_at_once_double_nothing(root: Path, memory: Memory, many: Path) -> None:
    import threading

    with Memory.open(root, embed__model="none") as other:
        threads = [
            threading.Thread(target=one.import_files, args=([many],)) for one in (memory, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(notes(root)) == 300
    assert memory.import_files([many]).files[0].unchanged == 300
