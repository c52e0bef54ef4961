"""The page in a real browser. Pictures of it are kept in build/screens."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.surfaces.served import Served, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic",
]  # fmt: skip
SCREENS = Path(__file__).parents[2] / "build" / "screens"
HOSTILE = """# <script>document.title = "owned"</script>

<img src=x onerror="document.title='owned'"> walrus <svg onload="document.title='owned'"></svg>
[click](javascript:document.title='owned') </pre></dialog><script>document.title = "owned"</script> "><b>bold</b>
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("page")
    (root / "memory").mkdir()
    for n in range(1, 29):
        words = "staging" if n % 3 else "production"
        text = f"# Day {n}\n\nThe {words} port is {8000 + n} since the move.\n\n## Lunch\n\nSoup number {n}.\n"
        (root / f"memory/2026-02-{n:02}.md").write_text(text, encoding="utf-8")
    (root / "memory/hostile.md").write_text(HOSTILE, encoding="utf-8")
    (root / "memory/cjk.md").write_text(
        "# メモ\n\nGitHub备份脚本在夜里运行。ステージングは夜に止まる。\n", encoding="utf-8"
    )
    for day, amount in ((1, 40000), (9, 55000)):
        text = f"# Budget\n\nThe marketing budget for the year is {amount} euros.\n"
        (root / f"memory/2026-01-0{day}.md").write_text(text, encoding="utf-8")
    (root / "memory/rtl.md").write_text("# הערות\n\nהפגישה עברה ליום שלישי בשעה 10.\n", encoding="utf-8")
    with serving(root) as one:
        one.memory.sync()
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A fresh page; whatever the browser objects to, or sends elsewhere, fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    made = context.new_page()
    trouble: list[str] = []
    own = f"http://127.0.0.1:{served.port}/"
    made.on(
        "console", lambda m: trouble.append(m.text) if m.type in ("error", "warning") and "404" not in m.text else None
    )
    made.on("pageerror", lambda e: trouble.append(str(e)))
    made.on("request", lambda r: None if r.url.startswith(own) else trouble.append(f"asked {r.url}"))
    made.goto(own)
    expect(made.locator("#profile option").first).to_be_attached()
    yield made
    assert trouble == []
    context.close()


def ask(page: Page, words: str) -> None:
    page.fill("#query", words)
    expect(page.locator("#hits > li").first).to_be_visible()
    expect(page.locator("#state")).to_contain_text("candidates")


def keep(page: Page, name: str) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SCREENS / f"{name}.png"))


def test_hits_come_as_one_types_with_the_match_marked(page: Page) -> None:
    page.locator("#query").press_sequentially("staging port 8014")
    first = page.locator("#hits > li").first
    expect(first).to_contain_text("memory/2026-02-14.md#L3")
    marks = [m.lower() for m in first.locator("mark").all_inner_texts()]
    assert {"staging", "port", "8014"} <= set(marks)
    expect(first.locator(".bars")).to_contain_text("confidence")
    keep(page, "hits")


def test_a_click_opens_the_note_at_its_line(page: Page) -> None:
    ask(page, "staging port 8014")
    page.locator("#hits > li").first.click()
    expect(page.locator("#note")).to_be_visible()
    expect(page.locator("#note-title")).to_have_text("memory/2026-02-14.md")
    expect(page.locator("#note-lines .target")).to_have_attribute("data-line", "3")
    keep(page, "note")
    page.keyboard.press("Escape")
    expect(page.locator("#note")).to_be_hidden()


def test_the_ranking_is_drawn_for_the_whole_pool(page: Page) -> None:
    ask(page, "staging port")
    paths = page.locator("#slopes path.near")
    shown = int(page.inner_text("#state").split(" of ")[1].split(" ")[0])
    assert paths.count() == min(shown, 100)
    names = page.locator("#slopes text").evaluate_all("all => all.map(e => e.firstChild.data)")
    assert {"keywords", "meaning", "cut"} <= set(names)
    page.locator("#hits > li").nth(2).focus()
    chosen = page.locator("#hits > li").nth(2).locator(".place span").first.inner_text()
    expect(page.locator("#chosen h2")).to_have_text(chosen)
    page.get_by_text("Step by step").click()
    expect(page.locator("#chosen table")).to_contain_text("#")
    page.get_by_text("The same as a table").click()
    expect(page.locator("#table tbody tr")).to_have_count(min(shown, 100))
    keep(page, "ranking")


def test_sliders_rank_anew_and_redraw_quickly(page: Page, served: Served) -> None:
    ask(page, "staging port")
    asked: list[Any] = []
    page.on("request", lambda r: asked.append(r.post_data_json) if r.url.endswith("/api/search") else None)
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
    assert float(page.get_attribute("#slopes", "data-draw-ms") or "999") < 50
    page.get_by_role("button", name="As the profile says").click()
    expect(page.locator("#slopes text", has_text="mmr")).to_have_count(0)


def test_two_profiles_stand_side_by_side(page: Page) -> None:
    ask(page, "staging port 8014")
    page.get_by_role("button", name="Compare").click()
    page.select_option("#beside", "vector")
    expect(page.locator("#other-hits > li").first).to_be_visible()
    expect(page.locator("#other-hits .badge").first).to_be_visible()
    keep(page, "compare")


