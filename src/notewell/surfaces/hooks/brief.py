"""The brief at the start of a session: quoted, cited lines of the notes, chosen by rules and
without a model.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from notewell.memory import Memory
from notewell.notes import timeline
from notewell.search.prompt_block import PREAMBLE
from notewell.store.ports import Store
from notewell.text.fence import MARK_LENGTH, boundary, label, neutral, shown
from notewell.text.words import count_tokens, counted, lazy_compile
from notewell.types import Chunk, Filters, Relations

_LATEST = 400  # passages that are looked at
_LATELY_DAYS, _MOST_FILES, _MOST_OF_A_NOTE = 30, 10, 4
_LONGEST_LINE, _SHORT = 200, 25
_MOST = {
    "Contradictions to settle": 3,
    "Open tasks": 8,
    "Decisions": 5,
    "Changed lately": 6,
    "Preferences": 5,
}
_LASTING = ("MEMORY.md", "USER.md")
# A model reads it, so it names no command: whom to trust is not for a model to decide.
_LEFT_OUT = (
    "{notes} of this folder left out: the user has not said that they trust who wrote there. "
    "Only the user can say so; `notewell sources` tells them how.\n"
)
_TASK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+(\S.*)$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?!\[ \])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n(?=\s*(?:[-*+]|\d+[.)])\s)|\n\n+")
_DECIDED = lazy_compile(
    r"(?i)\b(?:decisions?|decided|agreed (?:with|on|that|to)|we agreed|from now on"
    r"|entscheidung|entschieden|beschlossen"
    r"|décision|décidé|decisión|decidimos|decidido|decisão"
    r"|besluit|besloten|decisione|deciso)\b|决定|決定|결정"
)
_PREFERRED = lazy_compile(
    r"(?i)\b(?:preferences?|prefers?|house rules|working together|bevorzugt|vorlieben|préfère"
    r"|préférences?|prefiere|preferencias?|voorkeur(?:en)?)\b|偏好|喜欢|好み"
)


@dataclass(frozen=True, slots=True)
class Line:
    """One quoted line with the place it is from."""

    text: str
    citation: str
    path: str


@dataclass(frozen=True, slots=True)
class Brief:
    """The text for the model, its tokens, the notes that it quotes, the lines of them, and how many
    it leaves out.
    """

    text: str = ""
    tokens: int = 0
    notes: tuple[str, ...] = ()
    citations: tuple[str, ...] = ()
    left_out: int = 0  # notes of this folder that are not the user's own


def brief(memory: Memory, *, budget_tokens: int, now: dt.datetime) -> Brief:
    """What is open, decided, new, preferred or contradictory in the notes, as much as the budget
    allows.
    """
    left_out = left_out_of(memory)
    told = _LEFT_OUT.format(notes=counted(left_out, "note")) if left_out else ""
    budget_tokens -= count_tokens(told)
    sources = [s for s in memory.settings.sources if s != "sessions"]
    found = _sections(memory.store, sources, now) if memory.index.walk.knows_whose else {}
    taken: dict[str, list[Line]] = {}
    for name, line in _in_turn(found):
        more = {key: [*lines] for key, lines in taken.items()}
        more.setdefault(name, []).append(line)
        if count_tokens(_render(more, "0" * MARK_LENGTH)) <= budget_tokens:
            taken = more
    if not taken:
        return Brief(told, count_tokens(told), left_out=left_out)
    text = _render(taken, boundary((_render(taken, ""),))) + told
    lines = [line for name in _MOST for line in taken.get(name, ())]
    notes, citations = (
        dict.fromkeys(line.path for line in lines),
        dict.fromkeys(line.citation for line in lines),
    )
    return Brief(text, count_tokens(text), tuple(notes), tuple(citations), left_out)


def left_out_of(memory: Memory) -> int:
    """How many notes of the folder nothing is given of unasked, as they are not the user's own."""
    if memory.index.trust.doubt is None:
        return 0
    stored = memory.store.documents.stored()
    return sum(one.source != "sessions" and not os.path.isabs(path) for path, one in stored.items())


def _sections(store: Store, sources: Sequence[str], now: dt.datetime) -> dict[str, list[Line]]:
    """The lines of each section, the newest first; conversations have none."""
    latest = [
        e
        for s in sources
        for e in timeline.latest(store, window=_LATEST, filters=Filters(source=s))
    ]
    entries = sorted((e for e in latest if _ours(e.chunk)), key=lambda e: e.when, reverse=True)
    lasting = [c for path in _LASTING for c in store.documents.chunks_of(path) if _ours(c)]
    chunks = list({c.row: c for c in (*(e.chunk for e in entries), *lasting)}.values())
    related = store.relations.related(chunks, Filters())
    current = {c.row: c for c in chunks if not related.get(c.row, Relations()).superseded_by}
    late = _late([e for e in entries if e.chunk.row in current], now)
    return {
        "Contradictions to settle": list(_contradictions(store, list(current.values()), related)),
        "Open tasks": list(chain.from_iterable(map(_tasks, current.values()))),
        "Decisions": _matches((*current.values(),), _DECIDED),
        "Changed lately": [_line(e.chunk, f"{e.when[:10]} {_first(e.chunk)}") for e in late],
        "Preferences": _matches(
            (*(c for c in lasting if c.row in current), *current.values()), _PREFERRED
        ),
    }


