"""Blocks to passages: bounded, exact in their lines, whole where they fit, stable under edits."""

from __future__ import annotations

import random
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.chunk import ChunkSize, Passage, chunk, pieces
from notewell.text.markdown import Parsed, parse
from notewell.text.words import count_tokens
from notewell.types import BlockKind

SMALL = ChunkSize(tokens=60, overlap=12)
SLACK = 1  # a line end between the pieces of a long line and the next line

WORDS = (
    "alpha",
    "beta",
    "gamma.",
    "delta,",
    "epsilon!",
    "zeta;",
    "東京都の夜景。",
    "привет",
    "한국어",
    "naïve",
    "👩\u200d💻",
    "https://example.com/a/b",
)
PIECES = st.one_of(
    st.sampled_from(
        [
            "",
            "",
            " ",
            "# One",
            "## Two",
            "### Three",
            "- item",
            "  - nested",
            "```",
            "| a | b |",
            "|--|--|",
        ]
    ),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=60).map(" ".join),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=25).map(lambda w: "- " + " ".join(w)),
    st.text(alphabet="漢字かな。", min_size=1, max_size=120),
    st.integers(1, 500).map(lambda n: "x" * n),
    st.text(max_size=30),
)
TEXTS = st.lists(PIECES, max_size=20).map("\n".join)
SIZES = st.sampled_from([SMALL, ChunkSize(60, 0), ChunkSize(120, 30), ChunkSize()])


