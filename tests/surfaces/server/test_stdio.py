"""Every line that asks something is answered, also one that makes no sense: nobody waits for
ever.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage

from notewell.surfaces.server.stdio import refusal
from tests.conftest import Write

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def complaint(line: str) -> types.JSONRPCError | None:
    """What is said to a line, read as the transport reads it."""
    try:
        return refusal(
            SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        )
    except ValueError as error:
        return refusal(error)


def call(**rest: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": "tools/call", **rest})


@pytest.mark.parametrize(
    ("line", "key", "code"),
    [
        ("{bad", None, -32700),
        (call(id=8, params={"arguments": {"query": "\ud800"}}), 8, -32700),
        (call(params={"arguments": {"query": "\ud800"}}, id="last"), "last", -32700),
        ('{"jsonrpc": "2.0", "id": 9, "method": "tools/ca', 9, -32700),
        ('{"method": "x", "params": {"deep": ' + "[" * 100_000 + ', "id": 10}', 10, -32700),
        ('{"params": {"id": 11, "x": ', None, -32700),
        ('{"id": 007, "x"', 7, -32700),
        ("[" * 100_000, None, -32700),
        ("[]", None, -32600),
        ("5", None, -32600),
        (call(id=7, params=[1]), 7, -32602),
        (call(id="seven", params="x"), "seven", -32602),
        (call(id=7, method=5), 7, -32600),
        ('{"id": 7, "method": "tools/list"}', 7, -32600),
        (call(id=1.5), None, -32600),
        (call(id=None), None, -32600),
        (call(id=True, params=[1]), None, -32602),
    ],
)
def test_a_bad_line_gets_an_error_with_its_id(line: str, key: Any, code: int) -> None:
    answer = complaint(line)
    assert answer is not None
    assert (answer.id, answer.error.code) == (key, code)


@pytest.mark.parametrize(
    "line",
    [
        call(id=7, params={"name": "x"}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}),
        json.dumps({"jsonrpc": "2.0", "id": 9, "result": 5}),
        " ",
    ],
)
def test_what_is_sound_or_asks_nothing_gets_none(line: str) -> None:
    assert complaint(line) is None


@given(
    st.fixed_dictionaries({"id": st.integers(0, 9), "method": st.just("tools/call"), "params": ANY})
)
def test_a_request_with_a_good_id_is_passed_on_or_answered(asked: dict[str, Any]) -> None:
    answer = complaint(json.dumps({"jsonrpc": "2.0", **asked}))
    passed = asked["params"] is None or isinstance(asked["params"], dict)
    assert (answer is None) == passed
    assert answer is None or answer.id == asked["id"]


def test_a_real_server_answers_bad_lines_and_goes_on(root: Path, write: Write) -> None:
    write("MEMORY.md", "- a fact\n")
    line = [
        sys.executable,
        "-m",
        "notewell.surfaces.cli.main",
        "mcp",
        "-w",
        str(root),
        "--model",
        "none",
    ]
    lines = [json.dumps(HELLO), "{bad", call(id=2, params=[1]), call(id=3, params={"name": 5})]
    lines += [call(id=4, params={"name": "memory_status", "arguments": {}})]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ), text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        heard = []
        for one in lines:
            process.stdin.write(one + "\n")
            process.stdin.flush()
            heard.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert [h["id"] for h in heard] == [1, None, 2, 3, 4]
    assert [h.get("error", {}).get("code") for h in heard] == [None, -32700, -32602, -32602, None]
