"""Remembering: a text into today's note or a named one, unless it is there already."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from recollect.errors import EmbedderError, UsageError
from recollect.ports import Embedder, Sought, Store
from recollect.sync.engine import Engine
from recollect.sync.notes import Notes, Written
from recollect.text.entry import Insertion, insertion, nested, tidy, with_tags
from recollect.text.forgotten import normal_words, text_hash, units
from recollect.text.words import clean, query_terms
from recollect.types import Document, Filters, Notice

MAX_TEXT = 1_000_000
_ALIKE = 0.8
_CLOSE = 0.9
_LOOKED_AT = 50
_TERMS = 12
_TAGS = re.compile(r"(?:\s+#[\w/-]+)+\s*\Z")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NOT = frozenset(
    ("no", "not", "nor", "never", "none", "without", "cannot", "can't", "don't", "doesn't", "didn't", "won't", "isn't")
)
_ENTRY_FILES = ("memory.md", "user.md")


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a memory stands: as it was written now, or as it was there before (`written` is False then)."""

    path: str
    start_line: int
    end_line: int
    id: str
    written: bool
    created: bool = False
    notices: tuple[Notice, ...] = ()

    @property
    def citation(self) -> str:
        """Where a person finds it."""
        last = f"-L{self.end_line}" if self.end_line > self.start_line else ""
        return f"{self.path}#L{self.start_line}{last}"


@dataclass(frozen=True, slots=True)
class Desk:
    """What remembering works with."""

    notes: Notes
    engine: Engine
    store: Store
    embedder: Callable[[], Embedder | None]


@dataclass(frozen=True, slots=True)
class Wish:
    """What to remember and where; without a file it goes into the note of its day."""

    text: str
    now: dt.datetime
    file: str = ""
    heading: str = ""
    tags: Sequence[str] = ()
    day: dt.date | None = None
    supersedes: str = ""
    force: bool = False


def remember(desk: Desk, wish: Wish) -> Remembered:
    """Writes a memory and says where it stands; one that is there already is named instead."""
    if len(wish.text) > MAX_TEXT:
        raise UsageError(f"the text has over {MAX_TEXT:,} characters", hint="save it as a file of its own")
    bare = tidy(wish.text)
    if not bare.strip():
        raise UsageError("there is nothing to remember", hint="give some text, or '-' to read it from stdin")
    # Its own headings go under the one it is put under, and none may take in what is remembered after it.
    under = 2 if bare.startswith("#") and not wish.heading else 3
    entry = nested(tidy(with_tags(bare, wish.tags)), under)
    path, location = desk.notes.place(wish.file or _file_of(wish))
    notices = (*_lift(desk, wish, desk.engine.safe(entry), path), *_warned(desk, entry))
    if not wish.force and (there := _duplicate(desk, bare)):
        return there
    compose = _composer(wish, entry, path)
    twin: list[tuple[int, int, str]] = []

    def unless_there(text: str) -> Insertion | None:
        """Another process may have written the same since the index was looked at."""
        if not wish.force and (found := _same_unit(text, bare)):
            twin.append((*found, text))
            return None
        return compose(text)

    written = desk.notes.add(location, unless_there, start=_start(wish, path))
    if written is None:
        first, last, text = twin[-1]
        return replace(_placed(desk, path, Written(first, last, text, created=False)), written=False)
    return replace(_placed(desk, path, written), notices=notices)


def _placed(desk: Desk, path: str, at: Written) -> Remembered:
    """With the id of the chunk that the lines stand in, cut from the file as it is now."""
    first, last = at.start_line, at.end_line
    chunks = desk.engine.cut(Document(path, "memory", 0, 0, ""), clean(at.text))
    touching = [c for c in chunks if c.start_line <= last and c.end_line >= first]
    best = max(touching, key=lambda c: (min(c.end_line, last) - max(c.start_line, first), -c.start_line), default=None)
    return Remembered(path, first, last, best.id if best else "", written=True, created=at.created)


def _file_of(wish: Wish) -> str:
    day = (wish.day or wish.now.date()).isoformat()
    return f"memory/{day}-{wish.supersedes}.md" if wish.supersedes else f"memory/{day}.md"


def _start(wish: Wish, path: str) -> str:
    """The first lines of a new note."""
    day = (wish.day or wish.now.date()).isoformat()
    if wish.supersedes:
        return f"---\ndate: {day}\nsupersedes: [{wish.supersedes}]\n---\n"
    title = PurePosixPath(path).stem
    return "# Memory\n" if title.casefold() == "memory" else f"# {title}\n"


