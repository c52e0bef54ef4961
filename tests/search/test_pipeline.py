"""The search walk: legs side by side, signals for all, stages, and a trace that no stage knows
of.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import notewell
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import EmbedderError, StoreDamagedError, StoreError
from notewell.search.fusion import Rrf, rescored
from notewell.search.lazy_marks import LazyMarks
from notewell.search.pipeline import Profile, Ranked, SearchContext, run
from notewell.search.profiles import PROFILES
from notewell.search.stages import Boost, Cut
from notewell.store.values import Nearest, Scored, Sought, TermCounts
from notewell.text.dates import spans_in
from notewell.types import Candidate, Filters, Mark, Query, Role, Vectors
from tests.search.made import NOW, chunk, context_of, day, ids, query, store_of

EMBEDDER = HashedEmbedder()
NOTES = [
    chunk(
        "router", "The router sits in the hall, its password is on the box.", heading=("Network",)
    ),
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
def context(executor: Executor) -> SearchContext:
    return context_of(store_of(NOTES, EMBEDDER), EMBEDDER, executor)


def ask(text: str, profile: Profile, context: SearchContext, **rest: object) -> Ranked:
    return run(query(text, **rest), profile, context)


def test_every_leg_and_stage_is_in_the_trace(context: SearchContext) -> None:
    found = ask("router password", PROFILES["default"], context)
    assert [leg.stage for leg in found.trace.legs] == ["lexical", "vector", "path"]
    profile = PROFILES["default"]
    assert [step.stage for step in found.trace.steps] == [
        repr(s) for s in (profile.fusion, *profile.stages)
    ]
    last = found.trace.steps[-1].marks
    assert [(m.id, m.rank, m.score) for m in last] == [
        (c.id, rank, c.score) for rank, c in enumerate(found.candidates, start=1)
    ]


def test_what_goes_into_a_step_comes_out_or_is_named_as_dropped(context: SearchContext) -> None:
    found = ask("router password in the hall", PROFILES["default"], context, limit=3, min_score=0.0)
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


def test_a_stage_written_today_is_traced_without_knowing_it(context: SearchContext) -> None:
    profile = Profile(
        "mine", Rrf(), (Backwards("router"), Cut(on="score")), legs=("lexical", "vector")
    )
    found = ask("router", profile, context, limit=50)
    step = found.trace.steps[1]
    assert step.stage == "Backwards(without='router')"
    assert step.dropped == ("router",)
    assert [m.id for m in step.marks] == ids(found.candidates)
    before = {m.id: m.score for m in found.trace.steps[0].marks}
    assert all(m.score == pytest.approx(1.0 - before[m.id]) for m in step.marks)
    assert found.trace.candidates["router"].score == before["router"], (
        "what was dropped keeps the score it had"
    )


def test_the_first_stage_gets_its_candidates_in_the_order_of_their_ids(
    context: SearchContext,
) -> None:
    def as_they_come(candidates: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
        return candidates

    found = ask("router in the hall", Profile("bare", as_they_come), context)
    assert ids(found.candidates) == sorted(ids(found.candidates))
    assert len(found.candidates) > 10


def test_what_one_leg_found_has_the_signals_of_all(context: SearchContext) -> None:
    found = ask("router", replace(PROFILES["default"], pool=3), context, limit=50)
    alone = [c for c in found.trace.candidates.values() if set(c.ranks) == {"vector"}]
    words = [c for c in found.trace.candidates.values() if set(c.ranks) == {"lexical"}]
    assert alone
    vector = EMBEDDER.embed(["router"], "query")[0]
    rows = {c.id: c.row for c in context.store.documents.chunks(range(1, 100)).values()}
    cosines = context.store.vectors.cosines(EMBEDDER.id, vector, list(rows.values()))
    for c in [*alone, *words]:
        assert c.signals.cosine == cosines[rows[c.id]]
        assert {"text", "cover", "near", "head", "exact", "z"} <= c.signals.as_dict().keys()


def test_a_candidate_that_only_the_path_leg_found_has_all_signals_too(
    context: SearchContext,
) -> None:
    found = ask("deploy-guide", replace(PROFILES["default"], legs=("path",)), context, limit=50)
    assert [(c.id, list(c.ranks)) for c in found.candidates] == [("deploy", ["path"])]
    assert found.candidates[0].signals.head > 0


def test_z_is_how_far_a_cosine_is_above_the_mean_of_the_corpus(context: SearchContext) -> None:
    found = ask("router password", PROFILES["default"], context, limit=50)
    vector = EMBEDDER.embed(["router password"], "query")[0]
    nearest = context.store.vectors.nearest(EMBEDDER.id, vector, 1, Filters())
    for c in found.candidates:
        assert c.signals.cosine is not None
        assert c.signals.z == pytest.approx((c.signals.cosine - nearest.mean) / nearest.deviation)


def test_the_first_hits_do_not_depend_on_how_many_were_asked_for(context: SearchContext) -> None:
    many = ids(ask("the hall lamp", PROFILES["default"], context, limit=20).candidates)
    for limit in (1, 2, 7):
        assert (
            ids(ask("the hall lamp", PROFILES["default"], context, limit=limit).candidates)
            == many[:limit]
        )


def test_a_leg_brings_no_more_than_the_pool(context: SearchContext) -> None:
    found = ask("the hall lamp", replace(PROFILES["rrf"], pool=4), context)
    assert [len(leg.marks) for leg in found.trace.legs] == [4, 4]
    found = ask("the hall lamp", PROFILES["openclaw"], context, limit=2)
    assert [len(leg.marks) for leg in found.trace.legs] == [8, 8]


@pytest.mark.parametrize(
    ("name", "mode"), [("default", "hybrid"), ("lexical", "lexical"), ("vector", "vector")]
)
def test_the_mode_says_what_really_answered(context: SearchContext, name: str, mode: str) -> None:
    assert ask("router", PROFILES[name], context).mode == mode
    assert ask("router", PROFILES[name], replace(context, question=None)).mode == "lexical"


def test_the_same_question_has_the_same_answer_whatever_was_indexed_first(
    executor: Executor,
) -> None:
    answers = []
    for notes in (NOTES, NOTES[::-1], [*NOTES[7:], *NOTES[:7]]):
        context = context_of(store_of(notes, EMBEDDER), EMBEDDER, executor)
        for question in ("the hall lamp", "router password", "tea"):
            for name in PROFILES:
                found = ask(question, PROFILES[name], context, limit=30)
                answers.append((question, name, [(c.id, c.score) for c in found.candidates]))
    size = len(answers) // 3
    assert answers[:size] == answers[size : 2 * size] == answers[2 * size :]


def test_a_day_that_the_question_names_is_a_signal(context: SearchContext) -> None:
    text = "what did I drink on 2026-03-10"
    found = ask(text, PROFILES["default"], context, dates=spans_in(text, NOW), limit=50)
    tea = found.trace.candidates["tea"]
    assert (tea.ranks["path"].rank, tea.signals.date) == (1, 1.0)
    assert all(c.signals.date is None for c in found.trace.candidates.values() if c.id != "tea")


def test_a_question_without_words_asks_no_model(context: SearchContext) -> None:
    found = ask("", PROFILES["default"], context)
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
    context: SearchContext, error: Exception, message: str, hint: str
) -> None:
    found = ask(
        "router", PROFILES["default"], context_of(context.store, Failing(error), context.executor)
    )
    assert [(n.code, n.message, n.hint) for n in found.notices] == [
        ("vector_failed", message, hint)
    ]
    assert found.candidates[0].id == "router"
    assert found.mode == "lexical"
    assert [leg.stage for leg in found.trace.legs] == ["lexical", "path"]


class Waiting(HashedEmbedder):
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.go.wait()
        return super().embed(texts, role)


def test_a_model_that_is_late_becomes_a_notice_and_keywords_answer(context: SearchContext) -> None:
    late = Waiting()
    try:
        found = ask(
            "router",
            PROFILES["default"],
            context_of(context.store, late, context.executor, deadline_s=0.01),
        )
    finally:
        late.go.set()
    assert [n.code for n in found.notices] == ["vector_late"]
    assert "0.01 s" in found.notices[0].message
    assert (found.candidates[0].id, found.mode) == ("router", "lexical")


class Part:
    """A store, or a part of one, of which a subclass changes some methods."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class Broken(Part):
    """Keywords that do not answer."""

    error: StoreError = StoreError("did not understand", hint="please report it")

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        raise self.error


