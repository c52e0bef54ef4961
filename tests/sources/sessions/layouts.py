"""Homes of the programs whose conversations are read, each with one conversation of the workspace.

Those of Claude Code 2.1.197, Codex 0.166.0, Gemini CLI 0.61.0, Qwen Code 0.15.10, Copilot CLI
1.0.102, Cline 3.0.65, opencode 1.18.33, OpenClaw 2026.9.6 and Hermes 0.19.0 were written by the
programs themselves, talking to a stand-in for a model; long texts of theirs are cut. The others
follow the schemas that were published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

AGENTS = Path(__file__).parent / "agents"
TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
QUESTION = "Which port does staging answer on?"
ANSWER = "Staging answers on port 8443, behind the proxy birke."
LATER = "And the port of production is 9443."
LATER_MS = 1_794_854_000_000  # 2026-11-16T18:33:20Z


def text_of(name: str, root: Path) -> str:
    text = (AGENTS / name).read_text(encoding="utf-8")
    return text.replace("@TOKEN@", TOKEN).replace("/home/ana/ledger", str(root))


def put(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


def database(place: Path, sql: str, *, wal: bool = True) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(place))
    for setting in ("foreign_keys = off", f"journal_mode = {'wal' if wal else 'delete'}"):
        db.execute(f"PRAGMA {setting}").fetchall()
    db.execute(sql)
    db.close()
    return place


def run(place: Path, *statements: str) -> None:
    with apsw.Connection(str(place)) as db:
        for sql in statements:
            db.execute(sql)
    db.close()


def slug(root: Path) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", str(root))


@dataclass(frozen=True)
class Layout:
    """A program: how its home is made, how its user says one thing more, and how it deletes the
    conversation.
    """

    program: str
    make: Callable[[Path, Path], Path]
    say: Callable[[Path], None]
    delete: Callable[[Path], None] = Path.unlink
    asked: str = "2026-11-16T18:21:57"
    grows: bool = True  # whether an addition is read by itself

    def __str__(self) -> str:
        return self.program


def _add(place: Path, record: object) -> None:
    with place.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def _parts(place: Path, messages: str = "") -> None:
    data = json.loads(place.read_text())
    more = {"role": "user", "content": [{"type": "text", "text": LATER}], "ts": LATER_MS}
    (data[messages] if messages else data).append(more)
    place.write_text(json.dumps(data, indent=2 if messages else None))


def _cline(home: Path, root: Path) -> Path:
    folder = home / ".cline/data/sessions/1794853507854_dg8hr"
    put(folder / "1794853507854_dg8hr.json", text_of("cline.json", root))
    return put(folder / "1794853507854_dg8hr.messages.json", text_of("cline.messages.json", root))


def _cline_tasks(home: Path, root: Path) -> Path:
    storage = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    task = {
        "id": "1794853317212",
        "ts": 1794853317212,
        "task": "Staging port",
        "cwdOnTaskInitialization": str(root),
    }
    put(storage / "state/taskHistory.json", json.dumps([task]))
    place = storage / "tasks/1794853317212/api_conversation_history.json"
    return put(place, text_of("cline-tasks.json", root))


def _event(role: str, text: str) -> str:
    message = {"role": role, "content": text, "timestamp": LATER_MS}
    record = {
        "type": "message",
        "id": "x",
        "timestamp": "2026-11-16T18:33:20.000Z",
        "message": message,
    }
    return json.dumps(record)


def _say_openclaw(place: Path) -> None:
    run(
        place,
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at)"
        f" VALUES ('s1', 600, '{_event('user', LATER)}', {LATER_MS})",
        f"UPDATE session_windows SET updated_at = {LATER_MS}",
    )


def _say_opencode(place: Path) -> None:
    said = json.dumps({"role": "user", "time": {"created": LATER_MS}})
    part = json.dumps({"type": "text", "text": LATER})
    run(
        place,
        f"INSERT INTO message SELECT 'msg_9', id, {LATER_MS}, {LATER_MS}, '{said}' FROM session",
        (
            f"INSERT INTO part SELECT 'prt_9', 'msg_9', id, {LATER_MS}, {LATER_MS}, '{part}' FROM "
            "session"
        ),
        f"UPDATE session SET time_updated = {LATER_MS}",
    )


def _say_opencode_2(place: Path) -> None:
    said = json.dumps({"text": LATER})
    run(
        place,
        (
            f"INSERT INTO session_message VALUES ('msg_9', 'ses_1', 'user', 9, {LATER_MS}, "
            f"{LATER_MS}, '{said}')"
        ),
        f"UPDATE session_v2 SET time_updated = {LATER_MS}",
    )


def _say_cursor(place: Path) -> None:
    bubble = json.dumps({"type": 1, "text": LATER, "createdAt": "2026-11-16T18:33:20.000Z"})
    run(
        place,
        f"INSERT INTO cursorDiskKV VALUES ('bubbleId:c0ffee01:b9', '{bubble}')",
        "UPDATE cursorDiskKV SET value ="
        " json_insert(value, '$.fullConversationHeadersOnly[#]', json('{\"bubbleId\":\"b9\"}'))"
        " WHERE key = 'composerData:c0ffee01'",
        f"UPDATE composerHeaders SET value = json_set(value, '$.lastUpdatedAt', {LATER_MS})",
    )


def _say_hermes(place: Path) -> None:
    run(
        place,
        "INSERT INTO messages (session_id, role, content, timestamp)"
        f" SELECT id, 'user', '{LATER}', {LATER_MS / 1000} FROM sessions",
    )


def _say_goose(place: Path) -> None:
    content = json.dumps([{"type": "text", "text": LATER}])
    run(
        place,
        "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
        f" VALUES ('20261116_1', 'user', '{content}', {LATER_MS // 1000})",
    )


_SAID = {"role": "user", "content": [{"type": "input_text", "text": LATER}], "type": "message"}
_WHEN = {"timestamp": "2026-11-16T18:33:20.000Z"}
LAYOUTS = (
    Layout(
        "Claude Code",
        lambda home, root: put(
            home / f".claude/projects/{slug(root)}/141e.jsonl", text_of("claude-code.jsonl", root)
        ),
        lambda place: _add(
            place, {"type": "user", "message": {"role": "user", "content": LATER}, **_WHEN}
        ),
        asked="2026-11-16T18:21:52",
    ),
    Layout(
        "Codex",
        lambda home, root: put(
            home / ".codex/sessions/2026/11/16/rollout-2026-1.jsonl", text_of("codex.jsonl", root)
        ),
        lambda place: _add(place, {"type": "response_item", "payload": _SAID, **_WHEN}),
        asked="2026-11-16T18:21:50",
    ),
    Layout(
        "Gemini CLI",
        lambda home, root: put(
            put(
                home / ".gemini/projects.json", json.dumps({"projects": {str(root): "ledger"}})
            ).parent
            / "tmp/ledger/chats/session-2026-11-16T18-22-41572b34.jsonl",
            text_of("gemini-cli.jsonl", root),
        ),
        lambda place: _add(
            place, {"id": "9", "type": "user", "content": [{"text": LATER}], **_WHEN}
        ),
        asked="2026-11-16T18:22:11",
        grows=False,
    ),
    Layout(
        "Qwen Code",
        lambda home, root: put(
            home / f".qwen/projects/{slug(root)}/chats/bb61.jsonl", text_of("qwen-code.jsonl", root)
        ),
        lambda place: _add(
            place,
            {"type": "user", "message": {"role": "user", "parts": [{"text": LATER}]}, **_WHEN},
        ),
        asked="2026-11-16T18:22:04",
    ),
    Layout(
        "Copilot CLI",
        lambda home, root: put(
            home / ".copilot/session-state/aa6b/events.jsonl", text_of("copilot-cli.jsonl", root)
        ),
        lambda place: _add(place, {"type": "user.message", "data": {"content": LATER}, **_WHEN}),
        asked="2026-11-16T18:22:13",
    ),
    Layout(
        "Cline",
        _cline,
        lambda place: _parts(place, "messages"),
        asked="2026-11-16T18:25:08",
        grows=False,
    ),
    Layout("Cline (tasks)", _cline_tasks, _parts, grows=False),
    Layout(
        "OpenClaw",
        lambda home, root: database(
            home / ".openclaw/agents/main/agent/openclaw-agent.sqlite",
            text_of("openclaw.sql", root).replace("/home/ana/.openclaw/workspace", str(root)),
        ),
        _say_openclaw,
        lambda place: run(place, "DELETE FROM transcript_events"),
        asked="2026-11-16T18:22:50",
    ),
    Layout(
        "opencode 1",
        lambda home, root: database(
            home / ".local/share/opencode/opencode.db", text_of("opencode-1.sql", root)
        ),
        _say_opencode,
        lambda place: run(place, "DELETE FROM session"),
    ),
    Layout(
        "opencode 2",
        lambda home, root: database(
            home / ".local/share/opencode/opencode.db", text_of("opencode-2.sql", root)
        ),
        _say_opencode_2,
        lambda place: run(place, "DELETE FROM session_v2 WHERE id = 'ses_1'"),
    ),
    Layout(
        "Cursor",
        lambda home, root: database(
            home / ".config/Cursor/User/globalStorage/state.vscdb",
            text_of("cursor.sql", root),
            wal=False,
        ),
        _say_cursor,
        lambda place: run(place, "DELETE FROM composerHeaders WHERE composerId = 'c0ffee01'"),
    ),
    Layout(
        "Hermes",
        lambda home, root: database(home / ".hermes/state.db", text_of("hermes.sql", root)),
        _say_hermes,
        lambda place: run(place, "DELETE FROM sessions"),
        asked="2026-11-16T18:26:01",
    ),
    Layout(
        "Goose",
        lambda home, root: database(
            home / ".local/share/goose/sessions/sessions.db", text_of("goose.sql", root)
        ),
        _say_goose,
        lambda place: run(place, "DELETE FROM sessions WHERE id = '20261116_1'"),
    ),
)
