"""A caller meets an engine that is gone, silent, strange or of another version: it notices, and
says what is next.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from notewell import __version__
from notewell.surfaces.engine import attach as attach_module
from notewell.surfaces.engine import place as place_module
from notewell.surfaces.engine.attach import NoAnswerError, ask
from notewell.surfaces.engine.launch import refused
from notewell.surfaces.engine.place import Peer, Place, runtime

HELLO = json.dumps({"notewell": __version__, "ready": True}).encode() + b"\n"
Play = Callable[[socket.socket], None]


@pytest.fixture(params=["socket", "port"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        yield Place(folder, "engine", request.param == "socket")


@contextlib.contextmanager
def played(place: Place, play: Play) -> Iterator[None]:
    """Somebody who listens at a place and does as told, once, after the proof of the secret if
    there is one.
    """
    listening = place.listen()
    done = threading.Event()

    def run() -> None:
        with contextlib.suppress(OSError), listening, listening.accept()[0] as one:
            if not place.local:
                lines = one.makefile("rb")
                nonce = lines.readline().decode().strip()
                secret = place_module.secret_of(place.address)[1]
                one.sendall(place_module.proof(secret, f"engine {nonce}") + b"\n")
                assert lines.readline().strip() == place_module.proof(secret, f"caller {nonce}")
            play(one)
            done.wait()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(60)


def _say(said: bytes, one: socket.socket) -> None:
    one.sendall(said)


def asked(place: Place) -> NoAnswerError:
    with pytest.raises(NoAnswerError) as raised:
        ask(place, "search")
    return raised.value


def test_it_takes_the_answer_in_parts_and_past_signs_of_life(place: Place) -> None:
    def play(one: socket.socket) -> None:
        for part in (
            HELLO[:5],
            HELLO[5:],
            b"\n",
            b"\n\n",
            b'{"out": 5, "err"',
            b": 3}\nhel",
            b"loerr",
        ):
            one.sendall(part)

    with played(place, play):
        assert ask(place, "search", silence_s=60.0) == (b"hello", b"err")


def test_nobody_there(place: Place) -> None:
    assert asked(place).start


def test_one_that_was_killed_has_left_its_place(place: Place) -> None:
    place.listen().close()
    assert asked(place).start


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens in these tests is this very process, which is never idle."""
    monkeypatch.setattr(attach_module, "is_busy", lambda made: False)


@pytest.mark.usefixtures("idle")
def test_one_that_is_silent_from_the_start(place: Place) -> None:
    with played(place, lambda one: None):
        found = asked(place)
    assert found.hung
    assert found.start


@pytest.mark.usefixtures("idle")
def test_one_that_hangs_after_its_greeting(place: Place) -> None:
    with played(place, lambda one: one.sendall(HELLO)):
        assert asked(place).hung


def test_one_that_works_on_a_busy_machine_is_waited_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[socket.socket] = []

    def busy(made: socket.socket) -> bool:
        asked_for.append(made)
        return True

    monkeypatch.setattr(attach_module, "is_busy", busy)

    def play(one: socket.socket) -> None:
        one.sendall(HELLO)
        while not asked_for:
            time.sleep(0.01)
        one.sendall(b'{"out": 2, "err": 0}\nok')

    with played(place, play):
        assert ask(place, "search").out == b"ok"
    assert asked_for


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_process_that_runs_is_busy_and_one_that_was_stopped_is_not() -> None:
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        place = Place(folder, "engine")
        code = (
            "import sys; from notewell.surfaces.engine.place import Place\n"
            "made = Place(sys.argv[1], 'engine').listen()\n"
            "while True: pass"
        )
        other = subprocess.Popen([sys.executable, "-c", code, folder])
        try:
            while not os.path.exists(place.address):
                time.sleep(0.01)
            with contextlib.closing(connected(place)) as made:
                assert place_module.is_busy(made)
                other.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
                assert not place_module.is_busy(made)
        finally:
            other.kill()
            other.wait(60)


def connected(place: Place) -> socket.socket:
    until = time.monotonic() + 60
    while True:
        try:
            return place.connect(within_s=60.0)
        except ConnectionRefusedError:  # bound, and about to listen
            assert time.monotonic() < until


