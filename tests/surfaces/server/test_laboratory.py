"""The laboratory in a real browser: how a ranking is made, and what the index holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.surfaces.server.browser import Tab, at, keep, needs_chromium
from tests.surfaces.server.served import Served

pytestmark = needs_chromium


@pytest.fixture
def page(one_tab: Tab) -> Iterator[Page]:
    with one_tab.fresh("#/lab") as made:
        yield made


def ask(page: Page, words: str) -> None:
    page.fill("#lab-query", words)
    expect(page.locator("#lab-hits > li").first).to_be_visible()
    expect(page.locator("#lab-state")).to_contain_text("candidates")


def test_one_link_leads_to_it(browser: Browser, served: Served) -> None:
    with at(browser, served.port) as page:
        page.get_by_role("link", name="Laboratory").click()
        expect(page.get_by_role("heading", name="Laboratory")).to_be_visible()


def test_the_ranking_is_drawn_for_the_whole_pool(page: Page) -> None:
    ask(page, "staging port")
    paths = page.locator("#slopes path.near")
    shown = int(page.inner_text("#lab-state").split(" of ")[1].split(" ")[0])
    assert paths.count() == min(shown, 100)
    names = page.locator("#slopes text").evaluate_all("all => all.map(e => e.firstChild.data)")
    assert {"keywords", "meaning", "cut"} <= set(names)
    page.locator("#lab-hits > li a").nth(2).focus()
    chosen = page.locator("#lab-hits > li").nth(2).locator(".place a").inner_text()
    expect(page.locator("#chosen h2")).to_have_text(chosen)
    page.get_by_text("Step by step").click()
    expect(page.locator("#chosen table")).to_contain_text("#")
    page.get_by_text("Show as a table").click()
    expect(page.locator("#table tbody tr")).to_have_count(min(shown, 100))
    keep(page, "ranking")


def test_while_one_types_the_explained_hit_is_the_first(page: Page) -> None:
    ask(page, "soup")
    ask(page, "marketing budget")
    expect(page.locator("#lab-hits > li").first).to_contain_text("budget")
    first = page.locator("#lab-hits > li").first.locator(".place a").inner_text()
    expect(page.locator("#chosen h2")).to_have_text(first)


def test_sliders_rank_again_and_redraw(page: Page) -> None:
    ask(page, "staging port")
    page.get_by_text("Try other settings").click()
    asked: list[Any] = []
    page.on(
        "request",
        lambda r: asked.append(r.post_data_json) if r.url.endswith("/api/search") else None,
    )
    for slider, value in (("vector", "0"), ("decay", "20"), ("mmr", "0.5"), ("pool", "20")):
        with page.expect_response("**/api/search") as answer:
            page.locator(f"#{slider}").fill(value)
        assert answer.value.status == 200, answer.value.text()
    last = asked[-1]
    assert "decay(half_life_days=20)" in last["stages"]
    assert "mmr(lambda=0.5)" in last["stages"]
    assert last["pool"] == 20
    assert re.search(r"vector=0\.0", last["fusion"])
    expect(page.locator("#slopes text", has_text="mmr")).to_be_visible()
    page.get_by_role("button", name="Reset to the profile").click()
    expect(page.locator("#slopes text", has_text="mmr")).to_have_count(0)


@pytest.mark.slow
def test_a_drawing_takes_less_than_a_tenth_of_a_second(page: Page) -> None:
    ask(page, "staging port")
    page.get_by_text("Try other settings").click()
    took_ms = []
    for value in ("10", "20", "30", "40", "50"):
        with page.expect_response("**/api/search"):
            page.locator("#pool").fill(value)
        expect(page.locator("#slopes")).to_have_attribute("data-draw-ms", re.compile(r"\d"))
        took_ms.append(float(page.get_attribute("#slopes", "data-draw-ms") or "999"))
    assert min(took_ms) < 100


def test_two_profiles_have_bars_that_can_be_compared(page: Page) -> None:
    ask(page, "staging port 8014")
    page.get_by_role("button", name="Compare").click()
    page.select_option("#beside-profile", "vector")
    expect(page.locator("#other-hits > li").first).to_be_visible()
    expect(page.locator("#other-hits .badge").first).to_be_visible()
    page.wait_for_function(
        """() => { const all = [...document.querySelectorAll('#lists .bars svg')]
                .map(e => e.clientWidth);
            return all.length > 10 && Math.min(...all) > 0
                && Math.max(...all) - Math.min(...all) <= 1; }"""
    )
    keep(page, "compare")


def test_why_is_it_not_here(page: Page) -> None:
    ask(page, "staging port 8014")
    page.fill("#reference", "memory/rtl.md")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#story")).to_contain_text("memory/rtl.md")
    page.fill("#reference", "memory/none.md")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#story")).to_contain_text("no note or passage is called")


def test_a_note_full_of_markup_stays_text(page: Page) -> None:
    ask(page, "walrus")
    expect(page.locator("#lab-hits > li").first).to_contain_text("<script>")
    assert page.title() == "Laboratory – notewell"
    assert page.locator("#view img, #view script, #view b:not(.place b, .check)").count() == 0


def test_a_contradiction_is_named_and_leads_to_the_other_note(page: Page) -> None:
    ask(page, "marketing budget for the year")
    first = page.locator("#lab-hits > li").first
    expect(first).to_contain_text("55000")
    badge = first.locator("a.badge", has_text="conflicts with memory/2026-01-01.md#L3")
    badge.click()
    expect(page.locator(".note .target")).to_contain_text("40000")


def test_index_health_and_saved_notes_are_shown(page: Page, served: Served) -> None:
    expect(page.locator("#health-word")).to_have_text("33 notes")
    expect(page.locator("#health progress")).to_have_attribute("value", "1")
    ask(page, "marketing budget for the year")
    note = served.memory.root / "memory/2026-02-28b.md"
    try:
        note.write_text(
            "# Walrus\n\nThe marketing budget for the year is for walruses.\n", encoding="utf-8"
        )
        expect(page.locator("#lab-hits")).to_contain_text("walruses")
        expect(page.locator("#health-word")).to_have_text("34 notes")
    finally:
        note.unlink()
    expect(page.locator("#health-word")).to_have_text("33 notes")


def test_the_checks_of_doctor_are_made_when_asked_for(page: Page) -> None:
    page.get_by_role("button", name="Run notewell doctor").click()
    expect(page.locator("#checks li", has_text="ok notes: 33 notes (memory)")).to_be_visible()
    expect(page.locator("#checks li", has_text="index:")).to_be_visible()


def test_a_strip_of_days_narrows_the_answer(page: Page) -> None:
    ask(page, "staging port")
    page.locator("#strip rect[data-days='2026-02-14']").last.click()
    expect(page.locator("#strip-range")).to_contain_text("Only 2026-02-14")
    expect(page.locator("#lab-hits > li").first).to_contain_text("2026-02-14")
    page.get_by_role("button", name="show all days").click()
    expect(page.locator("#strip-range")).to_be_hidden()


def test_an_empty_question_shows_nothing_and_no_error(page: Page) -> None:
    ask(page, "staging")
    page.fill("#lab-query", "")
    expect(page.locator("#lab-hits > li")).to_have_count(0)
    expect(page.locator("#lab-state")).to_contain_text("Type a question")
