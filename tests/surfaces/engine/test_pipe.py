"""`notewell mcp` beside an engine: a thin pipe, whose client notices nothing of what happens to the
engine.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from functools import partial
from typing import Any

import pytest

from notewell.surfaces.engine import pipe
from notewell.surfaces.engine.pipe import Pending
from tests.surfaces.engine.conftest import Desk, until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets with a path")


class Client:
    """A plain client of the protocol, line by line."""

    def __init__(self, desk: Desk, *words: str, **more: Any) -> None:
        self.process = desk.spawn(
            "mcp", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more
        )
        self._number = 0

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return self.hear(self._number)

    def hear(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert found["id"] == number
        return found

    def greet(self) -> Client:
        info = {"name": "test", "version": "1"}
        found = self.ask(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info
        )
        assert found["result"]["serverInfo"]["name"] == "notewell"
        self.send(method="notifications/initialized")
        return self

    def search(self, query: str = "staging port") -> str:
        return str(
            self.ask("tools/call", name="memory_search", arguments={"query": query})["result"][
                "content"
            ][0]["text"]
        )

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0


class Heard:
    """A server that says what it is told to, and ends when its client does."""

    def __init__(self, *, own: bool) -> None:
        self.own = own
        self.silence_s = None if own else 0.05
        ours, self._theirs = socket.socketpair()
        self.inlet: int | socket.socket = ours
        self._ours = ours

    def say(self, line: bytes) -> None:
        self._theirs.sendall(line)

    def is_busy(self) -> bool:
        return False

    def read(self) -> bytes:
        return self._ours.recv(1000)

    def send(self, line: bytes) -> None:
        pass

    def end(self) -> None:
        self._theirs.close()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


def memory_mb(process: subprocess.Popen[bytes]) -> float:
    with open(f"/proc/{process.pid}/status") as lines:
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


def test_it_is_thin(desk: Desk) -> None:
    desk.start()
    client = Client(desk).greet()
    assert "8081" in client.search()
    assert desk.status()["windows"] == 1
    assert memory_mb(client.process) < 40
    with open(f"/proc/{client.process.pid}/maps") as maps:
        mapped = maps.read()
    assert "numpy" not in mapped
    assert "pydantic" not in mapped
    client.close()
    until(lambda: desk.status()["windows"] == 0, "the window is closed")


def test_nine_windows_share_one_engine_which_ends_after_them(desk: Desk) -> None:
    desk.env["NOTEWELL_ENGINE_IDLE_S"] = "2"
    clients = [Client(desk) for _ in range(9)]  # the first of them starts it
    for client in clients:
        client.greet()
        assert "8081" in client.search()
    status = desk.status()
    assert status["windows"] == 9
    for client in clients:
        client.close()
    until(lambda: not os.path.exists(f"/proc/{status['pid']}"), "nothing is left running")


def test_an_engine_that_is_killed_is_not_noticed(desk: Desk) -> None:
    engine = desk.start()
    client = Client(desk).greet()
    assert "8081" in client.search()
    engine.kill()
    engine.wait(timeout=30)
    assert "8081" in client.search()
    assert "Fridays" in client.search("deploy")
    assert desk.wait_ready()["pid"] != engine.pid
    client.close()


def _is_forgotten(process: int) -> bool:
    return not os.path.exists(f"/proc/{process}")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_engines_that_have_ended_leave_nothing_of_them_with_their_client(desk: Desk) -> None:
    client = Client(desk).greet()
    for _ in range(2):
        assert "8081" in client.search()
        pid = desk.wait_ready()["pid"]
        os.kill(pid, signal.SIGKILL)
        until(partial(_is_forgotten, pid), "the system has forgotten it")
        os.utime(desk.place.begun, (0, 0))  # as if it had run for longer than a start takes
        client.greet()
    client.close()


def test_a_server_of_its_own_sees_paths_from_where_its_client_works(desk: Desk) -> None:
    desk.alone("search", "anything")
    engine = desk.start()
    client = Client(desk, "-w", "..", cwd=desk.root / "memory").greet()
    engine.send_signal(signal.SIGSTOP)
    found = client.ask("tools/call", name="memory_get", arguments={"reference": "./deploy.md"})[
        "result"
    ]
    assert "Fridays" in found["content"][0]["text"]
    client.close()


def test_an_engine_that_hangs_in_the_middle_is_replaced_by_a_server_of_its_own(desk: Desk) -> None:
    desk.alone("search", "anything")
    engine = desk.start()
    client = Client(desk).greet()
    engine.send_signal(signal.SIGSTOP)
    assert "8081" in client.search()
    assert "Fridays" in client.search("deploy")
    client.close()


def test_after_a_while_an_engine_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process for the client: the pipe itself, with servers that only remember what they
    are sent.
    """
    monkeypatch.setattr(pipe, "_SOON_S", 0.0)
    made: list[Heard] = []

    def find(own: bool) -> Heard:
        made.append(Heard(own=own))
        return made[-1]

    ours, theirs = os.pipe()
    said: list[bytes] = []
    one = pipe.Pipe(find, ours, said.append)
    thread = threading.Thread(target=one.run, daemon=True)
    thread.start()

    def ask(number: int) -> None:
        os.write(theirs, b'{"id": %d, "method": "ping"}\n' % number)

    ask(1)
    until(lambda: len(made) == 2, "the silent engine is lost")
    assert [server.own for server in made] == [False, True]
    made[1].say(b'{"id": 1, "result": 1}\n')
    until(lambda: said, "an answer")
    ask(2)
    until(lambda: len(made) == 3, "an engine is asked again")
    assert not made[2].own
    made[2].say(b'{"id": 2, "result": 2}\n')
    until(lambda: len(said) == 2, "both answers")
    os.close(theirs)
    thread.join(60)
    assert said == [b'{"id": 1, "result": 1}\n', b'{"id": 2, "result": 2}\n']
    assert not thread.is_alive()