@pytest.mark.parametrize("said", [b"", HELLO, HELLO + b'{"out": 500, "err": 0}\nhalf of it'])
def test_one_that_dies_in_the_middle(place: Place, said: bytes) -> None:
    def play(one: socket.socket) -> None:
        one.sendall(said)
        one.shutdown(socket.SHUT_RDWR)

    with played(place, play):
        found = asked(place)
    assert found.start
    assert not found.hung


def test_one_of_another_version(place: Place) -> None:
    with played(place, lambda one: one.sendall(b'{"notewell": "9.9.9", "ready": true}\n')):
        assert asked(place).start


def test_one_that_is_being_started_or_declines_is_left_alone(place: Place) -> None:
    for said in (
        HELLO.replace(b"true", b"false"),
        HELLO + b'{"declined": "it failed"}\n',
        b"SSH-2.0\n",
    ):
        with played(place, partial(_say, said)):
            assert not asked(place).start


def test_a_stranger_on_the_port_learns_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        place = Place(folder, "engine", local=False)
        listening = place.listen()
        heard: list[bytes] = []

        def stranger() -> None:
            with listening, listening.accept()[0] as one:
                heard.append(one.recv(1000))
                one.sendall(b"0" * 64 + b"\n")
                heard.append(one.recv(1000))

        thread = threading.Thread(target=stranger, daemon=True)
        thread.start()
        assert not asked(place).start
        thread.join(60)
        assert len(heard[0].strip()) == 64
        assert heard[1] == b""


def test_an_engine_of_another_user_is_not_asked(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not place.local:
        pytest.skip("a port has no owner")
    monkeypatch.setattr(place_module, "peer", lambda made: Peer(1, os.geteuid() + 1))
    with played(place, lambda one: one.sendall(HELLO)):
        assert not asked(place).start


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="asks the system")
def test_the_system_says_who_is_at_the_other_end(place: Place) -> None:
    if not place.local:
        pytest.skip("a port has no owner")
    with played(place, lambda one: one.sendall(HELLO)):
        made = place.connect(within_s=60.0)
        assert place_module.peer(made) == (os.getpid(), os.geteuid())
        made.close()


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path with what stands for /tmp, a home, and a folder of the session."""
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as folder:
        for name in ("tmp", "home", "session"):
            (Path(folder) / name).mkdir()
        monkeypatch.setattr(place_module, "_TEMPORARY", str(Path(folder, "tmp")))
        yield Path(folder)


def test_the_folder_is_the_users_alone_or_there_is_none(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_RUNTIME_DIR": str(base / "session")}
    folder = base / "session/notewell"
    second = str(base / f"tmp/notewell-{os.geteuid()}")
    assert runtime(env) == (str(folder), [])
    folder.chmod(0o755)
    assert runtime(env).folder == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert runtime(env) == (second, [f"{folder} is not a folder"])
    folder.unlink()
    folder.mkdir()
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    assert runtime({**env, "HOME": str(base / "home")}).folder is None, (
        "none of these is this user's"
    )


def test_a_path_that_is_too_long_for_a_socket_is_not_taken(base: Path, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    env = {"XDG_RUNTIME_DIR": str(long), "HOME": str(long)}
    assert runtime(env) == (str(base / f"tmp/notewell-{os.geteuid()}"), [])


def squat(where: Path, kind: str) -> None:
    """Another user who was there first."""
    if kind == "folder":
        where.mkdir()
        try:
            os.chown(where, 54321, -1)
        except PermissionError:
            pytest.skip("only root can make a folder of another user")
    elif kind == "link":
        where.symlink_to("/")
    else:
        where.write_text("")


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_whoever_was_first_in_tmp_keeps_no_engine_away_and_is_named(base: Path, kind: str) -> None:
    first = base / f"tmp/notewell-{os.geteuid()}"
    squat(first, kind)
    own = base / "home/.cache/notewell/run"
    found = runtime({"HOME": str(base / "home")})
    assert found.folder == str(own)
    assert own.stat().st_mode & 0o777 == 0o700
    reason = "belongs to another user (54321)" if kind == "folder" else "is not a folder"
    assert found.refused == [f"{first} {reason}"]
    (notice,) = refused({"HOME": str(base / "home")})
    assert notice.message.endswith(f"so engines listen in {own}")
    (notice,) = refused({})
    assert "there is no engine" in notice.message
    assert "XDG_RUNTIME_DIR" in notice.hint
