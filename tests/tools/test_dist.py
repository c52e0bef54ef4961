"""What is published: the same bytes twice, and a wheel for systems where onnxruntime is not to be
had.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest

from notewell import __version__
from tools.dist import ROOT, build, epoch, for_musl

METADATA = "notewell-0.1.0.dist-info/METADATA"
RUNTIME = (
    "Requires-Dist: onnxruntime>=1.17; sys_platform != 'x'\nRequires-Dist: sentencepiece>=0.2.2\n"
)


def wheel(folder: Path, requires: str = RUNTIME) -> Path:
    path = folder / "notewell-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("notewell/__init__.py", "onnxruntime = 'Requires-Dist: onnxruntime'\n")
        made.writestr(
            METADATA,
            f"Name: notewell\nRequires-Dist: apsw\n{requires}Requires-Dist: click\n\nText.\n",
        )
        made.writestr("notewell-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        made.writestr("notewell-0.1.0.dist-info/RECORD", "")
    return path


def test_the_wheel_for_musl_asks_for_no_runtime_and_is_otherwise_the_same(tmp_path: Path) -> None:
    made = for_musl(wheel(tmp_path))
    assert made.name == "notewell-0.1.0-py3-none-musllinux_1_1_x86_64.musllinux_1_1_aarch64.whl"
    with zipfile.ZipFile(made) as opened:
        files = {name: opened.read(name).decode() for name in opened.namelist()}
    assert files[METADATA] == "Name: notewell\nRequires-Dist: apsw\nRequires-Dist: click\n\nText.\n"
    assert (
        "Tag: py3-none-musllinux_1_1_x86_64\nTag: py3-none-musllinux_1_1_aarch64\n"
        in (files["notewell-0.1.0.dist-info/WHEEL"])
    )
    assert files["notewell/__init__.py"] == "onnxruntime = 'Requires-Dist: onnxruntime'\n"


def test_its_record_holds_the_hash_of_every_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(for_musl(wheel(tmp_path))) as opened:
        rows = list(
            csv.reader(opened.read("notewell-0.1.0.dist-info/RECORD").decode().splitlines())
        )
        assert [row[0] for row in rows] == opened.namelist()
        for name, digest, size in rows[:-1]:
            data = opened.read(name)
            own = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={own}", str(len(data)))


def test_a_wheel_without_the_requirement_needs_none_for_musl(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="does not name each of"):
        for_musl(wheel(tmp_path, requires=""))


def test_the_time_in_the_packages_is_given_or_that_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert epoch(tmp_path) == "1700000000"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert epoch(tmp_path).isdecimal()


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch())
    ignored = shutil.ignore_patterns(
        ".venv*", ".git", "dist", "build", "site", "__pycache__", ".*_cache", "work"
    )
    sums = []
    for name in ("one", "another/place"):
        root = Path(shutil.copytree(ROOT, tmp_path / name, ignore=ignored))
        files = build(root, tmp_path / f"{name}-dist")
        sums.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert sums[0] == sums[1]
    assert {name.partition(".")[0].partition("-")[0] for name in sums[0]} == {
        "notewell",
        "notewell_model",
    }
    assert f"notewell-{__version__}.tar.gz" in sums[0]
    assert len(sums[0]) == 5
