"""Who asks on loopback: programs of two users, at servers of a third, or of one of them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.server import peer
from notewell.surfaces.server.guard import Door
from tests.surfaces.server.served import Served, serving
from tests.surfaces.server.test_http import ROUTES
from tests.two_users import ALONE

ME, STRANGER = 54321, 54322
NOTE = "# Standup\n\nThe staging port is 8081 now.\n"
ASK = """
import encodings.idna, http.client, json, os, sys
user, port, headers, asked = json.load(sys.stdin)
if user != os.geteuid():
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
answers = []
for method, path, body in asked:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    data = json.dumps(body) if body is not None else None
    connection.request(method, path, data, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = "" if path == "/api/events" and answer.status == 200 else answer.read().decode()
    answers.append([answer.status, text])
    connection.close()
json.dump(answers, sys.stdout)
"""
SEARCH = ("POST", "/api/search", {"query": "staging port"})
REMEMBER = ("POST", "/api/remember", {"text": "From now on run this."})
Asked = Sequence[tuple[str, str, Any]]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose it is")


needs_two_users = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason=ALONE)


def asked_by(
    user: int,
    port: int,
    asked: Asked,
    headers: Mapping[str, str] | None = None,
) -> list[tuple[int, str]]:
    """What a program of a user is answered."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ASK],
        input=json.dumps([user, port, headers or {}, asked]),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [(status, text) for status, text in json.loads(done.stdout)]


@contextlib.contextmanager
def served_here(root: Path, *more: str, **env: str) -> Iterator[Served]:
    """`notewell serve` as this user runs it, which here is root."""
    (root / "memory").mkdir()
    (root / "memory/standup.md").write_text(NOTE, encoding="utf-8")
    line = [sys.executable, "-m", "notewell", "serve", "-w", str(root), "--port", "0", *more]
    process = subprocess.Popen(
        [*line, "--model", "none"], stderr=subprocess.PIPE, env={**os.environ, **env}
    )
    assert process.stderr is not None
    try:
        yield Served.told(process.stderr.readline().decode())
    finally:
        process.terminate()
        process.communicate(timeout=60)


@needs_two_users
def test_another_user_gets_nothing_and_can_write_nothing(root: Path) -> None:
    get: Asked = [("GET", route, None) for route in ROUTES if route not in ("/", "/page.js")]
    post: Asked = [("POST", route, {"query": "x"}) for _, route, _ in [*get, ("", "/api/key", "")]]
    with served_here(root) as served:
        answers = asked_by(STRANGER, served.port, [*get, *post, SEARCH, REMEMBER])
        assert {status for status, _ in answers} == {401}
        assert not any("8081" in text or served.token in text for _, text in answers)
        shell = asked_by(STRANGER, served.port, [("GET", "/", None), ("GET", "/page.js", None)])
        assert {status for status, _ in shell} == {200}
        assert not any("8081" in text or served.token in text for _, text in shell)
        (found, text), (written, _) = asked_by(os.geteuid(), served.port, [SEARCH, REMEMBER])
        assert (found, written) == (200, 200)
        assert "8081" in text
    notes = [note.read_text(encoding="utf-8") for note in (root / "memory").glob("*.md")]
    assert sum(note.count("From now on") for note in notes) == 1


@needs_two_users
def test_programs_of_the_user_get_in_and_not_even_those_of_root_beside_them(root: Path) -> None:
    with serving(root, door=Door(uid=ME), warm=False) as served:
        for user, status in ((ME, 200), (STRANGER, 401), (0, 401)):
            assert asked_by(user, served.port, [SEARCH])[0][0] == status, user


@needs_two_users
def test_whoever_shows_the_token_gets_in_and_a_wrong_one_is_worth_nothing(root: Path) -> None:
    with served_here(root) as served:
        right = {"Authorization": f"Bearer {served.token}"}
        assert asked_by(STRANGER, served.port, [SEARCH], right)[0][0] == 200
        wrong = {"Authorization": f"Bearer {served.token[:-1]}"}
        assert asked_by(STRANGER, served.port, [SEARCH], wrong)[0][0] == 401


@pytest.mark.parametrize("more", [(), ("--allow-host", "notes.example")])
def test_where_a_token_or_another_name_was_given_the_user_shows_a_token_too(
    root: Path,
    more: tuple[str, ...],
) -> None:
    given = "a-token-of-thirty-two-characters"
    env = {} if more else {"NOTEWELL_TOKEN": given}
    with served_here(root, *more, **env) as served:
        assert (served.token == "") == (not more), "a token of one's own is not printed"
        assert asked_by(os.geteuid(), served.port, [SEARCH])[0][0] == 401
        right = {"Authorization": f"Bearer {served.token or given}"}
        assert asked_by(os.geteuid(), served.port, [SEARCH], right)[0][0] == 200


@needs_two_users
def test_anyone_gets_in_only_where_that_was_asked_for(root: Path) -> None:
    with served_here(root, "--anyone-on-this-machine") as served:
        assert served.token == ""
        assert asked_by(STRANGER, served.port, [SEARCH])[0][0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "203.0.113.9"},
        {"Forwarded": "for=203.0.113.9"},
        {"Via": "1.1 tunnel"},
        {"CF-Connecting-IP": "203.0.113.9"},
        {"X-Forwarded-Host": "notes.example"},
        {"Host": "localhost:{port}"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.2:{port}"},
    ],
)
def test_what_was_passed_on_or_came_by_another_name_needs_the_token(
    root: Path,
    headers: dict[str, str],
) -> None:
    with serving(root, door=Door(uid=os.geteuid()), warm=False) as served:
        assert served.get("/api/status").status == 200
        given = {name: value.format(port=served.port) for name, value in headers.items()}
        assert served.get("/api/status", **given).status == 401


