"""The shape of the source: how large a file, a class or a function may get, and what the rooms may hold."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from radon.complexity import cc_visit

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/notewell"
FILES = sorted(SOURCE.rglob("*.py"))

MOST_LINES_IN_ALL = 45_250
MOST_LINES = 450
MOST_METHODS = 25
MOST_COMPLEXITY = 20
MOST_WORDS = 25

# What may be larger, each with its size now. These lists may only shrink.
LONG_FILES: dict[str, int] = {}
LARGE_CLASSES: dict[str, int] = {}
COMPLEX_FUNCTIONS: dict[str, int] = {}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def lines_in(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions() -> Iterator[tuple[str, int]]:
    for path in FILES:
        for block in cc_visit(path.read_text(encoding="utf-8")):
            if type(block).__name__ == "Function":  # methods are functions with a class
                owner = f"{block.classname}." if block.classname else ""
                yield f"{name_of(path)}:{owner}{block.name}", block.complexity


def classes() -> Iterator[tuple[str, int]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = {m.name for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")}
                yield f"{name_of(path)}:{node.name}", len(methods)


def test_the_source_does_not_grow_beyond_its_bound() -> None:
    assert sum(map(lines_in, FILES)) <= MOST_LINES_IN_ALL


def test_no_file_is_too_long() -> None:
    assert {name_of(p): n for p in FILES if (n := lines_in(p)) > MOST_LINES} == LONG_FILES


def test_no_class_has_too_many_methods() -> None:
    assert {name: n for name, n in classes() if n > MOST_METHODS} == LARGE_CLASSES


def test_no_function_is_too_complex() -> None:
    found = dict(functions())
    assert len(found) > 1000
    assert {name: n for name, n in found.items() if n > MOST_COMPLEXITY} == COMPLEX_FUNCTIONS


PARTS = {"connection.py", "documents.py", "keywords.py", "vectors.py", "relations.py", "history.py", "session.py"}


def test_two_modules_do_not_share_a_name() -> None:
    """But for the parts of a store, which have the same names in every store."""
    own = [p.name for p in FILES if p.name not in {"__init__.py", "__main__.py"} and p.parent.parent.name != "store"]
    own += [p.name for p in (SOURCE / "store/sqlite").glob("*.py") if p.name not in {"__init__.py", *PARTS}]
    assert {name for name, count in Counter(own).items() if count > 1} == set()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_each_store_has_the_same_parts(store: str) -> None:
    assert PARTS | {"schema.py", "store.py"} <= {p.name for p in (SOURCE / "store" / store).glob("*.py")}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_stub_stands_in_for_a_sibling(path: Path) -> None:
    """A part that needs another one gets it in its constructor."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            assert not [part for part in node.body if isinstance(part, ast.FunctionDef)]


def test_the_former_name_is_only_in_the_changelog() -> None:
    former = "recol" + "lect"
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert former not in str(config)
    texts = {".py", ".md", ".toml", ".js", ".html", ".css", ".yml", ".json", ".jsonl", ".lock", ""}
    folders = ("src", "tests", "docs", "benchmarks", "tools", ".ci", ".github")
    pages = [p for f in folders for p in (ROOT / f).rglob("*") if p.is_file() and p.suffix in texts]
    pages += [p for p in ROOT.iterdir() if p.is_file() and p.suffix in texts and not p.name.startswith(".cov")]
    found = {
        p.relative_to(ROOT).as_posix(): count
        for p in pages
        if "__pycache__" not in p.parts and ".peers" not in p.parts
        if (count := len(re.findall(former, p.read_text(encoding="utf-8", errors="replace"), re.IGNORECASE)))
    }
    assert found == {"CHANGELOG.md": 1}


def test_the_glossary_stays_short() -> None:
    lines = (ROOT / "AGENTS.md").read_text(encoding="utf-8").split("## Words")[1].split("\n## ")[0].splitlines()
    cells = [cell.strip() for line in lines if line.startswith("| ") for cell in line.strip("|").split(" | ")[::2]]
    words = [cell for cell in cells if cell and cell not in ("word", "---")]
    assert "workspace" in words
    assert len(words) == len(set(words)) <= MOST_WORDS


ODD_WORDS = re.compile(
    r"\banew\b|\bmend(?:s|ed|ing)?\b|(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b)[a-z]|of (?:its|their) own\b"
)


def test_messages_docstrings_and_pages_use_plain_words() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    odd = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {match.group()}"
        for path in sorted([*FILES, *pages])
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in ODD_WORDS.finditer(line)
    ]
    assert odd == []
