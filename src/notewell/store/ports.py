"""What a store must offer, as six small ports; one conformance suite tests every store.

A `Store` is a session with five parts: `documents`, `keywords`, `vectors`, `relations` and
`history`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from notewell.store.values import (
    ChunkWords,
    Copy,
    DayCount,
    FieldTerms,
    Figures,
    Finding,
    Judgement,
    Listed,
    Moment,
    Nearest,
    Placed,
    Remains,
    Scored,
    Sought,
    Stored,
    TermCounts,
    Windows,
)
from notewell.types import Chunk, Document, Edge, Facts, Filters, Relations, Vectors


class DocumentStore(Protocol):
    """Documents and the chunks they were cut into."""

    def stored(self, paths: Sequence[str] | None = None) -> dict[str, Stored]:
        """What is indexed, by path; of these paths alone, if any are named."""

    def put(
        self,
        document: Document,
        digest: str,
        facts: Facts,
        chunks: Sequence[Chunk],
        *,
        words: Sequence[ChunkWords],
        fresh: bool = False,
        tail: str = "",
    ) -> None:
        """Replaces a document; unchanged chunks keep their row, unless all are made `fresh`.

        `words` are those of each chunk, in order. `tail` is what its source needs to continue
        reading where it stopped.
        """

    def extend(
        self,
        document: Document,
        digest: str,
        facts: Facts,
        chunks: Sequence[Chunk],
        *,
        words: Sequence[ChunkWords],
        drop: Sequence[str] = (),
        tail: str = "",
    ) -> None:
        """Adds chunks to a document and drops those with the ids in `drop`; the others are not
        looked at.
        """

    def touch(self, documents: Sequence[Document]) -> None:
        """Notes a new stat for documents whose content did not change."""

    def drop(self, paths: Sequence[str]) -> None:
        """Removes documents; vectors stay, for text that comes back elsewhere."""

    def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]:
        """Chunks by row."""

    def chunks_by_id(self, prefix: str) -> list[Chunk]:
        """Chunks whose id begins with a prefix, at most ten."""

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of a document in order of their lines."""

    def by_name_or_date(
        self, names: Sequence[str], days: Sequence[tuple[str, str]], limit: int, filters: Filters
    ) -> list[Scored]:
        """Chunks of documents named by file or by day."""

    def changed_ns(self, paths: Sequence[str]) -> dict[str, int]:
        """When each of these files was last changed, by its file system."""

    def tails(self, paths: Sequence[str]) -> dict[str, str]:
        """What the sources of these documents left to continue from."""

    def paths_named(self, key: str) -> list[str]:
        """Paths of the documents that a name may mean (see `link_key`), the shortest first."""

    def path_with(self, content: str) -> tuple[str, str] | None:
        """Where content is now, by its hash: path and chunk id, or path and "" for a document."""

    def sources(self) -> list[tuple[str, int, int]]:
        """Each source with its number of documents and chunks."""

    def listed(self, filters: Filters) -> list[Listed]:
        """Documents that have a chunk which passes the filters, with those counted, in order of
        path.
        """

    def headings(self, filters: Filters) -> list[tuple[tuple[str, ...], int]]:
        """Every path of headings, with the number of chunks below it that pass the filters."""

    def texts_with(self, part: str, filters: Filters, limit: int) -> list[tuple[str, str]]:
        """Paths and texts of chunks that contain a part and pass the filters, the newest rows
        first.
        """

    def says(self, line: str) -> bool:
        """Whether any chunk contains exactly this text."""


class KeywordStore(Protocol):
    """Finding chunks by their words."""

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> Sequence[Scored]:
        """The best rows for what is sought by BM25, larger is better."""

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        """The indexed terms of chunks by row."""

    def term_places(self, rows: Sequence[int], sought: Sought) -> Placed:
        """Where the words, prefixes and exact forms that are sought are, in those of the chunks
        that exist.
        """

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        """Chunk count, mean length and, for each term, how many chunks have it."""

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        """Documents that have the rarest of these terms: all that could contain a text which has
        them.
        """