class NoVectors(Part):
    """Vectors that are damaged."""

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        raise StoreDamagedError("vectors differ in length", hint="mend it")


def store_with(**parts: type[Part]) -> Any:
    """The store of the notes with some of its parts changed."""
    store = Part(store_of(NOTES, EMBEDDER))
    for name, kind in parts.items():
        setattr(store, name, kind(getattr(store, name)))
    return store


def test_a_keyword_leg_that_fails_becomes_a_notice_and_meaning_answers(
    context: SearchContext,
) -> None:
    found = ask(
        "router password", PROFILES["default"], replace(context, store=store_with(keywords=Broken))
    )
    assert [(n.code, n.hint) for n in found.notices] == [("lexical_failed", "please report it")]
    assert found.notices[0].message == "keyword search failed: did not understand"
    assert (found.candidates[0].id, found.mode) == ("router", "vector")


def test_a_damaged_index_is_an_error_and_not_a_notice_so_that_it_is_rebuilt(
    context: SearchContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, "error", StoreDamagedError("malformed"))
    with pytest.raises(StoreDamagedError, match="malformed"):
        ask("router", PROFILES["default"], replace(context, store=store_with(keywords=Broken)))


def test_damaged_vectors_of_a_file_are_an_error_too_and_elsewhere_a_notice(
    context: SearchContext, tmp_path: Path
) -> None:
    store = store_with(vectors=NoVectors)
    assert [
        n.hint for n in ask("router", PROFILES["default"], replace(context, store=store)).notices
    ] == ["mend it"]
    store.file = tmp_path / "index.sqlite"
    with pytest.raises(StoreDamagedError, match="differ in length"):
        ask("router", PROFILES["default"], replace(context, store=store))