def prose(paragraphs: int, *, seed: int = 0, sentences: int = 4) -> list[str]:
    """Paragraphs of made-up sentences, no two alike."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"

    def sentence() -> str:
        return (
            " ".join(
                "".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(12)
            ).capitalize()
            + "."
        )

    return [" ".join(sentence() for _ in range(sentences)) for _ in range(paragraphs)]


def lines_of(parsed: Parsed, passage: Passage) -> str:
    return "\n".join(parsed.lines[passage.start_line - 1 : passage.end_line])


def shared(one: str, other: str) -> str:
    """The longest end of one text that begins the other."""
    return next(
        (other[:n] for n in range(min(len(one), len(other)), 0, -1) if one.endswith(other[:n])), ""
    )


@given(TEXTS, SIZES, st.booleans())
@settings(max_examples=150, deadline=None)
def test_passages_are_bounded_exact_and_leave_nothing_out(
    text: str, size: ChunkSize, entries: bool
) -> None:
    parsed = parse(text)
    passages = chunk(parsed, size, entries=entries)
    for passage in passages:
        assert passage.text.strip()
        assert count_tokens(passage.text) <= size.tokens + SLACK
        squeezed = "\n".join(line if line.strip() else "" for line in passage.text.split("\n"))
        exact = "\n".join(
            line if line.strip() else "" for line in lines_of(parsed, passage).split("\n")
        )
        assert squeezed in exact
    covered = {n for p in passages for n in range(p.start_line, p.end_line + 1)}
    body = [b for b in parsed.blocks if b.kind is not BlockKind.HEADING]
    for number in (n for b in body for n in range(b.start_line, b.end_line + 1)):
        assert number in covered or not parsed.lines[number - 1].strip()


@given(TEXTS, SIZES)
@settings(max_examples=100, deadline=None)
def test_every_word_of_the_body_is_in_a_passage(text: str, size: ChunkSize) -> None:
    parsed = parse(text)
    found = "".join("".join(p.text.split()) + "\n" for p in chunk(parsed, size))
    body = [b for b in parsed.blocks if b.kind is not BlockKind.HEADING]
    for number in (n for b in body for n in range(b.start_line, b.end_line + 1)):
        for word in parsed.lines[number - 1].split():
            if count_tokens(word) < 8:
                assert word in found


def test_a_short_section_is_one_passage() -> None:
    assert chunk(parse("# A\n\none\n\n- two\n- three\n")) == [
        Passage(3, 6, ("A",), "one\n\n- two\n- three")
    ]


def test_the_heading_path_is_on_each_passage_and_before_what_a_model_sees() -> None:
    (passage,) = chunk(parse("# Project\n## Database\nWe chose SQLite."))
    assert passage.heading == ("Project", "Database")
    assert passage.text == "We chose SQLite."
    assert passage.embed_text == "Project > Database\nWe chose SQLite."


def test_a_heading_without_a_body_is_a_passage_of_its_own() -> None:
    passages = chunk(parse("# A\n## Empty\n## Full\ntext\n# Last"))
    assert [(p.text, p.heading) for p in passages] == [
        ("## Empty", ("A", "Empty")),
        ("text", ("A", "Full")),
        ("# Last", ("Last",)),
    ]


def test_equal_content_under_equal_headings_has_one_hash() -> None:
    one, other = chunk(parse("# A\ntext")), chunk(parse("\n\n# A\n\ntext"))
    elsewhere = chunk(parse("# B\ntext"))
    assert one[0].content_hash == other[0].content_hash != elsewhere[0].content_hash


def test_lines_are_exact_with_windows_line_ends() -> None:
    text = "# A\r\n\r\n" + "\r\n\r\n".join(prose(30))
    parsed = parse(text)
    passages = chunk(parsed)
    assert len(passages) > 3
    assert all(p.text in lines_of(parsed, p) for p in passages)
    assert passages == chunk(parse(text.replace("\r\n", "\n")))


def test_neighbours_share_some_text_and_at_most_the_overlap() -> None:
    passages = chunk(parse("\n\n".join(prose(80, sentences=1))))
    overlaps = [shared(a.text, b.text) for a, b in pairwise(passages)]
    assert len(overlaps) > 3
    assert all(overlaps)
    assert all(count_tokens(text) <= ChunkSize().overlap for text in overlaps)


def test_without_overlap_nothing_is_said_twice() -> None:
    passages = chunk(parse("\n\n".join(prose(40, sentences=1))), ChunkSize(tokens=200, overlap=0))
    lines = [n for p in passages for n in range(p.start_line, p.end_line + 1)]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    "block",
    [
        "\n".join(f"- point number {i} of the list" for i in range(30)),
        "| key | value |\n|---|---|\n" + "\n".join(f"| row {i} | some value |" for i in range(30)),
        "```python\n" + "\n".join(f"print('line {i}')\n" for i in range(30)) + "```",
    ],
    ids=["list", "table", "fence"],
)
@pytest.mark.parametrize("before", range(1, 6))
def test_a_block_that_fits_stays_whole(block: str, before: int) -> None:
    text = "\n\n".join([*prose(before), block, *prose(5, seed=1)])
    assert any(block in p.text for p in chunk(parse(text)))


def test_a_long_list_is_cut_between_items() -> None:
    items = [f"- {text}" for text in prose(40, sentences=1)]
    passages = chunk(parse("\n".join(items)))
    assert len(passages) > 3
    assert all(set(p.text.split("\n")) <= set(items) for p in passages)


def test_entries_are_the_top_level_items() -> None:
    text = "# Facts\nIntro.\n- Anna likes tea\n  - green\n- Ben likes coffee\n\nOutro."
    assert [(p.text, p.start_line, p.end_line) for p in chunk(parse(text), entries=True)] == [
        ("Intro.", 2, 2),
        ("- Anna likes tea\n  - green", 3, 4),
        ("- Ben likes coffee", 5, 5),
        ("Outro.", 7, 7),
    ]


def changed(before: str, after: str) -> list[int]:
    """Which passages of a text are not those of the text before the edit."""
    known = {p.content_hash for p in chunk(parse(before))}
    passages = chunk(parse(after))
    assert len(passages) > 10
    return [i for i, p in enumerate(passages) if p.content_hash not in known]


@pytest.mark.parametrize("joint", ["\n", "\n\n"])
def test_a_line_at_the_top_moves_no_border_below(joint: str) -> None:
    texts = [joint.join(prose(120, seed=seed, sentences=2)) for seed in range(25)]
    fresh = [changed(text, f"A new first line.{joint}{text}") for text in texts]
    assert all(set(places) <= {0, 1, 2, 3} for places in fresh)  # the rest of the file, never
    # a border that must wait for room is rare
    assert sum(set(places) <= {0, 1} for places in fresh) >= 23


def test_an_edit_in_the_middle_changes_its_neighbourhood_only() -> None:
    for seed in range(25):
        paragraphs = prose(120, seed=seed, sentences=2)
        edited = [*paragraphs[:60], "Rewritten.", *paragraphs[61:]]
        assert len(changed("\n\n".join(paragraphs), "\n\n".join(edited))) <= 4


@pytest.mark.parametrize(
    "grapheme",
    ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301\u0323", "\u1112\u1161\u11ab", "❤️", "क्षि", "ก็"],
    ids=["family", "flag", "skin", "marks", "jamo", "variation", "devanagari", "thai"],
)
def test_no_character_is_cut_in_two(grapheme: str) -> None:
    line = grapheme * 400
    passages = chunk(parse(line), ChunkSize(tokens=50, overlap=0))
    assert len(passages) > 3
    assert "".join(p.text for p in passages) == line
    for passage in passages:
        first = passage.text[0]
        assert not unicodedata.category(first).startswith("M")
        assert first not in "\u200d\u1161\u11ab🏽"
        if grapheme in ("🇩🇪", "👍🏽", "\u1112\u1161\u11ab"):
            assert passage.text == grapheme * (len(passage.text) // len(grapheme))


def test_a_long_line_is_cut_after_sentences() -> None:
    (line,) = prose(1, sentences=60)
    passages = chunk(parse(line))
    assert len(passages) > 1
    assert all(p.text.rstrip().endswith(".") and p.text[0].isupper() for p in passages)


def test_many_blank_lines_make_no_long_passage() -> None:
    for gap in ("\n" * 3000, "\n" + " " * 3000 + "\n"):
        passages = chunk(parse(f"one{gap}two{gap}three"))
        assert [p.text for p in passages] == ["one", "two", "three"]


def test_a_line_of_spaces_makes_no_empty_passage() -> None:
    passages = chunk(parse("x" + " " * 20_000 + "y"))
    assert all(p.text.strip() for p in passages)


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_nothing_makes_nothing(text: str) -> None:
    assert chunk(parse(text)) == []


def test_a_note_that_is_only_front_matter_is_one_passage() -> None:
    assert chunk(parse("---\ntitle: x\ntags: [a]\n---\n\n")) == [
        Passage(2, 3, (), "title: x\ntags: [a]")
    ]


@pytest.mark.parametrize("unit", ["x", "🇩🇪", "漢", "word ", "a. ", "- \n"])
def test_a_huge_text_takes_no_time_worth_naming(unit: str) -> None:
    assert chunk(parse(unit * (100_000 // len(unit))))


@given(TEXTS, st.integers(8, 100))
def test_pieces_join_to_the_text_and_are_small_enough(text: str, most: int) -> None:
    parts = pieces(text, most)
    assert "".join(parts) == text
    assert all(count_tokens(part) <= most for part in parts if len(part) > 8), (
        "a cluster of marks cannot be cut"
    )
    assert pieces(text, count_tokens(text) or 1) == [text]


def test_pieces_end_where_sentences_do() -> None:
    text = " ".join(f"This is sentence number {i}." for i in range(40))
    assert all(part.rstrip().endswith(".") for part in pieces(text, 30))
