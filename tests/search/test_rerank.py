"""The rerank stage: a closer reading of the first few that can only help or be left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from notewell.errors import EmbedderError
from notewell.search.stages import Rerank
from tests.search.made import candidate, ids, query, scores


@dataclass
class Recorded:
    """Gives the scores it is told, and remembers what it was asked."""

    answers: Sequence[float] = ()
    error: EmbedderError | None = None
    id: str = "recorded"
    seen: list[tuple[str, list[str], float]] = field(default_factory=list)

    def score(
        self, question: str, passages: Sequence[str], *, deadline_s: float
    ) -> Sequence[float]:
        self.seen.append((question, list(passages), deadline_s))
        if self.error:
            raise self.error
        return self.answers


POOL = [candidate("a", 0.8, "one"), candidate("b", 0.6, "two"), candidate("c", 0.4, "three")]


def test_scores_are_mixed_by_weight_and_the_reranker_s_own_is_kept() -> None:
    found = Rerank(Recorded([0.2, 1.0, 0.0]), weight=0.5)(POOL, query())
    assert scores(found) == {
        "b": pytest.approx(0.8),
        "a": pytest.approx(0.5),
        "c": pytest.approx(0.2),
    }
    assert ids(found) == ["b", "a", "c"]
    assert [c.signals.rerank for c in found] == [1.0, 0.2, 0.0]
    alone = Rerank(Recorded([0.2, 0.1, 0.9]), weight=1.0)(POOL, query())
    assert scores(alone) == {"c": 0.9, "a": 0.2, "b": 0.1}


def test_only_the_first_few_are_read_and_the_others_stay_below() -> None:
    reranker = Recorded([0.0, 0.1])
    found = Rerank(reranker, depth=2, weight=1.0)(POOL, query())
    assert ids(found) == ["b", "a", "c"]
    assert reranker.seen[0][1] == ["one", "two"]
    assert found[2].score <= found[1].score
    assert found[2].signals.rerank is None


def test_a_reranker_that_fails_leaves_the_fused_order_and_says_so() -> None:
    found = Rerank(Recorded(error=EmbedderError("late")))(POOL, query())
    assert scores(found) == scores(POOL)
    assert ids(found) == ids(POOL)
    assert all(c.signals.rerank_failed == 1.0 for c in found)


@pytest.mark.parametrize("answers", [[], [0.1], [0.1] * 9])
def test_a_wrong_number_of_scores_is_a_failure(answers: list[float]) -> None:
    found = Rerank(Recorded(answers))(POOL, query())
    assert ids(found) == ids(POOL)
    assert found[0].signals.rerank_failed == 1.0


def test_a_passage_is_read_around_the_match_with_its_heading() -> None:
    text = "nothing here " * 200 + "the staging port is 8443 " + "nothing there " * 200
    reranker = Recorded([0.5])
    Rerank(reranker, passage=200)(
        [candidate("a", 0.8, text, heading=("Ops", "Ports"))], query("staging port")
    )
    question, passages, deadline = reranker.seen[0]
    assert (question, deadline) == ("staging port", 1.5)
    assert passages[0].startswith("Ops > Ports\n")
    assert "staging port is 8443" in passages[0]
    assert len(passages[0]) <= len("Ops > Ports\n") + 200


def test_nobody_is_asked_about_nothing() -> None:
    reranker = Recorded()
    assert Rerank(reranker)([], query()) == []
    assert reranker.seen == []


def test_the_trace_shows_the_model_s_name() -> None:
    assert (
        repr(Rerank(Recorded()))
        == "Rerank(depth=20, weight=0.5, passage=600, deadline_s=1.5, name='recorded')"
    )
