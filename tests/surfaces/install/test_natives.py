"""The setting of Hermes in YAML as people keep it: one line changed, the others as they were."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from notewell.surfaces.install.natives import _chosen, _unchosen

LINES = st.sampled_from(
    [
        "model: x",
        "memory:",
        "memory: # mine",
        "  provider: honcho",
        "  provider:",
        "    limit: 3",
        "  # note",
        "",
        "other:",
        "memory: {a: 1}",
        "\tprovider: y # z",
        "- item",
        "memory_limit: 3",
        "provider: top",
    ]
)


@given(st.lists(LINES, max_size=8), st.booleans())
def test_one_line_changes_and_changes_back(lines: list[str], ends: bool) -> None:
    assume(sum(line.startswith("memory:") for line in lines) <= 1)  # a key comes once
    before = "\n".join(lines) + ("\n" if ends and lines else "")
    try:
        made = _chosen(before, "notewell")
    except ValueError:
        assert "memory: {a: 1}" in lines
        return
    assert made.count("notewell") == 1
    assert _chosen(made, "notewell") == made
    kept = [line for line in made.splitlines() if "notewell" not in line]
    lost = [line for line in before.splitlines() if line not in kept]
    assert all("provider" in line for line in lost)
    after = _unchosen(made, before)
    assert "notewell" not in after
    assert [one.rstrip() for one in after.splitlines() if one.strip()] == [
        one for one in lines if one.strip()
    ]


@given(st.text(max_size=60))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    try:
        assert "notewell" in _chosen(text, "notewell")
        _unchosen(text, text)
    except ValueError:
        assert "memory:" in text
