"""Remembering: a text into today's note or a named one, unless it is there already."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from notewell.embed.embedder import Embedder
from notewell.errors import EmbedderError, UsageError
from notewell.index.walk import Walk
from notewell.notes.editor import Notes, Written
from notewell.store.values import Sought
from notewell.text.fence import shown
from notewell.text.forgotten import normal_words, place_of_note, text_hash, units
from notewell.text.note_edit import Insertion, insertion, keep_ends, nested, tidy, with_tags
from notewell.text.note_files import is_entry_file, stem_of
from notewell.text.private import CLOSING, balanced, blocks, unmarked
from notewell.text.words import clean, query_terms
from notewell.types import Document, Filters, Notice

MAX_TEXT = 1_000_000
_ALIKE = 0.8
_CLOSE = 0.9
_LOOKED_AT = 50
_TERMS = 12
_BALANCED = Notice(
    "private_closed",
    (
        f"your text had an unpaired <private> or {CLOSING}; notewell paired it in the file, so no "
        "other text is hidden"
    ),
    "to only mention such a mark, put it in back quotes",
)
_HEADED = Notice(
    "private_heading",
    f"<private> and {CLOSING} do not hide anything in a heading: they were written as text",
    "to hide a part of a note, put the marks into the text",
)
_TAGS = re.compile(r"(?:\s+#[\w/-]+)+\s*\Z")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NOT = frozenset(
    (
        "no",
        "not",
        "nor",
        "never",
        "none",
        "without",
        "cannot",
        "can't",
        "don't",
        "doesn't",
        "didn't",
        "won't",
        "isn't",
    )
)


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a memory is: written now, or found already there (`written` is False then)."""

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
class RememberContext:
    """What remembering works with."""

    notes: Notes
    walk: Walk
    embedder: Callable[[], Embedder | None]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What to remember and where; without a file it goes into the note of its day."""

    text: str
    now: dt.datetime
    file: str = ""
    heading: str = ""
    tags: Sequence[str] = ()
    day: dt.date | None = None
    supersedes: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What remembering would write: where, how a new file begins, what goes in, and what to tell
    about it.

    `bare` is the text without tags; `there` is where it is already.
    """

    path: str
    location: str
    start: str
    compose: Callable[[str], Insertion]
    bare: str
    notices: tuple[Notice, ...]
    there: Remembered | None


def plan(context: RememberContext, new: NewMemory) -> Plan:
    """Decides where a memory goes; writes nothing, but with `force` lifts the tombstone of what was
    forgotten.
    """
    if len(new.text) > MAX_TEXT:
        raise UsageError(f"the text has over {MAX_TEXT:,} characters", hint="save it as a file")
    given = tidy(new.text)
    bare = balanced(given)
    if not bare.strip():
        raise UsageError(
            "there is nothing to remember", hint="give some text, or '-' to read it from stdin"
        )
    # Its headings go one level below the heading it is put under, so that they do not cover later
    # entries.
    under = 2 if bare.startswith("#") and not new.heading else 3
    entry = nested(tidy(with_tags(bare, new.tags)), under)
    path, location = context.notes.locate(_named(new.file or _file_of(new)))
    notices = (*_lift(context, new, context.walk.safe(entry), path), *_warned(context, entry))
    if bare != given:
        notices = (*notices, _BALANCED)
    if unmarked(new.heading) != new.heading:
        notices = (*notices, _HEADED)
    there = None if new.force else _duplicate(context, bare)
    return Plan(
        path, location, _start(new, path), _composer(new, entry, path), bare, notices, there
    )


def remember(context: RememberContext, new: NewMemory) -> Remembered:
    """Writes a memory and returns where it is; one that exists already is returned instead."""
    planned = plan(context, new)
    if planned.there:
        return planned.there
    path, notices = planned.path, planned.notices
    twin: list[tuple[int, int, str]] = []

    def unless_there(text: str) -> Insertion | None:
        """Another process may have written the same since the index was read."""
        if not new.force and (found := same_unit(text, planned.bare)):
            twin.append((*found, text))
            return None
        return planned.compose(text)

    written = context.notes.add(planned.location, unless_there, start=planned.start)
    if written is None:
        there = Written(*twin[-1], created=False)
        hidden = _hidden(context, path, there)
        return replace(_placed(context, path, there), written=False, notices=hidden)
    notices = (*notices, *_beyond(context, path, written), *_hidden(context, path, written))
    return replace(_placed(context, path, written), notices=notices)


