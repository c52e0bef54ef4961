"""Fetch the ingredients of training by package name, with the registries' own clients.

    python -m training.fetch                           everything that is listed and not there yet
    python -m training.fetch NAME...                   only these
    python -m training.fetch --add REGISTRY NAME...    fetch new ones (NAME or NAME==VERSION) and
                                                       list them with their checksums

What is wanted stands in `ingredients*.toml` beside this file; the files go to WORK/packages.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, cast
from urllib.parse import unquote

HERE = Path(__file__).resolve().parent
LISTED = HERE / "ingredients.toml"
ADDING = Lock()
REGISTRIES = ("pypi", "debian", "debian-i18n", "npm")


class FetchError(Exception):
    """A package that could not be had, or is not what was listed."""


@dataclass(frozen=True)
class Package:
    """One listed ingredient."""

    registry: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    use: str

    def fields(self) -> list[str]:
        """This entry's fields as TOML."""
        return [
            f"{name} = {json.dumps(value, ensure_ascii=False)}"
            for name, value in asdict(self).items()
        ]

    def table(self) -> str:
        """This entry as a table."""
        return "\n".join(["[[package]]", *self.fields()]) + "\n"

    def row(self) -> str:
        """This entry as one line of a list."""
        return "  { " + ", ".join(self.fields()) + " },\n"


def work() -> Path:
    """The folder for everything large."""
    return Path(os.environ.get("NOTEWELL_TRAINING") or HERE / "work")


def packages_folder() -> Path:
    """Where fetched packages lie."""
    return work() / "packages"


def read_listed(path: Path) -> list[Package]:
    """The entries of one list."""
    with path.open("rb") as file:
        return [Package(**table) for table in tomllib.load(file).get("package", [])]


@cache
def listed() -> dict[str, Package]:
    """All entries of all lists, by name."""
    found: dict[str, Package] = {}
    for path in sorted(HERE.glob("ingredients*.toml")):
        for package in read_listed(path):
            found.setdefault(package.name, package)
    return found


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(package: Package, path: Path) -> None:
    """Refuse a file that is not the listed one."""
    got = sha256(path)
    if got != package.sha256:
        raise FetchError(
            f"{package.name}: {path.name} has checksum {got}, listed is {package.sha256}"
        )


