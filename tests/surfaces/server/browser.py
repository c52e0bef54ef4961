"""A real browser at the page: it fails a test for whatever the browser objects to or sends
elsewhere.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
SCREENS = Path(__file__).parents[3] / "build" / "screens"
AXE = Path(sys.prefix) / "node_modules/axe-core/axe.min.js"
WAIT_MS = 60_000
_VISITS = itertools.count(1)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium"
)
needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason="needs axe-core from npm: make .venv/.ready-browser"
)


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """One browser for a module: starting it takes longer than most tests."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield made
        made.close()


@dataclass(frozen=True)
class Tab:
    """A tab at one server, and what the browser objected to."""

    page: Page
    own: str
    trouble: list[str]

    @contextlib.contextmanager
    def fresh(self, where: str = "") -> Iterator[Page]:
        """The page as somebody sees it who opens it for the first time; a tab is cheaper to keep
        than to make.
        """
        # another address loads the page again
        mark = "" if where.startswith("?") else f"?visit={next(_VISITS)}"
        self.page.goto(self.own + mark + where)
        ready(self.page)
        yield self.page
        assert self.trouble == [], self.trouble
        self.page.emulate_media(media="screen")
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")


@contextlib.contextmanager
def tab(
    browser: Browser, port: int, *, width: int = 1280, scheme: Any = "light", attacked: bool = False
) -> Iterator[Tab]:
    """A tab of a fresh browser; `attacked` expects that the browser reports what its policy
    blocked.
    """
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(WAIT_MS)
    made = Tab(context.new_page(), f"http://127.0.0.1:{port}/", [])
    # A refusal that the page shows in words is also an entry in the browser's own log.
    expected = [
        "status of 404",
        "status of 409",
        "status of 400",
        *(["Content Security Policy"] if attacked else []),
    ]

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(
            part in message.text for part in expected
        ):
            made.trouble.append(message.text)

    made.page.on("console", said)
    made.page.on("pageerror", lambda e: made.trouble.append(str(e)))
    made.page.on(
        "request",
        lambda r: None if r.url.startswith(made.own) else made.trouble.append(f"asked {r.url}"),
    )
    yield made
    context.close()


@contextlib.contextmanager
def at(browser: Browser, port: int, where: str = "", **how: Any) -> Iterator[Page]:
    """The page of a server in a tab of its own, ready to use."""
    with tab(browser, port, **how) as made, made.fresh(where) as page:
        yield page


def ready(page: Page) -> None:
    """Waits until the view that the address names is shown."""
    page.wait_for_function("() => document.getElementById('view').dataset.ready === location.hash")


def go(page: Page, where: str) -> None:
    """Goes to another view, as a link would."""
    page.evaluate(
        "where => { document.getElementById('view').dataset.ready = '?'; location.hash = where; }",
        where,
    )
    page.wait_for_function("() => document.getElementById('view').dataset.ready !== '?'")


def serious(page: Page) -> list[str]:
    """What axe-core finds serious or worse on the page as it is now."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
            .filter(v => v.impact === 'serious' || v.impact === 'critical')
            .map(v => v.id + v.nodes.slice(0, 3)
                .map(n => `\\n${n.target} ${n.any.map(a => a.message)}`).join(''))"""
    )
    return list(found)


def keep(page: Page, name: str) -> None:
    """Keeps a picture in build/screens."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SCREENS / f"{name}.png"))
