"""Records of a session file to turns: what the user and the assistant said, and nothing that
programs put in between.

Records of Claude Code, Codex, OpenClaw, Gemini CLI, Qwen Code, Copilot CLI, Cline and plain `{role,
content}` are recognised by their shape. Tool calls and their output, reasoning, images, heartbeats,
wrappers and envelopes are left out. Pure.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from notewell.text.spoken import of_agent, of_user
from notewell.text.words import clean
from notewell.types import Turn

# longer lines are wrapped, so that a page pasted as one line is cut and shown like any other
LINE_CHARACTERS = 800

_ROLES = ("user", "assistant")
_WORDED = (None, "text", "input_text", "output_text")
_CONTINUED = "this session is being continued from a previous conversation"
_GROUP = re.compile(r'"is_group_chat": ?true')


@dataclass(slots=True)
class TranscriptReader:
    """Reads the records of one file in order, into turns, a title and a project.

    A title counts only before the first turn, so that a file read in parts gives the same as one
    read at once.
    """

    turns: list[Turn] = field(default_factory=list)
    title: str = ""
    project: str = ""
    folder: str = ""
    subagent: bool = False
    rewritten: bool = False
    _by_id: dict[str, int] = field(default_factory=dict)

    def feed(self, record: Any, line: int) -> None:
        """Reads one record; one of an unknown shape is skipped."""
        if isinstance(record, dict):
            self._record(record, line)

    def _record(self, record: dict[str, Any], line: int) -> None:
        kind, payload, message = record.get("type"), record.get("payload"), record.get("message")
        if isinstance(payload, dict):
            self._codex(record, kind, payload, line)
        elif isinstance(kind, str) and "." in kind:
            self._copilot(record, kind, line)
        elif kind in (
            "session",
            "compaction",
            "branch_summary",
            "summary",
            "ai-title",
            "custom-title",
        ):
            self._about(record, kind, line)
        elif isinstance(message, dict) and kind in ("user", "assistant", "message"):
            self._message(record, message, line)
        elif (
            kind == "gemini" or "$set" in record or "$rewindTo" in record or "projectHash" in record
        ):
            self._gemini(record, line)
        elif record.get("role") in ("user", "assistant", "human", "ai", "model") and kind in (
            None,
            "message",
        ):
            self._add(
                line,
                _origin(record["role"]),
                _words(record.get("content", record.get("text"))),
                record,
            )
        elif kind == "user" and "content" in record:
            self._gemini(record, line)

    def _about(self, record: Mapping[str, Any], kind: str, line: int) -> None:
        """Where a conversation is held, what it is called, and the assistant's summary of it."""
        if kind == "session":
            self._where(record.get("cwd"), header=True)
        elif kind in ("compaction", "branch_summary"):
            self._add(line, "agent", _words(record.get("summary")), record)
        else:
            self._name(record.get("customTitle") or record.get("aiTitle") or record.get("summary"))

    def _where(self, folder: Any, *, header: bool = False) -> None:
        if isinstance(folder, str) and folder and not self.turns:
            self.project = self.project or PurePosixPath(folder.replace("\\", "/")).name
            if header:
                self.folder = self.folder or folder

    def _name(self, title: Any) -> None:
        if isinstance(title, str) and not self.turns:
            self.title = " ".join(clean(title).split())

    def _message(self, record: Mapping[str, Any], message: Mapping[str, Any], line: int) -> None:
        """Claude Code, OpenClaw and Qwen Code."""
        self._where(record.get("cwd"))
        role = message.get("role", record.get("type"))
        role = "assistant" if role == "model" else role
        if record.get("isSidechain") or record.get("isMeta") or record.get("isApiErrorMessage"):
            return
        if role not in _ROLES or message.get("model") == "<synthetic>" or "toolUseResult" in record:
            return
        provenance = message.get("provenance")
        if isinstance(provenance, dict) and provenance.get("kind") in (
            "inter_session",
            "internal_system",
        ):
            return
        origin = "agent" if record.get("isCompactSummary") else _origin(role)
        self._add(
            line, origin, _words(message.get("content", message.get("parts"))), record, message
        )

    def _copilot(self, record: Mapping[str, Any], kind: str, line: int) -> None:
        """What a subagent is asked and answers names the call that started it; a skill speaks in
        the user's name.
        """
        data = record.get("data")
        if not isinstance(data, dict) or data.get("parentToolCallId") or record.get("agentId"):
            return
        if kind == "session.start" and isinstance(context := data.get("context"), dict):
            self._where(context.get("cwd"), header=True)
        elif kind == "assistant.message":
            self._add(line, "agent", _words(data.get("content")), record)
        elif kind == "user.message" and not str(data.get("source") or "user").startswith(
            ("skill", "system")
        ):
            self._add(line, "owner", _words(data.get("content")), record)

    def _codex(
        self, record: Mapping[str, Any], kind: Any, payload: Mapping[str, Any], line: int
    ) -> None:
        if kind == "session_meta":
            self._where(payload.get("cwd"), header=True)
            source = payload.get("source")
            if payload.get("thread_source") == "subagent" or (
                isinstance(source, dict) and "subagent" in source
            ):
                self.subagent = True
        elif kind == "compacted":
            self._add(line, "agent", _words(payload.get("message")), record)
        elif (kind, payload.get("type")) == ("response_item", "message") and payload.get(
            "role"
        ) in _ROLES:
            self._add(line, _origin(payload["role"]), _words(payload.get("content")), record)

    def _gemini(self, record: Mapping[str, Any], line: int) -> None:
        """A message may be rewritten under its id, and a rewind removes what came after it; so
        never read in parts.
        """
        self.rewritten = True
        if record.get("kind") == "subagent":
            self.subagent = True
        if "$rewindTo" in record:
            target = self._by_id.get(str(record["$rewindTo"]), len(self.turns))
            del self.turns[target:]
            self._by_id = {key: n for key, n in self._by_id.items() if n < target}
            return
        changes = record.get("$set", record)
        if isinstance(changes, dict) and isinstance(changes.get("summary"), str):
            self._name(changes["summary"])
        if (
            "$set" in record
            and isinstance(changes, dict)
            and isinstance(changes.get("messages"), list)
        ):
            self.turns.clear()
            self._by_id.clear()
            for message in changes["messages"]:
                self.feed(message, line)
        if record.get("type") not in ("user", "gemini"):
            return
        before = len(self.turns)
        self._add(line, _origin(record["type"]), _words(record.get("content")), record)
        first = self._by_id.get(str(record.get("id")))
        if (
            first is not None
            and len(self.turns) > before
            and self.turns[first].origin == self.turns[-1].origin
        ):
            self.turns[first] = replace(self.turns.pop(), line=self.turns[first].line)
        elif len(self.turns) > before and "id" in record:
            self._by_id[str(record["id"])] = before

    def feed_json(self, document: Any, text: str) -> None:
        """Reads a file that is one JSON value; the line of a message is where its words begin, if
        it has lines.
        """
        messages = document.get("messages") if isinstance(document, dict) else document
        if isinstance(document, dict):
            self._name(document.get("summary") or document.get("title"))
            self.subagent = (
                document.get("kind") == "subagent" or document.get("agent", "lead") != "lead"
            )
        self.rewritten = True
        line, offset = 1, 0
        one_line = "\n" not in text.strip()  # then each message counts as one
        for number, record in enumerate(messages if isinstance(messages, list) else (), 1):
            before = len(self.turns)
            self.feed(record, number if one_line else line)
            if one_line:
                continue
            words = (
                _words(record.get("content", record.get("text")))
                if isinstance(record, dict)
                else ""
            )
            written = [
                json.dumps(words[:60], ensure_ascii=ascii_only)[1:-1]
                for ascii_only in (False, True)
            ]
            found = max(text.find(form, offset) for form in written) if words else -1
            if found >= 0:
                line += text.count("\n", offset, found)
                offset = found
                self.turns[before:] = [replace(turn, line=line) for turn in self.turns[before:]]

    def _add(self, line: int, origin: str, text: str, *records: Mapping[str, Any]) -> None:
        text = clean(text)
        text = of_user(text) if origin == "owner" else of_agent(text)
        if not text:
            return
        if origin == "owner" and text[: len(_CONTINUED)].lower() == _CONTINUED:
            origin = (
                "agent"  # the assistant's summary of the conversation so far, under the user's name
            )
        if origin == "owner" and any(_GROUP.search(_raw(r)) for r in records):
            origin = "untrusted"
        self.turns.append(Turn(line, origin, text, _time(records)))