def _matches(chunks: Sequence[Chunk], pattern: re.Pattern[str]) -> list[Line]:
    return [line for chunk in chunks for line in _matching(chunk, pattern)]


def _ours(chunk: Chunk) -> bool:
    return chunk.origin != "untrusted" and bool(chunk.text.strip())


def _late(entries: Sequence[timeline.Entry], now: dt.datetime) -> list[timeline.Entry]:
    """What is new, the newest first: some passages of each dated note, then one of each file that
    was changed.
    """
    since = (now - dt.timedelta(days=_LATELY_DAYS)).date().isoformat()
    new = [e for e in entries if since <= e.when[:10]]
    files = Counter(day for day, _ in {(e.when[:10], e.chunk.path) for e in new if e.by == "file"})
    # On a day with so many new files they were copied or cloned, which says nothing about any of
    # them.
    new = [e for e in new if e.by != "file" or files[e.when[:10]] <= _MOST_FILES]
    new.sort(key=lambda e: (e.chunk.path, e.chunk.start_line))
    new.sort(key=lambda e: e.when, reverse=True)
    new.sort(key=lambda e: e.by == "file")
    count: Counter[str] = Counter()
    chosen = []
    for entry in new:
        count[entry.chunk.path] += 1
        if count[entry.chunk.path] <= (1 if entry.by == "file" else _MOST_OF_A_NOTE):
            chosen.append(entry)
    return chosen


def _line(chunk: Chunk, text: str, number: int = 0) -> Line:
    citation = f"{chunk.path}#L{number}" if number else chunk.citation
    flat = shown(" ".join(text.split()))
    return Line(
        flat if len(flat) <= _LONGEST_LINE else f"{flat[: _LONGEST_LINE - 1].rstrip()}…",
        citation,
        chunk.path,
    )


def _first(chunk: Chunk) -> str:
    """Its heading and its first sentence, or more if that is very short; of an item of a list, only
    the item.
    """
    item = _ITEM.match(chunk.text)
    first, *rest = _sentences(chunk)
    while rest and len(first) < _SHORT:
        first += f" {rest.pop(0)}"
    if item or not chunk.heading:
        return first[item.end() if item else 0 :]
    return f"{chunk.heading[-1]}: {first}"


def _sentences(chunk: Chunk) -> list[str]:
    return [part for part in _SENTENCE.split(chunk.text) if part.strip()] or [chunk.text]


def _tasks(chunk: Chunk) -> Iterator[Line]:
    lines = chunk.text.split("\n")
    counted = len(lines) == chunk.end_line - chunk.start_line + 1
    for number, text in enumerate(lines, start=chunk.start_line):
        if found := _TASK.match(text):
            yield _line(chunk, f"[ ] {found[1]}", number if counted else 0)


def _matching(chunk: Chunk, pattern: re.Pattern[str]) -> Iterator[Line]:
    """The first sentence under a heading that matches, or each sentence that does."""
    if chunk.heading and pattern.search(chunk.heading[-1]):
        yield _line(chunk, _first(chunk))
    else:
        for sentence in _sentences(chunk):
            if pattern.search(sentence) and not _TASK.match(sentence):
                yield _line(chunk, _ITEM.sub("", sentence, count=1))


def _contradictions(
    store: Store, chunks: Sequence[Chunk], related: Mapping[int, Relations]
) -> Iterator[Line]:
    told: set[frozenset[str]] = set()
    for chunk in chunks:
        for other_id in related.get(chunk.row, Relations()).conflicts_with:
            other = next(iter(store.documents.chunks_by_id(other_id)), None)
            if other is None or not _ours(other) or frozenset((chunk.id, other.id)) in told:
                continue
            told.add(frozenset((chunk.id, other.id)))
            one, two = (f"{_first(c)[: _LONGEST_LINE // 3]}" for c in (chunk, other))
            yield _line(chunk, f"{one} / but {other.citation}: {two}")


def _in_turn(found: Mapping[str, Sequence[Line]]) -> Iterator[tuple[str, Line]]:
    """The first lines of every section, then the second ones and so on, so that a small budget is
    shared.
    """
    rows = [
        [(name, line) for line in dict.fromkeys(lines)][: _MOST[name]]
        for name, lines in found.items()
    ]
    told: set[str] = set()
    for together in zip_longest(*rows):
        for one in filter(None, together):
            if one[1].text not in told:
                told.add(one[1].text)
                yield one


def _render(taken: Mapping[str, Sequence[Line]], mark: str) -> str:
    parts = [
        "What the notes of this project say, as the session begins. " + PREAMBLE.format(mark=mark)
    ]
    for name in _MOST:
        if lines := taken.get(name):
            quoted = "\n".join(
                f"- {neutral(line.text)} ({neutral(label(line.citation))})" for line in lines
            )
            parts.append(f'<memory-{mark} about="{name}">\n{quoted}\n</memory-{mark}>')
    notes = len({line.path for lines in taken.values() for line in lines})
    parts.append(
        f"These lines are from {notes} note{'s' if notes > 1 else ''}; search the memory for more."
    )
    return "\n".join(parts) + "\n"
