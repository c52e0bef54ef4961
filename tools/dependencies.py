"""Writes the tables of `docs/install.md`: what each dependency is for, where it has wheels, what it
costs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/install.md"
INDEX = "https://pypi.org/pypi"
PYTHONS = (11, 12, 13, 14)
OLDEST_MAC = (13, 0)

WHY = {
    "apsw": "SQLite of a known, recent version; Python's own may be old",
    "click": "the command line",
    "filelock": "one writer at a time, on every system",
    "markdown-it-py": "notes as safe HTML, in the page only",
    "notewell-model": "the weights of the [default model](model.md), ours",
    "numpy": "vectors and postings",
    "onnxruntime": "runs the model on the CPU",
    "platformdirs": "where each system keeps settings and data",
    "PyStemmer": "word stems",
    "sentencepiece": "cuts text into the pieces that the model reads",
    "simsimd": "compares a question with all vectors, one byte per dimension",
    "starlette": "the routes of `notewell serve`",
    "tomlkit": "changes TOML settings, of agents and yours, and keeps comments and order",
    "uvicorn": "the server under `notewell serve`",
}
OURS = {"notewell-model": "MIT"}
# in a checkout
HOMES = {"notewell": ROOT / "src/notewell", "notewell-model": ROOT / "model/src/notewell_model"}


@dataclass(frozen=True, slots=True)
class System:
    """A kind of machine, and the platform tags that its wheels end with."""

    title: str
    prefix: str
    machines: tuple[str, ...]

    def takes(self, tag: Tag, python: int) -> bool:
        """Whether a wheel with this tag installs there, for CPython 3.`python`."""
        return _interpreter_fits(tag, python) and (
            tag.platform == "any" or self._platform_fits(tag.platform)
        )

    def _platform_fits(self, platform: str) -> bool:
        if not platform.startswith(self.prefix) or not platform.endswith(self.machines):
            return False
        numbers = re.match(r"macosx_(\d+)_(\d+)_", platform)
        return numbers is None or (int(numbers[1]), int(numbers[2])) <= OLDEST_MAC


SYSTEMS = (
    System("Linux, glibc, x86-64", "manylinux", ("x86_64",)),
    System("Linux, glibc, arm64", "manylinux", ("aarch64",)),
    System("Linux, musl, x86-64", "musllinux", ("x86_64",)),
    System("Linux, musl, arm64", "musllinux", ("aarch64",)),
    System("macOS 13, Apple chip", "macosx", ("arm64", "universal2")),
    System("macOS 13, Intel", "macosx", ("x86_64", "universal2", "intel")),
    System("Windows, x64", "win", ("amd64",)),
    System("Windows, arm64", "win", ("arm64",)),
)


def _interpreter_fits(tag: Tag, python: int) -> bool:
    if tag.abi == "none":
        return tag.interpreter in ("py3", "py2.py3", f"py3{python}", f"cp3{python}")
    found = re.fullmatch(r"cp3(\d+)", tag.interpreter)
    if found is None:
        return False
    return (
        int(found[1]) <= python
        if tag.abi == "abi3"
        else tag.abi == f"cp3{python}" == tag.interpreter
    )


def asked(name: str) -> Any:
    """What the package index says about a project."""
    with urllib.request.urlopen(f"{INDEX}/{name}/json", timeout=60) as answer:  # noqa: S310 - a constant address
        return json.load(answer)


def wheels(project: Mapping[str, Any], wanted: Requirement) -> dict[Version, list[frozenset[Tag]]]:
    """The tags of the wheels of each released version that we accept, newest first."""
    found: dict[Version, list[frozenset[Tag]]] = {}
    for files in project["releases"].values():
        for file in files:
            try:
                _, version, _, tags = parse_wheel_filename(file["filename"])
            except InvalidWheelFilename:
                continue
            if not file["yanked"] and not version.is_prerelease and version in wanted.specifier:
                found.setdefault(version, []).append(tags)
    return dict(sorted(found.items(), reverse=True))


def cell(system: System, found: Mapping[Version, list[frozenset[Tag]]]) -> str:
    """`yes`, or the older version that fits, or the Pythons that have one, or `no`."""
    versions: dict[int, Version] = {}
    for python in PYTHONS:
        fits = (
            v
            for v, files in found.items()
            if any(system.takes(t, python) for tags in files for t in tags)
        )
        if (newest := next(fits, None)) is not None:
            versions[python] = newest
    if not versions:
        return "no"
    pythons = "" if len(versions) == len(PYTHONS) else f" (Python to 3.{max(versions)})"
    newest, latest = min(versions.values()), next(iter(found))
    return f"{'yes' if newest == latest else newest}{pythons}"


def licence(info: Mapping[str, Any]) -> str:
    """The licence that a project states: an expression, else a classifier, else the first line of
    the text.
    """
    stated = [c.rpartition(" :: ")[2] for c in info["classifiers"] if c.startswith("License ::")]
    text = (info.get("license") or "").strip().splitlines()
    return info.get("license_expression") or (stated[0] if stated else text[0] if text else "?")


def requirements() -> dict[str, Requirement]:
    """Our own dependencies by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {one.name: one for one in map(Requirement, project["dependencies"])}


