"""The loop of a session: a brief at its start, recall at each prompt, and keeping at its ends."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notewell.launcher import NOTEWELL, absolute, detached
from notewell.store.nearest import noted_workspace
from notewell.surfaces.hooks.hosts import Event, Host, Reply

if TYPE_CHECKING:
    from notewell.memory import Memory
    from notewell.settings import Settings
    from notewell.surfaces.hooks.journal import Journal
    from notewell.types import Notice

_KEEP_EVERY_S = 60.0  # a host may stop after every sentence
_LOST = ("compact", "clear")  # why a session begins again without what it was given


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a hook: what the host sent, the workspace, and how long its changed notes may be
    read.
    """

    host: Host
    given: Mapping[str, Any]
    root: Path
    env: Mapping[str, str]
    sync_s: float | None = None
    warm: Memory | None = None  # of an engine, which also keeps what is new
    start: bool = False

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.host.session_of(self.given)


def respond(
    event: Event,
    host: Host,
    sent: bytes,
    env: Mapping[str, str],
    *,
    workspace: str = "",
    sync_s: float | None = None,
    warm: Memory | None = None,
    start: bool = False,
) -> dict[str, Any]:
    """What the host gets for an event; nothing where there are no notes, and nothing to say.

    `warm` is the memory of the workspace, where an engine answers; `start` says whether one may be
    started.
    """
    given = json.loads(sent or b"{}")
    if not isinstance(given, dict):
        raise ValueError(f"the host sent {type(given).__name__} and not an object")
    if event == "prompt" and not _says_something(given):
        return {}
    root = noted_workspace(workspace, host.folder_of(given), env)
    if root is None:
        return {}
    call = Call(host, given, root, env, sync_s, warm, start)
    if event == "prompt":
        return host.answer(event, _prompt(call))
    journal = _journal(env)
    if event == "session-start":
        if given.get("source") in _LOST:
            journal.forget(call.session)
        journal.sweep()
        reply = _start(call)
        prepare(call, every_s=0.0)
        return host.answer(event, reply)
    if event == "compact":
        journal.forget(call.session)
    keep_later(call, every_s=_KEEP_EVERY_S if event == "stop" else 0.0)
    return {}


def _journal(env: Mapping[str, str]) -> Journal:
    from notewell.surfaces.hooks.journal import Journal  # noqa: PLC0415 - small talk must cost nothing

    return Journal(env)


def _says_something(given: Mapping[str, Any]) -> bool:
    from notewell.text.small_talk import says_something  # noqa: PLC0415

    prompt = given.get("prompt")
    return isinstance(prompt, str) and says_something(prompt)


def _prompt(call: Call) -> Reply:
    from notewell.surfaces.hooks.recall import asked, passages, recall  # noqa: PLC0415

    settings = _bounded(call)
    if not settings.hook.tokens:
        return Reply()
    prompt, journal = str(call.given["prompt"]), _journal(call.env)
    given, useless = journal.seen(call.session), journal.useless_for(prompt)
    with _opened(call, settings) as memory:
        sync = call.warm is None
        block, hits = recall(memory, prompt, settings.hook, given=given, useless=useless, sync=sync)
        behind = block.found is not None and (block.found.stale or _unembedded(block.found.notices))
        sure = memory.index.walk.knows_whose
    prepare(call, every_s=_KEEP_EVERY_S, behind=behind)
    if not block.passages or not sure:
        return Reply()
    journal.saw(call.session, (h.chunk.content_hash for h in hits))
    journal.add(
        host=call.host.name,
        workspace=call.root,
        prompt=asked(prompt),
        tokens=block.tokens,
        passages=passages(hits),
        now=dt.datetime.now(dt.UTC),
    )
    return Reply(block.text, _receipt(len({p.chunk.path for p in block.passages}), block.tokens))


def _unembedded(notices: Sequence[Notice]) -> bool:
    return any(notice.code in ("vectors_pending", "sync_cut") for notice in notices)


