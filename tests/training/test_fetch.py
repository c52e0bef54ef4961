"""Fetching ingredients: lists, checksums, reading what is inside."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from training import fetch
from training.fetch import FetchError, Package


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOTEWELL_TRAINING", str(tmp_path))
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


def wheel(path: Path) -> Package:
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("a/b.txt", "hello")
        zipped.writestr("a-1.0.dist-info/METADATA", "Name: a\nLicense-Expression: MIT\n\nREADME")
    return Package("pypi", "a", "1.0", path.name, fetch.sha256(path), "MIT", "test")


def test_a_listed_file_that_is_there_is_checked_and_used(folder: Path) -> None:
    package = wheel(folder / "a-1.0-py3-none-any.whl")
    assert fetch.fetch(package) == folder / "a-1.0-py3-none-any.whl"


def test_a_file_that_differs_is_refused_by_name(folder: Path) -> None:
    package = wheel(folder / "a-1.0-py3-none-any.whl")
    (folder / package.file).write_bytes(b"something else")
    with pytest.raises(FetchError, match=r"a: a-1\.0-py3-none-any\.whl has checksum .* listed is"):
        fetch.fetch(package)


def test_a_fetched_file_that_differs_does_not_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(_registry: str, _name: str, _version: str, file: str) -> Path:
        (folder / file).write_bytes(b"changed")
        return folder / file

    monkeypatch.setattr(fetch, "download", download)
    with pytest.raises(FetchError, match="checksum"):
        fetch.fetch(Package("npm", "a", "1.0", "a-1.0.tgz", "0" * 64, "", ""))
    assert not (folder / "a-1.0.tgz").exists()


def test_a_version_that_is_gone_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], _folder: Path, name: str) -> str:
        raise FetchError(f"{name}: {command[0]} failed:\nno such version")

    monkeypatch.setattr(fetch, "_run", run)
    with pytest.raises(FetchError, match="no such version"):
        fetch.fetch(Package("debian", "a", "1.0", "a_1.0_all.deb", "0" * 64, "", ""))
    assert list(folder.iterdir()) == []


def test_a_name_that_is_not_listed_is_an_error(folder: Path) -> None:
    with pytest.raises(FetchError, match="not listed"):
        fetch.fetched("no-such-package-at-all")


def test_members_of_wheels_and_tars(folder: Path) -> None:
    package = wheel(folder / "a-1.0-py3-none-any.whl")
    assert dict(fetch.members(folder / package.file))["a/b.txt"] == b"hello"
    assert fetch.member(folder / package.file, "b.txt") == b"hello"
    assert fetch.licence_of("pypi", folder / package.file) == "MIT"
    with tarfile.open(folder / "c.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("package/README.md")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"hi"))
    assert list(fetch.members(folder / "c.tgz")) == [("package/README.md", b"hi")]
    with pytest.raises(FetchError, match=r"holds no x\.txt"):
        fetch.member(folder / "c.tgz", "x.txt")


@pytest.mark.parametrize("start", ["# list\n", "package = [\n]\n"])
def test_an_entry_that_is_added_reads_back(tmp_path: Path, start: str) -> None:
    listed = tmp_path / "list.toml"
    listed.write_text(start)
    entries = [
        Package("npm", name, "1.0", f"{name}.tgz", "0" * 64, "MIT", 'a "quoted" use')
        for name in ("a", "b")
    ]
    for entry in entries:
        fetch.append(entry, listed)
    assert fetch.read_listed(listed) == entries


def test_every_listed_ingredient_is_pinned() -> None:
    assert fetch.listed()
    for package in fetch.listed().values():
        assert package.registry in fetch.REGISTRIES
        assert len(package.sha256) == 64
        assert package.version or package.registry == "debian-i18n"
        assert package.licence, package.name
