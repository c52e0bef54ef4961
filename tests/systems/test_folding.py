"""Notes on a file system that does not tell letters of two cases, nor Unicode forms, apart: mounted
for real.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.memory import Memory
from tests.conftest import NO_FOLDING


@contextlib.contextmanager
def mounted(source: Path, place: Path) -> Iterator[Path]:
    command = [sys.executable, "-m", "tests.systems.folding", str(source), str(place)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 60
            while not os.path.ismount(place):
                if process.poll() is not None or time.monotonic() > until:
                    pytest.skip(NO_FOLDING)
                time.sleep(0.01)
            yield place
        finally:
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)
            process.terminate()


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Path]:
    """A workspace on such a file system."""
    if shutil.which("umount") is None or not os.path.exists("/dev/fuse"):
        pytest.skip(NO_FOLDING)
    source, place = tmp_path / "source", tmp_path / "mount"
    source.mkdir()
    place.mkdir()
    with mounted(source, place) as root:
        (root / "memory").mkdir()
        (root / "memory/Kettle.md").write_text(
            "# Kettle\n\nThe kettle is blue.\n", encoding="utf-8"
        )
        (root / "memory/tea.md").write_text(
            "# Tea\n\nThree minutes, see [[kettle]].\n", encoding="utf-8"
        )
        yield root


def opened(root: Path) -> Memory:
    return Memory.open(root, embedder=HashedEmbedder())


def paths(root: Path, question: str = "kettle colour blue") -> list[str]:
    with opened(root) as memory:
        return [hit.chunk.path for hit in memory.search(question, min_score=0.0).hits]


def test_a_note_is_named_in_any_case(folding: Path) -> None:
    assert (folding / "MEMORY/KETTLE.MD").exists(), "the file system folds case"
    with opened(folding) as memory:
        memory.sync()
        for written in (
            "memory/kettle.md",
            "MEMORY/KETTLE.md:3",
            f"{folding}/Memory/kettle.md",
            "[[KETTLE]]",
        ):
            assert memory.get(written).path == "memory/Kettle.md", written


def test_a_note_that_changes_its_case_alone_is_there_once(folding: Path) -> None:
    assert paths(folding).count("memory/Kettle.md") == 1
    os.rename(folding / "memory/Kettle.md", folding / "memory/kettle.md")
    found = paths(folding)
    assert found.count("memory/kettle.md") == 1
    assert "memory/Kettle.md" not in found


def test_what_is_remembered_goes_into_the_note_that_is_there(folding: Path) -> None:
    with opened(folding) as memory:
        memory.sync()
        memory.remember("The kettle holds two litres.", file="memory/KETTLE.md")
    assert sorted(os.listdir(folding / "memory")) == ["Kettle.md", "tea.md"]
    assert "two litres" in (folding / "memory/Kettle.md").read_text(encoding="utf-8")
    found = paths(folding, "how many litres does the kettle hold")
    assert {path.casefold() for path in found if "kettle" in path.casefold()} == {
        "memory/kettle.md"
    }
    assert len({path for path in found if "kettle" in path.casefold()}) == 1


def test_what_is_forgotten_by_another_case_is_gone(folding: Path) -> None:
    with opened(folding) as memory:
        memory.sync()
        memory.forget("MEMORY/kettle.md", yes=True)
    assert not any("ettle.md" in path for path in paths(folding))


def test_the_workspace_in_another_case_has_the_same_index(folding: Path) -> None:
    (folding / "notes/memory").mkdir(parents=True)
    (folding / "notes/memory/a.md").write_text("# A\n\nThe lamp is green.\n", encoding="utf-8")
    assert paths(folding / "notes", "lamp") == ["memory/a.md"]
    assert paths(folding / "NOTES", "lamp") == ["memory/a.md"]
    assert [p.name for p in (folding / "notes").iterdir() if p.name.startswith(".notewell")] == [
        ".notewell"
    ]


def test_another_unicode_form_of_a_name_is_the_same_note(folding: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "café.md")
    (folding / "memory" / decomposed).write_text("# Café\n\nIt opens at nine.\n", encoding="utf-8")
    with opened(folding) as memory:
        memory.sync()
        for form in ("NFC", "NFD"):
            note = memory.get(unicodedata.normalize(form, "memory/café.md"))
            assert "nine" in note.text
        assert len([p for p in memory.store.documents.stored() if "caf" in p]) == 1
