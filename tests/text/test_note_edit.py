from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from notewell.text.markdown import front_matter, parse, split_lines
from notewell.text.note_edit import (
    Insertion,
    cut,
    insertion,
    keep_ends,
    nested,
    tidy,
    with_front,
    with_tags,
)

LINES = st.sampled_from(
    [
        "",
        "",
        "a line",
        "# Title",
        "## H",
        "### Sub",
        "- item",
        "  more of it",
        "1. one",
        "```py",
        "```",
        "~~~",
        "---",
        "| a | b |",
        "| - | - |",
        "中文笔记",
        "한국어 메모",
        "> quote",
        "  ",
        "key: value",
        "\ttab",
        "***",
        "* star",
    ]
)
ENTRIES = st.one_of(
    st.lists(LINES, min_size=1, max_size=6).map("\n".join),
    st.text(min_size=1, max_size=80),
)


@st.composite
def notes(draw: st.DrawFn) -> str:
    eol = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = eol.join(draw(st.lists(LINES, max_size=12)))
    return text + (eol if text and draw(st.booleans()) else "")


def put(text: str, found: Insertion) -> str:
    return text[: found.offset] + found.text + text[found.offset :]


def test_lines_keep_their_ends() -> None:
    text = "a\r\nb\rc\n\nd"
    assert keep_ends(text) == ["a\r\n", "b\r", "c\n", "\n", "d"]
    assert "".join(keep_ends(text)) == text


@given(
    notes(),
    ENTRIES,
    st.sampled_from(["", "H", "Sub", "New"]),
    st.sampled_from(["", "14:05"]),
    st.booleans(),
)
@example("## H\n", "x", "H", "", False)
@example("a", "x", "", "14:05", False)
@example("---\nopen: 1\n", "---\nb", "", "", False)
@example("- item\n~~~\n## H", "1. one", "", "", True)
def test_what_goes_in_comes_out_again_to_the_byte(
    text: str, given: str, heading: str, own: str, bullets: bool
) -> None:
    entry = tidy(given)
    assume(entry.strip())
    found = insertion(text, entry, heading=heading, own_heading=own, bullets=bullets)
    new = put(text, found)
    there = split_lines(new)[found.start_line - 1 : found.end_line]
    bare = [line.strip().removeprefix("- ").strip() for line in there]
    assert bare == [line.strip().removeprefix("- ").strip() for line in entry.split("\n")]
    assert parse(new).front == parse(text).front, "nothing that was text becomes front matter"
    assert (
        text == ""
        or new.endswith(("\n", "\r")) == text.endswith(("\n", "\r"))
        or found.offset < len(text)
    )
    assert {c for c in new if c in "\r\n"} <= ({c for c in text if c in "\r\n"} or {"\n"})
    # above an underlined heading one blank line stays
    assume(not found.text.endswith(("\n\n", "\r\r", "\r\n\r\n")))
    assert cut(new, found.start_line, found.end_line) == text


def test_text_goes_to_the_end_of_its_section_and_not_into_the_next() -> None:
    text = "# T\n\n## Decisions\n\nfirst\n\n### Detail\n\nx\n\n## Other\n\ny\n"
    new = put(text, insertion(text, "second", heading="decisions"))
    assert new == "# T\n\n## Decisions\n\nfirst\n\nsecond\n\n### Detail\n\nx\n\n## Other\n\ny\n"
    assert [
        b.heading for b in parse(new).blocks if "second" in parse(new).lines[b.start_line - 1]
    ] == [("T", "Decisions")]


def test_a_missing_heading_is_made_at_the_end() -> None:
    assert put("a\n", insertion("a\n", "b", heading="New")) == "a\n\n## New\nb\n"
    assert put("", insertion("", "b", heading="New")) == "## New\nb\n"


def test_a_list_goes_on_as_a_list_with_its_line_ends() -> None:
    text = "# Memory\r\n\r\n- one\r\n"
    assert put(text, insertion(text, "two\nlines", bullets=True)) == text + "- two\r\n  lines\r\n"
    assert put("- a", insertion("- a", "b")) == "- a\n- b"
    assert put("- a\n", insertion("- a\n", "- b")) == "- a\n- b\n"
    assert put("- a\n", insertion("- a\n", "```\ncode\n```")) == "- a\n\n```\ncode\n```\n"


