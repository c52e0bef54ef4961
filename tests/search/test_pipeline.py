"""The search walk: legs side by side, signals for all, stages, and a trace that no stage knows of."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from recollect.embed.hashed import HashedEmbedder
from recollect.errors import EmbedderError, StoreDamagedError, StoreError
from recollect.ports import Nearest, Role, Scored, Sought, Vectors
from recollect.search.fusion import Rrf, rescored
from recollect.search.pipeline import Bench, Profile, Ranked, run
from recollect.search.profiles import PROFILES
from recollect.search.stages import Cut
from recollect.store.sqlite import SqliteStore
from recollect.text.dates import spans_in
from recollect.types import Candidate, Filters, Query
from tests.search.made import NOW, chunk, day, ids, query, store_of

EMBEDDER = HashedEmbedder()
NOTES = [
    chunk("router", "The router sits in the hall, its password is on the box.", heading=("Network",)),
    chunk("routing", "Routers and routing: a primer, nothing about our own."),
    chunk("tea", "Green tea, three minutes.", date=day(2)),
    chunk("deploy", "Deploys run on Tuesday with the auth token.", path="memory/deploy-guide.md"),
    *(chunk(f"log{i:02}", f"Log {i}: the hall lamp was replaced.") for i in range(20)),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def bench(executor: Executor) -> Bench:
    return Bench(store_of(NOTES, EMBEDDER), EMBEDDER, executor)


def ask(text: str, profile: Profile, bench: Bench, **rest: object) -> Ranked:
    return run(query(text, **rest), profile, bench)


def test_every_leg_and_stage_is_in_the_trace(bench: Bench) -> None:
    found = ask("router password", PROFILES["default"], bench)
    assert [leg.stage for leg in found.trace.legs] == ["lexical", "vector", "path"]
    profile = PROFILES["default"]
    assert [step.stage for step in found.trace.steps] == [repr(s) for s in (profile.fusion, *profile.stages)]
    last = found.trace.steps[-1].marks
    assert [(m.id, m.rank, m.score) for m in last] == [
        (c.id, rank, c.score) for rank, c in enumerate(found.candidates, start=1)
    ]


def test_what_goes_into_a_step_comes_out_or_is_named_as_dropped(bench: Bench) -> None:
    found = ask("router password in the hall", PROFILES["default"], bench, limit=3)
    before = set(found.trace.candidates)
    assert before == {m.id for leg in found.trace.legs for m in leg.marks}
    for step in found.trace.steps:
        after = {m.id for m in step.marks}
        assert before == after | set(step.dropped)
        assert not after & set(step.dropped)
        before = after
    assert len(found.candidates) == 3


@dataclass(frozen=True, slots=True)
class Backwards:
    """A stage that somebody wrote today: turns the scores around and drops one name."""

    without: str = "tea"

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        return rescored((c for c in candidates if c.id != self.without), lambda c: 1.0 - c.score)


def test_a_stage_written_today_is_traced_without_knowing_it(bench: Bench) -> None:
    profile = Profile("mine", Rrf(), (Backwards("router"), Cut(on="score")), legs=("lexical", "vector"))
    found = ask("router", profile, bench, limit=50)
    step = found.trace.steps[1]
    assert step.stage == "Backwards(without='router')"
    assert step.dropped == ("router",)
    assert [m.id for m in step.marks] == ids(found.candidates)
    before = {m.id: m.score for m in found.trace.steps[0].marks}
    assert all(m.score == pytest.approx(1.0 - before[m.id]) for m in step.marks)
    assert found.trace.candidates["router"].score == before["router"], "what was dropped keeps the score it had"


def test_the_first_stage_gets_its_candidates_in_the_order_of_their_ids(bench: Bench) -> None:
    def as_they_come(candidates: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
        return candidates

    found = ask("router in the hall", Profile("bare", as_they_come), bench)
    assert ids(found.candidates) == sorted(ids(found.candidates))
    assert len(found.candidates) > 10


def test_what_one_leg_found_has_the_signals_of_all(bench: Bench) -> None:
    found = ask("router", replace(PROFILES["default"], pool=3), bench, limit=50)
    alone = [c for c in found.trace.candidates.values() if set(c.ranks) == {"vector"}]
    words = [c for c in found.trace.candidates.values() if set(c.ranks) == {"lexical"}]
    assert alone
    vector = EMBEDDER.embed(["router"], "query")[0]
    rows = {c.id: c.row for c in bench.store.chunks(range(1, 100)).values()}
    cosines = bench.store.cosines(EMBEDDER.id, vector, list(rows.values()))
    for c in [*alone, *words]:
        assert c.signals["cosine"] == cosines[rows[c.id]]
        assert {"text", "cover", "near", "head", "exact", "z"} <= c.signals.keys()


def test_a_candidate_that_only_the_path_leg_found_has_all_signals_too(bench: Bench) -> None:
    found = ask("deploy-guide", replace(PROFILES["default"], legs=("path",)), bench, limit=50)
    assert [(c.id, list(c.ranks)) for c in found.candidates] == [("deploy", ["path"])]
    assert found.candidates[0].signals["head"] > 0


def test_z_says_how_far_a_cosine_stands_out_of_the_corpus(bench: Bench) -> None:
    found = ask("router password", PROFILES["default"], bench, limit=50)
    vector = EMBEDDER.embed(["router password"], "query")[0]
    nearest = bench.store.nearest(EMBEDDER.id, vector, 1, Filters())
    for c in found.candidates:
        assert c.signals["z"] == pytest.approx((c.signals["cosine"] - nearest.mean) / nearest.deviation)


def test_the_first_hits_do_not_depend_on_how_many_were_asked_for(bench: Bench) -> None:
    many = ids(ask("the hall lamp", PROFILES["default"], bench, limit=20).candidates)
    for limit in (1, 2, 7):
        assert ids(ask("the hall lamp", PROFILES["default"], bench, limit=limit).candidates) == many[:limit]


def test_a_leg_brings_no_more_than_the_pool(bench: Bench) -> None:
    found = ask("the hall lamp", replace(PROFILES["rrf"], pool=4), bench)
    assert [len(leg.marks) for leg in found.trace.legs] == [4, 4]
    found = ask("the hall lamp", PROFILES["openclaw"], bench, limit=2)
    assert [len(leg.marks) for leg in found.trace.legs] == [8, 8]


@pytest.mark.parametrize(("name", "mode"), [("default", "hybrid"), ("lexical", "lexical"), ("vector", "vector")])
def test_the_mode_says_what_really_answered(bench: Bench, name: str, mode: str) -> None:
    assert ask("router", PROFILES[name], bench).mode == mode
    assert ask("router", PROFILES[name], replace(bench, embedder=None)).mode == "lexical"


def test_the_same_question_has_the_same_answer_whatever_was_indexed_first(executor: Executor) -> None:
    answers = []
    for notes in (NOTES, NOTES[::-1], [*NOTES[7:], *NOTES[:7]]):
        bench = Bench(store_of(notes, EMBEDDER), EMBEDDER, executor)
        for question in ("the hall lamp", "router password", "tea"):
            for name in PROFILES:
                found = ask(question, PROFILES[name], bench, limit=30)
                answers.append((question, name, [(c.id, c.score) for c in found.candidates]))
    size = len(answers) // 3
    assert answers[:size] == answers[size : 2 * size] == answers[2 * size :]


def test_a_day_that_the_question_names_is_a_signal(bench: Bench) -> None:
    text = "what did I drink on 2026-03-10"
    found = ask(text, PROFILES["default"], bench, dates=spans_in(text, NOW), limit=50)
    tea = found.trace.candidates["tea"]
    assert (tea.ranks["path"].rank, tea.signals["date"]) == (1, 1.0)
    assert all("date" not in c.signals for c in found.trace.candidates.values() if c.id != "tea")


def test_a_question_without_words_asks_no_model(bench: Bench) -> None:
    found = ask("", PROFILES["default"], bench)
    assert (found.candidates, found.mode, found.notices) == ((), "lexical", ())


class Failing(HashedEmbedder):
    """A model that raises what it is given."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        raise self.error


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (EmbedderError("no key", hint="set one"), "meaning search failed: no key", "set one"),
        (RuntimeError("out of memory"), "meaning search failed: out of memory", ""),
    ],
)
def test_a_model_that_fails_becomes_a_notice_and_keywords_answer(
    bench: Bench, error: Exception, message: str, hint: str
) -> None:
    found = ask("router", PROFILES["default"], replace(bench, embedder=Failing(error)))
    assert [(n.code, n.message, n.hint) for n in found.notices] == [("vector_failed", message, hint)]
    assert found.candidates[0].id == "router"
    assert found.mode == "lexical"
    assert [leg.stage for leg in found.trace.legs] == ["lexical", "path"]


