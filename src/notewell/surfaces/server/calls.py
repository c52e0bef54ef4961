"""What a program may ask of a memory: MCP tools, HTTP routes and their schemas are all made from
these calls.

pydantic, which arrives with `mcp`, does not check the arguments: it would save few lines, its
errors would have to be put into these sentences again, and a query string and a JSON body convert
values by different rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from notewell.errors import NotewellError
from notewell.memory import Memory
from notewell.notes.whole_note import resolver_of
from notewell.search import profiles
from notewell.search.pipeline import Profile
from notewell.search.prompt_block import DEFAULT_BUDGET
from notewell.settings import ORIGINS
from notewell.surfaces import arguments, note_view, view
from notewell.surfaces.arguments import SOURCES, ArgumentError, short
from notewell.surfaces.server import markup, texts
from notewell.surfaces.server.texts import Answer
from notewell.surfaces.shapes import Shape
from notewell.types import Filters

_CLAUSE = re.compile(r"[:;,] ")
_FLAG = re.compile(r"--([a-z][a-z-]+)")
_KINDS: Mapping[type, tuple[str, str]] = {
    str: ("string", "a text"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
    bool: ("boolean", "true or false"),
    list: ("array", "a list of texts"),
}
_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MOST_ITEMS, _LONGEST_ITEM = 20, 200
_HUGE = 1e300  # an integer of JSON may be too large for a float
ADDRESS = 1_000  # a URL holds less than a body; a longer question goes by POST
Run = Callable[[Memory, Mapping[str, Any]], Answer]


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
            made |= {
                "items": {"type": "string", "maxLength": _LONGEST_ITEM},
                "maxItems": _MOST_ITEMS,
            }
        if self.least is not None:
            made["minimum"] = self.least
        if self.most is not None:
            made["maximum"] = self.most
        return made

    def outline(self) -> dict[str, Any]:
        """Its type and what it means in a few words; an error names the bounds and the rest."""
        made = {"type": _KINDS[self.kind][0], "description": _CLAUSE.split(self.doc)[0]}
        items = {"items": {"type": "string"}} if self.kind is list else {}
        return made | items | ({"enum": list(self.choices)} if self.choices else {})

    def read(self, value: Any) -> Any:
        """The value of a JSON object's member, checked."""
        if not self._fits(value):
            raise ArgumentError(
                f"{self.name} must be {_KINDS[self.kind][1]}, not {short(value)}", hint=self.doc
            )
        if self.kind in (int, float):
            value = self.kind(value)
        if problem := self._problem(value):
            raise ArgumentError(f"{self.name} {problem}", hint=self.doc)
        return value

    def parse(self, texts: Sequence[str]) -> Any:
        """The value of a query string's parameter, where everything is text."""
        if self.kind is list:
            return self.read(list(texts))
        text = texts[-1]
        if len(text) > ADDRESS:
            raise ArgumentError(
                f"{self.name} is longer than {ADDRESS:,} characters", hint="send it with POST"
            )
        if self.kind is bool:
            return self.read(_FLAGS.get(text.lower(), text))
        if self.kind in (int, float) and re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", text):
            return self.read(float(text) if "." in text else int(text))
        return self.read(text)

    def _fits(self, value: Any) -> bool:
        """Whether a value has the type of this argument; JSON does not tell 3 from 3.0."""
        if self.kind is list:
            return isinstance(value, list) and all(isinstance(one, str) for one in value)
        if self.kind in (int, float):
            number = (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and abs(value) < _HUGE
            )
            return number and (self.kind is float or float(value).is_integer())
        return isinstance(value, self.kind)

    def _problem(self, value: Any) -> str:
        """What is wrong with a value of the right type; empty when nothing is."""
        if self.choices:
            return (
                ""
                if value in self.choices
                else f"must be one of {', '.join(self.choices)}, not {short(value)}"
            )
        if isinstance(value, str):
            too_long = (
                f"is longer than {self.longest:,} characters" if len(value) > self.longest else ""
            )
            return too_long or ("is empty" if self.required and not value.strip() else "")
        if isinstance(value, list):
            fits = len(value) <= _MOST_ITEMS and all(len(one) <= _LONGEST_ITEM for one in value)
            return (
                "" if fits else f"takes at most {_MOST_ITEMS} texts of {_LONGEST_ITEM} characters"
            )
        least = -math.inf if self.least is None else self.least
        most = math.inf if self.most is None else self.most
        return (
            ""
            if least <= value <= most
            else f"must be from {least:g} to {most:g}, not {short(value)}"
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its arguments, what it does and the shape of its answer.

    `brief` names what agents are told, in few tokens: arguments, an arrow, and keys that an answer
    always has.
    """

    name: str
    title: str
    doc: str
    params: tuple[Param, ...]
    run: Run
    shape: Shape
    text: Callable[[Answer], str]
    writes: bool = False
    destroys: bool = False
    tool: bool = True
    brief: str = ""

    def outline(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The schemas that agents get of arguments and answer; what they do not list is still
        understood and sent.
        """
        names, _, keys = self.brief.partition(" -> ")
        params = [p for p in self.params if p.name in names.split()]
        needed = [p.name for p in params if p.required]
        made = {"type": "object", "properties": {p.name: p.outline() for p in params}}
        return made | ({"required": needed} if needed else {}), {
            "type": "object",
            "required": keys.split(),
        }

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {p.name: p.schema() for p in self.params},
            "required": [p.name for p in self.params if p.required],
            "additionalProperties": False,
        }

    def checked(
        self, given: Mapping[str, Any], read: Callable[[Param, Any], Any] = Param.read
    ) -> dict[str, Any]:
        """The arguments of a JSON object, or with `Param.parse` those of a query string."""
        known = {p.name: p for p in self.params}
        for name in given:
            if name not in known:
                raise ArgumentError(
                    f"{self.name} has no argument {name!r}", hint=f"it takes: {', '.join(known)}"
                )
        for p in self.params:
            if p.required and p.name not in given:
                raise ArgumentError(f"{self.name} needs {p.name}", hint=p.doc)
        return {name: read(known[name], value) for name, value in given.items()}


