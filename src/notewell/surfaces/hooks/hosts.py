"""The hosts, as data: what each calls our events, where its JSON names things, and how text goes
back to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Event = Literal["session-start", "prompt", "stop", "compact", "session-end"]
EVENTS: tuple[Event, ...] = ("session-start", "prompt", "stop", "compact", "session-end")
Shape = Literal["specific", "cursor", "plain"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a hook has to say: text for the model, and one line for the person."""

    context: str = ""
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its names for our events, the shape of its answers, and the keys of its session and
    folder.
    """

    name: str
    events: Mapping[Event, str]
    shape: Shape
    session: str = "session_id"
    folder: str = "cwd"

    def answer(self, event: Event, reply: Reply) -> dict[str, Any]:
        """A reply as this host reads it; an empty one if there is nothing to say."""
        if not reply.context:
            return {}
        if self.shape == "plain":
            return {"context": reply.context, "receipt": reply.receipt}
        if self.shape == "cursor":  # it has no line for the person but one that goes with a refusal
            going_on = {"continue": True} if event == "prompt" else {}
            return {**going_on, "additional_context": reply.context}
        own = {"hookEventName": self.events[event], "additionalContext": reply.context}
        return {"hookSpecificOutput": own, "systemMessage": reply.receipt}

    def session_of(self, given: Mapping[str, Any]) -> str:
        """The id of the session, or an empty text."""
        found = given.get(self.session)
        return found if isinstance(found, str) else ""

    def folder_of(self, given: Mapping[str, Any]) -> str:
        """The folder that the host works in, or an empty text."""
        found = given.get(self.folder) or given.get("cwd")
        if isinstance(found, list):
            found = found[0] if found else ""
        return found if isinstance(found, str) else ""


_CLAUDE: Mapping[Event, str] = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "stop": "Stop",
    "compact": "PreCompact",
    "session-end": "SessionEnd",
}
_CODEX: Mapping[Event, str] = {
    event: name for event, name in _CLAUDE.items() if event != "session-end"
}
_GEMINI: Mapping[Event, str] = {
    **_CLAUDE,
    "prompt": "BeforeAgent",
    "stop": "AfterAgent",
    "compact": "PreCompress",
}
_CURSOR: Mapping[Event, str] = {
    "session-start": "sessionStart",
    "prompt": "beforeSubmitPrompt",
    "stop": "stop",
    "compact": "preCompact",
    "session-end": "sessionEnd",
}
_OPENCODE: Mapping[Event, str] = {
    "session-start": "session.created",
    "prompt": "experimental.chat.system.transform",
    "stop": "session.idle",
    "compact": "experimental.session.compacting",
    "session-end": "session.deleted",
}
_OPENCLAW: Mapping[Event, str] = {
    "session-start": "session_start",
    "prompt": "before_prompt_build",
    "stop": "agent_end",
    "compact": "before_compaction",
    "session-end": "session_end",
}
HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        Host("claude-code", _CLAUDE, "specific"),
        Host("codex", _CODEX, "specific"),
        Host("gemini-cli", _GEMINI, "specific"),
        Host("cursor", _CURSOR, "cursor", session="conversation_id", folder="workspace_roots"),
        Host("opencode", _OPENCODE, "plain"),  # called by its plugin, which is ours
        Host("openclaw", _OPENCLAW, "plain"),  # likewise
    )
}
