from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.text.private import balanced, blocks, is_about_unclosed, unclosed, unmarked
from notewell.text.redact import Redactor
from tests.growth import Linear

REDACT = Redactor()
DAY = """# 2026-11-18

## 09:00

The heron stands. {mark}

### Details of nine

The pond is deep.

## 10:00

The kingfisher flies.
"""


def hidden(text: str) -> list[str]:
    return [text[b.start : b.end] for b in blocks(text)]


def left(text: str) -> str:
    return " ".join(REDACT(text).text.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a <private>b</private> c", ["<private>b</private>"]),
        ("a <PRIVATE>b\nc</Private> d", ["<PRIVATE>b\nc</Private>"]),
        (
            "<private>a <private>b</private> c</private> d",
            ["<private>a <private>b</private> c</private>"],
        ),
        (
            "<private >a</ private> b < private>c</private\t>",
            ["<private >a</ private>", "< private>c</private\t>"],
        ),
        ("<pri\u200bvate>a</\u00adprivate> b", ["<pri\u200bvate>a</\u00adprivate>"]),
        ("a</private> b", []),
        ("a</private> b <private>c</private>", ["<private>c</private>"]),
        ("the `<private>` and `</private>` marks", []),
        (
            "<private>hides `</private>` too</private> b",
            ["<private>hides `</private>` too</private>"],
        ),
        ("<privates>a</privates> <private/> <priv ate>b", []),
        (
            "# A\n\n<private>\n\n## B\n\nb\n\n# C\n\n</private>\n\nc",
            ["<private>\n\n## B\n\nb\n\n# C\n\n</private>"],
        ),
    ],
)
def test_what_two_marks_hide(text: str, parts: list[str]) -> None:
    assert hidden(text) == parts


def test_a_block_without_an_end_hides_the_rest_of_its_section_with_what_is_below_it() -> None:
    text = DAY.format(mark="<private> My pin.")
    assert left(text) == (
        "# 2026-11-18 ## 09:00 The heron stands. [redacted:private-unclosed] ## 10:00 The "
        "kingfisher flies."
    )
    assert left(text.replace("\n", "\r\n")) == left(text)
    assert left(text.replace("\n", "\r")) == left(text)
    below = text.replace("<private> My pin.", "").replace("The pond", "<private> The pond")
    assert "Details of nine [redacted:private-unclosed] ## 10:00 The kingfisher flies." in left(
        below
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# A <private>\n\nsecret\n\n## B\n\nsecret\n\n# C\n\nopen", True),
        ("A\n=\n\n<private>\n\nB\n-\n\nsecret\n\nC\n===\n\nopen", True),
        ("A\n-\n\n<private>\n\n### B\n\nsecret\n\nC\n-\n\nopen", True),
        ("## A\n\n<private>\n\n```\n# secret, no heading\n```\n\nsecret\n\n# B\n\nopen", True),
        ("- <private>\n- secret\n\nsecret", False),
        ("- <private>\n- secret\n\n# B\n\nopen", True),
        ("<private> secret\n\n## B\n\nopen\n\n# C\n\nopen", True),
        ("---\ntitle: <private> secret\n---\n\nopen\n\n# B\n\nopen", True),
        ("---\n<private>\npin: secret\n---\nopen", True),
        ("```\n<private> secret\n```\n\nopen\n\n# B\n\nopen", True),
        ("# A\n\n```\n<private>\n\n# secret\n```\n\nopen\n\n# B\n\nopen", True),
        ("# A\n\n- b\n  ~~~~\n  <private> secret\n  ~~~\n  secret\n  ~~~~\n\nopen", True),
        ("# A\n\n```\n<private> secret\n\n# secret", False),
        ("## A\n\n<private> secret <private> secret\n\n## B\n\nopen", True),
        ("## A\n\n<private> secret\n\n## B\n\n<private>secret</private> open", True),
        ("## A\n\n<private> secret <private>secret</private> secret\n\n## B\n\nopen", True),
    ],
)
def test_a_section_ends_at_a_heading_that_is_not_below_it(text: str, found: bool) -> None:
    safe = REDACT(text).text
    assert "secret" not in safe
    assert ("open" in safe) == found
    assert is_about_unclosed(unclosed(safe))


