"""What Windows writes, read as it would be there: drive letters, backslashes, CRLF and code
pages.
"""

from __future__ import annotations

import ntpath
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.memory import Memory
from notewell.notes import reference
from notewell.notes.reference import inside_root
from notewell.text.reference_syntax import parse_reference
from tests.conftest import Write

ROOT = PureWindowsPath("C:\\Users\\Mira\\Notes")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths as Windows has them, in the module that reads references."""
    monkeypatch.setattr(reference, "os", SimpleNamespace(path=ntpath))
    monkeypatch.setattr(reference, "Path", PureWindowsPath)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "written",
    [
        "C:\\Users\\Mira\\Notes\\memory\\auth.md",
        "c:\\users\\mira\\notes\\memory\\auth.md",
        "C:/Users/Mira/Notes/memory/auth.md",
        "C:\\Users\\Mira\\Notes\\.\\memory\\..\\memory\\auth.md",
    ],
)
def test_an_absolute_path_with_a_drive_is_seen_from_the_workspace(written: str) -> None:
    assert inside_root(ROOT, written) == ["memory/auth.md"]  # type: ignore[arg-type]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "written",
    [
        "D:\\Users\\Mira\\Notes\\memory\\auth.md",
        "C:\\Users\\Mira\\Notes2\\memory\\auth.md",
        "C:\\Users\\Mira\\Notes\\..\\secret.md",
        "\\\\server\\share\\memory\\auth.md",
        "memory\\auth.md",
    ],
)
def test_other_drives_folders_and_shares_are_outside(written: str) -> None:
    assert inside_root(ROOT, written) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "name", "anchor"),
    [
        ("C:\\Notes\\memory\\auth.md:7", "C:/Notes/memory/auth.md", "L7"),
        ("C:\\Notes\\memory\\auth.md#L5-L7", "C:/Notes/memory/auth.md", "L5-L7"),
        ("C:\\Notes\\memory\\auth.md#Refresh tokens", "C:/Notes/memory/auth.md", "Refresh tokens"),
        ("memory\\auth.md:5-7", "memory/auth.md", "L5-L7"),
        (".\\memory\\auth.md", "./memory/auth.md", ""),
    ],
)
def test_a_drive_letter_is_no_line_and_backslashes_part_folders(
    written: str, name: str, anchor: str
) -> None:
    readings = [(end.name, end.anchor) for end in parse_reference(written).readings]
    assert (name, anchor) in readings


def test_notes_with_crlf_keep_it_and_are_cited_by_the_same_lines(root: Path, write: Write) -> None:
    text = (
        "---\r\ntitle: Staging\r\n---\r\n# Ports\r\n\r\nThe staging port is 8443.\r\n\r\n## "
        "Old\r\n\r\nIt was 8080.\r\n"
    )
    write("memory/ports.md", text)
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        found = memory.search("staging port", min_score=0.0)
        assert found.hits[0].chunk.citation == "memory/ports.md#L6"
        assert "\r" not in found.hits[0].snippet
        assert memory.get("memory\\ports.md:6").text.strip() == "The staging port is 8443."
        memory.remember("From Monday it is 9443.", file="memory/ports.md", heading="Ports")
    kept = (root / "memory/ports.md").read_bytes()
    assert b"From Monday it is 9443." in kept
    assert kept.count(b"\n") == kept.count(b"\r\n"), "every line still ends as the others do"


def test_settings_with_crlf_and_a_mark_of_utf8_are_read(root: Path, write: Write) -> None:
    write("notewell.toml", b"[search]\r\nlimit = 3\r\n")
    write("memory/a.md", b"\xef\xbb\xbf# Lamp\r\n\r\nThe lamp is green.\r\n")
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        assert memory.settings.search.limit == 3
        (hit,) = memory.search("lamp", min_score=0.0).hits
    assert hit.chunk.heading == ("Lamp",)


@pytest.mark.parametrize("code_page", ["cp437", "cp850", "cp1252", "cp932"])
def test_a_console_with_an_old_code_page_shows_what_it_can(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, code_page: str
) -> None:
    write("memory/a.md", "# Größe\n\nThe lamp 日本 is green ✓ and 100 € worth.\n")
    monkeypatch.setenv("PYTHONIOENCODING", code_page)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    command = [sys.executable, "-m", "notewell", "lamp", "-w", str(root)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert "memory/a.md" in done.stdout.decode(code_page)
    assert "is green" in done.stdout.decode(code_page)
