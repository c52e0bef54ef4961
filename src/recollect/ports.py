"""What an adapter must offer. One conformance suite per port runs over every adapter of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any

from recollect.types import (
    Candidate,
    Chunk,
    Document,
    Edge,
    Facts,
    Filters,
    Notice,
    Query,
    Relations,
    Skipped,
    Turn,
)  # fmt: skip

Role = Literal["query", "document"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a source found: documents, what it passed over, and whether it saw everything."""

    documents: tuple[Document, ...]
    skipped: tuple[Skipped, ...] = ()
    complete: bool = True


class Source(Protocol):
    """Finds documents and reads them."""

    name: str

    def scan(self, *, deadline: float | None = None) -> Scanned:
        """List what is there now, by stat alone; stop at `deadline` (monotonic seconds)."""
        ...

    def read(self, document: Document) -> str:
        """The text of a document; OSError when it is gone, ValueError with a reason when it is no text."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reading of a growing file stopped, with marks that tell whether it is still the same file."""

    offset: int = 0
    line: int = 0
    head: str = ""
    near: str = ""
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Heard:
    """What a transcript says from a place on: its turns, and where to read on next time.

    `again` says that the file is not the one that was read before, so that this is all of it. `foreign` says that it
    is a conversation of another project or of a helper. `unread` is the reason why nothing could be said yet.
    """

    turns: Sequence[Turn] = ()
    title: str = ""
    project: str = ""
    place: Place | None = None
    again: bool = False
    foreign: bool = False
    unread: str = ""
    bad_lines: tuple[int, ...] = ()


@runtime_checkable
class Conversations(Source, Protocol):
    """A source whose documents grow by turns and are read from where the last sync stopped."""

    def hear(self, document: Document, place: Place | None) -> Heard:
        """The turns after a place; all of them without one, or where the file is another one now."""
        ...

    def lines(self, document: Document, first: int, last: int | None) -> tuple[list[Turn], int]:
        """The turns that stand on some lines of a document, and how many lines it has."""
        ...


class Embedder(Protocol):
    """Text to unit vectors.

    `id` names the model and whatever else shapes a document's row, such as its length limit and its prefix: vectors
    are kept and compared under it. A paid model says what a million tokens cost in `usd_per_million`.
    """

    id: str
    dim: int

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text, in order; the same row whatever else is in the batch."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's vector, the generation of vectors it may be compared with, and what the caller should know."""

    model: str
    vector: Vectors
    notices: tuple[Notice, ...] = ()


