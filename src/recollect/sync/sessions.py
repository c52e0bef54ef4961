"""A transcript into the store: turns to chunks, and of one that grew only what is new."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from recollect.ports import Conversations, Place, Store, Stored
from recollect.text.chunk import ChunkSize, Passage, chunk
from recollect.text.forgotten import Forgotten
from recollect.text.markdown import parse
from recollect.text.redact import Redactor
from recollect.text.transcript import wrapped
from recollect.text.words import count_tokens
from recollect.types import Chunk, Document, Facts, Turn

_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class _Group:
    """Turns of one side in a row that fit into one chunk together: an assistant speaks a line at a time."""

    first_line: int
    last_line: int
    origin: str
    time: dt.datetime | None
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Tail:
    """What is known of a transcript between two syncs; `opened` is the id of a last chunk that may still grow."""

    place: Place | None = None
    title: str = ""
    project: str = ""
    day: str = ""
    opened: str = ""
    foreign: bool = False

    def dump(self) -> str:
        """As text for the store."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Tail:
        """From the store's text; nothing is known where there is none."""
        if not text:
            return cls()
        known = json.loads(text)
        place = known.pop("place")
        return cls(place=Place(**place) if place else None, **known)

    @property
    def facts(self) -> Facts:
        """What the whole session is called and when it began; it is never evergreen."""
        return Facts(title=self.title, date=dt.date.fromisoformat(self.day) if self.day else None)

    @property
    def heading(self) -> tuple[str, ...]:
        """Where and when, then what it was about."""
        return tuple(part for part in (" ".join(p for p in (self.project, self.day) if p), self.title) if part)


@dataclass(slots=True)
class Washing:
    """Takes secrets and forgotten text out of what was said, and counts both."""

    path: str
    redactor: Redactor | None
    redacted: Counter[str]
    forgotten: Forgotten
    hidden: int = 0

    def __call__(self, text: str) -> str:
        """The text without them."""
        if self.redactor is not None and text:
            found = self.redactor(text)
            self.redacted.update(found.found)
            text = found.text
        return self.less(text)

    def less(self, text: str) -> str:
        """The text without what was forgotten."""
        kept, hidden = self.forgotten.without(text, self.path)
        self.hidden += hidden
        return kept


def sync_session(
    document: Document,
    source: Conversations,
    *,
    store: Store,
    size: ChunkSize,
    known: Stored | None,
    wash: Washing,
) -> tuple[str, str, int]:
    """Reads and stores what is new of a transcript: what became of it, what was wrong with it, and its chunks."""
    before = Tail.load(known.tail) if known else Tail()
    heard = source.hear(document, before.place)
    if heard.unread:
        return "kept", heard.unread, 0
    grown = before.place is not None and before.place.offset > 0 and not heard.again
    tail = before if grown else Tail()
    tail = replace(tail, place=heard.place, foreign=heard.foreign or tail.foreign)
    if not tail.day and not tail.title:
        title, project = (wash(text) for text in (heard.title, heard.project))
        tail = replace(tail, title=title[:_TITLE_CHARACTERS], project=tail.project or project)
    if tail.foreign:
        tail = Tail(place=heard.place, foreign=True)  # not even its name is kept
    turns = () if tail.foreign else _safe(heard.turns, wash)
    opened = store.chunks_by_id(tail.opened) if grown and tail.opened else []
    last = opened[0] if len(opened) == 1 and opened[0].path == document.path else None
    chunks: list[Chunk] = []
    for group in _groups(turns, size, last):
        tail = _named(tail, group)
        made = list(_chunks(document, group, tail, size))
        chunks += made
        tail = replace(tail, opened=made[0].id if len(made) == 1 else "")
    reason = _reason(heard.bad_lines)
    digest = _digest(tail.place) if tail.place else hashlib.blake2b(repr(turns).encode(), digest_size=16).hexdigest()
    if grown:
        merged = last is not None and chunks and chunks[0].start_line == last.start_line
        same = not chunks and known is not None and known.digest == digest
        store.extend(
            document, digest, tail.facts, chunks, drop=[last.id] if last and merged else [], tail=tail.dump()
        )  # fmt: skip
        return "same" if same else "put", reason, len(chunks)
    if known is not None and known.digest == digest and not tail.place:
        store.touch([document])
        return "same", reason, 0
    store.put(document, digest, tail.facts, chunks, fresh=known is None, tail=tail.dump())
    return "put", reason, len(chunks)