def reasons() -> Iterator[str]:
    """The table that says why each dependency is there."""
    yield "| package | why |"
    yield "| --- | --- |"
    yield from (f"| {name} | {WHY[name]} |" for name in requirements())


def systems() -> Iterator[str]:
    """The table of licences and wheels, as the index has them now."""
    yield "| package | licence | " + " | ".join(s.title for s in SYSTEMS) + " |"
    yield "| --- | --- |" + " --- |" * len(SYSTEMS)
    for name, wanted in requirements().items():
        if name in OURS:
            yield f"| {name} | {OURS[name]} |" + " yes |" * len(SYSTEMS)
            continue
        project = asked(name)
        found = wheels(project, wanted)
        cells = " | ".join(cell(system, found) for system in SYSTEMS)
        yield f"| {name} | {licence(project['info'])} | {cells} |"


def closure(names: Iterable[str]) -> set[str]:
    """The installed packages that some requirements bring, themselves included."""
    known: set[tuple[str, str]] = set()
    todo = [Requirement(name) for name in names]
    while todo:
        one = todo.pop()
        for extra in ("", *one.extras):
            key = (canonicalize_name(one.name), extra)
            if key in known:
                continue
            try:
                needs = distribution(one.name).requires or []
            except PackageNotFoundError:
                sys.exit(
                    f"{one.name} is not installed here: run this in the environment that make "
                    "test uses"
                )
            known.add(key)
            own = map(Requirement, needs)
            todo += [r for r in own if r.marker is None or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in known}


def megabytes(names: Iterable[str]) -> float:
    """The size of what is installed of some packages, without compiled Python."""
    total = 0
    for name in names:
        files = [Path(str(file.locate())) for file in distribution(name).files or []]
        files += HOMES[name].rglob("*") if name in HOMES else []
        total += sum(p.stat().st_size for p in files if p.suffix != ".pyc" and p.is_file())
    return total / 1e6


def costs(extras: Sequence[str]) -> Iterator[str]:
    """The table of what the base and each extra add, measured in this environment."""
    base = closure(["notewell"])
    yield "| install | packages | MB |"
    yield "| --- | --- | --- |"
    yield f"| `notewell` | {len(base)} | {megabytes(base):.0f} |"
    for extra in extras:
        more = closure([f"notewell[{extra}]"]) - base
        yield f"| `notewell[{extra}]` | {len(more)} more | {megabytes(more):.0f} more |"


def replaced(page: str, name: str, lines: Iterable[str]) -> str:
    """A page with the lines between the two marks of a table replaced."""
    head, begin, rest = page.partition(f"<!-- {name}: made by tools/dependencies.py -->\n")
    _, end, tail = rest.partition("<!-- end -->\n")
    if not begin or not end:
        sys.exit(f"the page has no place for the table {name}")
    return head + begin + "\n".join(lines) + "\n" + end + tail


def main() -> None:
    """Writes the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--costs", nargs="*", metavar="EXTRA", help="measure this installation with some extras"
    )
    given = parser.parse_args()
    page = replaced(PAGE.read_text(encoding="utf-8"), "reasons", reasons())
    name, lines = ("systems", systems()) if given.costs is None else ("costs", costs(given.costs))
    page = replaced(page, name, lines)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
