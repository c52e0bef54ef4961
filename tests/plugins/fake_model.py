"""A stand-in for a model: an OpenAI-compatible server on loopback that asks for one tool call, then
says what came.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Told = dict[str, Any]


@dataclass
class FakeModel:
    """What it was asked, and what happens before it answers."""

    port: int = 0
    asked: list[Told] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    query: str = "which port does staging answer on"

    def answer(self, body: Told) -> Told:
        """The message for a request: first a call of memory_search, then the result of it."""
        self.asked.append(body)
        results = [m for m in body.get("messages", []) if m.get("role") == "tool"]
        if results:
            return {"role": "assistant", "content": f"DONE {results[-1]['content']}"}
        names = {t["function"]["name"] for t in body.get("tools", [])}
        given: Told = {"query": self.query, "maxResults": 2}
        name = "memory_search"
        if name not in names and "tool_call" in names:  # tools that are found by searching for them
            name, given = "tool_call", {"id": name, "name": name, "args": given}
        if name not in names:
            return {"role": "assistant", "content": f"NO TOOL among {sorted(names)}"}
        self.before()
        made = {"name": name, "arguments": json.dumps(given)}
        return {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "type": "function", "function": made}],
        }

    def texts(self) -> str:
        """Everything that was sent to it."""
        return json.dumps(self.asked, ensure_ascii=False)


def _chunks(message: Told) -> Iterator[Told]:
    delta = {**message}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": 0, **delta["tool_calls"][0]}]
    yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = "tool_calls" if "tool_calls" in message else "stop"
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}
    yield {
        "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


@contextmanager
def fake_model() -> Iterator[FakeModel]:
    """Serves one until the block ends."""
    model = FakeModel()

    class Desk(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._send(
                "application/json",
                b'{"object": "list", "data": [{"id": "fake", "object": "model"}]}',
            )

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            message = model.answer(body)
            base = {"id": "x", "created": 0, "model": "fake"}
            if not body.get("stream"):
                end = "tool_calls" if "tool_calls" in message else "stop"
                choices = [{"index": 0, "message": message, "finish_reason": end}]
                whole = {**base, "object": "chat.completion", "choices": choices}
                self._send("application/json", json.dumps(whole).encode())
                return
            lines = [
                json.dumps({**base, "object": "chat.completion.chunk", **one})
                for one in _chunks(message)
            ]
            self._send(
                "text/event-stream",
                "".join(f"data: {one}\n\n" for one in [*lines, "[DONE]"]).encode(),
            )

    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    model.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
