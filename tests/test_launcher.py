"""Nothing in a folder that is open can run: one module starts every process, and none finds its
modules there.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from notewell import launcher
from notewell.launcher import (
    NEUTRAL,
    Piped,
    can_start,
    command,
    detached,
    environment,
    has_ended,
    module_path,
)
from notewell.surfaces.cli.commands import cli
from notewell.surfaces.hooks.hosts import EVENTS, HOSTS

SOURCE = Path(__file__).parents[1] / "src/notewell"
DRIVER = Path(__file__).with_name("background.py")
PATIENCE_S = 60.0
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="becomes the parent of what is left behind"
)

# --- the source ---

STARTS = {
    "sys.executable",
    "subprocess",
    "multiprocessing",
    "ProcessPoolExecutor",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "os.fork",
    "os.forkpty",
    "os.system",
    "os.popen",
    "os.startfile",
    "os.posix_spawn",
    "os.posix_spawnp",
    "shutil.which",
    "pty",
    "webbrowser",
    "find_library",
    *(f"os.exec{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
    *(f"os.spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
}

# What may be named outside the launcher, and why.
ALLOWED = {
    "surfaces/hooks/deadline.py:os.fork": "a copy of this process, which has its modules",
    "surfaces/install/entries.py:sys.executable": "its folder, in which the program is looked for",
    "surfaces/install/events.py:subprocess": (
        "writes words as one line of the shell, and starts nothing"
    ),
}


def starters(text: str) -> Iterator[str]:
    """Whatever a source names that could start a process, or find a program to start."""
    nodes = list(ast.walk(ast.parse(text)))
    imports = [one for node in nodes if isinstance(node, ast.Import) for one in node.names]
    called = {one.asname: one.name for one in imports if one.asname}
    for node in nodes:
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            named = [
                module,
                *(one.name for one in node.names),
                *(f"{module}.{one.name}" for one in node.names),
            ]
        elif isinstance(node, ast.Attribute):
            named = [
                node.attr,
                *(
                    [f"{called.get(node.value.id, node.value.id)}.{node.attr}"]
                    if isinstance(node.value, ast.Name)
                    else []
                ),
            ]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("__import__", "import_module")
        ):
            named = [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
        elif isinstance(node, ast.Name):
            named = [node.id]
        yield from (one for one in named if one in STARTS or one.partition(".")[0] in STARTS)


def test_nothing_in_the_source_starts_a_process_but_the_launcher() -> None:
    found: set[str] = set()
    used: set[str] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for what in starters(path.read_text(encoding="utf-8")) if name != "launcher.py" else ():
            reason = f"{name}:{what.partition('.')[0] if what.startswith('subprocess') else what}"
            (used if reason in ALLOWED else found).add(reason)
    assert found == set()
    assert used == set(ALLOWED), "an exception that nothing needs"


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.execv(x, y)",
        "from os import fork",
        "from sys import executable",
        "asyncio.create_subprocess_exec(x)",
        "shutil.which('notewell')",
        "import os as o\no.system(x)",
        "__import__('subprocess').run(x)",
        "importlib.import_module('subprocess')",
    ],
)
def test_that_test_sees_every_form(text: str) -> None:
    assert list(starters(text))


# --- a hostile clone ---


def names() -> set[str]:
    """Every module that one of our processes could look for."""
    known = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}
    return {name for name in known if name.isidentifier()}


class Clone:
    """A folder of notes with a module for every name that Python may look for, and what those
    did.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder, self.log = folder, log
        code = f"with open({str(log)!r}, 'a') as log: print(__name__, __file__, file=log)\n"
        (folder / "memory").mkdir(parents=True)
        (folder / "memory/a.md").write_text(
            "# Cranes\n\nThe crane is tall and answers on port 9443.\n"
        )
        (folder / "notewell").mkdir()
        for name in ("__init__", "__main__"):
            (folder / f"notewell/{name}.py").write_text(code)
        for name in names() - {"notewell"}:
            (folder / f"{name}.py").write_text(code)
        folder.chmod(0o1777)  # as /tmp, where anybody may have put them

    @property
    def ran(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    base = tmp_path_factory.mktemp("hostile")
    return Clone(base / "clone", base / "ran")


@pytest.fixture
def clone(pristine: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clone]:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_HOOK_CONFIDENCE", "0.1")
    monkeypatch.setenv("NOTEWELL_HOOK_DEADLINE_S", "60")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", "")
    pristine.log.unlink(missing_ok=True)
    yield pristine
    pristine.log.unlink(missing_ok=True)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Engines are wanted, and end as soon as nobody asks them."""
    # a socket's path must be short
    with tempfile.TemporaryDirectory(prefix="nw", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setenv("NOTEWELL_ENGINE_IDLE_S", "0.01")
        monkeypatch.delenv("NOTEWELL_ENGINE_ENABLED")
        yield


def ended(
    folder: Path, *lines: dict[str, Any], env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """What commands said in a folder, after everything that they started has ended."""
    words = [
        {**one, "words": [sys.executable, "-P", "-m", "notewell", *one["words"]]} for one in lines
    ]
    done = subprocess.run(
        [sys.executable, "-P", str(DRIVER)],
        cwd=folder,
        input=json.dumps(words),
        capture_output=True,
        text=True,
        env=env or dict(os.environ),
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def hooked(event: str, host: str, folder: Path) -> dict[str, Any]:
    own = HOSTS[host]
    given = {
        own.session: f"{event} {host}",
        own.folder: str(folder),
        "prompt": "which port does the crane answer on?",
    }
    return {
        "words": ["hook", event, "--host", host],
        "sent": json.dumps({**given, "cwd": str(folder)}),
    }


# A command that is not here is run by its name alone.
WORDS = {
    "search": ["search", "crane"],
    "get": ["get", "memory/a.md"],
    "why": ["why", "crane", "memory/a.md"],
    "trace": ["trace", "memory/a.md"],
    "remember": ["remember", "The crane was painted."],
    "forget": ["forget", "memory/a.md"],
    "link": ["link", "memory/a.md", "memory/a.md"],
    "import": ["import", "click.py"],
    "migrate": ["migrate", "--to", "elsewhere.sqlite"],
    "install": ["install", "--print", "claude-code", "openclaw"],
    "hook": ["hook", "log"],
    "engine": ["engine", "status"],
    "init": ["init", "fresh"],
    "eval": ["eval", "mine"],
    "serve": ["serve", "--port", "0"],
    "demo": ["demo", "--to", "sample"],
    "doctor": ["doctor", "--deep"],
}
STOPPED = {"serve", "watch"}


@linux
@pytest.mark.parametrize("name", sorted(cli.commands))
def test_no_command_in_a_hostile_clone_runs_anything_of_it(clone: Clone, name: str) -> None:
    (told,) = ended(clone.folder, {"words": WORDS.get(name, [name]), "stops": name in STOPPED})
    assert "went wrong" not in told["err"]
    assert clone.ran == ""


def shapes() -> list[str]:
    """A host for each shape of answers."""
    return list({one.shape: name for name, one in HOSTS.items()}.values())


@linux
@pytest.mark.parametrize("host", shapes())
@pytest.mark.parametrize("event", [*EVENTS, "something-new"])
def test_no_hook_in_a_hostile_clone_runs_anything_of_it(
    clone: Clone, event: str, host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # nothing was kept a moment ago
    (told,) = ended(clone.folder, hooked(event, host, clone.folder))
    assert told["code"] == 0
    kept = [
        line for line in told["started"] if line[1:6] == ["-P", "-m", "notewell", "hook", "keep"]
    ]
    assert len(kept) == (event not in ("prompt", "something-new")), (
        "what is new is kept in the background"
    )
    assert told["started"] == kept
    assert clone.ran == ""


@linux
@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("how", ["search", "hook", "mcp"])
def test_an_engine_of_a_hostile_clone_runs_nothing_of_it(clone: Clone, how: str) -> None:
    ended(clone.folder, {"words": ["index"]})
    asked = {
        "search": {"words": ["search", "crane"]},
        "hook": hooked("session-start", "codex", clone.folder),
    }
    greeting = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    (told,) = ended(clone.folder, asked.get(how, {"words": ["mcp"], "sent": greeting}))
    assert told["code"] == 0
    assert ["engine", "run"] in [line[4:6] for line in told["started"]]
    assert clone.ran == ""


@linux
@pytest.mark.usefixtures("engines")
def test_in_a_folder_of_strangers_a_search_elsewhere_runs_nothing(clone: Clone, root: Path) -> None:
    """As `notewell -w ~/notes search crane` in /tmp."""
    (root / "MEMORY.md").write_text("The crane is tall.\n")
    first, _ = ended(clone.folder, *[{"words": ["search", "crane", "-w", str(root)]}] * 2)
    assert "MEMORY.md" in first["out"]
    assert clone.ran == ""


@linux
def test_the_driver_sees_what_runs_and_what_is_left(clone: Clone) -> None:
    """Or the tests above would prove nothing: `-m` without `-P` does run the clone."""
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-m', 'notewell', 'engine'])"
    words = json.dumps([{"words": [sys.executable, "-P", "-c", code]}])
    done = subprocess.run(
        [sys.executable, "-P", str(DRIVER)],
        cwd=clone.folder,
        input=words,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)[0]["started"] == [[sys.executable, "-m", "notewell", "engine"]]
    assert str(clone.folder) in clone.ran


def test_a_second_reader_runs_nothing_of_the_folder(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """As in an interactive Python, which itself looks for modules in the current folder."""
    from notewell.index.read_ahead import Reader, ReadingAhead, Task
    from notewell.sources.files import FileSource
    from notewell.text.chunk import ChunkSize
    from notewell.text.forgotten import Forgotten

    (root / "MEMORY.md").write_text("The crane is tall.\n")
    source = FileSource(root).detached()
    (document,) = source.scan().documents
    monkeypatch.chdir(clone.folder)
    monkeypatch.setattr(sys, "path", ["", str(clone.folder), *sys.path])
    made = ReadingAhead(Reader(ChunkSize(400, 80), Forgotten(())), [source], [Task(document, 0)])
    monkeypatch.undo()
    try:
        found = made.take(document)
    finally:
        made.close()
    assert found is not None
    assert found.what == "read"
    assert clone.ran == ""


# --- a process ---


def until(met: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.01)


def told_by(code: str, env: dict[str, str]) -> str:
    return Piped(["-c", code], env).answer(b"", within_s=PATIENCE_S).decode().strip()


@pytest.mark.parametrize("given", ["", ":", ".", "modules:", "{here}", "{here}/../clone"])
def test_no_form_of_a_path_to_modules_brings_the_current_folder_back(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(clone.folder)
    env = {**os.environ, "PYTHONPATH": given.replace(":", os.pathsep).format(here=clone.folder)}
    assert told_by("import json, sys; print(json.__file__, *sys.path)", env)
    assert clone.ran == ""


def test_what_its_user_installed_is_found_as_before(tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text("WORD = 'found'\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert told_by("import own_module; print(own_module.WORD)", env) == "found"


def test_it_works_in_a_folder_that_is_nobodys(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clone.folder)
    assert told_by("import os; print(os.getcwd())", dict(os.environ)) == NEUTRAL


def test_in_a_folder_that_was_deleted_a_process_starts_as_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    env = {**os.environ, "PYTHONPATH": f".{os.pathsep}{tmp_path}", "CODEX_HOME": "codex"}
    assert told_by("import os; print(os.environ['PYTHONPATH'])", env) == str(tmp_path)


def test_what_is_relative_means_the_same_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {
        "NOTEWELL_WORKSPACE": "notes",
        "CODEX_HOME": "codex",
        "TMPDIR": "tmp",
        "NOTEWELL_EMBED_MODEL": "./m",
    }
    made = environment(
        {**given, "HERMES_HOME": "/h", "QWEN_HOME": "", "XDG_STATE_HOME": "state", "TERM": "dumb"}
    )
    assert {name: made[name] for name in given} == {
        name: str(tmp_path / value.removeprefix("./")) for name, value in given.items()
    }
    assert (made["HERMES_HOME"], made["QWEN_HOME"], made["TERM"]) == ("/h", "", "dumb")
    assert made["XDG_STATE_HOME"] == "state", "the rules of XDG ignore it, here and there"
    assert environment({"NOTEWELL_EMBED_MODEL": "hashed"}) == {"NOTEWELL_EMBED_MODEL": "hashed"}


def test_a_path_to_modules_keeps_its_order(tmp_path: Path) -> None:
    assert module_path(["/b", "", "a", os.getcwd(), str(tmp_path), "/a"]) == [
        "/b",
        str(tmp_path),
        "/a",
    ]


def test_a_program_that_is_no_python_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_start()
    for name in ("/usr/bin/uwsgi", "", None):
        monkeypatch.setattr(sys, "executable", name)
        assert not can_start()
        with pytest.raises(OSError, match="not a Python that can be started again"):
            command("-m", "notewell")
    monkeypatch.undo()
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_start()


def test_what_is_detached_outlives_its_parent(tmp_path: Path) -> None:
    place = tmp_path / "done"
    late = f"import pathlib, sys; sys.stdin.read(); pathlib.Path({str(place)!r}).write_text('yes')"
    start = (
        f"import os; from {launcher.__name__} import detached; detached(['-c', {late!r}], "
        "os.environ)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", start], check=True, timeout=PATIENCE_S)
    until(lambda: place.exists() and place.read_text() == "yes", "it has written")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_what_was_detached_and_has_ended_leaves_nothing_behind() -> None:
    made = [detached(["-c", "pass"], os.environ) for _ in range(3)]
    until(lambda: all(map(has_ended, made)), "they have ended")
    until(
        lambda: not any(os.path.exists(f"/proc/{one}") for one in made),
        "the system has forgotten them",
    )


def test_one_that_takes_too_long_is_ended() -> None:
    made = Piped(["-c", "import time; time.sleep(600)"], os.environ)
    with pytest.raises(TimeoutError):
        made.answer(b"", within_s=0.0)
    assert made.process.returncode is not None


def test_one_that_fails_says_nothing() -> None:
    assert (
        Piped(["-c", "print('half'); raise SystemExit(1)"], os.environ).answer(
            b"", within_s=PATIENCE_S
        )
        == b""
    )
