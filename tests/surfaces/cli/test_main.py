"""The installed command in a process of its own: what is loaded, what goes down a pipe, how it
ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from notewell import __version__
from notewell.surfaces.cli.commands import TOPICS, cli
from notewell.surfaces.cli.main import model_line
from tests.conftest import Write

CLI = [sys.executable, "-m", "notewell.surfaces.cli.main"]


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("MEMORY.md", "- Mira owns the billing service, née Größe 日本.\n")
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port moved to 8443.\n")
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_WORKSPACE", str(root))


def notewell(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*CLI, *arguments], input=stdin, capture_output=True, timeout=30, check=False
    )


def test_version_loads_nothing_heavy() -> None:
    code = (
        "import sys; from notewell.surfaces.cli.main import main; "
        "sys.argv = ['notewell', '--version']; main();"
        "print(*sorted({'click', 'apsw', 'numpy', 'onnxruntime', 'Stemmer'} & set(sys.modules)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    head, model, loaded = out.splitlines()
    assert head == f"notewell {__version__}"
    assert model.startswith(
        "model notewell-small (notewell-model 1.1.0: trained from multilingual-e5-small, int8"
    )
    assert model.endswith(
        ", sha256 722072f27f3d464ef79055192859c843e661a7b4f989b34b47e64943a4d0a94b"
    )
    assert loaded == ""


def test_version_says_where_the_model_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "notewell_model", None)
    assert model_line() == "no default model (pip install notewell-model)"


def test_a_keyword_search_needs_no_model() -> None:
    code = (
        "import sys; from notewell.surfaces.cli.commands import run;"
        "run(['search', 'port', '--model', 'none', '--json']);"
        "print(*sorted({'onnxruntime', 'simsimd', 'tokenizers'} & set(sys.modules)), "
        "file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout)["mode"] == "lexical"
    assert done.stderr == "\n"


NOTHING_NEW = """
import sys
from notewell.surfaces.cli.commands import run
assert run([*sys.argv[2:], "--model", "none"]) == 0
print(*sorted(set(sys.argv[1].split()) & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("command", [["search", "port", "--json"], ["index", "--json"]])
def test_a_process_that_finds_nothing_new_loads_only_what_it_needs(command: list[str]) -> None:
    notewell("index", "--model", "none")
    needless = ["fractions", "subprocess", "notewell.index.read_ahead"]
    needless += [
        f"notewell.notes.{name}"
        for name in ("forget", "remember", "whole_note", "link_walk", "timeline")
    ]
    needless += [
        "notewell.surfaces.install.command",
        "notewell.surfaces.cli.hooking",
        "notewell.surfaces.cli.engines",
    ]
    needless += ["numpy", "ctypes"] if command[0] == "index" else []
    start = [sys.executable, "-c", NOTHING_NEW, " ".join(needless)]
    done = subprocess.run(
        [*start, *command], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr.splitlines()[-1] == ""


def test_every_command_of_a_module_is_there() -> None:
    assert all(command.name == name for name, command in cli.commands.items())
    assert {name for names in TOPICS.values() for name in names} == set(cli.commands)


def test_two_searches_print_the_same_bytes_but_for_the_time() -> None:
    notewell("index")
    first, second = (
        notewell("search", "billing größe", "--json", "--now", "2026-06-01") for _ in range(2)
    )
    assert first.returncode == 0
    one, two = (done.stdout.splitlines() for done in (first, second))
    assert [line for line in one if b"took_ms" not in line] == [
        line for line in two if b"took_ms" not in line
    ]
    assert len([line for line in one if b"took_ms" in line]) == 1


def test_json_is_utf8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = notewell("search", "billing", "--json")
    assert "Größe 日本" in done.stdout.decode("utf-8")
    assert json.loads(done.stdout)["results"]


def test_text_for_people_survives_a_terminal_without_unicode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = notewell("billing")
    assert done.returncode == 0
    assert b"billing service" in done.stdout
    assert b"Traceback" not in done.stderr


def test_stdin_takes_a_question_with_any_bytes() -> None:
    done = notewell("-", "--json", stdin=b"staging \xff\x00 port\n")
    assert json.loads(done.stdout)["results"][0]["path"] == "memory/2026-02-10.md"


def test_a_reader_that_goes_away_is_no_failure() -> None:
    process = subprocess.Popen([*CLI, "config"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=30) == 0
    assert err == b""


def test_a_search_loads_no_reader_of_settings_that_nobody_has() -> None:
    code = (
        "import atexit, sys\natexit.register(lambda: print('tomllib' in sys.modules))\n"
        "from notewell.surfaces.cli.main import main\n"
        "sys.argv = ['notewell', 'search', 'staging']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.endswith("False\n")


def test_nothing_is_taken_apart_at_the_end_but_everybody_who_asked_is_told() -> None:
    code = (
        "import atexit, os, sys\natexit.register(print, 'told', flush=True)\n"
        "class Held:\n    def __del__(self, write=os.write):\n        write(1, b'taken apart')\n"
        "sys.held = Held()\n"
        "from notewell.surfaces.cli.main import main\n"
        "sys.argv = ['notewell', 'search', 'staging']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert "8443" in done.stdout
    assert done.stdout.endswith("told\n")


def test_ctrl_c_exits_130() -> None:
    process = subprocess.Popen(
        [*CLI, "search", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wanted = Path(os.environ["NOTEWELL_WORKSPACE"]) / ".notewell" / "index.sqlite"
    while not wanted.exists() and process.poll() is None:
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == b""
    assert err.strip().endswith(b"interrupted")
    assert b"Traceback" not in err


def test_a_wrong_option_exits_2_and_a_broken_index_path_1(tmp_path: Path) -> None:
    assert notewell("search", "--nonsense").returncode == 2
    (tmp_path / "file").write_text("")
    done = notewell("search", "port", "--index", str(tmp_path / "file" / "index.sqlite"))
    assert done.returncode == 1
    assert b"index.path" in done.stderr


def on_terminal(*arguments: str) -> bytes:
    """What a command prints when its output is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*CLI, *arguments], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(ours)
    process.wait(timeout=30)
    return said


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_colour_is_for_terminals_and_for_those_who_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"\x1b" not in on_terminal("search", "staging port")
    assert b"\x1b" not in on_terminal("get", "memory/none.md")
    monkeypatch.delenv("NO_COLOR")
    assert b"\x1b[33m\x1b[1mstaging" in on_terminal("search", "staging port")
    assert b"\x1b[31m" in on_terminal("get", "memory/none.md")
    done = notewell("search", "staging port")
    assert b"\x1b" not in done.stdout + done.stderr
    monkeypatch.setenv("TERM", "dumb")
    assert b"\x1b" not in on_terminal("index", "--force") + on_terminal("get", "memory/none.md")


LATE = """
import atexit, sys, threading
import notewell.embed.breaker  # what it does at the end comes after what is done here
from notewell.embed.local.packaged import LocalEmbedder

given_up, at_work, ending = threading.Event(), threading.Event(), threading.Event()
embed = LocalEmbedder.embed

def late(self, texts, role):
    given_up.wait()
    at_work.set()
    while True:  # native code, each time long enough for the end to come in the middle of it
        row = embed(self, ["staging port " * 200], role)
        if ending.is_set():
            return row

@atexit.register
def at_the_end():
    given_up.set()
    at_work.wait()
    ending.set()  # while native code is at work

LocalEmbedder.embed = late
"""
LIBRARY = """
from notewell import Memory
with Memory.open(sys.argv[1], embed__model="local", embed__deadline_s=0.01) as memory:
    print(*(n.code for n in memory.search("staging", sync=False).notices))
"""
COMMAND = """
from notewell.surfaces.cli.main import main
sys.argv[1:] = ["search", "staging", "--model", "local", "--no-sync", "--json",
    "--setting", "embed.deadline_s=0.01"]
main()
"""


@pytest.mark.parametrize("program", [LIBRARY, COMMAND])
def test_a_process_ends_well_while_a_model_that_was_given_up_is_still_at_work(
    root: Path, program: str
) -> None:
    assert notewell("index", "--model", "local").returncode == 0
    line = [sys.executable, "-c", LATE + program, str(root)]
    done = subprocess.run(line, capture_output=True, timeout=50, check=False)
    assert (done.returncode, done.stderr.count(b"terminate")) == (0, 0), done.stderr
    assert b"vector_failed" in done.stdout, done
