"""`notewell serve` is the engine of its workspace, with the memory that it has open anyway."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from notewell.surfaces.engine.launch import end_process
from tests.surfaces.engine.conftest import Desk, until
from tests.surfaces.server.served import Served

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets with a path")
_TIMES = re.compile(rb'"took_ms": [0-9.e-]+')


class Server:
    """A server in a process, and the page that it serves."""

    def __init__(self, desk: Desk) -> None:
        self.process = desk.spawn("serve", "--port", "0", stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        self.served = Served.told(self.process.stderr.readline().decode())

    def answers(self) -> bool:
        return b"8081" in self.served.get("/api/search?query=staging+port").body


def test_a_search_beside_a_server_is_answered_by_it(desk: Desk) -> None:
    alone = desk.alone("search", "staging port", "--json")
    server = Server(desk)
    found = desk.wait_ready()
    assert (found["pid"], found["hosted"]) == (server.process.pid, True)
    beside = desk.run("search", "staging port", "--json")
    assert _TIMES.sub(b"", beside.stdout) == _TIMES.sub(b"", alone.stdout)
    assert desk.status()["answered"] == 1
    (desk.root / "memory/new.md").write_text("The walrus was seen at noon.\n")
    assert "walrus" in desk.run("search", "walrus").stdout.decode()
    assert desk.status()["answered"] == 2
    assert "a part of notewell serve" in desk.run("engine", "status").stdout.decode()
    assert server.answers()


def test_it_stays_when_nobody_has_used_it_for_long(desk: Desk) -> None:
    desk.env["NOTEWELL_ENGINE_IDLE_S"] = "0.01"
    server = Server(desk)
    desk.wait_ready()
    assert server.answers()
    assert desk.status()["pid"] == server.process.pid


def test_stop_ends_the_engine_and_not_the_server(desk: Desk) -> None:
    desk.alone("search", "staging port")
    server = Server(desk)
    desk.wait_ready()
    desk.run("engine", "stop")
    assert desk.status() == {}
    assert server.answers()
    assert server.process.poll() is None
    desk.run("search", "staging port")  # starts one that is not part of a server
    assert desk.wait_ready()["pid"] != server.process.pid


def test_another_version_ends_the_engine_and_not_the_server(desk: Desk) -> None:
    server = Server(desk)
    desk.wait_ready()
    with desk.place.connect(within_s=60.0) as made:
        made.sendall(b'{"notewell": "99.0", "call": "search"}\n')
        assert b'"notewell"' in made.recv(1000)
    until(lambda: not os.path.exists(desk.place.address), "the engine has ended")
    assert server.answers()


def test_beside_an_engine_a_server_takes_over_when_that_ends(desk: Desk) -> None:
    engine = desk.start()
    server = Server(desk)
    assert server.answers()
    assert desk.status()["pid"] == engine.pid
    desk.run("engine", "stop")
    until(lambda: desk.status().get("pid") == server.process.pid, "the server is the engine")


def test_a_server_that_hangs_is_not_killed(desk: Desk) -> None:
    server = Server(desk)
    desk.wait_ready()
    server.process.send_signal(signal.SIGSTOP)
    assert not end_process(desk.place)
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    server.process.send_signal(signal.SIGCONT)
    assert server.answers()


def test_one_that_was_killed_leaves_nothing_in_the_way(desk: Desk) -> None:
    desk.alone("search", "staging port")
    server = Server(desk)
    desk.wait_ready()
    server.process.kill()
    server.process.wait(timeout=30)
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    found = desk.wait_ready()
    assert not found["hosted"]
    assert end_process(desk.place), "it is not taken for a server"


def test_where_engines_are_not_wanted_a_server_is_none(desk: Desk) -> None:
    desk.env["NOTEWELL_ENGINE_ENABLED"] = "0"
    server = Server(desk)
    assert server.answers()
    assert not os.path.exists(desk.place.address)


def test_a_server_that_ends_leaves_no_socket(desk: Desk) -> None:
    server = Server(desk)
    desk.wait_ready()
    server.process.send_signal(signal.SIGINT)
    server.process.wait(timeout=30)
    assert not os.path.exists(desk.place.address)
