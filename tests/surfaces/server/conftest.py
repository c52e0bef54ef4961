"""One browser, and a server over the notes of the page, for every module that looks at it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.surfaces.server.page_notes import write_notes
from tests.surfaces.server.served import Served, serving

if TYPE_CHECKING:  # what asks for no browser is tested without one
    from playwright.sync_api import Browser

    from tests.surfaces.server.browser import Tab


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a module."""
    from tests.surfaces.server.browser import browsing

    with browsing() as made:
        yield made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over the notes that the tests of the page look at."""
    root = tmp_path_factory.mktemp("page")
    write_notes(root)
    with serving(root) as one:
        one.memory.sync()
        yield one


@pytest.fixture(scope="module")
def one_tab(browser: Browser, served: Served) -> Iterator[Tab]:
    """A tab that is kept: it is cheaper than a new one."""
    from tests.surfaces.server.browser import tab

    with tab(browser, served.port) as made:
        yield made
