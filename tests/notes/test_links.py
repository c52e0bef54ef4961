"""The file of links made by hand."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.errors import NoteError
from notewell.notes.links import add_link, read_links, remove_links
from notewell.types import Edge, End

ONE = Edge("derives_from", End("memory/a.md", "head", "hash"), End("memory/ü b.md"))


def test_a_link_comes_back_as_it_was_written(root: Path) -> None:
    assert read_links(root) == ([], [])
    add_link(root, ONE)
    assert read_links(root) == ([ONE], [])


def test_a_file_without_a_last_line_break_is_not_torn(root: Path) -> None:
    (root / "links.jsonl").write_text('{"from": "a.md", "kind": "causes", "to": "b.md#L3"}')
    add_link(root, ONE)
    assert read_links(root) == ([Edge("causes", End("a.md"), End("b.md", "L3")), ONE], [])


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"[]",
        b"{}",
        b'{"from": "a", "kind": "x"}',
        b'{"from": "a", "kind": "X Y", "to": "b"}',
        b'{"from": 1, "kind": "x", "to": "b"}',
        b'{"from": "", "kind": "x", "to": "b"}',
        b'{"from": "a", "kind": "x", "to": "https://b"}',
        b"[" * 100_000,
        b"\xff\xfe\x00",
    ],
)
def test_a_line_that_is_no_link_is_said_and_passed_over(root: Path, line: bytes) -> None:
    (root / "links.jsonl").write_bytes(line + b"\n\n")
    add_link(root, ONE)
    edges, (notice,) = read_links(root)
    assert edges == [ONE]
    assert "line 1" in notice.message
    assert notice.hint


def test_taking_one_out_leaves_the_rest_byte_by_byte(root: Path) -> None:
    place = root / "links.jsonl"
    place.write_bytes(
        b'# a comment\r\n{"from":"a","kind":"x","to":"b"}\n\n{"from":"c","kind":"x","to":"b"}'
    )
    place.chmod(0o640)
    gone = remove_links(root, lambda e: e.start.name == "a")
    assert [e.start.name for e in gone] == ["a"]
    assert place.read_bytes() == b'# a comment\r\n\n{"from":"c","kind":"x","to":"b"}'
    assert place.stat().st_mode & 0o777 == 0o640
    assert remove_links(root, lambda e: False) == []
    assert [p.name for p in root.iterdir()] == ["links.jsonl"], "nothing is left lying about"


LINE = b'{"from": "a", "kind": "x", "to": "b"}\n'


def odd_place(root: Path, tmp_path: Path, kind: str) -> Path | None:
    """Something in the place of the file that is no file of the workspace; returns what it leads
    to.
    """
    place, outside = root / "links.jsonl", tmp_path / "outside"
    if kind == "a folder":
        place.mkdir()
    elif kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a socket":
        os.mknod(place, stat.S_IFSOCK | 0o600)
    elif kind == "a link through a folder":
        (root / "deep").symlink_to(tmp_path)
        place.symlink_to("deep/outside")
        outside.write_bytes(LINE)
    elif kind == "a link to nothing":
        place.symlink_to(outside)
    elif kind == "a device":
        place.symlink_to("/dev/zero")
    else:
        place.symlink_to(outside)
        outside.write_bytes(LINE)
    return outside


ODD_PLACES = [
    "a folder",
    "a pipe",
    "a socket",
    "a link out",
    "a link through a folder",
    "a link to nothing",
    "a device",
]


@pytest.mark.parametrize("kind", ODD_PLACES)
def test_what_is_not_a_file_of_the_workspace_is_neither_read_nor_written(
    root: Path, tmp_path: Path, kind: str
) -> None:
    outside = odd_place(root, tmp_path, kind)
    before = outside.read_bytes() if outside and outside.exists() else None
    edges, (notice,) = read_links(root)
    assert edges == []
    assert notice.code == "links_unread"
    assert "regular file" in notice.hint
    for call in (lambda: add_link(root, ONE), lambda: remove_links(root, lambda _: True)):
        with pytest.raises(
            NoteError, match=r"links\.jsonl cannot be written: (it is|a symbolic link)"
        ) as error:
            call()
        assert error.value.hint
    assert (outside.read_bytes() if outside and outside.exists() else None) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        {"workspace", *(["outside"] if before else [])}
    )


def test_a_link_inside_the_workspace_is_followed(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "links.jsonl").symlink_to("shared/links")
    add_link(root, ONE)
    assert read_links(root) == ([ONE], [])
    assert remove_links(root, lambda _: True) == [ONE]
    assert (root / "links.jsonl").is_symlink()
    assert (root / "shared/links").read_bytes() == b""


def test_a_link_in_the_place_of_the_draft_is_not_written_through(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("mine")
    (root / ".links.jsonl.notewell-new").symlink_to(tmp_path / "precious")
    add_link(root, ONE)
    assert remove_links(root, lambda _: True) == [ONE]
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_file_beyond_the_limit_is_said_and_left_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.notes.links._MOST_BYTES", 100)
    (root / "links.jsonl").write_bytes(LINE * 3)
    assert "larger than 100 bytes" in read_links(root)[1][0].message
    for call in (lambda: add_link(root, ONE), lambda: remove_links(root, lambda _: True)):
        with pytest.raises(NoteError, match="larger than 100 bytes"):
            call()
    assert (root / "links.jsonl").read_bytes() == LINE * 3


def test_a_disk_that_is_full_leaves_no_half_of_a_link(root: Path) -> None:
    add_link(root, ONE)
    before = (root / "links.jsonl").read_bytes()
    code = (
        "import resource, signal, sys; from pathlib import Path; "
        "from notewell.errors import NoteError;"
        "from notewell.notes.links import add_link; from notewell.types import Edge, End\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: add_link(Path(sys.argv[1]), Edge('x', End('a' * 200), End('b')))\n"
        "except NoteError as error: print(error.hint)"
    )
    command = [sys.executable, "-c", code, str(root), str(len(before) + 20)]
    assert subprocess.run(command, capture_output=True, check=True).stdout.strip()
    assert (root / "links.jsonl").read_bytes() == before


def test_links_made_at_once_are_all_there(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from notewell.notes.links import add_link;"
        "from notewell.types import Edge, End\n"
        "for n in range(50): add_link(Path(sys.argv[1]), Edge('x', End(sys.argv[2]), End(str(n))))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    makers = [
        subprocess.Popen([sys.executable, "-c", code, str(root), f"p{n}"], env=env)
        for n in range(4)
    ]
    assert [m.wait(60) for m in makers] == [0] * 4
    edges, notices = read_links(root)
    assert notices == []
    assert len({json.dumps([e.start.name, e.end.name]) for e in edges}) == 200
