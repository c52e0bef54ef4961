"""The documents are run: their commands, Python, settings and servers, and what they say these
print.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

import notewell
from notewell import __version__
from notewell.search.profiles import PROFILES
from notewell.settings import FIELDS, Settings
from notewell.settings_checks import BOUNDED, LEAST, LOWERED, PARTLY
from notewell.surfaces.cli.commands import cli, run
from notewell.surfaces.install.entries import AGENTS as KNOWN_AGENTS
from notewell.surfaces.server.calls import CALLS
from notewell.surfaces.server.page_calls import PAGE_CALLS
from tests.conftest import PATIENT

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "src/notewell/surfaces/sample"
QUALITY = ROOT / "benchmarks/QUALITY.md"
README = (ROOT / "README.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
PAGES = {
    p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8")
    for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
EVERYTHING = "\n".join(PAGES.values())

_PLACE = re.compile(r"\S+\.md[:#]L?\d+(?:-L?\d+)?")
_DECIMAL = re.compile(r"\d+\.\d+")
_RECEIPT = re.compile(r"receipt [0-9a-f]{10}")
_EXITS = re.compile(r"#.*\bexits (\d+)")
_ELSEWHERE = re.compile(r"#.*\bneeds a (key|server)\b")
_STAYS = ("serve", "mcp", "watch")
_GIVEN = re.compile(r"[A-Z_]+=")
_NOTEWELL = [sys.executable, "-m", "notewell"]


@dataclass(frozen=True)
class Shown:
    """A command of a page with the output shown below it."""

    page: str
    line: str
    output: tuple[str, ...]

    @property
    def given(self) -> dict[str, str]:
        """The variables set before the command."""
        found = [w for w in shlex.split(self.line, comments=True) if _GIVEN.match(w)]
        return dict(w.split("=", 1) for w in found)

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)[len(self.given) :]

    @property
    def code(self) -> int:
        found = _EXITS.search(self.line)
        return int(found[1]) if found else 0

    @property
    def stays(self) -> bool:
        return self.words[0] == "notewell" and self.words[1] in _STAYS

    @property
    def elsewhere(self) -> bool:
        """Whether it needs what a test does not have."""
        return bool(_ELSEWHERE.search(self.line))


def blocks(kind: str, pages: Sequence[str] = tuple(PAGES)) -> list[str]:
    return [
        b
        for p in pages
        for b in re.findall(rf"^```{kind}\n(.*?)^```$", PAGES[p], re.MULTILINE | re.DOTALL)
    ]


def console(page: str) -> Iterator[list[Shown]]:
    for block in blocks("console", [page]):
        assert block.startswith("$ ")
        parts = [part.splitlines() for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
        yield [Shown(page, line, tuple(output)) for line, *output in parts]


CONSOLES = [block for page in PAGES for block in console(page)]
COMMANDS = [command for block in CONSOLES for command in block]
OURS = [c for c in COMMANDS if c.words[0] == "notewell"]
SESSIONS = {page: [c for c in OURS if c.output and c.page == page] for page in PAGES}
OTHERS = [c for c in OURS if not c.output and not c.stays and not c.elsewhere]
STAYING = [block[n:] for block in CONSOLES for n, c in enumerate(block) if c.stays]


def named(command: Shown) -> str:
    return f"{command.page}: {' '.join(command.words)}"


def copied(factory: pytest.TempPathFactory, source: Path = SAMPLE) -> Path:
    return Path(shutil.copytree(source, factory.mktemp("readme") / "notes"))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample notes, for the commands whose output is not shown."""
    return copied(tmp_path_factory)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample notes with their index, by the model that comes with the installation."""
    place = copied(tmp_path_factory)
    assert run(["index", "-w", str(place)]) == 0
    return place


@pytest.fixture
def hashed(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.chdir(notes)
    return notes


def promised(line: str) -> tuple[str, list[float]]:
    """What of a line must come again, up to the file it names, and its decimals apart from it."""
    place = _PLACE.search(line)
    head = _RECEIPT.sub("receipt R", line[: place.end()] if place else line)
    return _DECIMAL.sub("N", head), [float(n) for n in _DECIMAL.findall(head)]


@pytest.mark.parametrize("page", [page for page, session in SESSIONS.items() if session])
def test_the_session_prints_what_is_shown(
    page: str,
    indexed: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = SESSIONS[page]
    begins = session[0].words[1] == "index"
    monkeypatch.chdir(copied(tmp_path_factory, SAMPLE if begins else indexed))
    assert len(session) > 3
    for command in session:
        assert run(command.words[1:]) == command.code, command.line
        captured = capsys.readouterr()
        printed = dict(promised(line) for line in (captured.err + captured.out).splitlines())
        for head, numbers in map(promised, command.output):
            if head == "...":
                continue
            assert head in printed, f"{command.line}: {head!r} is not printed"
            if not head.endswith(" s"):  # how long it took is nobody's promise
                assert printed[head] == pytest.approx(numbers, abs=0.011), command.line


@pytest.mark.parametrize("command", OTHERS, ids=named)
def test_every_other_command_runs(
    command: Shown, hashed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command.words[1:]) == command.code, capsys.readouterr().err


def parsed(words: Sequence[str]) -> None:
    """Fails with a usage error where the command line does not know a word of it."""
    with cli.make_context("notewell", list(words)) as context:
        name, command, rest = cli.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert name is not None
        assert command is not None
        command.make_context(name, rest, parent=context).close()


def test_commands_that_need_something_else_are_parsed() -> None:
    found = [c for c in OURS if c.elsewhere]
    assert found
    for command in found:
        parsed(command.words[1:])


def environment(**given: str) -> dict[str, str]:
    """That of the test, where a new process finds the same notewell from any folder."""
    return {**os.environ, "PYTHONPATH": str(Path(notewell.__file__).parents[1]), **given}


@contextlib.contextmanager
def staying(command: Shown, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A command that does not end by itself, ended as a person ends it."""
    with subprocess.Popen(
        [*_NOTEWELL, *command.words[1:], *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**command.given, BROWSER="true"),  # no page is opened before a person
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def asked(words: Sequence[str], port: int, token: str) -> tuple[int, bytes]:
    """What curl would be answered, by the server on a port."""
    curl = argparse.ArgumentParser()
    curl.add_argument("-s", action="store_true")
    curl.add_argument("-N", action="store_true")
    curl.add_argument("-H", action="append", default=[])
    curl.add_argument("--json")
    curl.add_argument("url")
    given = curl.parse_args(words[1:])
    headers = dict(header.split(": ", 1) for header in given.H)
    if token and sys.platform != "linux":  # there it is seen whose program asks
        headers = {"Authorization": f"Bearer {token}", **headers}
    if given.json:
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    where = urlsplit(given.url)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        method = "POST" if given.json else "GET"
        connection.request(method, f"{where.path}?{where.query}", given.json, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("block", STAYING, ids=lambda b: named(b[0]))
def test_what_stays_answers_and_ends(block: list[Shown], hashed: Path) -> None:
    command, *others = block
    if command.words[1] == "serve":
        with staying(command, "--port", "0") as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            address = re.search(r"http://127\.0\.0\.1:(\d+)/(?:#token=(\S+))?", said)
            assert address, said
            requests = [c.words for c in others if c.words[0] == "curl"]
            for words in requests or [["curl", "http://127.0.0.1/"]]:
                status, body = asked(words, int(address[1]), address[2] or "")
                assert status == 200, (words, body)
                assert not requests or all(json.loads(line) for line in body.splitlines())
    elif command.words[1] == "mcp":
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        with staying(command) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
                + "\n"
            )
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert "memory_search" in answer["result"]["instructions"]
    else:
        with staying(command) as process:
            assert process.stderr is not None
            assert any(line.startswith("watching ") for line in process.stderr)
        assert process.returncode == 0


def test_every_request_stands_below_a_server() -> None:
    below = [c for block in STAYING for c in block if c.words[0] == "curl"]
    assert below
    assert {id(c) for c in COMMANDS if c.words[0] == "curl"} <= {id(c) for c in below}


_INSTALLERS = (
    ["pip", "install"],
    ["pipx", "install"],
    ["uv", "tool", "install"],
    ["uvx"],
    ["docker", "compose"],
)


def installs(words: Sequence[str]) -> bool:
    """Whether a line runs or installs notewell, from the index or with its model from a
    checkout.
    """
    rest = next(
        (words[len(head) :] for head in _INSTALLERS if list(words[: len(head)]) == head), None
    )
    if rest is None:
        return False
    names = {re.sub(r"\[[a-z]+\]$", "", word) for word in rest}
    return bool(names & {"notewell", "."}) or words[0] == "docker"


def test_commands_of_other_programs_exist() -> None:
    targets = re.findall(
        r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    for command in COMMANDS:
        if command.words[0] == "make":
            assert command.words[1] in targets
        elif command.words[0] not in ("notewell", "curl"):
            assert installs(command.words), command.line
    assert {"demo", "test"} <= {c.words[1] for c in COMMANDS if c.words[0] == "make"}
    for text in (EVERYTHING, AGENTS):
        assert set(re.findall(r"`make ([a-z]+)", text)) <= set(targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"notewell\[(\w+)\]", EVERYTHING)) == set(extras)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(
    code: str, hashed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "shown.py"
    place.write_text(code, encoding="utf-8")
    with warnings.catch_warnings():
        # the frameworks' own dependencies warn while they are imported
        warnings.simplefilter("ignore")
        runpy.run_path(str(place))
    assert "memory/auth.md#L13-L14" in capsys.readouterr().out


@pytest.mark.parametrize("text", blocks("json"))
def test_entries_for_agents_run(
    text: str, hashed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in _commands_in(json.loads(text)):
        assert command[0] == "notewell"
        parsed(command[1:])
        if command[1] not in _STAYS:
            assert run(command[1:]) == 0
            assert "<memory-" in capsys.readouterr().out


def _commands_in(value: Any) -> Iterator[list[str]]:
    if isinstance(value, dict):
        if isinstance(value.get("command"), str):
            yield [*shlex.split(value["command"]), *value.get("args", [])]
        for one in value.values():
            yield from _commands_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from _commands_in(one)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
@pytest.mark.parametrize("code", blocks("sh"))
def test_shell_runs(code: str, hashed: Path, tmp_path: Path) -> None:
    program = tmp_path / "notewell"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(_NOTEWELL)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = environment(PATH=path, NOTEWELL_HOOK_DEADLINE_S="60")
    done = subprocess.run(["sh", "-c", code], check=True, capture_output=True, text=True, env=env)
    assert "<memory-" in done.stdout


@pytest.mark.parametrize("text", blocks("toml"))
def test_settings_are_taken(
    text: str,
    hashed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = Path(shutil.copytree(hashed, tmp_path / "notes"))
    name = text.splitlines()[0].removeprefix("# ")
    place = Path(os.path.expanduser(name)) if name.startswith("~") else workspace / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    with monkeypatch.context() as own:
        for variable in PATIENT:
            own.delenv(variable)
        assert run(["config", "-w", str(workspace), "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    table = tomllib.loads(text)
    given = {k: v for k, v in table.items() if not isinstance(v, dict)}
    given |= {
        f"{s}.{k}": v
        for s, values in table.items()
        if isinstance(values, dict)
        for k, v in values.items()
    }
    assert {key: settings[key]["value"] for key in given} == given
    assert {settings[key]["origin"] for key in given} == {str(place)}
    assert run(["search", "staging port", "-w", str(workspace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]


def test_every_field_of_an_answer_is_named(
    hashed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    section = (
        PAGES["docs/commands.md"].partition("## What is in an answer")[2].partition("\n## ")[0]
    )
    head, _, table = section.partition("| field |")
    for more in ((), ("--format", "context")):
        run(["search", "refresh tokens", "--json", "--explain", *more])
        answer = json.loads(capsys.readouterr().out)
        rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
        assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(answer["results"][0])
        assert set(answer) <= set(re.findall(r"`(\w+)`", head))


def test_every_command_and_profile_is_named() -> None:
    for name in cli.commands:
        assert re.search(rf"notewell {name}\b", EVERYTHING), name
    table = PAGES["docs/ranking.md"].partition("| profile |")[2].partition("\n\n")[0]
    assert set(
        re.findall(r"`([^`]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    ) == set(PROFILES)
    shown = next(c for c in OURS if "openclaw," in c.line).words[-1].split(",")
    assert set(shown) == set(PROFILES) - {"lexical", "vector"}


def test_every_tool_route_and_agent_is_named() -> None:
    page = PAGES["docs/serving.md"]
    table = page.partition("| tool |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [
        f"memory_{c.name}" for c in CALLS.values() if c.tool
    ]
    assert set(re.findall(r"/api/([a-z]+)", page)) - {"events", "key"} == {*CALLS, *PAGE_CALLS}
    listed = page.partition("It knows")[2].partition(", keeps")[0]
    assert re.findall(r"`([\w-]+)`", listed) == list(KNOWN_AGENTS)


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_help_has_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    lines = re.findall(
        rf"^  (?:\w+=\S+ )?notewell ({name}\b.*)$", capsys.readouterr().out, re.MULTILINE
    )
    assert lines
    for line in lines:
        try:
            parsed(shlex.split(re.split(r" {2,}", line)[0]))
        except click.BadParameter as error:
            # a file of another program may be missing here
            if "does not exist" not in error.format_message():
                raise


def test_every_command_has_a_topic() -> None:
    from notewell.surfaces.cli.commands import TOPICS

    listed = [name for names in TOPICS.values() for name in names]
    assert sorted(listed) == sorted(cli.commands)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_two_screens_long_without_a_heading(page: str) -> None:
    text = re.sub(
        r"^```.*?^```$",
        lambda block: block[0].replace("#", " "),
        PAGES[page],
        flags=re.MULTILINE | re.DOTALL,
    )
    parts = re.split(r"^#{1,6} ", text, flags=re.MULTILINE)
    assert max(part.count("\n") for part in parts) <= 60


def test_the_table_of_settings_is_complete() -> None:
    wanted = []
    for key, value, _, doc in Settings().items():
        shown = json.dumps(list(value) if isinstance(value, tuple) else value)
        own = "yes" if FIELDS[key].metadata["private"] else "lower only" if key in LOWERED else ""
        own = f"above {BOUNDED[key]:,}" if key in BOUNDED else "in part" if key in PARTLY else own
        own = f"below {LEAST[key]:,}, {own}" if key in LEAST else own
        wanted.append(f"| `{key}` | `{shown}` | {doc} | {own} |")
    assert [
        row for row in PAGES["docs/settings.md"].splitlines() if row.startswith("| `")
    ] == wanted
    named = set(
        re.findall(
            r"`((?:index|chunk|embed|search|multimodal|sessions|redact|watch|hook)\.\w+)",
            EVERYTHING,
        )
    )
    assert {n for n in named if not n.endswith((".py", ".md"))} <= {
        key for key, *_ in Settings().items()
    }


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = (
        PAGES["docs/install.md"].partition("## What it depends on")[2].partition("<!-- end -->")[0]
    )
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| ")][2:]
    names = {re.match(r"[\w-]+", d).group() for d in project["dependencies"]}  # type: ignore[union-attr]
    assert {re.split("==", row[1].strip())[0] for row in rows} == names
    assert all(row[2].strip() for row in rows)


def test_every_symptom_is_a_message_of_ours() -> None:
    source = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "src").rglob("*.py")))
    told = re.findall(r"^\| `([^`]+)` \|", PAGES["docs/troubleshooting.md"], re.MULTILINE)
    assert len(told) > 8
    for message in told:
        known = (
            message.replace("notewell_model", "{package}")
            .removesuffix(" …")
            .removesuffix("…")
            .strip()
        )
        assert known in source, message


def test_links_lead_somewhere() -> None:
    for page, text in {**PAGES, "AGENTS.md": AGENTS}.items():
        prose = re.sub(r"`[^`\n]*`", "", text)
        for link, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose):
            place = ((ROOT / page).parent / link).resolve() if link else ROOT / page
            # `make quality` writes that page, from sets that are not in the repository.
            assert link.startswith("https://") or place.exists() or place == QUALITY, link
            if anchor:
                titles = re.findall(r"^#+ (.*)$", place.read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in {
                    re.sub(r"[^\w-]", "", t.lower().replace(" ", "-")) for t in titles
                }, anchor


def test_every_page_is_linked_and_shipped() -> None:
    index = PAGES["docs/README.md"]
    for page in PAGES:
        name = page.removeprefix("docs/")
        assert name == "README.md" or f"]({name})" in index, page
    assert "](docs/README.md)" in README
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
        "build"
    ]
    assert "/docs" in build["targets"]["sdist"]["include"]
    assert (ROOT / "docs/page.png").stat().st_size < 200_000


@pytest.mark.skipif(not QUALITY.exists(), reason="`make quality` has not been run")
def test_the_number_is_the_measured_one() -> None:
    table = QUALITY.read_text(encoding="utf-8").partition("## nDCG@10")[2].partition("\n## ")[0]
    rows = [
        [c.strip(" *") for c in row.strip("| ").split("|")]
        for row in table.splitlines()
        if row.startswith("| ")
    ]
    names, sets = rows[0], [r for r in rows[2:] if r[0] != "mean"]
    column = {n: [float(r[i]) for r in sets] for i, n in enumerate(names) if n in PROFILES}
    means = {n: sum(values) / len(values) for n, values in column.items()}
    legs = [max(pair) for pair in zip(column["lexical"], column["vector"], strict=True)]
    said = re.search(
        r"mean nDCG@10 of (\S+); .*?averages (\S+), the pipelines it replaces (.*?)\.\s",
        README,
        re.DOTALL,
    )
    assert said is not None
    assert len(sets) == 16
    assert float(said[1]) == pytest.approx(means["default"], abs=0.0055)
    assert float(said[2]) == pytest.approx(sum(legs) / len(legs), abs=0.0055)
    others = [
        value for name, value in means.items() if name not in ("default", "lexical", "vector")
    ]
    for number in _DECIMAL.findall(said[3]):
        assert min(abs(float(number) - other) for other in others) < 0.0055


def test_the_pages_are_short_and_plain() -> None:
    assert len(README.splitlines()) <= 120
    for page, text in PAGES.items():
        assert len(text.splitlines()) < 260, page
        assert max(map(ord, text)) < 0x2600, page


def test_agents_is_a_map_of_what_is_there() -> None:
    assert len(AGENTS.splitlines()) < 60
    named = {
        n for n in re.findall(r"`([\w./-]+)`", AGENTS) if "/" in n or n.endswith((".py", ".md"))
    }
    rooms = (ROOT, ROOT / "src/notewell")
    # Inside a room's own line a file may be named alone.
    missing = {
        n for n in named if not any((r / n).exists() for r in (*rooms, *(rooms[1].iterdir())))
    }
    assert not missing
    assert {p.name for p in rooms[1].iterdir() if (p / "__init__.py").exists()} <= {
        n.rstrip("/").rpartition("/")[2] for n in named
    }


def test_the_changelog_has_this_version() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", log, re.MULTILINE)