def _raw(record: Mapping[str, Any]) -> str:
    """The words of a message with its envelope."""
    message = record.get("message", record)
    return _words(message.get("content")) if isinstance(message, dict) else ""


def _origin(role: Any) -> str:
    return "owner" if role in ("user", "human") else "agent"


def _words(content: Any) -> str:
    """The words of a content: a text, a part or a list of parts; nothing if one of them is a tool's
    answer.
    """
    if isinstance(content, str):
        return content
    words: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, dict):
            if part.get("type") == "tool_result" or "functionResponse" in part:
                return ""
            text = part.get("text")
            if isinstance(text, str) and not part.get("thought") and part.get("type") in _WORDED:
                words.append(text)
    return "\n".join(words)


def _time(records: tuple[Mapping[str, Any], ...]) -> dt.datetime | None:
    """When it was said, in local time."""
    for record in reversed(records):
        for key in ("timestamp", "time", "created_at", "createdAt", "ts", "date"):
            value = record.get(key)
            try:
                if isinstance(value, str) and value:
                    found = dt.datetime.fromisoformat(value)
                elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                    found = dt.datetime.fromtimestamp(
                        value if value < 1e11 else value / 1000, dt.UTC
                    )
                else:
                    continue
                return (found.astimezone() if found.tzinfo else found).replace(
                    tzinfo=None, microsecond=0
                )
            except (ValueError, OverflowError, OSError):
                continue
    return None


def wrapped(text: str) -> str:
    """The text with overlong lines broken at spaces, or anywhere if there are none."""
    if len(text) <= LINE_CHARACTERS:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while len(line) - start > LINE_CHARACTERS:
        cut = line.rfind(" ", start + LINE_CHARACTERS // 2, start + LINE_CHARACTERS)
        end = cut if cut > 0 else start + LINE_CHARACTERS
        yield line[start:end]
        start = end + (cut > 0)
    yield line[start:]


def readable(turns: list[Turn]) -> str:
    """Turns as a person reads them: who, when, and the words."""
    names = {"owner": "user", "agent": "assistant"}
    return "\n\n".join(
        (
            f"{names.get(t.origin, t.origin)}"
            f"{t.time.strftime(', %Y-%m-%d %H:%M') if t.time else ''}:\n{t.text}"
        )
        for t in turns
    )
