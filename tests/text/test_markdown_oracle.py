"""Blocks and their lines compared with markdown-it-py, a complete CommonMark parser.

We claim headings, fences, lists, tables and paragraphs. Quotes, rules, HTML and indented code are
paragraphs for us, since only their text matters. `ON_PURPOSE` lists where else we differ.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from notewell.text.markdown import parse

ROOT = Path(__file__).parents[2]
NOTES = sorted(ROOT.glob("tests/golden/notes/**/*.md"))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md"), *NOTES]
ORACLE = MarkdownIt("commonmark").enable("table")
KINDS = {
    "heading_open": "heading",
    "fence": "fence",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "paragraph_open": "paragraph",
    "blockquote_open": "paragraph",
    "hr": "paragraph",
    "html_block": "paragraph",
    "code_block": "paragraph",
}

Blocks = list[tuple[str, int, int]]


def ours(text: str) -> Blocks:
    return [(block.kind.value, block.start_line, block.end_line) for block in parse(text).blocks]


def theirs(text: str) -> Blocks:
    """Top-level blocks, without blank lines at their ends; lists that only their bullets tell apart
    are one.
    """
    lines = text.split("\n")
    found: Blocks = []
    for token in ORACLE.parse(text):
        if token.level or token.type not in KINDS or token.map is None:
            continue
        start, end = token.map
        while end > start + 1 and (end > len(lines) or not lines[end - 1].strip()):
            end -= 1
        kind = KINDS[token.type]
        if kind == "list" and found and found[-1][0] == "list":
            found[-1] = ("list", found[-1][1], end)
        else:
            found.append((kind, start + 1, end))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_our_documents_and_sample_notes_have_the_blocks_of_commonmark(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    front = 0
    if text.startswith("---\n"):  # front matter is not CommonMark
        front = text.index("\n---\n", 3) + len("\n---\n")
    body = "\n" * text.count("\n", 0, front) + text[front:]
    assert ours(text) == theirs(body)


WORDS = st.sampled_from(["port", "The server", "8080", "is *down*", "c#", "日本語", "x_y", "(1)"])
LINE = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
HEADING = st.builds(
    lambda n, line, end: f"{'#' * n} {line}{end}",
    st.integers(1, 6),
    LINE,
    st.sampled_from(["", " #"]),
)
SETEXT = st.builds(
    lambda line, mark: f"{line}\n{mark}", LINE, st.sampled_from(["===", "---", "-", "=  "])
)
PARAGRAPH = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
CODE = st.lists(
    st.sampled_from(
        ["# no heading", "- no item", "| a | b |", "", "x = 1", "``", "~~~", "    deep"]
    ),
    max_size=4,
)
FENCE = st.builds(
    lambda mark, code: "\n".join([mark + "py", *code, mark]), st.sampled_from(["```", "````"]), CODE
)
TABLE = st.lists(st.tuples(WORDS, WORDS), max_size=3).map(
    lambda rows: "\n".join(["| a | b |", "|---|:--|", *(f"| {a} | {b} |" for a, b in rows)])
)
ITEM = st.builds(
    lambda mark, line, rest: "\n".join([mark + line, *rest]),
    st.sampled_from(["- ", "* ", "+ "]),
    LINE,
    st.lists(
        st.sampled_from(["  more of it", "  - nested", "", "  1. inner", "lazy words"]), max_size=3
    ),
)
LIST = st.lists(ITEM, min_size=1, max_size=3).map("\n".join)
BLOCK = st.one_of(HEADING, SETEXT, PARAGRAPH, FENCE, TABLE, LIST)


@given(st.lists(BLOCK, max_size=8))
@settings(max_examples=300, deadline=None)
def test_blocks_between_blank_lines_are_those_of_commonmark(blocks: list[str]) -> None:
    text = "\n\n".join(blocks)
    assert ours(text) == theirs(text)


@given(st.lists(st.one_of(HEADING, FENCE, PARAGRAPH), max_size=8))
@settings(max_examples=200, deadline=None)
def test_headings_fences_and_paragraphs_need_no_blank_line(blocks: list[str]) -> None:
    text = "\n".join(blocks)
    assert ours(text) == theirs(text)


ON_PURPOSE = {
    "a rule inside a paragraph does not end it": ("text\n***\nmore", [("paragraph", 1, 3)]),
    "a rule of spaced stars is a list": ("* * *", [("list", 1, 1)]),
    "any number starts a list, even after a paragraph": (
        "text\n2. two",
        [("paragraph", 1, 1), ("list", 2, 2)],
    ),
    "a fence right after a list belongs to it": ("- item\n```\ncode\n```", [("list", 1, 4)]),
    "a heading ends a list even if it is indented": (
        "- item\n  # inner\n- more",
        [("list", 1, 1), ("heading", 2, 2), ("list", 3, 3)],
    ),
    "two spaces continue any item after a blank line": ("1. one\n\n  more", [("list", 1, 3)]),
    "a row of a table has a pipe": (
        "| a | b |\n|---|---|\n| 1 | 2 |\nend",
        [("table", 1, 3), ("paragraph", 4, 4)],
    ),
    "a table may have too few columns in its rule": ("| a | b |\n|---|\n| 1 |", [("table", 1, 3)]),
    "an underlined heading has at most three lines": (
        "one\ntwo\nthree\nfour\n---",
        [("paragraph", 1, 4), ("paragraph", 5, 5)],
    ),
    "a heading inside HTML is a heading": (
        "<div>\n# x\n</div>",
        [("paragraph", 1, 1), ("heading", 2, 2), ("paragraph", 3, 3)],
    ),
    "a link definition is text": (
        "[a]: http://b\n\ntext",
        [("paragraph", 1, 1), ("paragraph", 3, 3)],
    ),
}


@pytest.mark.parametrize("difference", ON_PURPOSE)
def test_where_we_differ_from_commonmark_it_is_on_purpose(difference: str) -> None:
    text, blocks = ON_PURPOSE[difference]
    assert ours(text) == blocks
    assert theirs(text) != blocks, "no longer a difference"
