"""A transcript into the store: turns become chunks; of one that grew, only what is new is read."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from notewell.index.documents import chunk_id, digest_of, words_of
from notewell.sources.source import Conversations, ReadMark, TranscriptPart
from notewell.store.ports import Store
from notewell.store.values import Stored
from notewell.text.chunk import ChunkSize, Passage, chunk
from notewell.text.forgotten import Forgotten
from notewell.text.markdown import parse
from notewell.text.redact import Redactor
from notewell.text.transcript import wrapped
from notewell.text.words import count_tokens
from notewell.types import Chunk, Document, Facts, Turn

_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class _Group:
    """Consecutive turns of one speaker that fit into one chunk: an assistant speaks a line at a
    time.
    """

    first_line: int
    last_line: int
    origin: str
    time: dt.datetime | None
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Tail:
    """What is stored of a transcript between two syncs; `opened` is the id of a last chunk that may
    still grow.

    It is `kept` if its program has deleted it.
    """

    place: ReadMark | None = None
    title: str = ""
    project: str = ""
    day: str = ""
    opened: str = ""
    foreign: bool = False
    kept: bool = False

    def dump(self) -> str:
        """As text for the store."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def load(cls, text: str) -> Tail:
        """From the store's text; an empty tail if there is none."""
        if not text:
            return cls()
        values = json.loads(text)
        place = values.pop("place")
        return cls(place=ReadMark(**place) if place else None, **values)

    @property
    def facts(self) -> Facts:
        """What the session is called and when it began; it is never evergreen."""
        return Facts(title=self.title, date=dt.date.fromisoformat(self.day) if self.day else None)

    @property
    def heading(self) -> tuple[str, ...]:
        """Where and when, then what it was about."""
        return tuple(
            part
            for part in (" ".join(p for p in (self.project, self.day) if p), self.title)
            if part
        )


@dataclass(slots=True)
class Washing:
    """Removes secrets and forgotten text from turns, and counts both."""

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
    stored: Stored | None,
    wash: Washing,
) -> tuple[str, str, int]:
    """Reads and stores what is new of a transcript; returns what became of it, what was wrong, and
    its chunks.
    """
    before = Tail.load(stored.tail) if stored else Tail()
    mark = _mark(document, source, before)
    part = source.read_from(document, mark)
    if part.unread:
        return "kept", part.unread, 0
    grown = mark is not None and mark.offset > 0 and not part.again
    tail = _continued(before if grown else Tail(), part, wash)
    turns: Sequence[Turn] = () if tail.foreign else _safe(part.turns, wash)
    last = _open_chunk(store, document, tail) if grown else None
    chunks, tail = _cut(document, turns, tail, size, last)
    kept = (
        ""
        if tail.foreign
        else source.keep(document, tail.title, tail.project, turns, whole=not grown)
    )
    reason = _reason(part.bad_lines) or kept
    digest = f"{at.head}{at.near}{at.offset}" if (at := tail.place) else digest_of(repr(turns))
    unchanged = stored is not None and stored.digest == digest
    words = words_of(chunks)
    if grown:
        replaced = (
            [last.id]
            if last is not None and chunks and chunks[0].start_line == last.start_line
            else []
        )
        store.documents.extend(
            document, digest, tail.facts, chunks, words=words, drop=replaced, tail=tail.dump()
        )
        return "same" if unchanged and not chunks else "put", reason, len(chunks)
    if unchanged and not tail.place:
        # With nothing new but its place: what its program deleted is kept, or it is back.
        _touch(store, document, digest, tail, moved=tail.kept != before.kept)
        return "same", reason, 0
    store.documents.put(
        document, digest, tail.facts, chunks, words=words, fresh=stored is None, tail=tail.dump()
    )
    return "put", reason, len(chunks)


def _mark(document: Document, source: Conversations, before: Tail) -> ReadMark | None:
    """Where to read on; from the start if what is new cannot be added to what is kept."""
    return before.place if before.foreign or source.keeps(document) else None


def _touch(store: Store, document: Document, digest: str, tail: Tail, *, moved: bool) -> None:
    if moved:
        store.documents.extend(document, digest, tail.facts, (), words=(), tail=tail.dump())
    else:
        store.documents.touch([document])


def _cut(
    document: Document, turns: Sequence[Turn], tail: Tail, size: ChunkSize, last: Chunk | None
) -> tuple[list[Chunk], Tail]:
    """The chunks of turns that follow the `last` chunk, and the tail after them."""
    chunks: list[Chunk] = []
    for group in _groups(turns, size, last):
        tail = _named(tail, group)
        made = list(_chunks(document, group, tail, size))
        chunks += made
        tail = replace(tail, opened=made[0].id if len(made) == 1 else "")
    return chunks, tail


def _continued(tail: Tail, part: TranscriptPart, wash: Washing) -> Tail:
    """The tail after one more part; of a foreign conversation not even the name is stored."""
    if part.foreign or tail.foreign:
        return Tail(place=part.mark, foreign=True)
    tail = replace(tail, place=part.mark, kept=part.kept)
    if tail.day or tail.title:
        return tail
    title, project = wash(part.title), wash(part.project)
    return replace(tail, title=title[:_TITLE_CHARACTERS], project=tail.project or project)


def _open_chunk(store: Store, document: Document, tail: Tail) -> Chunk | None:
    """The last chunk of a transcript, if turns may still join it."""
    found = store.documents.chunks_by_id(tail.opened) if tail.opened else []
    return found[0] if len(found) == 1 and found[0].path == document.path else None


def _reason(bad_lines: Sequence[int]) -> str:
    if not bad_lines:
        return ""
    shown = ", ".join(str(n) for n in bad_lines[:10])
    more = f" and {len(bad_lines) - 10} more" if len(bad_lines) > 10 else ""
    return f"line {shown}{more} is not JSON; the rest was read"


def _safe(turns: Iterable[Turn], wash: Washing) -> list[Turn]:
    # Secrets before wrapping, which would split some across lines; forgotten text again after it,
    # since a passage that was forgotten by its id is known as it was wrapped.
    washed = (replace(t, text=wash.less(wrapped(wash(t.text)))) for t in turns)
    return [t for t in washed if t.text.strip()]


def _groups(turns: Sequence[Turn], size: ChunkSize, last: Chunk | None) -> Iterator[_Group]:
    """Consecutive turns of one speaker and day, joined while they fit; the first may still join the
    `last` chunk.
    """
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
        tail = replace(
            tail,
            title=title
            if len(title) <= _TITLE_CHARACTERS
            else f"{title[: _TITLE_CHARACTERS - 1]}…",
        )
    return tail


def _chunks(document: Document, group: _Group, tail: Tail, size: ChunkSize) -> Iterator[Chunk]:
    """The chunks of a group: usually one, more for a long turn, which is cut as Markdown is."""
    passages = [Passage(1, 1, (), group.text)]
    if group.tokens > size.tokens:
        # so that a rule on the first line does not start front matter
        passages = chunk(parse(f"\n{group.text}"), size)
    for number, passage in enumerate(passages):
        heading = (*tail.heading, *(h for h in passage.heading if h))
        placed = replace(
            passage, start_line=group.first_line, end_line=group.last_line, heading=heading
        )
        # A transcript only grows, so its lines do not move, and the same words may come twice.
        key = chunk_id(f"{document.path}\0{placed.content_hash}\0{group.first_line}.{number}")
        place = document.path, document.source, placed.start_line, placed.end_line
        yield Chunk(
            key,
            *place,
            heading,
            placed.text,
            placed.content_hash,
            tail.facts,
            0,
            group.time,
            group.origin,
        )
