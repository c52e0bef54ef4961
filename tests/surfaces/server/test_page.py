"""The page in a real browser: Home, Search, Read and Time, at two widths and in both colours.

Pictures are kept in build/screens. Change and the laboratory have tests of their own.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from notewell.surfaces.hooks.journal import Journal, Passage
from notewell.surfaces.server.guard import Door
from tests.surfaces.server.browser import (
    WAIT_MS,
    Tab,
    at,
    go,
    keep,
    needs_axe,
    needs_chromium,
    serious,
)
from tests.surfaces.server.page_notes import HOSTILE, write_notes
from tests.surfaces.server.served import Served, serving

PAGE = Path(os.path.dirname(__file__)).parents[2] / "src/notewell/surfaces/server/page"
HOSTILE_NAME = "<img src=x onerror=alert(1)>"
VIEWS = {
    "home": "#/",
    "search": "#/search?q=staging%20port",
    "read": "#/note/memory/2026-01-09.md?line=3",
    "change": "#/change",
    "time": "#/time",
    "laboratory": "#/lab?q=staging%20port",
}
BUILDERS = re.compile(
    r"\b(legs?|lexical|vector|collapse|combine|signals|suppress|MMR|fusion|profile|candidates?|chunks?)\b",
    re.IGNORECASE,
)

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("page")
    write_notes(root)
    text = (
        "# Links\n\nSee [[2026-01-09]] and [the first day](2026-02-01.md).\n\n| a | b |\n| - | "
        "- |\n| 1 | 2 |\n"
    )
    (root / "memory/links.md").write_text(text, encoding="utf-8")
    (root / f"memory/{HOSTILE_NAME}.md").write_text(
        "# A name\n\nThe walrus has a strange file.\n", encoding="utf-8"
    )
    boat = (
        "---\ntags: [sailing]\nconflicts_with: memory/cjk.md\n---\n# Boat\n\nThe boat is "
        "called Petrel.\n"
    )
    (root / "memory/boat.md").write_text(boat, encoding="utf-8")
    (root / "chats").mkdir()
    turns = [
        ("user", "Where does the heron nest? <b>bold</b>"),
        ("assistant", f"In the *reeds*. {HOSTILE}"),
    ]
    lines = [json.dumps({"role": role, "content": said}) for role, said in turns]
    (root / "chats/heron.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with serving(root, sources="memory,sessions", sessions__paths=str(root / "chats")) as one:
        one.memory.sync()
        yield one


@pytest.fixture
def page(one_tab: Tab) -> Iterator[Page]:
    with one_tab.fresh() as made:
        yield made


def ask(page: Page, words: str) -> None:
    page.fill("#query", words)
    expect(page.locator("#hits > li").first).to_be_visible()


def given(served: Served, prompt: str, citation: str, now: dt.datetime) -> None:
    """A hook gave a passage to an agent."""
    root, passages = served.memory.root, [Passage(citation, "hash", 0.9)]
    Journal(os.environ).add(
        host="claude", workspace=root, prompt=prompt, tokens=9, passages=passages, now=now
    )


def selected(page: Page) -> str:
    return page.locator("#hits > li[aria-selected=true]").get_attribute("data-id") or ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_view_fits_and_says_nothing_wrong(
    browser: Browser, served: Served, width: int, scheme: str
) -> None:
    with at(browser, served.port, width=width, scheme=scheme) as page:
        for name, where in VIEWS.items():
            go(page, where)
            expect(page.locator("main h1").first).to_be_attached()
            assert page.get_by_text("That did not work").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            keep(page, f"{name}-{width}-{scheme}")


@needs_axe
@pytest.mark.parametrize(
    ("width", "scheme"), [(w, s) for w in (390, 1280) for s in ("light", "dark")]
)
def test_axe_finds_nothing_serious(
    browser: Browser, served: Served, width: int, scheme: str
) -> None:
    found: dict[str, list[str]] = {}
    with at(browser, served.port, width=width, scheme=scheme) as page:
        for name, where in VIEWS.items():
            go(page, where)
            if name == "search":
                expect(page.locator(".beside[data-shown]")).to_be_attached()
            if problems := serious(page):
                found[name] = problems
    assert found == {}


def test_home_shows_what_is_remembered_and_what_needs_a_person(page: Page, served: Served) -> None:
    expect(page.locator(".figures")).to_contain_text("36")
    expect(page.locator(".heat a").first).to_be_visible()
    needs = page.get_by_role("region", name="Needs you")
    expect(needs).to_contain_text("55000")
    expect(needs).to_contain_text("40000")
    expect(page.get_by_role("region", name="Lately")).to_be_visible()
    expect(page.get_by_role("region", name="Topics")).to_contain_text("Lunch")
    expect(page.get_by_role("region", name="Topics")).to_contain_text("#sailing")
    expect(needs.locator(".said", has_text="Petrel")).to_be_visible()
    page.get_by_role("link", name=re.compile("14 Feb 2026")).click()
    expect(page.locator(".day").first).to_have_attribute("data-day", "2026-02-14")


def test_an_empty_memory_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as empty, at(browser, empty.port) as page:
        expect(page.locator(".welcome p")).to_have_count(3)
        expect(page.locator(".command")).to_contain_text("notewell")
        keep(page, "empty")


def test_a_click_trusts_the_notes_of_a_clone_and_the_question_is_gone(
    fresh: BrowserContext,
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    (tmp_path / ".svn").mkdir()
    with serving(tmp_path) as server:
        page = fresh.new_page()
        page.route("**/api/events", lambda route: route.abort())  # nothing else shows Home again
        page.goto(f"http://127.0.0.1:{server.port}/")
        expect(page.locator("#doubt")).to_contain_text("came with a clone")
        page.get_by_role("button", name="Trust them").click()
        expect(page.locator("#doubt")).to_have_count(0)
        expect(page.locator(".figures")).to_contain_text("33")


def test_hits_come_as_one_types_with_the_match_marked(page: Page) -> None:
    page.locator("#query").press_sequentially("staging port 8014")
    first = page.locator("#hits > li").first
    expect(first).to_contain_text("memory/2026-02-14.md#L3")
    marks = [m.lower() for m in first.locator("mark").all_inner_texts()]
    assert {"staging", "port", "8014"} <= set(marks)
    expect(first.locator(".sure")).to_have_text("likely")
    assert "q=staging+port+8014" in page.url


def test_the_explanation_is_always_of_the_selected_hit_and_the_first_is_selected(
    page: Page,
) -> None:
    ask(page, "staging port")
    page.locator(".why > summary").click()
    for details in ("The numbers", "All steps as a drawing"):
        page.get_by_text(details).click()
    page.locator("#hits > li").nth(3).click()
    page.fill("#query", "soup number 7")
    expect(page.locator("#hits > li").first).to_contain_text("2026-02-07")
    expect(page.locator("#hits > li").first).to_have_attribute("aria-selected", "true")
    first = selected(page)
    expect(page.locator(".why")).to_have_attribute("data-id", first)
    expect(page.locator(".why .slopes")).to_have_attribute("data-id", first)
    expect(page.locator(".why > p")).to_contain_text("of your question")
    page.locator("#query").press("ArrowDown")
    second = selected(page)
    assert second != first
    expect(page.locator(".why .slopes")).to_have_attribute("data-id", second)
    expect(page.locator(".beside")).to_have_attribute("data-shown", second)


def test_a_hit_opens_beside_the_list_at_its_line_with_what_is_before_and_after(page: Page) -> None:
    ask(page, "staging port 8014")
    expect(page.locator(".beside .target")).to_contain_text("8014")
    expect(page.locator(".beside .note")).to_contain_text("Soup number 14")
    expect(page.locator(".beside .around a").first).to_have_attribute(
        "href", re.compile("2026-02-13")
    )
    expect(page.locator(".beside .around a").last).to_have_attribute(
        "href", re.compile("2026-02-15")
    )
    page.get_by_role("link", name="Open the note").click()
    expect(page.locator(".read .target")).to_contain_text("8014")


def test_on_a_small_screen_the_passage_takes_the_place_of_the_list(
    browser: Browser, served: Served
) -> None:
    with at(browser, served.port, width=390) as page:
        ask(page, "staging port 8014")
        page.locator("#hits > li").first.click()
        expect(page.locator(".beside .target")).to_be_visible()
        expect(page.locator("#hits")).to_be_hidden()
        keep(page, "opened-390")
        page.get_by_role("button", name="Hits").click()
        expect(page.locator("#hits")).to_be_visible()


def test_why_is_a_note_missing(page: Page) -> None:
    ask(page, "staging port 8014")
    page.get_by_text("Why isn’t that here?").click()
    page.get_by_label("Path of the note").fill("memory/rtl.md")
    page.get_by_role("button", name="Tell me").click()
    expect(page.locator(".absent")).to_contain_text("memory/rtl.md")
    page.locator(".absent").get_by_text("The numbers").click()
    expect(page.locator(".absent table")).to_contain_text("by its words")
    assert not BUILDERS.search(page.inner_text(".absent"))
    page.get_by_label("Path of the note").fill("memory/none.md")
    page.get_by_role("button", name="Tell me").click()
    expect(page.locator(".absent")).to_contain_text("no note or passage is called")


def test_a_note_that_a_filter_or_the_day_leaves_out_is_said_to_be(page: Page) -> None:
    for where, reason in (
        ("&where=memory/cjk.md", "it is not in memory/cjk.md"),
        ("&as_of=2026-02-10", "it is from 2026-02-14, later than 2026-02-10"),
    ):
        go(page, f"#/search?q=staging%20port%208014{where}")
        page.get_by_text("Why isn’t that here?").click()
        page.get_by_label("Path of the note").fill("memory/2026-02-14.md")
        page.get_by_role("button", name="Tell me").click()
        expect(page.locator(".absent")).to_contain_text(reason)


def test_chips_narrow_the_hits_and_stay_in_the_address(page: Page) -> None:
    ask(page, "port")
    page.get_by_label("When", exact=True).select_option("days")
    page.get_by_label("from", exact=True).fill("2026-02-20")
    page.get_by_label("from", exact=True).press("Enter")
    expect(page.locator("#hits")).not_to_contain_text("2026-02-14")
    assert "since=2026-02-20" in page.url
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Where", exact=True).fill("memory/cjk.md")
    page.get_by_label("Where", exact=True).press("Enter")
    expect(page.locator("#hits > li")).to_have_count(1)
    page.reload()
    expect(page.locator("#hits > li")).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Who", exact=True).select_option("system")
    expect(page.locator("#hits > li")).to_have_count(0)
    expect(page.locator("#state")).to_contain_text("Nothing was found")


def test_keys_are_enough(page: Page) -> None:
    page.locator("body").press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("staging port 8014")
    expect(page.locator("#hits > li").first).to_contain_text("2026-02-14")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#hits > li").nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".beside .target")).to_contain_text("8014")
    page.keyboard.press("Enter")
    expect(page.locator(".beside .text")).to_be_focused()
    page.keyboard.press("w")
    expect(page.locator(".why > p")).to_be_visible()
    page.keyboard.press("o")
    expect(page.locator(".read .target")).to_contain_text("8014")
    expect(page.locator("#view")).to_be_focused()
    page.go_back()
    expect(page.locator(".beside .target")).to_contain_text("8014")
    page.keyboard.press("Enter")
    expect(page.locator(".beside .text")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.press("Tab")
    page.locator("body").press("h")
    expect(page.locator(".figures")).to_be_visible()
    page.locator("body").press("ArrowDown")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("t")
    expect(page.locator(".timeline")).to_be_visible()


def test_a_note_is_a_page_with_outline_links_and_neighbours(page: Page) -> None:
    go(page, "#/note/memory/links.md")
    expect(page.get_by_role("heading", level=1)).to_have_text("Links")
    expect(page.locator(".prose td").last).to_have_text("2")
    graph = page.get_by_role("group", name="Notes around this one")
    expect(graph.get_by_role("link")).to_have_count(2)
    page.locator(".prose a", has_text="2026-01-09").click()
    expect(page.locator(".prose")).to_contain_text("55000")
    expect(page.get_by_role("region", name="Links")).to_contain_text("Links")
    go(page, "#/note/memory/none.md")
    expect(page.get_by_role("alert")).to_contain_text("none.md")


def test_a_note_says_what_it_said_over_time_and_where_it_was_given_to_agents(
    page: Page, served: Served
) -> None:
    given(
        served,
        "what is the budget",
        "memory/2026-01-09.md#L3",
        dt.datetime(2026, 2, 20, 9, tzinfo=dt.UTC),
    )
    go(page, "#/note/memory/2026-01-09.md")
    versions = page.get_by_role("region", name="Over time").locator(".versions li")
    expect(versions).to_have_count(2)
    expect(versions.first).to_contain_text("40000")
    expect(versions.first).to_contain_text("until 9 Jan 2026")
    expect(versions.last).to_contain_text("55000")
    expect(versions.last).to_contain_text("now")
    agents = page.get_by_role("region", name="Given to agents")
    expect(agents).to_contain_text("what is the budget")
    agents.get_by_role("link", name="L3").click()
    expect(page.locator(".read .target")).to_contain_text("55000")


def test_a_look_back_shows_nothing_that_came_later(page: Page, served: Served) -> None:
    given(
        served,
        "what is for lunch",
        "memory/2026-02-08.md#L7",
        dt.datetime(2026, 2, 20, 9, tzinfo=dt.UTC),
    )
    Journal(os.environ).mark(Journal(os.environ).entries()[0].id)
    page.reload()
    expect(page.get_by_role("region", name="Needs you")).to_contain_text("what is for lunch")
    go(page, "#/?as_of=2026-02-10")
    expect(page.get_by_role("region", name="Lately").locator("[data-row]").first).to_have_text(
        "Day 10"
    )
    assert "lunch" not in page.inner_text("#view").replace("Lunch", "")
    assert "Not read" not in page.inner_text("#view")
    go(page, "#/note/memory/2026-02-08.md")
    expect(page.locator(".notice")).to_contain_text("shown as it is now")
    assert page.get_by_role("region", name="Given to agents").count() == 0
    go(page, "#/note/memory/2026-02-14.md")
    expect(page.locator(".notice")).to_contain_text("it was not there on 2026-02-10")
    assert "8014" not in page.inner_text("#view")


def test_a_conversation_is_read_turn_by_turn_and_stays_text(page: Page) -> None:
    ask(page, "where does the heron nest")
    expect(page.locator("#hits > li").first).to_contain_text("conversations")
    page.get_by_role("link", name="Open the note").click()
    turns = page.locator(".read .turn")
    expect(turns).to_have_count(2)
    expect(turns.first.locator(".who")).to_contain_text("user")
    expect(turns.first).to_contain_text("<b>bold</b>")
    expect(turns.last.locator("em").first).to_have_text("reeds")
    assert page.locator("#view :is(img, script, iframe, b)").count() == 0
    assert page.get_by_role("link", name="Pin").count() == 0
    keep(page, "conversation")


def test_time_goes_day_by_day_and_any_day_can_be_looked_back_from(page: Page) -> None:
    go(page, "#/time")
    days = page.locator(".day").evaluate_all("all => all.map(e => e.dataset.day)")
    assert days == sorted(days, reverse=True)
    assert "2026-02-28" in days
    page.get_by_role("link", name="as of this day, 10 Feb 2026").click()
    expect(page.locator("#past")).to_contain_text("10 February 2026")
    ask(page, "staging port 8014")
    expect(page.locator("#hits")).not_to_contain_text("2026-02-14")
    assert "as_of=2026-02-10" in page.url
    go(page, "#/time")
    expect(page.locator(".day").first).to_have_attribute("data-day", "2026-02-10")
    assert page.get_by_role("link", name="Change").count() == 0
    page.get_by_role("button", name="Back to today").click()
    expect(page.locator("#past")).to_be_hidden()
    expect(page.locator(".day").first).to_have_attribute("data-day", days[0])


def test_every_view_can_be_seen_as_of_a_day(page: Page) -> None:
    page.get_by_role("button", name="As of today").click()
    page.get_by_label("Day", exact=True).fill("2026-02-10")
    page.get_by_role("button", name="Show that day").click()
    expect(page.locator("#past")).to_be_visible()
    for name, where in VIEWS.items():
        go(page, where)
        assert "as_of=2026-02-10" in page.url, name
        expect(page.locator("#past")).to_be_visible()
        assert page.get_by_text("That did not work").count() == 0, name
        assert "2026-02-14" not in page.inner_text("#view"), name


@pytest.mark.parametrize(
    "view", ["home", "search", "read", "named", "change", "forget", "time", "laboratory"]
)
def test_a_note_full_of_markup_stays_text_everywhere(page: Page, view: str) -> None:
    where = {
        "home": "#/",
        "search": "#/search?q=walrus%20bold",
        "read": "#/note/memory/hostile.md",
        "named": f"#/note/memory/{quote(HOSTILE_NAME)}.md",
        "change": "#/change?do=correct&ref=memory/hostile.md",
        "forget": "#/change?do=forget&ref=memory/hostile.md",
        "time": "#/time",
        "laboratory": "#/lab?q=walrus",
    }[view]
    go(page, where)
    if view == "search":
        expect(page.locator(".beside .note")).to_contain_text("onerror")
    if view in ("change", "forget"):
        page.get_by_role("button", name=re.compile("^Show what will")).click()
        expect(page.locator(".preview")).to_contain_text("hostile.md")
    assert not page.title().startswith("owned")
    made = (
        "#view :is(img, script, iframe, object, embed, style, svg svg, [onerror], [onload], "
        "[style], [srcdoc])"
    )
    assert page.locator(made).count() == 0
    bad = page.locator("#view a").evaluate_all("all => all.map(a => a.getAttribute('href') || '')")
    assert [h for h in bad if not re.match(r"#/|https?://|mailto:", h)] == []


# What parsers of HTML have been fooled with; nothing of it may come through as more than words.
TRICKS = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "<svg><script>document.title='owned'</script><a xlink:href='javascript:1'>x</a></svg>",
    (
        "<math><mtext><table><mglyph><style><img src=x "
        "onerror=alert(1)></style></mglyph></table></mtext></math>"
    ),
    (
        "<a href='javascript:document.title=1'>x</a><a href=' java\tscript:1'>x</a><a "
        "href='data:text/html,x'>x</a>"
    ),
    (
        "<a href='//example.invalid/'>x</a><form action=/api/forget><button>x</button></form><base "
        "href=//example.invalid>"
    ),
    (
        "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe><object "
        "data=x></object><embed src=x>"
    ),
    (
        "<p style='position:fixed' onclick=alert(1) id=view class='skip on' data-line='1-1 "
        "onload=1'>x</p>"
    ),
    (
        "<template><img src=x onerror=1></template><noscript><p title='</noscript><img src=x "
        "onerror=1>'></noscript>"
    ),
    (
        "<meta http-equiv=refresh content='0;url=//example.invalid'><link rel=stylesheet "
        "href=//example.invalid>"
    ),
]


def test_the_page_makes_rendered_text_safe_a_second_time(browser: Browser, served: Served) -> None:
    with at(browser, served.port, attacked=True) as page:
        shown = page.evaluate(
            """async (all) => { const { rendered } = await import('/safe.js');
            return all.map(html => {
                const box = document.createElement('div'); box.append(...rendered(html));
                document.getElementById('view').append(box); return box.innerHTML; }); }""",
            TRICKS,
        )
        assert page.title() == "notewell"
    assert len(shown) == len(TRICKS)
    for made in shown:
        assert not re.search(
            r"<(script|img|svg|math|iframe|form|style|base|meta|link|object|embed|template)", made
        )
        assert not re.search(r"\s(on\w+|style|id|srcdoc|src|action)=", made)
        assert not re.search(r"href=\"(?!#/|https?://|mailto:)", made)


def test_scripts_of_the_world_read_as_they_should(page: Page) -> None:
    ask(page, "备份脚本")
    expect(page.locator("#hits > li").first).to_contain_text("备份脚本")
    assert "备份" in "".join(page.locator("#hits mark").all_inner_texts())
    page.fill("#query", "הפגישה")
    snippet = page.locator("#hits > li").first.locator(".snippet p").first
    expect(snippet).to_contain_text("שלישי")
    assert snippet.evaluate("e => getComputedStyle(e).direction") == "rtl"


def test_dark_and_light_are_chosen_and_stay(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate(colour) != light
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_every_control_has_a_name_and_news_are_spoken(page: Page) -> None:
    ask(page, "staging port")
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select, svg[role]')]
            .filter(e => e.checkVisibility()
            && !(e.textContent.trim() || e.ariaLabel || e.getAttribute('aria-labelledby')
                 || e.labels?.length
                 || e.querySelector('title'))).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.get_attribute("#state", "aria-live") == "polite"
    expect(page.locator("#query")).to_have_attribute("aria-activedescendant", "hit-0")


def test_a_note_that_is_saved_shows_by_itself(page: Page, served: Served) -> None:
    ask(page, "marketing budget for the year")
    note = served.memory.root / "memory/2026-02-28b.md"
    try:
        note.write_text(
            "# Walrus\n\nThe marketing budget for the year is for walruses.\n", encoding="utf-8"
        )
        expect(page.locator("#hits")).to_contain_text("walruses")
    finally:
        note.unlink()
    expect(page.locator("#hits")).not_to_contain_text("walruses")


@pytest.fixture
def fresh(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has been nowhere yet."""
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    yield context
    context.close()