class VectorStore(Protocol):
    """Vectors by content hash and model, and finding chunks by them."""

    def put_vectors(
        self,
        model: str,
        vectors: Mapping[str, Vectors],
        *,
        windows: Mapping[str, bytes] | None = None,
    ) -> None:
        """Keeps vectors by (content hash, model), each with its windows (see `window_codes`) or
        without any.

        Windows of a text that is not among `vectors` are ignored.
        """

    def windows(self, model: str, rows: Sequence[int]) -> dict[int, bytes]:
        """The windows of this model of each named row that has any; they are deleted with their
        vector.
        """

    def nearest_windows(self, model: str, vector: Vectors, rows: Sequence[int]) -> Windows:
        """Of each named row that has windows of this model the nearest to a question, and the first
        of equals.
        """

    def by_hash(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """The vectors of this model by content hash."""

    def nearest(self, model: str, vector: Vectors, limit: int, filters: Filters) -> Nearest:
        """The best rows by cosine among those that have a vector of this model."""

    def cosines(self, model: str, vector: Vectors, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each named row that has a vector of this model."""

    def missing(self, model: str) -> list[int]:
        """One row for every text that has no vector of this model and was not refused by it, the
        newest first.
        """

    def coverage(self, model: str) -> tuple[int, int]:
        """How many chunks have a vector of this model, and how many there are."""

    def dims(self) -> dict[str, int]:
        """The dimensions of every model that has a vector."""

    def models(self) -> list[tuple[str, int, int]]:
        """Each model with its dimensions and its number of vectors."""

    def refuse(self, model: str, reasons: Mapping[str, str]) -> None:
        """Remembers texts, by content hash, that a model refused: they are no longer missing."""

    def forgive(self, model: str) -> None:
        """Forgets what a model refused, so that it is tried again."""

    def refused(self, model: str) -> list[tuple[str, int, str]]:
        """Path, first line and reason of every chunk that a model refused."""

    def idle(self) -> tuple[int, int]:
        """How many vectors are of text that is in no document now, and their bytes with those of
        their windows.
        """

    def trim(self, most_bytes: int) -> int:
        """Deletes the oldest of those until they fit; returns how many."""

    def prune(self, keep: Iterable[str]) -> int:
        """Deletes vectors of all other models and of text that is in no document now; returns how
        many.
        """

    def pack(self) -> bool:
        """Does what makes the next load of vectors fast; whether anything was done."""

    def audit(self) -> list[str]:
        """What is damaged of the vectors and their windows, a sentence each; reads all of them."""


class RelationStore(Protocol):
    """Copies, contradictions and what replaced what."""

    def unjudged(self, limit: int) -> list[int]:
        """Rows that were not compared with others since they or their document changed, the oldest
        first.
        """

    def group_of(self, form: bytes) -> bytes | None:
        """The group of a form, if any chunk has it."""

    def forms_of(self, group: bytes, limit: int) -> dict[bytes, Chunk]:
        """The forms of a group, each with a chunk that has it."""

    def forms_like(self, traits: Sequence[int], limit: int) -> dict[bytes, Chunk]:
        """Forms that share a trait: those that share most first, the newer first among equals."""

    def known_forms(
        self, forms: Sequence[bytes], traits: Sequence[int]
    ) -> tuple[set[bytes], set[int]]:
        """Which of these forms any chunk or group has, and which of these traits any form has."""

    def put_copies(self, copies: Sequence[Copy]) -> None:
        """Writes what chunks say and replace, what is new about their forms, and that they were
        judged.
        """

    def join(self, form: bytes, group: bytes) -> None:
        """Moves all chunks of a form to a group."""

    def reset_judgements(self) -> None:
        """Forgets every judgement; all chunks wait again."""

    def related(self, chunks: Sequence[Chunk], filters: Filters) -> dict[int, Relations]:
        """The relations of these chunks to chunks that pass the filters, by row; rows without any
        are left out.
        """

    def stands_for(self, chunk: Chunk) -> list[Chunk]:
        """The chunks that are left out of answers because of this one, the oldest row first."""

    def disputed(self, limit: int) -> list[int]:
        """Rows of chunks whose form conflicts with another one, the newest first."""

    def copied(self, limit: int) -> list[int]:
        """Rows of chunks that share their group with others, the newest first."""

    def judgements(self, rows: Sequence[int]) -> dict[int, Judgement]:
        """What was found about chunks, by row; those that wait to be judged are left out."""


class HistoryStore(Protocol):
    """Links between documents, and the order of chunks in time."""

    def put_edges(self, path: str, edges: Sequence[Edge]) -> None:
        """Replaces the edges that a document makes; they are deleted with it."""

    def edges_from(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose start may be meant by one of these keys (see `link_key`), in the order they
        were made.
        """

    def edges_to(self, keys: Sequence[str]) -> list[Edge]:
        """Edges whose end may be meant by one of these keys, in the order they were made."""

    def edges_of(self, path: str) -> list[Edge]:
        """The edges that a document makes, as they were put."""

    def edges_like(self, kind: str) -> list[Edge]:
        """Every edge of one kind, in the order of paths."""

    def moments(
        self,
        filters: Filters,
        *,
        limit: int,
        after: Moment | None = None,
        before: Moment | None = None,
    ) -> list[Moment]:
        """The next chunks in time after a moment, or the last before it, in order of time, path and
        line.
        """

    def days(self, filters: Filters) -> list[DayCount]:
        """Every day that has a chunk which passes the filters, the oldest first; days are those of
        `moments`.
        """

    def moment(self, row: int) -> Moment | None:
        """When one chunk is in time."""


class SessionStore(Protocol):
    """Transactions, locks, remembered values and the health of the store."""

    def writing(self) -> AbstractContextManager[None]:
        """One transaction that takes the write lock at once; nested uses join it."""

    def reading(self) -> AbstractContextManager[None]:
        """What a thread reads inside is of one moment, if the store can; keep it short, others may
        have to wait.
        """

    def asking(self) -> AbstractContextManager[None]:
        """For one search: what the store knows of itself, such as remembered values, may be read
        once for all of it.
        """

    @property
    def name(self) -> str:
        """Its name in messages: the path of a file, or an address without its password."""

    @property
    def file(self) -> Path | None:
        """Its file; None for an index in memory or in a database."""

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written to it, as on a replica."""

    @property
    def generation(self) -> int:
        """A number that grows with every committed change of chunks or vectors, by any process."""

    def exclusive(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether nobody else, on any machine, indexes this workspace; freed when the
        process dies.
        """

    def embedding(self, wait_s: float) -> AbstractContextManager[bool]:
        """Yields whether vectors may be made now: by one process at a time unless texts can be
        claimed.
        """

    def lag_s(self) -> float | None:
        """How many seconds it is behind the store that takes the writes; None for that store."""

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None; inside `reading` it is not read again."""

    def meta(self) -> Mapping[str, Any]:
        """All values that `get_meta` can return, by key, read at once; inside `reading` they are
        not read again.
        """

    def set_meta(self, key: str, value: str | int) -> None:
        """Remembers a value."""

    def remembered(self) -> dict[str, Any]:
        """All values that `set_meta` was given, by key, without what the store counts for
        itself.
        """

    def counts(self) -> dict[str, int]:
        """The number of documents, chunks and vectors, and the bytes of everything."""

    def check(self) -> None:
        """Raises StoreDamagedError where the store is damaged."""

    def audit(self) -> list[str]:
        """Where parts of the index do not agree with each other, a sentence each; reads all of
        it.
        """

    def scrub(self) -> tuple[int, bool]:
        """Deletes unused vectors and what is left of deleted text; how many, and whether all of it
        is gone.
        """

    def close(self) -> None:
        """Closes every connection once its reader is done."""


class Store(SessionStore, Protocol):
    """A session and its five parts; every write is one short transaction."""

    @property
    def documents(self) -> DocumentStore:
        """Documents and chunks."""

    @property
    def keywords(self) -> KeywordStore:
        """The words of chunks."""

    @property
    def vectors(self) -> VectorStore:
        """The vectors of chunks."""

    @property
    def relations(self) -> RelationStore:
        """The relations between chunks."""

    @property
    def history(self) -> HistoryStore:
        """Links and time."""

    @property
    def shared(self) -> Shared | None:
        """What a store that many machines write to also offers; None for a store of one machine."""

    @property
    def ahead(self) -> Lookahead | None:
        """What a store that is far away also offers; None where a call costs next to nothing."""


class Asked(Protocol):
    """The vector of a question, and the model that made it."""

    @property
    def model(self) -> str:
        """The vector set it may be compared with."""

    @property
    def vector(self) -> Vectors:
        """The vector."""


class Lookahead(Protocol):
    """What a store that is far away also offers: a search says what it will ask for, and that is
    read at once.

    It only saves round trips: inside `asking` or `reading`, the calls that follow answer from what
    was read.
    """

    def question(
        self,
        sought: Sought,
        names: Sequence[str],
        days: Sequence[tuple[str, str]],
        *,
        limit: int,
        filters: Filters,
    ) -> None:
        """Comes before `term_counts`, `lexical` and `by_name_or_date`."""

    def rows(
        self,
        rows: Sequence[int],
        asked: Asked | None,
        *,
        windows: bool,
        related_to: Filters | None = None,
    ) -> None:
        """Comes before `cosines`, `windows`, `chunks`, `term_places` and, by these filters,
        `related` of these rows.
        """


@runtime_checkable
class FileBacked(Protocol):
    """What a store in a file also offers, so that a damaged or replaced file can be opened
    again.
    """

    @property
    def file(self) -> Path | None:
        """The file; None for a store in memory."""

    @property
    def inode(self) -> tuple[int, int] | None:
        """Device and number of the file that was opened."""

    def swapped(self) -> bool:
        """Whether another file now has this name; StoreDamagedError if only the WAL is gone."""

    def abandon(self) -> None:
        """Closes a store whose file was replaced, without touching the new file."""

    def close(self) -> None:
        """Closes every connection."""


class Shared(Protocol):
    """What a store that many machines write to also offers: they share the work and learn of each
    other's changes.
    """

    @property
    def generation(self) -> int:
        """A number that grows with every committed change, by any machine."""

    def claim(self, model: str, limit: int, lease_s: float) -> list[int]:
        """Rows of texts that lack a vector of this model, for this caller alone until the lease
        runs out.
        """

    def release(self, model: str, hashes: Sequence[str]) -> None:
        """Gives claimed texts back before their lease runs out."""

    def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
        """Waits for a change, by anybody, after `since`; returns the new generation, or None when
        none came in time.
        """

    def settle(self, model: str) -> bool:
        """After a load: updates statistics and builds an approximate index where it pays; whether
        there is one.
        """

    def remains(self, probes: Sequence[str]) -> Remains:
        """Where lines of deleted text may still be, after `scrub`, as far as a client of the server
        can look.
        """

    def figures(self) -> Figures:
        """The size of the database, how far replicas are behind, and what waits to be embedded
        here.
        """

    def health(self) -> list[Finding]:
        """What is right or wrong with the server and its tables, each with how to fix it."""

    def admit(self, role: str, *, here: bool = True) -> None:
        """Lets another role read and write this workspace, or only make its own; its owner may do
        so.
        """

    def expel(self, role: str) -> None:
        """Takes this workspace away from a role; its owner may do so."""
