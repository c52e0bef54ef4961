"""Markdown to blocks: kinds, exact lines, heading paths and front matter."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.markdown import list_items, parse, split_lines
from notewell.types import BlockKind

PIECES = (
    "",
    "",
    "   ",
    "text",
    "more text: here",
    "# One",
    "## Two ##",
    "#",
    "===",
    "---",
    "- item",
    "  - nested",
    "1. first",
    "  indented",
    "```",
    "```py",
    "~~~",
    "````",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "***",
    "\tcode",
    "a ```b``` c",
)


def kinds(text: str) -> list[tuple[str, int, int]]:
    return [(b.kind.value, b.start_line, b.end_line) for b in parse(text).blocks]


def test_a_document_of_every_kind() -> None:
    text = (
        "# Title\n\nOne paragraph\nof two lines.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 "
        "| 2 |\n\n```\nx\n```\n"
    )
    assert kinds(text) == [
        ("heading", 1, 1),
        ("paragraph", 3, 4),
        ("list", 6, 7),
        ("table", 9, 11),
        ("fence", 13, 15),
    ]


def test_headings_make_a_path_and_a_higher_one_ends_it() -> None:
    blocks = parse("# A\n## B\ntext\n### C ###\ntext\n## D\ntext\n# E\ntext").blocks
    paths = [b.heading for b in blocks if b.kind is BlockKind.PARAGRAPH]
    assert paths == [("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",)]


def test_a_heading_needs_a_space_and_at_most_six_signs() -> None:
    assert kinds("#tag and\n####### seven") == [("paragraph", 1, 2)]
    assert parse("   ## Indented").blocks[0].heading == ("Indented",)
    assert parse("# C#").blocks[0].heading == ("C#",)
    assert parse("#").blocks[0].heading == ("",)


def test_underlined_headings() -> None:
    parsed = parse("Title\n=====\ntext\n\nSection\n---\nmore")
    assert [(b.kind.value, b.start_line, b.end_line, b.heading) for b in parsed.blocks] == [
        ("heading", 1, 2, ("Title",)),
        ("paragraph", 3, 3, ("Title",)),
        ("heading", 5, 6, ("Title", "Section")),
        ("paragraph", 7, 7, ("Title", "Section")),
    ]


def test_a_rule_after_a_blank_line_is_no_heading() -> None:
    assert all(b.kind is not BlockKind.HEADING for b in parse("text\n\n---\n\ntext").blocks)


def test_a_fence_keeps_what_looks_like_markdown() -> None:
    assert kinds("~~~\n# no heading\n- no list\n```\n~~~\nafter") == [
        ("fence", 1, 5),
        ("paragraph", 6, 6),
    ]


def test_a_longer_fence_holds_a_shorter_one() -> None:
    assert kinds("````\n```\nx\n```\n````\n# H") == [("fence", 1, 5), ("heading", 6, 6)]


def test_an_unclosed_fence_ends_with_the_text() -> None:
    assert kinds("```py\nx = 1\n\n# comment\n\n\n") == [("fence", 1, 4)]


def test_code_in_one_line_opens_no_fence() -> None:
    assert kinds("```x = 1``` is code\n\n# H") == [("paragraph", 1, 1), ("heading", 3, 3)]


def test_a_table_needs_its_rule() -> None:
    assert kinds("a | b\n--|--\n1 | 2\nend") == [("table", 1, 3), ("paragraph", 4, 4)]
    assert kinds("a | b\n1 | 2") == [("paragraph", 1, 2)]


def test_a_list_spans_blank_lines_and_indented_text() -> None:
    parsed = parse("1. one\n\n   more of one\n   - nested\n2. two\n   ```\n# code\n   ```\n\nafter")
    assert [(b.kind.value, b.start_line, b.end_line) for b in parsed.blocks] == [
        ("list", 1, 8),
        ("paragraph", 10, 10),
    ]
    assert list_items(parsed.lines, parsed.blocks[0]) == [(1, 4), (5, 8)]


def test_lines_are_counted_as_editors_do() -> None:
    assert split_lines("a\r\nb\rc\nd") == ["a", "b", "c", "d"]
    assert split_lines("a\x0bb\x0cc\u2028d\x85e") == ["a\x0bb\x0cc\u2028d\x85e"]


def test_line_ends_change_no_block() -> None:
    text = "---\ntitle: x\n---\n# A\n\ntext\n\n```\ncode\n```\n- one\n- two\n"
    assert parse(text) == parse(text.replace("\n", "\r\n")) == parse(text.replace("\n", "\r"))


def test_front_matter_values() -> None:
    parsed = parse(
        "---\nTitle: \"A: B\"\ntags: [x, 'y', ]\nlinks:\n  - a\n  - b\nempty:\n# a comment\n---\n"
        "body"
    )
    assert parsed.front == {"title": "A: B", "tags": ("x", "y"), "links": ("a", "b"), "empty": ""}
    assert [(b.start_line, b.end_line) for b in parsed.blocks] == [(10, 10)]


def test_front_matter_opens_the_text_and_is_closed() -> None:
    assert parse("\n---\na: b\n---\n").front == {}
    assert parse("---\na: b\n").front == {}


def test_prose_between_two_rules_is_no_front_matter() -> None:
    parsed = parse("---\nKeep this: it matters.\nA sentence.\n---\nafter")
    assert parsed.front == {}
    assert {n for b in parsed.blocks for n in range(b.start_line, b.end_line + 1)} == {
        1,
        2,
        3,
        4,
        5,
    }


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=25),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
@settings(max_examples=300, deadline=None)
def test_every_line_with_text_is_in_exactly_one_block(pieces: list[str], end: str) -> None:
    parsed = parse(end.join(["intro", *pieces]))  # "intro": no front matter
    seen = [n for block in parsed.blocks for n in range(block.start_line, block.end_line + 1)]
    assert seen == sorted(set(seen))
    missed = [n for n, line in enumerate(parsed.lines, 1) if line.strip() and n not in set(seen)]
    assert missed == []
    assert all(
        parsed.lines[b.start_line - 1].strip() and parsed.lines[b.end_line - 1].strip()
        for b in parsed.blocks
    )


@given(st.lists(st.sampled_from(PIECES), max_size=25))
@settings(max_examples=200, deadline=None)
def test_items_of_a_list_cover_its_text(pieces: list[str]) -> None:
    parsed = parse("\n".join(["intro", *pieces]))
    for block in parsed.blocks:
        if block.kind is BlockKind.LIST:
            items = list_items(parsed.lines, block)
            inside = {n for first, last in items for n in range(first, last + 1)}
            lines = range(block.start_line, block.end_line + 1)
            assert all(n in inside for n in lines if parsed.lines[n - 1].strip())
            assert all(a[1] < b[0] for a, b in pairwise(items))
