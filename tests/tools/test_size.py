"""The sizes that `make size` prints."""

from __future__ import annotations

from pathlib import Path

from tools.size import SOURCE, Size, rooms, size_of, table


def test_tokens_are_counted_and_layout_is_not() -> None:
    assert size_of("a = 1\n") == Size(3, 1, 1)
    assert size_of("# why\n\na = (\n    1\n)\n") == Size(5, 5, 1)


def test_a_longer_line_makes_nothing_smaller() -> None:
    short = 'def f(a):\n    """Adds."""\n    b = a\n    return b\n'
    dense = 'def f(a): "Adds."; b = a; return b\n'
    assert size_of(dense).tokens == size_of(short).tokens + 2  # the semicolons


def test_each_folder_is_a_room(tmp_path: Path) -> None:
    (tmp_path / "store/sqlite").mkdir(parents=True)
    (tmp_path / "memory.py").write_text("a = 1\n")
    (tmp_path / "store/ports.py").write_text("b = 2\nc = 3\n")
    (tmp_path / "store/sqlite/one.py").write_text("")
    assert rooms(tmp_path) == {
        ".": Size(3, 1, 1),
        "store": Size(6, 2, 1),
        "store/sqlite": Size(0, 0, 1),
    }
    assert list(table(tmp_path))[-1].split() == ["all", "9", "3", "3"]


def test_the_source_has_rooms() -> None:
    found = rooms(SOURCE)
    assert {"search", "index", "text"} <= found.keys()
    assert all(size.tokens for size in found.values())
