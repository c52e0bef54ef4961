"""What a command does before anything is loaded: it reads its line, and lets an engine answer if
one runs.

Only what is understood beyond doubt goes to an engine; everything else is done here, as if there
were none.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from notewell.model_names import depends_on_folder
from notewell.store.nearest import find_workspace, noted_workspace
from notewell.surfaces.engine.place import Place, name_of, runtime

if TYPE_CHECKING:
    from notewell.surfaces.hooks.deadline import Sent

# The commands and the options of a search; `tests/surfaces/engine/test_thin.py` compares them with
# the real ones.
COMMANDS = frozenset(
    (
        "search",
        "get",
        "why",
        "timeline",
        "trace",
        "remember",
        "forget",
        "link",
        "import",
        "index",
        "sources",
        "watch",
        "status",
        "doctor",
        "migrate",
        "install",
        "hook",
        "mcp",
        "serve",
        "engine",
        "init",
        "config",
        "eval",
        "demo",
    )
)
OPENING = {
    "-w": "workspace",
    "--workspace": "workspace",
    "--index": "index",
    "--setting": "setting",
    "--model": "model",
}
SEARCHING = frozenset(
    (
        "-k",
        "--limit",
        "--since",
        "--until",
        "--path",
        "--source",
        "--origin",
        "--profile",
        "--min-score",
        "--budget-tokens",
        "--as-of",
        "--now",
        "--format",
    )
)
SEARCH_FLAGS = frozenset(["--json", "--all", "--include-superseded", "--no-sync", "--explain"])
MCP_FLAGS = {"--read-only": "read_only", "--expert": "expert"}
HOOK_OPTIONS = {
    "-w": "workspace",
    "--workspace": "workspace",
    "--host": "host",
    "--budget": "budget",
}
_NO = ("0", "false", "no", "off")
_SOON_S = 0.2  # in which a host has written what it says


class Asked(NamedTuple):
    """A command that an engine can answer: the call, the place of the engine, and how one is
    started.
    """

    call: str
    place: Place
    root: str
    options: tuple[str, ...] = ()
    given: Mapping[str, Any] = {}
    sent: Sent | None = None  # what a hook reads from stdin


class Line(NamedTuple):
    """A command line, read: the command, its words, the options that open a workspace, and the
    flags.
    """

    command: str
    words: list[str]
    opening: list[tuple[str, str]]
    flags: set[str]


def asked(arguments: Sequence[str], env: Mapping[str, str]) -> Asked | None:
    """What an engine may be asked for this command line; None if it must be done here."""
    if env.get("NOTEWELL_ENGINE_ENABLED", "").lower() in _NO or "_NOTEWELL_COMPLETE" in env:
        return None
    if arguments[:1] == ["hook"]:
        return _hook(arguments[1:], env)
    line = read(arguments)
    return _opened(line, arguments, env) if line else None


def _opened(line: Line, arguments: Sequence[str], env: Mapping[str, str]) -> Asked | None:
    """A search or `mcp`, with the workspace that it opens."""
    last = dict(line.opening)
    try:
        root = os.path.realpath(last.get("workspace") or find_workspace(Path.cwd(), env))
        cwd = os.getcwd()
    except OSError:  # the current folder was deleted
        return None
    settings = [value for name, value in line.opening if name == "setting"]
    options = options_of(settings, last.get("index"), last.get("model"))
    place = place_of(root, options, env)
    if place is None:
        return None
    if line.command == "mcp":
        given: dict[str, Any] = {name: flag in line.flags for flag, name in MCP_FLAGS.items()}
        return Asked("mcp", place, root, options, {**given, "cwd": cwd})
    plain = bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
    return Asked("search", place, root, options, {"line": list(arguments), "plain": plain})


def options_of(settings: Sequence[str], index: str | None, model: str | None) -> tuple[str, ...]:
    """The options that open a workspace, always in the same order, as they name an engine and start
    one.
    """
    return (
        *(part for one in settings for part in ("--setting", one)),
        *(("--index", index) if index is not None else ()),
        *(("--model", model) if model else ()),
    )


def place_of(root: str, options: Sequence[str], env: Mapping[str, str]) -> Place | None:
    """The place of the engine for a workspace that is opened with these options; None if there can
    be none.
    """
    folder = runtime(env).folder if os.path.isdir(root) else None
    return Place(folder, name_of(root, options, env)) if folder else None


def read(arguments: Sequence[str]) -> Line | None:
    """A command line of a search or of `mcp`; None for any other, and for what is not certain."""
    words: list[str] = []
    opening: list[tuple[str, str]] = []
    flags: set[str] = set()
    rest = list(arguments)
    while rest:
        one = rest.pop(0)
        if not one.startswith("-"):
            words.append(one)
            continue
        name, mark, value = (
            one.partition("=") if one.startswith("--") else (one[:2], one[2:], one[2:])
        )
        if name in OPENING or name in SEARCHING:
            if not mark:
                if not rest:
                    return None
                value = rest.pop(0)
            if name in OPENING:
                opening.append((OPENING[name], value))
            flags.add(name)
        elif not mark and (name in SEARCH_FLAGS or name in MCP_FLAGS):
            flags.add(name)
        else:
            return None
    if not words or not all(_is_plain(name, value) for name, value in opening):
        return None
    command = words.pop(0) if words[0] in COMMANDS else "search"
    return Line(command, words, opening, flags) if _fits(command, words, flags) else None


def _fits(command: str, words: Sequence[str], flags: set[str]) -> bool:
    if command == "mcp":
        return not words and flags <= {*OPENING, *MCP_FLAGS, "--json"}
    return command == "search" and bool(words) and not flags & {*MCP_FLAGS}


def _is_plain(name: str, value: str) -> bool:
    """Whether an option means the same wherever the engine runs, and says nothing about engines."""
    if name == "setting":
        key, mark, given = (part.strip() for part in value.partition("="))
        return (
            bool(mark)
            and not key.startswith("engine.")
            and not (key == "embed.model" and depends_on_folder(given))
        )
    if name == "index":
        return "://" in value or os.path.isabs(value)
    return bool(value) and not (name == "model" and depends_on_folder(value))


def _hook(arguments: Sequence[str], env: Mapping[str, str]) -> Asked | None:
    from notewell.surfaces.hooks.hosts import EVENTS, HOSTS  # noqa: PLC0415

    given = {"host": "claude-code", "workspace": "", "budget": ""}
    rest, words = list(arguments), []
    while rest:
        name, mark, value = rest.pop(0).partition("=")
        if not name.startswith("-"):
            words.append(name + mark + value)
        elif name not in HOOK_OPTIONS or not (mark or rest):
            return None
        else:
            given[HOOK_OPTIONS[name]] = value if mark else rest.pop(0)
    if len(words) != 1 or words[0] not in EVENTS or given["host"] not in HOSTS:
        return None
    if sys.stdin is None or sys.stdin.isatty():
        return None
    from notewell.surfaces.hooks.deadline import Sent, user_deadline  # noqa: PLC0415

    read = Sent()
    sent = read.within(_SOON_S)
    # the settings with the deadline take as long to load as a whole answer of an engine
    if sent is None:
        sent = read.within(user_deadline(env))
    if sent is None:
        return Asked("", Place("", ""), "", sent=read)
    try:
        import json  # noqa: PLC0415

        told = json.loads(sent or b"{}")
        float(given["budget"] or 0)
        folder = HOSTS[given["host"]].folder_of(told)
        root = noted_workspace(given["workspace"], folder, env)
        place = place_of(os.path.realpath(root), (), env) if root else None
        text = sent.decode("utf-8")
    except (ValueError, AttributeError, OSError, RecursionError):
        place, root, text = None, None, ""
    if place is None or root is None:
        return Asked("", Place("", ""), "", sent=read)  # nobody to ask, but stdin is read
    call = {"event": words[0], "sent": text, "spent_s": read.spent_s(), **given}
    return Asked("hook", place, os.path.realpath(root), (), call, read)


def answer(one: Asked) -> tuple[int | None, bool]:
    """The exit code, once an engine has answered, or None; and whether an engine may be started for
    the next time.
    """
    from notewell.surfaces.engine.attach import NoAnswerError, ask  # noqa: PLC0415

    if not one.call:
        return None, False
    if one.call == "mcp":
        from notewell.surfaces.engine.pipe import pipe  # noqa: PLC0415

        return pipe(one), False
    try:
        found = ask(
            one.place, one.call, **one.given, **(_streams() if one.call == "search" else {})
        )
    except NoAnswerError as error:
        return None, error.start
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130, False
    try:
        for stream, data in ((sys.stderr, found.err), (sys.stdout, found.out)):
            if data:
                stream.buffer.write(data)
                stream.flush()
    except BrokenPipeError:  # nobody reads the rest
        from notewell.surfaces.cli.ending import reader_left  # noqa: PLC0415

        reader_left()
    return 0, False


def _streams() -> dict[str, Any]:
    """How this process's streams write text, so that the engine writes the same bytes."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "terminals": [stream is not None and stream.isatty() for stream in streams],
        "encodings": [[s.encoding, s.errors] if s is not None else None for s in streams[1:]],
    }


def start_later(one: Asked) -> None:
    """Starts an engine for the next command, if there is an index; what goes wrong is nobody's
    business now.
    """
    from notewell.surfaces.engine.launch import launch  # noqa: PLC0415

    with contextlib.suppress(Exception):
        launch(one.root, one.options, os.environ, indexed=True)
