"""A process that stays looks only at the files that changed, and knows what a look at all of them
would have found.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import StoreError
from notewell.index.walk import Walk
from notewell.memory import Memory
from notewell.store.sqlite.documents import Documents
from notewell.types import SyncReport
from tests.conftest import PATIENT, Write

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells before a write returns"
)
LAYOUTS = ("memory", "folder", "both")


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest, root: Path, write: Write) -> str:
    """Notes in `memory/`, in the folder itself, or in both."""
    name: str = request.param
    if name != "folder":
        write("MEMORY.md", "- the boat is called Wanda\n")
        write("memory/a.md", "the anchor is grey\n")
        write("memory/deep/b.md", "the beacon is green\n")
    write("logs/c.md", "the compass is brass\n")
    write("logs/deep/d.txt", "the deck is oak\n")
    if name == "memory":
        shutil.move(root / "logs", root / "memory/logs")
        (root / "memory/logs/deep/d.txt").rename(root / "memory/logs/deep/d.md")
    if name == "both":
        write("notewell.toml", 'folder = "always"\n')
    return name


@pytest.fixture
def warm(root: Path, layout: str) -> Iterator[Memory]:
    del layout
    with Memory.open(root, env=PATIENT, embed__model="none", consolidate=False) as memory:
        memory.keep_warm()
        memory.search("anchor")
        assert memory.index.looks.probe is not None
        assert memory.index.looks.probe.unchanged()
        yield memory


@pytest.fixture
def whole_looks(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The root, for each look at all files that is taken after this."""
    taken: list[Path] = []
    sync = Walk.sync

    def counted(self: Walk, **named: Any) -> SyncReport:
        taken.append(root)
        return sync(self, **named)

    monkeypatch.setattr(Walk, "sync", counted)
    return taken


def known(memory: Memory) -> dict[str, tuple[str, int, int, str]]:
    return {
        path: (s.source, s.size, s.mtime_ns, s.digest)
        for path, s in memory.store.documents.stored().items()
    }


def afresh(root: Path) -> tuple[dict[str, tuple[str, int, int, str]], set[str]]:
    """What a new index of the same files knows, and what it could not read."""
    with Memory.open(
        root,
        env=PATIENT,
        embed__model="none",
        consolidate=False,
        index=root.parent / "fresh.sqlite",
    ) as memory:
        memory.sync(force=True)
        return known(memory), {one.path for one in memory.index.looks.unread}


def agrees(memory: Memory) -> None:
    memory.search("anchor")
    expected, unread = afresh(memory.root)
    assert known(memory) == expected
    assert {one.path for one in memory.index.looks.unread} == unread


@pytest.fixture
def base(root: Path, layout: str) -> Path:
    """The folder above the notes that change."""
    return root / "memory" if layout == "memory" else root


def _saved_beside(root: Path) -> None:
    (root / "logs/.c.md.tmp").write_text("the compass is silver\n")
    (root / "logs/.c.md.tmp").replace(root / "logs/c.md")


