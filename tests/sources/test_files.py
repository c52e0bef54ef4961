from __future__ import annotations

import os
import tempfile
import time
import tracemalloc
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.sources.files import FileSource
from notewell.store.values import Stored
from notewell.text.note_files import decode
from notewell.types import Skipped
from tests.conftest import Write
from tests.growth import no_hang


def paths(root: Path, *extra: str) -> list[str]:
    return [d.path for d in FileSource(root, extra_paths=extra).scan().documents]


def reasons(root: Path, *extra: str, **options: Any) -> dict[str, str]:
    return {s.path: s.reason for s in FileSource(root, extra_paths=extra, **options).scan().skipped}


@pytest.mark.parametrize("name", ["MEMORY.md", "memory.md", "Memory.MD", "USER.md", "user.md"])
def test_the_curated_files_are_found_in_any_case(root: Path, write: Write, name: str) -> None:
    write(name, "a fact")
    assert paths(root) == [name]


def test_notes_are_the_markdown_files_below_memory_at_any_depth(root: Path, write: Write) -> None:
    for path in ("memory/2026-02-10.md", "memory/a/b/deep.markdown", "memory/c.mdx"):
        write(path, "x")
    for path in ("README.md", "src/notes.md", "memory/picture.png", "memory/data.json"):
        write(path, "x")
    assert paths(root) == ["memory/2026-02-10.md", "memory/a/b/deep.markdown", "memory/c.mdx"]


def test_a_document_carries_its_size_and_time_by_stat_alone(root: Path, write: Write) -> None:
    place = write("memory/a.md", "four")
    document = FileSource(root).scan().documents[0]
    assert (document.size, document.mtime_ns, document.source) == (
        4,
        place.stat().st_mtime_ns,
        "memory",
    )


def test_extra_paths_are_files_folders_and_globs(root: Path, write: Write, tmp_path: Path) -> None:
    for path in (
        "docs/a.md",
        "docs/deep/b.txt",
        "one.org",
        "wiki/x/c.md",
        "wiki/x/d.log",
        "wiki/x/e.png",
        "other/f.md",
    ):
        write(path, "x")
    (root / "memory").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.md").write_text("x")
    assert paths(root, "docs", "one.org", "wiki/**/*.md", str(elsewhere)) == [
        str(elsewhere / "far.md"),
        "docs/a.md",
        "docs/deep/b.txt",
        "one.org",
        "wiki/x/c.md",
    ]
    assert paths(root, "wiki/*/*.log") == ["wiki/x/d.log"], "a glob that names an ending gets it"
    assert paths(root, "wiki/*") == ["wiki/x/c.md"], "a glob that names none gets text files"
    assert {d.source for d in FileSource(root, extra_paths=["docs"]).scan().documents} == {"extra"}


def test_an_extra_path_that_is_not_there_is_reported(root: Path) -> None:
    assert reasons(root, "nowhere") == {"nowhere": "extra path: no such file or folder"}


