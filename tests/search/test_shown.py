"""Which documents were ever shown in an answer."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from notewell.memory import Memory
from notewell.search.shown import SHOWN_FILE, record
from tests.conftest import Write

DAY = dt.date(2026, 5, 6)


def test_what_was_shown_is_kept_and_added_to(tmp_path: Path) -> None:
    file = tmp_path / SHOWN_FILE
    assert "a.md" in record(file, ["a.md"], today=DAY)
    found = record(file, ["b.md"], today=DAY + dt.timedelta(days=9))
    assert found.since == DAY
    assert "a.md" in found
    assert "b.md" in found
    assert "c.md" not in found
    assert file.stat().st_mode & 0o777 == 0o600
    assert "a.md" not in file.read_text(encoding="utf-8")


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / SHOWN_FILE
    record(file, ["a.md"], today=DAY)
    before = file.stat().st_mtime_ns, file.stat().st_ino
    record(file, ["a.md"], today=DAY)
    record(file, [], today=DAY)
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_file_that_is_not_ours_begins_again(tmp_path: Path) -> None:
    file = tmp_path / SHOWN_FILE
    for wrong in (b"", b"not a day\n", b"\xff\xfe"):
        file.write_bytes(wrong)
        assert record(file, ["a.md"], today=DAY).since == DAY
    assert "a.md" in record(None, ["a.md"], today=DAY)


def test_a_search_writes_nothing_and_a_server_does(root: Path, write: Write) -> None:
    write("memory/tea.md", "# Tea\n\nTea is at four.\n")
    write("memory/cake.md", "# Cake\n\nChocolate only.\n")
    with Memory.open(root, embed__model="none") as memory:
        memory.search("tea at four")
        assert not (root / ".notewell" / SHOWN_FILE).exists()
        found = memory.searcher.record_shown()
        assert "memory/tea.md" in found
        assert "memory/cake.md" not in found
        assert (root / ".notewell" / SHOWN_FILE).exists()
