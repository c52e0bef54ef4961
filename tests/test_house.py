"""The shape of the source: what the rooms may hold, and which words it uses."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/notewell"
FILES = sorted(SOURCE.rglob("*.py"))

MOST_WORDS = 25


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


PARTS = {
    "connection.py",
    "documents.py",
    "keywords.py",
    "vectors.py",
    "relations.py",
    "history.py",
    "session.py",
}


def test_two_modules_do_not_share_a_name() -> None:
    """But for the parts of a store, which have the same names in every store."""
    own = [
        p.name
        for p in FILES
        if p.name not in {"__init__.py", "__main__.py"} and p.parent.parent.name != "store"
    ]
    own += [
        p.name
        for p in (SOURCE / "store/sqlite").glob("*.py")
        if p.name not in {"__init__.py", *PARTS}
    ]
    assert {name for name, count in Counter(own).items() if count > 1} == set()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_each_store_has_the_same_parts(store: str) -> None:
    assert PARTS | {"schema.py", "store.py"} <= {
        p.name for p in (SOURCE / "store" / store).glob("*.py")
    }


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
    pages += [
        p
        for p in ROOT.iterdir()
        if p.is_file() and p.suffix in texts and not p.name.startswith(".cov")
    ]
    found = {
        p.relative_to(ROOT).as_posix(): count
        for p in pages
        if "__pycache__" not in p.parts and ".peers" not in p.parts
        if (
            count := len(
                re.findall(former, p.read_text(encoding="utf-8", errors="replace"), re.IGNORECASE)
            )
        )
    }
    assert found == {"CHANGELOG.md": 1}


def test_the_glossary_stays_short() -> None:
    lines = (
        (ROOT / "AGENTS.md")
        .read_text(encoding="utf-8")
        .split("## Words")[1]
        .split("\n## ")[0]
        .splitlines()
    )
    cells = [
        cell.strip()
        for line in lines
        if line.startswith("| ")
        for cell in line.strip("|").split(" | ")[::2]
    ]
    words = [cell for cell in cells if cell and cell not in ("word", "---")]
    assert "workspace" in words
    assert len(words) == len(set(words)) <= MOST_WORDS


ODD_WORDS = re.compile(
    r"\banew\b|\bmend(?:s|ed|ing)?\b|(?<![Tt]here )\b(?:is|are) no (?!longer\b|more\b)[a-z]|of "
    r"(?:its|their) own\b"
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


TESTS = sorted((ROOT / "tests").rglob("*.py"))
CLOCKS = {"perf_counter", "process_time", "thread_time", "monotonic", "time"}
WAITS = {"join", "wait", "settimeout", "result", "timeout"}
GUARD_S = 30.0
WHOLLY_SLOW = {"test_openclaw_real.py"}
# Who else may take the time, and what for.
MEASURES = {
    "tests/growth.py:grows_as_its_length": "the slow runs measure by it",
    "tests/fuzz/test_fuzz.py:measured": "so does the slow campaign",
    "tests/faults/lives.py:Remember": "the age of a file",
    "tests/faults/lives.py:main": "told in the report of a campaign",
    "tests/faults/test_kill_index.py:undisturbed": "the span in which a kill falls",
}


@dataclass(frozen=True)
class Place:
    """A piece of the source of a test, what it is a part of, and the function or class around
    both.
    """

    path: Path
    node: ast.AST
    around: ast.AST
    top: ast.stmt

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{getattr(self.top, 'name', '')}"

    @property
    def is_slow(self) -> bool:
        marks = map(ast.unparse, getattr(self.top, "decorator_list", []))
        return any("mark.slow" in mark for mark in marks) or self.path.name in WHOLLY_SLOW


@functools.cache
def places() -> list[Place]:
    """All calls and comparisons in the tests."""
    found: list[Place] = []
    for path in TESTS:
        for top in ast.parse(path.read_text(encoding="utf-8")).body:
            for around in ast.walk(top):
                nodes = ast.iter_child_nodes(around)
                found += [
                    Place(path, n, around, top)
                    for n in nodes
                    if isinstance(n, (ast.Call, ast.Compare))
                ]
    return found


def takes_the_time(place: Place) -> bool:
    """Whether a clock is read for anything but a moment far away, or a look whether one has
    come.
    """
    node, around = place.node, place.around
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr not in CLOCKS or ast.unparse(node.func.value) != "time":
        return False
    if isinstance(around, ast.BinOp):
        by = around.right
        if not isinstance(by, ast.Constant):
            return not isinstance(around.op, ast.Add)
        return isinstance(around.op, ast.Add) and float(str(by.value)) < GUARD_S
    return not isinstance(around, (ast.Compare, ast.FormattedValue))


def bounds_a_time(place: Place) -> bool:
    node = place.node
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Lt, ast.LtE)):
        return False
    return re.search(r"\btook|_ms\b|elapsed", ast.unparse(node.left)) is not None


def test_no_verdict_depends_on_how_fast_the_machine_is() -> None:
    """Steps, calls and bytes are counted; the slow runs measure, by processor time and the best of
    a few tries.
    """
    found = [p for p in places() if takes_the_time(p) or bounds_a_time(p)]
    assert {p.name for p in found} >= MEASURES.keys()
    assert [
        f"{p.name}: {ast.unparse(p.node)}"
        for p in found
        if p.name not in MEASURES and not p.is_slow
    ] == []


def test_a_wait_of_a_test_is_a_poll_or_a_guard_that_only_a_hang_meets() -> None:
    found = []
    for place in places():
        node = place.node
        if not isinstance(node, ast.Call) or place.is_slow:
            continue
        waits = [k.value for k in node.keywords if k.arg == "timeout"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            waits += node.args[:1]
        given = [one.value for one in waits if isinstance(one, ast.Constant)]
        if any(isinstance(value, (int, float)) and 1.0 <= value < GUARD_S for value in given):
            found.append(f"{place.name}: {ast.unparse(node)}")
    assert found == []


def test_an_example_may_take_as_long_as_it_likes() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
    calls = [
        p.node
        for p in places()
        if isinstance(p.node, ast.Call) and ast.unparse(p.node.func) == "settings"
    ]
    assert calls
    deadlines = [k.value for call in calls for k in call.keywords if k.arg == "deadline"]
    assert {ast.unparse(value) for value in deadlines} <= {"None"}
