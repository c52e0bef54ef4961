"""A real engine beside real commands: it answers as they would, and never lives too long."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from notewell.store.lock import locked
from notewell.surfaces.engine.attach import NoAnswerError, ask
from notewell.surfaces.engine.place import Place, secret_of
from tests.surfaces.engine.conftest import NOTEWELL, Desk, until

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sockets with a path")
_TIMES = re.compile(rb'"(?:took_ms|elapsed_ms)": [0-9.e-]+|\d+\.\d ms')
PROMPT = b'{"prompt": "which port does staging answer on?", "session_id": "%s", "cwd": "%s"}'

LINES = [
    ("search", "staging port"),
    ("staging", "port", "--json"),
    ("search", "staging port", "--explain", "-k", "1"),
    ("search", "deploy", "--format", "context", "--budget-tokens=300"),
    ("search", "café", "--since", "2026-02", "--all"),
    ("search", "部署", "--format=json"),
    ("serach", "staging port"),
    ("search", "nothing of the kind", "--path", "nowhere"),
]


def test_it_prints_what_a_command_of_its_own_prints(desk: Desk) -> None:
    desk.start()
    for number, line in enumerate(LINES):
        alone = desk.alone(*line)
        for _ in range(2):
            beside = desk.run(*line)
            assert _TIMES.sub(b"", beside.stdout) == _TIMES.sub(b"", alone.stdout), line
            assert beside.stderr == alone.stderr
        assert desk.status()["answered"] == 2 * number + 2, f"nobody asked the engine: {line}"


def test_it_colours_for_a_terminal_as_the_command_would(desk: Desk) -> None:
    desk.start()
    given: dict[str, Any] = {
        "line": ["search", "staging port"],
        "plain": False,
        "encodings": [["utf-8", "strict"], ["utf-8", "strict"]],
    }
    assert b"\x1b[" in ask(desk.place, "search", terminals=[False, True, True], **given).out
    assert b"\x1b[" not in ask(desk.place, "search", terminals=[False, False, True], **given).out
    plain = {**given, "plain": True}
    assert b"\x1b[" not in ask(desk.place, "search", terminals=[False, True, True], **plain).out


def test_what_fails_is_left_to_the_command(desk: Desk) -> None:
    desk.start()
    words = [*NOTEWELL, "search", "port", "--since", "no such day", "--json"]
    done = subprocess.run(
        words, cwd=desk.root, env=desk.env, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "argument"
    assert desk.status()["ready"]


def test_what_was_saved_a_moment_ago_is_found_and_nothing_else_is_looked_at(desk: Desk) -> None:
    desk.start()
    for number in range(5):
        (desk.root / f"memory/new-{number}.md").write_text(
            f"Walrus number {number} was seen at noon.\n"
        )
        assert (
            f"new-{number}.md"
            in desk.run("search", f"walrus number {number}", "-k1").stdout.decode()
        )
    assert desk.status()["answered"] == 5
    (desk.root / "memory/new-4.md").unlink()
    assert "new-4.md" not in desk.run("search", "walrus number 4", "--json").stdout.decode()
    assert desk.status()["looks"] == ""


def test_where_notifications_prove_nothing_it_says_so_and_looks(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("The walrus is elsewhere.\n")
    (desk.root / "memory/linked.md").symlink_to(elsewhere)
    desk.start()
    (desk.root / "memory/late.md").write_text("A late otter.\n")
    assert "late.md" in desk.run("search", "otter").stdout.decode()
    assert "links" in desk.status()["looks"]
    assert "looks at every file" in desk.run("engine", "status").stdout.decode()


def test_a_search_with_other_settings_is_not_answered_by_it(desk: Desk) -> None:
    desk.start()
    desk.run("search", "staging port", NOTEWELL_SEARCH_LIMIT="1")
    desk.run("search", "staging port", "--model", "none")
    desk.run("search", "staging port", "--setting", "search.limit=1")
    assert desk.status()["answered"] == 0


def test_changed_settings_end_it(desk: Desk) -> None:
    engine = desk.start()
    (desk.root / "notewell.toml").write_text("[search]\nlimit = 1\n")
    found = json.loads(desk.run("search", "staging port", "--all", "--json").stdout)
    assert len(found["results"]) == 1
    assert engine.wait(timeout=30) == 0


def test_the_first_search_starts_one_and_stop_ends_it(desk: Desk) -> None:
    assert desk.status() == {}
    desk.run("search", "staging port")
    pid = desk.wait_ready()["pid"]
    desk.run("search", "staging port")
    assert desk.status()["answered"] == 1
    told = json.loads(desk.run("engine", "status", "--json").stdout)["engines"]
    assert [one["pid"] for one in told] == [pid]
    assert f"process {pid}" in desk.run("engine", "stop").stdout.decode()
    until(lambda: not Path(f"/proc/{pid}").exists(), "it has ended")
    assert "no engine runs" in desk.run("engine", "status").stdout.decode()


def test_without_notes_or_where_it_is_not_wanted_none_is_started(
    desk: Desk, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    desk.run("search", "anything", "-w", str(empty))
    (Path(desk.env["HOME"]) / ".config/notewell").mkdir(parents=True)
    (Path(desk.env["HOME"]) / ".config/notewell/config.toml").write_text(
        "[engine]\nenabled = false\n"
    )
    desk.run("search", "staging port")
    assert os.listdir(Path(desk.env["XDG_RUNTIME_DIR"]) / "notewell") == []


def test_of_two_that_start_at_once_one_serves_and_the_other_leaves(desk: Desk) -> None:
    desk.alone("search", "anything")
    both = [desk.spawn("engine", "run", stderr=subprocess.PIPE) for _ in range(2)]
    pid = desk.wait_ready()["pid"]
    (other,) = [one for one in both if one.pid != pid]
    assert other.wait(timeout=60) == 0
    assert desk.status()["pid"] == pid


def test_it_ends_when_nobody_uses_it(desk: Desk) -> None:
    desk.env["NOTEWELL_ENGINE_IDLE_S"] = "1"
    engine = desk.spawn("engine", "run", "-w", str(desk.root))
    assert engine.wait(timeout=60) == 0
    assert not os.path.exists(desk.place.address)


def test_it_ends_when_its_socket_is_gone_as_after_a_logout(desk: Desk) -> None:
    engine = desk.start()
    os.unlink(desk.place.address)
    assert engine.wait(timeout=60) == 0


def test_another_version_ends_it_and_gets_a_new_one(desk: Desk) -> None:
    desk.alone("search", "anything")
    old = (
        "import notewell; notewell.__version__ = '0.0.9'; from notewell.surfaces.cli.main "
        "import main; main()"
    )
    engine = subprocess.Popen(
        [sys.executable, "-c", old, "engine", "run"], cwd=desk.root, env=desk.env
    )
    desk.processes.append(engine)
    until(lambda: os.path.exists(desk.place.address), "it listens")
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    assert engine.wait(timeout=30) == 0
    assert desk.wait_ready()["pid"] != engine.pid


def test_a_window_of_an_old_version_does_not_end_a_new_engine(desk: Desk) -> None:
    engine = desk.start()
    made = desk.place.connect(within_s=60.0)
    made.sendall(b'{"notewell": "0.0.9", "call": "mcp", "resumes": true}\n')
    assert b'"notewell"' in made.recv(1000)
    made.close()
    assert desk.status()["pid"] == engine.pid


def test_a_command_beside_one_that_hangs_or_was_killed_answers_itself(desk: Desk) -> None:
    desk.alone("search", "anything")  # so that it does not hang in the middle of the first sync
    engine = desk.start()
    engine.send_signal(signal.SIGSTOP)
    with pytest.raises(NoAnswerError) as raised:
        ask(desk.place, "search", line=["search", "x"])
    assert raised.value.hung
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    engine.kill()
    engine.wait(timeout=30)
    assert os.path.exists(desk.place.address)  # nobody could remove it
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    assert desk.wait_ready()["pid"] != engine.pid


def test_one_that_hangs_is_ended_by_the_next(desk: Desk) -> None:
    desk.alone("search", "anything")  # so that it does not hang in the middle of the first sync
    engine = desk.start()
    engine.send_signal(signal.SIGSTOP)
    desk.spawn("engine", "run")
    assert engine.wait(timeout=60) == -signal.SIGKILL
    assert desk.wait_ready()["pid"] != engine.pid


def test_stop_ends_one_that_hangs(desk: Desk) -> None:
    desk.alone("search", "anything")  # so that it does not hang in the middle of the first sync
    engine = desk.start()
    engine.send_signal(signal.SIGSTOP)
    desk.run("engine", "stop")
    assert engine.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\n",
        b"\xff\x00\n",
        b"[]\n",
        b"{}\n",
        b'{"notewell": 7}\n',
        b'{"call": "search"}\n',
        b"{" * 100_000,
    ],
)
def test_what_makes_no_sense_is_not_answered_and_harms_nobody(desk: Desk, sent: bytes) -> None:
    desk.start()
    made = desk.place.connect(within_s=30.0)
    made.sendall(sent)
    made.shutdown(socket.SHUT_WR)
    assert made.recv(1000) == b""
    made.close()
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    assert desk.status()["answered"] == 1


def test_only_its_user_can_reach_it(desk: Desk) -> None:
    desk.start()
    assert os.stat(desk.place.address).st_mode & 0o777 == 0o600
    assert os.stat(desk.place.folder).st_mode & 0o777 == 0o700


def test_over_a_port_it_answers_only_who_knows_the_secret(desk: Desk) -> None:
    """As where there are no sockets with a path."""
    place = Place(os.path.join(desk.env["XDG_RUNTIME_DIR"], "port"), "engine", local=False)
    os.mkdir(place.folder, 0o700)
    code = (
        "import os, sys; from pathlib import Path; "
        "from notewell.surfaces.cli.options import Workspace\n"
        "from notewell.surfaces.engine.daemon import serve; "
        "from notewell.surfaces.engine.place import Place\n"
        "serve(Workspace(Path(sys.argv[1]), {}), "
        "Place(sys.argv[2], 'engine', local=False), os.environ)"
    )
    command = [sys.executable, "-c", code, str(desk.root), place.folder]
    engine = subprocess.Popen(command, env=desk.env)
    desk.processes.append(engine)

    def ready() -> bool:
        try:
            return bool(json.loads(ask(place, "status", silence_s=60.0).out)["ready"])
        except NoAnswerError:
            return False

    until(ready, "an engine is ready")
    assert os.stat(place.address).st_mode & 0o777 == 0o600
    given = {"terminals": [False] * 3, "encodings": [["utf-8", "strict"]] * 2}
    assert (
        b"8081"
        in ask(place, "search", silence_s=60.0, line=["search", "staging port"], **given).out
    )
    port, _ = secret_of(place.address)
    with socket.create_connection(("127.0.0.1", port), 30.0) as stranger:
        stranger.sendall(
            b"0" * 64 + b"\n" + b"1" * 64 + b'\n{"notewell": "0.1.0", "call": "status"}\n'
        )
        lines = stranger.makefile("rb").read().splitlines()
    assert len(lines) == 1, "its own proof, and no word more"
    ask(place, "stop", silence_s=60.0)
    assert engine.wait(timeout=60) == 0
    assert not os.path.exists(place.address)


def hooked(desk: Desk, session: str, event: str = "prompt") -> bytes:
    return PROMPT % (session.encode(), os.fsencode(desk.root)) if event == "prompt" else b"{}"


def test_a_hook_beside_it_gives_what_it_gives_alone(desk: Desk) -> None:
    desk.start()
    alone = desk.alone("hook", "prompt", sent=hooked(desk, "one")).stdout
    beside = desk.run("hook", "prompt", sent=hooked(desk, "two")).stdout
    assert b"8081" in beside
    assert beside == alone
    assert desk.status()["answered"] == 1
    assert desk.run("hook", "prompt", sent=hooked(desk, "two")).stdout == b"", (
        "nothing twice in a session"
    )
    assert desk.run("hook", "prompt", sent=b'{"prompt": "ok thanks"}').stdout == b""
    assert (
        desk.run("hook", "session-start", sent=b"{}").stdout
        == desk.alone("hook", "session-start", sent=b"{}").stdout
    )
    desk.run("hook", "session-end", sent=b"{}")
    assert desk.status()["answered"] == 5


def test_a_hook_starts_one_for_the_next(desk: Desk) -> None:
    desk.alone("search", "anything")
    assert b"8081" in desk.run("hook", "prompt", sent=hooked(desk, "one")).stdout
    desk.wait_ready()
    assert b"8081" in desk.run("hook", "prompt", sent=hooked(desk, "two")).stdout
    assert desk.status()["answered"] == 1


def test_there_are_not_too_many(desk: Desk, tmp_path: Path) -> None:
    from notewell.surfaces.engine.launch import MOST

    desk.start()
    taken = []
    for number in range(MOST - 1):
        other = desk.place._replace(name=f"{number:024}")
        taken.append(other.listen())
    wide = tmp_path / "wide"
    (wide / "memory").mkdir(parents=True)
    (wide / "memory/a.md").write_text("An otter.\n")
    desk.run("search", "otter", "-w", str(wide))
    assert len(os.listdir(desk.place.folder)) == MOST + 1, "sockets and one lock"
    for one in taken:
        one.close()
    desk.run("search", "otter", "-w", str(wide))
    until(
        lambda: len(json.loads(desk.run("engine", "status", "--json").stdout)["engines"]) == 2,
        "another one runs",
    )


@pytest.mark.parametrize(
    "line",
    [
        ["engine", "stop"],
        ["remember", "A walrus."],
        ["index", "--force"],
        ["config"],
        ["mcp"],
        ["get", "x"],
    ],
)
def test_it_answers_searches_and_no_other_command(desk: Desk, line: list[str]) -> None:
    desk.start()
    before = sorted(desk.root.rglob("*.md"))
    given: dict[str, Any] = {"terminals": [False] * 3, "encodings": [["utf-8", "strict"]] * 2}
    with pytest.raises(NoAnswerError):
        ask(desk.place, "search", line=line, silence_s=5.0, **given)
    for call in ("remember", "config", "", "__init__"):
        with pytest.raises(NoAnswerError):
            ask(desk.place, call, line=line, silence_s=5.0, **given)
    assert desk.status()["answered"] == 0
    assert sorted(desk.root.rglob("*.md")) == before


def test_a_project_with_modules_of_its_own_gets_its_engine(desk: Desk) -> None:
    for name in ("click", "token", "queue", "json"):
        (desk.root / f"{name}.py").write_text("OURS = 1\n")
    (desk.root / "numpy").mkdir()
    (desk.root / "numpy/__init__.py").write_text("OURS = 1\n")
    desk.run("search", "staging port")
    desk.wait_ready()
    assert "8081" in desk.run("search", "staging port").stdout.decode()
    assert desk.status()["answered"] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_it_keeps_no_folder_of_its_callers_in_use(desk: Desk, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    words = [
        sys.executable,
        "-P",
        "-m",
        "notewell",
        "search",
        "staging port",
        "-w",
        os.path.relpath(desk.root, stick),
    ]
    subprocess.run(words, cwd=stick, env=desk.env, capture_output=True, check=True, timeout=60)
    process = Path("/proc", str(desk.wait_ready()["pid"]))
    used = [os.readlink(process / "cwd")]
    for one in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed since it was listed
            used.append(os.readlink(one))
    assert used[0] == "/"
    assert not [one for one in used if one.startswith(str(stick))]


def test_one_that_ends_leaves_no_file(desk: Desk) -> None:
    desk.run("search", "staging port")
    pid = desk.wait_ready()["pid"]
    desk.run("engine", "stop")
    until(lambda: not Path(f"/proc/{pid}").exists(), "it has ended")
    assert os.listdir(desk.place.folder) == []


def test_what_killed_ones_have_left_is_removed_and_nothing_else(desk: Desk) -> None:
    engine = desk.start()
    engine.kill()
    engine.wait(timeout=30)
    folder = Path(desk.place.folder)
    old, young, held = (Place(str(folder), letter * 24) for letter in "abc")
    for file in (old.begun, old.host, young.begun, young.lock, held.host):
        Path(file).write_text("")
    os.utime(old.begun, (1, 1))
    (folder / "something else").write_text("")
    with locked(Path(held.lock), wait_s=0.0):  # one that is being started
        desk.run("engine", "status")
        assert sorted(os.listdir(folder)) == sorted(
            [
                "something else",
                *map(os.path.basename, (young.begun, young.lock, held.lock, held.host)),
            ]
        )
    os.utime(young.begun, (1, 1))
    desk.start()  # an engine does the same as soon as it has time
    ours = {os.path.basename(file) for file in (desk.place.address, desk.place.lock)}
    until(lambda: set(os.listdir(folder)) == {"something else", *ours}, "all else is gone")


def test_a_hook_is_about_the_workspace_that_its_caller_found(desk: Desk, tmp_path: Path) -> None:
    """By a variable that the engine does not share, and from a folder that it does not work in."""
    desk.env["NOTEWELL_HOOK_DEADLINE_S"] = "60"
    desk.start()
    sent = PROMPT % (b"%s", os.fsencode(tmp_path))
    alone = desk.run(
        "hook", "prompt", sent=sent % b"one", NOTEWELL_WORKSPACE=".", NOTEWELL_ENGINE_ENABLED="0"
    ).stdout
    beside = desk.run("hook", "prompt", sent=sent % b"two", NOTEWELL_WORKSPACE=".").stdout
    named = desk.run("hook", "prompt", "-w", ".", sent=sent % b"three").stdout
    assert b"8081" in alone
    assert alone == beside == named
    assert desk.status()["answered"] == 2
