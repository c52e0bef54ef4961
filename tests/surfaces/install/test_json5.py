"""Settings files as people keep them: read whole, changed in one place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.surfaces.install.json5 import (
    loads,
    value,
    with_item,
    with_member,
    without_items,
    without_member,
)

OURS = {"command": "notewell", "args": ["mcp"]}
PATH = ["mcpServers", "notewell"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_plain_json_reads_as_json_does(value: Any) -> None:
    for indent in (None, 2):
        assert loads(json.dumps(value, indent=indent)) == value


def test_what_json5_allows_beyond_json() -> None:
    text = (
        "\ufeff// top\n{bare: 'it\\'s', $x: +1, \"y\": .5, /* in */ hex: 0xFF, far: -Infinity, "
        "list: [1, 2,],}\n"
    )
    assert loads(text) == {
        "bare": "it's",
        "$x": 1,
        "y": 0.5,
        "hex": 255,
        "far": -math.inf,
        "list": [1, 2],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{a}",
        "{a:1 b:2}",
        "[1 2]",
        "'x",
        "{} {}",
        "undefined",
        "{a:}",
        "[" * 5_000,
        '"\n',
        "{/*",
    ],
)
def test_what_is_none_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1: .* expected"):
        loads(text)


@given(st.text(alphabet="{}[],:\"'/*\\ \nab1", max_size=40))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    try:
        loads(text)
    except ValueError:
        return


COMMENTED = """// my settings
{
  // servers
  "mcpServers": {
    "other": { "command": "x" }, // keep
  },
  theme: 'dark', /* not light */
}
"""


def test_a_member_is_added_and_taken_away_with_every_comment_in_place() -> None:
    added = with_member(COMMENTED, PATH, OURS)
    assert loads(added)["mcpServers"] == {"other": {"command": "x"}, "notewell": OURS}
    assert '"other": { "command": "x" }, // keep\n    "notewell": {\n' in added
    assert with_member(added, PATH, OURS) == added
    assert without_member(added, PATH) == COMMENTED


@given(
    st.dictionaries(st.text(min_size=1), values, max_size=4), st.sampled_from([None, 1, 2, "\t"])
)
def test_adding_then_taking_away_changes_nothing_else(before: dict[str, Any], indent: Any) -> None:
    before = {k: v for k, v in before.items() if k != "mcpServers"}
    text = json.dumps(before, indent=indent)
    added = with_member(text, PATH, OURS)
    assert loads(added) == {**before, "mcpServers": {"notewell": OURS}}
    assert with_member(added, PATH, OURS) == added
    assert loads(without_member(added, PATH)) == before


@given(st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4))
def test_a_value_is_replaced_where_it_stands(before: dict[str, Any]) -> None:
    key = next(iter(before))
    text = json.dumps(before, indent=2)
    assert loads(with_member(text, [key], {"new": True})) == {**before, key: {"new": True}}


def test_an_empty_file_becomes_an_object() -> None:
    assert loads(with_member("", PATH, OURS)) == {"mcpServers": {"notewell": OURS}}
    assert without_member("", PATH) == ""
    assert without_member("{}", PATH) == "{}"


def test_a_path_through_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="mcpServers is not an object"):
        with_member('{"mcpServers": []}', PATH, OURS)


LISTED = """{
  // mine
  "hooks": {
    "Stop": [
      {"a": 1}, // one
      {"a": 2}
    ],
    "Inline": [1, 2], "Trailing": [
      3,
    ],
    "Empty": []
  }
}
"""


@pytest.mark.parametrize("name", ["Stop", "Inline", "Trailing", "New"])
def test_an_item_comes_last_and_goes_without_a_trace(name: str) -> None:
    path = ["hooks", name]
    made = with_item(LISTED, path, OURS)
    assert value(made, path) == [*(value(LISTED, path) or []), OURS]
    assert "// mine" in made
    assert "// one" in made
    assert without_items(made, path, lambda one: one == OURS) == LISTED
    assert without_items(LISTED, path, lambda one: one == OURS) == LISTED


@pytest.mark.parametrize("text", ['{"hooks": 5}', '{"hooks": {"Stop": {}}}', "[]", "5"])
def test_an_item_needs_a_list(text: str) -> None:
    assert without_items(text, ["hooks", "Stop"], lambda _: True) == text
    with pytest.raises(ValueError, match="is not"):
        with_item(text, ["hooks", "Stop"], OURS)


@given(st.lists(values, max_size=4), st.sampled_from([None, 1, 2, "\t"]), st.integers(0, 3))
def test_items_of_any_list_are_added_and_removed(items: list[Any], indent: Any, again: int) -> None:
    text = json.dumps({"x": {"list": items, "z": 1}}, indent=indent)
    made = text
    for _ in range(again + 1):
        made = with_item(made, ["x", "list"], OURS)
    assert loads(made) == {"x": {"list": [*items, *[OURS] * (again + 1)], "z": 1}}
    left = without_items(made, ["x", "list"], lambda one: one == OURS)
    assert loads(left) == ({"x": {"list": items, "z": 1}} if items else {"x": {"z": 1}})
