"""The values that travel between the rooms. All frozen; none knows how it is stored or shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the caller should know about an answer, with what to do about it."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One file or session as a source sees it, before it is read."""

    path: str
    source: str
    size: int
    mtime_ns: int
    location: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not indexed, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation said at a time, with the line of the file where it stands."""

    line: int
    origin: str
    text: str
    time: dt.datetime | None = None


class BlockKind(StrEnum):
    """What a block of Markdown is; the chunker splits each kind in its own way."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Block:
    """A parsed piece of a document with its lines (1-based, inclusive) and the headings above it."""

    kind: BlockKind
    start_line: int
    end_line: int
    heading: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a document says about itself as a whole."""

    title: str = ""
    date: dt.date | None = None
    evergreen: bool = False
    importance: float = 0.0
    pinned: bool = False
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is indexed: a passage with its place, its headings and the facts of its document."""

    id: str
    path: str
    source: str
    start_line: int
    end_line: int
    heading: tuple[str, ...]
    text: str
    content_hash: str
    facts: Facts = Facts()
    row: int = 0
    time: dt.datetime | None = None
    origin: str = "owner"

    @property
    def day(self) -> dt.date | None:
        """The day it speaks of: its own where it has one, as a turn of a conversation does, else its document's."""
        return self.time.date() if self.time else self.facts.date

    @property
    def citation(self) -> str:
        """Where a person finds it: `path#L3-L9`."""
        if self.start_line == self.end_line:
            return f"{self.path}#L{self.start_line}"
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class Span:
    """Days that a question names, both ends included, with the words that named them."""

    start: dt.date
    end: dt.date
    words: str


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: a path, a note's name or an id as it was written, and a heading or `L3-L9` inside it.

    `content` is a hash of what stood there, for links that are to outlive a rename.
    """

    name: str
    anchor: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """One place says something of another; whether its ends exist is found out when it is walked."""

    kind: str
    start: End
    end: End


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must satisfy; everything else is preference, not filter."""

    since: dt.date | None = None
    until: dt.date | None = None
    path: str = ""
    source: str = ""
    origin: str = ""
    as_of: dt.date | None = None

    def __bool__(self) -> bool:
        return bool(self.since or self.until or self.path or self.source or self.origin or self.as_of)


@dataclass(frozen=True, slots=True)
class Query:
    """A question with all that the pipeline may look at: the clock is an input."""

    text: str
    now: dt.datetime
    limit: int = 6
    filters: Filters = Filters()
    min_score: float = 0.0
    budget_tokens: int = 0
    dates: tuple[Span, ...] = ()
    wants_now: bool = False
    include_superseded: bool = False


@dataclass(frozen=True, slots=True)
class LegRank:
    """Where one leg ranked a candidate (from 1) and with which score of its own."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Relations:
    """What others are to a passage: the one that stands for it (id and citation), and those that say otherwise."""

    superseded_by: str = ""
    successor: str = ""
    copy: bool = False
    conflicts_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk on its way through the pipeline: its score now, its leg ranks and what is known about it."""

    chunk: Chunk
    score: float = 0.0
    ranks: Mapping[str, LegRank] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)
    relations: Relations = Relations()

    @property
    def id(self) -> str:
        """The chunk's id."""
        return self.chunk.id


@dataclass(frozen=True, slots=True)
class Mark:
    """One candidate after one step: its rank from 1 and its score."""

    id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage did: the order that came out and the ids it dropped."""

    stage: str
    marks: Sequence[Mark]
    dropped: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """What every leg found and every stage did, whole, in order."""

    legs: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    candidates: Mapping[str, Candidate] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """What a caller gets."""

    chunk: Chunk
    score: float
    confidence: float
    vector_score: float | None
    text_score: float
    ranks: Mapping[str, LegRank]
    recency: float
    snippet: str
    why: str
    signals: Mapping[str, float] = field(default_factory=dict)
    superseded_by: str = ""
    conflicts_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question."""

    query: Query
    profile: str
    mode: str
    hits: tuple[Hit, ...]
    notices: tuple[Notice, ...]
    trace: Trace
    embedder: str
    stale: bool
    took_ms: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What embedding the rest will take; `seconds` once a first batch was timed, `usd` where a model has a price."""

    model: str
    passages: int
    tokens: int
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did, file by file where something went wrong."""

    added: int = 0
    changed: int = 0
    dropped: int = 0
    unchanged: int = 0
    chunks: int = 0
    embedded: int = 0
    pending: int = 0
    skipped: tuple[Skipped, ...] = ()
    notices: tuple[Notice, ...] = ()
    took_ms: float = 0.0
    complete: bool = True
    model: str = ""
    estimate: Estimate | None = None
    pruned: int = 0
    forgotten: int = 0
    left: int = 0
    redacted: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0


class Media(str):
    """A label that carries its file: a model that can see or hear takes the file too, all others read the label."""

    location: str
    mime: str

    def __new__(cls, label: str, *, location: str, mime: str) -> Media:
        """The label, with where its file is and what kind of file that is."""
        made = super().__new__(cls, label)
        made.location, made.mime = location, mime
        return made
