"""Files, archives and folders: hostile ones are refused with a reason, and what is in them never
leads out.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.errors import NoteError
from notewell.sources.imports import archive
from notewell.sources.imports.archive import Archive, values_of
from notewell.sources.imports.bundle import Bundle
from tests.sources.imports.made import EXPORTS, items, zipped

CHATGPT = (EXPORTS / "chatgpt.json").read_text(encoding="utf-8")


def values(text: str | bytes, *, piece: int = 1 << 30) -> list[Any]:
    file = io.BytesIO(text.encode() if isinstance(text, str) else text)
    return list(values_of(lambda size: file.read(min(size, piece))))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(
    listed=st.lists(JSON, max_size=6), piece=st.integers(1, 40), indent=st.sampled_from([None, 2])
)
@settings(max_examples=60, deadline=None)
def test_a_list_is_read_value_by_value_however_its_bytes_come(
    listed: list[Any], piece: int, indent: int | None
) -> None:
    assert values(json.dumps(listed, indent=indent, ensure_ascii=False), piece=piece) == listed
    lines = "\n".join(json.dumps(one) for one in listed)
    if not lines.startswith("["):
        assert values(lines + "\n", piece=piece) == listed


def test_one_object_and_a_byte_order_mark_are_read() -> None:
    assert values(b'\xef\xbb\xbf{"a": 1}') == [{"a": 1}]
    assert values("") == values(" \n") == values("[]") == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1, 2", "ends in the middle, after value 2"),
        ("[1 2]", "after value 1"),
        ("[{]", "at value 1"),
        ('{"a": ', "at value 1"),
        ("[" * 200_000, "nested too deep"),
        ('[{"a":' * 100_000, "nested too deep"),
        ("nonsense", "at value 1"),
        ("[" + "9" * 5000 + "]", "at value 1"),
    ],
)
def test_json_that_is_broken_or_hostile_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        values(text)


def test_json_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_VALUE", 1000)
    with pytest.raises(ValueError, match="larger than 1,000 characters"):
        values('["' + "a" * 3_000_000, piece=500)
    monkeypatch.setattr(archive, "MOST_VALUES", 10)
    with pytest.raises(ValueError, match="over 10 values"):
        values(json.dumps(list(range(20))))
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        values(" " * 300, piece=50)


def named(name: str) -> bytes:
    return zipped({"conversations.json": CHATGPT, name: "x"})


def linked() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        info = zipfile.ZipInfo("conversations.json")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        made.writestr(info, "/etc/passwd")
    return out.getvalue()


def locked() -> bytes:
    data = bytearray(zipped({"conversations.json": CHATGPT}))
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(sign) + offset
        data[at : at + 2] = struct.pack("<H", struct.unpack_from("<H", data, at)[0] | 1)
    return bytes(data)


def many() -> bytes:
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 65535, 65535, 3_000_000_000, 0, 0)
    return b"PK\x03\x04" + bytes(100) + end


def broken() -> bytes:
    data = bytearray(zipped({"conversations.json": CHATGPT * 1}, method=zipfile.ZIP_STORED))
    data[len(data) // 2] ^= 1
    return bytes(data)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "traversal": (lambda: named("../../evil.md"), "leads out of it"),
    "a path inside": (lambda: named("a/../../evil.md"), "leads out of it"),
    "absolute": (lambda: named("/etc/evil.md"), "leads out of it"),
    "windows": (lambda: named("..\\evil.md"), "leads out of it"),
    "drive": (lambda: named("C:evil.md"), "leads out of it"),
    "control": (lambda: named("a\x1b[2Jb.md"), "leads out of it"),
    "link": (linked, "symbolic link"),
    "bomb": (lambda: zipped({"conversations.json": b"[" + b" " * 80_000_000}), "would unpack from"),
    "locked": (locked, "locked with a password"),
    "packed oddly": (
        lambda: zipped({"conversations.json": CHATGPT}, method=zipfile.ZIP_LZMA),
        "packed in a way",
    ),
    "too many": (many, "over 100,000 files"),
    "cut off": (
        lambda: zipped({"conversations.json": CHATGPT})[:-40],
        "not a zip archive, or only part",
    ),
    "damaged": (broken, "damaged"),
    "no zip": (lambda: b"nonsense", "not a zip archive"),
    "empty": (lambda: b"", "not a zip archive"),
    "nothing known": (
        lambda: zipped({"user.json": "{}", "a.png": b"x"}),
        "no format that import knows",
    ),
    "half a list": (
        lambda: zipped({"conversations.json": CHATGPT.rstrip()[:-1]}),
        "ends in the middle",
    ),
    "nested": (lambda: zipped({"conversations.json": "[" * 100_000}), "nested too deep"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_with_its_reason(tmp_path: Path, kind: str) -> None:
    make, reason = HOSTILE[kind]
    place = tmp_path / "export.zip"
    place.write_bytes(make())
    with pytest.raises(NoteError, match=reason) as error:
        items(place)
    assert error.value.hint


def test_the_parts_of_an_export_are_found_in_its_archive(tmp_path: Path) -> None:
    second = json.dumps([{**json.loads(CHATGPT)[0], "conversation_id": "second"}])
    files: dict[str, str | bytes] = {
        "export/conversations-000.json": CHATGPT,
        "export/conversations-001.json": second,
        "export/user.json": "{}",
        "export/chat.html": "<p>the same again",
        "__MACOSX/export/._conversations-000.json": b"\0\1",
        "a.png": b"\0",
    }
    (tmp_path / "a.zip").write_bytes(zipped(files))
    bundle = Bundle(str(tmp_path / "a.zip"))
    assert [item.id for _, item in bundle.items()] == [
        "67a678d3-a274-8191-94ee-7ca817b25b36",
        "second",
    ]
    assert bundle.skipped == []


def test_documents_in_an_archive_are_known_by_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(
        zipped({"x/One.md": "# One\n\nwords", "x/two.html": "<p>two", "bad.docx": b"x"})
    )
    (tmp_path / "b.zip").write_bytes(zipped({"elsewhere/One.md": "# One\n\nwords"}))
    bundle = Bundle(str(tmp_path / "a.zip"))
    found = [item for _, item in bundle.items()]
    assert [(item.title, item.name) for item in found] == [("One", "One.md"), ("two", "two.html")]
    assert [one.path for one in bundle.skipped] == ["bad.docx"]
    assert items(tmp_path / "b.zip")[0].id == found[0].id


def test_a_folder_is_read_without_links_and_hidden_files(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (tmp_path / "secret.md").write_text("secret")
    for name in ("a.md", "deep/b.md", ".hidden.md", ".git/c.md", "d.txt"):
        (folder / name).write_text(f"# {name}\n\nwords of {name}")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path)
    assert [item.title for item in items(folder)] == ["a.md", "deep/b.md"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoteError, match="no format"):
        items(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.json", b"", "nothing in it"),
        ("a.json", b"[]", "nothing in it"),
        ("a.json", b'{"a": 1}', "no format"),
        ("a.json", b"\x00\x01", "not valid JSON"),
        ("a.xyz", b"words", "no format"),
        ("a.md", bytes(range(256)) * 9, "binary"),
        ("gone.json", None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    tmp_path: Path, name: str, data: bytes | None, reason: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(NoteError, match=reason):
        items(tmp_path / name)


def test_pipes_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(NoteError, match="not a regular file"):
        items(tmp_path / "pipe.json")


@given(data=st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_no_archive(data: bytes) -> None:
    with pytest.raises(ValueError, match="archive"):
        Archive(io.BytesIO(data))
