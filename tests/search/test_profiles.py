"""Profiles: the published pipelines as data, and how many hits each shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import SettingsError, UsageError
from notewell.memory import Memory
from notewell.search.current import Newer
from notewell.search.fusion import Rrf
from notewell.search.profiles import PROFILES, adapted, profile
from notewell.search.stages import Cut, Decay, Mmr, Quota, Rerank, Settle, Suppress
from notewell.settings import SearchSettings, Settings
from notewell.types import Relations
from tests.conftest import Write
from tests.embed.models import CallableReranker
from tests.search.made import NOW, candidate, day, ids, query, scores, through


def test_openclaw_takes_four_candidates_a_leg_for_every_hit_wanted() -> None:
    assert [PROFILES["openclaw"].pool_for(limit) for limit in (1, 6, 20)] == [4, 24, 80]
    assert PROFILES["openclaw"].limit == 6
    assert PROFILES["openclaw"].stages == (Cut(0.35, on="score"),)


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"openclaw", "openclaw-2026.2.13"}))
def test_every_other_pool_is_fixed(name: str) -> None:
    assert len({PROFILES[name].pool_for(limit) for limit in (1, 6, 500)}) == 1


def test_siftcoder_is_as_it_was_published() -> None:
    sift = PROFILES["siftcoder"]
    assert (sift.pool_for(1), sift.limit) == (50, 5)
    assert sift.stages == (Decay(tau_days=7.0), Suppress(), Cut(on="score"))
    found = through(
        sift,
        [
            candidate("new", vector=(2, 0.5), lexical=2, date=day(1), supersedes=("old.md",)),
            candidate("old", vector=(1, 0.6), lexical=1, date=day(1)),
            candidate("stale", vector=(3, 0.4), lexical=3, date=day(30)),
        ],
        query(),
    )
    assert scores(found) == {
        "new": pytest.approx(2 / 62 * 0.867, rel=1e-3),
        "stale": pytest.approx(2 / 63 * 0.01376, rel=1e-3),
    }


def test_maxnorm_decays_and_diversifies() -> None:
    text = "the router is a fritz box"
    copies = [
        candidate(name, text=text, vector=(rank, 0.6), date=day(0))
        for rank, name in ((1, "a"), (2, "b"))
    ]
    other = candidate("c", text="backups run at night", vector=(3, 0.45), date=day(0))
    faded = candidate("d", text="the lamp is green", vector=(4, 0.6), date=day(90))
    assert ids(through(PROFILES["maxnorm"], [*copies, other, faded], query())) == [
        "a",
        "c",
        "b",
        "d",
    ]


def test_a_natural_question_finds_nothing_when_its_words_are_joined_by_and(
    memory: Memory, write: Write
) -> None:
    write(
        "memory/network.md",
        "# Network\n\nThe router sits in the hall, its password is on the box.\n",
    )
    write("memory/tea.md", "# Tea\n\nGreen tea, three minutes.\n")
    question = "what was the password of our router at home again?"
    found = memory.search(question, profile="openclaw", now=NOW)
    assert found.hits[0].chunk.path == "memory/network.md"
    assert found.hits[0].ranks["lexical"].rank == 1
    old = memory.search(question, profile="openclaw-2026.2.13", now=NOW)
    assert next(leg for leg in old.trace.legs if leg.stage == "lexical").marks == ()
    whole = memory.search("router password", profile="openclaw-2026.2.13", now=NOW)
    assert "lexical" in whole.hits[0].ranks, "two words that stand in one note are found even so"


def eight_notes(write: Write) -> None:
    for number in range(8):
        write(
            f"memory/note{number}.md", f"# Note {number}\n\nThe staging port is {8440 + number}.\n"
        )


@pytest.mark.parametrize(("name", "shown"), [("siftcoder", 5), ("rrf", 6), ("default", 6)])
def test_a_profile_says_how_many_hits_when_nobody_else_does(
    memory: Memory, write: Write, name: str, shown: int
) -> None:
    eight_notes(write)
    assert len(memory.search("staging port", profile=name, now=NOW).hits) == shown
    assert memory.searcher.limit(name) == shown
    assert len(memory.search("staging port", profile=name, limit=7, now=NOW).hits) == 7


@pytest.mark.parametrize("limit", [3, 6])
def test_a_limit_that_the_user_has_set_goes_before_the_profile(
    root: Path, write: Write, limit: int
) -> None:
    eight_notes(write)
    (root / "notewell.toml").write_text(f"[search]\nlimit = {limit}\n")
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        assert len(memory.search("staging port", profile="siftcoder", now=NOW).hits) == limit


def test_a_limit_in_a_settings_object_counts_as_set(root: Path, write: Write) -> None:
    eight_notes(write)
    own = Settings(search=SearchSettings(limit=2))
    with Memory.open(root, settings=own, embedder=HashedEmbedder()) as memory:
        assert len(memory.search("staging port", profile="siftcoder", now=NOW).hits) == 2


def test_an_unknown_profile_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no profile is called 'opnclaw'") as caught:
        profile("opnclaw")
    assert caught.value.hint == "did you mean openclaw?"
    with pytest.raises(UsageError) as caught:
        profile("zzz")
    assert "siftcoder" in caught.value.hint


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_that_nothing_changes_is_itself(name: str) -> None:
    assert adapted(PROFILES[name]) is PROFILES[name]


def test_a_profile_takes_another_fusion_other_stages_and_pool_and_shows_it_in_its_name() -> None:
    default, openclaw = PROFILES["default"], PROFILES["openclaw"]
    fused = adapted(default, fusion="rrf(vector=0.5, text=0.5)")
    assert (fused.name, fused.fusion, fused.stages) == ("default*", Rrf(0.5, 0.5), default.stages)
    staged = adapted(default, stages=["decay(half_life_days=90)", "mmr"])
    assert (staged.name, staged.fusion, staged.stages) == (
        "default*",
        default.fusion,
        (Decay(90.0), Mmr(), Cut()),
    )
    both = adapted(default, fusion="rrf", stages=["mmr"])
    assert (both.name, both.fusion, both.stages) == ("default*", Rrf(), (Mmr(), Cut()))
    assert [adapted(openclaw, pool=30).pool_for(limit) for limit in (1, 20)] == [30, 30]


def test_a_reranker_reads_before_the_newer_of_two_notes_is_put_first() -> None:
    reading = Rerank(CallableReranker(lambda question, passages: [0.5] * len(passages)))
    default = PROFILES["default"]
    at = default.stages.index(Newer())
    assert Settle() in default.stages[at:]
    assert adapted(default, reranker=reading).stages == (
        *default.stages[:at],
        reading,
        *default.stages[at:],
    )
    bound = Quota((("sessions", 3),), window=6)
    both = adapted(default, reranker=reading, session_share=0.5).stages
    assert both == (
        *default.stages[:at],
        reading,
        *default.stages[at:-1],
        bound,
        default.stages[-1],
    )
    assert adapted(default, stages=["mmr", "settle"], reranker=reading).stages == (
        Mmr(),
        reading,
        Settle(),
        Cut(),
    )
    assert adapted(default, stages=["mmr"], session_share=0.5).stages == (Mmr(), Cut())
    assert adapted(PROFILES["rrf"], session_share=0.5) is PROFILES["rrf"]
    assert adapted(default, stages=["cut(min_score=0.2)", "mmr"], reranker=reading).stages == (
        reading,
        Cut(0.2),
        Mmr(),
    )


def test_a_reranker_that_prefers_the_older_of_two_statements_does_not_bring_it_up() -> None:
    older, newer = (
        candidate(n, 0.5, text=n, date=day(age), relations=Relations(conflicts_with=(other,)))
        for n, other, age in (("old", "new", 20), ("new", "old", 1))
    )
    reading = Rerank(
        CallableReranker(lambda question, passages: [float("old" in p) for p in passages]),
        weight=1.0,
    )
    chosen = adapted(
        replace(PROFILES["default"], fusion=lambda found, _query: found), reranker=reading
    )
    assert ids(through(chosen, [older, newer], query())) == ["new", "old"]


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"fusion": "rff"}, "did you mean rrf?"),
        ({"fusion": "decay"}, "known: default, combine, "),
        ({"stages": ["mmr", "decy"]}, "did you mean decay?"),
        ({"stages": ["mmr(lambda=2)"]}, "1 is relevance alone"),
    ],
)
def test_what_a_profile_cannot_become_is_refused_with_a_hint(
    changes: dict[str, Any], hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        adapted(PROFILES["default"], **changes)
    assert hint in caught.value.hint
