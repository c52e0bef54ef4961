"""What an embedding model and a reranker must offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from notewell.types import Notice, Role, Vectors

KeepRows = Callable[[Mapping[str, Vectors]], None]
Takes = Callable[[str], bool]
"""Told of one passage after the other, it says whether that one still fits into the same call."""


class Embedder(Protocol):
    """Text to unit vectors.

    `id` names the model and everything else that shapes a document's vector, such as its length
    limit and its prefix: vectors are stored and compared under it. A model may also offer
    `usd_per_million` (the price of a million tokens), `batches` (see Batches), windows (see
    Windowed), `room` (see room_of), `every_script` (whether it reads more than Latin letters) and a
    `deadline_s` argument of `embed`.
    """

    id: str
    dim: int

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text, in order; a row does not depend on the rest of the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class PassageVectors:
    """The unit vector of a whole text and those of its windows, each with the characters of the
    text it covers.

    A text that is no longer than a window needs none.
    """

    whole: Vectors
    windows: Vectors
    spans: Sequence[tuple[int, int]]


class Windowed(Protocol):
    """A model that also gives vectors of the parts of a text, in one run over it."""

    id: str
    window_dims: int
    """How many of the first dimensions of a window are kept, an even number; a model without
    windows has 0.
    """

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        """What `embed` gives for documents, each with its windows in order; `deadline_s` as for
        `embed`.
        """


def windows_of(model: object) -> Windowed | None:
    """The windows of any model, or None."""
    found: Any = model if getattr(model, "window_dims", 0) else None
    return found  # type: ignore[no-any-return]


def room_of(model: object) -> Callable[[int], Takes] | None:
    """How much a model that asks a server takes in one call, for so many rounds of its requests;
    None for any other.
    """
    found: Callable[[int], Takes] | None = getattr(model, "room", None)
    return found


class BatchState(Protocol):
    """Where batch jobs are recorded; a store is one."""

    def get_meta(self, key: str) -> Any:
        """A recorded value, or None."""

    def set_meta(self, key: str, value: str | int) -> None:
        """Records a value."""


@dataclass(frozen=True, slots=True)
class BatchRound:
    """The result of one round: how many rows were stored, how many texts still wait, and which were
    refused and why.
    """

    embedded: int = 0
    waiting: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)


class Batches(Protocol):
    """A provider's batch jobs: cheaper than direct calls, and finished hours later. Texts go by
    content hash.
    """

    provider: str
    price: float
    """What a batch costs, as a share of the price of direct calls."""

    def waiting(self, state: BatchState, *, confirmed: bool = False) -> frozenset[str]:
        """The texts that may be at the provider; with `confirmed` only those it has
        acknowledged.
        """

    def advance(
        self, missing: Mapping[str, str], state: BatchState, keep: KeepRows, *, again: bool = False
    ) -> BatchRound:
        """Fetches finished jobs, passes their rows to `keep`, and submits what is in no job yet.

        A job is forgotten only after `keep` has returned, so a crash repeats a download, never a
        payment. Texts that do not fit into one request are left out: embed those directly. `again`
        also submits refused texts.
        """


def batches_of(model: object) -> Batches | None:
    """The batch jobs of any model, or None."""
    found: Batches | None = getattr(model, "batches", None)
    return found


@dataclass(frozen=True, slots=True)
class QuestionVector:
    """A question's vector, the vector set it may be compared with, and what the caller should know.

    `windows` tells whether the model makes windows, so that passages may have some, and
    `every_script` whether it reads more than Latin letters.
    """

    model: str
    vector: Vectors
    notices: tuple[Notice, ...] = ()
    windows: bool = False
    every_script: bool = False


class Reranker(Protocol):
    """Reads question and passage together: more accurate than any leg, and slower."""

    id: str

    def score(
        self, question: str, passages: Sequence[str], *, deadline_s: float
    ) -> Sequence[float]:
        """How relevant each passage is, 0 to 1, in order; EmbedderError when it cannot answer by
        the deadline.
        """
