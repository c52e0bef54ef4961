"""A small workspace with labelled questions, answered by the packaged model: quality from end to
end.

There are two measures: `hit@6` counts notes (the right one is among the first six notes, without a
threshold), `seen` counts passages (the right note is among the six hits of a plain search, with the
profile's threshold).
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.eval.runner import Run, evaluate
from notewell.eval.sets import EvalSet, load
from notewell.memory import Memory
from tests.conftest import PATIENT

HERE = Path(__file__).parent
NOW = dt.datetime(2026, 4, 1, 9)  # noqa: DTZ001 - days of this place, after the last note
OLD = "openclaw-2026.2.13"


@pytest.fixture(scope="module")
def questions() -> EvalSet:
    return load(HERE / "questions.jsonl")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root = shutil.copytree(HERE / "notes", tmp_path_factory.mktemp("golden") / "notes")
    with Memory.open(root, env=PATIENT) as memory:
        report = memory.sync()
        assert (report.pending, report.skipped, report.notices) == (0, (), ())
        yield memory


@pytest.fixture(scope="module")
def runs(golden: Memory, questions: EvalSet) -> dict[str, Run]:
    return {
        run.profile: run
        for run in evaluate(questions, ["default", "lexical", "vector"], own=golden)
    }


def seen(memory: Memory, questions: EvalSet, profile: str) -> float:
    """The share of questions whose note is among the hits of a plain search."""
    found = 0
    for question in questions.questions:
        hits = memory.search(question.text, profile=profile, now=NOW, sync=False).hits
        found += any(question.grades.get(hit.chunk.path, 0) > 0 for hit in hits)
    return found / len(questions.questions)


def test_every_kind_of_question_is_asked_often_enough_to_count(questions: EvalSet) -> None:
    kinds = Counter(q.kind for q in questions.questions)
    assert set(kinds) == {"direct", "natural", "adjacent", "vague", "cross-domain"}
    assert min(kinds.values()) >= 12
    assert len(questions.questions) == 76


def test_every_label_names_lines_that_are_there(questions: EvalSet) -> None:
    for question in questions.questions:
        assert question.answerable
        assert all((HERE / "notes" / path).is_file() for path in question.grades)
        for span in question.spans:
            lines = (HERE / "notes" / span.document).read_text(encoding="utf-8").splitlines()
            assert lines[span.start_line - 1 : span.end_line], question.text


def test_the_right_note_is_among_the_first_six_notes_for_95_of_100_questions(
    runs: dict[str, Run],
) -> None:
    assert runs["default"].summary()["hit@6"] >= 0.95


def test_both_legs_together_are_no_worse_than_the_better_one(runs: dict[str, Run]) -> None:
    ndcg = {name: run.summary()["ndcg@10"] for name, run in runs.items()}
    assert ndcg["default"] >= max(ndcg["lexical"], ndcg["vector"])


@pytest.mark.parametrize(
    ("question", "note", "rank"),
    [
        ("what to do when a task seems impossible", "memory/keep-going.md", 2),
        ("how should I evaluate if a claim is actually true", "memory/epistemics.md", 1),
        ("where to send urgent notifications", "memory/alert-paths.md", 3),
    ],
)
def test_a_question_in_other_words_than_its_note_finds_it_early(
    golden: Memory, question: str, note: str, rank: int
) -> None:
    paths = [hit.chunk.path for hit in golden.search(question, now=NOW).hits]
    assert note in paths[:rank]


def test_a_user_sees_the_right_note_more_often_than_with_the_old_pipeline(
    golden: Memory, questions: EvalSet
) -> None:
    ours, old = seen(golden, questions, "default"), seen(golden, questions, OLD)
    assert ours > old
    assert ours >= 0.95