PLAIN: dict[str, Callable[[Path], object]] = {
    "write": lambda root: (root / "logs/c.md").write_text("the compass is silver\n"),
    "save beside": _saved_beside,
    "add": lambda root: (root / "logs/new.md").write_text("the net is new\n"),
    "drop": lambda root: (root / "logs/c.md").unlink(),
    "rename": lambda root: (root / "logs/c.md").rename(root / "logs/z.md"),
    "other folder": lambda root: (root / "logs/c.md").rename(root / "logs/deep/c.md"),
    "touch": lambda root: os.utime(root / "logs/c.md", (1_700_000_000, 1_700_000_000)),
    "same text": lambda root: (root / "logs/c.md").write_text((root / "logs/c.md").read_text()),
    "no note": lambda root: (root / "logs/c.png").write_bytes(b"x"),
    "not text": lambda root: (root / "logs/c.md").write_bytes(b"\x00\xff" * 300),
    "hidden": lambda root: (root / "logs/.c.md").write_text("hidden\n"),
    "pipe": lambda root: os.mkfifo(root / "logs/pipe.md"),
}
TELLING: dict[str, Callable[[Path], object]] = {
    "git rules": lambda root: (root / ".gitignore").write_text("logs/deep\n"),
    "own rules below": lambda root: (root / "logs/.notewellignore").write_text("c.md\n"),
    "new folder": lambda root: shutil.copytree(root / "logs", root / "logs/copy"),
    "folder away": lambda root: (root / "logs/deep").rename(root.parent / "away"),
    "folder renamed": lambda root: (root / "logs/deep").rename(root / "logs/shallow"),
    "folder gone": lambda root: shutil.rmtree(root / "logs/deep"),
    "first memory": lambda root: (root / "MEMORY.md").write_text("- a first one\n"),
    "code": lambda root: (root / "logs/pyproject.toml").write_text("[project]\n"),
    "environment": lambda root: (root / "logs/pyvenv.cfg").write_text("home = x\n"),
    "root environment": lambda root: (root / "pyvenv.cfg").write_text("home = x\n"),
    "link": lambda root: (root / "logs/link.md").symlink_to(root / "logs/c.md"),
    "document": lambda root: (root / "logs/c.pdf").write_bytes(b"x"),
}


@pytest.mark.parametrize("change", [*PLAIN, *TELLING])
def test_after_any_change_it_knows_what_a_new_index_would(
    warm: Memory, base: Path, change: str
) -> None:
    (PLAIN | TELLING)[change](base)
    agrees(warm)
    (base / "logs/later.md").write_text("the log is kept\n")  # and it still hears
    agrees(warm)


@pytest.mark.parametrize("change", PLAIN)
def test_a_change_of_a_file_takes_no_look_at_the_others(
    warm: Memory, base: Path, whole_looks: list[Path], change: str
) -> None:
    PLAIN[change](base)
    warm.search("compass")
    (base / "logs/c.md").write_text("the compass is back\n")
    assert any("back" in hit.chunk.text for hit in warm.search("compass").hits)
    assert whole_looks == []


@pytest.mark.parametrize(
    "name", [".gitignore", ".notewellignore", "logs/.gitignore", "notewell.toml"]
)
def test_rules_and_settings_take_a_look_at_everything(
    warm: Memory, root: Path, base: Path, whole_looks: list[Path], name: str
) -> None:
    ((root if name == "notewell.toml" else base) / name).write_text("# nothing\n")
    warm.search("compass")
    assert whole_looks == [root]


@pytest.mark.parametrize("first", ["caf\u00e9", "cafe\u0301"])
def test_a_name_in_two_unicode_forms(warm: Memory, base: Path, first: str) -> None:
    second = {"caf\u00e9": "cafe\u0301"}.get(first, "caf\u00e9")
    for name in (first, second, first):
        (base / f"logs/{name}.md").write_text(f"the coffee of {name.encode()!r} is cold\n")
        agrees(warm)
    (base / f"logs/{second}.md").unlink()
    agrees(warm)


def test_random_changes(warm: Memory, root: Path, layout: str) -> None:
    chance = random.Random(layout)
    names = [
        "MEMORY.md",
        "memory/a.md",
        "memory/deep/b.md",
        "logs/c.md",
        "logs/deep/d.txt",
        "e.md",
        "logs/caf\u00e9.md",
    ]
    names += [
        "logs/node_modules/f.md",
        "logs/.gitignore",
        "memory/.notewellignore",
        "logs/package.json",
        "logs/Makefile",
    ]
    for step in range(80):
        one, other = (root / chance.choice(names) for _ in range(2))
        for _ in range(chance.choice((1, 1, 3))):
            what = chance.choice(("write", "write", "drop", "move", "drop folder"))
            if what == "write":
                one.parent.mkdir(parents=True, exist_ok=True)
                one.write_text(chance.choice((f"the {step} is here\n", "c.md\n", "")))
            elif what == "drop":
                one.unlink(missing_ok=True)
            elif what == "move" and one.exists():
                other.parent.mkdir(parents=True, exist_ok=True)
                one.replace(other)
            elif step % 7 == 0 and one.parent != root:
                shutil.rmtree(one.parent, ignore_errors=True)
        agrees(warm)


