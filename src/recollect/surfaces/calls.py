"""What a program may ask of a memory, once: MCP tools, HTTP routes and their schemas are all made from these rows."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import RecollectError, UsageError
from recollect.memory import Memory
from recollect.search import profiles
from recollect.search.pack import DEFAULT_BUDGET
from recollect.search.pipeline import Profile
from recollect.settings import ORIGINS
from recollect.surfaces import shapes, view
from recollect.surfaces.options import SOURCES
from recollect.text.dates import parse_day, parse_span
from recollect.types import Filters

Answer = dict[str, Any]
_KINDS: Mapping[type, tuple[str, str]] = {
    str: ("string", "a text"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    bool: ("boolean", "true or false"),
    list: ("array", "a list of texts"),
}
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_FLAG = re.compile(r"--([a-z][a-z-]+)")
_MOST_ITEMS, _LONGEST_ITEM = 20, 200
MAX_TEXT = 100_000
_SHOWN = 20
_FEW = 3
ADDRESS = 1_000  # an address holds less than a body; a longer question goes by POST


class ArgumentError(UsageError):
    """An argument that is missing, of the wrong kind or out of range; the message says what would be right."""


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a call."""

    name: str
    kind: type
    doc: str
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    longest: int = 1_000

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        made: dict[str, Any] = {"type": _KINDS[self.kind][0], "description": self.doc}
        if self.choices:
            made["enum"] = list(self.choices)
        elif self.kind is str:
            made["maxLength"] = self.longest
            if self.required:
                made["minLength"] = 1
        if self.kind is list:
            made |= {"items": {"type": "string", "maxLength": _LONGEST_ITEM}, "maxItems": _MOST_ITEMS}
        if self.least is not None:
            made["minimum"] = self.least
        if self.most is not None:
            made["maximum"] = self.most
        return made

    def read(self, value: Any) -> Any:
        """The value, checked."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = {
            int: number and float(value).is_integer(),
            float: number and math.isfinite(value),
            list: isinstance(value, list) and all(isinstance(v, str) for v in value),
        }.get(self.kind, isinstance(value, self.kind))
        if not fits:
            raise ArgumentError(f"{self.name} must be {_KINDS[self.kind][1]}, not {_short(value)}", hint=self.doc)
        if self.kind in (int, float):
            value = self.kind(value)
        if self.choices and value not in self.choices:
            raise ArgumentError(
                f"{self.name} must be one of {', '.join(self.choices)}, not {_short(value)}", hint=self.doc
            )
        if isinstance(value, list) and (len(value) > _MOST_ITEMS or any(len(v) > _LONGEST_ITEM for v in value)):
            most = f"at most {_MOST_ITEMS} texts of {_LONGEST_ITEM} characters"
            raise ArgumentError(f"{self.name} takes {most}", hint=self.doc)
        if isinstance(value, str):
            if len(value) > self.longest:
                raise ArgumentError(f"{self.name} is longer than {self.longest:,} characters", hint="shorten it")
            if self.required and not value.strip():
                raise ArgumentError(f"{self.name} is empty", hint=self.doc)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ArgumentError(f"{self.name} must be {self._range()}, not {_short(value)}", hint=self.doc)
        return value

    def parse(self, texts: Sequence[str]) -> Any:
        """The value of an address's query part, where everything is text."""
        if self.kind is list:
            return self.read(list(texts))
        text = texts[-1]
        if len(text) > ADDRESS:
            raise ArgumentError(f"{self.name} is longer than {ADDRESS:,} characters", hint="send it with POST")
        if self.kind is bool:
            return self.read(_WORDS.get(text.lower(), text))
        if self.kind in (int, float) and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text):
            return self.read(float(text) if "." in text else int(text))
        return self.read(text)

    def _range(self) -> str:
        if self.most is None:
            return f"at least {self.least:g}"
        return f"from {self.least or 0:g} to {self.most:g}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that can be asked: its arguments, what it does and the shape of its answer."""

    name: str
    title: str
    doc: str
    params: tuple[Param, ...]
    run: Callable[[Memory, Mapping[str, Any]], Answer]
    shape: Mapping[str, Any]
    text: Callable[[Answer], str]
    writes: bool = False
    destroys: bool = False
    tool: bool = True

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {p.name: p.schema() for p in self.params},
            "required": [p.name for p in self.params if p.required],
            "additionalProperties": False,
        }

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a JSON object, checked."""
        return self._checked(given, lambda p, v: p.read(v))

    def parsed(self, given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The arguments of an address's query part, checked."""
        return self._checked(given, lambda p, v: p.parse(v))

    def _checked(self, given: Mapping[str, Any], read: Callable[[Param, Any], Any]) -> dict[str, Any]:
        known = {p.name: p for p in self.params}
        for name in given:
            if name not in known:
                raise ArgumentError(f"{self.name} has no argument {name!r}", hint=f"it takes: {', '.join(known)}")
        for p in self.params:
            if p.required and p.name not in given:
                raise ArgumentError(f"{self.name} needs {p.name}", hint=p.doc)
        return {name: read(known[name], value) for name, value in given.items()}


