"""Finds copies and contradictions among notes, with each sync, for what changed since the last one.

A chunk is compared with a bounded number of others, so the hundred-thousandth note costs what the
first did. What waits leaves the store in the transaction that writes the result: a crash repeats a
few comparisons and loses none.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath

from notewell.compare.judge import Verdict, judge
from notewell.compare.reading import Reading, read
from notewell.compare.vocabulary import RULES
from notewell.notes.reference import References
from notewell.store.ports import Store
from notewell.store.values import Copy
from notewell.text.note_files import is_entry_file
from notewell.types import Chunk, Progress, silent

NEIGHBOURS = 16  # with so many others a new text is compared
_COMMIT_EVERY_S = 0.1
_BATCH = 128
_LARGEST_BATCH = 2048
_MOST_FORMS = 8
_CLOSE = 0.8
_CODE = re.compile(r"\d{1,8}|[0-9a-f]{6,}|")
_SUPERSEDES = re.compile(
    r"^[ \t]*<!--\s*supersedes:\s*(.+?)\s*-->[ \t]*$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Consolidated:
    """How many chunks were judged, with how many comparisons, and whether some still wait."""

    judged: int = 0
    compared: int = 0
    complete: bool = True


def consolidate(
    store: Store,
    root: Path = Path(),
    *,
    model: str = "",
    deadline: float | None = None,
    progress: Progress = silent,
) -> Consolidated:
    """Judges what waits, the oldest first, until none is left or `deadline` (monotonic) is past."""
    if store.get_meta("judgement") != RULES:
        with store.writing():
            store.relations.reset_judgements()
            store.set_meta("judgement", RULES)
    judged = compared = 0
    size = _BATCH
    read_before: dict[int, tuple[Chunk, _Marks]] = {}
    while rows := store.relations.unjudged(size):
        if deadline is not None and time.monotonic() >= deadline:
            return Consolidated(judged, compared, complete=False)
        # Read before the transaction, which need not wait for that; then looked up once more inside
        # it: another process may have judged some, or dropped their notes.
        new = store.documents.chunks([row for row in rows if row not in read_before])
        read_before.update((row, (chunk, _Marks.of(chunk))) for row, chunk in new.items())
        done = 0
        with store.writing():
            waiting = []
            for row, chunk in sorted(
                store.documents.chunks(store.relations.unjudged(size)).items()
            ):
                known, marks = read_before.pop(row, (None, None))
                waiting.append((chunk, marks if marks and known == chunk else _Marks.of(chunk)))
            batch = _Batch.of(store, model, root, [marks for _, marks in waiting])
            until = time.monotonic() + _COMMIT_EVERY_S
            if deadline is not None:
                until = min(until, deadline)
            for chunk, marks in waiting:
                compared += batch.settle(chunk, marks)
                done += 1
                if time.monotonic() >= until:
                    break
            batch.write()
        read_before = {chunk.row: (chunk, marks) for chunk, marks in waiting[done:]}
        judged += done
        progress("likeness", judged, judged + len(store.relations.unjudged(_BATCH)))
        # What is written goes all over the tables: of many chunks more falls on the same page,
        # which is written once.
        if deadline is None:
            size = min(2 * size, _LARGEST_BATCH) if done == len(waiting) else max(_BATCH, done)
    return Consolidated(judged, compared)


@dataclass(frozen=True, slots=True)
class _Marks:
    """What a batch asks of each chunk; most are read for no more than this, and thousands of
    readings are a burden.
    """

    form: bytes
    traits: tuple[int, ...]
    sought: tuple[int, ...]

    @classmethod
    def of(cls, chunk: Chunk) -> _Marks:
        """The marks of what a chunk says."""
        reading = _read(chunk)
        return cls(bytes.fromhex(reading.form), reading.traits, reading.sought)


@dataclass(slots=True)
class _Batch:
    """Some chunks on their way to a judgement: asked for at once, written when somebody looks at
    what was found.
    """

    store: Store
    model: str
    root: Path
    forms: set[bytes] = field(default_factory=set)
    traits: set[int] = field(default_factory=set)
    found: list[Copy] = field(default_factory=list)

    @classmethod
    def of(cls, store: Store, model: str, root: Path, waiting: Sequence[_Marks]) -> _Batch:
        """A batch that knows what the store has of some chunks."""
        forms = {m.form for m in waiting}
        traits = {trait for m in waiting for trait in m.sought}
        return cls(store, model, root, *store.relations.known_forms(list(forms), list(traits)))

    def write(self) -> None:
        """Puts what was found where look-ups see it."""
        if self.found:
            self.store.relations.put_copies(self.found)
            self.found.clear()

    def settle(self, chunk: Chunk, marks: _Marks) -> int:
        """Finds what a chunk is to the others, and says how many it was compared with."""
        form = marks.form
        kin = self._kin_of(form)
        verdicts: dict[bytes, Verdict] = {}
        against: list[bytes] = []
        traits: Sequence[int] = ()
        if kin is None:
            verdicts, traits = self._compared(chunk, marks), marks.traits
            kin = self._group(chunk, verdicts) or self._own(form)
            against = [f for f, v in verdicts.items() if v is Verdict.CONFLICT]
        elif self.model and len(self.store.relations.forms_of(kin, 2)) == 1:
            # The vector may have come after the words were judged; only now a model can be sure of
            # a near copy.
            verdicts = self._compared(chunk, marks)
            if joined := self._group(chunk, verdicts):
                kin = joined
                self.store.relations.join(form, kin)
        older = replaces(chunk, self.store, self.root)
        self.found.append(Copy(chunk, form, kin, standing(chunk), older, traits, against))
        self.forms |= {form, kin}
        self.traits.update(traits)
        return len(verdicts)

    def _kin_of(self, form: bytes) -> bytes | None:
        if form not in self.forms:
            return None
        self.write()
        return self.store.relations.group_of(form)

    def _own(self, form: bytes) -> bytes:
        """A new group, named by the form, unless the rest of an older group still goes by that
        name.
        """
        name = form
        if name in self.forms:
            self.write()
            while self.store.relations.forms_of(name, 1):
                name = hashlib.blake2b(name, digest_size=12).digest()
        return name

    def _compared(self, chunk: Chunk, marks: _Marks) -> dict[bytes, Verdict]:
        """What a chunk is to those that it may be like."""
        shared = [trait for trait in marks.sought if trait in self.traits]
        if not shared:
            return {}
        self.write()
        return _verdicts(
            self.store, chunk, _others(self.store, chunk, marks.form, shared), self.model
        )

    def _group(self, chunk: Chunk, verdicts: Mapping[bytes, Verdict]) -> bytes | None:
        copies = [f for f, v in verdicts.items() if v is Verdict.DUPLICATE]
        return _group(self.store, chunk, copies, self.model) if copies else None


@lru_cache(maxsize=4096)
def _name_words(path: str) -> str:
    """The words of a note's name, without numbers and codes."""
    return " ".join(
        w for w in re.split(r"[\W_]+", PurePosixPath(path).stem) if not _CODE.fullmatch(w)
    )


