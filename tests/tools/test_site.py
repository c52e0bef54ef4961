"""The site: a page for each agent and for what Python gives, and a place in the menu for every
page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import notewell
from notewell.surfaces.cli.commands import run
from notewell.surfaces.install.entries import AGENTS
from tools import site


def menu() -> list[str]:
    text = (site.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(
        r"([\w/.-]+\.md)$", text.partition("nav:")[2].partition("\ntheme:")[0], re.MULTILINE
    )


def test_every_page_is_in_the_menu_once() -> None:
    pages = {p.relative_to(site.ROOT).as_posix() for p in site.copied() if p.suffix == ".md"} | set(
        site.made()
    )
    assert sorted(menu()) == sorted(pages)


@pytest.mark.parametrize("name", AGENTS)
def test_the_page_of_an_agent_has_what_install_would_write(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = site.made()[f"docs/hosts/{name}.md"]
    assert page.startswith(f"# {AGENTS[name].title}\n")
    folder = [] if AGENTS[name].finds else ["-w", str(tmp_path)]
    assert run(["install", name, "--print", *folder]) == 0
    written = capsys.readouterr().err
    (place,) = re.findall(r"^\| Linux \| `~/(.+)` \|$", page, re.MULTILINE)
    assert Path(place).name in written
    for block in re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        assert list(json.loads(block)) == [AGENTS[name].keys[0]]


def test_links_of_made_pages_lead_to_pages() -> None:
    pages = set(menu())
    for name, text in site.made().items():
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            target = (
                (site.ROOT / name).parent.joinpath(link).resolve().relative_to(site.ROOT).as_posix()
            )
            assert target in pages, (name, link)


def test_the_reference_has_every_public_name() -> None:
    text = site.reference()
    for method in ("search", "get", "remember", "forget", "sync", "close"):
        assert f"heading: Memory.{method}\n" in text or method in vars(notewell.Memory)
    assert "search" in site.delegated()
    named = re.findall(r"^::: notewell\.([A-Za-z]\w*)$", text, re.MULTILINE)
    assert named[0] == "Memory"
    assert sorted(named) == sorted(set(notewell.__all__) - {"__version__"})