def test_an_underlined_heading_does_not_take_the_entry_in() -> None:
    text = "## H\nNext\n====\nbody\n"
    new = put(text, insertion(text, "entry", heading="H"))
    assert ("Next",) in [b.heading for b in parse(new).blocks]


def test_text_is_tidied_before_it_is_written() -> None:
    assert tidy("\n\n a\x00\x07b\r\nc\x1b[31m  \n\n") == " ab\nc[31m"
    assert tidy("```py\nx = 1") == "```py\nx = 1\n```"
    assert tidy("~~~~\n~~~\n~~~~") == "~~~~\n~~~\n~~~~"
    assert tidy(" \n\t\n") == ""
    assert set(tidy("\ud800")) == {"�"}


@given(st.text())
def test_tidied_text_stays_as_it_is(text: str) -> None:
    assert tidy(tidy(text)) == tidy(text)
    assert not set(tidy(text)) & set(map(chr, (*range(9), 11, 12, *range(14, 32))))


@pytest.mark.parametrize(
    ("text", "tags", "wanted"),
    [
        ("a", ["ops", "#deploy day", ""], "a #ops #deploy-day"),
        ("a\nb", ["ops", "ops"], "a\nb\n\n#ops"),
        ("a", [" "], "a"),
    ],
)
def test_tags_stand_at_the_end(text: str, tags: list[str], wanted: str) -> None:
    assert with_tags(text, tags) == wanted


def test_a_heading_goes_with_its_only_text_and_stays_with_more() -> None:
    assert cut("# T\n\n## 14:05\nx\n\n## 15:00\ny\n", 4, 4) == "# T\n\n## 15:00\ny\n"
    assert cut("# T\n\n## A\nx\n\ny\n", 4, 4) == "# T\n\n## A\n\ny\n"
    assert cut("# T\n\n## A\nx\n### B\ny\n", 4, 4) == "# T\n\n## A\n### B\ny\n"
    assert cut("# T\nx\n", 2, 2) == "# T\n"


@pytest.mark.parametrize(
    ("text", "least", "wanted"),
    [
        ("# A\n\ntext\n\n## B", 2, "## A\n\ntext\n\n### B"),
        ("## A\n\n### B", 2, "## A\n\n### B"),
        ("text\n\n# A\n\n###### deep", 3, "text\n\n### A\n\n###### deep"),
        ("```\n# a comment\n```\n\n# A", 2, "```\n# a comment\n```\n\n## A"),
        ("#tag is no heading", 3, "#tag is no heading"),
    ],
)
def test_headings_of_an_entry_go_under_the_one_it_is_put_under(
    text: str, least: int, wanted: str
) -> None:
    assert nested(text, least) == wanted
    assert nested(wanted, least) == wanted


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("# A\n", "---\npinned: true\n---\n# A\n"),
        ("", "---\npinned: true\n---\n"),
        ("---\ntitle: A\n---\n# A\n", "---\ntitle: A\npinned: true\n---\n# A\n"),
        ("---\nPinned : no\ntitle: A\n---\n", "---\ntitle: A\npinned: true\n---\n"),
        ("---\r\ntitle: A\r\n---\r\n# A", "---\r\ntitle: A\r\npinned: true\r\n---\r\n# A"),
        (
            "---\nprose between rules\n---\n",
            "---\npinned: true\n---\n---\nprose between rules\n---\n",
        ),
    ],
)
def test_a_key_of_front_matter_is_set_once(text: str, made: str) -> None:
    assert with_front(text, "pinned", "true") == made
    assert with_front(made, "pinned", "true") == made


@given(st.text(alphabet="a-: \n\r#", max_size=40))
def test_a_key_that_is_set_is_read_and_taken_out_again(text: str) -> None:
    made = with_front(text, "pinned", "true")
    assert parse(made).front["pinned"] == "true"
    back = with_front(made, "pinned", "")
    assert "pinned" not in parse(back).front
    if not front_matter(split_lines(text))[1]:
        assert back == text
