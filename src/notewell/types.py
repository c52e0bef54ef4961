"""The values that rooms exchange. All are frozen; none knows how it is stored or shown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from notewell.opener import ANYWHERE, MOST_KEPT_BYTES, Opener

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any

Role = Literal["query", "document"]
Progress = Callable[[str, int, int], None]
REDACTED = "[redacted:"  # what stands in place of a secret begins so
_FIRST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1  # 1677 to 2262


def silent(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the caller should know about an answer, and what to do about it."""

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
    day: dt.date | None = (
        None  # the one that the source knows; else its path and its front matter may name one
    )
    strange: bool = False  # the file belongs to another user

    def __post_init__(self) -> None:
        """A broken clock can date a file beyond what a store holds: such a time becomes the nearest
        that it does.
        """
        if not _FIRST_NS <= self.mtime_ns <= _LAST_NS:
            object.__setattr__(self, "mtime_ns", max(_FIRST_NS, min(self.mtime_ns, _LAST_NS)))


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not indexed, or only `partly`, and why; `source` is the kind of notes that it
    belongs to.
    """

    path: str
    reason: str
    source: str = ""
    partly: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side of a conversation said at one time, with its line in the file."""

    line: int
    origin: str
    text: str
    time: dt.datetime | None = None


class BlockKind(StrEnum):
    """The kind of a Markdown block; the chunker splits each in a different way."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Block:
    """A parsed piece of a document with its lines (1-based, inclusive) and the headings above
    it.
    """

    kind: BlockKind
    start_line: int
    end_line: int
    heading: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a document says about itself."""

    title: str = ""
    date: dt.date | None = None
    evergreen: bool = False
    importance: float = 0.0
    pinned: bool = False
    supersedes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is indexed: a passage with its lines, its headings and the facts of its document."""

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
        """The day of its time, as turns of a conversation have one; else the day of its
        document.
        """
        return self.time.date() if self.time else self.facts.date

    @property
    def citation(self) -> str:
        """Where a person finds it: `path#L3-L9`."""
        if self.start_line == self.end_line:
            return f"{self.path}#L{self.start_line}"
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class Span:
    """Days in a question, both ends included, with the words for them."""

    start: dt.date
    end: dt.date
    words: str


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link: a path, a note's name or an id as it was written, and a heading or `L3-L9`
    inside it.

    `content` is a hash of the text there, for links that should survive a rename.
    """

    name: str
    anchor: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A link of some kind between two ends, which may or may not exist."""

    kind: str
    start: End
    end: End


@dataclass(frozen=True, slots=True)
class Filters:
    """What every hit must satisfy."""

    since: dt.date | None = None
    until: dt.date | None = None
    path: str = ""
    source: str = ""
    origin: str = ""
    as_of: dt.date | None = None

    def __bool__(self) -> bool:
        return bool(
            self.since or self.until or self.path or self.source or self.origin or self.as_of
        )


class Tense(StrEnum):
    """The time that a question is about: how things are, how they were once, or how they came
    about.
    """

    NOW = "now"
    PAST = "past"
    HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Query:
    """A question with everything the pipeline may look at, including the clock.

    If it names a period, `until` is the last day of that; if it says `before the move`, `before`
    has the terms of that. `subject` are its terms without those for the time, and `weights` say how
    rare those of its terms are that occur.
    """

    text: str
    now: dt.datetime
    limit: int = 6
    filters: Filters = Filters()
    min_score: float = 0.0
    budget_tokens: int = 0
    dates: tuple[Span, ...] = ()
    tense: Tense = Tense.NOW
    until: dt.date | None = None
    before: tuple[str, ...] = ()
    subject: frozenset[str] = frozenset()
    include_superseded: bool = False
    weights: Mapping[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class LegRank:
    """The rank (from 1) and score of a candidate in one leg."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Relations:
    """How other passages relate to one: the one that replaces it (id and citation), and those that
    contradict it.
    """

    superseded_by: str = ""
    successor: str = ""
    copy: bool = False
    conflicts_with: tuple[str, ...] = ()


# a turn is empty if this much of what it says of the subject is asked or was not found
_EMPTY = 2 / 3
# at least so open is an agent's turn that tells something, but nothing with a word of the question
HALF_OPEN = 0.5