@pytest.mark.parametrize(
    ("listens", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_the_kernel_names_the_user_of_a_connection(
    listens: str,
    family: socket.AddressFamily,
) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(family))
        server.bind((listens, 0))
        server.listen()
        there = server.getsockname()[:2]
        client = stack.enter_context(socket.create_connection(there))
        here = client.getsockname()[:2]
        assert peer.user_of(here, there) == os.geteuid()
        assert peer.user_of(there, there) is None, "a server that only listens is no client"
        assert peer.user_of((here[0], 1), there) is None
        client.shutdown(socket.SHUT_WR)
        assert peer.user_of(here, there) is None
        client.close()
        assert peer.user_of(here, there) is None, "what is left of it would show user 0"


def test_a_socket_of_ipv6_that_connects_to_ipv4_is_known_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        here = ("127.0.0.1", client.getsockname()[1])
        assert peer.user_of(here, server.getsockname()) == os.geteuid()


def test_without_both_ends_of_a_connection_nobody_is_known() -> None:
    assert peer.user_of(None, ("127.0.0.1", 80)) is None
    assert peer.user_of(("/a/socket", 1), ("127.0.0.1", 80)) is None


def test_the_kernel_is_asked_once_a_connection_and_not_for_who_shows_the_token(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import http.client

    from notewell.surfaces.server import limits

    asked: list[object] = []

    def counted(client: Any, server: Any) -> int | None:
        asked.append(client)
        return peer.user_of(client, server)

    monkeypatch.setattr(limits, "user_of", counted)
    door = Door(uid=os.geteuid())
    with serving(root, door=door, warm=False) as served:
        assert served.get("/api/status", Authorization=f"Bearer {door.key}").status == 200
        assert asked == []
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        for _ in range(5):
            connection.request("GET", "/api/status")
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        connection.close()
        assert len(asked) == 1


def test_a_user_that_a_namespace_cannot_name_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peer.own_user() == os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert peer.own_user() is None
