from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from notewell.compare.judge import Verdict, judge
from notewell.compare.reading import LONG, read

VOCABULARY = (
    "port staging server is runs the Berlin Ann not never 8080 9090 on Friday 2026-03-05 likes"
    " 端口 是 不 сервер работает : - . , \n ``` | [x] [ ] # $5 30s"
)
WORDS = st.sampled_from(VOCABULARY.split(" "))
TEXTS = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=14).map(" ".join))
LONGER = (
    "The importer reads every file of the folder, checks its length and its hash, writes a line"
    " into the journal and moves the file into the archive when all rows were stored without an"
    " error"
)


def alike(a: str, b: str, *, cosine: float | None = None) -> Verdict:
    return judge(read(a), read(b), cosine=cosine)


@given(TEXTS, TEXTS, st.none() | st.floats(-1, 1))
def test_the_order_of_two_texts_makes_no_difference(a: str, b: str, cosine: float | None) -> None:
    first = alike(a, b, cosine=cosine)
    assert first == alike(b, a, cosine=cosine)
    assert first == judge(read.__wrapped__(a), read.__wrapped__(b), cosine=cosine), (
        "nothing but the text counts"
    )


@given(TEXTS)
def test_a_text_that_says_something_is_a_copy_of_itself(text: str) -> None:
    expected = Verdict.DUPLICATE if read(text).statements else Verdict.DIFFERENT
    assert alike(text, text) == expected


FRAMES = st.sampled_from(
    [
        "The port is {}.",
        "{} guests came",
        "- limit: {}",
        "Use {} workers on Friday",
        "端口是{}。",
        "порт {}",
        "a\nb {} c\nd",
        LONGER + " {}",
    ]
)


@given(FRAMES, st.integers(0, 10**30), st.integers(0, 10**30), st.none() | st.floats(0, 1))
def test_texts_whose_numbers_differ_are_never_copies(
    frame: str, one: int, two: int, cosine: float | None
) -> None:
    assume(one != two)
    assert alike(frame.format(one), frame.format(two), cosine=cosine) != Verdict.DUPLICATE


@given(
    st.sampled_from(
        [
            ("is", "is not"),
            ("can", "cannot"),
            ("runs", "no longer runs"),
            ("ist", "ist nicht"),
            ("支持", "不支持"),
        ]
    ),
    st.lists(
        st.sampled_from(["alpha", "beta", "gamma", "delta", "omega"]), min_size=1, max_size=12
    ),
    st.none() | st.floats(0, 1),
)
def test_texts_of_which_one_denies_are_never_copies(
    verbs: tuple[str, str], words: list[str], cosine: float | None
) -> None:
    a, b = (f"The {words[0]} {verb} {' '.join(words[1:])}" for verb in verbs)
    assert alike(a, b, cosine=cosine) != Verdict.DUPLICATE


@given(TEXTS, TEXTS)
def test_equal_forms_are_copies(a: str, b: str) -> None:
    one, two = read(a), read(b)
    if one.form == two.form and one.statements:
        assert judge(one, two) == Verdict.DUPLICATE


@given(TEXTS, TEXTS)
def test_copies_share_a_trait_or_a_form(a: str, b: str) -> None:
    one, two = read(a), read(b)
    if judge(one, two) == Verdict.DUPLICATE:
        assert one.form == two.form or set(one.traits) & set(two.traits)
        assert one.form == two.form or (
            set(one.sought) & set(two.traits) and set(two.sought) & set(one.traits)
        )


def test_a_model_that_is_sure_makes_a_small_addition_a_copy() -> None:
    more = LONGER.replace("checks its length", "carefully checks its length")
    assert alike(LONGER, more) == Verdict.DIFFERENT
    assert alike(LONGER, more, cosine=0.99) == Verdict.DUPLICATE
    assert alike(LONGER, more, cosine=0.90) == Verdict.DIFFERENT