def test_it_offers_what_its_options_say(desk: Desk) -> None:
    desk.start()
    client = Client(desk, "--read-only").greet()
    names = {tool["name"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert "memory_search" in names
    assert "memory_remember" not in names
    client.close()


def test_paths_start_where_the_client_works(desk: Desk) -> None:
    desk.start()
    inner = Client(desk, "-w", str(desk.root), cwd=desk.root / "memory").greet()
    found = inner.ask("tools/call", name="memory_get", arguments={"reference": "./deploy.md"})[
        "result"
    ]
    assert "Fridays" in found["content"][0]["text"]
    inner.close()


def test_what_makes_no_sense_gets_an_error_as_ever(desk: Desk) -> None:
    desk.start()
    client = Client(desk).greet()
    assert client.process.stdin is not None
    client.process.stdin.write(
        b'{"id": 7, nonsense\n\n{"jsonrpc": "2.0", "id": 8, "method": "no/such"}\n'
    )
    client.process.stdin.flush()
    assert client.hear(7)["error"]["code"] == -32700
    assert client.hear(8)["error"]["code"] == -32601
    client.close()


@pytest.mark.parametrize("key", [1.5, True, {"a": 1}, None])
def test_an_id_that_cannot_be_answered_keeps_nobody_waiting(desk: Desk, key: object) -> None:
    desk.start()
    client = Client(desk).greet()
    client.send(id=key, method="tools/list")
    assert client.process.stdout is not None
    assert json.loads(client.process.stdout.readline())["id"] is None
    client.close()


def test_all_that_was_asked_before_the_end_is_answered(desk: Desk) -> None:
    desk.start()
    client = Client(desk).greet()
    for number in (10, 11, 12):
        arguments = {"query": f"deploy {number}"}
        client.send(
            id=number, method="tools/call", params={"name": "memory_search", "arguments": arguments}
        )
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.stdout is not None
    assert {json.loads(line)["id"] for line in client.process.stdout} == {10, 11, 12}
    assert client.process.wait(timeout=30) == 0


def test_pending_counts_requests_and_not_what_nobody_answers() -> None:
    pending = Pending()
    pending.asked(b'{"method": "notifications/initialized"}')
    pending.asked(b"nonsense")
    assert not pending
    pending.asked(b'{"id": 1, "method": "a"}')
    pending.asked(b'{"id": "1", "method": "b"}')
    assert pending.answered(b'{"id": 1, "result": {}}') == "1"
    assert pending
    pending.asked(b'{"method": "notifications/cancelled", "params": {"requestId": "1"}}')
    assert not pending
    assert pending.answered(b'{"method": "notifications/message"}') == ""
