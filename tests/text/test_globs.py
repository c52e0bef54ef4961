"""Patterns of ignore files: git is the oracle, and no pattern takes long."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.globs import MOST_CHARACTERS, MOST_STARS, pattern_of
from tests.growth import no_hang

LINES = [
    "foo",
    "/foo",
    "foo/",
    "/foo/",
    "*.md",
    "*.m?",
    "foo/*",
    "foo/**",
    "**/foo",
    "/**/foo",
    "foo/**/bar",
    "**",
    "**/",
    "/**",
    "*",
    "/*",
    "*/",
    "a*b",
    "a**b",
    "**b",
    "a**",
    "foo/**bar",
    "***",
    "a/***/b",
    "**/**",
    "a/**/**/b",
    "[abc]",
    "[!abc]",
    "[^abc]",
    "[a-c]x",
    "[]]",
    "[!]]",
    "[]-a]",
    "[a-]",
    "[-a]",
    r"[\]]",
    r"[\\]",
    "[[:alpha:]]",
    "[[:digit:]a]",
    "[![:upper:]]",
    "[a/b]",
    "foo[/]bar",
    r"\#x",
    r"\!x",
    "#x",
    "!foo",
    r"foo\ ",
    "foo ",
    "foo  ",
    r"foo\  ",
    r"\*",
    r"a\*b",
    r"a\/b",
    "foo//bar",
    "//foo",
    "a/b",
    "a/b/",
    "a/*/c",
    "*/b",
    "?",
    "??",
    "a?",
    "*.*",
    ".*",
    "foo/bar/*.md",
    "**/*.md",
    "a/**/*.md",
    "/a*/b*/**",
    "x/**/y/**/z",
    "**/y/**/z",
    "é",
    "*a*a*b",
    "*ab*ab",
    "ab*ab",
    "*a?b*",
    "a*?b",
    "a?*b",
    "*?",
    "?*?",
    "foo/\r",
    "*.md\r",
    "\t",
    " ",
    "  x",
]
# These match nothing for git either; such a line is skipped, and a notice names it.
ODD = [
    "build\\",
    "\\",
    "!",
    "/",
    "!/",
    "[",
    "a[",
    "[a",
    "[!",
    "[]",
    "[[:alpha:]",
    "[[:nothing:]]",
    "foo\\\r",
    "a/b\\",
]
NAMES = [
    "foo",
    "foo/bar",
    "foo/bar/baz",
    "bar/foo",
    "bar/foo/x",
    "a.md",
    "foo/a.md",
    "foo/bar/a.md",
    "foo/x/y/bar",
    "ab",
    "aXb",
    "a",
    "b",
    "c",
    "ax",
    "bx",
    "]",
    "-",
    "\\",
    "*",
    "a*b",
    "#x",
    "!x",
    "foo ",
    "a/b",
    "a/b/c",
    "a/x/b",
    "a/x/y/b",
    "a/x/c.md",
    "A",
    "1",
    "aab",
    "abab",
    "abXab",
    "aba",
    "x/y/z",
    "x/1/y/2/z",
    "y/z",
    "axb",
    "axxb",
    "ab1/bc/d",
    ".a",
    "a.b",
    "foobar",
    "fooXbar",
    "foo/Xbar",
    "build",
    "build\\",
    " x",
    "  x",
    "\t",
    "[",
    "a[",
    "[a",
]


def ours(line: str, name: str) -> bool:
    """Whether a line ignores a path or a folder on the way, as git has it."""
    try:
        pattern = pattern_of(line)
    except ValueError:
        return False
    return pattern is not None and not pattern.keeps and pattern.covers(name.split("/"))


def gits(folder: Path, line: str, names: list[str]) -> set[str]:
    (folder / ".gitignore").write_bytes(line.encode() + b"\n")
    asked = "\0".join(names).encode() + b"\0"
    command = ["git", "-c", "core.quotepath=off", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=asked, capture_output=True, check=False)
    return {name for name in done.stdout.decode().split("\0") if name}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("line", [*LINES, *ODD])
def test_a_line_means_what_it_means_to_git(repository: Path, line: str) -> None:
    assert {name for name in NAMES if ours(line, name)} == gits(repository, line, NAMES)


def test_random_lines_mean_what_they_mean_to_git(repository: Path) -> None:
    @given(st.text(alphabet="ab*?/[]!-\\", min_size=1, max_size=8))
    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    def check(line: str) -> None:
        names = [
            "a",
            "b",
            "ab",
            "ba",
            "a/b",
            "b/a",
            "a/a/b",
            "ab/ab",
            "b/b/b",
            "aab",
            "a/ab",
            "-",
            "a-",
            "a]",
        ]
        assert {name for name in names if ours(line, name)} == gits(repository, line, names)

    check()


@pytest.mark.parametrize("line", [*ODD, "[z-a]", "[z-ab]"])
def test_a_line_that_can_match_nothing_has_a_reason(line: str) -> None:
    with pytest.raises(ValueError, match=r"^(it|a bracket|its) "):
        pattern_of(line)


@pytest.mark.parametrize("line", ["a" * (MOST_CHARACTERS + 1), "*a" * (MOST_STARS + 1)])
def test_a_line_that_costs_too_much_has_a_reason(line: str) -> None:
    with pytest.raises(ValueError, match="more than"):
        pattern_of(line)


@pytest.mark.parametrize(
    "line",
    [
        "*a" * MOST_STARS + "b",
        "*a" * (MOST_STARS - 2) + "*c*",
        "a*" * MOST_STARS,
        "*" + "?" * 250 + "b",
        "*" + "[ab]" * 200 + "c*",
        "**/a/" * (MOST_STARS // 2) + "b",
        "a/" * 400 + "b",
        "**/" + "a/" * 300 + "b",
        "**/a*/" * 10 + "c",
    ],
)
def test_no_pattern_takes_long(line: str) -> None:
    pattern = pattern_of(line)
    assert pattern is not None
    with no_hang():
        for name in ("a" * 255, "a/" * 200 + "a", ("a" * 255 + "/") * 15 + "a"):
            assert not pattern.covers(name.split("/")) or "b" not in line


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_any_line_is_taken_or_has_a_reason(line: str, name: str) -> None:
    try:
        pattern = pattern_of(line)
    except ValueError:
        return
    if pattern is not None:
        pattern.covers(name.split("/"))