def test_a_look_that_fails_is_made_up_for(
    warm: Memory, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Documents.put

    def broken(self: Documents, *given: Any, **named: Any) -> None:
        raise StoreError("the disk is full")

    for name in ("logs/c.md", ".gitignore"):  # a look at one file, and one at all of them
        (base / name).write_text(
            "logs/deep\n" if name == ".gitignore" else "the compass is silver\n"
        )
        (base / "logs/new.md").write_text(f"the net of {name} is new\n")
        monkeypatch.setattr(Documents, "put", broken)
        assert warm.search("compass").stale
        monkeypatch.setattr(Documents, "put", put)
        agrees(warm)


def test_a_look_that_was_cut_is_made_up_for(
    warm: Memory, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Walk._apply

    def cut(*given: Any) -> SyncReport:
        return SyncReport(left=1)

    (base / "logs/c.md").write_text("the compass is silver\n")
    monkeypatch.setattr(Walk, "_apply", cut)
    assert warm.search("compass").stale
    monkeypatch.setattr(Walk, "_apply", apply)
    agrees(warm)


def test_what_is_forgotten_stays_so_under_another_name(
    warm: Memory, root: Path, base: Path
) -> None:
    warm.forget((base / "logs/c.md").relative_to(root).as_posix(), yes=True)
    (base / "logs/c.md").rename(base / "logs/z.md")
    assert not any("compass" in hit.chunk.text for hit in warm.search("brass compass").hits)
    (base / "logs/z.md").write_text("the compass is brass\n\nthe chart is new\n")
    assert not any("compass" in hit.chunk.text for hit in warm.search("brass compass").hits)


@pytest.mark.parametrize("event", [0x4000, 0x2000, 0x8000])  # overflow, unmount, a watch that ended
def test_where_the_system_lost_count_everything_is_looked_at(
    warm: Memory, root: Path, whole_looks: list[Path], monkeypatch: pytest.MonkeyPatch, event: int
) -> None:
    told = [struct.pack("iIII", -1, event, 0, 0)]
    read = os.read
    monkeypatch.setattr(
        "notewell.index.probe.os.read",
        lambda handle, size: told.pop() if told else read(handle, size),
    )
    warm.search("compass")
    assert whole_looks == [root]


def test_many_changes_take_one_look_at_everything(
    warm: Memory, root: Path, base: Path, whole_looks: list[Path]
) -> None:
    for number in range(501):
        (base / f"logs/{number}.md").write_text(f"buoy {number}\n")
    warm.search("compass")
    assert whole_looks == [root]


def test_files_of_an_agent_take_a_look_at_everything(
    root: Path, write: Write, whole_looks: list[Path]
) -> None:
    write("memory/a.md", "the anchor is grey\n")
    write("SOUL.md", "I am patient\n")
    state = root.parent / "state"
    state.mkdir()
    (state / "openclaw.json").write_text(
        json.dumps({"agents": {"defaults": {"workspace": str(root)}}})
    )
    env = {"OPENCLAW_STATE_DIR": str(state), "HOME": str(root.parent)}
    with Memory.open(root, env=env, embed__model="none") as memory:
        memory.keep_warm()
        memory.search("anchor")
        whole_looks.clear()
        write("memory/a.md", "the anchor is blue\n")
        memory.search("anchor")
        assert whole_looks == []
        write("SOUL.md", "I am restless\n")
        assert any("restless" in hit.chunk.text for hit in memory.search("restless").hits)
        assert whole_looks
