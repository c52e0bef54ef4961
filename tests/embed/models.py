"""Models that fail as real ones do: dead, hanging, flapping, refusing, resized. Small, and made for
tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from notewell.embed.embedder import PassageVectors
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import EmbedderError, RejectedError
from notewell.types import Role, Vectors


class Named(HashedEmbedder):
    """A sound model under a name of its own, that counts what it was asked for."""

    def __init__(self, name: str = "named", dim: int = 64) -> None:
        super().__init__(dim)
        self.id = name
        self.calls: list[tuple[Role, int]] = []

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.calls.append((role, len(texts)))
        return super().embed(texts, role)

    @property
    def documents(self) -> int:
        return sum(count for role, count in self.calls if role == "document")


class Flapping(Named):
    """Dead while `dead`, and a sound model otherwise."""

    def __init__(self, name: str = "flapping", dim: int = 64, *, dead: bool = False) -> None:
        super().__init__(name, dim)
        self.dead = dead

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().embed(texts, role)
        if self.dead:
            raise EmbedderError("connection refused", hint="start the server")
        return rows


class Hanging(Named):
    """Answers nothing until it is let go."""

    def __init__(self, name: str = "hanging", dim: int = 64) -> None:
        super().__init__(name, dim)
        self.go = threading.Event()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().embed(texts, role)
        self.go.wait()
        return rows


class Refusing(Named):
    """Refuses texts with a word in them, for good, and gives the rows of all others."""

    def __init__(self, word: str, name: str = "refusing", dim: int = 64) -> None:
        super().__init__(name, dim)
        self.word = word

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = super().embed(texts, role)
        bad = {
            i: f"the word {self.word} is not allowed"
            for i, text in enumerate(texts)
            if self.word in text
        }
        if bad:
            raise RejectedError(
                "refused", reasons=bad, rows={i: r for i, r in enumerate(rows) if i not in bad}
            )
        return rows


class Mad(Named):
    """Gives vectors without any sense: what means the same is far apart."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        super().embed(texts, role)
        rows = np.eye(self.dim, dtype=np.float32)[: len(texts)]
        if len(texts) > 2:
            rows[2] = rows[0]
        return rows


class CallableReranker:
    """A reranker made of a function."""

    id = "callable"

    def __init__(self, function: Callable[[str, Sequence[str]], Sequence[float]]) -> None:
        self.function = function

    def score(
        self, question: str, passages: Sequence[str], *, deadline_s: float
    ) -> Sequence[float]:
        return self.function(question, passages)


class Windowed(Named):
    """A sound model that also gives a window for every line of a text, as long as there are
    several.
    """

    window_dims = 64

    def __init__(self, name: str = "windowed", dim: int = 64) -> None:
        super().__init__(name, dim)
        self.passages = 0

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        self.passages += len(texts)
        return [self._passage(text) for text in texts]

    def _passage(self, text: str) -> PassageVectors:
        lines = text.split("\n")
        ends = list(accumulate(len(line) + 1 for line in lines))
        spans = [
            (end - len(line) - 1, end - 1)
            for line, end in zip(lines, ends, strict=True)
            if line.strip()
        ]
        spans = spans if len(spans) > 1 else []
        windows = HashedEmbedder.embed(self, [text[start:end] for start, end in spans], "document")
        return PassageVectors(HashedEmbedder.embed(self, [text], "document")[0], windows, spans)