def test_why_is_it_not_here(page: Page) -> None:
    ask(page, "staging port 8014")
    page.fill("#reference", "memory/rtl.md")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#story")).to_contain_text("memory/rtl.md")
    page.fill("#reference", "memory/none.md")
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#story")).to_contain_text("nothing indexed")


def test_a_note_full_of_markup_stays_text(page: Page) -> None:
    ask(page, "walrus")
    first = page.locator("#hits > li").first
    expect(first).to_contain_text("<script>")
    first.click()
    expect(page.locator("#note-lines")).to_contain_text("onerror")
    assert page.title() == "recollect"
    assert (
        page.locator("#note-lines img, #note-lines script, #hits img, #hits script, #hits b:not(.place b)").count() == 0
    )
    keep(page, "hostile")


def test_scripts_of_the_world_read_as_they_should(page: Page) -> None:
    ask(page, "备份脚本")
    expect(page.locator("#hits > li").first).to_contain_text("备份脚本")
    assert "备份" in "".join(page.locator("#hits mark").all_inner_texts())
    ask(page, "הפגישה")
    snippet = page.locator("#hits > li").first.locator(".snippet")
    expect(snippet).to_contain_text("שלישי")
    assert snippet.evaluate("e => getComputedStyle(e).direction") == "rtl"
    keep(page, "right-to-left")


def test_keys_are_enough(page: Page) -> None:
    page.locator("body").press("/")
    page.keyboard.type("staging port 8014")
    expect(page.locator("#hits > li").first).to_contain_text("2026-02-14")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hits > li").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#note")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#query")).to_be_focused()


def test_dark_and_light(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate(colour) != light
    ask(page, "staging port")
    keep(page, "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_phone_needs_no_sideways_scroll(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    ask(page, "staging port")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    keep(page, "phone")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#other-hits > li").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_every_control_has_a_name_and_news_are_spoken(page: Page) -> None:
    ask(page, "staging port")
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select, svg[role=img]')].filter(e => e.checkVisibility()
            && !(e.textContent.trim() || e.ariaLabel || e.getAttribute('aria-labelledby') || e.labels?.length
                 || e.querySelector('title'))).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.get_attribute("#state", "aria-live") == "polite"


def test_index_health_is_shown(page: Page) -> None:
    page.get_by_role("button", name=re.compile("notes|index")).click()
    expect(page.locator("#health")).to_contain_text("33 notes")
    expect(page.locator("#health progress")).to_have_attribute("value", "1")
    keep(page, "health")


def test_a_contradiction_is_named_and_leads_to_the_other_note(page: Page) -> None:
    ask(page, "marketing budget for the year")
    first = page.locator("#hits > li").first
    expect(first).to_contain_text("55000")
    badge = first.locator("button.badge", has_text="conflicts with memory/2026-01-01.md#L3")
    expect(badge).to_be_visible()
    keep(page, "conflict")
    badge.click()
    expect(page.locator("#note-lines .target")).to_contain_text("40000")


def test_a_note_that_is_saved_shows_by_itself_and_work_is_seen(page: Page, served: Served) -> None:
    ask(page, "marketing budget for the year")
    page.evaluate(
        """() => { window.words = []; new MutationObserver(() => window.words.push(
            document.getElementById('health-word').textContent)).observe(
            document.getElementById('health-word'), {childList: true, characterData: true, subtree: true}); }"""
    )
    note = served.memory.root / "memory/2026-02-28b.md"
    try:
        note.write_text("# Walrus\n\nThe marketing budget for the year is for walruses.\n", encoding="utf-8")
        expect(page.locator("#hits")).to_contain_text("walruses", timeout=10_000)
        page.wait_for_function("window.words.some(w => /^(notes|vectors) \\d+ of \\d+/.test(w))", timeout=10_000)
        expect(page.locator("#health-word")).to_have_text("34 notes", timeout=10_000)
    finally:
        note.unlink()
    expect(page.locator("#health-word")).to_have_text("33 notes", timeout=10_000)


def test_a_strip_of_days_narrows_the_answer(page: Page) -> None:
    ask(page, "staging port")
    page.locator("#strip rect[data-days='2026-02-14']").last.click()
    expect(page.locator("#strip-range")).to_contain_text("only 2026-02-14")
    expect(page.locator("#hits > li").first).to_contain_text("2026-02-14")
    page.get_by_role("button", name="all days").click()
    expect(page.locator("#strip-range")).to_be_hidden()


def test_an_empty_question_shows_nothing_and_no_error(page: Page) -> None:
    ask(page, "staging")
    page.fill("#query", "")
    expect(page.locator("#hits > li")).to_have_count(0)
    expect(page.locator("#state")).to_contain_text("Type a question")


def test_the_page_needs_no_network(served: Served) -> None:
    folder = Path(os.path.dirname(__file__)).parents[1] / "src/recollect/surfaces/page"
    for file in folder.iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", file.read_text(encoding="utf-8")), file.name
