"""What the page asks of a memory beyond what programs may, over HTTP only."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from notewell.index.overview import Changed, Overview, Topic, overview, stamp
from notewell.memory import Memory
from notewell.notes.day_list import Day, DayEntry, days
from notewell.notes.proposals import Applied, Proposal, Proposals
from notewell.notes.statements import Statement, Version
from notewell.notes.undo_log import Change, hash_of
from notewell.notes.whole_note import Named, WholeNote, resolver_of
from notewell.search.unread import cure
from notewell.settings import env_name, load
from notewell.settings_file import write_setting
from notewell.sources.trust import CLONE
from notewell.store.values import Finding
from notewell.surfaces import arguments
from notewell.surfaces.arguments import ArgumentError
from notewell.surfaces.hooks.journal import Injected, Journal
from notewell.surfaces.server import markup
from notewell.surfaces.server.calls import Call, Param, adding_to
from notewell.surfaces.server.texts import Answer
from notewell.surfaces.shapes import Shape, plain
from notewell.types import Chunk, Filters, Notice

PAGE_CALLS: dict[str, Call] = {}
_call = adding_to(PAGE_CALLS)
_MOST = 50
AS_OF = Param("as_of", str, "as of that day: leave out what is later")
PATH = Param(
    "path", str, "the path of a note or conversation, or any other reference to it", required=True
)

NAMED = Shape("path title citation date", Named)
VERSION = Shape("text citation from=since until", Version)
STATEMENT = Shape("", subject=str, versions=[VERSION])
INJECTED = Shape("", when=str, host=str, prompt=str, citation=str)
PASSAGE = Shape("id start_line end_line", Chunk)
NOTE = Shape(
    "path title source date origin pinned kept hash text notices",
    WholeNote,
    html=str,
    outline=[Shape("", level=int, text=str, line=int)],
    links=[NAMED],
    backlinks=[NAMED],
    statements=[STATEMENT],
    injected=[INJECTED],
    passages=[PASSAGE],
    before=dict[str, Any] | None,
    after=dict[str, Any] | None,
)


TOPIC = Shape("*", Topic)
CHANGED = Shape("*", Changed)
ENTRY = Shape("*", DayEntry)
DAY = Shape("day entries more", Day, entries=[ENTRY])
DAYS = Shape("", days=[DAY], more=str | None)
_SIDE = Shape("", id=str, citation=str, text=str, date=str | None)
HOME = Shape(
    "",
    workspace=str,
    can_write=bool,
    counts=Shape("", notes=int, conversations=int, passages=int, days=int),
    days=[Shape("", day=str, notes=int, passages=int)],
    topics=[TOPIC],
    lately=[CHANGED],
    pinned=[Shape("", path=str, title=str, date=str | None)],
    attention=Shape(
        "",
        conflicts=[Shape("", id=str, citation=str, text=str, date=str | None, other=_SIDE)],
        copies=[Shape("", id=str, citation=str, others=list[str])],
        never_found=Shape("", since=str, count=int, paths=list[str]),
        unread=[Shape("", path=str, reason=str, hint=str)],
        useless=[Shape("", citation=str, prompt=str, when=str)],
        more=dict[str, int],
    ),
    empty=dict[str, Any] | None,
    notices=list[Notice],
    doubt=dict[str, Any] | None,
)
TRUSTED = Shape("", folder=str)
PROPOSAL = Shape(
    "", token=str, diffs=[Shape("", path=str, diff=str, hash=str)], summary=str, warnings=list[str]
)
APPLIED = Shape("receipt undo paths", Applied, undo=str | None)
CHANGE = Shape("id when action summary", Change, paths=list[str])
CHECKS = Shape("", ok=bool, checks=[Shape("*", Finding)])
CHANGES = Shape("", changes=[CHANGE])
# What each action needs, and what it may have besides.
_ACTIONS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "remember": (("text",), ("file", "heading", "tags")),
    "correct": (("ref", "text"), ()),
    "settle": (("keep", "drop"), ()),
    "pin": (("ref",), ()),
    "unpin": (("ref",), ()),
    "forget": (("ref",), ("everywhere",)),
}
_pending: WeakKeyDictionary[Memory, Proposals] = WeakKeyDictionary()
_MOST_OVERVIEWS = 8
_overviews: WeakKeyDictionary[Memory, dict[dt.date | None, tuple[object, Overview]]] = (
    WeakKeyDictionary()
)


def _silent(_answer: Answer) -> str:
    """The page's calls are not tools, so nobody reads them as text."""
    return ""


