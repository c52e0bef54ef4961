"""What takes text or values from outside, each as one call that must not crash, hang or confuse
SQL.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import tomlkit

from notewell import settings as settings_
from notewell.compare import judge, reading
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import NotewellError, SettingsError
from notewell.index.documents import chunks_of, facts_of
from notewell.memory import Memory
from notewell.opener import inside
from notewell.search import spec
from notewell.search.evidence import ask
from notewell.settings import Settings
from notewell.sources.ignore_rules import MOST_COST, _patterns
from notewell.sources.imports.archive import values_of
from notewell.sources.imports.basic_memory import read_markdown
from notewell.sources.imports.formats import JSON_FORMATS
from notewell.sources.imports.html_page import read_html
from notewell.sources.imports.rendering import note_of
from notewell.sources.sessions.growing_file import parsed as _parsed
from notewell.store.rows import path_matcher
from notewell.store.sqlite.store import SqliteStore
from notewell.surfaces.arguments import ArgumentError
from notewell.surfaces.hooks.journal import shortened
from notewell.surfaces.hooks.recall import asked
from notewell.surfaces.install import json5
from notewell.surfaces.server.calls import CALLS, Param
from notewell.surfaces.server.markup import address, note_html, snippet_html, turns_html
from notewell.surfaces.server.page_calls import PAGE_CALLS
from notewell.text import dates, link_syntax, note_edit
from notewell.text.chunk import ChunkSize
from notewell.text.fence import boundary, label, named, neutral, quoted
from notewell.text.forgotten import Forgotten, tombstones, units
from notewell.text.kept_turns import load
from notewell.text.markdown import list_items, parse, split_lines
from notewell.text.periods import time_asked
from notewell.text.redact import Redactor
from notewell.text.reference_syntax import parse_reference
from notewell.text.small_talk import says_something
from notewell.text.snippet import snippet
from notewell.text.spoken import of_agent, of_user
from notewell.text.transcript import TranscriptReader, readable
from notewell.text.words import clean, count_tokens, index_terms, places, query_terms
from notewell.types import Document, Filters, Turn
from tests.store.made import put_document

PIECES = (
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\0",
    "\ufeff",
    "\u2028",
    "\u202e",
    "\u200d",
    "\x85",
    "\x1b[2J",
    "\ud800",
    '"',
    '""',
    "'",
    "*",
    "^",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "+",
    "-",
    ":",
    ".",
    ",",
    "|",
    "\\",
    "/",
    "//",
    "/*",
    "*/",
    "AND",
    "OR",
    "NOT",
    "NEAR(",
    "NEAR/3",
    "head:",
    "{head body} :",
    "body : ",
    "exact",
    "terms MATCH",
    "; DROP TABLE",
    "#",
    "## ",
    "- ",
    "1. ",
    "> ",
    "```",
    "~~~",
    "---",
    "===",
    "| a | b |",
    "[[",
    "]]",
    "[a](b.md#c)",
    "![",
    "<!--",
    "-->",
    "<private>",
    "</private>",
    "<memory",
    "<|im_start|>",
    "---\ntitle: x\n---\n",
    "supersedes: [a, b]",
    "a.md",
    "true",
    "null",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "0x",
    "9" * 30,
    "\\u00",
    "\\x",
    "2026-02-30",
    "2026-W99",
    "last week",
    "in 999999999 days",
    "yesterday",
    "next monday",
    "Q5 2026",
    "31.02.",
    "0000-00-00",
    "T25:61",
    "vor 3",
    "sk-" + "a" * 40,
    "AKIA" + "A" * 16,
    "password=",
    "Bearer ",
    "-----BEGIN PRIVATE KEY-----",
    "token: ",
    "://u:p@h",
    "GitHub备份脚本",
    "日本語のテキスト",
    "안녕하세요",
    "ภาษาไทย",
    "العربية",
    "Straße",
    "naïve",
    "é",
    "ﬁ",
    "İ",
    "ß",
    "👩‍👩‍👧",
    "e\u0301" * 5,
    "word",
    "CamelCaseName",
    "snake_case_name",
    "a" * 300,
    "v1.2.3",
    "error[E0308]",
    "C++",
    "@user",
    "$",
    "decay(half_life_days=30)",
    "weighted(vector=0.7",
    "mmr(",
    "rrf()",
    "lambda: 0",
    "__import__('os')",
    "<system-reminder>",
    "</system-reminder>",
    "<command-args>",
    "</command-args>",
    "<bash-stdout>",
    "[WhatsApp ",
    "[message_id: ",
    "HEARTBEAT_OK",
    "[[reply_to_current]]",
    "data:image/png;base64,",
    "![a](data:image/png;base64,",
    "Conversation info (untrusted metadata):\n",
    "```json\n",
    "System: [",
    "[cron:",
    "/compact",
    "[2026-02-10 08:00]",
)
NOW = dt.datetime(2026, 11, 15, 12)  # noqa: DTZ001 - a day of this place
EDGES = (NOW, dt.datetime.min, dt.datetime.max)  # noqa: DTZ901


def text(chance: Random, most: int = 12) -> str:
    """A hostile text: pieces that mean something to some parser, and characters from anywhere."""
    parts: list[str] = []
    for _ in range(chance.randrange(most + 1)):
        kind = chance.random()
        if kind < 0.8:
            parts.append(chance.choice(PIECES))
        elif kind < 0.9:
            parts.append(chr(chance.randrange(0x250)))
        else:
            parts.append(chr(chance.randrange(0x110000)))
        if chance.random() < 0.05:
            parts.append(parts[-1] * chance.randrange(200))
    return "".join(parts)


def value(chance: Random, depth: int = 3) -> Any:
    """A JSON value with the keys that our formats know."""
    kind = chance.randrange(9 if depth else 6)
    if kind == 0:
        return chance.choice([None, True, False])
    if kind == 1:
        return chance.choice([0, -1, 1, 7, 2**70, -(2**63), 0.5, float("inf"), float("nan"), 1e308])
    if kind < 6:
        return text(chance, 4)
    if kind == 6:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): value(chance, depth - 1) for _ in range(chance.randrange(6))}


KEYS = (
    "type",
    "message",
    "role",
    "content",
    "text",
    "payload",
    "timestamp",
    "cwd",
    "summary",
    "id",
    "uuid",
    "$set",
    "$rewindTo",
    "messages",
    "projectHash",
    "customTitle",
    "isMeta",
    "isSidechain",
    "kind",
    "input",
    "output",
    "parts",
    "tool_use",
    "query",
    "reference",
    "limit",
    "since",
    "until",
    "path",
    "source",
    "origin",
    "profile",
    "fusion",
    "stages",
    "pool",
    "min_score",
    "explain",
    "budget_tokens",
    "from_line",
    "lines",
    "",
)
KINDS = (
    "user",
    "assistant",
    "message",
    "session",
    "compaction",
    "summary",
    "gemini",
    "response_item",
    "event_msg",
    "human",
)


PARTS = ("text", "input_text", "output_text", "thinking", "tool_use", "tool_result", "image")


def record(chance: Random) -> Any:
    """A record as some program writes it, with hostile text, and often a hostile value in the place
    of another.
    """
    role = chance.choice(("user", "assistant", "human", "ai", "model", "system", "tool"))
    parts = [
        {"type": chance.choice(PARTS), "text": text(chance, 6)} for _ in range(chance.randrange(4))
    ]
    message = {
        "role": role,
        "content": chance.choice([text(chance), parts, value(chance, 2)]),
        "id": "a",
    }
    made: dict[str, Any] = {
        "type": chance.choice(KINDS),
        "timestamp": chance.choice(["2026-03-20T08:00:00Z", 1e12, text(chance, 2)]),
        "cwd": "/home/a",
        "id": text(chance, 1),
        **chance.choice([message, {"message": message}]),
        "payload": {"type": "message", **message},
    }
    for key in chance.sample(sorted(made), chance.randrange(3)):
        made[key] = value(chance, 2)
    if chance.random() < 0.3:
        made[chance.choice(KEYS)] = value(chance)
    return made if chance.random() < 0.9 else value(chance)


@cache
def memory() -> Memory:
    """A small memory without a file, with its notes in a folder of its own."""
    root = Path(tempfile.mkdtemp(prefix="notewell-fuzz-"))
    (root / "memory").mkdir()
    for n in range(20):
        (root / f"memory/2026-02-{n + 1:02}.md").write_text(
            f"# Day {n}\n\nThe port is {n}. [[a]] word CamelCaseName\n"
        )
    made = Memory(root, Settings(), SqliteStore(None), embedder=HashedEmbedder(), env={})
    made.sync()
    return made


def words(s: str) -> None:
    store = memory().store
    s = clean(s)
    asked = ask(s, store.keywords.term_counts)
    for sought in (asked.sought, asked.sought_whole):
        store.keywords.lexical(sought, 5, Filters())
    body, exact = index_terms(s)
    assert "\0" not in body + exact
    for a, b in places(s):
        assert 0 <= a < b <= len(s)
    count_tokens(s), query_terms(s), time_asked(s, NOW), snippet(s, s[:50])


def stored(s: str) -> None:
    """Whatever a note says can be stored, found by its own words and taken out again."""
    store = memory().store
    parsed = parse(clean(s))
    document = Document("memory/fuzz.md", "memory", 1, 1, "")
    facts = facts_of(document, parsed)
    with store.writing():
        put_document(
            store, document, "d", facts, chunks_of(document, parsed, facts, ChunkSize(40, 8))
        )
        store.history.put_edges(document.path, link_syntax.edges_of(document.path, parsed))
        store.documents.drop([document.path])


def markdown(s: str) -> None:
    parsed = parse(clean(s))
    lines = split_lines(clean(s))
    for block in parsed.blocks:
        assert 1 <= block.start_line <= block.end_line <= max(1, len(lines))
        list_items(parsed.lines, block) if block.kind == "list" else None
    (
        link_syntax.edges_of("memory/a.md", parsed),
        link_syntax.place_of(s[:200]),
        link_syntax.link_key(s[:200]),
    )
    neutral(s), label(s), named(s), quoted(s), boundary([s])


def entries(s: str) -> None:
    half = len(s) // 2
    note, said = s[:half], note_edit.tidy(s[half:])
    if said:
        made = note_edit.insertion(note, said, heading=s[:10].strip())
        new = note[: made.offset] + made.text + note[made.offset :]
        assert len(new) >= len(note)
        assert 1 <= made.start_line <= made.end_line
    stones = tuple(tombstones(s[half:], "a.md", everywhere=len(s) % 2 == 0))
    less, _ = Forgotten(stones).without(s, "a.md")
    assert len(split_lines(less)) == len(split_lines(s)), "lines stay where they are"
    list(units(s)), note_edit.cut(s, 1, 1)
    judge.judge(reading.read(s[:half]), reading.read(s[half:]))


def transcript(v: Any) -> None:
    reader = TranscriptReader()
    reader.feed(v, 1)
    for n in range(3):
        reader.feed({**v, "type": KINDS[n]} if isinstance(v, dict) else v, n + 1)
        reader.feed({"type": KINDS[-n], "message": v, "payload": v}, n + 1)
    reader.feed_json(v, json.dumps(v))
    assert all(isinstance(t.text, str) for t in reader.turns)
    readable(reader.turns)


def wrapped(s: str) -> None:
    load(s), of_user(s), of_agent(s), _parsed(s.encode("utf-8", "replace"))


REDACT = Redactor()


def redact(s: str) -> None:
    once = REDACT(s)
    assert once.text.count("\n") == s.count("\n")
    assert REDACT(once.text).text == once.text


def prompted(s: str) -> None:
    says_something(s)
    assert len(asked(s)) <= max(len(s), 1300)
    assert "\n" not in shortened(s)


def jsons(s: str) -> None:
    for whole in (s, "{" + s + "}", '{"a": "' + s, "[" * 50 + s):
        try:
            json5.tree(whole)
        except ValueError:
            continue
        try:
            assert json5.loads(json5.with_member(whole, ["a", "b"], 1))["a"]["b"] == 1
            json5.without_member(whole, ["a"])
            assert json5.value(json5.with_item(whole, ["c", "d"], 1), ["c", "d"])[-1] == 1
            json5.without_items(whole, ["c", "d"], bool)
        except (ValueError, TypeError, KeyError):
            pass


def setting(s: str, key: str) -> None:
    root = memory().root
    place = root / settings_.WORKSPACE_FILE
    for raw in (
        s,
        f"{key} = {s}",
        f'"{key}" = {json.dumps(s)}',
        tomlkit.dumps({key: s.replace(chr(0), "")[:50]}),
    ):
        place.write_bytes(raw.encode("utf-8", "replace"))
        try:
            settings_.load(root, env={"HOME": str(root), "XDG_CONFIG_HOME": str(root)})
        except SettingsError as error:
            assert str(error)  # noqa: PT017 - most are taken
    place.unlink()
    with contextlib.suppress(SettingsError):
        settings_.load(
            root, env={"XDG_CONFIG_HOME": str(root), settings_.env_name(key): s}, flags={key: s}
        )


def brought(v: Any) -> None:
    for kind in JSON_FORMATS:
        for item in kind.read(
            [v, {"mapping": {"a": {"message": v}}}, {"chat_messages": [v]}, {"agents": [v]}]
        ):
            note_of(item, kind.name).encode("utf-8")


def pages(s: str) -> None:
    data = s.encode("utf-8", "replace")
    read_html(data, "")
    with contextlib.suppress(ValueError):
        read_markdown(data, "")
    for text in (s, f"[{s}", f'[{{"a": "{s}'):
        with contextlib.suppress(ValueError):
            list(values_of(io.BytesIO(text.encode("utf-8", "replace")).read))


def markup(s: str) -> None:
    note_html(s, address)
    turns_html([Turn(1, s, s)], address)
    assert "<script" not in snippet_html(s, s[:40], address)


def days(s: str) -> None:
    for now in EDGES:
        dates.parse_day(s, now), dates.parse_day(s, now, end=True)
        for span in dates.spans_in(s, now):
            assert span.start <= span.end
    dates.date_of_path(s), dates.date_of_value(s)


EVERY_CALL = CALLS | PAGE_CALLS
USUAL = dict.fromkeys(("reference", "path", "ref"), "memory/2026-02-01.md") | {
    "query": "port",
    "action": "pin",
}


def arguments(name: str, v: Any) -> None:
    call = EVERY_CALL[name]
    given: Mapping[str, Any] = v if isinstance(v, dict) else {"query": v, "reference": v}
    known = {p.name for p in call.params}
    try:
        call.checked(given)
    except ArgumentError as error:
        assert error.hint  # noqa: PT017 - some are taken
    given = {k: one for k, one in given.items() if k in known}
    try:
        checked = call.checked({**{k: one for k, one in USUAL.items() if k in known}, **given})
        answer = call.run(memory(), {k: one for k, one in checked.items() if k in known})
        json.dumps(answer)
        call.text(answer)
    except NotewellError:
        pass
    with contextlib.suppress(ArgumentError):
        call.checked({str(k): [str(one)] for k, one in given.items()}, Param.parse)


def references(s: str) -> None:
    reference = parse_reference(s)
    assert all(end.name for end in reference.readings)
    for ask_for in (memory().get, memory().forget, memory().trace, memory().timeline):
        with contextlib.suppress(NotewellError):
            ask_for(s)


_BEGINNINGS = (
    "",
    "",
    "memory/2026-02-01.md",
    "./memory/",
    "memory://",
    "[[2026-02-01",
    "/",
    "[x](",
    "..\\",
)
_MIDDLES = ("", ":", "#", "#L", "-", "#^", "%00", "|", "]]")


def _reference(chance: Random) -> tuple[Any, ...]:
    numbers = chance.choice(("", "3", "0", "9" * chance.choice([3, 17, 40, 3000]), "3-9", "9-3"))
    long = chance.choice(("", "", "", "[" * 5_000, "#" * 3_000, "../" * 1_300, "/a" * 2_000, "\0"))
    return (
        chance.choice(_BEGINNINGS) + long + chance.choice(_MIDDLES) + numbers + text(chance, 3),
    )


def globs(s: str) -> None:
    path_matcher(s)("memory/2026-02-01.md"), path_matcher(s)("a" * 200)


def stages(s: str) -> None:
    for read in (spec.fusion, lambda t: spec.stages([t])):
        try:
            read(s)
        except NotewellError:
            continue


def searching(s: str) -> None:
    found = memory().search(s, sync=False, now=NOW)
    assert found.query.text == clean(s)[:20_000]


_GLOB_PARTS = (
    *"ab*?[]!-\\/ #^:.é\r\n",
    "**",
    "**/",
    "/**/",
    "[a-z]",
    "[!",
    "[[:alpha:]]",
    "*a" * 20,
    "?" * 50,
    ".md",
)
_GLOB_NAMES = (
    "a",
    "b.md",
    "a/b",
    "a" * 255,
    "a/" * 60 + "b.md",
    "é/" * 20 + "[",
    "ab/" * 20 + "a" * 200,
)


def _globs(chance: Random) -> tuple[Any, ...]:
    made = "".join(chance.choice(_GLOB_PARTS) for _ in range(chance.randint(1, 60)))
    return (made if chance.random() < 0.8 else text(chance, 12),)


def ignoring(s: str) -> None:
    rules, cost, odd = _patterns(s.encode("utf-8", "replace"), MOST_COST)
    assert cost <= MOST_COST
    assert all(reason for _, reason in odd)
    for name in _GLOB_NAMES:
        for folder in (True, False):
            rules.decides(name.split("/"), folder=folder)


def opening(s: str) -> None:
    root = memory().root
    for name in (s, f"memory/{s}", f"../{s}"):
        with contextlib.suppress(OSError, ValueError):
            inside(root).read(root / name, most=10_000)
            found = os.path.realpath(root / name)
            assert found.startswith(str(root)), found


@dataclass(frozen=True)
class Target:
    """What is called with hostile input, and how much of the campaign is its share."""

    make: Callable[[Random], tuple[Any, ...]]
    call: Callable[..., None]
    share: float = 1.0


def _texts(chance: Random) -> tuple[Any, ...]:
    return (text(chance, chance.choice([3, 12, 40])),)


TARGETS: dict[str, Target] = {
    "query builder": Target(_texts, words, 0.7),
    "whole search": Target(_texts, searching, 0.2),
    "storing": Target(_texts, stored, 0.2),
    "markdown": Target(_texts, markdown, 1.5),
    "notes as HTML": Target(_texts, markup, 0.5),
    "entries and forgetting": Target(_texts, entries, 0.5),
    "transcript records": Target(lambda c: (record(c),), transcript, 1.5),
    "transcript turns": Target(_texts, wrapped, 1.5),
    "values of exports": Target(lambda c: (record(c),), brought, 0.5),
    "pages and JSON": Target(_texts, pages, 0.5),
    "redaction": Target(_texts, redact, 1.0),
    "json5": Target(lambda c: (text(c),), jsons, 1.0),
    "settings": Target(lambda c: (text(c, 6), c.choice(sorted(settings_.FIELDS))), setting, 0.3),
    "prompts of hooks": Target(_texts, prompted, 0.7),
    "dates": Target(_texts, days, 0.5),
    "arguments of calls": Target(
        lambda c: (c.choice(sorted(EVERY_CALL)), value(c, 2)), arguments, 0.5
    ),
    "references": Target(_reference, references, 0.1),
    "path filters": Target(lambda c: (text(c, 30),), globs, 1.0),
    "ignore lines": Target(_globs, ignoring, 1.0),
    "opener": Target(lambda c: (text(c, 4),), opening, 0.5),
    "stages": Target(lambda c: (text(c, 6),), stages, 1.0),
}
