"""The README is run: its commands, its Python, its settings, and what it says they print."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from recollect import __version__
from recollect.search.profiles import PROFILES
from recollect.settings import Settings
from recollect.surfaces.commands import cli, run

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "src/recollect/surfaces/sample"
QUALITY = ROOT / "benchmarks/QUALITY.md"
README = (ROOT / "README.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")

_PLACE = re.compile(r"\S+\.md[:#]L?\d+(?:-L?\d+)?")
_DECIMAL = re.compile(r"\d+\.\d+")
_EXITS = re.compile(r"#.*\bexits (\d+)")


@dataclass(frozen=True)
class Shown:
    """A command of the README with the output that stands below it."""

    line: str
    output: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)

    @property
    def code(self) -> int:
        found = _EXITS.search(self.line)
        return int(found[1]) if found else 0


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[Shown]:
    for block in blocks("console"):
        assert block.startswith("$ ")
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = part.splitlines()
            yield Shown(line, tuple(output))


COMMANDS = list(commands())
OURS = [c for c in COMMANDS if c.words[0] == "recollect"]
SESSION = [c for c in OURS if c.output]
OTHERS = [c for c in OURS if not c.output]


def copied(factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(SAMPLE, factory.mktemp("readme") / "notes"))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample notes, for the commands whose output is not shown."""
    return copied(tmp_path_factory)