def _placed(context: RememberContext, path: str, at: Written) -> Remembered:
    """The place with the id of its chunk, cut from the file as it is now."""
    first, last = at.start_line, at.end_line
    chunks = context.walk.cut(Document(path, "memory", 0, 0, ""), clean(at.text))
    touching = [c for c in chunks if c.start_line <= last and c.end_line >= first]
    best = max(
        touching,
        key=lambda c: (min(c.end_line, last) - max(c.start_line, first), -c.start_line),
        default=None,
    )
    return Remembered(path, first, last, best.id if best else "", written=True, created=at.created)


def _file_of(new: NewMemory) -> str:
    day = (new.day or new.now.date()).isoformat()
    return f"memory/{day}-{stem_of(new.supersedes)}.md" if new.supersedes else f"memory/{day}.md"


def _named(file: str) -> str:
    """The name of a file to write, refused where it holds what a reader would not see."""
    if (written_out := shown(file)) != file:
        hint = "write the name with letters, digits, spaces and marks that can be seen"
        raise UsageError(
            f"the file name has a control or hidden character: {written_out}", hint=hint
        )
    return file


def _start(new: NewMemory, path: str) -> str:
    """The first lines of a new note."""
    day = (new.day or new.now.date()).isoformat()
    if new.supersedes:
        # A path may have a comma, which would part the items of a list on one line.
        item = f" [{new.supersedes}]" if "," not in new.supersedes else f"\n  - {new.supersedes}"
        return f"---\ndate: {day}\nsupersedes:{item}\n---\n"
    title = unmarked(stem_of(path))
    return "# Memory\n" if title.casefold() == "memory" else f"# {title}\n"


def _composer(new: NewMemory, entry: str, path: str) -> Callable[[str], Insertion]:
    """Puts the entry into a note: as a list item in `MEMORY.md` and `USER.md`, under its time in
    the note of a day.
    """
    own = ""
    if not new.file and not new.heading and not new.supersedes and not entry.startswith("#"):
        today = new.day in (None, new.now.date())
        own = f"{new.now:%H:%M}" if today else f"added {new.now:%Y-%m-%d %H:%M}"
    heading = " ".join(tidy(new.heading).lstrip("# \t").split())
    bullets = is_entry_file(path)
    return lambda text: insertion(
        text, entry, heading=_headed(text, heading), own_heading=own, bullets=bullets
    )


def _headed(text: str, heading: str) -> str:
    """The heading to write below: a section of the user's that is called so, else one that hides
    and shows nothing.
    """
    plain = unmarked(heading)
    if plain == heading:
        return heading
    made = insertion(text, "x", heading=heading)
    return plain if made.text.lstrip().startswith("## ") else heading


def _lift(context: RememberContext, new: NewMemory, entry: str, path: str) -> tuple[Notice, ...]:
    """Refuses a text that was forgotten, unless `force` lifts its tombstone."""
    forgotten = context.walk.tombstones.load()
    stone = forgotten.has(entry, path) or forgotten.in_any_note.has(entry, path)
    if stone is None:
        return ()
    if not new.force:
        message = f"this was forgotten on {stone.made[:10]} (receipt {stone.receipt})"
        raise UsageError(message, hint="--force remembers it anyway")
    hashes = {text_hash(normal_words(unit)) for _, _, unit in units(entry)} | {stone.hash}
    places = ("", place_of_note(path))  # what was forgotten in another note stays so there
    context.walk.tombstones.lift(lambda one: one.hash in hashes and one.place in places)
    return (
        Notice(
            "tombstone_lifted",
            f"this was forgotten on {stone.made[:10]}; now it is remembered again",
        ),
    )


def _warned(context: RememberContext, entry: str) -> tuple[Notice, ...]:
    """Warns who writes a secret into a note: the file has it, and a search will not show it."""
    if context.walk.safe(entry) == entry:
        return ()
    message = (
        "this seems to hold a secret: the file has it as you gave it, answers will show "
        "[redacted] instead"
    )
    return (Notice("secret", message, "notewell get --raw shows the file"),)