def _injected(memory: Memory, as_of: dt.date | None) -> list[Injected]:
    """What hooks gave to models in this workspace up to a day, the newest first."""
    root, last = str(memory.root), as_of.isoformat() if as_of else "9999"
    found = reversed(Journal(os.environ).entries())
    return [entry for entry in found if entry.workspace == root and entry.time[:10] <= last]


def _statement(one: Statement) -> dict[str, Any]:
    return {"subject": one.subject, "versions": [VERSION.fill(v) for v in one.versions]}


@_call(
    "A note as a page",
    NOTE,
    _silent,
    PATH,
    Param("line", int, "the line to show", least=1, most=10_000_000),
    AS_OF,
    tool=False,
)
def _note(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """All of a note or conversation as safe HTML, with its outline, links, neighbours in time, the
    versions of what it says, and where its passages were injected.
    """
    note = memory.notebook.whole(given["path"], as_of=_day(given))
    resolve = resolver_of(memory.index, note.path, markup.address)
    made = (
        markup.Rendered(markup.turns_html(note.turns, resolve))
        if note.turns
        else markup.note_html(note.text, resolve)
    )
    injected = [
        {
            "when": entry.time,
            "host": entry.host,
            "prompt": entry.prompt,
            "citation": passage.citation,
        }
        for entry in _injected(memory, _day(given))
        for passage in entry.passages
        if passage.citation.partition("#")[0] == note.path
    ]
    return NOTE.fill(
        note,
        html=made.html,
        outline=[
            {"level": level, "text": text, "line": line} for level, text, line in made.outline
        ],
        links=[NAMED.fill(one) for one in note.links],
        backlinks=[NAMED.fill(one) for one in note.backlinks],
        statements=[_statement(one) for one in note.statements],
        injected=injected[:_MOST],
        passages=[PASSAGE.fill(one) for one in note.passages],
        before=NAMED.fill(note.before) if note.before else None,
        after=NAMED.fill(note.after) if note.after else None,
    )


@_call("Home", HOME, _silent, AS_OF, tool=False)
def _home(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """What is remembered at a glance: how much, on which days, about what, what changed lately, and
    what needs a person: contradictions, likely copies, notes that were never shown, files that are
    not read, useless passages.
    """
    fresh = memory.index.ensure_fresh(embed=False)
    seen = _overview(memory, _day(given))
    return {
        "workspace": memory.root.name,
        "can_write": True,
        "counts": {
            "notes": seen.notes,
            "conversations": seen.conversations,
            "passages": seen.passages,
            "days": len(seen.days),
        },
        "days": [{"day": d.day, "notes": d.documents, "passages": d.chunks} for d in seen.days],
        "topics": [TOPIC.fill(one) for one in seen.topics],
        "lately": [CHANGED.fill(one) for one in seen.lately],
        "pinned": [
            {"path": one.path, "title": one.title or one.path, "date": one.date}
            for one in seen.pinned
        ],
        "attention": _attention(memory, seen, _day(given)),
        "empty": None if seen.passages else _empty(memory),
        "notices": plain((*memory.index.store_notices, *fresh.notices)),
        "doubt": _doubt(memory),
    }


def _doubt(memory: Memory) -> dict[str, Any] | None:
    """Why the notes do not count as the user's own, which the person at the page can change."""
    doubt = memory.index.trust.doubt
    return (
        None
        if doubt is None
        else {"folder": doubt.folder, "reason": doubt.reason, "command": doubt.command}
    )


def _day(given: Mapping[str, Any]) -> dt.date | None:
    return arguments.day(given.get("as_of"), "as_of", arguments.local_now(), end=True)


def _overview(memory: Memory, as_of: dt.date | None) -> Overview:
    """The overview of the store as it is; it is made when something has changed."""
    known, now = _overviews.setdefault(memory, {}), stamp(memory.store, memory.root)
    found = known.get(as_of)
    if found is None or found[0] != now:
        if len(known) >= _MOST_OVERVIEWS:
            known.clear()
        found = known[as_of] = (now, overview(memory.store, Filters(as_of=as_of), memory.root))
    return found[1]


def _attention(memory: Memory, seen: Overview, as_of: dt.date | None) -> dict[str, Any]:
    """What a person should look at; in a look back, without what is only known of today."""
    conflicts = [
        {
            "id": c.chunk.id,
            "citation": c.chunk.citation,
            "text": c.text,
            "date": plain(c.chunk.day),
            "other": {
                "id": c.other.id,
                "citation": c.other.citation,
                "text": c.other_text,
                "date": plain(c.other.day),
            },
        }
        for c in seen.conflicts
    ]
    copies = [
        {"id": c.chunk.id, "citation": c.chunk.citation, "others": list(c.others[:_MOST])}
        for c in seen.copies
    ]
    entries = _injected(memory, as_of)
    useless = [
        {"citation": passage.citation, "prompt": entry.prompt, "when": entry.time}
        for entry in entries
        if entry.useless
        for passage in entry.passages
    ]
    unread = [] if as_of else _unread(memory)
    lists = {
        "conflicts": conflicts,
        "copies": copies,
        "unread": unread[:_MOST],
        "useless": useless[:_MOST],
    }
    more = {
        "conflicts": seen.more_conflicts,
        "copies": seen.more_copies,
        "unread": max(0, len(unread) - _MOST),
        "useless": max(0, len(useless) - _MOST),
    }
    never = _never_found(memory, () if as_of else seen.settled, entries)
    return {**lists, "never_found": never, "more": more}


def _never_found(
    memory: Memory, settled: Sequence[str], entries: Sequence[Injected]
) -> dict[str, Any]:
    """Notes that no answer of a server and no hook has shown since the counting began; new ones
    have had no chance.
    """
    shown = memory.searcher.record_shown()
    injected = {
        passage.citation.partition("#")[0] for entry in entries for passage in entry.passages
    }
    paths = [path for path in settled if path not in shown and path not in injected]
    return {"since": shown.since.isoformat(), "count": len(paths), "paths": paths[:_MOST]}


def _unread(memory: Memory) -> list[dict[str, Any]]:
    """Files and sources that are not read, or only partly."""
    unread = memory.index.looks.unread
    files = [{"path": one.path, "reason": one.reason, "hint": cure(one)} for one in unread]
    waiting = [s for s in memory.index.survey.latest() if not s.read and s.documents]
    return [
        *files,
        *({"path": s.name, "reason": f"{s.amount}: {s.about}", "hint": s.command} for s in waiting),
    ]


def _empty(memory: Memory) -> dict[str, Any]:
    """What somebody reads who has no notes yet."""
    waiting = next((s for s in memory.index.survey.states() if not s.read and s.documents), None)
    if waiting:
        more = f"{waiting.amount} could be read: {waiting.about}."
        command = waiting.command
    else:
        more = "Write a Markdown file, let an agent remember something, or do it yourself."
        command = 'notewell remember "TEXT"'
    return {
        "sentences": [
            "Nothing is remembered here yet.",
            (
                f"notewell reads the Markdown notes in {memory.root.name}, and what agents write "
                "into memory/ there."
            ),
            more,
        ],
        "command": command,
    }


@_call(
    "Days",
    DAYS,
    _silent,
    Param("from", str, "the first day"),
    Param("to", str, "the last day"),
    AS_OF,
    tool=False,
)
def _days(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """The days of the memory, the newest first, each with its notes and conversations; `more` is
    the day to give as `to` for those before.
    """
    memory.index.ensure_fresh(embed=False)
    now = arguments.local_now()
    first, last = (
        arguments.day(given.get("from"), "from", now),
        arguments.day(given.get("to"), "to", now, end=True),
    )
    found, more = days(memory.store, Filters(since=first, until=last, as_of=_day(given)))
    return {"days": [DAY.fill(one) for one in found], "more": more}


@_call(
    "Show a change",
    PROPOSAL,
    _silent,
    Param("action", str, "what to do", required=True, choices=tuple(_ACTIONS)),
    Param("text", str, "the new text, as Markdown; for remember and correct", longest=100_000),
    Param("file", str, "the note to remember it in; default: the note of the day"),
    Param("heading", str, "the section to remember it in"),
    Param("tags", list, "tags to add"),
    Param("ref", str, "the passage or note, by id, citation, path or name"),
    Param("keep", str, "the passage that is right; for settle"),
    Param("drop", str, "the passage that it supersedes; for settle"),
    Param("everywhere", bool, "forget the same text in all other notes too"),
    tool=False,
    writes=True,
)
def _preview(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Show the lines that a change would write, and write nothing: remember, correct, settle, pin,
    unpin or forget. The token makes exactly this change with `apply`; it is good for ten minutes.
    """
    memory.index.require_writable()
    proposal = _proposed(_proposals(memory), given)
    safe = memory.index.walk.safe
    return {
        "token": proposal.token,
        "diffs": [
            {"path": d.path, "diff": safe(d.diff), "hash": hash_of(d.before)}
            for d in proposal.drafts
        ],
        "summary": proposal.summary,
        "warnings": [*proposal.warnings, *_accepting(memory)],
    }


def _accepting(memory: Memory) -> list[str]:
    """What a change by a person does to the notes of a clone."""
    doubt = memory.index.trust.doubt
    is_clone = doubt is not None and doubt.kind == CLONE
    return (
        ["once you have written here, the notes that came with this clone count as yours"]
        if is_clone
        else []
    )


def _proposed(proposals: Proposals, given: Mapping[str, Any]) -> Proposal:
    """The proposal of an action, with the arguments that it takes."""
    action, now = given["action"], arguments.local_now()
    needed, further = _ACTIONS[action]
    hint = f"it takes: {', '.join((*needed, *further))}"
    for name in needed:
        if not given.get(name):
            raise ArgumentError(f"{action} needs {name}", hint=hint)
    if wrong := sorted(given.keys() - {"action", *needed, *further}):
        raise ArgumentError(f"{action} has no argument {wrong[0]!r}", hint=hint)
    rest = {name: given[name] for name in further if name in given}
    if action == "remember":
        return proposals.remember(given["text"], now=now, **rest)
    if action == "correct":
        return proposals.correct(given["ref"], given["text"], now=now)
    if action == "settle":
        return proposals.settle(given["keep"], given["drop"], now=now)
    if action == "forget":
        return proposals.forget(given["ref"], **rest)
    return proposals.pin(given["ref"], pinned=action == "pin")


@_call(
    "Make a change",
    APPLIED,
    _silent,
    Param("token", str, "the token of the change that was shown", required=True, longest=100),
    tool=False,
    writes=True,
    destroys=True,
)
def _apply(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Make the change that was shown, exactly so; if a file has changed since, nothing is
    written.
    """
    done = APPLIED.fill(_proposals(memory).apply(given["token"], now=arguments.local_now()))
    memory.index.trust.wrote()
    return done


@_call(
    "Take a change back",
    APPLIED,
    _silent,
    Param("undo", str, "the id of the change", required=True, longest=100),
    tool=False,
    writes=True,
    destroys=True,
)
def _undo(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Take a change back, if the lines that it wrote are still as written."""
    return APPLIED.fill(_proposals(memory).undo(given["undo"]))


@_call(
    "Trust the notes",
    TRUSTED,
    _silent,
    Param("folder", str, "the folder that Home asks about", required=True),
    tool=False,
    writes=True,
)
def _trust(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Count the notes of a folder as the user's own from now on, also where another user or a clone
    brought them.
    """
    doubt = memory.index.trust.doubt
    if doubt is None or given["folder"] != doubt.folder:
        raise ArgumentError("nobody asks about this folder", hint="open Home again")
    named = (*load(memory.root, env=os.environ).trusted_folders, doubt.folder)
    write_setting("trusted_folders", named, memory.root, os.environ)
    if memory.index.trust.doubt is not None:
        hint = (
            f"{env_name('trusted_folders')} or --setting says whom to trust, and this server "
            "was started with it"
        )
        raise ArgumentError("the settings file has no effect on this", hint=hint)
    return {"folder": doubt.folder}


@_call("Changes", CHANGES, _silent, tool=False)
def _changes(memory: Memory, _given: Mapping[str, Any]) -> Answer:
    """The last changes that can be taken back, the newest first."""
    found = _proposals(memory).changes()
    return {"changes": [CHANGE.fill(one, paths=[file.path for file in one.files]) for one in found]}


@_call("Checks", CHECKS, _silent, tool=False)
def _doctor(memory: Memory, _given: Mapping[str, Any]) -> Answer:
    """Check the notes, the index and the models as `notewell doctor` does."""
    from notewell.surfaces.cli import doctor  # noqa: PLC0415

    return doctor.wire([*doctor.inside(memory, there=True, deep=False)])


def _proposals(memory: Memory) -> Proposals:
    return _pending.setdefault(memory, Proposals(memory.notebook))


def offered(*, read_only: bool) -> list[Call]:
    """All calls of the page, or only those that change nothing; Home says which."""
    if not read_only:
        return list(PAGE_CALLS.values())

    def home(memory: Memory, given: Mapping[str, Any]) -> Answer:
        return {**_home(memory, given), "can_write": False}

    return [
        replace(c, run=home) if c.name == "home" else c for c in PAGE_CALLS.values() if not c.writes
    ]