@pytest.fixture
def hashed(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECOLLECT_EMBED_MODEL", "hashed")
    monkeypatch.chdir(notes)
    return notes


def promised(line: str) -> tuple[str, list[float]]:
    """What of a line must come again, up to the file it names, and its decimals apart from it."""
    place = _PLACE.search(line)
    head = line[: place.end()] if place else line
    return _DECIMAL.sub("N", head), [float(n) for n in _DECIMAL.findall(head)]


def test_the_session_prints_what_is_shown(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(copied(tmp_path_factory))
    assert len(SESSION) > 3
    for command in SESSION:
        assert run(command.words[1:]) == command.code, command.line
        captured = capsys.readouterr()
        printed = dict(promised(line) for line in (captured.err + captured.out).splitlines())
        wanted = [command.output[0], *(line for line in command.output[1:] if re.match(r" ?\d+\. ", line))]
        for head, numbers in map(promised, wanted):
            assert head in printed, f"{command.line}: {head!r} is not printed"
            if not head.endswith(" s"):  # how long it took is nobody's promise
                assert printed[head] == pytest.approx(numbers, abs=0.011), command.line


@pytest.mark.parametrize("command", OTHERS, ids=lambda c: " ".join(c.words))
def test_every_other_command_runs(command: Shown, hashed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.words[1:]) == command.code, capsys.readouterr().err


def test_commands_of_other_programs_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for command in COMMANDS:
        if command.words[0] == "make":
            assert command.words[1] in targets
        elif command.words[0] != "recollect":
            assert command.words == ["pip", "install", "."]
    assert {"demo", "test"} <= {c.words[1] for c in COMMANDS if c.words[0] == "make"}
    for text in (README, AGENTS):
        assert set(re.findall(r"`make ([a-z]+)", text)) <= set(targets)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, hashed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "shown.py"
    place.write_text(code, encoding="utf-8")
    runpy.run_path(str(place))
    assert "memory/auth.md#L13-L14" in capsys.readouterr().out


@pytest.mark.parametrize("text", blocks("toml"))
def test_settings_are_taken(
    text: str, hashed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Path(shutil.copytree(hashed, tmp_path / "notes"))
    name = text.splitlines()[0].removeprefix("# ")
    place = Path(os.path.expanduser(name)) if name.startswith("~") else workspace / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    assert run(["config", "-w", str(workspace), "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    table = tomllib.loads(text)
    given = {k: v for k, v in table.items() if not isinstance(v, dict)}
    given |= {f"{s}.{k}": v for s, values in table.items() if isinstance(values, dict) for k, v in values.items()}
    assert {key: settings[key]["value"] for key in given} == given
    assert {settings[key]["origin"] for key in given} == {str(place)}
    assert run(["search", "staging port", "-w", str(workspace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"]


def test_every_field_of_an_answer_is_named(hashed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["search", "refresh tokens", "--json", "--explain"])
    answer = json.loads(capsys.readouterr().out)
    section = README.partition("## What is in an answer")[2].partition("\n## ")[0]
    head, _, table = section.partition("| field |")
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == set(answer["results"][0])
    assert set(answer) <= set(re.findall(r"`(\w+)`", head))


def test_every_command_and_profile_is_named() -> None:
    for name in cli.commands:
        assert re.search(rf"recollect {name}\b", README), name
    table = README.partition("| profile |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([^`]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))) == set(PROFILES)
    shown = next(c for c in OURS if "openclaw," in c.line).words[-1].split(",")
    assert set(shown) == set(PROFILES) - {"lexical", "vector"}


def test_settings_are_named_or_pointed_to() -> None:
    pointed = "`recollect config` lists every key" in " ".join(README.split())
    assert pointed or all(key in README for key, *_ in Settings().items())


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = README.partition("## What it depends on")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| ")][2:]
    names = {re.match(r"[\w-]+", d).group() for d in project["dependencies"]}  # type: ignore[union-attr]
    assert {re.split("==", row[1].strip())[0] for row in rows} == names
    assert all(row[2].strip() for row in rows)


def test_links_lead_somewhere() -> None:
    for text in (README, AGENTS):
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            # `make quality` writes that page, from sets that are not in the repository.
            assert link.startswith("https://") or (ROOT / link).exists() or ROOT / link == QUALITY, link


@pytest.mark.skipif(not QUALITY.exists(), reason="`make quality` has not been run")
def test_the_number_is_the_measured_one() -> None:
    table = QUALITY.read_text(encoding="utf-8").partition("## nDCG@10")[2].partition("\n## ")[0]
    rows = [[c.strip(" *") for c in row.strip("| ").split("|")] for row in table.splitlines() if row.startswith("| ")]
    names, sets = rows[0], [r for r in rows[2:] if r[0] != "mean"]
    column = {n: [float(r[i]) for r in sets] for i, n in enumerate(names) if n in PROFILES}
    means = {n: sum(values) / len(values) for n, values in column.items()}
    legs = [max(pair) for pair in zip(column["lexical"], column["vector"], strict=True)]
    said = re.search(
        r"mean nDCG@10 of (\S+); .*?averages (\S+), the pipelines it replaces (.*?)\.\s", README, re.DOTALL
    )
    assert said is not None
    assert len(sets) == 12
    assert float(said[1]) == pytest.approx(means["default"], abs=0.0055)
    assert float(said[2]) == pytest.approx(sum(legs) / len(legs), abs=0.0055)
    others = [value for name, value in means.items() if name not in ("default", "lexical", "vector")]
    for number in _DECIMAL.findall(said[3]):
        assert min(abs(float(number) - other) for other in others) < 0.0055


def test_the_readme_is_short_and_plain() -> None:
    assert len(README.splitlines()) < 260
    assert max(map(ord, README)) < 0x2600


def test_agents_is_a_map_of_what_is_there() -> None:
    assert len(AGENTS.splitlines()) < 60
    named = {n for n in re.findall(r"`([\w./-]+)`", AGENTS) if "/" in n or n.endswith((".py", ".md"))}
    rooms = (ROOT, ROOT / "src/recollect")
    # Inside a room's own line a file may be named alone.
    missing = {n for n in named if not any((r / n).exists() for r in (*rooms, *(rooms[1].iterdir())))}
    assert not missing
    assert {p.name for p in rooms[1].iterdir() if (p / "__init__.py").exists()} <= {
        n.rstrip("/").rpartition("/")[2] for n in named
    }


def test_the_changelog_has_this_version() -> None:
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", log, re.MULTILINE)
