from __future__ import annotations

import os
from pathlib import Path

import pytest

from notewell.errors import NoteError, StoreBusyError, UsageError
from notewell.notes import editor as module
from notewell.notes.editor import Notes
from notewell.sources.files import FileSource
from notewell.store.lock import locked
from notewell.text.note_edit import Insertion, cut, insertion
from tests.conftest import Write


@pytest.fixture
def notes(root: Path) -> Notes:
    return Notes(FileSource(root, extra_paths=["docs", "logs/*.txt"]), root / "notes.lock")


def add(notes: Notes, path: str, entry: str, heading: str = "") -> str:
    _, location = notes.locate(path)
    notes.add(location, lambda text: insertion(text, entry, heading=heading), start="# new\n")
    return Path(location).read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    "path",
    [
        "../x.md",
        "memory/../../x.md",
        "/etc/hosts.md",
        "notes.md",
        "memory/x.txt",
        "memory/.hidden/x.md",
        "memory",
        "memory/node_modules/x.md",
        "memory/secret/x.md",
        ".notewell/x.md",
        "",
        "memory/x\0.md",
        "logs/x.md",
    ],
)
def test_a_place_outside_the_notes_is_refused(
    notes: Notes, write: Write, root: Path, path: str
) -> None:
    (root / "docs").mkdir()
    (root / "logs").mkdir()
    write("memory/.notewellignore", "secret/\n")
    with pytest.raises(UsageError) as caught:
        notes.locate(path)
    assert caught.value.hint
    assert not (root.parent / "x.md").exists()


@pytest.mark.parametrize(
    "path",
    [
        "memory/x.md",
        "memory/a/b/x.md",
        "MEMORY.md",
        "user.md",
        "docs/x.md",
        "docs/y.txt",
        "logs/x.txt",
    ],
)
def test_a_place_among_the_notes_is_taken_and_then_found(
    notes: Notes, root: Path, path: str
) -> None:
    (root / "docs").mkdir()
    (root / "logs").mkdir()
    assert add(notes, path, "text") == "# new\n\ntext\n"
    name, _ = notes.locate(path)
    assert name in {d.path for d in notes.files.scan().documents}
    assert notes.files.document(name) in notes.files.scan().documents


def test_links_that_stay_inside_are_followed_and_others_refused(
    notes: Notes, write: Write, root: Path
) -> None:
    write("memory/real.md", "a\n")
    (root / "memory/link.md").symlink_to(root / "memory/real.md")
    (root.parent / "out.md").write_text("secret")
    (root / "memory/out.md").symlink_to(root.parent / "out.md")
    (root / "memory/away").symlink_to(root.parent)
    assert add(notes, "memory/link.md", "b", heading="H") == "a\n\n## H\nb\n"
    add(notes, "memory/link.md", "c", heading="H")
    assert (root / "memory/link.md").is_symlink()
    for path in ("memory/out.md", "memory/away/new.md"):
        with pytest.raises(UsageError, match="leads out"):
            notes.locate(path)
    assert (root.parent / "out.md").read_text() == "secret"


def test_binary_files_are_left_alone(notes: Notes, write: Write) -> None:
    place = write("memory/x.md", b"\x00\x01\x02")
    with pytest.raises(UsageError, match="binary"):
        add(notes, "memory/x.md", "text")
    assert place.read_bytes() == b"\x00\x01\x02"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_says_so(notes: Notes, write: Write) -> None:
    place = write("memory/x.md", "## H\n\na\n\n## B\n")
    place.chmod(0o400)
    for heading in ("", "H"):
        with pytest.raises(NoteError, match="cannot be written"):
            add(notes, "memory/x.md", "text", heading)
    assert place.read_text() == "## H\n\na\n\n## B\n"


def test_a_folder_in_the_place_of_a_file_is_a_clear_error(
    notes: Notes, write: Write, root: Path
) -> None:
    write("memory/x.md", "file")
    with pytest.raises(NoteError, match="cannot be written"):
        add(notes, "memory/x.md/y.md", "text")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-8"])
def test_the_encoding_and_its_mark_are_kept(notes: Notes, write: Write, codec: str) -> None:
    text = "\ufeff## Größe\r\n\r\n一\r\n\r\n## Other\r\n"
    place = write("memory/x.md", text.encode(codec))
    for heading in ("", "Größe"):
        _, location = notes.locate("memory/x.md")
        notes.add(location, lambda t, h=heading: insertion(t, "二", heading=h), start="")  # type: ignore[misc]
    assert place.read_bytes().decode(codec) == (
        "\ufeff## Größe\r\n\r\n一\r\n\r\n二\r\n\r\n## Other\r\n\r\n二\r\n"
    )


def test_the_mode_of_a_file_is_kept(notes: Notes, write: Write) -> None:
    place = write("memory/x.md", "## H\n\na\n\n## B\n")
    place.chmod(0o640)
    add(notes, "memory/x.md", "text", "H")
    assert place.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in place.parent.iterdir()) == ["x.md"], "no temporary file is left"


