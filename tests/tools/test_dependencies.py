"""The tables of docs/install.md: which wheels fit where, and that the page has what the script
would write.
"""

from __future__ import annotations

from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools import dependencies
from tools.dependencies import (
    SYSTEMS,
    cell,
    closure,
    licence,
    megabytes,
    reasons,
    replaced,
    requirements,
    wheels,
)

GLIBC, _, MUSL, _, APPLE, INTEL, WINDOWS, _ = SYSTEMS


def project(*names: str, yanked: bool = False) -> dict[str, Any]:
    return {"releases": {"any": [{"filename": name, "yanked": yanked} for name in names]}}


def found(*names: str, wanted: str = "x>=1") -> Any:
    return wheels(project(*names), Requirement(wanted))


def test_a_pure_wheel_fits_everywhere() -> None:
    assert {cell(system, found("x-1.0-py3-none-any.whl")) for system in SYSTEMS} == {"yes"}


def test_a_compiled_wheel_fits_its_system_alone() -> None:
    own = found("x-1.0-cp311-abi3-manylinux_2_28_x86_64.whl")
    assert cell(GLIBC, own) == "yes"
    assert {cell(system, own) for system in SYSTEMS if system != GLIBC} == {"no"}


def test_wheels_of_one_python_are_not_those_of_another() -> None:
    own = [f"x-1.0-cp3{n}-cp3{n}-musllinux_1_2_x86_64.whl" for n in (11, 12, 13)]
    assert cell(MUSL, found(*own)) == "yes (Python to 3.13)"
    assert (
        cell(MUSL, found(*own, "x-1.0-cp314-cp314t-musllinux_1_2_x86_64.whl"))
        == "yes (Python to 3.13)"
    )
    assert cell(MUSL, found(*own, "x-1.0-cp314-cp314-musllinux_1_2_x86_64.whl")) == "yes"


def test_an_older_version_is_named_where_the_newest_does_not_fit() -> None:
    own = found(
        "x-1.0-cp311-abi3-macosx_13_0_universal2.whl", "x-2.0-cp311-abi3-macosx_14_0_arm64.whl"
    )
    assert cell(APPLE, own) == cell(INTEL, own) == "1.0"
    assert cell(WINDOWS, own) == "no"


def test_what_we_do_not_accept_does_not_count() -> None:
    names = [
        "x-0.9-py3-none-any.whl",
        "x-2.0rc1-py3-none-any.whl",
        "x-2.0.tar.gz",
        "not a wheel.whl",
    ]
    assert found(*names) == {}
    assert wheels(project("x-2.0-py3-none-any.whl", yanked=True), Requirement("x")) == {}
    assert list(found("x-1.0-py3-none-any.whl", "x-10.0-py3-none-any.whl")) == [
        Version("10.0"),
        Version("1.0"),
    ]


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"license_expression": "MIT", "license": "x", "classifiers": []}, "MIT"),
        ({"license": "", "classifiers": ["License :: OSI Approved :: BSD License"]}, "BSD License"),
        ({"license": "Zlib\n\nlong text", "classifiers": []}, "Zlib"),
        ({"license": None, "classifiers": []}, "?"),
    ],
)
def test_the_licence_is_the_one_that_is_stated(info: dict[str, Any], said: str) -> None:
    assert licence(info) == said


def test_the_base_is_within_its_bounds() -> None:
    base = closure(["notewell"])
    assert "mcp" not in base
    assert len(base) <= 32
    assert 100 < megabytes(base) <= 240
    assert "mcp" in closure(["notewell[mcp]"])


def test_the_page_has_the_reasons_and_a_row_for_each_dependency() -> None:
    page = dependencies.PAGE.read_text(encoding="utf-8")
    assert replaced(page, "reasons", reasons()) == page
    table = page.partition("## Systems")[2].partition("<!-- end -->")[0]
    assert [row.split("|")[1].strip() for row in table.splitlines() if row.startswith("| ")][
        2:
    ] == list(requirements())


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(SystemExit, match="no place for the table systems"):
        replaced("# Page\n", "systems", [])