def _read(chunk: Chunk) -> Reading:
    """A note's name is a heading too: `port: 8080` in `ann.md` and in `bob.md` are two facts."""
    words = "" if chunk.source == "sessions" else _name_words(chunk.path)
    return read(chunk.text, (*chunk.heading, words) if words else chunk.heading)


def _others(store: Store, chunk: Chunk, own: bytes, traits: Sequence[int]) -> dict[bytes, Chunk]:
    """What a chunk is compared with: not with a piece of itself, and not with the one that repeats
    its last lines.
    """
    found = store.relations.forms_like(traits, NEIGHBOURS)
    return {form: c for form, c in found.items() if form != own and not _touch(c, chunk)}


def _touch(a: Chunk, b: Chunk) -> bool:
    return a.path == b.path and a.start_line <= b.end_line and b.start_line <= a.end_line


def _verdicts(
    store: Store, chunk: Chunk, others: Mapping[bytes, Chunk], model: str
) -> dict[bytes, Verdict]:
    """What each other form is to a chunk; the model is asked only where words alone leave a
    doubt.
    """
    mine = _read(chunk)
    verdicts = {form: judge(mine, _read(other)) for form, other in others.items()}
    keys = {
        form: _read(others[form]).keys for form, v in verdicts.items() if v is Verdict.DIFFERENT
    }
    doubtful = [
        form
        for form, own in keys.items()
        if len(mine.keys & own) >= _CLOSE * max(len(mine.keys), len(own))
    ]
    if not model or not doubtful:
        return verdicts
    vectors = store.vectors.by_hash(
        model, [chunk.content_hash, *(others[f].content_hash for f in doubtful)]
    )
    own = vectors.get(chunk.content_hash)
    for form in doubtful:
        theirs = vectors.get(others[form].content_hash)
        if own is not None and theirs is not None:
            verdicts[form] = judge(mine, _read(others[form]), cosine=float(own @ theirs))
    return verdicts


def _group(store: Store, chunk: Chunk, copies: Sequence[bytes], model: str) -> bytes | None:
    """The group of which every form is a copy of this chunk: no chain of small steps may hide a
    difference.
    """
    for form in copies:
        kin = store.relations.group_of(form)
        if kin is None:
            continue
        forms = store.relations.forms_of(kin, _MOST_FORMS + 1)
        verdicts = _verdicts(store, chunk, forms, model)
        if len(forms) <= _MOST_FORMS and all(v is Verdict.DUPLICATE for v in verdicts.values()):
            return kin
    return None


def standing(chunk: Chunk) -> str:
    """Sorts the copies of a text: pinned first, transcripts last; else the newest, and of undated
    ones the curated.
    """
    curated = is_entry_file(chunk.path)
    rank = 2 if chunk.facts.pinned else 0 if chunk.source == "sessions" else 1
    day = chunk.day.isoformat() if chunk.day else ""
    return f"{rank} {day:10} {curated:d}"


def replaces(chunk: Chunk, store: Store, root: Path = Path()) -> tuple[tuple[str, str], ...]:
    """What a chunk supersedes, by its note's front matter or a comment line: (id or path, part of
    the path).
    """
    if chunk.source == "sessions":
        # what somebody said in a transcript, or a tool printed there, must not hide a note
        return ()
    named = [*chunk.facts.supersedes]
    for found in _SUPERSEDES.findall(chunk.text):
        named += [found] if re.search(r"[/#\[]", found) else re.split(r"[\s,]+", found)
    references = References(store.documents, root, folder=chunk.path.rpartition("/")[0])
    return tuple(dict.fromkeys(target for name in named for target in references.superseded(name)))


def traits(chunk: Chunk) -> Sequence[int]:
    """What a chunk is found by when another is compared with it."""
    return _read(chunk).traits