def test_a_file_named_twice_is_one_document(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    assert paths(root, "memory", "memory/a.md", "memory/*.md", "./memory/a.md") == ["memory/a.md"]
    assert reasons(root, "memory", "./memory/a.md") == {}


@pytest.mark.parametrize(
    "folder", [".git", "node_modules", ".venv", "venv", "__pycache__", ".cache", "site-packages"]
)
def test_machinery_is_never_searched(root: Path, write: Write, folder: str) -> None:
    write(f"memory/{folder}/readme.md", "x")
    write(f"docs/{folder}/readme.md", "x")
    assert paths(root, "docs", "docs/**/*.md", "**/*.md") == []


def test_a_virtual_environment_is_known_by_its_mark_not_by_its_name(
    root: Path, write: Write
) -> None:
    write("memory/py312/pyvenv.cfg", "home = /usr")
    write("memory/py312/lib/notes.md", "x")
    write("memory/env/staging.md", "x")
    write("memory/vendor/acme.md", "x")
    assert paths(root) == ["memory/env/staging.md", "memory/vendor/acme.md"]


def test_ignore_files_speak_for_their_folder_and_below(root: Path, write: Write) -> None:
    write("memory/.gitignore", "drafts/\n*.tmp.md\n!keep.tmp.md\n")
    write("memory/sub/.notewellignore", "secret.md\n")
    for path in (
        "a.md",
        "b.tmp.md",
        "keep.tmp.md",
        "drafts/c.md",
        "sub/secret.md",
        "sub/open.md",
        "secret.md",
    ):
        write(f"memory/{path}", "x")
    assert paths(root) == [
        "memory/a.md",
        "memory/keep.tmp.md",
        "memory/secret.md",
        "memory/sub/open.md",
    ]


def test_globs_obey_the_ignore_rules(root: Path, write: Write) -> None:
    write(".gitignore", "build/\n")
    write("build/out.md", "x")
    write("docs/in.md", "x")
    assert paths(root, "**/*.md") == ["docs/in.md"]


def test_our_own_ignore_file_is_asked_before_gits(root: Path, write: Write) -> None:
    write("memory/.gitignore", "*.md\n")
    write("memory/.notewellignore", "!wanted.md\n")
    write("memory/wanted.md", "x")
    write("memory/other.md", "x")
    assert paths(root) == ["memory/wanted.md"]


@pytest.mark.parametrize("rule", ["memory/", "/memory", "memory/*", "memory/**"])
def test_memory_kept_out_of_git_is_still_searched(root: Path, write: Write, rule: str) -> None:
    write(".gitignore", f"{rule}\nMEMORY.md\n")
    write("MEMORY.md", "x")
    write("memory/a.md", "x")
    assert paths(root) == ["MEMORY.md", "memory/a.md"]


def test_what_our_own_ignore_file_names_stays_out_even_when_git_ignores_memory_whole(
    root: Path, write: Write
) -> None:
    write(".gitignore", "memory/\n")
    write(".notewellignore", "memory/secret.md\nUSER.md\n")
    for path in ("memory/secret.md", "memory/open.md", "USER.md"):
        write(path, "x")
    assert paths(root) == ["memory/open.md"]


def test_our_own_ignore_file_can_close_memory_whole(root: Path, write: Write) -> None:
    write(".notewellignore", "memory/\n")
    write("memory/a.md", "x")
    assert paths(root) == []


def test_links_inside_the_workspace_are_followed_and_loops_end(root: Path, write: Write) -> None:
    write("memory/real/a.md", "x")
    (root / "memory/loop").symlink_to(root / "memory")
    (root / "memory/link.md").symlink_to(root / "memory/real/a.md")
    assert paths(root) == ["memory/link.md", "memory/real/a.md"]


def test_where_a_folder_really_is_follows_from_the_one_above(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a/b/c/deep.md", "deep")
    write("memory/d/e/other.md", "other")
    (root / "memory" / "d" / "again").symlink_to(root / "memory")
    asked, real = list[str](), os.path.realpath

    def noted(path: str) -> str:
        asked.append(path)
        return real(path)

    monkeypatch.setattr(os.path, "realpath", noted)
    assert len(FileSource(root).scan().documents) == 2
    assert {Path(path).name for path in asked} <= {root.name, "memory", "again"}


def test_links_that_leave_the_workspace_are_not_followed(
    root: Path, write: Write, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("x")
    write("memory/a.md", "x")
    (root / "memory/out").symlink_to(outside)
    (root / "memory/out.md").symlink_to(outside / "secret.md")
    (root / "USER.md").symlink_to(outside / "secret.md")
    (root / "docs").symlink_to(outside)
    leaves = "symbolic link that leaves the workspace"
    assert paths(root, "docs", "docs/secret.md", "docs/*.md") == ["memory/a.md"]
    assert reasons(root, "docs") == dict.fromkeys(
        ["USER.md", "docs", "memory/out", "memory/out.md"], leaves
    )


def test_a_memory_folder_that_is_a_link_out_of_the_workspace_is_not_followed(
    root: Path, write: Write, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("x")
    (root / "memory").symlink_to(outside)
    assert paths(root) == []
    assert list(reasons(root)) == ["memory"]


def test_a_folder_outside_that_the_user_names_may_hold_links_within_itself(
    root: Path, write: Write, tmp_path: Path
) -> None:
    wiki = tmp_path / "wiki"
    (wiki / "a").mkdir(parents=True)
    (wiki / "a" / "x.md").write_text("x")
    (wiki / "b.md").symlink_to(wiki / "a" / "x.md")
    (wiki / "passwd.md").symlink_to("/etc/passwd")
    assert [Path(p).name for p in paths(root, str(wiki))] == ["x.md", "b.md"]
    assert list(reasons(root, str(wiki))) == [str(wiki / "passwd.md")]


def test_a_link_to_nothing_is_reported(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    (root / "memory/gone.md").symlink_to(root / "memory/missing.md")
    assert reasons(root) == {"memory/gone.md": "cannot be read: No such file or directory"}


def test_names_are_known_in_one_unicode_form(root: Path, write: Write) -> None:
    write("memory/" + unicodedata.normalize("NFD", "café.md"), "x")
    assert paths(root) == ["memory/" + unicodedata.normalize("NFC", "café.md")]


def test_two_files_with_one_name_in_two_unicode_forms_are_told_apart(
    root: Path, write: Write
) -> None:
    write("memory/" + unicodedata.normalize("NFD", "café.md"), "first")
    write("memory/" + unicodedata.normalize("NFC", "café.md"), "second")
    assert len(paths(root)) == 1
    assert reasons(root) == {
        "memory/café.md": "another file has the same name in another Unicode form"
    }


def test_a_name_that_is_no_text_does_no_harm(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    with open(os.fsencode(root) + b"/memory/\xff.md", "wb") as file:
        file.write(b"x")
    assert paths(root) == ["memory/?.md", "memory/a.md"]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b"x" * 1001, "x" * 1000),
        (b"whole line\n" * 100, "whole line\n" * 90),
        ("é".encode() * 600, "é" * 500),
        ("line\n".encode("utf-16") * 300, None),
    ],
)
def test_of_a_file_over_the_limit_the_first_part_is_read(
    root: Path, write: Write, data: bytes, read: str | None
) -> None:
    write("memory/big.md", data)
    write("memory/fits.md", "x" * 1000)
    source = FileSource(root, max_file_bytes=1000)
    large, fits = source.scan().documents
    text = source.read(large)
    assert text == read if read else text.startswith("line\n")
    assert len(text.encode()) <= 1000
    assert source.read(fits) == "x" * 1000
    assert source.scan().skipped == (
        Skipped("memory/big.md", "larger than 1,000 bytes (max_file_bytes)", "memory", partly=True),
    )


def test_a_large_binary_file_is_not_read_to_its_end(root: Path, write: Write) -> None:
    place = write("memory/big.md", b"")
    os.truncate(place, 40_000_000)
    source = FileSource(root)
    tracemalloc.start()
    with pytest.raises(ValueError, match="a binary file"):
        source.read(source.scan().documents[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("most", [200_000_000, 10**12, 10**18])
def test_a_note_takes_memory_by_its_size_and_not_by_the_limit(
    root: Path, write: Write, most: int
) -> None:
    text = "# Mid\n\n" + "the crane walks.\n\n" * 6000
    write("memory/mid.md", text)
    source = FileSource(root, max_file_bytes=most)
    (document,) = source.scan().documents
    tracemalloc.start()
    read = source.read(document)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == text
    assert peak < 20 * len(text)


def test_a_pipe_is_no_note(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    os.mkfifo(root / "memory/pipe.md")
    assert paths(root) == ["memory/a.md"]
    assert reasons(root) == {"memory/pipe.md": "not a regular file"}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("naïve".encode(), "naïve"),
        (b"\xef\xbb\xbfmarked", "marked"),
        ("wide ü".encode("utf-16"), "wide ü"),
        (b"", ""),
        (b"a log that was cut: caf\xc3", "a log that was cut: caf\ufffd"),
        (b"one\0NUL", "one\0NUL"),
        (b"caf\xe9", "caf\ufffd"),
        (b"\x1b[31mred\x1b[0m \x1b[32mgreen\x1b[0m", "\x1b[31mred\x1b[0m \x1b[32mgreen\x1b[0m"),
        ("half a unit".encode("utf-16-le").join((b"\xff\xfe", b"\0")), "half a unit"),
        (b"\xff\xfea\0\x00\xd8b\0", "a\ufffdb"),
    ],
)
def test_text_is_utf8_or_marked_utf16_and_what_is_broken_is_replaced(
    data: bytes, text: str
) -> None:
    assert decode(data) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PNG\0\0", "a binary file"),
        ("wider".encode("utf-32"), "a binary file"),
        (b"\0", "a binary file"),
        (bytes(range(256)) * 8, "a binary file"),
        (zlib.compress(bytes(n * n % 251 for n in range(20_000))), "a binary file"),
        ("plain text, but no mark".encode("utf-16-le"), "a binary file"),
        ("Встреча в среду".encode("cp1251"), "not UTF-8 text"),
        ("会議は水曜日です".encode("shift-jis"), "not UTF-8 text"),
        (b"\xff\xfe" + b"\x00\xd8" * 9 + b"a\0", "not valid UTF-16 text"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(data)


def deny(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A folder that cannot be listed; the tests may run as root, whom no permission stops."""
    real = os.scandir

    @contextmanager
    def scandir(path: str) -> Iterator[Any]:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", path)
        with real(path) as found:
            yield found

    monkeypatch.setattr(os, "scandir", scandir)


def test_an_unreadable_folder_is_reported_and_makes_the_scan_incomplete(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "x")
    write("memory/closed/b.md", "x")
    deny(monkeypatch, root / "memory/closed")
    scanned = FileSource(root).scan()
    assert [d.path for d in scanned.documents] == ["memory/a.md"]
    assert [(s.path, s.reason) for s in scanned.skipped] == [
        ("memory/closed", "folder cannot be read: Permission denied")
    ]
    assert not scanned.complete


def test_a_scan_past_its_deadline_stops_and_says_so(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    assert not FileSource(root).scan(deadline=0.0).complete


NAMES = [
    "a.md",
    "b.txt",
    ".hidden.md",
    "memory.md",
    "node_modules",
    "kept",
    "secret",
    "memory",
    "docs",
    "c.markdown",
]


@given(
    st.lists(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(
        ["", "secret/\n", "/memory/\n", "*.txt\n", "memory/kept/*\n!memory/kept/a.md\n"]
    ),
    st.sampled_from(["", "secret\n", "a.md\n", "/memory\n"]),
)
@settings(max_examples=60, deadline=None)
def test_a_place_is_refused_exactly_when_a_scan_passes_over_it(
    paths: list[str], git: str, own: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / ".gitignore").write_text(git)
        (root / ".notewellignore").write_text(own)
        (root / "docs").mkdir()
        source = FileSource(root, extra_paths=["docs", "kept/**/*.txt"])
        for path in paths:
            place = root / path
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                if not place.exists():
                    place.write_text("x")
            except (FileExistsError, NotADirectoryError):
                continue
            if place.is_file():
                found = {d.path for d in source.scan().documents}
                assert (path in found) == (not source.refuses(str(place))), path


def test_a_deadline_is_looked_at_inside_a_large_folder(root: Path, write: Write) -> None:
    for n in range(2000):
        write(f"memory/{n:04}.md", "x")
    looks = iter([*[0.0] * 3, *[100.0] * 10_000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("notewell.sources.tree_walk.time.monotonic", lambda: next(looks))
        found = FileSource(root).scan(deadline=1.0)
    assert not found.complete
    assert 0 < len(found.documents) < 1000


@pytest.mark.parametrize(
    "line", ["build\\", "\\", "!", "foo\\", "[z-a]", "foo\\\r", "[", "*a" * 40]
)
@pytest.mark.parametrize(
    "place", [".gitignore", ".notewellignore", "memory/.gitignore", "memory/.notewellignore"]
)
def test_an_odd_line_of_an_ignore_file_is_skipped_and_named_once(
    root: Path, write: Write, line: str, place: str
) -> None:
    write("memory/a.md", "x")
    write("memory/out.md", "x")
    write(place, f"# rules\n{line}\nout.md\n{line}\n")
    source = FileSource(root)
    assert [d.path for d in source.scan().documents] == ["memory/a.md"]
    (notice,) = source.notices
    assert f"{place} line 2: " in notice.message
    assert "1 more" in notice.message
    assert notice.hint
    (root / place).write_text("out.md\r\n")
    assert [d.path for d in source.scan().documents] == ["memory/a.md"]
    assert source.notices == ()


@pytest.mark.parametrize("pattern", ["[z-a].md", "*\\", "[", "a/*[", "*a" * 40, "x" * 1001 + "*"])
def test_an_odd_extra_path_is_skipped_and_named(root: Path, write: Write, pattern: str) -> None:
    write("memory/a.md", "x")
    write("docs/b.md", "x")
    source = FileSource(root, extra_paths=[pattern, "docs/*.md"])
    assert [d.path for d in source.scan().documents] == ["docs/b.md", "memory/a.md"]
    if pattern != "a/*[":  # there is no folder a
        assert "extra path" in source.notices[0].message
    assert source.refuses(str(root / "elsewhere.md"))


@pytest.mark.parametrize("place", [".gitignore", ".notewellignore", "memory/.gitignore"])
@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/stdin", "a pipe", "a link out", "a folder"])
def test_an_ignore_file_that_is_no_file_of_the_workspace_is_named_and_not_read(
    root: Path, write: Write, tmp_path: Path, place: str, kind: str
) -> None:
    write("memory/a.md", "x")
    (tmp_path / "outside").write_text("a.md\n")
    if kind == "a pipe":
        os.mkfifo(root / place)
    elif kind == "a folder":
        (root / place).mkdir()
    else:
        (root / place).symlink_to(tmp_path / "outside" if kind == "a link out" else kind)
    source = FileSource(root)
    assert [d.path for d in source.scan().documents] == ["memory/a.md"]
    assert source.notices[0].message.startswith(f"{place}: it is not read, because ")


def test_an_ignore_file_without_end_is_read_up_to_its_limit(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    write("memory/b.md", "x")
    write(".gitignore", "a.md\n" + "#" * 1_000_000 + "\nb.md\n")
    source = FileSource(root)
    assert [d.path for d in source.scan().documents] == ["memory/b.md"]
    assert "larger than 1,000,000 bytes" in source.notices[0].message


def test_ignore_rules_have_a_cost_limit(root: Path, write: Write) -> None:
    for number in range(30):
        write(f"memory/{number:02}{'a' * 200}.md", "x")
    write(
        ".gitignore",
        "00*\n" + "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n" * 2000,
    )
    write(
        "memory/.gitignore",
        "".join(f"*a*a*a*a*a*a*a*a*a*a*a*a{n}*a*a*a*a*a*b*\n" for n in range(2000)),
    )
    source = FileSource(root)
    with no_hang():
        assert len(source.scan().documents) == 29
    assert "too many rules" in source.notices[0].message


def test_a_star_bomb_in_extra_paths_takes_no_time(root: Path, write: Write) -> None:
    write("a" * 200 + ".md", "x")
    with no_hang():
        assert paths(
            root, "a*" * 16 + "b.md", "*a" * 32 + ".md", "**/a*/**/a*/**/a*/**/*b*.md"
        ) == ["a" * 200 + ".md"]


def test_folders_without_end_are_left_at_a_depth(root: Path, write: Write) -> None:
    write("memory/a.md", "x")
    write("memory/" + "d/" * 205 + "deep.md", "x")
    assert paths(root) == ["memory/a.md"]
    assert list(reasons(root).values()) == ["more than 200 folders deep"]


def test_an_extra_folder_that_is_ignored_stays_out(root: Path, write: Write) -> None:
    write(".gitignore", "build/\n")
    write("build/docs/a.md", "x")
    assert paths(root, "build", "build/docs", "build/docs/*.md") == []
    assert FileSource(root, extra_paths=["build/docs"]).refuses(str(root / "build/docs/a.md"))
    assert paths(root, "build/docs/a.md") == ["build/docs/a.md"], "a file that is named is meant"


def known_from(source: FileSource) -> dict[str, Stored]:
    found = source.scan().documents
    return {
        d.path: Stored(d.path, d.source, d.size, d.mtime_ns, time.time_ns(), "digest")
        for d in found
    }


def test_a_scan_that_compares_lists_only_what_is_not_as_it_was_known(
    root: Path, write: Write
) -> None:
    for name in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "memory/grüße.md"):
        write(name, "a fact")
    source = FileSource(root)
    known = known_from(source)
    assert source.scan_changes(known) == replace(source.scan(), documents=(), same=known.keys())
    write("memory/a.md", "another fact")
    write("memory/new.md", "a new one")
    (root / "memory/deep/b.md").unlink()
    found = source.scan_changes(known)
    assert [d.path for d in found.documents] == ["memory/a.md", "memory/new.md"]
    assert found.same == {"MEMORY.md", "memory/grüße.md"}
    assert {d.path for d in found.documents} | found.same == set(paths(root))


def test_a_known_note_is_still_refused_by_a_new_rule_or_a_link(
    root: Path, write: Write, tmp_path: Path
) -> None:
    for name in ("memory/a.md", "memory/b.md", "memory/c.md"):
        write(name, "a fact")
    source = FileSource(root)
    known = known_from(source)
    write("memory/.notewellignore", "b.md\n")
    outside = tmp_path / "outside.md"
    os.replace(root / "memory/c.md", outside)
    (root / "memory/c.md").symlink_to(outside)
    found = source.scan_changes(known)
    assert (found.documents, found.same) == ((), {"memory/a.md"})
    assert [s.path for s in found.skipped] == ["memory/c.md"]


def test_a_known_note_over_the_limit_is_reported_each_time(root: Path, write: Write) -> None:
    write("memory/a.md", "x" * 100)
    source = FileSource(root, max_file_bytes=10)
    found = source.scan_changes(known_from(source))
    assert found.same == {"memory/a.md"}
    assert [(s.path, s.partly) for s in found.skipped] == [("memory/a.md", True)]
