"""Dated notes in five languages: the newest comes first, or the one that held at the time asked
for.

No threshold was chosen by these questions; `current/README.md` says how they were made.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import notewell.surfaces
from notewell.embed.registry import embedder
from notewell.eval.runner import Run, evaluate
from notewell.eval.sets import EvalSet, load
from notewell.memory import Memory
from tests.conftest import PATIENT

HERE = Path(__file__).parent
SAMPLE = Path(notewell.surfaces.__file__).parent / "sample"
NOW = dt.datetime(2026, 11, 10, 9)  # noqa: DTZ001 - days of this place, after the last note
TENFOLD = ("which", "still", "now", "before-move", "last-summer", "control")
FIVEFOLD = ("deploy", "june", "chair", "built-in", "this-year", "by-default", "history")


@pytest.fixture(scope="module")
def questions() -> EvalSet:
    return load(HERE / "current")


@pytest.fixture(scope="module")
def by_words(questions: EvalSet) -> Run:
    """The ranking by keywords alone, so that every language stands on the same ground."""
    return evaluate(questions, ["default"])[0]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root = shutil.copytree(SAMPLE, tmp_path_factory.mktemp("current") / "notes")
    with Memory.open(root, env=PATIENT, embed__model="none") as memory:
        memory.sync()
        yield memory


def test_every_kind_is_asked_often_enough_in_five_languages(questions: EvalSet) -> None:
    kinds = Counter(q.kind for q in questions.questions)
    assert len(questions.questions) >= 80
    assert min(kinds[kind] for kind in TENFOLD) >= 10
    assert min(kinds[kind] for kind in FIVEFOLD) >= 5
    assert set(questions.corpora) == {"en", "de", "fr", "es", "zh"}
    assert min(Counter(q.workspace for q in questions.questions).values()) >= 16


def test_the_right_one_of_two_notes_comes_first_in_80_of_100_pairs(by_words: Run) -> None:
    assert by_words.summary()["freshness"] >= 0.80


@pytest.mark.slow
def test_and_so_it_does_with_the_packaged_model(questions: EvalSet) -> None:
    (run,) = evaluate(questions, ["default"], embedder=embedder("auto"))
    assert run.summary()["freshness"] >= 0.80


@pytest.mark.parametrize("kind", ["deploy", "june", "chair", "this-year", "last-summer"])
def test_most_questions_of_a_kind_are_right(by_words: Run, kind: str) -> None:
    assert by_words.summary(kind)["freshness"] >= 0.80


def test_older_notes_stay_within_reach_of_those_who_ask_for_them(by_words: Run) -> None:
    for kind in ("history", "control"):
        assert by_words.summary(kind)["recall@5"] >= 0.95, kind


def test_a_plain_question_brings_the_newest_statement_first_and_marks_the_conflict(
    sample: Memory,
) -> None:
    first, second = sample.search("deploy day", now=NOW, sync=False).hits[:2]
    assert ("Tuesday" in first.chunk.text, "Wednesday mornings" in second.chunk.text) == (
        True,
        True,
    )
    assert (first.conflicts_with, second.conflicts_with) == ((second.chunk.id,), (first.chunk.id,))


HELD = [
    ("what port did staging use in June", "memory/2026-05-06.md"),
    ("what port did staging use in September", "memory/2026-09-03.md"),
    ("what port does staging use", "memory/2026-09-03.md"),
]


@pytest.mark.parametrize(("question", "path"), HELD)
def test_a_period_brings_the_note_that_held_then(sample: Memory, question: str, path: str) -> None:
    first = sample.search(question, now=NOW, sync=False).hits[0]
    assert first.chunk.path == path
    assert first.certainty != "weak"


def test_and_so_it_does_where_passages_have_vectors(tmp_path: Path) -> None:
    with Memory.open(
        shutil.copytree(SAMPLE, tmp_path / "notes"), env=PATIENT, embed__model="local"
    ) as memory:
        memory.sync()
        paths = [
            memory.search(question, now=NOW, sync=False).hits[0].chunk.path for question, _ in HELD
        ]
    assert paths == [path for _, path in HELD]


def test_in_a_conversation_the_answer_comes_before_the_question(tmp_path: Path) -> None:
    said = (
        ("user", "Good morning, some things about the garden."),
        ("assistant", "Good morning! Ask away."),
        ("user", "Which port does the staging server listen on?"),
        ("assistant", "It listens on 9443, behind the proxy; bookmarks need a change."),
    )
    chats = tmp_path / "chats"
    chats.mkdir()
    lines = [
        json.dumps({"role": role, "content": text, "timestamp": f"2026-09-01T08:0{n}:00Z"})
        for n, (role, text) in enumerate(said)
    ]
    (chats / "one.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    given: dict[str, Any] = {
        "sources": "memory,sessions",
        "sessions__paths": str(chats),
        "embed__model": "none",
    }
    with Memory.open(tmp_path, env=PATIENT, **given) as memory:
        first, second = memory.search("which port does staging listen on", now=NOW).hits[:2]
    assert ("9443" in first.chunk.text, second.chunk.text) == (True, said[2][1])
    assert "reply" in first.why
    assert second.signals.unanswered == 1.0, "it only asks"
