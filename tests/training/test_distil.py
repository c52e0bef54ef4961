"""A run in small: a random student learns from made-up teachers which texts are about the same thing."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from training.corpus import Corpus, Windows, atoms, window_places  # noqa: E402
from training.distil import Distiller, Plan, Taught, drawn, standardised  # noqa: E402
from training.student import Student, from_bert, pack, pooled, to_bert  # noqa: E402

TOPICS, WORDS, WIDTH = 12, 20, 32  # each topic has words of its own
FILLER = TOPICS * WORDS


def text(topic: int, dice: random.Random, length: int) -> np.ndarray:
    """Ids of a text: half about its topic, half words that say nothing."""
    own = [topic * WORDS + dice.randrange(WORDS) for _ in range(length // 2)]
    rest = [FILLER + dice.randrange(30) for _ in range(length - len(own))]
    ids = own + rest
    dice.shuffle(ids)
    return np.array([n + 4 for n in ids], dtype=np.int32)


def teacher(ids: list[np.ndarray]) -> Any:
    """The share of each topic in each text."""
    rows = torch.zeros(len(ids), TOPICS)
    for n, one in enumerate(ids):
        for word in one:
            if word - 4 < FILLER:
                rows[n, (word - 4) // WORDS] += 1
    return torch.nn.functional.normalize(rows + 0.01, dim=-1)


def tiny() -> Student:
    torch.manual_seed(3)
    return Student(words=FILLER + 40, places=64, width=WIDTH, layers=2, heads=4, inner=64)


def right(distiller: Distiller, questions: list[np.ndarray], passages: list[np.ndarray]) -> float:
    """How often the nearest passage is of the question's topic; both are given topic by topic."""
    with torch.no_grad():
        nearest = (distiller.vectors(questions) @ distiller.vectors(passages).T).argmax(1)
    return float(np.mean([int(n) % TOPICS == i % TOPICS for i, n in enumerate(nearest)]))


@pytest.mark.slow
def test_a_tiny_run_ends_with_a_model_that_works() -> None:
    dice = random.Random(1)
    corpus, ids = Corpus(), []
    for n in range(600):
        topic = n % TOPICS
        corpus.add([("q", f"q{n}"), ("p", f"p{n}")], "made/en")
        ids += [text(topic, dice, 6), text(topic, dice, 20)]
    distiller = Distiller(tiny(), Plan(steps=300, rows=48, most_pieces=800, peak=3e-3, shares={"english": 1.0}), "cpu")
    distiller.teach_groups("english", corpus, Taught(ids, {"made": teacher(ids)}, {"made": 1.0}))
    questions = [text(n % TOPICS, dice, 6) for n in range(4 * TOPICS)]
    passages = [text(n % TOPICS, dice, 20) for n in range(4 * TOPICS)]
    before = right(distiller, questions, passages)
    said: list[str] = []
    distiller.run(said.append)
    after = right(distiller, questions, passages)
    assert after > 0.9 > before
    assert said[-1].startswith("step 300: english")


def test_texts_of_different_lengths_run_together_as_they_would_alone() -> None:
    student = tiny().eval()
    rows = [np.arange(4, 4 + n, dtype=np.int32) for n in (3, 17, 1, 60)]
    with torch.no_grad():
        packed = pack(rows, "cpu")
        together = pooled(student(packed), packed.starts[:-1], packed.starts[1:])
        for n, row in enumerate(rows):
            one = pack([row], "cpu")
            alone = pooled(student(one), one.starts[:-1], one.starts[1:])
            assert torch.allclose(together[n], alone[0], atol=1e-5)


def test_weights_come_back_under_their_published_names() -> None:
    student = tiny()
    again = from_bert({k: torch.from_numpy(v) for k, v in to_bert(student).items()}, heads=4)
    for name, value in student.state_dict().items():
        assert torch.allclose(value, again.state_dict()[name])


def test_a_student_that_agrees_with_its_teacher_has_little_to_learn() -> None:
    torch.manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(40, 16), dim=-1)
    own = torch.eye(40, dtype=torch.bool)
    target = standardised(vectors @ vectors.T, own).masked_fill(own, -1e4)
    mean, deviation = (vectors @ vectors.T)[~own].mean(), (vectors @ vectors.T)[~own].std()
    fitting = float(2.0 / deviation)
    other = torch.nn.functional.normalize(torch.randn(40, 16), dim=-1)
    assert mean.abs() < 0.1
    assert drawn(vectors, target, sharpness=fitting) < 0.05 < drawn(other, target, sharpness=fitting)


def test_standardised_rows_have_mean_nought_and_deviation_one_without_their_own_place() -> None:
    similar = torch.rand(9, 9)
    own = torch.eye(9, dtype=torch.bool)
    made = standardised(similar, own)
    assert torch.allclose(made.sum(1), torch.zeros(9), atol=1e-5)
    assert torch.allclose((made**2).sum(1) / 8, torch.ones(9), atol=1e-4)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 6, 7, 12, 28])
def test_windows_reach_from_the_first_atom_to_the_last(count: int) -> None:
    places = window_places(count)
    assert places[0][0] == 0
    assert places[-1][1] == count
    assert all(b <= d and c < b for (_, b), (c, d) in pairwise(places))


def test_atoms_join_to_the_text_again() -> None:
    words = " ".join(f"w{n}" for n in range(100))
    assert " ".join(atoms(words)) == words
    wide = "記憶" * 60
    assert "".join(atoms(wide)) == wide
    assert Windows().first == [0]