def test_a_mark_without_an_end_is_said_with_its_line() -> None:
    assert (
        unclosed(REDACT(DAY.format(mark="<private>")).text)
        == "private from line 5 on: its <private> is never closed"
    )
    assert unclosed(REDACT("a <private>b</private> </private>").text) == ""


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        (
            "---\ndate: 2026-11-18\ntitle: x <private>\nid: 7\n---\n\n# Next\n\nopen",
            "---\ndate: 2026-11-18\ntitle: x [redacted:private-unclosed]\n\n---\n\n# Next\n\nopen",
        ),
        (
            "# A\n\n```html\n<private>\npin\n```\n\nopen\n\n# B\n",
            "# A\n\n```html\n[redacted:private-unclosed]\n\n```\n\nopen\n\n# B\n",
        ),
        (
            "```\r\n<private>\r\npin\r\n```\r\nopen",
            "```\r\n[redacted:private-unclosed]\r\n\r\n```\r\nopen",
        ),
        ("```\na <private>b</private> c\n```\n\nopen", "```\na [redacted:private] c\n```\n\nopen"),
        ("```\n<private>\n```\n\npin\n\n</private> open", "```\n[redacted:private]\n\n\n\n\n open"),
    ],
)
def test_the_rule_below_front_matter_and_the_fence_below_code_stay(text: str, safe: str) -> None:
    found = REDACT(text).text
    assert [line.rstrip() for line in found.split("\n")] == [
        line.rstrip() for line in safe.split("\n")
    ]


@pytest.mark.parametrize("front", ["", "---\ntitle: x\n---\n", "---\ntitle: x <private>\n---\n"])
def test_code_that_mentions_the_mark_takes_no_end_from_a_block_that_has_one(front: str) -> None:
    begun = "" if "<private>" in front else "<private>"
    safe = REDACT(
        f"{front}{begun}\n\n# pin one\n\n```\n<private>\n```\n\npin two\n\n</private>\n\nopen"
    ).text
    assert "pin" not in safe
    assert "open" in safe


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Guests", "Guests"),
        ("H <private>", "H &lt;private>"),
        ("x </ Private> <pri\u200bvate>", "x &lt;/ Private> &lt;pri\u200bvate>"),
        ("the `<private>` mark", "the `<private>` mark"),
        ("<<private>", "<&lt;private>"),
    ],
)
def test_a_mark_that_is_written_as_text_hides_nothing(text: str, made: str) -> None:
    assert unmarked(text) == made
    assert unmarked(made) == made
    assert not blocks(f"## {made}\n\nopen </private>")


def test_many_marks_without_an_end_take_no_more_time_than_the_length_warrants(
    linear: Linear,
) -> None:
    for piece in (
        "```\n<private>\n```\n",
        "```\n<private>\n",
        "<private>\n",
        "# a\n<private>\n",
        "---\n<private>\n",
    ):
        linear(blocks, piece * (200_000 // len(piece)))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("harmless", "harmless"),
        ("a <private>b</private>", "a <private>b</private>"),
        ("a <private> tag", "a <private> tag</private>"),
        ("a\n<private> tag <PRIVATE>", "a\n<private> tag <PRIVATE>\n</private></private>"),
        ("a </private> tag", "a &lt;/private> tag"),
        (
            "a </ Private> <private>b</private> </private>",
            "a &lt;/ Private> <private>b</private> &lt;/private>",
        ),
        ("the `<private>` mark", "the `<private>` mark"),
        ("</private><private>```", "&lt;/private><private>```</private>"),
    ],
)
def test_what_is_written_for_somebody_ends_its_own_blocks(text: str, made: str) -> None:
    assert balanced(text) == made


_pieces = st.sampled_from(
    [
        "<private>",
        "</private>",
        "<pri\u200bvate>",
        "`",
        "# ",
        "## ",
        "\n",
        "\r",
        "\n\n",
        "a",
        "---\n",
        "===\n",
        "```\n",
        " ",
    ]
)
_texts = st.lists(_pieces, max_size=20).map("".join)


@settings(max_examples=300, deadline=None)
@given(_texts, _texts)
def test_what_is_balanced_hides_nothing_of_what_comes_after_it_and_opens_nothing(
    first: str, second: str
) -> None:
    made = balanced(first)
    assert balanced(made) == made
    assert all(b.closed for b in blocks(made))
    ours = [b for b in blocks(f"{made}\n\n{second}") if b.start < len(made)]
    assert all(b.closed and b.end <= len(made) for b in ours)


@settings(max_examples=300, deadline=None)
@given(_texts)
def test_private_parts_are_apart_and_in_order(text: str) -> None:
    found = blocks(text)
    assert all(0 <= b.start < b.end <= len(text) for b in found)
    assert all(one.end <= two.start for one, two in pairwise(found))


@pytest.mark.parametrize("before", ["", "# Log\n\n", "## 09:00\n", "---\ntitle: log\n---\n"])
@pytest.mark.parametrize("rule", ["---", "***"])
def test_a_rule_below_a_private_paragraph_does_not_show_it(before: str, rule: str) -> None:
    text = f"{before}<private>\n\nthe vault code is 99\n{rule}\nmore\n"
    assert "vault" not in REDACT(text).text


def test_a_heading_with_a_line_below_it_ends_a_private_part() -> None:
    text = "One\n----\n<private>\nthe vault code is 99\n\nAnother day\n-----------\nmore\n"
    assert "vault" not in REDACT(text).text
    assert "more" in REDACT(text).text