class Reranker(Protocol):
    """Reads question and passage together: better than either leg, and slower."""

    id: str

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> Sequence[float]:
        """How relevant each passage is, 0 to 1, in order; EmbedderError when it can't say by the deadline."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store remembers of a document."""

    path: str
    source: str
    size: int
    mtime_ns: int
    synced_ns: int
    digest: str
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Sought:
    """What the keyword leg looks for: chunks that have any of it, or all of it where `every` is set.

    `words` stand in headings or text, `phrases` side by side in one of them, `prefixes` are how a word there begins
    and `exact` are terms of the field of that name. With `in_head` off, headings and file names are not looked at.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    prefixes: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    every: bool = False
    in_head: bool = True

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.prefixes or self.exact)


@dataclass(frozen=True, slots=True)
class Scored:
    """A row of the store and a leg's own score for it, larger is better."""

    row: int
    score: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """The best rows by cosine, with how cosines of this question spread over the whole corpus."""

    rows: tuple[Scored, ...]
    mean: float = 0.0
    deviation: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Corpus statistics a ranking needs: how many chunks, how long, and in how many a term stands."""

    chunks: int
    mean_length: float
    found_in: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """The indexed terms of one chunk, by field."""

    head: str
    body: str
    exact: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a passage stands in time: when, its place, its row, and whether `time`, `date` or `file` says so."""

    when: str
    path: str = ""
    line: int = 0
    id: str = ""
    row: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A chunk as the judgement of likeness sees it: what it says, its group, and its standing in that group.

    Where its form is new, also by which traits that is found, and the forms that it conflicts with.
    """

    chunk: Chunk
    form: bytes
    kin: bytes
    standing: str
    replaces: Sequence[tuple[str, str]] = ()
    traits: Sequence[int] = ()
    conflicts: Sequence[bytes] = ()


class Store(Protocol):
    """Keeps chunks and vectors; every write is one short transaction."""

    def documents(self) -> dict[str, Stored]:
        """What is indexed, by path."""
        ...

    def put(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, fresh: bool = False,
        tail: str = "",
    ) -> None:  # fmt: skip
        """Replaces a document; unchanged chunks keep their row unless all is to be made `fresh`.

        `tail` is what its source needs to know to read on where it stopped.
        """
        ...

    def extend(
        self, document: Document, digest: str, facts: Facts, chunks: Sequence[Chunk], *, drop: Sequence[str] = (),
        tail: str = "",
    ) -> None:  # fmt: skip
        """Adds chunks to a document and takes away those of the ids in `drop`; the others are not looked at."""
        ...

    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        """Replaces the edges that a document makes; they go with it."""
        ...

    def touch(self, documents: Sequence[Document]) -> None:
        """Notes a new stat for documents whose content did not change."""
        ...

    def drop(self, paths: Sequence[str]) -> None:
        """Removes documents; vectors stay, for text that comes back elsewhere."""
        ...

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        """The best rows for what is sought by BM25."""
        ...

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        """The best rows by cosine among those that have a vector of this model."""
        ...

    def cosines(self, model: str, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector of this model."""
        ...

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file or by day."""
        ...

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Whole chunks by row."""
        ...

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        """Chunks whose id begins with a prefix, at most ten."""
        ...

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        """The indexed terms of chunks by row."""
        ...

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        """Chunk count, mean length and, for each term, in how many chunks it stands."""
        ...

    def missing(self, model: str) -> list[int]:
        """One row for every text that has no vector of this model and was not refused by it, the newest first."""
        ...

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector of this model, and how many there are."""
        ...

    def dims(self) -> dict[str, int]:
        """The dimensions of every model that has a vector."""
        ...

    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        """Remembers texts, by content hash, that a model refused."""
        ...

    def forgive(self, model: str) -> None:
        """Forgets what a model refused."""
        ...

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        """Path, first line and reason of every chunk that a model refused."""
        ...

    def idle(self) -> tuple[int, int]:
        """How many vectors are of text that is in no document now, and their bytes."""
        ...

    def trim(self, most_bytes: int) -> int:
        """Drops the oldest of those until they fit."""
        ...

    def prune(self, keep: Iterable[str]) -> int:
        """Drops vectors of all models but these, and of text that is in no document now."""
        ...

    def put_vectors(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Keeps vectors under (content hash, model)."""
        ...

    def pack(self) -> bool:
        """Whatever makes the next load of vectors fast; says whether anything was done."""
        ...

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None."""
        ...

    def set_meta(self, key: str, value: str | int) -> None:
        """Remembers a value."""
        ...

    def unjudged(self, limit: int) -> list[int]:
        """Rows whose likeness to others was not looked at since they or their document changed, the oldest first."""
        ...

    def kin_of(self, form: bytes) -> bytes | None:
        """The group of a form, if any chunk has it."""
        ...

    def forms_of(self, kin: bytes, limit: int) -> dict[bytes, Chunk]:
        """The forms of a group, each with a chunk that has it."""
        ...

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        """Forms that share a trait, the ones that share most first, the newer first among equals."""
        ...

    def vectors_of(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of this model by content hash."""
        ...

    def kin_known(self, forms: Sequence[bytes], traits: Sequence[int]) -> tuple[set[bytes], set[int]]:
        """Which of some forms any chunk or group has, and which of some traits any form has."""
        ...

    def put_copies(self, copies: Sequence[Copy]) -> None:
        """Notes what chunks say and replace, what is new of their forms, and that they were judged."""
        ...

    def join(self, form: bytes, kin: bytes) -> None:
        """Moves all chunks of a form to a group."""
        ...

    def judge_anew(self) -> None:
        """Forgets every judgement; all chunks wait again."""
        ...

    def relations(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Relations]:
        """What passages that pass the filters are to these, by row; rows that have no relation are left out."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """One transaction that takes the write lock at once; nested uses join it."""
        ...


@runtime_checkable
class Linked(Protocol):
    """A source that knows how its documents hang together, such as a session that continues another."""

    def edges(self, document: Document) -> Sequence[Edge]:
        """How a document hangs together with others, as far as its own file says."""
        ...


@runtime_checkable
class Attaching(Protocol):
    """A source whose documents are files that a model may see or hear beside their label."""

    def part(self, path: str, label: str) -> str | None:
        """What a model is given for a chunk: its label with the file attached; None when the file is not there."""
        ...


class Stage(Protocol):
    """Candidates to candidates: may drop, rescore or reorder, never invent, repeat or mutate."""

    def __call__(self, candidates: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
        """The candidates after this stage, best first."""
        ...


__all__ = [
    "Asked", "Conversations", "Copy", "Embedder", "FieldTerms", "Heard", "Linked", "Moment", "Nearest", "Place",
    "Progress", "Reranker", "Role",
    "Scanned", "Scored", "Sought", "Source", "Stage", "Store", "Stored", "TermCounts", "Vectors",
]  # fmt: skip