def _run(command: Sequence[str], folder: Path, name: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FetchError(f"{name}: {' '.join(command[:3])} failed:\n{done.stderr.strip()[-600:]}")
    return done.stdout


def _pypi(specs: Sequence[str], folder: Path, *, source: bool = False) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    if source:
        command += ["--no-binary", ":all:"]
    _run([*command, "--dest", str(folder), *specs], folder, " ".join(specs))


def _debian(specs: Sequence[str], folder: Path) -> None:
    sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    _run(["apt-get", *sandbox, "download", "-q", *specs], folder, " ".join(specs))


def _debian_i18n(name: str, folder: Path) -> None:
    """The archive's index of package descriptions in one language, `Translation-xx`."""
    language = name.removeprefix("Translation-")
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    options = [
        f"Dir::State::Lists={lists}",
        f"Acquire::Languages={language}",
        "Acquire::GzipIndexes=false",
    ]
    flags = [part for option in [*options, "APT::Sandbox::User=root"] for part in ("-o", option)]
    _run(["apt-get", *flags, "update", "-q"], folder, name)
    indexes = [path for path in lists.iterdir() if unquote(path.name).endswith(f"i18n_{name}")]
    if not indexes:
        raise FetchError(f"{name}: the archive has no such index")
    main = max(indexes, key=lambda path: path.stat().st_size)
    shutil.move(main, folder / name)
    shutil.rmtree(lists)


def _npm(specs: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    command = ["npm", "pack", "--json", "--ignore-scripts", *specs]
    done = _run(command, folder, " ".join(specs))
    return cast("list[dict[str, Any]]", json.loads(done))


def _is_source(file: str) -> bool:
    return file.endswith((".tar.gz", ".zip"))


def _fetch_into(
    folder: Path, registry: str, wanted: Sequence[tuple[str, str]], *, source: bool = False
) -> None:
    """Several packages with one call of the registry's client, where it takes several."""
    if registry == "pypi":
        _pypi(
            [f"{name}=={version}" if version else name for name, version in wanted],
            folder,
            source=source,
        )
    elif registry == "debian":
        _debian([f"{name}={version}" if version else name for name, version in wanted], folder)
    elif registry == "debian-i18n":
        for name, _ in wanted:
            _debian_i18n(name, folder)
    elif registry == "npm":
        _npm([f"{name}@{version}" if version else name for name, version in wanted], folder)
    else:
        raise FetchError(
            f"{wanted[0][0]}: no such registry: {registry} (one of {', '.join(REGISTRIES)})"
        )


def download(registry: str, name: str, version: str, file: str) -> Path:
    """Fetch one artefact into WORK/packages; the file name is the registry's."""
    packages_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=packages_folder(), prefix=".part-") as held:
        folder = Path(held)
        _fetch_into(folder, registry, [(name, version)], source=_is_source(file))
        files = [path for path in folder.iterdir() if path.is_file()]
        if len(files) != 1:
            raise FetchError(f"{name}: expected one file, got {[path.name for path in files]}")
        target = packages_folder() / (file or files[0].name)
        if file and files[0].name != file:
            raise FetchError(f"{name}: got {files[0].name}, listed is {file}")
        os.replace(files[0], target)
    return target


def fetch(package: Package) -> Path:
    """The listed file, checked; fetched if it is not there."""
    path = packages_folder() / package.file
    if path.exists():
        check(package, path)
        return path
    path = download(package.registry, package.name, package.version, package.file)
    try:
        check(package, path)
    except FetchError:
        path.unlink()
        raise
    return path


def fetched(name: str) -> Path:
    """The file of a listed package, by name."""
    try:
        return fetch(listed()[name])
    except KeyError:
        raise FetchError(f"{name}: not listed in {LISTED.name}") from None


def _npm_manifest(path: Path) -> dict[str, Any]:
    for name, content in members(path):
        if name.count("/") == 1 and name.endswith("/package.json"):
            return cast("dict[str, Any]", json.loads(content))
    raise FetchError(f"{path.name}: holds no package.json")


def version_of(registry: str, path: Path) -> str:
    """The version, from an artefact's name or from inside it."""
    if registry == "debian":
        asked = ["dpkg-deb", "--field", str(path), "Version"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    if registry == "npm":
        return str(_npm_manifest(path)["version"])
    if registry == "pypi":
        stem = path.name.removesuffix(".tar.gz").removesuffix(".zip")
        return path.name.split("-")[1] if path.suffix == ".whl" else stem.rsplit("-", 1)[1]
    return ""


def licence_of(registry: str, path: Path) -> str:
    """The licence that a package names for itself, if it does so in a word or two."""
    if registry == "npm":
        named = _npm_manifest(path).get("license") or ""
        return str(named.get("type", "") if isinstance(named, dict) else named)[:60]
    if registry == "pypi" and path.suffix == ".whl":
        lines = member(path, "METADATA").decode("utf-8", "replace").split("\n\n")[0].splitlines()
        for field in (
            "License-Expression: ",
            "Classifier: License :: OSI Approved :: ",
            "License: ",
        ):
            for line in lines:
                if line.startswith(field):
                    return line.removeprefix(field)[:60]
    return "free, in its copyright file" if registry == "debian" else ""


def append(package: Package, into: Path) -> None:
    """Add an entry to a list: a table, or a row where the list is one of rows."""
    held = into.read_text(encoding="utf-8") if into.exists() else "package = [\n]\n"
    if held.rstrip().endswith("\n]"):
        held = held.rstrip().removesuffix("]") + package.row() + "]\n"
    else:
        held += "\n" + package.table()
    into.write_text(held, encoding="utf-8")


def add(registry: str, name: str, version: str = "", use: str = "", into: Path = LISTED) -> Package:
    """Fetch a new package and list it."""
    known = listed().get(name)
    if known:
        fetch(known)
        return known
    path = download(registry, name, version, "")
    found = version or version_of(registry, path)
    package = Package(
        registry, name, found, path.name, sha256(path), licence_of(registry, path), use
    )
    with ADDING:
        append(package, into)
    return package


def add_npm(names: Sequence[str], use: str, into: Path, most_bytes: int = 4_000_000) -> list[str]:
    """Fetch and list many npm packages with one call of the client; large ones are left out."""
    with tempfile.TemporaryDirectory(dir=packages_folder(), prefix=".part-") as held:
        try:
            told = _npm(names, Path(held))
        except FetchError as error:
            if len(names) == 1:
                return [str(error)]
            half = len(names) // 2
            return [
                *add_npm(names[:half], use, into, most_bytes),
                *add_npm(names[half:], use, into, most_bytes),
            ]
        for item in told:
            path = Path(held) / item["filename"]
            if path.stat().st_size > most_bytes:
                continue
            version, licence = str(item["version"]), licence_of("npm", path)
            package = Package("npm", item["name"], version, path.name, sha256(path), licence, use)
            os.replace(path, packages_folder() / path.name)
            with ADDING:
                append(package, into)
            print(f"{package.name} {package.version} {package.file}")
    return []


def add_all(
    registry: str, specs: Sequence[str], use: str, into: Path, at_once: int = 6
) -> list[str]:
    """Fetch and list many; the messages of those that failed."""
    new = [spec for spec in specs if spec.partition("==")[0] not in listed()]

    def one(spec: str) -> list[str]:
        name, _, version = spec.partition("==")
        try:
            package = add(registry, name, version, use, into)
            print(f"{package.name} {package.version} {package.file}")
        except FetchError as error:
            return [str(error)]
        return []

    def batch(names: Sequence[str]) -> list[str]:
        return add_npm(names, use, into)

    with ThreadPoolExecutor(at_once if registry != "npm" else 2) as pool:
        if registry == "npm" and not any("==" in spec for spec in new):
            results = pool.map(batch, [new[at : at + 40] for at in range(0, len(new), 40)])
        else:
            results = pool.map(one, new)
        failed = [message for messages in results for message in messages]
    listed.cache_clear()
    return failed


def _debian_members(path: Path) -> Iterator[tuple[str, bytes]]:
    unpack = ["dpkg-deb", "--fsys-tarfile", str(path)]
    with (
        subprocess.Popen(unpack, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        yield from _tar_members(archive)


def _tar_members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isfile():
            opened = archive.extractfile(member)
            if opened:
                yield member.name.removeprefix("./"), opened.read()


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every plain file in a wheel, zip, tar or Debian package."""
    if path.suffix == ".deb":
        yield from _debian_members(path)
    elif path.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(path) as zipped:
            for info in zipped.infolist():
                if not info.is_dir():
                    yield info.filename, zipped.read(info)
    elif path.name.endswith((".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar")):
        with tarfile.open(path) as archive:
            yield from _tar_members(archive)
    else:
        raise FetchError(f"{path.name}: not an archive that can be read")


def member(path: Path, name: str) -> bytes:
    """One file of an archive, by its name or the end of its name."""
    for found, content in members(path):
        if found == name or found.endswith("/" + name):
            return content
    raise FetchError(f"{path.name}: holds no {name}")


def member_stream(path: Path, name: str) -> io.BytesIO:
    """One file of an archive as a stream."""
    return io.BytesIO(member(path, name))


def fetch_together(packages: Sequence[Package]) -> list[str]:
    """Fetch packages of one registry with one call; one at a time where that fails. The messages of
    failures.
    """
    try:
        with tempfile.TemporaryDirectory(dir=packages_folder(), prefix=".part-") as held:
            folder = Path(held)
            wanted = [(package.name, package.version) for package in packages]
            _fetch_into(folder, packages[0].registry, wanted, source=_is_source(packages[0].file))
            for package in packages:
                if (folder / package.file).exists():
                    os.replace(folder / package.file, packages_folder() / package.file)
    except FetchError:
        pass
    failed = []
    for package in packages:
        try:
            fetch(package)
        except FetchError as error:
            failed.append(str(error))
    return failed


def fetch_all(packages: Sequence[Package], *, together: int = 30, at_once: int = 4) -> list[str]:
    """Fetch many; the messages of those that failed."""
    packages_folder().mkdir(parents=True, exist_ok=True)
    of_kind: dict[tuple[str, bool], list[Package]] = {}
    for package in packages:
        if not (packages_folder() / package.file).exists():
            of_kind.setdefault((package.registry, _is_source(package.file)), []).append(package)
    batches = [
        some[at : at + together]
        for some in of_kind.values()
        for at in range(0, len(some), together)
    ]
    with ThreadPoolExecutor(at_once) as pool:
        return [message for messages in pool.map(fetch_together, batches) for message in messages]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.fetch")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--add", metavar="REGISTRY", choices=REGISTRIES)
    parser.add_argument("--use", default="", help="what a new package is for")
    parser.add_argument("--into", type=Path, default=LISTED, help="list that a new package goes to")
    asked = parser.parse_args(arguments)
    if asked.add:
        failed = add_all(asked.add, asked.names, asked.use, asked.into)
    else:
        unknown = [name for name in asked.names if name not in listed()]
        failed = [f"{name}: not listed" for name in unknown]
        wanted = [listed()[name] for name in asked.names if name in listed()] or (
            [] if asked.names else list(listed().values())
        )
        failed += fetch_all(wanted)
        print(
            f"{len(wanted) - len(failed) + len(unknown)} of {len(wanted)} there, in "
            f"{packages_folder()}"
        )
    for message in failed:
        print(message, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