@pytest.mark.parametrize(
    "extra", ["not", "three", "Marta", "2026-03-05", "failed failed failed failed failed"]
)
def test_no_model_is_sure_enough_to_hide_what_matters(extra: str) -> None:
    assert alike(LONGER, f"{LONGER} {extra}", cosine=1.0) != Verdict.DUPLICATE


def test_a_short_text_under_another_heading_is_another_fact() -> None:
    staging, production = read("port: 8080", ("Staging",)), read("port: 8080", ("Production",))
    assert judge(staging, production) == Verdict.DIFFERENT
    assert judge(staging, read("port: 8080", ("2026-03-05", "Notes"))) == Verdict.DUPLICATE
    assert judge(staging, read("port: 9090", ("Production",))) == Verdict.DIFFERENT


def test_a_long_text_stands_for_itself() -> None:
    one, two = read(LONGER, ("Importer",)), read(LONGER, ("What we learned",))
    assert one.weight >= LONG
    assert judge(one, two) == Verdict.DUPLICATE


def test_a_passage_with_one_statement_more_hides_nothing() -> None:
    short = "The staging port is 8080."
    assert alike(short, f"{short} It is closed on Sundays.") == Verdict.DIFFERENT


def test_one_changed_fact_of_a_list_is_a_conflict_wherever_it_stands() -> None:
    facts = [f"- the limit of queue {name} is {n}" for n, name in enumerate("abcdef", start=10)]
    for i in range(len(facts)):
        changed = [*facts[:i], facts[i][:-2] + "99", *facts[i + 1 :]]
        assert alike("\n".join(facts), "\n".join(changed)) == Verdict.CONFLICT


def test_a_long_passage_that_shares_little_is_no_conflict() -> None:
    a = "Ann met Bob. The port is 8080. We had lunch. It rained. The train was late."
    b = "Tom came by. The port is 9090. The report is ready. Nobody slept. The cake was good."
    assert alike(a, b) == Verdict.DIFFERENT


def test_a_comment_for_machines_says_nothing() -> None:
    assert (
        alike("The port is 8080.\n<!-- supersedes: abcdefghijkl -->", "The port is 8080.")
        == Verdict.DUPLICATE
    )


def finds(a: str, b: str) -> tuple[bool, bool]:
    """Whether each of two texts is found by the other."""
    one, two = read(a), read(b)
    return bool(set(one.sought) & set(two.traits)), bool(set(two.sought) & set(one.traits))


LINES = [
    "The door of the school was painted green by the owner.",
    "The roof of the harbour was painted white by the owner.",
    "The gate of the mill was painted black by the owner.",
    "The fence of the station was painted yellow by the owner.",
    "The bench of the chapel was painted orange by the owner.",
    "The shed of the farm was painted brown by the owner.",
]


def test_long_passages_find_each_other_by_a_whole_statement_not_by_how_one_begins() -> None:
    other = [line.replace("painted", "mended") for line in LINES]
    assert finds("\n".join(LINES), "\n".join(other)) == (False, False)
    assert alike("\n".join(LINES), "\n".join(other)) == Verdict.DIFFERENT, "so that nothing is lost"
    for n in range(len(LINES)):
        changed = [*LINES[:n], other[n], *LINES[n + 1 :]]
        assert alike("\n".join(LINES), "\n".join(changed)) == Verdict.CONFLICT
        assert finds("\n".join(LINES), "\n".join(changed)) == (True, True)


def test_a_short_passage_and_a_long_one_find_each_other_by_how_a_statement_begins() -> None:
    against = [line.replace("by the owner", "by the neighbour") for line in LINES]
    found = [finds(one, "\n".join(LINES)) for one in against]
    assert all(alike(one, "\n".join(LINES)) == Verdict.CONFLICT for one in against)
    assert set(found) <= {(True, True), (False, False)}, "whichever of them came first"
    assert found.count((True, True)) >= 4, "as many as are chosen of a long passage"
