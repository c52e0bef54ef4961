from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.text.forgotten import Forgotten, normal_words, tombstones, units
from notewell.text.markdown import split_lines
from notewell.text.words import visible

FORGOTTEN = "The vault code of the Lisbon office is seven four nine."


def forgotten(text: str, path: str = "memory/a.md") -> Forgotten:
    return Forgotten(tuple(tombstones(text, path, everywhere=True)))


def test_units_are_paragraphs_items_rows_and_headings() -> None:
    text = (
        "# Head\n\npara one\ngoes on\n- item\n  more\n- other\n\n```py\ncode\n\nrest\n```\n| a "
        "|\n| b |\n"
    )
    assert [(a, b, unit.split("\n")[0]) for a, b, unit in units(text)] == [
        (1, 1, "# Head"),
        (3, 4, "para one"),
        (5, 6, "- item"),
        (7, 7, "- other"),
        (10, 10, "code"),
        (12, 12, "rest"),
        (14, 14, "| a |"),
        (15, 15, "| b |"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        FORGOTTEN,
        f"- {FORGOTTEN}",
        "the VAULT code of the\nLisbon office\n  is **seven** four nine",
        "> The vault code of the Lisbon office — is seven, four, nine!",
        "Ｔｈｅ vault code of the Lisbon office is seven four nine",
    ],
)
def test_it_is_found_however_it_is_wrapped_and_marked(text: str) -> None:
    left, count = forgotten(FORGOTTEN).without(f"before\n{text}\nafter", "memory/other.md")
    assert count == 1
    assert not {"vault", "lisbon", "seven"} & set(normal_words(left))
    assert {"before", "after"} <= set(normal_words(left))
    assert len(split_lines(left)) == len(split_lines(f"before\n{text}\nafter")), (
        "lines keep their numbers"
    )


def test_inside_a_line_only_its_words_go() -> None:
    left, _ = forgotten(FORGOTTEN).without(f"Ana said: {FORGOTTEN} And she left.", "x")
    assert normal_words(left) == ["ana", "said", "and", "she", "left"]


def test_text_that_differs_in_one_word_stays() -> None:
    other = FORGOTTEN.replace("seven", "eight")
    assert forgotten(FORGOTTEN).without(other, "memory/a.md") == (other, 0)


def test_a_few_letters_are_hidden_in_their_note_alone_and_only_as_whole_lines() -> None:
    one = forgotten("- yes", "memory/a.md")
    assert one.without("- yes\n- yes we can\n", "memory/a.md") == ("\n- yes we can\n", 1)
    assert one.without("- yes\n", "memory/b.md") == ("- yes\n", 0)


def test_unspaced_scripts_are_found_inside_a_longer_run() -> None:
    gone = "里斯本办公室的保险库密码是七四九而且不得告诉任何人"
    left, count = forgotten(gone).without(f"她说{gone}然后走了", "x")
    assert (left, count) == ("她说然后走了", 1)


def test_an_emptied_code_block_leaves_no_open_fence() -> None:
    text = "a\n\n```sh\nexport VAULT_CODE=seven-four-nine-eleven\n```\n\nb\n"
    left, count = forgotten("export VAULT_CODE=seven-four-nine-eleven").without(text, "x")
    assert (left, count) == ("a\n\n\n\n\n\nb\n", 1)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            f"# Log\n\n## 23:53\n\n{FORGOTTEN}\n\n## Other\n\nkiln\n",
            "# Log\n\n\n\n\n\n## Other\n\nkiln\n",
        ),
        (f"# Log\n\nkiln\n\n## 23:53\n{FORGOTTEN}\n", "# Log\n\nkiln\n\n\n\n"),
        (f"## 23:53\n{FORGOTTEN}\n\n### Below\n\nkiln\n", "## 23:53\n\n\n### Below\n\nkiln\n"),
        (f"## 23:53\nkiln\n\n{FORGOTTEN}\n", "## 23:53\nkiln\n\n\n"),
        (f"## Bare\n\n## 23:53\n{FORGOTTEN}\n", "## Bare\n\n\n\n"),
    ],
)
def test_a_heading_with_nothing_left_under_it_goes_too(text: str, left: str) -> None:
    assert forgotten(FORGOTTEN).without(text, "memory/a.md")[0] == left


def test_tombstones_hold_no_text() -> None:
    (stone,) = tombstones(FORGOTTEN, "memory/a.md", made="2026-02-10", receipt="r")
    assert not any(word in repr(stone).lower() for word in ("vault", "lisbon", "memory/a"))


def test_the_longer_of_two_that_begin_alike_goes_first() -> None:
    long = f"{FORGOTTEN} It is changed every spring."
    both = Forgotten((*forgotten(FORGOTTEN).stones, *forgotten(long).stones))
    assert both.without(long, "b") == ("", 1)
    assert both.has(f"x {FORGOTTEN}", "b") is not None


def test_what_nobody_sees_inside_a_word_is_not_there() -> None:
    hidden = (
        FORGOTTEN.replace("au", "a\u00adu")
        .replace("sb", "s\u200bb")
        .replace("ve", "v\u2060\u034fe")
    )
    assert normal_words(hidden) == normal_words(FORGOTTEN)
    for gone, text in ((FORGOTTEN, hidden), (hidden, FORGOTTEN)):
        assert forgotten(gone).without(f"a {text} b", "x")[1] == 1
    assert normal_words("می\u200cخواهم x\u200cy") == ["می", "خواهم", "xy"], "as in the index"


@given(st.text(alphabet="abй\u0301\u00ad\u034f\u200b\u200c中 ", max_size=60))
def test_the_words_are_those_of_the_text_that_people_see(text: str) -> None:
    assert "".join(normal_words(text)) == "".join(normal_words(visible(text)))


# No fences and no headings here: the words of a code block or a section that is emptied go with it.
OTHERS = st.text(alphabet="abc ->\r\n", max_size=60)


@given(OTHERS, st.text(alphabet="xyzй中 -#>|\r\n", max_size=80), OTHERS)
def test_no_word_of_it_is_left_and_every_other_word_and_line_stays(
    before: str, secret: str, after: str
) -> None:
    text = f"{before}\n\n{secret}\n\n{after}"
    left, _ = forgotten(secret).without(text, "memory/a.md")
    assert not set("xyzй中") & set(left)
    assert len(split_lines(left)) == len(split_lines(text))
    assert normal_words(left) == [*normal_words(before), *normal_words(after)]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_without_tombstones_a_text_is_as_it_was(text: str) -> None:
    assert Forgotten().without(text, "x") == (text, 0)
    assert Forgotten().signature == ""


def test_what_is_broken_around_forgotten_text_stays() -> None:
    said = "The aquarium key hangs behind the green door."
    stones = Forgotten(tuple(tombstones(said, "a.md")))
    assert stones.without(f"caf\udce9 \0 {said} \udcff end\n\0\n", "a.md") == (
        "caf\udce9 \0 . \udcff end\n\0\n",
        1,
    )


def test_what_is_forgotten_in_one_note_is_hidden_there_alone_and_found_in_others() -> None:
    here = Forgotten(tuple(tombstones(f"{FORGOTTEN}\n\nTea at four.", "memory/a.md")))
    inside = f"They said: {FORGOTTEN} And more."
    assert here.without(inside, "memory/a.md")[1] == 1
    assert here.without(inside, "memory/b.md") == (inside, 0)
    assert here.in_any_note.has(inside, "memory/b.md")
    assert here.has("Tea at four.", "memory/a.md")
    assert not here.in_any_note.has("Tea at four.", "memory/b.md"), (
        "too few letters to be told apart"
    )
