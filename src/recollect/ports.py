"""What an adapter must offer. One conformance suite per port runs over every adapter of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
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


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where terms stand in chunks, as columns over all of them; a chunk is named by its place in `rows`.

    A term is named by its place among the words and then the prefixes that were sought. `body` is chunk, term and
    place, ascending by chunk and place; `head` is chunk and term; `exact` is how many of the exact forms a chunk has,
    and `lengths` how many terms its body has.
    """

    rows: Sequence[int]
    lengths: NDArray[Any]
    body: NDArray[Any]
    head: NDArray[Any]
    exact: NDArray[Any]


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


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found out about a chunk: its form, the group of that, and the forms that it conflicts with."""

    form: bytes
    kin: bytes
    conflicts: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TableFigures:
    """What a table of a database takes, over all of its partitions and workspaces."""

    name: str
    bytes: int
    index_bytes: int
    rows: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Figures:
    """How a database stands: its tables, who waits, who is behind.

    `approximate` names the models whose vectors have an approximate index; `waiting` texts of this workspace are to be
    embedded and `claimed` of them are at work now. `lag_s` is None on the server that takes the writes.
    """

    tables: tuple[TableFigures, ...]
    approximate: tuple[str, ...]
    replicas: tuple[tuple[str, float], ...]
    lag_s: float | None
    waiting: int
    claimed: int
    connections: int
    most_connections: int


Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what, how it stands, and what mends it."""

    what: str
    verdict: Verdict
    detail: str
    fix: str = ""


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

    @property
    def name(self) -> str:
        """What messages call it: the path of a file, or an address without its password."""
        ...

    @property
    def file(self) -> Path | None:
        """The file that it is; None for one in memory and for a database."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written to it, as on a replica."""
        ...

    @property
    def generation(self) -> int:
        """A number that grows with every committed change of chunks or vectors, by whichever process."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """What a thread reads inside is of one moment, if the store can; short, as others may have to wait for it."""
        ...

    def exclusive(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether nobody else, on any machine, indexes this workspace; freed when the process dies."""
        ...

    def embedding(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether vectors may be made now: by one at a time where texts cannot be claimed, else by many."""
        ...

    def lag_s(self) -> float | None:
        """How far it is behind the store that takes the writes; None for that one itself."""
        ...

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of a document in order of their lines."""
        ...

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose start may be meant by one of these keys (see `link_key`), in the order they were made."""
        ...

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose end may be meant by one of these keys, in the order they were made."""
        ...

    def paths_named(self, key: str) -> list[str]:
        """Paths of the documents that a name may mean (see `link_key`), the shortest first."""
        ...

    def path_with(self, content: str) -> tuple[str, str] | None:
        """Where content is now, by its hash: path and chunk id, or path and nothing for a whole document."""
        ...

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        """When each of these files was last changed, as its file system says."""
        ...

    def moments(
        self, filters: Filters, *, limit: int, after: Moment | None = None, before: Moment | None = None
    ) -> list[Moment]:
        """The next passages in time after a moment, or the last before it, in order of time, path and line."""
        ...

    def moment(self, row: int) -> Moment | None:
        """Where one passage stands in time."""
        ...

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        """The passages that are left out of answers because of this one, the oldest row first."""
        ...

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        """Documents that have the rarest of some terms: all that could hold a text which has them."""
        ...

    def says(self, line: str) -> bool:
        """Whether any passage holds a text as it is."""
        ...

    def scrub(self) -> tuple[int, bool]:
        """Drops vectors that no chunk has and what is left of deleted text; how many, and whether all of it is gone."""
        ...

    def models(self) -> list[tuple[str, int, int]]:
        """Each model with its dimensions and how many vectors are kept of it."""
        ...

    def counts(self) -> dict[str, int]:
        """How many documents, chunks and vectors there are, and the bytes that all of it takes."""
        ...

    def sources(self) -> list[tuple[str, int, int]]:
        """Each source with how many documents and chunks there are of it."""
        ...

    def check(self) -> None:
        """Raises StoreDamagedError where what is kept is not sound."""
        ...

    def audit(self) -> list[str]:
        """What of the index does not agree with the rest of it, a sentence each; reads all of it."""
        ...

    def remembered(self) -> dict[str, Any]:
        """All values that `set_meta` was given, by key; what the store counts for itself is not among them."""
        ...

    def edges_of(self, path: str) -> list[Edge]:
        """The edges that a document makes, as they were put."""
        ...

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        """What was found out about chunks, by row; those that wait to be judged are left out."""
        ...

    def close(self) -> None:
        """Lets go of every connection once its reader is done."""
        ...


@runtime_checkable
class Shared(Protocol):
    """What a store also offers that many machines write to at once: they share the work, and hear of one another."""

    def claim(self, model: str, limit: int, lease_s: float) -> list[int]:
        """Rows of texts that lack a vector of this model, for this caller alone until the lease runs out."""
        ...

    def release(self, model: str, hashes: Sequence[str]) -> None:
        """Gives claimed texts back before their lease runs out."""
        ...

    def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
        """The generation after the next change by anybody, or since that one; None when none came in time."""
        ...

    def settle(self, model: str) -> bool:
        """After a load: fresh statistics, and an approximate index where it pays; says whether there is one."""
        ...

    def figures(self) -> Figures:
        """What the whole database takes, how far replicas are behind, and what waits to be embedded here."""
        ...

    def health(self) -> list[Finding]:
        """What of the server and its tables is well or wrong, each with what mends it."""
        ...


@runtime_checkable
class Placing(Protocol):
    """A store that knows where terms stand without spelling out whole chunks."""

    def term_places(self, rows: Sequence[int], sought: Sought) -> Placed:
        """Where the words, prefixes and exact forms that are sought stand in those chunks that are there."""
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
    "Asked", "Conversations", "Copy", "Embedder", "FieldTerms", "Figures", "Finding", "Heard", "Judgement", "Linked",
    "Moment", "Nearest", "Place", "Placed", "Placing", "Progress", "Reranker", "Role",
    "Scanned", "Scored", "Shared", "Sought", "Source", "Stage", "Store", "Stored", "TableFigures", "TermCounts",
    "Vectors", "Verdict",
]  # fmt: skip
