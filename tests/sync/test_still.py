"""Stillness: an empty queue of notifications means that no look is needed; anything else means that one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.sync import still as module
from recollect.sync.still import Still
from tests.conftest import Write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells before a write returns")


@pytest.fixture
def still(root: Path, write: Write) -> Iterator[Still]:
    write("MEMORY.md", "- one\n")
    write("memory/a.md", "a\n")
    write("memory/deep/b.md", "b\n")
    (root / ".recollect").mkdir()
    one = Still(root, ignored=root / ".recollect")
    one.arm()
    yield one
    one.close()


def test_nothing_is_still_before_it_listens_and_after(root: Path) -> None:
    one = Still(root, ignored=root / ".recollect")
    assert not one.still()
    one.arm()
    assert one.still()
    one.close()
    assert not one.still()


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
def test_every_change_is_known_at_once(root: Path, still: Still, change: str) -> None:
    assert still.still()
    assert still.still()
    CHANGES[change](root)
    assert not still.still()
    assert not still.still(), "until somebody has looked"


def test_a_folder_that_appears_is_listened_to_from_the_next_look_on(root: Path, still: Still) -> None:
    _new_folder(root)
    assert not still.still()
    still.arm()
    assert still.still()
    (root / "memory/new/c.md").write_text("new\n")
    assert not still.still()


def test_the_index_itself_is_no_change(root: Path, still: Still) -> None:
    (root / ".recollect/index.sqlite").write_text("x")
    (root / ".recollect").chmod(0o700)
    assert still.still()


def test_links_are_not_relied_on(root: Path, still: Still, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("x\n")
    (root / "memory/link.md").symlink_to(tmp_path / "other.md")
    assert not still.still()
    still.arm()
    assert not still.still()


def test_a_look_now_and_then_all_the_same(still: Still, monkeypatch: pytest.MonkeyPatch) -> None:
    assert still.still()
    monkeypatch.setattr(module, "_SWEEP_S", -1.0)
    assert not still.still()
