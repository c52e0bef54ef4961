"""What is known about a passage for a question, against measures written out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.search.evidence import (
    MAX_TERMS,
    NEAR_WINDOW,
    STRETCH,
    WeightedQuestion,
    WordSignals,
    ask,
    measures,
)
from notewell.store.sqlite.store import SqliteStore
from notewell.store.term_places import places_in
from notewell.store.values import FieldTerms, Placed, Sought
from notewell.text.bm25 import HEAD_WEIGHT, K1, B, idf
from notewell.types import Chunk, Filters
from tests.search.made import chunk, store_of

NOTES = [
    chunk(
        "auth",
        "Rotate the auth token every week, and token rotation is done by Mira.",
        heading=("Auth tokens",),
    ),
    chunk("deploy", "Deploys run on Tuesday. The key lives in the vault, beside the auth token."),
    chunk("lunch", "Lunch with Mira at noon."),
    chunk("arcade", "A token buys one game.", heading=("Arcade",)),
]


@pytest.fixture(scope="module")
def store() -> SqliteStore:
    return store_of(NOTES)


def fields(store: SqliteStore, name: str) -> FieldTerms:
    row = store.documents.chunks_by_id(name)[0].row
    return store.keywords.chunk_terms([row])[row]


def measure(question: WeightedQuestion, terms: FieldTerms) -> WordSignals:
    return measures(question, places_in({0: terms}, question.measured))[0]


def signals(store: SqliteStore, question: str, name: str) -> WordSignals:
    return measure(ask(question, store.keywords.term_counts), fields(store, name))


def bm25_by_hand(store: SqliteStore, terms: list[str], name: str) -> float:
    bodies = {c.id: fields(store, c.id).body for c in NOTES}
    heads = {c.id: fields(store, c.id).head for c in NOTES}
    mean = sum(map(len, bodies.values())) / len(bodies)
    total = 0.0
    for term in terms:
        having = sum(term in bodies[n] or term in heads[n] for n in bodies)
        weight = math.log(1 + (len(bodies) - having + 0.5) / (having + 0.5))
        tf = bodies[name].count(term) + (1.5 if term in heads[name] else 0.0)
        total += weight * tf * 2.2 / (tf + 1.2 * (1 - 0.75 + 0.75 * len(bodies[name]) / mean))
    return total


@pytest.mark.parametrize("name", [c.id for c in NOTES])
@pytest.mark.parametrize(
    "question", ["token", "auth tokens", "who rotates the auth token", "Mira lunch vault zeppelin"]
)
def test_bm25_is_the_one_of_the_books(store: SqliteStore, question: str, name: str) -> None:
    terms = list(ask(question, store.keywords.term_counts).weights)
    assert signals(store, question, name).bm25 == pytest.approx(bm25_by_hand(store, terms, name))


def test_the_constants_are_those_of_the_hand_written_one() -> None:
    assert (K1, B, HEAD_WEIGHT) == (1.2, 0.75, 1.5)
    assert idf(10, 0) == pytest.approx(math.log(1 + 10.5 / 0.5))
    assert idf(10, 10) > 0


def test_text_is_bm25_over_what_the_question_could_reach(store: SqliteStore) -> None:
    asked = ask("auth token zeppelin", store.keywords.term_counts)
    reachable = sum(weight for term, weight in asked.weights.items() if term != "zeppelin") * (
        K1 + 1
    )
    found = measure(asked, fields(store, "auth"))
    assert found.text == pytest.approx(found.bm25 / reachable)
    assert 0 < found.text < 1


def test_cover_is_the_share_of_the_information_found(store: SqliteStore) -> None:
    weights = ask("mira zeppelin", store.keywords.term_counts).weights
    assert signals(store, "mira zeppelin", "lunch").cover == pytest.approx(
        weights["mira"] / sum(weights.values())
    )
    assert signals(store, "lunch with mira", "lunch").cover == 1.0
    nothing = signals(store, "zeppelin", "lunch")
    assert set(nothing._replace(lost=0.0, names=0.0)) == {0.0}
    assert (nothing.lost, nothing.names) == (1.0, 1.0), (
        "a rare word is missing, and no name was asked for"
    )


def test_head_is_the_share_found_in_headings_and_the_file_name(store: SqliteStore) -> None:
    weights = ask("arcade game", store.keywords.term_counts).weights
    share = weights["arcad"] / sum(weights.values())
    assert signals(store, "arcade game", "arcade").head == pytest.approx(share)
    assert signals(store, "game", "arcade").head == 0.0


def test_exact_tells_the_word_as_it_was_written_from_its_stem(store: SqliteStore) -> None:
    assert signals(store, "rotation", "auth").exact == 1.0
    assert signals(store, "rotating", "auth").exact == 0.0
    assert signals(store, "rotating", "auth").cover == 1.0


@pytest.mark.parametrize(
    ("body", "near"),
    [
        ("auth token", 1.0),
        ("token auth", 1 - 1 / NEAR_WINDOW),
        ("auth x token", 1 - 1 / NEAR_WINDOW),
        ("auth x x x x x x x token", 1 - 7 / NEAR_WINDOW),
        ("auth x x x x x x x x token", 0.0),
        ("auth", 0.0),
    ],
)
def test_near_falls_with_the_distance_of_neighbours(
    store: SqliteStore, body: str, near: float
) -> None:
    found = measure(
        ask("auth token", store.keywords.term_counts), FieldTerms(body=tuple(body.split()))
    )
    assert found.near == pytest.approx(near)


def test_near_is_the_mean_over_the_pairs_of_the_question(store: SqliteStore) -> None:
    asked = ask("mira lunch token", store.keywords.term_counts)
    first = asked.weights["mira"] + asked.weights["lunch"]
    second = asked.weights["lunch"] + asked.weights["token"]
    found = measure(asked, FieldTerms(body=("mira", "lunch")))
    assert found.near == pytest.approx(first / (first + second))


@given(st.lists(st.sampled_from(["auth", "token", "mira", "lunch", "-"]), max_size=40))
def test_nearness_and_the_fullest_stretch_are_those_of_brute_force(
    store: SqliteStore, body: list[str]
) -> None:
    asked = ask("mira auth token", store.keywords.term_counts)
    found = measure(asked, FieldTerms(body=tuple(body)))
    stretches = [{*body[i : i + STRETCH]} for i in range(len(body))]
    fullest = max(
        (sum(asked.weights.get(t, 0.0) for t in words) for words in stretches), default=0.0
    )
    assert found.window == pytest.approx(fullest / asked.total)
    got = whole = 0.0
    for one, other in (("mira", "auth"), ("auth", "token")):
        weight = asked.weights[one] + asked.weights[other]
        firsts, seconds = ([i for i, t in enumerate(body) if t == word] for word in (one, other))
        gap = min((b - a if b > a else a - b + 1 for a in firsts for b in seconds), default=99)
        whole += weight
        got += weight * (1 - (gap - 1) / NEAR_WINDOW) if gap <= NEAR_WINDOW else 0.0
    assert found.near == pytest.approx(got / whole)


def test_passages_that_are_measured_together_do_not_touch_each_other(store: SqliteStore) -> None:
    asked = ask("mira auth token", store.keywords.term_counts)
    rows = [store.documents.chunks_by_id(one.id)[0].row for one in NOTES]

    def places(rows: list[int]) -> Placed:
        return store.keywords.term_places(rows, asked.measured)

    together = measures(asked, places(rows))
    for row in rows:
        assert measures(asked, places([row])) == {row: together[row]}
        assert measure(asked, store.keywords.chunk_terms([row])[row]) == pytest.approx(
            together[row]
        )
    assert measures(asked, places([999_999])) == {}


def find(store: SqliteStore, sought: Sought) -> list[str]:
    return [
        store.documents.chunks([s.row])[s.row].id
        for s in store.keywords.lexical(sought, 10, Filters())
    ]


CHINESE: list[Chunk] = [
    chunk("heading", "我们每天喝一杯。", heading=("茶",)),
    chunk("inside", "今天买了绿茶和面包。"),
    chunk("phrase", "三分钟。", heading=("备份脚本",)),
    chunk("other", "完全不同。"),
]


def test_a_single_character_is_found_in_text_and_headings() -> None:
    store = store_of(CHINESE)
    asked = ask("茶", store.keywords.term_counts)
    assert sorted(find(store, asked.sought)) == ["heading", "inside"]
    in_heading = measure(asked, fields(store, "heading"))
    assert (in_heading.cover, in_heading.head) == (1.0, 1.0)
    assert 0 < in_heading.text < 1
    in_text = measure(asked, fields(store, "inside"))
    assert (in_text.cover, in_text.head) == (1.0, 0.0)
    assert measure(asked, fields(store, "other")).cover == 0.0


def test_a_longer_word_without_spaces_is_found_in_headings_too() -> None:
    store = store_of(CHINESE)
    assert find(store, ask("备份脚本", store.keywords.term_counts).sought) == ["phrase"]


def test_words_that_cost_much_and_say_little_stay_out_of_the_match() -> None:
    names = ["z" + "".join(chr(ord("a") + int(digit)) for digit in f"{i:03}") for i in range(220)]
    store = store_of(
        [chunk(name, f"common words about {name}", path=f"{name}x.md") for name in names]
    )
    asked = ask("common zaah", store.keywords.term_counts)
    assert asked.common == {"common"}
    assert "common" not in asked.sought.words
    assert find(store, asked.sought) == ["zaah"]
    assert len(find(store, ask("common words", store.keywords.term_counts).sought)) == 10, (
        "unless there are no others"
    )


def test_a_question_of_any_length_asks_for_so_many_terms(store: SqliteStore) -> None:
    asked = ask("token " + " ".join(f"unknown{i}" for i in range(3000)), store.keywords.term_counts)
    assert len(asked.weights) == MAX_TERMS
    assert "token" in asked.weights, "what the corpus knows is kept first"
    assert sorted(find(store, asked.sought)) == ["arcade", "auth", "deploy"]
    assert find(store, asked.sought_whole) == []


def test_the_old_and_joined_match_wants_every_word_even_the_common_ones(store: SqliteStore) -> None:
    asked = ask("what is the auth token", store.keywords.term_counts)
    assert asked.sought_whole == Sought(("auth", "token", "what", "is", "the"), every=True)
    assert find(store, asked.sought_whole) == []
    assert find(store, ask("the auth token", store.keywords.term_counts).sought_whole) == [
        "auth",
        "deploy",
    ]


def test_rarity_grows_with_how_seldom_the_known_words_of_a_question_are(store: SqliteStore) -> None:
    def rarity(text: str) -> float:
        return ask(text, store.keywords.term_counts).rarity

    assert 0 < rarity("token") < rarity("token mira") < rarity("mira") < rarity("vault") < 1
    assert rarity("token zeppelin") == rarity("token"), "what nobody has written says nothing"
    assert rarity("zeppelin") == rarity("") == 0.0


questions = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            '"',
            "'",
            "*",
            "^",
            "AND",
            "OR",
            "NOT",
            "NEAR(",
            ")",
            "{head body}",
            ":",
            "-",
            "a_b",
            "C++",
            "#1",
            "茶",
            "备份脚本",
            "한",
            "한국어",
            "ชา",
            "the",
            "v1.2.3",
            "2026-03-12",
            "don't",
            "x'y",
            "\\",
            "\0",
            "\ud800",
            "naïve",
            "a/b/c.md",
        ]
    ),
    max_size=8,
).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(text=questions)
def test_any_text_makes_a_valid_match(store: SqliteStore, text: str) -> None:
    asked: WeightedQuestion = ask(text, store.keywords.term_counts)
    for sought in (asked.sought, asked.sought_whole):
        store.keywords.lexical(sought, 5, Filters())
    for one in NOTES:
        found = measure(asked, fields(store, one.id))
        assert all(0.0 <= value <= 1.0 for name, value in found._asdict().items() if name != "bm25")


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["rotate", "token", "mira", "vault", "lunch", "game", "tuesday", "茶"]),
        min_size=1,
        max_size=5,
    )
)
def test_the_match_finds_exactly_what_covers_some_of_the_question(
    store: SqliteStore, words: list[str]
) -> None:
    asked = ask(" ".join(words), store.keywords.term_counts)
    covering = {c.id for c in NOTES if measure(asked, fields(store, c.id)).cover > 0}
    assert set(find(store, asked.sought)) == covering


def test_what_is_named_first_counts_most(store: SqliteStore) -> None:
    first, last = signals(store, "zeppelin mira", "lunch"), signals(store, "mira zeppelin", "lunch")
    assert first.focus == pytest.approx(1 / 3)
    assert last.focus == pytest.approx(2 / 3)
    assert signals(store, "get mira", "lunch").focus == 1.0, (
        "a word of every day is not what is asked for"
    )
    assert signals(store, "get", "lunch").focus == 0.0


def test_matched_and_lost_are_in_words_of_the_rarest_kind(store: SqliteStore) -> None:
    question = ask("mira noon zeppelin", store.keywords.term_counts)
    rarest = idf(question.chunks, 0)
    found = signals(store, "mira noon zeppelin", "lunch")
    assert found.matched == pytest.approx(
        (question.weights["mira"] + question.weights["noon"]) / rarest
    )
    assert found.lost == pytest.approx(1.0)
    assert signals(store, "mira noon", "lunch").lost == 0.0


def test_the_share_of_the_names_that_a_passage_has(store: SqliteStore) -> None:
    assert signals(store, "lunch with Mira and Tor", "lunch").names == 0.5
    assert signals(store, "lunch with mira and tor", "lunch").names == 1.0, (
        "without names none is missing"
    )