def _beyond(context: RememberContext, path: str, at: Written) -> tuple[Notice, ...]:
    """Warns who writes into the part of a note that is too far down to be indexed."""
    most = context.notes.files.max_file_bytes
    if len(at.text) <= most // 4:  # no character has more than four bytes
        return ()
    if len("".join(keep_ends(at.text)[: at.end_line]).encode("utf-8", "replace")) <= most:
        return ()
    message = (
        f"{path} is larger than {most:,} bytes and this memory lies past that limit: it was "
        "saved, but searches cannot find it"
    )
    return (
        Notice(
            "partly_read",
            message,
            (
                "name another file, split this one, or raise max_file_bytes "
                "(notewell config shows where it is set)"
            ),
        ),
    )


def _hidden(context: RememberContext, path: str, at: Written) -> tuple[Notice, ...]:
    return concealed(path, at.text, at.start_line) if context.walk.redactor else ()


def concealed(path: str, text: str, line: int) -> tuple[Notice, ...]:
    """Warns who writes on a line of a note that a private block above it hides."""
    at = sum(map(len, keep_ends(text)[: line - 1]))
    above = next((block for block in blocks(text) if block.start < at < block.end), None)
    if above is None:
        return ()
    begun = len(keep_ends(text[: above.start] + "<"))
    endless, hint = "", "name another file or heading"
    if not above.closed:
        endless, hint = (
            " and is never closed",
            f"write {CLOSING} there, where the private part ends",
        )
    message = (
        f"the memory is in {path}, but searches cannot find it: a private part begins on "
        f"line {begun}{endless}"
    )
    return (Notice("hidden", message, hint),)


def same_unit(text: str, entry: str) -> tuple[int, int] | None:
    """The lines of a note that have the same words."""
    there = [(a, b, normal_words(_TAGS.sub("", unit))) for a, b, unit in units(text)]
    parts = [normal_words(_TAGS.sub("", unit)) for _, _, unit in units(entry)]
    for n in range(len(there) - len(parts) + 1):
        if [words for _, _, words in there[n : n + len(parts)]] == parts:
            return there[n][0], there[n + len(parts) - 1][1]
    return None


def _duplicate(context: RememberContext, entry: str) -> Remembered | None:
    """A memory in the index that says this already: the same words, or these and hardly any
    other.
    """
    terms = query_terms(entry).words
    counts = context.walk.store.keywords.term_counts(terms).found_in if terms else {}
    if not counts or not all(counts.values()):
        return None  # a word that no passage has: nothing says the same
    rare = sorted(counts, key=lambda term: (counts[term], term))[:_TERMS]
    sought = Sought(tuple(rare), every=True, in_head=False)
    rows = [
        scored.row for scored in context.walk.store.keywords.lexical(sought, _LOOKED_AT, Filters())
    ]
    for chunk in context.walk.store.documents.chunks(rows).values():
        found = same_unit(chunk.text, entry)
        if found is None:
            found = next(
                ((a, b) for a, b, unit in units(chunk.text) if _says_no_more(context, entry, unit)),
                None,
            )
        if found:
            first = chunk.start_line + found[0] - 1
            return Remembered(
                chunk.path, first, chunk.start_line + found[1] - 1, chunk.id, written=False
            )
    return None


def _says_no_more(context: RememberContext, entry: str, there: str) -> bool:
    """Whether a text adds nothing to another; a different number or a 'not' is news, however alike
    they are.
    """
    entry, there = _TAGS.sub("", entry), _TAGS.sub("", there)
    ours, theirs = query_terms(entry).words, query_terms(there).words
    if not ours or len(set(ours) & set(theirs)) < _ALIKE * len(set(ours) | set(theirs)):
        return False
    rest = iter(theirs)
    if not all(word in rest for word in ours):  # in the same order: who told whom matters
        return False
    if set(_NUMBER.findall(entry)) != set(_NUMBER.findall(there)) or _negations(
        entry
    ) != _negations(there):
        return False
    model = context.embedder()
    if model is None:
        return True
    try:
        one, two = model.embed([entry, there], "document")
    except EmbedderError:
        return True
    return float(one @ two) >= _CLOSE


def _negations(text: str) -> frozenset[str]:
    return _NOT.intersection(text.casefold().replace("’", "'").split())
