"""A run in small: a random student learns from made-up teachers which texts are about the same
thing.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from training.corpus import Corpus, Windows, atoms, window_places  # noqa: E402
from training.distil import Distiller, Plan, Taught, apart, drawn, standardised  # noqa: E402
from training.joint import Bridge, Space, neighbours, role_numbers, turned  # noqa: E402
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
    return torch.nn.functional.normalize((rows + 0.01) @ turned(2 * WIDTH, 2)[:TOPICS], dim=-1)


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
    plan = Plan(steps=300, rows=48, most_pieces=800, peak=3e-3, shares={"english": 1.0}, near=4)
    distiller = Distiller(tiny(), plan, "cpu")
    vectors = {"made": teacher(ids)}
    space = Space.of(vectors, corpus.roles, {"made": 1.0}, width=WIDTH)
    taught = Taught(ids, vectors, {"made": 1.0}, space.places(vectors, corpus.roles))
    distiller.turn(taught)
    distiller.teach_groups("english", corpus, taught)
    questions = [text(n % TOPICS, dice, 6) for n in range(4 * TOPICS)]
    passages = [text(n % TOPICS, dice, 20) for n in range(4 * TOPICS)]
    before = right(distiller, questions, passages)
    said: list[str] = []
    distiller.run(said.append)
    after = right(distiller, questions, passages)
    assert after > 0.9 > before, (before, after)
    assert said[-1].startswith("step 300: english")


def test_texts_of_different_lengths_run_together_as_they_would_alone() -> None:
    student = tiny().eval()
    rows = [np.arange(4, 4 + n, dtype=np.int32) for n in (3, 17, 1, 60)]
    with torch.no_grad():
        packed = pack(rows, "cpu")
        together = pooled(student(packed), packed.bounds[:-1], packed.bounds[1:])
        for n, row in enumerate(rows):
            one = pack([row], "cpu")
            alone = pooled(student(one), one.bounds[:-1], one.bounds[1:])
            assert torch.allclose(together[n], alone[0], atol=1e-5)


def test_weights_come_back_under_their_published_names() -> None:
    student = tiny()
    again = from_bert({k: torch.from_numpy(v) for k, v in to_bert(student).items()}, heads=4)
    for name, value in student.state_dict().items():
        assert torch.allclose(value, again.state_dict()[name])


def test_means_of_runs_that_overlap() -> None:
    states = torch.randn(10, 6)
    made = pooled(states, np.array([0, 2, 0]), np.array([4, 10, 1]))
    wanted = torch.stack([states[:4].mean(0), states[2:].mean(0), states[0]])
    assert torch.allclose(made, torch.nn.functional.normalize(wanted, dim=-1), atol=1e-6)


def made_teachers(count: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """Two teachers that see the same few things, each in directions and with a mean and noise of
    its own.
    """
    dice = torch.Generator().manual_seed(seed)
    seen = torch.randn(count, 6, generator=dice)
    roles = ["q" if n % 3 == 0 else "p" for n in range(count)]
    shift = torch.tensor([[2.0] if role == "q" else [-1.0] for role in roles])
    found = {}
    for name, width in (("one", 20), ("two", 30)):
        ways = torch.randn(6, width, generator=torch.Generator().manual_seed(width))
        noise = 0.05 * torch.randn(count, width, generator=dice)
        found[name] = torch.nn.functional.normalize(seen @ ways + shift + noise, dim=-1)
    return found, roles


def test_cosines_in_the_joint_space_are_the_mean_of_those_of_the_teachers() -> None:
    vectors, roles = made_teachers(400, 1)
    weights = {"one": 1.0, "two": 3.0}
    space = Space.of(vectors, roles, weights, width=50)
    places = space.places(vectors, roles).float()
    kinds = role_numbers(roles, torch.device("cpu"))
    wanted = torch.zeros(400, 400)
    for name, found in vectors.items():
        means = torch.stack([found[kinds == kind].mean(0) for kind in (0, 1)])
        near = torch.nn.functional.normalize(found - means[kinds], dim=-1)
        wanted += space.scales[name] ** 2 * near @ near.T
    wanted = wanted / wanted[0, 0]
    assert torch.allclose(places @ places.T, wanted, atol=5e-3)
    assert space.kept[1] == pytest.approx(1.0)


def test_the_leading_half_of_the_joint_space_carries_most() -> None:
    vectors, roles = made_teachers(400, 1)
    space = Space.of(vectors, roles, {"one": 1.0, "two": 1.0}, width=16)
    half, whole = space.kept
    assert whole > half > 0.9
    places = space.places(vectors, roles).float()
    assert places[:, :8].square().sum(1).mean() > 0.9
    assert places.square().mean(0)[:8].max() < 0.5


def test_a_bridge_leads_one_teacher_to_where_all_would_stand() -> None:
    vectors, roles = made_teachers(600, 1)
    space = Space.of(vectors, roles, {"one": 1.0, "two": 1.0}, width=16)
    places = space.places(vectors, roles)
    kinds = role_numbers(roles, torch.device("cpu"))
    bridge = Bridge.of(vectors["one"], kinds, places)
    others, other_roles = made_teachers(300, 2)
    # a language that stands elsewhere
    shifted = torch.nn.functional.normalize(others["one"] + 0.3, dim=-1)
    found = bridge.places(shifted, role_numbers(other_roles, torch.device("cpu")))
    assert apart(found.float(), space.places(others, other_roles)) < 0.1


def test_the_nearest_places_begin_with_the_place_itself() -> None:
    places = torch.nn.functional.normalize(torch.randn(50, 8), dim=-1)
    found = neighbours(places, torch.tensor([3, 7]), 4)
    assert found[:, 0].tolist() == [3, 7]
    exact = (places[3] @ places.T).argsort(descending=True)[:4]
    assert found[0].tolist() == exact.tolist()


def test_a_student_that_agrees_with_its_teacher_has_little_to_learn() -> None:
    torch.manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(40, 16), dim=-1)
    own = torch.eye(40, dtype=torch.bool)
    target = standardised(vectors @ vectors.T, own).masked_fill(own, -1e4)
    mean, deviation = (vectors @ vectors.T)[~own].mean(), (vectors @ vectors.T)[~own].std()
    fitting = float(2.0 / deviation)
    other = torch.nn.functional.normalize(torch.randn(40, 16), dim=-1)
    assert mean.abs() < 0.1
    assert (
        drawn(vectors, target, sharpness=fitting) < 0.05 < drawn(other, target, sharpness=fitting)
    )


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
