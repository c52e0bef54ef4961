"""The rerank stage: a second, closer reading of the first few, mixed with the fused score and bounded in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from recollect.errors import EmbedderError
from recollect.ports import Reranker
from recollect.search.fusion import falling, ordered
from recollect.text.snippet import snippet
from recollect.types import Candidate, Query


@dataclass(frozen=True, slots=True)
class Rerank:
    """Score = (1−weight)·fused + weight·reranker over the first `depth`; late or broken: the fused order stays.

    The reranker sees the part of a passage around the match, so its cost does not grow with the chunk.
    """

    reranker: Reranker = field(repr=False)
    depth: int = 20
    weight: float = 0.5
    passage: int = 600
    deadline_s: float = 1.5
    name: str = ""

    def __post_init__(self) -> None:
        """Shows the model's name in the trace."""
        object.__setattr__(self, "name", self.reranker.id)

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> list[Candidate]:
        """Reorders the head; what is below it stays below it."""
        head, rest = list(candidates[: self.depth]), list(candidates[self.depth :])
        if not head:
            return rest
        texts = [_text(c, query.text, self.passage) for c in head]
        try:
            scores = list(self.reranker.score(query.text, texts, deadline_s=self.deadline_s))
            if len(scores) != len(head):
                raise EmbedderError(f"{self.name} gave {len(scores)} scores for {len(head)} passages")
        except EmbedderError:
            return [replace(c, signals={**c.signals, "rerank_failed": 1.0}) for c in head] + rest
        mixed = ordered(
            replace(
                c,
                score=(1 - self.weight) * c.score + self.weight * value,
                signals={**c.signals, "rerank": value},
            )
            for c, value in zip(head, scores, strict=True)
        )
        return falling(mixed + rest)


def _text(candidate: Candidate, question: str, length: int) -> str:
    heading = " > ".join(h for h in candidate.chunk.heading if h)
    body = snippet(candidate.chunk.text, question, limit=length)
    return f"{heading}\n{body}" if heading else body
