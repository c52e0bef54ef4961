"""A memory provider for Hermes, in its own process: recall before each turn, and the tools of the
memory.

Hermes finds it by the entry point `hermes_agent.memory_providers`, or by the plugin that `notewell
install hermes` writes, and uses it where `memory.provider` is notewell.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from notewell.errors import NotewellError
from notewell.memory import Memory
from notewell.surfaces import failures
from notewell.surfaces.hooks.recall import recall
from notewell.surfaces.install.guidance import GUIDE
from notewell.surfaces.server import texts
from notewell.surfaces.server.calls import CALLS
from notewell.surfaces.server.upkeep import Upkeep
from notewell.text.small_talk import says_something

NAME = "notewell"
SETTINGS = "notewell.json"
_TOOLS = ("search", "get", "timeline", "remember", "forget")
_FIRST_LOOK_S = 0.5
_log = logging.getLogger(__name__)
_PREFIX = "memory_"


class NotewellProvider:
    """What Hermes asks of a memory provider; `register` gives it the class that Hermes wants it to
    be of.
    """

    def __init__(self) -> None:
        self._memory: Memory | None = None
        self._open = contextlib.ExitStack()
        self._writes = True
        self._shown: set[str] = set()
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """What `memory.provider` calls it."""
        return NAME

    def is_available(self) -> bool:
        """Whether it can be used: this module was imported, and it needs no key."""
        return True

    def initialize(self, session_id: str, **given: Any) -> None:  # noqa: ARG002 - the name is Hermes's
        """Opens the workspace, and keeps its index up to date while Hermes runs."""
        self.shutdown()
        # a job must not write as its owner
        self._writes = given.get("agent_context", "primary") == "primary"
        home = given.get("hermes_home") or os.environ.get("HERMES_HOME") or Path.home() / ".hermes"
        root = workspace(Path(home), os.environ)
        root.mkdir(parents=True, exist_ok=True)
        self._memory = self._open.enter_context(Memory.open(root))
        # so that the first turn is not asked of an empty index
        self._memory.index.refresh(within_s=_FIRST_LOOK_S)
        self._open.enter_context(Upkeep(self._memory))

    def initialize_for_inspection(self, session_id: str, **given: Any) -> None:
        """Nothing is needed to tell which tools there are."""

    def system_prompt_block(self) -> str:
        """When to search, how to cite and when to remember."""
        return GUIDE.replace("The `notewell` server", "This memory")

    def prefetch(self, query: str, *, session_id: str = "") -> str:  # noqa: ARG002 - the name is Hermes's
        """A few passages that are likely to help with a turn, none of them twice in a session, or
        nothing.
        """
        memory = self._memory
        if memory is None or not memory.settings.hook.tokens or not says_something(query):
            return ""
        with self._turn:
            try:
                block, hits = recall(memory, query, memory.settings.hook, given=self._shown)
            except Exception:  # noqa: BLE001 - recall never stops a turn
                _log.warning("notewell: recall failed", exc_info=True)
                return ""
            self._shown.update(hit.chunk.content_hash for hit in hits)
        return block.text if block.passages else ""

    def on_session_switch(self, new_session_id: str, **_given: Any) -> None:  # noqa: ARG002 - the name is Hermes's
        """Another session has seen nothing yet."""
        with self._turn:
            self._shown.clear()

    def on_pre_compress(self, messages: Sequence[Mapping[str, Any]]) -> str:  # noqa: ARG002 - the name is Hermes's
        """What was shown is about to be lost, so it may be shown again."""
        self.on_session_switch("")
        return ""

    def sync_turn(self, user_content: str, assistant_content: str, **given: Any) -> None:
        """Nothing to do: Hermes keeps the conversation, and what it writes to files is read from
        there.
        """

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The tools, with the arguments that agents need."""
        calls = [CALLS[name] for name in _TOOLS if self._writes or not CALLS[name].writes]
        return [
            {"name": _PREFIX + c.name, "description": c.doc, "parameters": c.outline()[0]}
            for c in calls
        ]

    def handle_tool_call(self, tool_name: str, args: Mapping[str, Any], **_given: Any) -> str:
        """The answer as JSON; an error says what to do about it."""
        call = CALLS.get(tool_name.removeprefix(_PREFIX))
        known = call and call.name in _TOOLS and (self._writes or not call.writes)
        if call is None or not known or self._memory is None:
            return json.dumps({"error": f"{tool_name} is not a tool of this memory"})
        try:
            given = call.checked({key: value for key, value in args.items() if value is not None})
            return json.dumps(
                {"result": call.text(call.run(self._memory, given))}, ensure_ascii=False
            )
        except Exception as raised:  # noqa: BLE001 - the model gets a sentence whatever went wrong
            error: NotewellError = failures.known(raised)
            return json.dumps(
                {"error": texts.plain(f"{error}. {error.hint}" if error.hint else str(error))}
            )

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The one question of `hermes memory setup`."""
        asked = "Folder of your notes (empty: the memories folder of Hermes)"
        return [{"key": "workspace", "description": asked, "default": ""}]

    def save_config(self, values: Mapping[str, Any], hermes_home: str) -> None:
        """Writes the answers beside Hermes's own settings."""
        folder = str(values.get("workspace") or "")
        Path(hermes_home, SETTINGS).write_text(
            json.dumps({"workspace": folder}) + "\n", encoding="utf-8"
        )

    def shutdown(self) -> None:
        """Stops the upkeep and closes the index."""
        self._memory = None
        self._open.close()
        self._open = contextlib.ExitStack()


def workspace(home: Path, env: Mapping[str, str]) -> Path:
    """The folder of the notes: the one that was set up, else NOTEWELL_WORKSPACE, else where Hermes
    keeps MEMORY.md.
    """
    try:
        chosen = json.loads((home / SETTINGS).read_text(encoding="utf-8"))["workspace"]
    except (OSError, ValueError, KeyError, TypeError):
        chosen = ""
    named = chosen if isinstance(chosen, str) and chosen else env.get("NOTEWELL_WORKSPACE", "")
    return Path(named).expanduser() if named else home / "memories"


def register(context: Any) -> None:
    """What Hermes calls to get the provider, as a subclass of the class that Hermes has."""
    # Hermes's own package, which is there only inside of it.
    from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found]  # noqa: PLC0415

    made = type("NotewellMemoryProvider", (NotewellProvider, MemoryProvider), {})
    context.register_memory_provider(made())
