"""`notewell hook` in a process of its own: it never fails its host, and ends in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.surfaces.cli import hooking
from notewell.surfaces.cli.commands import run
from notewell.surfaces.cli.hooking import run as run_hook
from notewell.surfaces.hooks.deadline import Sent
from tests.conftest import Write

CLI = [sys.executable, "-m", "notewell"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_HOOK_CONFIDENCE", "0.2")
    monkeypatch.setenv("NOTEWELL_HOOK_DEADLINE_S", "60")
    return tmp_path / "state/notewell"


@pytest.fixture
def notes(root: Path, write: Write) -> Path:
    write("memory/2026-09-03.md", "# Staging\n\nThe staging host answers on port 9443.\n")
    with Memory.open(root) as memory:
        memory.sync()
    return root


def hook(*words: str, sent: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*CLI, "hook", *words], input=sent, capture_output=True, timeout=60, check=False
    )


def asked(folder: Path) -> bytes:
    return json.dumps(
        {"session_id": "s", "cwd": str(folder), "prompt": "which port does staging answer on"}
    ).encode()


def test_a_host_gets_its_json_and_a_person_the_log(
    notes: Path, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    done = hook("prompt", "--host", "claude-code", sent=asked(notes))
    assert (done.returncode, done.stderr) == (0, b"")
    assert "9443" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert run(["hook", "log", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["injected"]
    assert entry["passages"][0]["citation"] == "memory/2026-09-03.md#L3"
    assert run(["hook", "useless", entry["id"]]) == 0
    assert "useless" in capsys.readouterr().out
    assert run(["hook", "log"]) == 0
    assert '"which port does staging answer on"' in capsys.readouterr().out
    assert not (state / "errors.log").exists()


@pytest.mark.parametrize("sent", [b"", b"\xff["])
def test_whatever_is_sent_it_does_not_fail(sent: bytes, tmp_path: Path) -> None:
    done = subprocess.run(
        [*CLI, "hook", "prompt"],
        input=sent,
        capture_output=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "words", [["prompt", "--host", "nobody"], ["prompt", "--no-such"], ["stop", "--budget", "x"]]
)
def test_a_wrong_command_line_does_not_fail_either(
    words: list[str], state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_hook(["hook", *words]) == 0
    assert capsys.readouterr() == ("", "")
    assert (state / "errors.log").exists()


NEWER = [
    ["post-tool"],
    [],
    ["-x"],
    ["--host", "nobody", "prompt"],
    ["--host", "codex", "post-tool", "--new", "x"],
]


@pytest.mark.parametrize(
    "words", [*(["hook", *one] for one in NEWER), ["--json", "hook", "post-tool"]]
)
def test_a_line_of_a_newer_plugin_never_stops_its_agent(words: list[str], state: Path) -> None:
    """An exit code of 2 would, and what is on stdout would be read."""
    done = subprocess.run([*CLI, *words], input=b"{}", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (state / "errors.log").exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_person_at_a_terminal_is_told_what_is_wrong_with_a_line() -> None:
    terminal, ours = os.openpty()
    done = subprocess.run(
        [*CLI, "hook", "promt"], stdin=ours, capture_output=True, timeout=60, check=False
    )
    os.close(terminal)
    os.close(ours)
    assert done.returncode == 2
    assert b"'promt' is not one of" in done.stderr


def test_a_host_that_takes_all_the_time_leaves_none_for_the_work(
    notes: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is that of the whole hook: what stdin took is gone, also where a command read it
    before.
    """

    class Late(Sent):
        def __init__(self, spent_s: float, said: bytes | None) -> None:
            self.spent, self.said = spent_s, said

        def within(self, seconds: float) -> bytes | None:
            return self.said

        def spent_s(self) -> float:
            return self.spent

    left: list[float] = []

    def working(seconds: float, _work: object) -> bytes:
        left.append(seconds)
        return b""

    monkeypatch.setattr(hooking, "within", working)
    assert run_hook(["hook", "prompt"], Late(20.0, b"{}")) == 0
    assert left == [40.0]
    assert run_hook(["hook", "prompt"], Late(60.5, None)) == 0
    assert left == [40.0], "nothing is begun"
    assert "not done after 60 s" in (state / "errors.log").read_text()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("engines", ["0", "1"])
def test_it_ends_at_its_deadline_even_if_the_host_never_stops_talking(
    notes: Path, state: Path, monkeypatch: pytest.MonkeyPatch, engines: str
) -> None:
    monkeypatch.setenv("NOTEWELL_ENGINE_ENABLED", engines)
    monkeypatch.setenv("NOTEWELL_HOOK_DEADLINE_S", "0.3")
    with subprocess.Popen(
        [*CLI, "hook", "prompt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as host:
        assert host.wait(timeout=60) == 0
        assert host.stdout is not None
        assert host.stdout.read() == b""
    assert "not done after 0.3 s" in (state / "errors.log").read_text()


def test_a_host_that_went_away_is_no_failure(notes: Path, state: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [*CLI, "hook", "session-start", "--host", "openclaw"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        assert process.communicate(asked(notes), timeout=60)[1] == b""
    assert process.returncode == 0
    assert not (state / "errors.log").exists()


def test_settings_that_cannot_be_read_do_not_fail_it(
    notes: Path, monkeypatch: pytest.MonkeyPatch, state: Path
) -> None:
    monkeypatch.setenv("NOTEWELL_HOOK_DEADLINE_S", "soon")
    done = hook("prompt", sent=asked(notes))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    said = (state / "errors.log").read_text()
    assert "hook.deadline_s" in said or "not done after 3 s" in said, (
        "on a busy machine the usual deadline comes first"
    )


def test_keeping_ends_by_itself(notes: Path, write: Write) -> None:
    write("memory/new.md", "# New\n\nThe zebra budget is 12.\n")
    done = hook("keep", "--workspace", str(notes), sent=b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    with Memory.open(notes) as memory:
        assert memory.search("zebra budget", sync=False).hits


def test_small_talk_loads_no_engine() -> None:
    code = (
        "import sys; from notewell.surfaces.cli import hooking, main; "
        "LOADED = {'apsw', 'numpy', 'notewell.memory'};"
        "hooking.within = lambda _s, work: print(work(), *sorted(LOADED & set(sys.modules)));"
        "hooking._record = lambda *_: None; sys.argv = ['notewell', 'hook', 'prompt']; main.main()"
    )
    sent = b'{"prompt": "ok thanks"}'
    done = subprocess.run(
        [sys.executable, "-c", code], input=sent, capture_output=True, timeout=30, check=True
    )
    assert (done.stdout, done.stderr) == (b"b''\n", b"")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["useless"], "nothing is named"),
        (["log", "x"], "takes no"),
        (["useless", "x"], "nothing that was"),
    ],
)
def test_what_a_person_gets_wrong_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hook", *words]) == 2
    assert said in capsys.readouterr().err


def test_help_is_help(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_hook(["hook", "prompt", "--help"]) == 0
    assert "Usage: notewell hook" in capsys.readouterr().out
    assert not (state / "errors.log").exists()


def test_an_empty_log_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hook", "log"]) == 0
    assert capsys.readouterr().out == "nothing was given to a model yet\n"
