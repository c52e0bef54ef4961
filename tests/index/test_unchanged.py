"""Stillness: an empty queue of notifications means that no look is needed; anything else means that
one is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell.index.probe import ChangeProbe
from tests.conftest import Write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells before a write returns"
)


@pytest.fixture
def still(root: Path, write: Write) -> Iterator[ChangeProbe]:
    write("MEMORY.md", "- one\n")
    write("memory/a.md", "a\n")
    write("memory/deep/b.md", "b\n")
    (root / ".notewell").mkdir()
    one = ChangeProbe(root, ignored=root / ".notewell")
    one.arm()
    yield one
    one.close()


def test_nothing_is_still_before_it_listens_and_after(root: Path) -> None:
    one = ChangeProbe(root, ignored=root / ".notewell")
    assert not one.unchanged()
    one.arm()
    assert one.unchanged()
    one.close()
    assert not one.unchanged()


def _new_folder(root: Path) -> None:
    (root / "memory/new").mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "write": lambda root: (root / "memory/a.md").write_text("changed\n"),
    "deep": lambda root: (root / "memory/deep/b.md").write_text("changed\n"),
    "root": lambda root: (root / "MEMORY.md").write_text("changed\n"),
    "add": lambda root: (root / "memory/deep/c.md").write_text("new\n"),
    "drop": lambda root: (root / "memory/a.md").unlink(),
    "rename": lambda root: (root / "memory/a.md").rename(root / "memory/z.md"),
    "replace": lambda root: (root / "MEMORY.md").replace(root / "memory/a.md"),
    "touch": lambda root: os.utime(root / "memory/a.md", (1, 1)),
    "mode": lambda root: (root / "memory/a.md").chmod(0o600),
    "folder": _new_folder,
    "away": lambda root: root.rename(root.with_name("elsewhere")),
    "rules": lambda root: (root / ".gitignore").write_text("memory/a.md\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_known_at_once(root: Path, still: ChangeProbe, change: str) -> None:
    assert still.unchanged()
    assert still.unchanged()
    CHANGES[change](root)
    assert not still.unchanged()
    assert not still.unchanged(), "until somebody has looked"


def test_a_folder_that_appears_is_listened_to_from_the_next_look_on(
    root: Path, still: ChangeProbe
) -> None:
    _new_folder(root)
    assert not still.unchanged()
    still.arm()
    assert still.unchanged()
    (root / "memory/new/c.md").write_text("new\n")
    assert not still.unchanged()


def test_the_index_itself_is_no_change(root: Path, still: ChangeProbe) -> None:
    (root / ".notewell/index.sqlite").write_text("x")
    (root / ".notewell").chmod(0o700)
    assert still.unchanged()


def test_links_are_not_relied_on(root: Path, still: ChangeProbe, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("x\n")
    (root / "memory/link.md").symlink_to(tmp_path / "other.md")
    assert not still.unchanged()
    still.arm()
    assert not still.unchanged()


def test_a_look_now_and_then_all_the_same(still: ChangeProbe) -> None:
    assert still.unchanged()
    assert not still.unchanged(within_s=-1.0)


def test_it_says_why_every_search_has_to_look(
    root: Path, still: ChangeProbe, tmp_path: Path
) -> None:
    assert still.doubt == ""
    (root / "memory/link").symlink_to(tmp_path)
    still.arm()
    assert "links" in still.doubt


def test_a_folder_of_notes_is_listened_to_as_a_whole(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("deep/er/a.md", "a\n")
    write("node_modules/x/b.md", "b\n")
    elsewhere = tmp_path / "elsewhere"
    one = ChangeProbe(
        root,
        ignored=root / ".notewell",
        whole=lambda: True,
        trees=lambda: [str(elsewhere / "memory")],
    )
    changes: tuple[Callable[[], object], ...] = (
        lambda: (root / "deep/er/a.md").write_text("changed\n"),
        (root / "new").mkdir,
        lambda: (root / "new/c.md").write_text("new\n"),
        lambda: (elsewhere / "memory").mkdir(parents=True),
        lambda: (elsewhere / "memory/d.md").write_text("new\n"),
    )
    for change in changes:
        one.arm()
        assert one.unchanged()
        change()
        assert not one.unchanged()
    one.arm()
    (root / "node_modules/x/b.md").write_text("changed\n")
    assert one.unchanged()
    one.close()