def hint(error: RecollectError) -> str:
    """What to do about an error, with the names that arguments have here instead of flags."""
    return _FLAG.sub(lambda m: m[1].replace("-", "_"), error.hint)


def _when(text: str | None, name: str, now: dt.datetime, *, end: bool = False) -> dt.date | None:
    if not text:
        return None
    day = parse_day(text, now, end=end)
    if day is None:
        raise ArgumentError(f"{name} {_short(text)} is no date", hint='try "2026-03-19", "2026-03" or "last week"')
    return day


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a search as `Memory.search` takes them."""
    now = dt.datetime.now()  # noqa: DTZ005 - days in notes and questions are days of this place
    past = _when(given.get("as_of"), "as_of", now, end=True)
    now = dt.datetime.combine(past, dt.time.max) if past else now
    since, until = _when(given.get("since"), "since", now), _when(given.get("until"), "until", now, end=True)
    if since and until and since > until:
        raise ArgumentError(f"since {since} is after until {until}", hint="change their order")
    filters = Filters(since, until, given.get("path", ""), given.get("source", ""), given.get("origin", ""), past)
    kept = {k: given[k] for k in ("limit", "min_score", "budget_tokens", "include_superseded") if k in given}
    return {**kept, "filters": filters, "now": now, "profile": _profile(given)}


def _profile(given: Mapping[str, Any]) -> str | Profile | None:
    """The profile that is named, with the fusion, stages and pool that stand beside its name."""
    changed = {k: given[k] for k in ("fusion", "stages", "pool") if given.get(k)}
    name: str | None = given.get("profile")
    return profiles.adapted(profiles.profile(name or "default"), **changed) if changed else name


def _search(memory: Memory, given: Mapping[str, Any]) -> Answer:
    if given.get("format") == "context":
        asked = options(given)
        budget = asked.pop("budget_tokens", 0) or DEFAULT_BUDGET
        packed = memory.context(given["query"], budget_tokens=budget, **asked)
        return view.context(packed, explain=given.get("explain", False))
    found = memory.search(given["query"], **options(given))
    return view.found(found, explain=given.get("explain", False))


def _get(memory: Memory, given: Mapping[str, Any]) -> Answer:
    text = memory.get(given["reference"])
    first, count = given.get("from_line"), given.get("lines")
    if first or count:
        start = first or text.start_line
        text = memory.get(f"{text.path}:{start}-{start + (count or 10_000_000) - 1}")
    return view.text(text)


def _why(memory: Memory, given: Mapping[str, Any]) -> Answer:
    return view.why(*memory.why(given["query"], given["reference"], **options(given)))


def _status(memory: Memory, given: Mapping[str, Any]) -> Answer:
    del given
    return view.status(memory.status())


def _remember(memory: Memory, given: Mapping[str, Any]) -> Answer:
    now = dt.datetime.now()  # noqa: DTZ005 - the day of this place
    names = ("file", "heading", "tags", "supersedes", "force")
    kept = {k: given[k] for k in names if k in given}
    return view.remembered(memory.remember(given["text"], day=_when(given.get("date"), "date", now), now=now, **kept))


def _forget(memory: Memory, given: Mapping[str, Any]) -> Answer:
    now = dt.datetime.now()  # noqa: DTZ005 - the day of this place
    kept = {k: given[k] for k in ("query", "session", "from_files", "yes") if k in given}
    before = _when(given.get("before"), "before", now)
    return view.receipt(memory.forget(given.get("reference", ""), before=before, now=now, **kept))


def _timeline(memory: Memory, given: Mapping[str, Any]) -> Answer:
    days = None
    if around := given.get("around"):
        span = parse_span(around, dt.datetime.now())  # noqa: DTZ005 - the days of this place
        if span is None:
            raise ArgumentError(f"around {_short(around)} is no date", hint='try "2026-03-19" or "last week"')
        days = (span.start, span.end)
    filters = Filters(path=given.get("path", ""), source=given.get("source", ""), origin=given.get("origin", ""))
    window = {"window": given["window"]} if "window" in given else {}
    return view.timeline(*memory.timeline(given.get("reference", ""), around=days, filters=filters, **window))


def search_text(answer: Answer) -> str:
    """An answer as a model reads it best: citation, confidence, snippet, and what to know about it."""
    lines: list[str] = []
    if "context" in answer:
        return "\n".join([answer["context"].rstrip() or "Nothing found.", *_notes(answer)])
    for n, hit in enumerate(answer["results"], start=1):
        heading = " › ".join(hit["heading"])
        head = f"{n}. {hit['citation']} (id {hit['id']}, confidence {hit['confidence']:.2f}"
        head += f", {hit['date']})" if hit["date"] else ")"
        lines += [head + (f" {heading}" if heading else ""), _indented(hit["snippet"]), *_marks(hit), ""]
    if not lines:
        lines.append("Nothing found.")
    return "\n".join([*lines, *_notes(answer)]).strip()


def _notes(answer: Answer) -> list[str]:
    return [f"note: {n['message']}{' - ' + n['hint'] if n['hint'] else ''}" for n in answer["notices"]]


def _marks(hit: Answer) -> list[str]:
    """What is to be known of a passage before it is believed."""
    others = hit["conflicts_with"]
    made = [f"   ! contradicts passage {other}" for other in others[:_FEW]]
    if len(others) > _FEW:
        made.append(f"   ! and {len(others) - _FEW} more")
    if hit["superseded_by"]:
        made.append(f"   ! superseded by passage {hit['superseded_by']}")
    if hit["origin"] == "untrusted":
        made.append("   ! of untrusted origin")
    return made


def _indented(text: str) -> str:
    return "\n".join("   " + line for line in text.splitlines())


def _get_text(answer: Answer) -> str:
    return f"{answer['path']} lines {answer['start_line']}-{answer['end_line']}\n{answer['text']}"


def _why_text(answer: Answer) -> str:
    return "\n".join([f"{answer['citation']}: {answer['verdict']}", *answer["story"]])


def _remember_text(answer: Answer) -> str:
    done = "Remembered in" if answer["written"] else "It was there already:"
    return "\n".join([f"{done} {answer['citation']} (id {answer['id']})", *_notes(answer)])


def _forget_text(answer: Answer) -> str:
    passages = answer["passages"]
    if not passages:
        return "Nothing to forget."
    if answer["dry_run"]:
        lines = [f"{len(passages)} passages would be forgotten; nothing was changed. Pass yes: true to do it."]
        lines += [f"- {p['citation']}: {' '.join(p['text'].split())[:100]}" for p in passages[:_SHOWN]]
        return "\n".join(lines + ([f"and {len(passages) - _SHOWN} more"] if len(passages) > _SHOWN else []))
    lines = [f"Forgotten: {len(passages)} passages, receipt {answer['receipt']}."]
    lines += [f"{'Deleted' if f['deleted'] else 'Rewritten'}: {f['path']}" for f in answer["files"]]
    lines += [f"Left alone: {path}" for path in answer["files_left_alone"]]
    lines += [f"Still found: {one}" for one in (*answer["proof"]["still_found"], *answer["proof"]["lingering"])]
    return "\n".join(lines)


def _timeline_text(answer: Answer) -> str:
    lines = []
    for e in answer["entries"]:
        when = e["when"].replace("T", " ")[:16]
        lines.append(f"{'>' if e['here'] else '-'} {when} {e['citation']} (id {e['id']}): {e['first_line']}")
    return "\n".join([*(lines or ["Nothing in that time."]), *_notes(answer)])


def _status_text(answer: Answer) -> str:
    state = "up to date" if answer["fresh"] else "behind the files; the next search brings it up to date"
    meaning = f"{answer['embedder']}, {answer['embedded']} of {answer['chunks']} passages have a vector"
    lines = [f"{answer['documents']} notes, {answer['chunks']} passages, {state}.", f"Meaning search: {meaning}."]
    return "\n".join([*lines, *_notes(answer)])


QUERY = Param("query", str, "what to look for, in natural words", required=True, longest=20_000)
REFERENCE = Param("reference", str, "a passage: its id, path, path:from-to, or a citation of a hit", required=True)
PLACES = (
    Param("path", str, "only files under this folder or matching this glob"),
    Param("source", str, "only one source", choices=SOURCES),
    Param("origin", str, "only what these wrote", choices=ORIGINS),
)
FILTERS = (
    Param("since", str, 'only notes of this day or later: a date, a month or a phrase such as "last week"'),
    Param("until", str, "only notes of this day or earlier"),
    *PLACES,
    Param("as_of", str, "answer as if it were that day: notes dated later are not seen"),
    Param("include_superseded", bool, "also older copies and what another note supersedes"),
)
SHAPING = (
    Param("limit", int, "how many hits", least=1, most=100),
    Param("profile", str, "named pipeline", choices=tuple(profiles.PROFILES)),
    Param("min_score", float, "least confidence of a hit", least=0, most=1),
    Param("fusion", str, 'fusion instead of the profile\'s, such as "weighted(vector=0.7, text=0.3)"'),
    Param("stages", list, 'stages instead of the profile\'s, such as "decay(half_life_days=30)"'),
    Param("pool", int, "candidates of each leg", least=1, most=1_000),
)

SEARCH = Call(
    "search",
    "Search memory",
    "Find the passages of notes and transcripts that answer a question, best first, each with citation, confidence "
    "and the reason for its rank. Use it before answering anything about earlier work, decisions, people or "
    "preferences.",
    (
        QUERY, *SHAPING[:3], *FILTERS,
        Param("budget_tokens", int, "stop before this many tokens of passages", least=0, most=1_000_000),
        Param("format", str, "hits, or one block of text for a prompt of budget_tokens", choices=("hits", "context")),
        Param("explain", bool, "also return what every leg and stage did"), *SHAPING[3:],
    ),
    _search,
    shapes.FOUND,
    search_text,
)  # fmt: skip
GET = Call(
    "get",
    "Read a note",
    "Read a passage or note as it stands in its file, by id, path, path:from-to or citation of a search hit.",
    (
        REFERENCE,
        Param("from_line", int, "first line to read", least=1, most=10_000_000),
        Param("lines", int, "how many lines to read", least=1, most=100_000),
    ),
    _get,
    shapes.TEXT,
    _get_text,
)
WHY = Call(
    "why",
    "Explain a rank",
    "Say why a passage ranks where it does for a question, or why it is missing from the answer.",
    (QUERY, REFERENCE, *SHAPING, *FILTERS),
    _why,
    shapes.WHY,
    _why_text,
)
STATUS = Call(
    "status",
    "Index status",
    "Compare the files with the index: how many notes and passages, what is not indexed, whether meaning search is on.",
    (),
    _status,
    shapes.STATUS,
    _status_text,
)

PROFILES = Call(
    "profiles",
    "Named pipelines",
    "List the named pipelines with their fusion and stages, in the words that `fusion` and `stages` take.",
    (),
    lambda _memory, _given: view.profiles(profiles.PROFILES.values()),
    shapes.PROFILES,
    lambda answer: ", ".join(p["name"] for p in answer["profiles"]),
    tool=False,
)

REMEMBER = Call(
    "remember",
    "Remember",
    "Write something down for good, into today's note or a named one; the next search finds it. For decisions, facts, "
    "preferences and lessons. What is there already is not written twice.",
    (
        Param("text", str, "what to remember, as Markdown", required=True, longest=MAX_TEXT),
        Param("file", str, "note to write to, such as memory/topic.md; else the note of the day"),
        Param("heading", str, "section to write to; made at the end when it is not there"),
        Param("tags", list, "tags to add"),
        Param("date", str, 'day whose note to write to: a date or a phrase such as "yesterday"'),
        Param("supersedes", str, "id of a passage that is no longer true"),
        Param("force", bool, "write even if it is there already, or was forgotten"),
    ),
    _remember,
    shapes.REMEMBERED,
    _remember_text,
    writes=True,
)
FORGET = Call(
    "forget",
    "Forget",
    "Forget passages for good, named in one way: reference, query, session or before. Shows what would go and changes "
    "nothing, unless yes is true; only then, and with the user's consent, it is done.",
    (
        Param("reference", str, "a passage or note: its id, path or path:from-to"),
        Param("query", str, "every paragraph or list item that has all of these words"),
        Param("session", str, "a whole transcript, by its name"),
        Param("before", str, "all notes that are older than this day"),
        Param("from_files", bool, "also cut it out of the notes; a backup is kept"),
        Param("yes", bool, "do it; without, only show what would go"),
    ),
    _forget,
    shapes.RECEIPT,
    _forget_text,
    writes=True,
    destroys=True,
)
TIMELINE = Call(
    "timeline",
    "Walk through time",
    "Show what came before and after a passage or a day, over all sources; without either, the latest.",
    (
        Param("reference", str, REFERENCE.doc),
        Param("around", str, "a day, a month or a phrase as the middle, instead of a passage"),
        Param("window", int, "how many passages before and after", least=1, most=100),
        *PLACES,
    ),
    _timeline,
    shapes.TIMELINE,
    _timeline_text,
)

CALLS: Mapping[str, Call] = {c.name: c for c in (SEARCH, GET, WHY, TIMELINE, REMEMBER, FORGET, STATUS, PROFILES)}


def offered(*, read_only: bool) -> list[Call]:
    """The calls that are offered: all, or only those that change nothing."""
    return [c for c in CALLS.values() if not (read_only and c.writes)]
