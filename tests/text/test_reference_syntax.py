"""The parser of references: every form has its readings, no text breaks it, and citations come back
as they were.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.reference_syntax import LONGEST, anchor_of, lines_of, parse_reference
from notewell.types import Chunk, End
from tests.growth import no_hang


@pytest.mark.parametrize(
    ("text", "name", "anchor"),
    [
        ("j625jnjoezvd", "j625jnjoezvd", ""),
        ("memory/a.md", "memory/a.md", ""),
        (" ./a.md ", "./a.md", ""),
        ("memory/a.md:13", "memory/a.md", "L13"),
        ("memory/a.md:13-14", "memory/a.md", "L13-L14"),
        ("memory/a.md#L13-L14", "memory/a.md", "L13-L14"),
        ("memory/a.md#l13-14", "memory/a.md", "L13-L14"),
        ("memory/a.md#13-14", "memory/a.md", "13-14"),
        ("memory/a.md#Two  words", "memory/a.md", "Two words"),
        ("memory/a.md#One#Two", "memory/a.md", "Two"),
        ("[[Auth]]", "Auth", ""),
        ("[[Auth#Heading|shown]]", "Auth", "Heading"),
        ("![[Auth#^block]]", "Auth", "^block"),
        ("[shown](memory/my%20notes.md#a%20b)", "memory/my notes.md", "a b"),
        ("[shown](<memory/a.md:3>)", "memory/a.md", "L3"),
        ("memory://memory/my%20notes.md", "memory/my notes.md", ""),
        ("memory://memory/c%23.md#L3-L9", "memory/c#.md", "L3-L9"),
        ("memory:///srv/notes/a.md", "/srv/notes/a.md", ""),
        ("Cafe\u0301", "Café", ""),
    ],
)
def test_the_usual_reading_of_every_form(text: str, name: str, anchor: str) -> None:
    assert parse_reference(text).usual == End(name, anchor)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("memory/10:30", End("memory/10:30")),
        ("memory/10:30:2", End("memory/10:30", "L2")),
        ("c# notes.md", End("c# notes.md")),
        ("c# notes.md#L3", End("c# notes.md", "L3")),
        ("c# notes.md:3", End("c# notes.md", "L3")),
        ("[draft] plan.md:3", End("[draft] plan.md", "L3")),
        ("memory\\sub\\a.md:3", End("memory/sub/a.md", "L3")),
        ("memory://memory/a.md:3", End("memory/a.md", "L3")),
        ("memory/two\nlines.md", End("memory/two\nlines.md")),
    ],
)
def test_a_name_with_signs_in_it_is_among_the_readings(text: str, reading: End) -> None:
    assert reading in parse_reference(text).readings


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(["[[", "]]", "#", ":", "3", "-", "/", "%00", "memory://", "\0"])
    ).map("".join)
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_read(text: str) -> None:
    reference = parse_reference(text)
    assert len(set(reference.readings)) == len(reference.readings) <= 40
    assert all(end.name and "\0" not in end.name + end.anchor for end in reference.readings)
    assert parse_reference(reference.text).readings == reference.readings, (
        "what messages show is read in the same way"
    )


@given(
    st.text(st.characters(blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=40),
    st.integers(1, 10**9),
    st.integers(0, 10**6),
)
@settings(max_examples=300, deadline=None)
def test_a_citation_comes_back(path: str, first: int, more: int) -> None:
    chunk = Chunk("a" * 12, path, "memory", first, first + more, (), "", "")
    end = next(e for e in parse_reference(chunk.citation).readings if lines_of(e.anchor))
    whole = parse_reference(path).text
    assert End(whole, end.anchor) in parse_reference(chunk.citation).readings
    assert lines_of(anchor_of(chunk.citation.rpartition("#")[2])) == (first, first + more)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "#" * 4_000,
        ":" * 4_000,
        "[[" * 2_000,
        "](" * 2_000,
        "9" * 100_000,
        "a:" + "9" * 4_000,
    ],
)
def test_a_hostile_text_is_read_fast(text: str) -> None:
    with no_hang():
        reference = parse_reference(text)
    assert bool(reference.readings) == (len(text) <= LONGEST)