def test_what_others_append_between_the_look_and_the_write_stays(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/x.md", "## H\n\na\n\n## B\n")
    once = iter(["theirs"])

    def meddle(text: str, heading: str) -> Insertion:
        for line in once:
            with place.open("a") as file:
                file.write(f"{line}\n")
        return insertion(text, "ours", heading=heading)

    _, location = notes.locate("memory/x.md")
    notes.add(location, lambda text: meddle(text, "H"), start="")
    assert place.read_text() == "## H\n\na\n\nours\n\n## B\ntheirs\n"
    once = iter(["more"])
    written = notes.add(location, lambda text: meddle(text, ""), start="")
    assert place.read_text() == "## H\n\na\n\nours\n\n## B\ntheirs\nmore\n\nours\n"
    assert written is not None
    assert written.start_line == 11


def test_what_is_appended_to_the_old_file_while_the_new_one_takes_its_place_follows(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/x.md", "## H\n\na\n\n## B\n")
    theirs = place.open("a")  # opened before, written after the rename
    replace = os.replace

    def late(source: str, target: str) -> None:
        replace(source, target)
        theirs.write("theirs\n")
        theirs.close()

    monkeypatch.setattr("notewell.notes.editor.os.replace", late)
    assert add(notes, "memory/x.md", "ours", "H") == "## H\n\na\n\nours\n\n## B\ntheirs\n"


def test_an_editor_that_saves_by_renaming_does_not_swallow_the_entry(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    place = write("memory/x.md", "a\n")
    lseek = os.lseek
    once = iter([True])

    def save(handle: int, offset: int, whence: int) -> int:
        for _ in once if whence == os.SEEK_CUR else ():
            (root / "memory/new.md").write_text("a, edited\n")
            os.replace(root / "memory/new.md", place)
        return lseek(handle, offset, whence)

    monkeypatch.setattr("notewell.notes.editor.os.lseek", save)
    assert add(notes, "memory/x.md", "ours") == "a, edited\n\nours\n"


def test_an_unfinished_line_of_somebody_else_is_not_continued(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/x.md", "- a\n")
    write_ = os.write
    once = iter([True])

    def after_them(handle: int, data: bytes) -> int:
        for _ in once:
            with place.open("a") as file:
                file.write("- half")
        return write_(handle, data)

    monkeypatch.setattr("notewell.notes.editor.os.write", after_them)
    assert add(notes, "memory/x.md", "ours") == "- a\n- half\n- ours\n"


def test_a_full_disk_leaves_the_note_as_it_was(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/x.md", "a\n")
    write_ = os.write
    monkeypatch.setattr(
        "notewell.notes.editor.os.write", lambda handle, data: write_(handle, data[:3])
    )
    with pytest.raises(NoteError, match="no space"):
        add(notes, "memory/x.md", "a long enough entry")
    assert place.read_text() == "a\n"


def test_a_writer_that_holds_the_lock_too_long_is_named(
    notes: Notes, write: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOCK_WAIT_S", 0.0)
    with locked(root / "notes.lock", wait_s=0.0), pytest.raises(StoreBusyError):
        add(notes, "memory/x.md", "text")
    assert not (root / "memory").exists()


def test_a_change_hands_the_old_bytes_over_first_and_says_if_there_was_none(
    notes: Notes, write: Write
) -> None:
    place = write("memory/x.md", "a\r\n\r\nb\r\n")
    saved: list[bytes] = []
    _, location = notes.locate("memory/x.md")
    assert not notes.change(location, lambda text: text, keep=saved.append)
    assert notes.change(location, lambda text: cut(text, 3, 3), keep=saved.append)
    assert (saved, place.read_bytes()) == ([b"a\r\n\r\nb\r\n"], b"a\r\n")
    notes.remove(location, keep=saved.append)
    assert (saved[1], place.exists()) == (b"a\r\n", False)


def test_a_long_text_takes_its_place_whole(
    notes: Notes, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write("memory/x.md", "a\n")
    before = place.stat().st_ino
    monkeypatch.setattr(
        "notewell.notes.editor.os.write", lambda *_: pytest.fail("a crash could cut this in two")
    )
    assert add(notes, "memory/x.md", "long " * 2000).count("long ") == 1999 + 1
    assert place.stat().st_ino != before


def test_an_exchange_writes_only_over_what_it_expects(notes: Notes, root: Path) -> None:
    place = str(root / "memory/new/a.md")
    assert notes.look(place) is None
    assert notes.exchange(place, None, b"one\n")
    assert not notes.exchange(place, None, b"other\n")
    assert not notes.exchange(place, b"other\n", b"two\n")
    assert notes.look(place) == b"one\n"
    assert notes.exchange(place, b"one\n", b"two\n")
    assert not notes.exchange(place, b"one\n", None)
    assert notes.exchange(place, b"two\n", None)
    assert notes.look(place) is None
    assert not notes.exchange(place, b"two\n", b"three\n")
