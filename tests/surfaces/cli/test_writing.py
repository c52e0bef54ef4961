"""remember, forget and watch on the command line."""

from __future__ import annotations

import datetime as dt
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.cli.commands import run
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]
CLI = [sys.executable, "-m", "notewell.surfaces.cli.main"]


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    write("MEMORY.md", "# Memory\n\n- Mira owns the billing service.\n")
    write(
        "memory/2026-02-10.md",
        "# Standup\n\nThe staging port moved to 8443.\n\nMore was said about lunch.\n",
    )
    monkeypatch.setenv("NOTEWELL_WORKSPACE", str(root))
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


def answer(capsys: Capture, *arguments: str) -> Any:
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_remember_answers_where_it_wrote(capsys: Capture, workspace: Path) -> None:
    done = answer(capsys, "remember", "The", "vendor call is on Friday.", "--tags", "calls")
    assert list(done) == [
        "written",
        "path",
        "start_line",
        "end_line",
        "citation",
        "id",
        "created",
        "notices",
    ]
    assert (done["written"], done["created"], done["notices"]) == (True, True, [])
    assert (
        (workspace / done["path"]).read_text().endswith("\nThe vendor call is on Friday. #calls\n")
    )
    for command in (
        ["get", done["id"]],
        ["why", "vendor call", done["id"]],
        ["forget", done["id"]],
    ):
        assert run(command) == 0
        assert capsys.readouterr().err == ""
    again = answer(capsys, "remember", "the vendor call is on friday")
    assert (again["written"], again["citation"]) == (False, done["citation"])
    assert run(["remember", "the vendor call is on friday"]) == 0
    assert "already there" in capsys.readouterr().out


def test_remember_reads_stdin_and_a_day(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("line one\r\n二\n".encode())))
    done = answer(capsys, "remember", "-", "--date", "2026-02-11", "--heading", "Notes")
    assert (
        workspace / "memory/2026-02-11.md"
    ).read_text() == "# 2026-02-11\n\n## Notes\nline one\n二\n"
    assert done["citation"] == "memory/2026-02-11.md#L4-L5"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe\x00")))
    assert run(["remember", "-"]) == 2
    assert "UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["", "--file", "memory/x.md"],
        ["x", "--file", "../x.md"],
        ["x", "--date", "no day"],
        ["x", "--supersedes", "zzzz"],
    ],
)
def test_remember_refuses_with_a_hint(capsys: Capture, arguments: list[str]) -> None:
    assert run(["remember", *arguments]) == 2
    assert "hint" in capsys.readouterr().err


def test_forget_shows_first_and_acts_when_told(capsys: Capture, workspace: Path) -> None:
    note = workspace / "memory/2026-02-10.md"
    before = note.read_text()
    shown = answer(capsys, "forget", "--query", "staging port")
    assert (shown["receipt"], shown["dry_run"], len(shown["passages"])) == (None, True, 1)
    assert shown["passages"][0]["text"] == "The staging port moved to 8443."
    assert run(["forget", "memory/2026-02-10.md:3"]) == 0
    out = capsys.readouterr().out
    assert "would be forgotten" in out
    assert "--yes" in out
    assert note.read_text() == before
    done = answer(capsys, "forget", "memory/2026-02-10.md:3", "--yes", "--from-files")
    assert note.read_text() == "# Standup\n\nMore was said about lunch.\n"
    assert Path(done["files"][0]["backup"]).read_text() == before
    assert done["proof"] == {
        "proved": True,
        "searched": 1,
        "checked": ["the bytes of the index"],
        "still_found": [],
        "lingering": [],
    }
    assert "8443" not in json.dumps({**done, "files": []}), "a receipt holds nothing of the text"
    undone = answer(capsys, "forget", "--undo", done["receipt"])
    assert undone == {"lifted": done["tombstones"], "backups": [done["files"][0]["backup"]]}


def test_forget_prints_its_receipt_for_people(capsys: Capture, workspace: Path) -> None:
    assert run(["forget", "memory/2026-02-10.md", "--yes", "--from-files", "--no-backup"]) == 0
    out = capsys.readouterr().out
    assert "deleted memory/2026-02-10.md, backup none" in out
    assert "nothing of it is left in answers or in the bytes of the index" in out
    receipt = out.partition("receipt ")[2][:10]
    assert run(["forget", "--undo", receipt]) == 0
    assert "3 tombstones removed" in capsys.readouterr().out
    assert run(["forget", "--query", "walrus"]) == 0
    assert capsys.readouterr().out == "nothing to forget\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["memory/none.md"],
        ["--undo", "0123456789"],
        ["--session", "nobody"],
        ["--before", "no day"],
        ["MEMORY.md", "--query", "x"],
        ["MEMORY.md", "--undo", "0123456789"],
    ],
)
def test_forget_refuses_what_it_cannot_understand(capsys: Capture, arguments: list[str]) -> None:
    assert run(["forget", *arguments, "--yes"]) == 2
    assert "hint" in capsys.readouterr().err


def test_a_sync_reports_what_it_left_out(capsys: Capture, write: Write) -> None:
    answer(capsys, "forget", "--query", "staging port", "--yes", "--everywhere")
    write("memory/copy.md", "# Copy\n\nThe staging port moved to 8443.\n")
    assert answer(capsys, "index")["forgotten"] == 1
    write("memory/copy.md", "# Copy\n\nagain: The staging port moved to 8443.\n", age_s=30)
    assert run(["index"]) == 0
    assert "1 forgotten passage left out" in capsys.readouterr().out


@pytest.mark.parametrize("how", [[], ["--poll", "0.1"]])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_tells_of_every_sync_and_ends_cleanly(
    workspace: Path, how: list[str], number: int
) -> None:
    process = subprocess.Popen(
        [*CLI, "watch", *how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines = [process.stderr.readline(), process.stderr.readline()]
    (workspace / "memory/new.md").write_text("a walrus")
    lines.append(process.stderr.readline())
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert any("watching" in line for line in lines[:2]), lines
    assert any("2 added" in line for line in lines[:2]), lines
    assert "1 added" in lines[2]
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_today_is_the_day_of_this_place(capsys: Capture) -> None:
    before = dt.date.today()  # noqa: DTZ011
    path = answer(capsys, "remember", "A thought of today.")["path"]
    assert path in {f"memory/{day}.md" for day in (before, dt.date.today())}  # noqa: DTZ011


def test_every_writing_command_has_help(capsys: Capture) -> None:
    for name in ("remember", "forget", "watch"):
        assert run([name, "--help"]) == 0
        assert f"notewell {name}" in capsys.readouterr().out


def test_forget_names_other_notes_with_the_same_text(capsys: Capture, write: Write) -> None:
    for name in ("mon", "tue"):
        write(f"memory/{name}.md", f"# {name}\n\nMeeting notes follow below, as ever.\n")
    assert run(["forget", "memory/mon.md:3"]) == 0
    out = capsys.readouterr().out
    assert "which stays there (--everywhere forgets it there too):\n  memory/tue.md#L3" in out
    assert run(["forget", "memory/mon.md:3", "--yes"]) == 0
    assert "checked: nothing of it from these notes is left" in capsys.readouterr().out
    assert run(["why", "meeting notes", "memory/mon.md:3"]) == 0
    out = capsys.readouterr().out
    assert "forgotten on " in out
    assert "the same text is in memory/tue.md#L3" in out
    done = answer(capsys, "forget", "memory/tue.md:3", "--everywhere", "--yes")
    assert (done["everywhere"], done["elsewhere"], done["proof"]["proved"]) == (True, [], True)