def _digest(place: Place) -> str:
    return f"{place.head}{place.near}{place.offset}"


def _reason(bad_lines: Sequence[int]) -> str:
    if not bad_lines:
        return ""
    shown = ", ".join(str(n) for n in bad_lines[:10])
    more = f" and {len(bad_lines) - 10} more" if len(bad_lines) > 10 else ""
    return f"line {shown}{more} is no JSON; the rest was read"


def _safe(turns: Iterable[Turn], wash: Washing) -> list[Turn]:
    """Turns without what must not be kept; that goes before long lines are wrapped: half a token is no token.

    What was forgotten goes once more after it: a passage that was named by its id is known as it was wrapped.
    """
    washed = (replace(t, text=wash.less(wrapped(wash(t.text)))) for t in turns)
    return [t for t in washed if t.text.strip()]


def _groups(turns: Sequence[Turn], size: ChunkSize, last: Chunk | None) -> Iterator[_Group]:
    """Turns in a row of one side and day, joined while they fit; `last` is the chunk the first may still join."""
    most = size.tokens - size.overlap
    group = None
    if last is not None:
        tokens = count_tokens(last.text) + 1
        group = _Group(last.start_line, last.end_line, last.origin, last.time, last.text, tokens)
    grew = last is None
    for turn in turns:
        if group is not None and group.tokens < most and _joins(group, turn):
            text = f"{group.text}\n\n{turn.text}"
            if (tokens := count_tokens(text) + 1) <= most:
                group = replace(group, last_line=turn.line, text=text, tokens=tokens)
                grew = True
                continue
        if group is not None and grew:
            yield group
        tokens = count_tokens(turn.text) + 1
        group, grew = _Group(turn.line, turn.line, turn.origin, turn.time, turn.text, tokens), True
    if group is not None and grew:
        yield group


def _joins(group: _Group, turn: Turn) -> bool:
    day = group.time.date() if group.time else None
    return group.origin == turn.origin and day == (turn.time.date() if turn.time else None)


def _named(tail: Tail, group: _Group) -> Tail:
    """The tail with its day and title, each from the first turn that has one."""
    if not tail.day and group.time:
        tail = replace(tail, day=group.time.date().isoformat())
    if not tail.title and group.origin != "agent":
        first = next(line for line in group.text.split("\n") if line.strip())
        title = " ".join(first.lstrip("#>*- ").split())
        tail = replace(tail, title=title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…")
    return tail


def _chunks(document: Document, group: _Group, tail: Tail, size: ChunkSize) -> Iterator[Chunk]:
    """The chunks of a group: one as a rule, more of a long turn, which is cut as Markdown is."""
    passages = [Passage(1, 1, (), group.text)]
    if group.tokens > size.tokens:
        passages = chunk(parse(f"\n{group.text}"), size)  # a rule on the first line begins no front matter here
    for number, passage in enumerate(passages):
        placed = replace(
            passage,
            start_line=group.first_line,
            end_line=group.last_line,
            heading=(*tail.heading, *(h for h in passage.heading if h)),
        )
        # A transcript only grows, so its lines do not move, and the same words may be said twice.
        key = f"{document.path}\0{placed.content_hash}\0{group.first_line}.{number}".encode()
        short = base64.b32encode(hashlib.blake2b(key, digest_size=10).digest()).decode().lower()[:12]
        yield Chunk(
            short, document.path, document.source, placed.start_line, placed.end_line, placed.heading, placed.text,
            placed.content_hash, tail.facts, 0, group.time, group.origin,
        )  # fmt: skip