@contextlib.contextmanager
def _opened(call: Call, settings: Settings) -> Iterator[Memory]:
    """The memory of the workspace; one that is warm has read what is new within the time that a
    hook has for it.
    """
    if call.warm is not None:
        call.warm.index.refresh(within_s=settings.search.scan_s)
        yield call.warm
        return
    from notewell.memory import Memory  # noqa: PLC0415

    with Memory.open(call.root, settings=settings, env=call.env) as memory:
        yield memory


def _bounded(call: Call) -> Settings:
    """Settings for a process that somebody waits for: what is new is read for a moment, and
    embedded later.
    """
    from notewell.settings import changed, load  # noqa: PLC0415

    own = load(call.root, env=call.env)
    sync_s = own.hook.sync_s if call.sync_s is None else call.sync_s
    # so that keywords answer if the model is late
    wait_s = min(own.embed.deadline_s, own.hook.deadline_s / 2)
    return changed(
        own, {"search.scan_s": sync_s, "embed.budget_s": 0.0, "embed.deadline_s": wait_s}
    )


def _start(call: Call) -> Reply:
    from notewell.surfaces.hooks.brief import brief  # noqa: PLC0415
    from notewell.text.words import counted  # noqa: PLC0415

    settings = _bounded(call)
    if not settings.hook.brief_tokens:
        return Reply()
    with _opened(call, settings) as memory:
        memory.index.refresh(within_s=settings.search.scan_s)
        made = brief(memory, budget_tokens=settings.hook.brief_tokens, now=dt.datetime.now())  # noqa: DTZ005
        doubt = memory.index.trust.doubt
    left_out = ""
    if made.left_out and doubt is not None:
        left_out = (
            f"; {counted(made.left_out, 'note')} left out (if you trust who wrote there: "
            f"{doubt.command})"
        )
    if not made.notes:
        return Reply(made.text, f"notewell: nothing is quoted{left_out}" if made.text else "")
    from notewell.surfaces.hooks.journal import Passage  # noqa: PLC0415

    _journal(call.env).add(
        host=call.host.name,
        workspace=call.root,
        prompt="",
        tokens=made.tokens,
        passages=[Passage(citation) for citation in made.citations],
        now=dt.datetime.now(dt.UTC),
    )
    return Reply(made.text, _receipt(len(made.notes), made.tokens, what="brief of ") + left_out)


def _receipt(notes: int, tokens: int, what: str = "") -> str:
    return f"notewell: {what}{notes} note{'s' if notes != 1 else ''}, {tokens} tokens"


def prepare(call: Call, *, every_s: float, behind: bool = True) -> None:
    """Starts an engine for the next hook, which also keeps what is new; where there is none,
    another process does.
    """
    if call.start:
        from notewell.surfaces.engine.launch import launch  # noqa: PLC0415

        if launch(os.path.realpath(call.root), (), call.env, indexed=True) is not None:
            return
    if behind:
        keep_later(call, every_s=every_s)


def keep_later(call: Call, *, every_s: float) -> None:
    """Starts a separate process that reads and keeps what is new, unless one did so a moment ago,
    or an engine does.
    """
    if call.warm is None and _journal(call.env).due(call.root, every_s):
        wait = [] if every_s else ["--wait"]
        root = absolute(str(call.root))
        # where no process can be started, the next search does it
        with contextlib.suppress(OSError):
            detached([*NOTEWELL, "hook", "keep", *wait, "--workspace", root], call.env)


def keep(root: Path, env: Mapping[str, str], *, wait_s: float, embed_s: float) -> None:
    """Brings the index up to notes and, where they are a source, transcripts; somebody else at it
    is enough.
    """
    from notewell.errors import StoreError  # noqa: PLC0415
    from notewell.memory import Memory  # noqa: PLC0415

    with Memory.open(root, env=env, embed__threads=1) as memory:
        try:
            memory.sync(wait_s=wait_s, embed_s=embed_s)
        except StoreError:
            if not memory.store.read_only and wait_s:
                raise