def test_a_server_with_a_token_asks_for_it_once(fresh: BrowserContext, tmp_path: Path) -> None:
    write_notes(tmp_path)
    door = Door(token="open sesame")
    with serving(tmp_path, door=door) as guarded:
        page = fresh.new_page()
        page.goto(f"http://127.0.0.1:{guarded.port}/")
        page.get_by_label("Address or token").fill("open simsim")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("dialog")).to_contain_text("not the token of this server")
        page.get_by_label("Address or token").fill("open sesame")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator(".figures")).to_contain_text("33")
        page.reload()
        expect(page.locator(".figures")).to_contain_text("33")
        another = fresh.new_page()
        another.goto(f"http://127.0.0.1:{guarded.port}/#/time")
        expect(another.locator(".day").first).to_be_visible()
        kept = page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        )
        assert door.key in kept
        assert "sesame" not in kept, (
            "a token of one's own outlives the server, so no browser keeps it"
        )


def test_the_printed_address_opens_the_page_and_then_a_bookmark_does(
    fresh: BrowserContext,
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    door = Door()
    with serving(tmp_path, door=door) as guarded:
        bare = f"http://127.0.0.1:{guarded.port}/"
        page = fresh.new_page()
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url))
        page.goto(f"{bare}#token={door.key}")
        expect(page.locator(".figures")).to_contain_text("33")
        assert page.url == bare, "the address that is kept as a bookmark does not hold it"
        assert not any(door.key in url for url in sent)
        page.close()
        page = fresh.new_page()
        page.goto(f"{bare}#/time")
        expect(page.locator(".day").first).to_be_visible()


