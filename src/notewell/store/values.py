"""The values that stores take and return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

if TYPE_CHECKING:
    from numpy.typing import NDArray

from notewell.text.words import pieces_of
from notewell.types import Chunk

_RACY_NS = 2_000_000_000
Verdict = Literal["ok", "warn", "fail"]


class Stored(NamedTuple):
    """What the store knows about a document."""

    path: str
    source: str
    size: int
    mtime_ns: int
    synced_ns: int
    digest: str
    tail: str = ""

    def same(self, source: str, size: int, mtime_ns: int) -> bool:
        """Whether a document is as it was stored; one that changed just before is read again, as
        git does.
        """
        return self.seems_same(source, size, mtime_ns) and mtime_ns + _RACY_NS <= self[4]

    def seems_same(self, source: str, size: int, mtime_ns: int) -> bool:
        """Whether nothing speaks against it; a document that changed just before is read again only
        to be sure.
        """
        return self[1:4] == (source, size, mtime_ns)


class Listed(NamedTuple):
    """A document in a list: what it says of itself, when its file changed, and the first and last
    of its rows.
    """

    path: str
    source: str
    title: str
    date: str | None
    mtime_ns: int
    chunks: int
    first_row: int
    last_row: int
    pinned: int


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many documents and chunks are of a day, in ISO form."""

    day: str
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Sought:
    """What the keyword leg looks for: chunks that have any of it, or all of it where `every` is
    set.

    `words` are in headings or text, `phrases` are two adjacent words in one of them, `prefixes` are
    how a word there begins, and `exact` are terms of the field of that name. With `in_head` off,
    headings and file names do not count.
    """

    words: tuple[str, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()
    prefixes: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    every: bool = False
    in_head: bool = True

    def __bool__(self) -> bool:
        return bool(self.words or self.phrases or self.prefixes or self.exact)


class Scored(NamedTuple):
    """A row of the store and its score by one leg, larger is better."""

    row: int
    score: float


class ScoredRows(Sequence[Scored]):
    """Rows and their scores as two columns, and a sequence of `Scored` to whoever reads it as
    one.
    """

    __slots__ = ("rows", "scores")

    def __init__(self, rows: NDArray[Any], scores: NDArray[Any]) -> None:
        self.rows, self.scores = rows, scores

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Scored: ...
    @overload
    def __getitem__(self, at: slice) -> ScoredRows: ...
    def __getitem__(self, at: int | slice) -> Scored | ScoredRows:
        rows, scores = self.rows[at], self.scores[at]
        return (
            ScoredRows(rows, scores) if isinstance(at, slice) else Scored(int(rows), float(scores))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def pairs(found: Sequence[Scored]) -> Iterable[tuple[int, float]]:
    """Rows with their scores; from columns as plain tuples, which take a tenth of the time."""
    return (
        zip(found.rows.tolist(), found.scores.tolist(), strict=True)
        if isinstance(found, ScoredRows)
        else found
    )


def columns(found: Sequence[Scored]) -> ScoredRows:
    """Rows with their scores as columns."""
    import numpy as np  # noqa: PLC0415

    if isinstance(found, ScoredRows):
        return found
    rows, scores = (
        np.array([row for row, _ in found], dtype=np.int64),
        np.array([score for _, score in found]),
    )
    return ScoredRows(rows, scores.astype(np.float64))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The best rows by cosine, with the mean and deviation of this question's cosines over all
    chunks.
    """

    rows: Sequence[Scored]
    mean: float = 0.0
    deviation: float = 0.0
    count: int = 0


class Windows(NamedTuple):
    """The nearest window of each passage that has any, as columns; a passage is given by its place
    among all asked for.

    `starts` and `ends` are from and to which character it goes.
    """

    passages: NDArray[Any]
    cosines: NDArray[Any]
    starts: NDArray[Any]
    ends: NDArray[Any]


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Statistics that a ranking needs: how many chunks, their mean length, and how many have each
    term.
    """

    chunks: int
    mean_length: float
    found_in: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FieldTerms:
    """The indexed terms of one chunk, by field."""

    head: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()


class ChunkWords(NamedTuple):
    """The pieces between spaces of a new chunk; `terms` has the stems and exact forms of each,
    joined by spaces.
    """

    head: Sequence[str]
    text: str
    terms: Mapping[str, tuple[str, str]]

    @property
    def body(self) -> Sequence[str]:
        """The pieces of the text, made when they are asked for: those of a large note would fill
        the memory.
        """
        return pieces_of(self.text)

    def fields(self) -> FieldTerms:
        """The terms in order, by field."""
        head, body = ([self.terms[piece] for piece in pieces] for pieces in (self.head, self.body))
        stems = [" ".join(stems for stems, _ in found).split() for found in (head, body)]
        return FieldTerms(
            tuple(stems[0]), tuple(stems[1]), tuple(" ".join(forms for _, forms in body).split())
        )


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Where terms are in chunks, as columns over all chunks; a chunk is given by its index in
    `rows`.

    A term is given by its index among the words, and then the prefixes, that were sought. `body` is
    chunk, term and position, in ascending order of chunk and position; `head` is chunk and term;
    `exact` is how many of the exact forms a chunk has, and `lengths` is how many terms its body
    has.
    """

    rows: Sequence[int]
    lengths: NDArray[Any]
    body: NDArray[Any]
    head: NDArray[Any]
    exact: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Moment:
    """When a chunk is in time, where it is, and whether its `time`, `date` or `file` tells."""

    when: str
    path: str = ""
    line: int = 0
    id: str = ""
    row: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A chunk with its form (what it says), its group of copies, and its standing in that group."""

    chunk: Chunk
    form: bytes
    group: bytes
    standing: str
    replaces: Sequence[tuple[str, str]] = ()
    traits: Sequence[int] = ()  # by which its form is found, where that is new
    conflicts: Sequence[bytes] = ()  # forms that a new form conflicts with


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found about a chunk: its form, the group of that form, and the forms that it
    conflicts with.
    """

    form: bytes
    group: bytes
    conflicts: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TableFigures:
    """The size of a table, over all of its partitions and workspaces."""

    name: str
    bytes: int
    index_bytes: int
    rows: int
    dead_rows: int


@dataclass(frozen=True, slots=True)
class Figures:
    """The state of a database: its tables, replicas and queue."""

    tables: tuple[TableFigures, ...]
    approximate: tuple[str, ...]  # models whose vectors have an approximate index
    replicas: tuple[tuple[str, float], ...]
    lag_s: float | None  # None on the server that takes the writes
    waiting: int  # texts of this workspace that are to be embedded
    claimed: int  # those of them that are being embedded now
    connections: int
    most_connections: int


@dataclass(frozen=True, slots=True)
class Remains:
    """How far deleted text was proved to be gone: what was looked through and has none, and what
    may have some.
    """

    checked: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check: what was checked, the verdict, and how to fix it."""

    what: str
    verdict: Verdict
    detail: str
    fix: str = ""
