"""What an engine does for a caller: a search as the caller's own command line would print it, and
an agent's hook.
"""

from __future__ import annotations

import copy
import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from notewell.memory import Memory
from notewell.model_names import is_remote
from notewell.notes.notebook import Notebook
from notewell.surfaces.engine.attach import Answer
from notewell.surfaces.engine.thin import read
from notewell.surfaces.hooks.hosts import EVENTS, HOSTS

_TERMINALS = 3


class DeclinedError(Exception):
    """The caller should do this itself: the answer would differ, or it is an error, which the
    caller tells best.
    """


class _Stream(io.TextIOWrapper):
    """Text for a caller, as its own stream would encode it."""

    def __init__(self, *, encoding: str, errors: str, terminal: bool) -> None:
        self.bytes = io.BytesIO()
        self._terminal = terminal
        super().__init__(self.bytes, encoding=encoding, errors=errors, write_through=True)

    def isatty(self) -> bool:
        return self._terminal


class _Router:
    """Stands for stdout or stderr: what is written for a caller goes to that caller, all else where
    it always went.
    """

    def __init__(self, usual: Any) -> None:
        self._usual = usual
        self.of_caller: ContextVar[_Stream | None] = ContextVar("of_caller", default=None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_caller.get() or self._usual, name)


def route_streams() -> None:
    """Lets several threads print, each for its own caller; for a process that does nothing but
    answer.
    """
    for name in ("stdout", "stderr"):
        if not isinstance(getattr(sys, name), _Router):
            setattr(sys, name, _Router(getattr(sys, name)))


@contextmanager
def _printing(streams: Mapping[str, _Stream]) -> Iterator[None]:
    tokens = [
        (getattr(sys, name), getattr(sys, name).of_caller.set(stream))
        for name, stream in streams.items()
    ]
    try:
        yield
    finally:
        for router, token in tokens:
            router.of_caller.reset(token)


def search(memory: Memory, given: Mapping[str, Any]) -> Answer:
    """What `notewell search` prints for a command line."""
    from notewell.surfaces.cli.asking import has_question  # noqa: PLC0415
    from notewell.surfaces.cli.commands import cli  # noqa: PLC0415

    line = read(given["line"])
    if line is None or line.command != "search":
        raise DeclinedError("an engine answers searches, and no other command line")
    terminals, encodings = given["terminals"], given["encodings"]
    if None in encodings or len(terminals) != _TERMINALS:
        raise DeclinedError("a stream is closed")
    if all(terminals) and has_question(memory.root, memory.settings):
        raise DeclinedError("there is a question for the person")
    names = zip(("stdout", "stderr"), terminals[1:], encodings, strict=True)
    streams = {name: _Stream(encoding=e[0], errors=e[1], terminal=t) for name, t, e in names}
    colour = False if given.get("plain") else None
    with _printing(streams):
        try:
            with cli.make_context(
                "notewell", list(given["line"]), color=colour, obj=memory
            ) as context:
                cli.invoke(context)
        except (
            BaseException
        ) as error:  # of any kind: the caller meets it as well, and tells it in its own way
            raise DeclinedError(f"it failed: {type(error).__name__}") from error
    return Answer(streams["stdout"].bytes.getvalue(), streams["stderr"].bytes.getvalue())


def hook(memory: Memory, given: Mapping[str, Any], env: Mapping[str, str]) -> Answer:
    """What `notewell hook EVENT` prints."""
    from notewell.surfaces.hooks.loop import respond  # noqa: PLC0415

    event = next((one for one in EVENTS if one == given["event"]), None)
    host = HOSTS.get(given["host"])
    embed = memory.settings.embed
    if event is None or host is None or any(map(is_remote, (embed.model, *embed.chain))):
        raise DeclinedError("a hook waits less long for a model elsewhere than a search")
    budget = float(given["budget"]) if given.get("budget") else None
    # the caller has found it, perhaps from its own folder and by its own variable
    root = str(memory.root)
    try:
        found = respond(
            event,
            host,
            given["sent"].encode("utf-8"),
            env,
            workspace=root,
            sync_s=budget,
            warm=memory,
        )
    except Exception as error:
        raise DeclinedError(f"it failed: {type(error).__name__}") from error
    return Answer(json.dumps(found).encode() + b"\n" if found else b"", b"")


def seen_from(memory: Memory, cwd: str) -> Memory:
    """The same memory for a client that works in another folder, from which its paths start."""
    view = copy.copy(memory)
    view.notebook = Notebook(memory.index, memory.searcher)
    view.notebook.cwd = Path(cwd)
    return view