def test_a_broken_vector_table_is_never_a_reason_for_an_empty_answer(
    context: SearchContext,
) -> None:
    found = ask(
        "router", PROFILES["default"], replace(context, store=store_with(vectors=NoVectors))
    )
    assert [n.code for n in found.notices] == ["vector_failed"]
    assert found.candidates[0].id == "router"


FAULTS = [
    ValueError("no"),
    KeyError("k"),
    ZeroDivisionError(),
    MemoryError(),
    RecursionError("deep"),
    OSError(5, "disk"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(
    ("part", "method", "code"),
    [
        ("keywords", "lexical", "lexical_failed"),
        ("documents", "by_name_or_date", "path_failed"),
        ("vectors", "nearest", "vector_failed"),
        ("vectors", "cosines", "vector_failed"),
    ],
)
def test_whatever_a_leg_raises_becomes_a_notice(
    context: SearchContext, part: str, method: str, code: str, *, fault: Exception
) -> None:
    def broken(*_args: Any) -> None:
        raise fault

    store = store_with(**{part: Part})
    setattr(getattr(store, part), method, broken)
    # so that the legs find different passages, which need cosines
    profile = replace(PROFILES["default"], pool=1)
    found = ask("router lamp deploy-guide", profile, replace(context, store=store), min_score=0.0)
    assert [n.code for n in found.notices] == [code]
    assert found.notices[0].message.split("failed: ")[1]
    assert found.candidates


def test_words_that_cannot_be_counted_do_not_end_a_search(context: SearchContext) -> None:
    def broken(*_args: Any) -> None:
        raise ValueError("no")

    store = store_with(keywords=Part)
    store.keywords.term_counts = broken
    assert ask("router password", PROFILES["default"], replace(context, store=store)).candidates


def raising(_candidates: Sequence[Candidate], _query: Query) -> list[Candidate]:
    raise RuntimeError("boom")


def inventing(candidates: Sequence[Candidate], _query: Query) -> list[Candidate]:
    return [*candidates, *(replace(c, chunk=chunk("new")) for c in candidates[:1])]


def repeating(candidates: Sequence[Candidate], _query: Query) -> list[Candidate]:
    return [*candidates, *candidates]


def confusing(candidates: Sequence[Candidate], _query: Query) -> list[Candidate]:
    return [replace(c, score=float("nan")) for c in candidates]


def mistaken(_candidates: Sequence[Candidate], _query: Query) -> Any:
    return ["text"]


def nothing(_candidates: Sequence[Candidate], _query: Query) -> Any:
    return None


@pytest.mark.parametrize("stage", [raising, inventing, repeating, confusing, mistaken, nothing])
def test_a_stage_that_fails_is_left_out_and_named(context: SearchContext, stage: Any) -> None:
    usual = PROFILES["default"]
    plain = ask("router password", usual, context)
    found = ask("router password", replace(usual, stages=(stage, *usual.stages)), context)
    assert found.candidates == plain.candidates
    assert [n.code for n in found.notices] == ["stage_failed"]
    assert found.notices[0].message.startswith(f"{stage.__name__} failed and was left out: ")
    assert found.trace.steps[1].stage == f"{stage.__name__} (failed)"


def test_a_fusion_that_fails_is_replaced_by_the_ranks(context: SearchContext) -> None:
    found = ask("router password", replace(PROFILES["default"], fusion=raising), context)
    assert found.candidates[0].id == "router"
    assert [n.code for n in found.notices] == ["stage_failed"]


def test_a_boost_that_fails_is_left_out(context: SearchContext) -> None:
    def factor(_candidate: Candidate, _query: Query) -> float:
        raise KeyError("owner")

    found = ask(
        "router password",
        replace(PROFILES["default"], stages=(Boost(factor=factor), Cut())),
        context,
    )
    assert found.candidates[0].id == "router"
    assert "Boost" in found.notices[0].message


@pytest.mark.parametrize("error", [KeyboardInterrupt, StoreDamagedError("malformed")])
def test_an_interrupt_and_damage_end_a_search(context: SearchContext, error: BaseException) -> None:
    def stage(_candidates: Sequence[Candidate], _query: Query) -> list[Candidate]:
        raise error

    with pytest.raises((KeyboardInterrupt, StoreDamagedError)):
        ask("router", replace(PROFILES["default"], stages=(stage,)), context)


class Slow(HashedEmbedder):
    """A model that takes its time."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        time.sleep(0.03)
        return super().embed(texts, role)


class SlowKeywords(Part):
    """Keywords that take longer than any model."""

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> Any:
        time.sleep(0.1)
        return self.original.lexical(sought, limit, filters)


@pytest.mark.parametrize(
    "large", [0, 10**9], ids=["scanned by the other thread", "scanned by this thread"]
)
def test_the_time_of_the_vector_leg_is_its_own_and_not_the_wait_for_it(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr("notewell.search.pipeline._LARGE", large)
    found = ask(
        "router",
        PROFILES["default"],
        context_of(store_with(keywords=SlowKeywords), Slow(), executor),
    )
    took_ms = {leg.stage: leg.took_ms for leg in found.trace.legs}
    assert took_ms["vector"] >= 30, "although nobody waited for it: the keywords took longer"
    assert took_ms["lexical"] >= 100
    assert found.mode == "hybrid"


class Watched(Part):
    """A part that notes through how many of our functions the pipeline came to it."""

    frames: ClassVar[dict[str, int]] = {}

    def __getattr__(self, name: str) -> Any:
        here = str(Path(notewell.__file__).parent)
        names = [
            frame.name for frame in traceback.extract_stack() if frame.filename.startswith(here)
        ]
        self.frames[name] = len(names) - names.index("run")
        return super().__getattr__(name)


def test_the_pipeline_reaches_the_store_within_two_calls(executor: Executor) -> None:
    parts = ("documents", "keywords", "vectors", "relations")
    ask(
        "router",
        PROFILES["default"],
        context_of(store_with(**dict.fromkeys(parts, Watched)), EMBEDDER, executor),
    )
    assert {
        "lexical",
        "by_name_or_date",
        "term_places",
        "nearest",
        "chunks",
    } <= Watched.frames.keys()
    assert max(Watched.frames.values()) == 2


def test_a_count_that_fails_leaves_no_thread_waiting(executor: Executor) -> None:
    class Uncounted(Part):
        def term_counts(self, terms: Iterable[str]) -> TermCounts:
            raise StoreError("cannot be read")

    context = context_of(store_with(keywords=Uncounted), EMBEDDER, executor)
    for _ in range(5):
        with pytest.raises(StoreError, match="cannot be read"):
            ask("router", PROFILES["default"], context)
    assert executor.submit(lambda: "free").result(60) == "free"


def test_marks_are_made_once_and_when_read() -> None:
    made: list[int] = []
    expected = (Mark("a", 1, 0.5), Mark("b", 2, 0.25))

    def make() -> tuple[Mark, ...]:
        made.append(1)
        return expected

    marks = LazyMarks(make)
    assert not made
    assert len(marks) == 2
    assert marks[1].id == "b"
    assert list(marks) == list(expected)
    assert tuple(marks[:1]) == expected[:1]
    assert marks == expected
    assert marks == LazyMarks(lambda: expected)
    assert hash(marks) == hash(expected)
    assert repr(marks) == repr(expected)
    assert made == [1]
    assert LazyMarks(tuple) == ()


@pytest.mark.parametrize(
    "large", [0, 10**9], ids=["scanned by the other thread", "scanned by this thread"]
)
def test_a_vector_at_hand_answers_as_one_that_is_made(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr("notewell.search.pipeline._LARGE", large)
    asked: list[str] = []
    plain = context_of(store_of(NOTES, EMBEDDER), EMBEDDER, executor)
    assert plain.question is not None
    known = plain.question("router password")

    def question(text: str) -> Any:
        asked.append(text)
        return known

    at_hand = replace(
        plain, question=question, at_hand=lambda text: known if text == "router password" else None
    )
    for profile in ("default", "vector", "lexical"):
        found = ask("router password", PROFILES[profile], at_hand)
        other = ask("router password", PROFILES[profile], plain)
        assert found.candidates == other.candidates
        assert (found.mode, found.model, found.notices) == (other.mode, other.model, other.notices)
        assert found.steady
    assert not asked
    ask("green tea", PROFILES["default"], at_hand)
    assert asked == ["green tea"]


def test_a_run_during_which_chunks_changed_is_not_steady(executor: Executor) -> None:
    store = store_of(NOTES, EMBEDDER)
    plain = context_of(store, EMBEDDER, executor)
    counts = iter(range(9))

    class Changing:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def get_meta(self, key: str) -> Any:
            return next(counts) if key == "chunks" else store.get_meta(key)

    assert ask("router", PROFILES["default"], plain).steady
    changing: Any = Changing()
    assert not ask("router", PROFILES["default"], replace(plain, store=changing)).steady
