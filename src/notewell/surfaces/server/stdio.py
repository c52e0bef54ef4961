"""MCP on stdin and stdout, where every line that asks something gets an answer, also one that makes
no sense.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from notewell.memory import Memory
from notewell.surfaces.server.mcp import Offer, server

_NOTIFIES = "notifications/"
_KEY = r'"id"\s*:\s*(-?\d{1,15}|"[^"\\\x00-\x1f]{0,100}")\s*'
_FIRST = re.compile(r"\{[^{}\[\]]{0,200}?" + _KEY + ",")
_LAST = re.compile(r",\s*" + _KEY + r"(?:,[^{}\[\]]{0,100})?\}\Z")


def serve_stdio(memory: Memory, offer: Offer) -> None:
    """Serves one client on stdin and stdout until it disconnects."""
    made = server(memory, offer)
    if sys.stdin.isatty():
        sys.stderr.write(
            "notewell mcp talks MCP on stdin and stdout; an agent starts it (press Ctrl-C to "
            "stop)\n"
        )
    anyio.run(serve_lines, made)


async def serve_lines(made: Server[Any], stdin: Any = None, stdout: Any = None) -> None:
    """Serves one client over two files of text, or whatever reads and writes lines as they do."""
    async with stdio_server(stdin, stdout) as (read, write), anyio.create_task_group() as tasks:
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def pass_on() -> None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async with read, send:
                    async for item in read:
                        complaint = refusal(item)
                        await (
                            write.send(SessionMessage(complaint)) if complaint else send.send(item)
                        )

        tasks.start_soon(pass_on)
        await made.run(receive, write, made.create_initialization_options())
        tasks.cancel_scope.cancel()


def refusal(item: SessionMessage | Exception) -> types.JSONRPCError | None:
    """The answer to a line that is not a message; None for one that is, and for one that nobody
    waits for.
    """
    if isinstance(item, SessionMessage):
        message = item.message
        if isinstance(message, types.JSONRPCNotification) and not message.method.startswith(
            _NOTIFIES
        ):
            return _error(
                None,
                types.INVALID_REQUEST,
                f"{message.method} needs an id, a whole number or a text",
            )
        return None
    return _complaint(item) if isinstance(item, ValidationError) else None


def _complaint(error: ValidationError) -> types.JSONRPCError | None:
    """What is wrong with a line; None where it is blank or answers nobody."""
    found = error.errors(include_url=False)
    if found[0]["type"] == "json_invalid":
        line = str(found[0]["input"]).strip()
        return (
            _error(_key_in(line), types.PARSE_ERROR, "the line is not JSON in UTF-8")
            if line
            else None
        )
    # A message lacks what another kind of message must have, and there the whole of it is named.
    return _refused(
        next(
            (e["input"] for e in found if e["type"] == "missing" and isinstance(e["input"], dict)),
            {},
        )
    )


def _key_in(line: str) -> int | str | None:
    """The id that a line seems to have, which a client may wait for: JSON may hold half a
    character, or be cut off.
    """
    try:
        whole = json.loads(line)
        key = whole.get("id") if isinstance(whole, dict) else None
    except (ValueError, RecursionError):
        place = _FIRST.match(line) or _LAST.search(line)
        key = (
            None
            if not place
            else place[1].strip('"')
            if place[1].startswith('"')
            else int(place[1])
        )
    return key if isinstance(key, int | str) and not isinstance(key, bool) else None


def _refused(whole: Mapping[str, Any]) -> types.JSONRPCError | None:
    method, key = whole.get("method"), whole.get("id")
    answers = "method" not in whole and ("result" in whole or "error" in whole)
    notifies = isinstance(method, str) and "id" not in whole and method.startswith(_NOTIFIES)
    if answers or notifies:
        return None
    known = isinstance(key, int | str) and not isinstance(key, bool)
    params = isinstance(method, str) and not isinstance(whole.get("params", {}), dict)
    code = types.INVALID_PARAMS if params else types.INVALID_REQUEST
    sentence = "params must be an object" if params else "the line is not a JSON-RPC message"
    return _error(key if known else None, code, sentence)


def _error(key: Any, code: int, sentence: str) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=key, error=types.ErrorData(code=code, message=sentence)
    )
