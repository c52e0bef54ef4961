"""Every form of a reference names the same passage for every command, on the command line and for
programs.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notewell.errors import NotFoundError
from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from notewell.surfaces.server.calls import CALLS
from notewell.types import Document
from tests.conftest import Write
from tests.growth import no_hang

AUTH = "# Auth\n\nTokens last an hour.\n\n## Refresh tokens\n\nA refresh token lasts a day.\n"
# Form: what is written, the path and lines that `get` prints, and the line of the passage (None:
# the whole note).
FORMS: dict[str, tuple[str, str, tuple[int, int], int | None]] = {
    "id": ("{id}", "memory/auth.md", (7, 7), 7),
    "beginning of an id": ("{id:.6}", "memory/auth.md", (7, 7), 7),
    "citation": ("memory/auth.md#L7", "memory/auth.md", (7, 7), 7),
    "path": ("memory/auth.md", "memory/auth.md", (1, 7), None),
    "path without its ending": ("memory/auth", "memory/auth.md", (1, 7), None),
    "./path": ("./memory/auth.md", "memory/auth.md", (1, 7), None),
    "absolute path": ("{root}/memory/auth.md", "memory/auth.md", (1, 7), None),
    "absolute path with lines": ("{root}/memory/auth.md:7", "memory/auth.md", (7, 7), 7),
    "absolute path through a link": ("{link}/memory/auth.md", "memory/auth.md", (1, 7), None),
    "path from here": ("in memory: auth.md", "memory/auth.md", (1, 7), None),
    "./path from here": ("in memory: ./auth.md:7", "memory/auth.md", (7, 7), 7),
    "../path from here": ("in memory/sub: ../auth.md", "memory/auth.md", (1, 7), None),
    "path of the root from here": ("in memory/sub: memory/auth.md#L7", "memory/auth.md", (7, 7), 7),
    "path:line": ("memory/auth.md:7", "memory/auth.md", (7, 7), 7),
    "path:from-to": ("memory/auth.md:5-7", "memory/auth.md", (5, 7), 7),
    "path#Lfrom-Lto": ("memory/auth.md#L5-L7", "memory/auth.md", (5, 7), 7),
    "path#from-to": ("memory/auth.md#5-7", "memory/auth.md", (5, 7), 7),
    "path#Heading": ("memory/auth.md#Refresh tokens", "memory/auth.md", (5, 7), 7),
    "path#HEADING": ("memory/auth.md#REFRESH  TOKENS", "memory/auth.md", (5, 7), 7),
    "path#heading-slug": ("memory/auth.md#refresh-tokens", "memory/auth.md", (5, 7), 7),
    "name": ("auth", "memory/auth.md", (1, 7), None),
    "name with lines": ("auth:7", "memory/auth.md", (7, 7), 7),
    "[[Name]]": ("[[Auth]]", "memory/auth.md", (1, 7), None),
    "[[Name|shown]]": ("[[Auth|how we log in]]", "memory/auth.md", (1, 7), None),
    "[[Name#Heading]]": ("[[Auth#Refresh tokens]]", "memory/auth.md", (5, 7), 7),
    "[shown](path)": ("[how](memory/auth.md#refresh-tokens)", "memory/auth.md", (5, 7), 7),
    "memory://path": ("memory://memory/auth.md", "memory/auth.md", (1, 7), None),
    "memory://path#lines": ("memory://memory/auth.md#L7", "memory/auth.md", (7, 7), 7),
    "memory://path with signs": (
        "memory://memory/c%23%20notes.md",
        "memory/c# notes.md",
        (1, 3),
        None,
    ),
    "backslashes": ("memory\\auth.md:7", "memory/auth.md", (7, 7), 7),
    "name with a colon": ("memory/10:30.md", "memory/10:30.md", (1, 3), None),
    "name with a colon and lines": ("memory/10:30.md:3", "memory/10:30.md", (3, 3), 3),
    "name with a number sign": ("memory/c# notes.md", "memory/c# notes.md", (1, 3), None),
    "name with a number sign and lines": ("memory/c# notes.md#L3", "memory/c# notes.md", (3, 3), 3),
    "name like an id": ("abcd", "memory/abcd.md", (1, 3), None),
    "another Unicode form": (
        unicodedata.normalize("NFD", "memory/café.md"),
        "memory/café.md",
        (1, 3),
        None,
    ),
}


@pytest.fixture(autouse=True)
def notes(write: Write, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("memory/auth.md", AUTH)
    write("memory/other.md", "Something else about lunch.\n")
    write("memory/sub/deep.md", "Far below.\n")
    for name in ("10:30", "c# notes", "abcd", "café"):
        write(f"memory/{name}.md", f"# {name.title()}\n\nThe call about {name} was short.\n")
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "none")
    monkeypatch.chdir(root)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = run([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, (arguments, err)
    found: dict[str, Any] = json.loads(out)
    return found


def filled(form: str, root: Path) -> str:
    with Memory.open(root) as memory:
        memory.sync()
        (passage,) = [
            c for c in memory.store.documents.chunks_of("memory/auth.md") if c.start_line == 7
        ]
    return form.format(id=passage.id, root=root, link=root.parent / "link")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_works_for_every_command(
    form: str, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written, path, (first, last), line = FORMS[form]
    reference = filled(written, root)
    if reference.startswith("in "):
        folder, _, reference = reference.removeprefix("in ").partition(": ")
        monkeypatch.chdir(root / folder)
    got = answered(capsys, "get", reference)
    assert (got["path"], got["start_line"], got["end_line"]) == (path, first, last)
    why = answered(capsys, "why", "token call", reference)
    assert why["citation"].startswith(f"{path}#L")
    assert line is None or why["citation"] == f"{path}#L{line}"
    (piece,) = answered(capsys, "forget", reference)["passages"]
    lines = f"#L{first}-L{last}" if last > first else f"#L{first}"
    assert piece["citation"] == (path if line is None else path + lines)
    citation = path if line is None else f"{path}#L{line}"
    assert answered(capsys, "trace", reference)["start"]["citation"] == citation
    assert answered(capsys, "link", reference, "causes", "other")["from"].startswith(path)
    hop = answered(capsys, "trace", "other", "--reverse")["hops"][0]
    assert hop["citation"] == citation
    assert answered(capsys, "link", reference, "causes", "other", "--remove")["removed"]
    here = [e["citation"] for e in answered(capsys, "timeline", reference)["entries"] if e["here"]]
    assert citation in here if line else all(e.startswith(path) for e in here)
    assert here


@pytest.mark.parametrize(
    "form", [name for name, row in FORMS.items() if not row[0].startswith("in ")]
)
def test_every_form_works_for_programs(form: str, root: Path) -> None:
    written, path, (first, last), line = FORMS[form]
    reference = filled(written, root)
    with Memory.open(root) as memory:

        def asked(name: str, **given: str) -> dict[str, Any]:
            return CALLS[name].run(memory, CALLS[name].checked(given))

        got = asked("get", reference=reference)
        assert (got["path"], got["start_line"], got["end_line"]) == (path, first, last)
        assert asked("why", query="token call", reference=reference)["citation"].startswith(path)
        assert asked("forget", reference=reference)["passages"][0]["citation"].startswith(path)
        assert any(e["here"] for e in asked("timeline", reference=reference)["entries"])
        new = asked("remember", text="It is all different now.", supersedes=reference)
        hidden = memory.search("token call lasts", include_superseded=True, limit=50).hits
        replaced = [
            h.chunk.citation
            for h in hidden
            if h.superseded_by == new["id"] and h.chunk.path == path
        ]
        assert f"{path}#L{line}" in replaced if line else replaced


@pytest.mark.parametrize(
    "form", [name for name, row in FORMS.items() if not row[0].startswith("in ")]
)
def test_every_form_works_in_front_matter(form: str, root: Path, write: Write) -> None:
    written, path, _, line = FORMS[form]
    write(
        "memory/new.md",
        f"---\nsupersedes:\n  - {filled(written, root)}\n---\nIt is all different now.\n",
    )
    with Memory.open(root) as memory:
        found = memory.search("token call lasts", include_superseded=True, limit=50).hits
        hidden = {h.chunk.citation for h in found if h.superseded_by}
        wanted = {
            h.chunk.citation
            for h in found
            if h.chunk.path == path and line in (None, h.chunk.start_line)
        }
        assert wanted
        assert hidden == wanted
        walked, _ = memory.trace("memory/new.md", kinds=["supersedes"])
        assert {hop.node.path for hop in walked.hops} == {path}


def test_a_path_from_a_note_is_tried_from_its_folder(root: Path, write: Write) -> None:
    write("memory/sub/new.md", "---\nsupersedes: ./deep.md\n---\nIt is near now.\n")
    with Memory.open(root) as memory:
        assert [h.chunk.path for h in memory.search("far below").hits] == []


def test_a_name_that_two_notes_have_lists_both(root: Path, write: Write) -> None:
    write("memory/sub/auth.md", "Another one.\n")
    with Memory.open(root) as memory:
        for ask in (
            memory.get,
            memory.forget,
            memory.trace,
            memory.timeline,
            lambda r: memory.why("token", r),
        ):
            with pytest.raises(
                NotFoundError, match=r"2 notes: memory/auth\.md, memory/sub/auth\.md"
            ) as caught:
                ask("auth")
            assert caught.value.hint == "give the path of one of them"
        assert memory.get("sub/auth").text == "Another one."


@pytest.mark.parametrize(
    ("reference", "message", "hint"),
    [
        ("memory/auht.md", "is called 'memory/auht.md'", "did you mean memory/auth.md?"),
        ("auht", "is called 'auht'", "did you mean memory/auth.md?"),
        ("docs/auth.md", "is called 'docs/auth.md'", "did you mean memory/auth.md?"),
        ("auth.txt", "is called 'auth.txt'", "did you mean memory/auth.md?"),
        ("memory/sub", "is called 'memory/sub'", "it is a folder: name a note in it"),
        ("memory/sub/", "is called 'memory/sub/'", "it is a folder: name a note in it"),
        ("memory/auth.md:8", "memory/auth.md has 7 lines, not 8", "lines count from 1"),
        ("memory/auth.md#L9-L12", "has 7 lines, not 9-12", "lines count from 1"),
        ("memory/auth.md:6-5", "has 7 lines, not 6-5", "lines count from 1"),
        ("memory/auth.md:0", "has 7 lines, not 0", "lines count from 1"),
        ("memory/auth.md:999999999999999999", "has 7 lines", "lines count from 1"),
        (
            "memory/auth.md#Refresh token",
            "has no heading 'Refresh token'",
            "did you mean Refresh tokens?",
        ),
        ("memory/auth.md#Lunch", "has no heading 'Lunch'", "its headings: Auth, Refresh tokens"),
        ("https://example.org/a", "is called", "give an id"),
        ("../outside.md", "is called", "give an id"),
        ("/etc/passwd", "is called", "give an id"),
        ("", "the reference is empty", "give an id"),
        ("[" * 5_000, "longer than 4,096 characters", "give an id"),
    ],
)
def test_what_means_nothing_says_so_in_every_command(
    root: Path, reference: str, message: str, hint: str
) -> None:
    (root.parent / "outside.md").write_text("secret")
    with Memory.open(root) as memory:
        asks: list[Callable[[str], object]] = [memory.get, memory.trace]
        asks += [lambda r: memory.why("token", r), lambda r: memory.link(r, "causes", "other")]
        if reference:
            asks += [memory.forget, memory.timeline, lambda r: memory.remember("x", supersedes=r)]
        for ask in asks:
            with no_hang(), pytest.raises(NotFoundError) as caught:
                ask(reference)
            assert message in str(caught.value)
            assert hint in caught.value.hint


def test_get_reads_only_the_file_it_was_asked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(root) as memory:
        opened: list[str] = []
        listed: list[str] = []
        scan, files = os.scandir, memory.index.files
        read = files.read

        def scanned(path: str) -> Any:
            listed.append(path)
            return scan(path)

        def reading(document: Document) -> str:
            opened.append(document.path)
            return read(document)

        monkeypatch.setattr("os.scandir", scanned)
        monkeypatch.setattr(files, "read", reading)
        assert memory.get("memory/auth.md:7").text == "A refresh token lasts a day."
        assert memory.get("memory/auth.md#refresh-tokens").start_line == 5
        assert opened == ["memory/auth.md"] * 2
        assert listed == [], "no folder was listed"


def test_a_citation_means_the_same_wherever_one_stands(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write("MEMORY.md", "- root\n")
    write("memory/memory.md", "below\n")
    monkeypatch.chdir(root / "memory")
    assert answered(capsys, "get", "MEMORY.md", "-w", str(root))["text"] == "- root"
    assert answered(capsys, "get", "./memory.md", "-w", str(root))["text"] == "below"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("memory/ignored.md", "a hidden or ignored file"),
        ("memory/.hidden.md", "a hidden or ignored file"),
        ("memory/binary.md", "a binary file"),
        ("aside.md", "outside the notes"),
    ],
)
def test_a_file_that_is_not_read_is_told_apart_from_one_that_is_not_there(
    root: Path, write: Write, path: str, reason: str
) -> None:
    write("memory/.gitignore", "ignored.md\n")
    write("memory/a.md", "The staging port is 8080.")
    write(path, "\0\1" if "binary" in path else "The staging port is 9090.")
    with Memory.open(root, embed__model="none") as memory:
        for written in (path, f"./{path}", str(root / path)):
            with pytest.raises(NotFoundError, match=f"{re.escape(path)} is not read: {reason}"):
                memory.why("staging port", written)
        with pytest.raises(NotFoundError, match="no note or passage is called"):
            memory.why("staging port", "memory/none.md")


def test_nothing_is_told_of_files_outside_the_workspace(
    root: Path, write: Write, tmp_path: Path
) -> None:
    write("memory/a.md", "The staging port is 8080.")
    (tmp_path / "outside.md").write_text("x")
    with Memory.open(root, embed__model="none") as memory:
        for written in ("../outside.md", str(tmp_path / "outside.md"), "memory/../../outside.md"):
            with pytest.raises(NotFoundError, match="no note or passage is called"):
                memory.why("staging port", written)