class Signals(NamedTuple):
    """What is known about a candidate; None where it is unknown, or not known yet.

    The first three belong to the question and are the same for all its candidates. The fusion
    `Combine` adds `keywords` to `confidence`, the stages the rest.
    """

    rare: float = 0.0  # how rare the question's words are, 0 to 1
    noise: float = 1.0  # the `z` that chance alone would give the best of so many vectors
    foreign: float = 0.0  # the share of the question in scripts that the model cannot read
    text: float = 0.0  # `bm25` over the most that the question could reach
    bm25: float = 0.0  # the BM25 score of the passage
    cover: float = (
        0.0  # the share of the question that the passage has, each word weighted by how rare it is
    )
    near: float = (
        0.0  # how close together neighbouring words of the question are, 1 for side by side
    )
    window: float = 0.0  # the largest share of the question within twelve words
    head: float = (
        0.0  # the share of the question in the headings, the file name, the aliases and the tags
    )
    exact: float = 0.0  # the share of the question's words that the passage has in the same form
    # the share of the question's words that it has, each the heavier the earlier it is named
    focus: float = 0.0
    matched: float = 0.0  # how many words of the rarest kind those that the passage has would make
    lost: float = 0.0  # how rare the rarest word is that it lacks, 1 for the rarest kind
    names: float = 0.0  # the share of the question's names that it has; 1 where there are none
    cosine: float | None = (
        None  # the meaning: the mean of `whole` and `part`, or `whole`; None without a vector
    )
    z: float | None = (
        # the meaning in deviations above the mean; less for a script that the model can't read
        None
    )
    date: float | None = (
        None  # 1 if it is of a day that the question names, else 0; None where either has no day
    )
    whole: float | None = None  # the cosine of the whole passage and the question
    part: float | None = (
        None  # the cosine of its nearest window and the question; None without windows
    )
    lift: float | None = (
        None  # the meaning, as a share of the way from the mean of the other passages to 1
    )
    keywords: float | None = None  # what keywords add to `total`
    meaning: float | None = None  # what the meaning adds to `total`
    total: float | None = None  # the sum that the score is made of
    trust: float | None = (
        None  # how much the words of this question count, by how much of it the best passage covers
    )
    confidence: float | None = None  # how likely the passage is relevant at all
    rerank: float | None = None  # the reranker's score
    rerank_failed: float | None = None  # 1 where the reranker failed or was late
    links: float | None = (
        None  # the share of its lines that are links, where it went behind a note that it links to
    )
    reply: float | None = None  # 1 if it is the reply to a turn that asks the same
    unanswered: float | None = (
        None  # how much of what a turn says of the subject is a question, or was not found
    )

    @property
    def is_empty(self) -> bool:
        """Whether the passage is a turn that only asks, or found nothing."""
        return (self.unanswered or 0.0) > _EMPTY

    @property
    def is_half_open(self) -> bool:
        """Whether the passage is a turn that says little or nothing of what was asked."""
        return (self.unanswered or 0.0) >= HALF_OPEN

    def as_dict(self) -> dict[str, float]:
        """The signals that are known, by name, in the order above."""
        return {name: value for name, value in self._asdict().items() if value is not None}


_NOTHING_KNOWN, _UNRELATED = Signals(), Relations()
# from these confidences on; what is below is weak
_CERTAINTIES = (("likely", 0.5), ("perhaps", 0.22))


@dataclass(frozen=True, slots=True, init=False)
class Candidate:
    """A chunk on its way through the pipeline: its current score, its ranks in the legs and its
    signals.

    `near` are the characters of its nearest window, in what the model was given of it: headings,
    then text.
    """

    chunk: Chunk
    score: float
    ranks: Mapping[str, LegRank]
    signals: Signals
    relations: Relations
    near: tuple[int, int] | None

    def __init__(  # noqa: PLR0917 - the order of the fields
        self,
        chunk: Chunk,
        score: float = 0.0,
        ranks: Mapping[str, LegRank] | None = None,
        signals: Signals = _NOTHING_KNOWN,
        relations: Relations = _UNRELATED,
        near: tuple[int, int] | None = None,
    ) -> None:
        """Takes half the time of the one that a dataclass makes, and a search makes two hundred."""
        _CHUNK(self, chunk)
        _SCORE(self, score)
        _RANKS(self, {} if ranks is None else ranks)
        _SIGNALS(self, signals)
        _RELATIONS(self, relations)
        _NEAR(self, near)

    @property
    def id(self) -> str:
        """The chunk's id."""
        return self.chunk.id

    @property
    def confidence(self) -> float:
        """How likely it is relevant at all; the score, where the fusion does not estimate it."""
        return self.score if self.signals.confidence is None else self.signals.confidence


_CHUNK, _SCORE, _RANKS, _SIGNALS, _RELATIONS, _NEAR = (
    vars(Candidate)[f.name].__set__ for f in fields(Candidate)
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One candidate after one step: its rank from 1 and its score."""

    id: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage did: the order after it and the ids it dropped."""

    stage: str
    marks: Sequence[Mark]
    dropped: tuple[str, ...] = ()
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Trace:
    """What every leg found and every stage did, in order."""

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
    signals: Signals = _NOTHING_KNOWN
    superseded_by: str = ""
    conflicts_with: tuple[str, ...] = ()
    near_lines: tuple[int, int] | None = (
        None  # the lines that are nearest in meaning, if the model tells
    )
    kept: bool = False  # of a conversation that its program has deleted

    @property
    def hidden(self) -> int:
        """How many secrets of the passage are shown as a mark instead."""
        return self.chunk.text.count(REDACTED)

    @property
    def certainty(self) -> str:
        """The confidence in a word; none where the fusion does not estimate it, so that it is only
        the score.
        """
        if self.signals.confidence is None:
            return ""
        return next((word for word, least in _CERTAINTIES if self.confidence >= least), "weak")


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

    @property
    def tail(self) -> bool:
        """Whether there are fewer hits than were asked for because the rest is almost surely
        wrong.
        """
        query = self.query
        whole = query.min_score >= 0 or query.budget_tokens or len(self.hits) >= query.limit
        return not whole and any(step.dropped for step in self.trace.steps[-1:])


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of embedding the rest: `seconds` once a batch was timed, `usd` if the model has a
    price.
    """

    model: str
    passages: int
    tokens: int
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What a sync did, with a reason for each file that was skipped."""

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
    """A label that carries its file: a model that can reads the file too, all others read the
    label.
    """

    location: str
    mime: str
    read: Callable[[], bytes]

    def __new__(cls, label: str, *, location: str, mime: str, opener: Opener = ANYWHERE) -> Media:
        """The label, with the location and type of its file, and what reads it."""
        made = super().__new__(cls, label)
        made.location, made.mime = location, mime
        made.read = lambda: opener.read(location, most=MOST_KEPT_BYTES)
        return made


class Stage(Protocol):
    """Candidates to candidates: may drop, rescore or reorder, never invent, repeat or mutate."""

    def __call__(self, candidates: Sequence[Candidate], query: Query, /) -> Sequence[Candidate]:
        """The candidates after this stage, best first."""
