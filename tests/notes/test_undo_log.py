"""Changes that can be taken back."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.notes.undo_log import MOST_CHANGES, Change, FileChange, UndoLog, hunks, taken_back
from notewell.text.forgotten import Forgotten, tombstones

TEXTS = st.lists(
    st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "é\udc80\n", "end"]), max_size=8
).map("".join)


def change(before: str, after: str, *, number: str = "a1", keep_old: bool = True) -> Change:
    file = FileChange("memory/a.md", before == "", "hash", hunks(before, after, keep_old=keep_old))
    return Change(number, "2026-05-06T09:00:00", "remember", "x", (file,))


@given(TEXTS, TEXTS)
@settings(max_examples=200, deadline=None)
def test_a_change_is_taken_back_to_the_byte(before: str, after: str) -> None:
    [file] = change(before, after).files
    assert taken_back(after, file, exact=True) == before
    [file] = change(before, after, keep_old=False).files
    assert taken_back(after, file, exact=True, backup=before) == before


@given(TEXTS, TEXTS, TEXTS, TEXTS)
@settings(max_examples=300, deadline=None)
def test_lines_of_others_are_never_lost(before: str, after: str, above: str, below: str) -> None:
    """Whatever others wrote above and below stays, or nothing is taken back."""
    above = "".join(f"theirs {n}\n" for n, _ in enumerate(above))
    below = "".join(f"more {n}\n" for n, _ in enumerate(below))
    after += "" if after.endswith("\n") or not after else "\n"
    [file] = change(before, after).files
    back = taken_back(above + after + below, file, exact=False)
    if back is not None:
        theirs = [line for line in back.splitlines() if line.startswith(("theirs", "more"))]
        assert theirs == (above + below).splitlines()


def test_lines_that_moved_are_found_and_lines_that_changed_are_not() -> None:
    [file] = change("# A\n", "# A\n\n- tea at four\n").files
    assert (
        taken_back("# New\n\n# A\n\n- tea at four\n- cake\n", file, exact=False)
        == "# New\n\n# A\n- cake\n"
    )
    assert taken_back("# A\n\n- tea at five\n", file, exact=False) is None
    assert taken_back("# A\n\n- tea at four\n\n- tea at four\n", file, exact=False) is None


def test_a_log_keeps_the_newest_and_nothing_foreign(tmp_path: Path) -> None:
    log = UndoLog(tmp_path / "changes")
    for number in range(MOST_CHANGES + 3):
        assert log.add(change("", "x\n", number=f"{number:04}"))
        os.utime(tmp_path / f"changes/{number:04}.json", (number, number))
    log.add(change("", "new\n", number="last"))
    (tmp_path / "changes/other.json").write_text('{"files": 3}', encoding="utf-8")
    found = log.all()
    assert found[0].id == "last"
    assert found[0] == change("", "new\n", number="last")
    assert len(found) == MOST_CHANGES
    assert log.find("0000") is None
    assert (tmp_path / "changes/last.json").stat().st_mode & 0o777 == 0o600


def test_a_change_is_removed_by_its_id_alone(tmp_path: Path) -> None:
    log = UndoLog(tmp_path / "changes")
    log.add(change("", "x\n"))
    (tmp_path / "keep.json").write_text("{}", encoding="utf-8")
    log.remove("../keep")
    log.remove("a1")
    assert log.all() == []
    assert (tmp_path / "keep.json").exists()


def test_what_is_forgotten_does_not_stay_in_the_log(tmp_path: Path) -> None:
    log = UndoLog(tmp_path / "changes")
    log.add(change("# A\n", "# A\n\nThe door code is four seven one one.\n", number="said"))
    log.add(change("# A\n", "# A\n\nTea is at four o'clock sharp.\n", number="other"))
    log.forget(Forgotten(tuple(tombstones("The door code is four seven one one.", "memory/b.md"))))
    assert [one.id for one in log.all()] == ["other"]


def test_without_a_folder_nothing_can_be_taken_back() -> None:
    assert UndoLog(None).add(change("", "x\n")) is False
    assert UndoLog(None).all() == []