class Waiting(HashedEmbedder):
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        assert self.go.wait(30)
        return super().embed(texts, role)


def test_a_model_that_is_late_becomes_a_notice_and_keywords_answer(bench: Bench) -> None:
    late = Waiting()
    try:
        found = ask("router", PROFILES["default"], replace(bench, embedder=late, deadline_s=0.01))
    finally:
        late.go.set()
    assert [n.code for n in found.notices] == ["vector_late"]
    assert "0.01 s" in found.notices[0].message
    assert (found.candidates[0].id, found.mode) == ("router", "lexical")


class Broken(SqliteStore):
    """A store of which one part does not answer."""

    error: StoreError = StoreError("did not understand", hint="please report it")

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        raise self.error


class NoVectors(SqliteStore):
    """A store whose vectors are broken."""

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        raise StoreDamagedError("vectors differ in length")


def broken(kind: type[SqliteStore]) -> SqliteStore:
    store = store_of(NOTES, EMBEDDER)
    store.__class__ = kind
    return store


def test_a_keyword_leg_that_fails_becomes_a_notice_and_meaning_answers(bench: Bench) -> None:
    found = ask("router password", PROFILES["default"], replace(bench, store=broken(Broken)))
    assert [(n.code, n.hint) for n in found.notices] == [("lexical_failed", "please report it")]
    assert found.notices[0].message == "keyword search failed: did not understand"
    assert (found.candidates[0].id, found.mode) == ("router", "vector")


def test_a_damaged_index_is_no_notice_so_that_it_is_made_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "error", StoreDamagedError("malformed"))
    with pytest.raises(StoreDamagedError, match="malformed"):
        ask("router", PROFILES["default"], replace(bench, store=broken(Broken)))


def test_a_broken_vector_table_is_never_a_reason_for_an_empty_answer(bench: Bench) -> None:
    found = ask("router", PROFILES["default"], replace(bench, store=broken(NoVectors)))
    assert [n.code for n in found.notices] == ["vector_failed"]
    assert found.candidates[0].id == "router"


def test_a_vector_may_be_given_instead_of_made(bench: Bench) -> None:
    given = replace(bench, embedder=Failing(RuntimeError()), vector_of=lambda text: EMBEDDER.embed([text], "query")[0])
    assert ask("router", PROFILES["vector"], given).candidates == ask("router", PROFILES["vector"], bench).candidates
