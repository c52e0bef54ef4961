"""The notes of any folder: what is read without MEMORY.md and memory/, and what is not."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.memory import Memory
from notewell.opener import inside
from notewell.sources.files import FileSource
from notewell.sources.folder import Folder
from notewell.sources.obsidian import vault_of
from notewell.sources.source import Scanned
from tests.conftest import Write


def paths(root: Path, **given: object) -> list[str]:
    return [d.path for d in FileSource(root, **given).scan().documents]  # type: ignore[arg-type]


def test_a_folder_of_notes_is_read_as_it_is(root: Path, write: Write) -> None:
    for path in (
        "a.md",
        "deep/er/b.txt",
        "c.org",
        "d.rst",
        "photo.png",
        "photo.png.txt",
        "code.py",
    ):
        write(path, "x")
    for path in (
        ".hidden/x.md",
        "node_modules/y.md",
        "Templates/t.md",
        "_templates/u.md",
        "gone/z.md",
        "requirements.txt",
    ):
        write(path, "x")
    write("LICENSE.md", "x")
    write("license plates.md", "x")
    write(".gitignore", "gone/\n")
    assert paths(root) == ["a.md", "c.org", "d.rst", "deep/er/b.txt", "license plates.md"]
    assert {d.source for d in FileSource(root).scan().documents} == {"memory"}


@pytest.mark.parametrize("mark", ["MEMORY.md", "memory/day.md"])
def test_with_a_memory_only_that_is_read_unless_asked_for(
    root: Path, write: Write, mark: str
) -> None:
    write("a.md", "x")
    write(mark, "x")
    assert paths(root) == [mark]
    assert paths(root, folder="always") == sorted([mark, "a.md"])
    assert FileSource(root).beyond(deadline=float("inf")) == (1, {})


def test_a_look_that_was_cut_does_not_call_notes_unread(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("MEMORY.md", "x")
    write("memory/b.md", "x")
    monkeypatch.setattr(FileSource, "scan", lambda *_, **__: Scanned((), complete=False))
    assert FileSource(root).beyond(deadline=float("inf")) == (0, {})


def test_never_leaves_the_folder_unread(root: Path, write: Write) -> None:
    write("a.md", "x")
    write("docs/b.md", "x")
    assert paths(root, folder="never") == []
    assert paths(root, folder="never", extra_paths=["docs"]) == ["docs/b.md"]


def test_extra_paths_keep_their_origin_in_a_folder_that_is_read(root: Path, write: Write) -> None:
    write("docs/a.md", "The kiln is hot.\n")
    write("b.md", "The kiln is cold.\n")
    found = {d.path: d.source for d in FileSource(root, extra_paths=["docs"]).scan().documents}
    assert found == {"docs/a.md": "extra", "b.md": "memory"}
    one = FileSource(root, extra_paths=["docs"])
    assert {path: d.source for path in found if (d := one.document(path))} == found
    with Memory.open(
        root, embed__model="none", extra_paths="docs", extra_origin="untrusted"
    ) as memory:
        origins = {h.chunk.path: h.chunk.origin for h in memory.search("kiln").hits}
    assert origins == {"docs/a.md": "untrusted", "b.md": "owner"}


CODE = (
    "README.md",
    "CHANGELOG.md",
    "AGENTS.md",
    "docs/guide.txt",
    "pkg/README.md",
    "pkg/CLAUDE.md",
    "pkg/docs/adr/1.md",
    ".cursor/rules/style.mdc",
    ".claude/rules/deep/a.md",
    ".claude/CLAUDE.md",
    ".github/copilot-instructions.md",
)
NO_CODE = (
    "notes.txt",
    "pkg/data.md",
    "tests/README.md",
    "vendor/lib/README.md",
    ".github/workflows/x.md",
    ".cursor/y.md",
)


@pytest.mark.parametrize(
    "manifest", ["pyproject.toml", "package.json", "Cargo.toml", "thing.csproj"]
)
def test_of_code_the_documentation_is_read(root: Path, write: Write, manifest: str) -> None:
    for path in (manifest, *CODE, *NO_CODE):
        write(path, "x")
    assert set(paths(root)) == set(CODE)
    assert {"pkg/data.md", "notes.txt", "tests/README.md"} <= set(paths(root, folder="all"))


def test_code_in_a_folder_of_notes_is_known_by_itself(root: Path, write: Write) -> None:
    for path in (
        "day.md",
        "projects/x/package.json",
        "projects/x/README.md",
        "projects/x/lib/page.md",
        "projects/idea.md",
    ):
        write(path, "x")
    assert paths(root) == ["day.md", "projects/idea.md", "projects/x/README.md"]


def test_a_vault_with_a_manifest_is_a_vault(root: Path, write: Write) -> None:
    for path in ("package.json", ".obsidian/app.json", "any/day.md"):
        write(path, "{}")
    assert paths(root) == ["any/day.md"]


def test_large_folders_are_bounded_and_say_so(root: Path, write: Write) -> None:
    for n in range(7):
        write(f"{n}.md", "x")
    source = FileSource(root, folder_limit=5)
    assert len(source.scan().documents) == 5
    assert [n.code for n in source.notices] == ["folder_cut"]
    assert source.notices[0].hint
    source = FileSource(root, folder_limit=7)
    source.scan()
    assert source.notices == ()


def test_a_tree_without_end_is_looked_at_up_to_a_bound(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.sources.folder._MOST_SEEN", 10)
    for n in range(30):
        write(f"{n}/a.bin", "x")
    write("z.md", "x")
    source = FileSource(root)
    assert source.scan().documents == ()
    assert "looked at" in source.notices[0].message


def test_documents_that_are_no_notes_are_counted(root: Path, write: Write) -> None:
    for path in ("a.pdf", "b.PDF", "c.docx", "page.html", "code/package.json", "code/index.html"):
        write(path, "x")
    source = FileSource(root)
    source.scan()
    assert source.unread == {"PDF": 2, "Word file": 1, "web page": 1}


def test_the_first_note_answers_whether_there_is_any(root: Path, write: Write) -> None:
    assert not FileSource(root).any()
    write("deep/a.md", "x")
    assert FileSource(root).any()


def test_links_that_lead_out_are_not_followed(root: Path, write: Write, tmp_path: Path) -> None:
    write("a.md", "x")
    outside = tmp_path / "outside"
    (outside / "rules").mkdir(parents=True)
    (outside / "rules/secret.md").write_text("x")
    os.symlink(outside, root / "link")
    os.symlink(outside / "rules/secret.md", root / "b.md")
    (root / ".cursor").mkdir()
    os.symlink(outside / "rules", root / ".cursor/rules")
    (root / ".github").mkdir()
    os.symlink(outside / "rules/secret.md", root / ".github/copilot-instructions.md")
    assert paths(root) == ["a.md"]


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("new.md", False),
        ("deep/new.md", False),
        ("Templates/new.md", True),
        (".x/new.md", True),
        ("a.py", True),
        ("gone.md", True),
        ("memory/new.md", False),
    ],
)
def test_what_is_not_read_is_not_written(
    root: Path, write: Write, path: str, refused: bool
) -> None:
    write("a.md", "x")
    write(".gitignore", "gone.md\n")
    assert bool(FileSource(root).refuses(str(root / path))) is refused


def test_a_vault_says_where_templates_are_and_how_days_are_named(root: Path, write: Write) -> None:
    write(".obsidian/daily-notes.json", json.dumps({"folder": "Daily", "format": "DD-MM-YYYY"}))
    write(".obsidian/templates.json", json.dumps({"folder": "Meta/Forms"}))
    write(
        ".obsidian/plugins/templater-obsidian/data.json",
        json.dumps({"templates_folder": "Scripts"}),
    )
    for path in ("Meta/Forms/a.md", "Scripts/b.md", "Daily/03-04-2026.md", "Other/03-04-2026.md"):
        write(path, "x")
    days = {d.path: d.day for d in FileSource(root).scan().documents}
    assert days == {"Daily/03-04-2026.md": dt.date(2026, 4, 3), "Other/03-04-2026.md": None}
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        assert memory.store.documents.chunks_of("Daily/03-04-2026.md")[0].day == dt.date(2026, 4, 3)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("YYYY-MM-DD", "2026-04-03"),
        ("YYYY/MM-MMMM/YYYY-MM-DD-dddd", "2026/04-April/2026-04-03-Friday"),
        ("dddd, MMMM Do YYYY", "Friday, April 3rd 2026"),
        ("[Day] D.M.YY", "Day 3.4.26"),
        ("MMM D, YYYY", "Apr 3, 2026"),
    ],
)
def test_formats_of_daily_notes(root: Path, write: Write, shape: str, name: str) -> None:
    write(".obsidian/daily-notes.json", json.dumps({"format": shape}))
    assert vault_of(str(root), inside(root)).day_of(f"{name}.md") == dt.date(2026, 4, 3)


@given(
    shape=st.text(max_size=250) | st.text(alphabet="YMDdow[]-/. ", max_size=60),
    name=st.text(max_size=100),
)
def test_no_format_fails_or_hangs(
    tmp_path_factory: pytest.TempPathFactory, shape: str, name: str
) -> None:
    root = tmp_path_factory.getbasetemp() / "vault"
    (root / ".obsidian").mkdir(parents=True, exist_ok=True)
    (root / ".obsidian/daily-notes.json").write_text(json.dumps({"format": shape}))
    vault_of(str(root), inside(root)).day_of(name)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"folder": 3}', "\0", '{"folder": "../../etc"}'])
def test_odd_settings_of_a_vault_are_none(root: Path, write: Write, text: str) -> None:
    write(".obsidian/templates.json", text)
    write(".obsidian/daily-notes.json", text)
    write("a.md", "x")
    assert paths(root) == ["a.md"]


@given(name=st.text(min_size=1, max_size=60).filter(lambda n: "/" not in n and "\0" not in n))
def test_any_name_has_a_rule(name: str) -> None:
    folder = Folder("/r", inside("/r"), mode="auto", most=10)
    folder.look("/r", [name])
    folder.enters(f"/r/{name}")
    folder.accepts(f"/r/{name}")
