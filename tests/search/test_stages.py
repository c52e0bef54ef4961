"""Stages: what each does, and what none may do."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.errors import SettingsError
from notewell.search import stages
from notewell.search.combine import Combine
from notewell.search.current import Newer, Replies
from notewell.search.fusion import MaxNorm, Rrf, Single, Weighted, ordered
from notewell.search.stages import (
    Abstain,
    Boost,
    Collapse,
    Cut,
    Decay,
    Listing,
    Mmr,
    NotesFirst,
    Quota,
    Rerank,
    Settle,
    Spread,
    Suppress,
    jaccard,
)
from notewell.text.words import term_set
from notewell.types import Candidate, Facts, LegRank, Query, Relations, Span, Stage, Tense
from tests.embed.models import CallableReranker
from tests.search.made import NOW, candidate, day, ids, query, scores

TEXTS = [
    "",
    "router in the hall",
    "router in the hall, again",
    "роутер стоит в холле",
    "เราเตอร์อยู่ในห้องโถง",
    "备份脚本",
    "Which router is in the hall?",
    "The router is no longer in the hall, but on floor 3.",
    "!!",
]
WEIGHTS = {"router": 2.0, "hall": 1.0}

candidates_ = st.lists(
    st.builds(
        candidate,
        st.integers(0, 99).map("c{:02}".format),
        st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from(TEXTS),
        lexical=st.none() | st.integers(1, 50),
        vector=st.none() | st.tuples(st.integers(1, 50), st.floats(0, 1)),
        signals=st.just({}) | st.fixed_dictionaries({"confidence": st.floats(0, 1)}),
        relations=st.just(Relations())
        | st.builds(
            Relations,
            st.integers(0, 99).map("c{:02}".format),
            st.just("somewhere#L1"),
            st.booleans(),
            st.lists(st.integers(0, 99).map("c{:02}".format), max_size=3).map(tuple),
        ),
        source=st.sampled_from(["memory", "extra"]),
        date=st.none() | st.integers(-40, 4000).map(day),
        evergreen=st.booleans(),
        importance=st.floats(-1, 1),
        pinned=st.booleans(),
        supersedes=st.just(())
        | st.lists(st.integers(0, 99).map("c{:02}.md".format), max_size=3).map(tuple),
    ),
    max_size=25,
    unique_by=lambda c: c.id,
).map(ordered)
queries = st.builds(
    lambda limit, least, budget, tense: query(
        limit=limit,
        min_score=least,
        budget_tokens=budget,
        tense=tense,
        subject=frozenset(WEIGHTS),
        weights=WEIGHTS,
    ),
    st.integers(1, 30),
    st.sampled_from([-1.0, 0.0, 0.3]),
    st.sampled_from([0, 1, 20]),
    st.sampled_from(Tense),
)


def halves(question: str, passages: Sequence[str]) -> list[float]:
    return [1.0 / (1 + len(p)) for p in passages]


def named(stage: object) -> str:
    return type(stage).__name__


SORTING: list[Stage] = [
    Combine(),
    Weighted(),
    Weighted(silent_is_zero=True, clamped=True),
    MaxNorm(),
    Rrf(),
    Rrf(1.0, 1.0, normalised=False),
    Single("lexical"),
    Single("vector"),
    Decay(30.0),
    Decay(tau_days=7.0, floor=0.4, spare_evergreen=False),
    Boost(),
    Boost(sources=(("extra", 3.0),), paths=(("c0", 0.0), ("c1", -2.0))),
    Boost(factor=lambda c, q: -1.0 if c.id == "c20" else 2.0),
]
STAGES: list[Stage] = [
    *SORTING,
    Mmr(),
    Mmr(0.0, depth=3),
    Newer(),
    Newer(margin=9.0, sure=9.0, depth=30),
    Replies(),
    Replies(margin=9.0, depth=30),
    Spread(),
    Listing(),
    NotesFirst(),
    Suppress(),
    Collapse(),
    Settle(),
    Quota((("memory", 1), ("extra", 2)), window=5),
    Abstain(0.5),
    Cut(),
    Cut(0.35, on="score"),
    Rerank(CallableReranker(halves), depth=4),
]


@pytest.mark.parametrize("stage", STAGES, ids=named)
@settings(max_examples=25, deadline=None)
@given(given_=candidates_, asked=queries)
def test_no_stage_invents_repeats_or_mutates(
    stage: Stage, given_: list[Candidate], asked: Query
) -> None:
    before = copy.deepcopy(given_)
    found = stage(given_, asked)
    assert given_ == before
    assert len(set(ids(found))) == len(found)
    chunks = {c.id: c.chunk for c in given_}
    assert all(c.chunk is chunks[c.id] for c in found)


@pytest.mark.parametrize("stage", STAGES, ids=named)
@settings(max_examples=25, deadline=None)
@given(given_=candidates_, asked=queries)
def test_scores_stay_between_0_and_1_and_never_rise_down_the_list(
    stage: Stage, given_: list[Candidate], asked: Query
) -> None:
    values = [c.score for c in stage(given_, asked)]
    assert all(0.0 <= v <= 1.0 for v in values)
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("stage", SORTING, ids=named)
@settings(max_examples=25, deadline=None)
@given(given_=candidates_, asked=queries, shuffle=st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_before_and_ties_go_by_id(
    stage: Stage, given_: list[Candidate], asked: Query, shuffle: object
) -> None:
    mixed = list(given_)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    found = list(stage(given_, asked))
    assert list(stage(mixed, asked)) == found
    assert [(-c.score, c.id) for c in found] == sorted((-c.score, c.id) for c in found)


@pytest.mark.parametrize(
    "stage",
    [
        Mmr(),
        Spread(),
        Listing(),
        Quota((("memory", 1),)),
        Rerank(CallableReranker(halves), depth=4),
    ],
    ids=named,
)
@settings(max_examples=25, deadline=None)
@given(given_=candidates_, asked=queries)
def test_an_order_made_by_a_stage_holds_to_the_end(
    stage: Stage, given_: list[Candidate], asked: Query
) -> None:
    found = [c for c in stage(given_, asked) if c.score > 0]
    again = Boost(importance=0.0, pin=0.0)(found, asked)
    assert ids(again) == ids(found)


def share_left(stage: Decay, age: int | None, *, evergreen: bool = False) -> float:
    one = candidate("x", 1.0, date=None if age is None else day(age), evergreen=evergreen)
    return stage([one], query())[0].score


def test_decay_by_tau_of_seven_days() -> None:
    assert share_left(Decay(tau_days=7.0), 1) == pytest.approx(math.exp(-1 / 7))
    assert share_left(Decay(tau_days=7.0), 1) == pytest.approx(0.867, abs=5e-4)
    assert share_left(Decay(tau_days=7.0), 30) == pytest.approx(0.014, abs=5e-4)


@pytest.mark.parametrize(
    ("age", "share"), [(0, 1.0), (7, 0.85), (30, 0.5), (90, 0.125), (180, 0.016)]
)
def test_decay_by_a_half_life_of_thirty_days(age: int, share: float) -> None:
    assert share_left(Decay(30.0), age) == pytest.approx(share, abs=1e-3)
    assert share_left(Decay(), age) == share_left(Decay(30.0), age)


def test_a_note_140_days_old_keeps_4_percent_unless_there_is_a_floor() -> None:
    assert share_left(Decay(30.0), 140) == pytest.approx(0.04, abs=1e-3)
    assert share_left(Decay(30.0, floor=0.5), 140) == pytest.approx(0.5 + 0.5 * 2 ** (-140 / 30))
    assert share_left(Decay(30.0, floor=0.5), 100_000) == 0.5


def test_evergreen_undated_and_future_notes_do_not_decay() -> None:
    assert share_left(Decay(30.0), 90, evergreen=True) == 1.0
    assert share_left(Decay(30.0, spare_evergreen=False), 90, evergreen=True) == pytest.approx(
        0.125
    )
    assert share_left(Decay(30.0), None) == 1.0
    assert share_left(Decay(30.0), -20) == 1.0


def test_decay_drops_nothing_and_turns_the_order() -> None:
    old, new = candidate("old", 0.9, date=day(60)), candidate("new", 0.3, date=day(0))
    assert ids(Decay(30.0)([old, new], query())) == ["new", "old"]


def test_tau_and_half_life_are_one_curve_and_setting_one_shows_the_other() -> None:
    assert Decay(tau_days=7.0).half_life_days == pytest.approx(7 * math.log(2))
    assert Decay(30.0).tau_days == pytest.approx(43.28, abs=0.01)
    assert repr(Decay(tau_days=7.0)).startswith("Decay(half_life_days=4.85")
    assert Decay(7 * math.log(2), tau_days=7.0) == Decay(tau_days=7.0)
    assert Decay(4.852, tau_days=7.0).tau_days == 7.0, "as exact as anybody writes it"


@pytest.mark.parametrize("half_life", [7.0, 30.0])
def test_two_different_curves_are_refused(half_life: float) -> None:
    with pytest.raises(SettingsError, match="different curves") as caught:
        Decay(half_life_days=half_life, tau_days=7.0)
    assert caught.value.hint == "τ = 7 days is a half-life of 4.85 days; set one of them"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Decay(0.0),
        lambda: Decay(-1.0),
        lambda: Decay(tau_days=-7.0),
        lambda: Decay(tau_days=0.0),
        lambda: Decay(floor=1.5),
        lambda: Decay(floor=-0.1),
        lambda: Mmr(1.5),
        lambda: Mmr(-0.1),
    ],
)
def test_a_knob_that_makes_no_sense_is_refused_with_a_hint(wrong: Callable[[], object]) -> None:
    with pytest.raises(SettingsError) as caught:
        wrong()
    assert caught.value.hint


def test_mmr_shows_other_things_between_three_copies_of_the_router_note() -> None:
    notes = [
        candidate(
            "router1",
            0.90,
            "Router: Fritz box in the hall, admin page at 192.168.178.1, password on the back",
        ),
        candidate(
            "router2",
            0.88,
            "Router: Fritz box in the hall, admin page at 192.168.178.1, password on its back",
        ),
        candidate(
            "router3",
            0.86,
            "Router: Fritz box in the hall, admin page at 192.168.178.1, password on back side",
        ),
        candidate("vpn", 0.70, "The VPN uses WireGuard; keys are in the vault"),
        candidate("switch", 0.60, "Eight port switch under the desk, no login"),
    ]
    found = Mmr(0.7)(notes, query())
    assert ids(found) == ["router1", "vpn", "switch", "router2", "router3"]
    assert ids(Mmr(1.0)(notes, query())) == ids(notes), "relevance alone"


@pytest.mark.parametrize(
    ("one", "copy_of_it", "other"),
    [
        ("Роутер стоит в холле", "Роутер стоит в холле.", "Чай заваривать три минуты"),
        ("เราเตอร์อยู่ในห้องโถง", "เราเตอร์อยู่ในห้องโถง", "ชาเขียวสามนาที"),
        ("路由器在大厅里", "路由器在大厅里。", "绿茶泡三分钟"),
    ],
)
def test_mmr_tells_texts_of_every_script_apart(one: str, copy_of_it: str, other: str) -> None:
    notes = [candidate("a", 0.9, one), candidate("b", 0.88, copy_of_it), candidate("c", 0.7, other)]
    assert ids(Mmr(0.7)(notes, query())) == ["a", "c", "b"]


def test_mmr_does_not_take_empty_texts_for_copies() -> None:
    notes = [candidate("a", 0.9, ""), candidate("b", 0.88, "!!"), candidate("c", 0.7, "words")]
    assert ids(Mmr(0.7)(notes, query())) == ["a", "b", "c"]
    assert jaccard("", "") == 0.0
    assert jaccard("green tea", "tea, green!") == 1.0
    assert jaccard("green tea", "black tea") == pytest.approx(1 / 3)


def test_mmr_leaves_what_is_below_its_depth_below() -> None:
    notes = [candidate("a", 0.9, "same"), candidate("b", 0.8, "same"), candidate("c", 0.7, "other")]
    assert ids(Mmr(0.7, depth=2)(notes, query())) == ["a", "b", "c"]


def test_mmr_of_fifty_long_passages_reads_each_of_them_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = [f"word{n}" for n in range(3000)]
    notes = [
        candidate(f"n{i:02}", 1 - i / 100, " ".join(words[i * 40 : i * 40 + 250]))
        for i in range(50)
    ]
    read: list[str] = []

    def counted(text: str) -> frozenset[str]:
        read.append(text)
        return term_set(text)

    stages._terms.cache_clear()
    monkeypatch.setattr(stages, "term_set", counted)
    Mmr()(notes, query())
    assert sorted(read) == sorted(c.chunk.text for c in notes)


def test_quota_moves_what_is_over_right_below_the_window() -> None:
    names = ["s1", "s2", "s3", "n1", "s4", "n2", "n3", "s5"]
    given_ = [
        candidate(name, 1.0 - i / 10, source="sessions" if name[0] == "s" else "memory")
        for i, name in enumerate(names)
    ]
    assert ids(Quota((("sessions", 2),), window=4)(given_, query())) == [
        "s1",
        "s2",
        "n1",
        "n2",
        "s3",
        "s4",
        "n3",
        "s5",
    ]
    only = [c for c in given_ if c.chunk.source == "sessions"]
    assert ids(Quota((("sessions", 2),), window=4)(only, query())) == ids(only)


def test_boost_weighs_sources_paths_importance_and_pins() -> None:
    plain = candidate("plain", 0.5)
    assert scores(Boost()([plain], query())) == {"plain": 0.5}
    weighed = Boost(sources=(("extra", 0.5),), paths=(("memory/", 1.2), ("memory/work", 1.5)))(
        [candidate("e", 0.5, source="extra"), candidate("w", 0.5, path="memory/work/x.md"), plain],
        query(),
    )
    assert scores(weighed) == {"e": 0.25, "w": pytest.approx(0.9), "plain": 0.5}
    own = Boost()(
        [
            candidate("vital", 0.5, importance=1.0),
            candidate("trifle", 0.5, importance=-1.0),
            candidate("pinned", 0.5, pinned=True, importance=0.5),
        ],
        query(),
    )
    assert scores(own) == {
        "pinned": pytest.approx(0.65),
        "vital": pytest.approx(0.6),
        "trifle": pytest.approx(0.4),
    }


def test_boost_takes_a_function_of_yours() -> None:
    stage = Boost(
        factor=lambda c, q: (
            2.0 if q.now == NOW and c.id == "b" else math.nan if c.id == "c" else 1.0
        )
    )
    found = stage([candidate("a", 0.4), candidate("b", 0.3), candidate("c", 0.9)], query())
    assert scores(found) == {"b": 0.6, "a": 0.4, "c": 0.0}
    assert Boost(factor=lambda c, q: 100.0)([candidate("a", 0.4)], query())[0].score == 1.0


def test_quota_moves_what_is_over_below_the_others() -> None:
    notes = [
        candidate(n, 0.9 - i / 10, source=s)
        for i, (n, s) in enumerate([("a", "x"), ("b", "x"), ("c", "x"), ("d", "y")])
    ]
    found = Quota((("x", 1),))(notes, query())
    assert ids(found) == ["a", "d", "b", "c"]
    assert found[2].score == pytest.approx(found[1].score)
    assert ids(Quota((("z", 1),))(notes, query())) == ["a", "b", "c", "d"]


def test_quota_counts_only_in_its_window() -> None:
    notes = [candidate(n, 0.9 - i / 10, source="x") for i, n in enumerate("abcd")]
    assert ids(Quota((("x", 2),), window=2)(notes, query())) == ["a", "b", "c", "d"]


def test_suppress_drops_what_another_candidate_says_it_supersedes() -> None:
    new = candidate("new", 0.5, supersedes=("old.md", "piece"))
    found = Suppress()(
        [candidate("old", 0.9), new, candidate("piece", 0.4, path="long.md"), candidate("other")],
        query(),
    )
    assert ids(found) == ["new", "other"]


def test_suppress_follows_a_chain_and_stops_at_a_circle() -> None:
    chain = [
        candidate("a", supersedes=("b.md",)),
        candidate("b", supersedes=("c.md",)),
        candidate("c"),
    ]
    assert ids(Suppress()(chain, query())) == ["a"]
    circle = [candidate("a", supersedes=("b.md",)), candidate("b", supersedes=("a.md",))]
    assert ids(Suppress()(circle, query())) == ["a", "b"], (
        "an answer must not vanish because two notes disagree"
    )
    assert ids(Suppress()([candidate("a", supersedes=("a.md",))], query())) == ["a"]


def test_cut_looks_at_confidence_or_at_the_score() -> None:
    sure = candidate("sure", 0.2, signals={"confidence": 0.9})
    unsure = candidate("unsure", 0.6, signals={"confidence": 0.1})
    bare = candidate("bare", 0.4)
    notes = [unsure, bare, sure]
    assert ids(Cut(0.35)(notes, query())) == ["bare", "sure"], (
        "without a confidence the score is looked at"
    )
    assert ids(Cut(0.35, on="score")(notes, query())) == ["unsure", "bare"]
    assert ids(Cut(0.35)(notes, query(min_score=0.0))) == ["unsure", "bare", "sure"], (
        "the question goes first"
    )
    assert ids(Cut()(notes, query(min_score=0.95))) == []


def test_cut_stops_before_the_token_budget_but_never_shows_nothing() -> None:
    notes = [candidate(n, 0.9, "x" * 40) for n in "abc"]
    assert ids(Cut()(notes, query(budget_tokens=20))) == ["a", "b"]
    assert ids(Cut()(notes, query(budget_tokens=19))) == ["a"]
    assert ids(Cut()(notes, query(budget_tokens=1))) == ["a"]


@settings(max_examples=60, deadline=None)
@given(
    given_=candidates_,
    fewer=st.integers(1, 10),
    more=st.integers(0, 20),
    least=st.sampled_from([-1.0, 0.3]),
)
def test_fewer_wanted_is_the_same_list_shorter(
    given_: list[Candidate], fewer: int, more: int, least: float
) -> None:
    stage = Cut(0.2)
    short = stage(given_, query(limit=fewer, min_score=least))
    long = stage(given_, query(limit=fewer + more, min_score=least))
    assert short == long[:fewer]
    thrifty = stage(given_, query(limit=fewer + more, min_score=least, budget_tokens=12))
    assert thrifty == long[: len(thrifty)]


def test_age_counts_days_of_the_question() -> None:
    one = candidate("x", date=day(3)).chunk
    assert stages.age_days(one, query()) == 3


def test_one_note_does_not_fill_the_list() -> None:
    log = [candidate(f"log{i}", s, path="log.md") for i, s in enumerate((0.90, 0.88, 0.86))]
    other = candidate("other", 0.85)
    found = Spread()([*log, other], query())
    assert ids(found) == ["log0", "other", "log1", "log2"], "log1 is 0.4 behind itself, log2 0.8"
    assert ids(Spread(depth=3)([*log, other], query())) == ["log0", "log1", "log2", "other"]
    apart = [candidate(name, score) for name, score in (("a", 0.9), ("b", 0.9), ("c", 0.1))]
    assert list(Spread()(apart, query())) == apart, "notes with one passage each stay as they are"


LINKS = (
    "- [nginx](https://example.org/til/nginx/socket.md) - 2021\n- [[pond|The pond]]\n* "
    "[More](../More%20notes.md#top)"
)


def index_page(score: float, **rest: Any) -> Candidate:
    return candidate("page", score, LINKS, path="README.md", **rest)


@pytest.mark.parametrize(
    "path", ["nginx/socket.md", "memory/pond.md", "Pond.md", "memory/more notes.md"]
)
def test_a_list_of_links_goes_behind_the_best_note_that_it_links_to(path: str) -> None:
    other, note, last = (
        candidate("a", 0.97),
        candidate("b", 0.96, path=path),
        candidate("c", 0.95, path="pond.md"),
    )
    found = Listing()([index_page(0.98), other, note, last], query())
    assert ids(found) == ["a", "b", "page", "c"]
    assert found[2].signals.links == 1.0
    assert found[2].score < found[1].score


@pytest.mark.parametrize(
    "candidates",
    [
        [index_page(0.98), candidate("b", 0.96, path="socket2.md")],
        [index_page(0.98), candidate("b", 0.60, path="pond.md")],
        [candidate("b", 0.99, path="pond.md"), index_page(0.98)],
        [index_page(0.98), candidate("b", 0.96, LINKS, path="pond.md")],
        [
            replace(index_page(0.98), ranks={"path": LegRank(1, 1.0)}),
            candidate("b", 0.96, path="pond.md"),
        ],
        [
            candidate(
                "talk",
                0.98,
                "- [[pond]] said that we ship on Friday\n- [[c]] wants to see the numbers first",
            ),
            candidate("b", 0.96, path="pond.md"),
        ],
    ],
    ids=[
        "not linked",
        "far behind",
        "in order",
        "a list too",
        "asked for by name",
        "notes of a talk",
    ],
)
def test_any_other_page_stays_where_it_is(candidates: list[Candidate]) -> None:
    assert Listing()(candidates, query()) == candidates


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 999), st.sampled_from(["a.md", "b.md", "c.md"])), max_size=20
    ),
    st.sampled_from([0.0, 0.4, 3.0]),
    st.sampled_from([3, 50]),
)
def test_spread_keeps_all_and_the_first_passages_of_notes_in_their_order(
    rows: list[tuple[int, str]], step: float, depth: int
) -> None:
    notes = ordered(
        candidate(f"c{i:02}", score / 1000, path=path) for i, (score, path) in enumerate(rows)
    )
    found = Spread(step, depth)(notes, query())
    assert sorted(ids(found)) == sorted(ids(notes))
    assert list(dict.fromkeys(c.chunk.path for c in found)) == list(
        dict.fromkeys(c.chunk.path for c in notes)
    )
    for path in ("a.md", "b.md", "c.md"):
        assert ids([c for c in found if c.chunk.path == path]) == ids(
            [c for c in notes if c.chunk.path == path]
        )


def sure(name: str, confidence: float) -> Candidate:
    return candidate(name, 0.9, signals={"confidence": confidence})


def test_abstain_is_all_or_nothing() -> None:
    least = Abstain().least
    weak = [sure("a", least / 2), sure("b", least - 1e-9)]
    assert Abstain()(weak, query()) == []
    one = [*weak, sure("c", least)]
    assert Abstain()(one, query()) == one, "one likely hit keeps the list, wherever it is"
    assert Abstain(least / 2)(weak, query()) == weak
    assert Abstain()([], query()) == []


def test_what_words_cannot_judge_is_neither_abstained_from_nor_cut() -> None:
    """A passage with every word of the question, and one in another script, where no word could be
    shared.
    """
    whole = candidate("a", 0.9, signals={"confidence": 1e-6, "cover": 1.0})
    foreign = candidate("b", 0.9, "会议记录在共享文件夹里", signals={"confidence": 1e-6})
    plain = candidate(
        "c", 0.9, "The minutes are in the shared folder", signals={"confidence": 1e-6}
    )
    cut = Cut(0.01)
    assert [ids(Abstain()([c], query())) for c in (whole, foreign, plain)] == [["a"], ["b"], []]
    assert Abstain()([plain, foreign], query()) == [], "most of the first would have to be"
    near = candidate("d", 0.9, signals={"confidence": 1e-6, "lift": 0.45})
    assert ids(Abstain()([plain, near], query())) == ["c", "d"], "a paraphrase shares no word"
    assert Abstain(near=0.5)([plain, near], query()) == []
    assert ids(cut([whole, foreign, plain], query())) == ["a", "b"]
    asked = query(min_score=0.01)
    assert ids(cut([whole, foreign, plain], asked)) == [], "unless the question has its own least"
    assert not cut.drops(plain, query(min_score=0.0))


def test_abstain_looks_at_the_score_where_there_is_no_confidence() -> None:
    bare = [candidate("a", 0.3)]
    assert Abstain()(bare, query()) == bare
    assert Abstain(0.5)(bare, query()) == []


@pytest.mark.parametrize("least", [0.0, 0.3, 1.0])
def test_abstain_leaves_a_question_alone_that_names_its_own_least(least: float) -> None:
    weak = [sure("a", 0.001)]
    assert Abstain()(weak, query(min_score=least)) == weak


def test_suppress_drops_what_the_store_knows_to_be_superseded_and_spares_pins() -> None:
    by = Relations("new", "new.md#L1")
    old, pinned = (replace(candidate(n, 0.9, pinned=n == "p"), relations=by) for n in ("o", "p"))
    assert ids(Suppress()([old, pinned], query())) == ["p"]
    assert ids(Suppress()([old, pinned], query(include_superseded=True))) == ["o", "p"]
    copy = replace(candidate("c", 0.9), relations=Relations("new", "new.md#L1", copy=True))
    assert ids(Suppress()([copy], query())) == ["c"], "copies are the business of Collapse"


def test_collapse_keeps_the_newest_copy_at_the_best_place() -> None:
    older = replace(candidate("a", 0.9), relations=Relations("c", "c.md#L1", copy=True))
    found = Collapse()([older, candidate("b", 0.8), candidate("c", 0.7)], query())
    assert ids(found) == ["c", "b"]
    assert scores(found) == {"c": 0.9, "b": 0.8}
    assert ids(Collapse()([older, candidate("c", 0.7)], query(include_superseded=True))) == [
        "a",
        "c",
    ]


def test_collapse_never_loses_the_only_copy_that_was_found() -> None:
    by = Relations("beyond", "beyond.md#L1", copy=True)
    found = Collapse()(
        [replace(candidate(n, s), relations=by) for n, s in (("a", 0.9), ("b", 0.8))], query()
    )
    assert ids(found) == ["a"]


def test_settle_puts_the_newer_directly_before_the_older() -> None:
    older = replace(candidate("a", 0.9, date=day(20)), relations=Relations(conflicts_with=("c",)))
    newer = replace(candidate("c", 0.5, date=day(1)), relations=Relations(conflicts_with=("a",)))
    other = [candidate("x", 0.95), candidate("b", 0.7)]
    found = Settle()([other[0], older, other[1], newer], query())
    assert ids(found) == ["x", "c", "a", "b"]
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert scores(found)["c"] == 0.9
    undated = [replace(c, chunk=replace(c.chunk, facts=Facts())) for c in (older, newer)]
    assert ids(Settle()(undated, query())) == ["a", "c"], "nobody knows which is newer"
    asked = query(dates=(Span(day(20), day(20), "then"),))
    assert ids(Settle()([older, newer], asked)) == ["a", "c"], "the question is about that day"
    covering = replace(older, signals=older.signals._replace(cover=1.0))
    assert ids(Settle()([covering, newer], query())) == ["a", "c"], (
        "the question has the older one's own words"
    )


def test_settle_orders_three_that_contradict_each_other_by_their_days() -> None:
    names = {"a": 30, "b": 20, "c": 10}
    made = [
        replace(
            candidate(n, 0.9 - i / 10, date=day(age)),
            relations=Relations(conflicts_with=tuple(set(names) - {n})),
        )
        for i, (n, age) in enumerate(names.items())
    ]
    assert ids(Settle()(made, query())) == ["c", "b", "a"]


def test_a_note_goes_before_a_turn_that_is_hardly_better() -> None:
    turn = candidate("turn", 0.80, "Staging uses 8080.", source="sessions")
    note = candidate("note", 0.70, "Staging answers on port 9443.")
    weak = candidate("weak", 0.20, "The office has a port for ships.")
    assert ids(NotesFirst()([turn, note, weak], query())) == ["note", "turn", "weak"]
    assert ids(NotesFirst()([replace(turn, score=0.99), note], query())) == ["turn", "note"]
    half_open = replace(turn, score=0.99, signals=turn.signals._replace(unanswered=0.5))
    sure = replace(note, signals=note.signals._replace(confidence=0.6))
    assert ids(NotesFirst()([half_open, sure, weak], query())) == ["note", "turn", "weak"]
    assert ids(NotesFirst()([half_open, weak], query())) == ["turn", "weak"]
    telling = replace(half_open, signals=half_open.signals._replace(unanswered=0.1))
    assert ids(NotesFirst()([telling, sure, weak], query())) == ["turn", "note", "weak"]
    assert NotesFirst()([turn], query()) == [turn]
    assert NotesFirst()([note, weak], query()) == [note, weak]
