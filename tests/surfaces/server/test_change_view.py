"""Changes on the page, in a real browser: every one shows its lines before it is written, and can
be undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.surfaces.server.browser import Tab, at, go, keep, needs_axe, needs_chromium, serious
from tests.surfaces.server.page_notes import write_notes
from tests.surfaces.server.served import Served, serving

pytestmark = needs_chromium


@pytest.fixture
def page(one_tab: Tab) -> Iterator[Page]:
    with one_tab.fresh("#/change") as made:
        yield made


def texts(served: Served) -> dict[str, str]:
    """Every note as it is on the disk."""
    root = served.memory.root
    return {
        p.relative_to(root).as_posix(): p.read_text(encoding="utf-8")
        for p in sorted(root.glob("**/*.md"))
    }


def preview(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Show what will")).click()
    expect(page.locator(".preview .diff").first).to_be_visible()


def write(page: Page, name: str = "Write it") -> None:
    page.get_by_role("button", name=name).click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()


def undo(page: Page) -> None:
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="Taken back")).to_be_visible()


def test_what_is_remembered_is_shown_first_then_written_then_undone(
    page: Page, served: Served
) -> None:
    before = texts(served)
    page.get_by_label("What", exact=True).fill("The walrus is called Bert.")
    page.get_by_label("Note", exact=True).fill("memory/animals.md")
    preview(page)
    expect(page.locator(".diff .added", has_text="Bert")).to_be_visible()
    keep(page, "preview")
    assert texts(served) == before, "a preview writes nothing"
    write(page)
    assert "Bert" in (served.memory.root / "memory/animals.md").read_text(encoding="utf-8")
    undo(page)
    assert texts(served) == before


def test_every_line_that_is_written_is_shown_also_one_that_looks_like_a_mark_of_the_diff(
    page: Page,
) -> None:
    page.get_by_label("What", exact=True).fill(
        "Signs:\n\n++ two of them\n@@ -1 +1 @@ not a place\n-- and these"
    )
    page.get_by_label("Note", exact=True).fill("memory/signs.md")
    preview(page)
    for line in ("+++ two of them", "+@@ -1 +1 @@ not a place", "+-- and these"):
        expect(page.locator(".diff .added", has_text=line)).to_be_visible()


def test_a_correction_starts_from_the_passage_and_replaces_it(page: Page, served: Served) -> None:
    before = texts(served)
    go(page, "#/search?q=staging%20port%208014")
    page.get_by_role("link", name="Correct").click()
    box = page.get_by_label("What is right now")
    expect(box).to_have_value(re.compile("8014"))
    box.fill("The staging port is 9014 since the move.")
    preview(page)
    expect(page.locator(".diff .added", has_text="9014")).to_be_visible()
    write(page)
    assert any("9014" in text for text in texts(served).values())
    go(page, "#/search?q=staging%20port%209014")
    expect(page.locator("#hits > li").first).to_contain_text("9014")
    go(page, "#/change?do=undo")
    page.get_by_role("button", name="Undo").first.click()
    expect(page.locator("#state")).not_to_be_empty()
    assert texts(served) == before


def test_a_contradiction_is_settled_by_choosing(page: Page, served: Served) -> None:
    before = texts(served)
    go(page, "#/")
    found = page.locator(".need .rows > li", has_text="55000").locator("a.button").first
    go(page, found.get_attribute("href") or "")
    expect(page.locator(".side")).to_have_count(2)
    expect(page.locator(".side").first).to_contain_text("40000")
    keep(page, "settle")
    page.locator(".side").last.get_by_role("button", name="Keep this one").click()
    expect(page.locator(".preview .diff").first).to_be_visible()
    write(page)
    assert texts(served) != before
    undo(page)
    assert texts(served) == before


def test_a_note_is_pinned_and_unpinned_from_its_page(page: Page, served: Served) -> None:
    before = texts(served)
    go(page, "#/note/memory/rtl.md")
    page.get_by_role("link", name="Pin", exact=True).click()
    expect(page.locator(".diff .added", has_text="pinned: true")).to_be_visible()
    write(page)
    go(page, "#/note/memory/rtl.md")
    expect(page.locator("h1 + .meta")).to_contain_text("pinned")
    page.get_by_role("link", name="Unpin").click()
    expect(page.locator(".diff .taken", has_text="pinned: true")).to_be_visible()
    write(page)
    assert texts(served) == before


def test_forgetting_shows_what_goes_and_gives_a_receipt(page: Page, served: Served) -> None:
    path = served.memory.root / "memory/2026-03-01.md"
    path.write_text("# A day\n\nThe otter eats at nine.\n\nThe heron stays.\n", encoding="utf-8")
    served.memory.sync()
    go(page, "#/change?do=forget&ref=memory/2026-03-01.md:3")
    expect(page.locator(".quoted")).to_contain_text("otter")
    page.get_by_role("button", name="Show what will be removed").click()
    expect(page.locator(".diff .taken", has_text="otter")).to_be_visible()
    assert "otter" in path.read_text(encoding="utf-8")
    write(page, "Forget it")
    text = path.read_text(encoding="utf-8")
    assert "otter" not in text
    assert "heron" in text
    expect(page.locator(".receipt")).not_to_be_empty()
    path.unlink()
    served.memory.sync()


def test_a_note_that_changed_meanwhile_is_not_overwritten(page: Page, served: Served) -> None:
    path = served.memory.root / "memory/2026-02-05.md"
    before = path.read_text(encoding="utf-8")
    page.get_by_label("What", exact=True).fill("The seal sleeps.")
    page.get_by_label("Note", exact=True).fill("memory/2026-02-05.md")
    preview(page)
    try:
        path.write_text(before + "\nAn agent wrote this line.\n", encoding="utf-8")
        page.get_by_role("button", name="Write it").click()
        expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
        expect(page.get_by_role("heading", name="What you saw")).to_be_visible()
        keep(page, "changed")
        assert "seal" not in path.read_text(encoding="utf-8")
        write(page)
        text = path.read_text(encoding="utf-8")
        assert "seal" in text
        assert "An agent wrote this line." in text
    finally:
        path.write_text(before, encoding="utf-8")
        served.memory.sync()


def test_what_cannot_be_done_is_said_in_a_sentence(page: Page) -> None:
    go(page, "#/change?do=forget&ref=memory/nothing.md")
    expect(page.locator(".quoted")).to_contain_text("nothing.md")
    page.get_by_role("button", name="Show what will be removed").click()
    expect(page.locator(".preview")).to_contain_text("nothing.md")
    assert page.get_by_role("button", name="Forget it").count() == 0


def test_a_server_that_only_reads_offers_no_change(browser: Browser, tmp_path: Path) -> None:
    write_notes(tmp_path)
    with serving(tmp_path, read_only=True) as one, at(browser, one.port) as page:
        for where in ("#/", "#/search?q=marketing%20budget", "#/note/memory/2026-01-09.md"):
            go(page, where)
            expect(page.locator("h1").first).to_be_attached()
            assert page.locator("a[href^='#/change']").filter(visible=True).count() == 0
        page.locator("body").press("n")
        assert "#/change" not in page.url
        go(page, "#/change")
        expect(page.locator("main")).to_contain_text("only reads")
        assert page.locator("main form, main button").count() == 0


@needs_axe
def test_axe_finds_nothing_serious_in_a_preview(page: Page) -> None:
    page.get_by_label("What", exact=True).fill("The walrus is called Bert.")
    preview(page)
    assert serious(page) == []
    go(page, "#/change?do=undo")
    assert serious(page) == []
