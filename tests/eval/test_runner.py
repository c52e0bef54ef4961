"""Running a tiny set: every figure worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from notewell.embed.local.hashed import HashedEmbedder
from notewell.eval.metrics import ndcg
from notewell.eval.runner import Run, Scores, evaluate, relevant, score
from notewell.eval.sets import EvalSet, Question, Span, from_rows, load
from notewell.memory import Memory
from notewell.search.stages import Abstain
from notewell.settings import SearchSettings, Settings
from notewell.types import Candidate
from tests.conftest import Write
from tests.eval.made import write_set
from tests.search.made import candidate

NEW, OLD = "memory/2026-02-10.md", "memory/2026-01-10.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    tiny = load(write_set(tmp_path_factory.mktemp("sets") / "tiny"))
    return {
        r.profile: r
        for r in evaluate(tiny, ["lexical", "vector", "default"], embedder=HashedEmbedder())
    }


def test_every_question_is_asked_once_under_every_profile(runs: dict[str, Run]) -> None:
    for name, run in runs.items():
        assert (run.set_name, run.profile) == ("tiny", name)
        assert sorted(s.question.id for s in run.scores) == ["q1", "q2", "q3", "q4"]


def test_the_figures_of_the_keyword_leg_by_hand(runs: dict[str, Run]) -> None:
    run = runs["lexical"]
    # The shorter note is the older one, so BM25 puts it first: grades 1, 2 instead of 2, 1.
    discount = 1 / math.log2(3)
    turned = (1 + 2 * discount) / (2 + 1 * discount)
    assert run.values("ndcg@10") == {"q1": pytest.approx(turned), "q2": 1.0, "q3": 1.0}
    summary = run.summary()
    assert summary["ndcg@10"] == pytest.approx((turned + 2) / 3)
    assert (summary["hit@1"], summary["recall@5"], summary["mrr@10"], summary["shown_hit"]) == (
        1.0,
        1.0,
        1.0,
        1.0,
    )
    assert (summary["cov@5"], summary["spanhit@5"]) == (1.0, 1.0)
    assert summary["freshness"] == 0.0
    assert summary["auroc"] == 1.0, "the question that nothing answers has no hit and no confidence"
    assert summary["questions"] == 4.0
    assert summary["ms"] > 0


def test_a_type_of_question_has_its_own_figures(runs: dict[str, Run]) -> None:
    run = runs["lexical"]
    assert run.summary("how")["ndcg@10"] == 1.0
    assert run.summary("how")["questions"] == 2.0
    assert "ndcg@10" not in run.summary("none")
    assert math.isnan(run.summary("none")["auroc"]), "there is nothing to tell apart"
    assert "freshness" not in run.summary("how")


def test_workspaces_do_not_see_each_other(runs: dict[str, Run]) -> None:
    assert runs["vector"].values("recall@10") == {"q1": 1.0, "q2": 1.0, "q3": 1.0}
    tokens = runs["vector"].values("tokens")
    assert tokens["q3"] == tokens["q4"], (
        "the second workspace has one note, and a vector finds it for anything"
    )


def hits(*paths: str, confidence: float = 0.5) -> list[Candidate]:
    return [
        candidate(f"c{i}", 0.5, "four", path=p, signals={"confidence": confidence})
        for i, p in enumerate(paths)
    ]


def scored(question: Question, found: list[Candidate], *, shown: int = 2) -> Scores:
    return score(question, found, 1.0, shown=found[:shown])


@pytest.mark.parametrize(
    ("found", "fresh"),
    [((NEW, OLD), 1.0), ((OLD, NEW), 0.0), ((NEW,), 1.0), ((OLD,), 0.0), (("x.md",), 0.5)],
)
def test_freshness_is_the_newer_note_above_the_older(found: tuple[str, ...], fresh: float) -> None:
    question = Question("q", "port", grades={NEW: 1}, newer_older=((NEW, OLD),))
    assert scored(question, hits(*found)).fresh == (fresh,)


def test_a_document_counts_once_however_many_of_its_passages_are_found() -> None:
    question = Question("q", "x", grades={"b.md": 1})
    found = scored(question, hits("a.md", "a.md", "a.md", "b.md"))
    assert found.values["mrr@10"] == 0.5
    assert found.values["ndcg@10"] == ndcg(["a.md", "b.md"], {"b.md": 1})


def test_a_hit_that_is_not_shown_is_no_shown_hit() -> None:
    question = Question("q", "x", grades={"b.md": 1, "zero.md": 0})
    assert scored(question, hits("a.md", "b.md")).values["shown_hit"] == 1.0
    assert scored(question, hits("a.md", "c.md", "b.md")).values["shown_hit"] == 0.0
    assert scored(question, hits("b.md"), shown=0).values["shown_hit"] == 0.0
    assert scored(question, hits("zero.md")).values["shown_hit"] == 0.0, "a label of 0 is no hit"


def test_what_is_shown_is_above_the_least_confidence_and_within_the_limit(root: Path) -> None:
    found = [*hits("a.md", "b.md", confidence=0.7), *hits("c.md", "d.md", confidence=0.5)]
    for least, limit, shown in ((-1.0, 6, 4), (0.6, 6, 2), (0.8, 6, 0), (0.6, 1, 1), (-1.0, 3, 3)):
        own = Settings(search=SearchSettings(limit=limit, min_score=least))
        with Memory.open(root, settings=own, embedder=HashedEmbedder()) as memory:
            assert memory.searcher.shown(found, "default") == found[:shown]


def test_what_is_shown_follows_the_profile(memory: Memory) -> None:
    found = hits(*"abcdefgh", confidence=Abstain().least - 1e-9)
    assert memory.searcher.shown(found, "default") == [], "even the best is very unlikely"
    likely = [*hits("x.md", confidence=Abstain().least), *found]
    assert memory.searcher.shown(likely, "default") == likely[:6]
    assert memory.searcher.shown(found, "siftcoder") == found[:5]
    weak = [replace(c, score=0.3) for c in found]
    assert memory.searcher.shown([found[0], *weak], "openclaw") == found[:1], (
        "its own threshold is 0.35 of the score"
    )


def test_calibration_pairs_the_first_six_confidences_with_the_truth() -> None:
    question = Question("q", "x", grades={"b.md": 1, "zero.md": 0})
    found = scored(question, hits("b.md", "zero.md", confidence=0.7))
    assert found.calibration == ((0.7, True), (0.7, False))
    assert Run("s", "p", (found,)).summary()["ece"] == pytest.approx(0.2)
    many = scored(question, hits(*["zero.md"] * 6, "b.md", confidence=0.7), shown=0)
    assert many.calibration == ((0.7, False),) * 6, "six, however many are shown"


def test_where_lines_are_labelled_only_a_passage_that_touches_them_is_relevant() -> None:
    grades = {"a.md": 1, "b.md": 1}
    question = Question("q", "x", grades=grades, spans=(Span("a.md", 1, 1), Span("b.md", 5, 9)))
    found = scored(question, hits("a.md", "b.md", confidence=0.7))
    assert found.calibration == ((0.7, True), (0.7, False)), (
        "the passages here are line 1 of their file"
    )
    assert [relevant(c.chunk, question) for c in hits("a.md", "b.md", "c.md")] == [
        True,
        False,
        False,
    ]
    bare = Question("q", "x", grades=grades)
    assert [relevant(c.chunk, bare) for c in hits("a.md", "b.md", "c.md")] == [True, True, False]


def test_evidence_spans_are_covered_by_lines_not_by_files() -> None:
    one = Span("a.md", 1, 1)
    question = Question(
        "q", "x", grades={"a.md": 1}, spans=(one, Span("a.md", 5, 9), Span("b.md", 1, 1))
    )
    values = scored(question, hits("a.md")).values
    assert [values["cov@5"], values["spanhit@5"]] == pytest.approx([1 / 3, 1.0])
    missed = scored(question, hits(*["x.md"] * 5, "a.md")).values
    assert [missed["cov@5"], missed["cov@10"]] == pytest.approx([0.0, 1 / 3])


def test_a_question_that_only_has_labels_of_0_is_one_that_nothing_answers() -> None:
    silent = scored(Question("q", "x", grades={"a.md": 0}), hits("a.md", confidence=0.9))
    sure = scored(Question("r", "y", grades={"a.md": 1}), hits("a.md", confidence=0.3))
    assert "ndcg@10" not in silent.values
    assert Run("s", "p", (silent, sure)).summary()["auroc"] == 0.0, (
        "more confident where there is nothing"
    )


def test_a_question_without_hits_scores_nothing() -> None:
    found = scored(Question("q", "x", grades={"a.md": 1}), [])
    assert found.confidence == 0.0
    assert found.values["ndcg@10"] == found.values["shown_hit"] == found.values["tokens"] == 0.0


def test_a_set_of_your_own_is_asked_of_your_own_memory(memory: Memory, write: Write) -> None:
    write("memory/tea.md", "# Tea\n\nGreen tea, three minutes.\n")
    memory.sync()
    own = from_rows("mine", [{"query": "green tea", "expect": "memory/tea.md#3"}])
    (run,) = evaluate(own, ["default"], own=memory)
    assert run.summary()["ndcg@10"] == run.summary()["cov@5"] == 1.0


def test_a_set_without_a_corpus_needs_a_workspace() -> None:
    with pytest.raises(ValueError, match="needs a workspace"):
        evaluate(EvalSet("mine", (Question("1", "x"),)), ["lexical"])


def test_the_same_run_has_the_same_figures(runs: dict[str, Run], tmp_path: Path) -> None:
    again = {
        r.profile: r
        for r in evaluate(load(write_set(tmp_path / "tiny")), list(runs), embedder=HashedEmbedder())
    }
    for name, run in runs.items():
        one, two = run.summary(), again[name].summary()
        assert {k: v for k, v in one.items() if k != "ms"} == {
            k: v for k, v in two.items() if k != "ms"
        }