def _composer(wish: Wish, entry: str, path: str) -> Callable[[str], Insertion]:
    """How the entry goes into a note: a list item in the entry files, under its time in the note of a day."""
    own = ""
    if not wish.file and not wish.heading and not wish.supersedes and not entry.startswith("#"):
        today = wish.day in (None, wish.now.date())
        own = f"{wish.now:%H:%M}" if today else f"added {wish.now:%Y-%m-%d %H:%M}"
    heading = " ".join(tidy(wish.heading).lstrip("# \t").split())
    bullets = "/" not in path and path.casefold() in _ENTRY_FILES
    return lambda text: insertion(text, entry, heading=heading, own_heading=own, bullets=bullets)


def _lift(desk: Desk, wish: Wish, entry: str, path: str) -> tuple[Notice, ...]:
    """What was forgotten is not remembered by accident; `force` takes the tombstone away."""
    stone = desk.engine.tombstones.load().has(entry, path)
    if stone is None:
        return ()
    if not wish.force:
        raise UsageError(
            f"this was forgotten on {stone.made[:10]} (receipt {stone.receipt})",
            hint="--force remembers it all the same",
        )
    hashes = {text_hash(normal_words(unit)) for _, _, unit in units(entry)} | {stone.hash}
    desk.engine.tombstones.lift(lambda one: one.hash in hashes)
    return (Notice("tombstone_lifted", f"this had been forgotten on {stone.made[:10]}; it is known again"),)


def _warned(desk: Desk, entry: str) -> tuple[Notice, ...]:
    """Who writes a secret into a note should know that the file has it, and that a search will not show it."""
    if desk.engine.safe(entry) == entry:
        return ()
    message = "this seems to hold a secret: the file has it as you gave it, answers will show [redacted] in its place"
    return (Notice("secret", message, "recollect get --raw shows the file"),)


def _same_unit(text: str, entry: str) -> tuple[int, int] | None:
    """The lines of a note that say the same, word by word."""
    there = [(a, b, normal_words(_TAGS.sub("", unit))) for a, b, unit in units(text)]
    parts = [normal_words(_TAGS.sub("", unit)) for _, _, unit in units(entry)]
    for n in range(len(there) - len(parts) + 1):
        if [words for _, _, words in there[n : n + len(parts)]] == parts:
            return there[n][0], there[n + len(parts) - 1][1]
    return None


def _duplicate(desk: Desk, entry: str) -> Remembered | None:
    """A memory of the index that already says this: the same words, or all of these and hardly another."""
    terms = query_terms(entry).words
    counts = desk.store.term_counts(terms).found_in if terms else {}
    if not counts or not all(counts.values()):
        return None  # a word that stands nowhere: nothing says the same
    rare = sorted(counts, key=lambda term: (counts[term], term))[:_TERMS]
    sought = Sought(tuple(rare), every=True, in_head=False)
    rows = [scored.row for scored in desk.store.lexical(sought, _LOOKED_AT, Filters())]
    for chunk in desk.store.chunks(rows).values():
        found = _same_unit(chunk.text, entry)
        if found is None:
            found = next(((a, b) for a, b, unit in units(chunk.text) if _says_no_more(desk, entry, unit)), None)
        if found:
            first = chunk.start_line + found[0] - 1
            return Remembered(chunk.path, first, chunk.start_line + found[1] - 1, chunk.id, written=False)
    return None


def _says_no_more(desk: Desk, entry: str, there: str) -> bool:
    """Whether a text adds nothing to one that is there; another number, or a 'not', is news however alike they are."""
    entry, there = _TAGS.sub("", entry), _TAGS.sub("", there)
    new, old = query_terms(entry).words, query_terms(there).words
    if not new or len(set(new) & set(old)) < _ALIKE * len(set(new) | set(old)):
        return False
    rest = iter(old)
    if not all(word in rest for word in new):  # in this order: who told whom matters
        return False
    if set(_NUMBER.findall(entry)) != set(_NUMBER.findall(there)) or _negations(entry) != _negations(there):
        return False
    model = desk.embedder()
    if model is None:
        return True
    try:
        one, two = model.embed([entry, there], "document")
    except EmbedderError:
        return True
    return float(one @ two) >= _CLOSE


def _negations(text: str) -> frozenset[str]:
    return _NOT.intersection(text.casefold().replace("’", "'").split())
