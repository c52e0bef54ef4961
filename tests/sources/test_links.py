"""The file of links made by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.errors import NoteError
from recollect.sources.links import add_link, read_links, remove_links
from recollect.types import Edge, End

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
    assert "line 1 " in notice.message
    assert notice.hint


def test_taking_one_out_leaves_the_rest_byte_by_byte(root: Path) -> None:
    place = root / "links.jsonl"
    place.write_bytes(b'# a comment\r\n{"from":"a","kind":"x","to":"b"}\n\n{"from":"c","kind":"x","to":"b"}')
    place.chmod(0o640)
    gone = remove_links(root, lambda e: e.start.name == "a")
    assert [e.start.name for e in gone] == ["a"]
    assert place.read_bytes() == b'# a comment\r\n\n{"from":"c","kind":"x","to":"b"}'
    assert place.stat().st_mode & 0o777 == 0o640
    assert remove_links(root, lambda e: False) == []
    assert [p.name for p in root.iterdir()] == ["links.jsonl"], "nothing is left lying about"


def test_a_file_that_cannot_be_read_is_an_error_with_a_hint(root: Path) -> None:
    (root / "links.jsonl").mkdir()
    for call in (lambda: read_links(root), lambda: add_link(root, ONE)):
        with pytest.raises(NoteError) as error:
            call()
        assert error.value.hint


def test_a_disk_that_is_full_leaves_no_half_of_a_link(root: Path) -> None:
    add_link(root, ONE)
    before = (root / "links.jsonl").read_bytes()
    code = (
        "import resource, signal, sys; from pathlib import Path; from recollect.errors import NoteError;"
        "from recollect.sources.links import add_link; from recollect.types import Edge, End\n"
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
        "import sys; from pathlib import Path; from recollect.sources.links import add_link;"
        "from recollect.types import Edge, End\n"
        "for n in range(50): add_link(Path(sys.argv[1]), Edge('x', End(sys.argv[2]), End(str(n))))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    makers = [subprocess.Popen([sys.executable, "-c", code, str(root), f"p{n}"], env=env) for n in range(4)]
    assert [m.wait(30) for m in makers] == [0] * 4
    edges, notices = read_links(root)
    assert notices == []
    assert len({json.dumps([e.start.name, e.end.name]) for e in edges}) == 200