def hint(error: NotewellError) -> str:
    """The hint of an error, with argument names instead of command-line flags."""
    return _FLAG.sub(lambda m: m[1].replace("-", "_"), error.hint)


def _options(memory: Memory, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a search as `Memory.search` takes them."""
    filters, now = arguments.filters(given, arguments.local_now())
    rest = _among(given, "limit", "min_score", "budget_tokens", "include_superseded")
    if given.get("all") and given.get("min_score"):
        raise ArgumentError(
            "all and min_score both set the lowest confidence", hint="give only one of them"
        )
    least = {"min_score": 0.0} if given.get("all") else {}
    return {**rest, **least, "filters": filters, "now": now, "profile": _profile(memory, given)}


def _among(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _profile(memory: Memory, given: Mapping[str, Any]) -> str | Profile | None:
    """The named profile, with the fusion, stages and pool that replace its own."""
    changed = {k: given[k] for k in ("fusion", "stages", "pool") if given.get(k)}
    name: str | Profile | None = given.get("profile")
    if not changed or isinstance(name, Profile):
        return name
    return memory.searcher.profile(name, mixed=not given.get("source"), **changed)


QUERY = Param("query", str, "the question, in natural words", required=True, longest=20_000)
REFERENCE = Param(
    "reference",
    str,
    (
        "a passage or note: an id, a citation, a path with or without lines or a heading, "
        "or a note's name"
    ),
    required=True,
)
PLACES = (
    Param("path", str, "only this folder or glob"),
    Param("source", str, "only this source", choices=SOURCES),
    Param("origin", str, "only text from this origin", choices=ORIGINS),
)
FILTERS = (
    Param("since", str, 'only from this day on: a date, a month or a phrase such as "last week"'),
    Param("until", str, "only up to this day"),
    *PLACES,
    Param("as_of", str, "answer as of that day: ignore notes with a later date"),
    Param("include_superseded", bool, "also return older copies and superseded notes"),
)
SHAPING = (
    Param("limit", int, "how many hits", least=1, most=100),
    Param("profile", str, "named pipeline", choices=tuple(profiles.PROFILES)),
    Param("min_score", float, "lowest confidence of a hit", least=0, most=1),
    Param("all", bool, "also return hits that are almost surely wrong"),
    Param(
        "fusion",
        str,
        'fusion to use instead of the profile\'s, such as "weighted(vector=0.7, text=0.3)"',
    ),
    Param(
        "stages",
        list,
        'stages to use instead of the profile\'s, such as "decay(half_life_days=30)"',
    ),
    Param("pool", int, "how many candidates each leg brings", least=1, most=1_000),
)

CALLS: dict[str, Call] = {}


def adding_to(table: dict[str, Call]) -> Callable[..., Callable[[Run], Run]]:
    """What makes calls of functions and puts them into a table; a docstring is what programs read
    about its call.
    """

    def call(
        title: str,
        shape: Shape,
        text: Callable[[Answer], str],
        *params: Param,
        brief: str = "",
        **traits: bool,
    ) -> Callable[[Run], Run]:
        def add(run: Run) -> Run:
            name = run.__name__.lstrip("_")
            doc = " ".join((run.__doc__ or "").split())
            table[name] = Call(name, title, doc, params, run, shape, text, brief=brief, **traits)
            return run

        return add

    return call


_call = adding_to(CALLS)


@_call(
    "Search memory",
    view.FOUND,
    texts.search,
    QUERY,
    *SHAPING[:4],
    *FILTERS,
    Param(
        "budget_tokens",
        int,
        "stop before the passages exceed this many tokens",
        least=0,
        most=1_000_000,
    ),
    Param("format", str, "hits, or one prompt block of budget_tokens", choices=("hits", "context")),
    Param("explain", bool, "also return what every leg and stage did"),
    Param("render", bool, "also return each snippet as HTML, with the matches marked"),
    *SHAPING[4:],
    brief="query limit since until path source -> results notices",
)
def _search(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Find the passages of notes and transcripts that answer a question, with citation and
    confidence. Use it before you answer anything about earlier work, decisions, people or
    preferences.
    """
    asked, explain = _options(memory, given), given.get("explain", False)
    if given.get("format") == "context":
        budget = asked.pop("budget_tokens", 0) or DEFAULT_BUDGET
        return view.context(
            memory.context(given["query"], budget_tokens=budget, **asked), explain=explain
        )
    found = memory.search(given["query"], **asked)
    answer = view.found(found, explain=explain)
    if given.get("render"):
        for shown, hit in zip(answer["results"], found.hits, strict=True):
            resolve = resolver_of(memory.index, hit.chunk.path, markup.address)
            shown["pinned"] = hit.chunk.facts.pinned
            shown["html"] = markup.snippet_html(hit.snippet, found.query.text, resolve)
    return answer


@_call(
    "Read a note",
    view.TEXT,
    texts.get,
    REFERENCE,
    Param("from_line", int, "first line", least=1, most=10_000_000),
    Param("lines", int, "how many lines", least=1, most=100_000),
    brief="reference from_line lines -> path text",
)
def _get(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Read a passage or note by its id, citation, path, lines, heading or name."""
    text = memory.get(given["reference"])
    first, count = given.get("from_line"), given.get("lines")
    if first or count:
        start = first or text.start_line
        text = memory.get(f"{text.path}:{start}-{start + (count or 10_000_000) - 1}")
    return view.text(text)


@_call(
    "Explain a rank",
    view.WHY,
    texts.why,
    QUERY,
    REFERENCE,
    *SHAPING,
    *FILTERS,
    brief="query reference -> verdict story",
)
def _why(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Explain why a passage ranks where it does, or is missing."""
    return view.why(*memory.why(given["query"], given["reference"], **_options(memory, given)))


@_call(
    "Timeline",
    note_view.TIMELINE,
    texts.timeline,
    Param("reference", str, REFERENCE.doc),
    Param("around", str, "a day, a month or a phrase, instead of a passage"),
    Param("window", int, "how many before and after", least=1, most=100),
    *PLACES,
    brief="reference around window -> entries",
)
def _timeline(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Show what came before and after a passage or a day; without either, the latest passages."""
    around = arguments.days(given.get("around"), "around")
    filters = Filters(**_among(given, "path", "source", "origin"))
    rest = _among(given, "window")
    return note_view.timeline(
        *memory.timeline(given.get("reference", ""), around=around, filters=filters, **rest)
    )


@_call(
    "Remember",
    note_view.REMEMBERED,
    texts.remember,
    Param("text", str, "what to remember, as Markdown", required=True, longest=100_000),
    Param("file", str, "note to write to, such as memory/topic.md; default: the note of the day"),
    Param("heading", str, "section to write to; added at the end if it is missing"),
    Param("tags", list, "tags to add"),
    Param("date", str, 'day whose note to write to: a date or a phrase such as "yesterday"'),
    Param("supersedes", str, "id of a passage that it replaces"),
    Param("force", bool, "write it even if it is already there or was forgotten"),
    brief="text file heading tags supersedes -> id citation",
    writes=True,
)
def _remember(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Write a memory into today's note or a named one, unless it is there already. Use it for
    decisions, facts, preferences and lessons.
    """
    now = arguments.local_now()
    day = arguments.day(given.get("date"), "date", now)
    rest = _among(given, "file", "heading", "tags", "supersedes", "force")
    done = memory.remember(given["text"], day=day, now=now, **rest)
    doubts = memory.index.trust.notices if done.written else ()
    return note_view.remembered(replace(done, notices=(*done.notices, *doubts)))


@_call(
    "Forget",
    note_view.RECEIPT,
    texts.forget,
    Param("reference", str, REFERENCE.doc),
    Param("query", str, "all of these words, in one paragraph or list item"),
    Param("session", str, "a transcript, by its name"),
    Param("before", str, "all notes older than this day"),
    Param(
        "everywhere",
        bool,
        "forget the same text in all other notes too; otherwise only where it was named",
    ),
    Param("from_files", bool, "also remove it from the notes; a backup is kept"),
    Param("yes", bool, "forget it; otherwise only show what would go"),
    brief="reference query from_files yes -> receipt passages",
    writes=True,
    destroys=True,
)
def _forget(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """Forget passages for good, named by reference, query, session or before. Without yes it only
    shows them; pass yes only with the user's consent.
    """
    now = arguments.local_now()
    before = arguments.day(given.get("before"), "before", now)
    rest = _among(given, "query", "session", "everywhere", "from_files", "yes")
    return note_view.receipt(
        memory.forget(given.get("reference", ""), before=before, now=now, **rest)
    )


@_call("Index status", view.STATUS, texts.status, brief=" -> documents chunks notices")
def _status(memory: Memory, _given: Mapping[str, Any]) -> Answer:
    """Count notes and passages, and list what is not indexed."""
    return view.status(memory.status())


@_call(
    "Named pipelines",
    view.PROFILES,
    lambda answer: ", ".join(p["name"] for p in answer["profiles"]),
    tool=False,
)
def _profiles(_memory: Memory, _given: Mapping[str, Any]) -> Answer:
    """List the named pipelines, with fusion and stages as the arguments `fusion` and `stages` take
    them.
    """
    return view.profiles(profiles.PROFILES.values())


def offered(*, read_only: bool) -> list[Call]:
    """All calls, or only those that change nothing."""
    return [c for c in CALLS.values() if not (read_only and c.writes)]
