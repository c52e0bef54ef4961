"""Hostile input at every door: no crash, no hang, no SQL error. What was found stays here as an
example.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, memory
from tests.growth import no_hang

LONG = int(os.environ.get("FUZZ_INPUTS", "1000000"))  # over all targets
MOST_S = 1.0
_SHARES = sum(t.share for t in TARGETS.values())


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    memory().close()
    memory.cache_clear()


def feed(name: str, *values: Any) -> None:
    """One input, which no target may hang over."""
    with no_hang():
        TARGETS[name].call(*values)


def measured(name: str, *values: Any) -> float:
    """One input and what it took, counted in the time of this thread, which a busy machine does not
    change.
    """
    for _ in range(3):  # what takes too long does so every time
        begun = time.thread_time()
        TARGETS[name].call(*values)
        took = time.thread_time() - begun
        if took < MOST_S:
            break
    assert took < MOST_S, f"{took:.1f} s"
    return took


@pytest.mark.parametrize("name", TARGETS)
def test_made_of_hostile_pieces(name: str) -> None:
    chance = Random(name)
    for _ in range(max(30, int(250 * TARGETS[name].share))):
        feed(name, *TARGETS[name].make(chance))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
OF_TEXT = sorted(
    set(TARGETS) - {"transcript records", "values of exports", "settings", "arguments of calls"}
)


@given(
    name=st.sampled_from(OF_TEXT), text=st.text(st.characters(codec=None, exclude_categories=()))
)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text(name: str, text: str) -> None:
    feed(name, text)


@given(name=st.sampled_from(["search", "get", "why", "status"]), given=JSON)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_value(name: str, given: Any) -> None:
    feed("transcript records", given)
    feed("values of exports", given)
    feed("arguments of calls", name, given)


FOUND: list[tuple[str, tuple[Any, ...]]] = [
    ("settings", ("9" * 5000, "limit")),
    ("settings", ("[" * 5000, "limit")),
    ("settings", ("a." * 3000 + "b = 1", "limit")),
    ("path filters", ("[" * 20_000,)),
    ("references", ("memory/2026-02-01.md:" + "9" * 5000,)),
    ("references", ("memory/2026-02-01.md#L" + "9" * 5000,)),
    ("values of exports", ({"permalink": "a", "content": "a" + "\0" * 60},)),
    ("prompts of hooks", ("password= " + "OR" * 60 + "\u010b",)),
]


@pytest.mark.parametrize(("name", "values"), FOUND, ids=range(len(FOUND)))
def test_what_was_found(name: str, values: tuple[Any, ...]) -> None:
    feed(name, *values)


def inputs(name: str) -> int:
    """How many inputs of the campaign are a target's; together they are never fewer than asked
    for.
    """
    return int(LONG * TARGETS[name].share / _SHARES) + 1


def test_the_campaign_is_as_long_as_it_says() -> None:
    assert sum(inputs(name) for name in TARGETS) >= LONG


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", TARGETS)
def test_a_million_inputs(name: str) -> None:
    seed = os.environ.get("FUZZ_SEED", "1")
    chance = Random(f"{name} {seed}")
    begun = time.monotonic()
    fed, longest_s = 0, 0.0
    for _ in range(inputs(name)):
        values = TARGETS[name].make(chance)
        try:
            longest_s = max(longest_s, measured(name, *values))
        except Exception as error:
            raise AssertionError(f"{name} with {values!r}") from error
        fed += 1
    assert fed == inputs(name)
    took_s = time.monotonic() - begun
    report = {
        "target": name,
        "inputs": fed,
        "took_s": round(took_s),
        "longest_ms": round(longest_s * 1000),
    }
    print(json.dumps(report))  # noqa: T201 - the report of a long run, shown by `pytest -rP`
