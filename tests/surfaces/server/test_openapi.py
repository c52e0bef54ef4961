"""The API against its own document: whatever schemathesis thinks of is answered as the document
says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from notewell.surfaces.server import openapi
from notewell.surfaces.server.calls import CALLS
from notewell.surfaces.server.page_calls import PAGE_CALLS
from tests.surfaces.server.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("fuzzed")
    (root / "memory").mkdir()
    (root / "memory/2026-02-10.md").write_text(
        "# Standup\n\nThe staging port is 8081 now.\n", encoding="utf-8"
    )
    with serving(root) as one:
        yield one


schema = schemathesis.openapi.from_dict(openapi.document([*CALLS.values(), *PAGE_CALLS.values()]))


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_route_keeps_its_word(case: Any, served: Served) -> None:
    # A date or a stage is a text that must also make sense, which no schema can say.
    beyond = [schemathesis.checks.CHECKS.get_one("positive_data_acceptance")]
    case.call_and_validate(base_url=f"http://127.0.0.1:{served.port}", excluded_checks=beyond)