def test_after_a_new_start_the_page_asks_for_the_new_address(
    fresh: BrowserContext,
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    before, after = Door(), Door()
    with serving(tmp_path, door=before) as guarded:
        bare = f"http://127.0.0.1:{guarded.port}/"
        page, other = fresh.new_page(), fresh.new_page()
        for one in (page, other):
            one.goto(f"{bare}#token={before.key}")
            expect(one.locator(".figures")).to_contain_text("33")
    with serving(tmp_path, door=after, port=guarded.port):
        for one in (page, other):
            one.reload()
            expect(one.get_by_role("dialog")).to_contain_text("notewell serve printed")
        page.get_by_label("Address or token").fill(f"{bare}#token={after.key}")
        page.get_by_role("button", name="Continue").click()
        for one in (page, other):  # the other tab learns it from this one
            expect(one.locator(".figures")).to_contain_text("33")


def test_an_address_that_is_opened_in_a_tab_of_the_page_is_taken(
    fresh: BrowserContext,
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    door = Door()
    with serving(tmp_path, door=door) as guarded:
        page = fresh.new_page()
        page.goto(f"http://127.0.0.1:{guarded.port}/")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.goto(f"http://127.0.0.1:{guarded.port}/#token={door.key}")  # nothing is loaded again
        expect(page.locator(".figures")).to_contain_text("33")
        expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_address_under_localhost_leads_to_the_number(
    fresh: BrowserContext,
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    door = Door()
    with serving(tmp_path, door=door) as guarded:
        page = fresh.new_page()
        page.goto(f"http://localhost:{guarded.port}/#token={door.key}")
        expect(page.locator(".figures")).to_contain_text("33")
        assert page.url == f"http://127.0.0.1:{guarded.port}/"


def test_two_tabs_never_lose_a_line(page: Page, browser: Browser, served: Served) -> None:
    note = served.memory.root / "memory/tabs.md"

    def shown(tab_: Page, text: str) -> None:
        go(tab_, "#/change")
        tab_.get_by_label("What", exact=True).fill(text)
        tab_.get_by_label("Note", exact=True).fill("memory/tabs.md")
        tab_.get_by_role("button", name="Show what will be written").click()
        expect(tab_.locator(".diff .added", has_text=text)).to_be_visible()

    try:
        with at(browser, served.port) as other:
            shown(page, "The first tab wrote this.")
            shown(other, "The second tab wrote that.")
            other.get_by_role("button", name="Write it").click()
            expect(other.get_by_role("heading", name="Done")).to_be_visible()
            page.get_by_role("button", name="Write it").click()
            expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
            page.get_by_role("button", name="Write it").click()
            expect(page.get_by_role("heading", name="Done")).to_be_visible()
        text = note.read_text(encoding="utf-8")
        assert "The first tab wrote this." in text
        assert "The second tab wrote that." in text
    finally:
        note.unlink(missing_ok=True)


def test_an_old_address_with_a_question_still_works(browser: Browser, served: Served) -> None:
    with at(browser, served.port, "?q=staging+port+8014") as page:
        expect(page.locator("#hits > li").first).to_contain_text("2026-02-14")


def test_the_builders_words_are_only_in_the_laboratory(page: Page) -> None:
    for name, where in VIEWS.items():
        go(page, where)
        if name == "search":
            page.evaluate(
                "document.querySelectorAll('.why, .why details').forEach(d => { d.open = true; })"
            )
            expect(page.locator(".why .slopes text").first).to_be_attached()
        if name != "laboratory":
            assert BUILDERS.findall(page.inner_text("#view")) == [], name


def test_nothing_moves_for_those_who_asked_for_less_motion() -> None:
    for sheet in PAGE.glob("*.css"):
        for rule in re.findall(
            r"[^{}]*\{[^{}]*\b(?:transition|animation)\b", sheet.read_text(encoding="utf-8")
        ):
            before = sheet.read_text(encoding="utf-8").split(rule)[0]
            assert "prefers-reduced-motion: no-preference" in before.rsplit("\n", 1)[-1] + rule


def test_a_printed_note_is_only_the_note(page: Page) -> None:
    go(page, "#/note/memory/links.md")
    page.emulate_media(media="print")
    expect(page.locator("#top")).to_be_hidden()
    expect(page.locator("aside")).to_be_hidden()
    expect(page.locator(".prose")).to_be_visible()


def test_the_page_needs_no_network() -> None:
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)[a-z]", text), file.name


def test_the_modules_are_small() -> None:
    assert {
        f.name: n
        for f in PAGE.iterdir()
        if (n := len(f.read_text(encoding="utf-8").splitlines())) >= 300
    } == {}


def test_every_file_of_the_page_is_served_and_preloaded_modules_exist(served: Served) -> None:
    shell = (PAGE / "index.html").read_text(encoding="utf-8")
    for name in re.findall(r'(?:href|src)="/([a-z]+\.(?:js|css|svg))"', shell):
        assert served.get(f"/{name}").status == 200, name
    assert json.loads(served.get("/openapi.json").body)["paths"]
