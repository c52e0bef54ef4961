"""First minutes: many shapes of folders, every surface; whoever gets no hit is told why, and what
to do.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from notewell.surfaces.server.calls import CALLS
from notewell.surfaces.server.guard import Door
from notewell.surfaces.server.http import application

Capture = pytest.CaptureFixture[str]
QUESTION = "where is the teapot"
FACT = "The teapot is in the blue cupboard.\n"


def put(place: Path, text: str | bytes = FACT) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode() if isinstance(text, str) else text)


def slug(root: Path) -> str:
    return re.sub(r"[^A-Za-z0-9]", "-", str(root))


def turn(root: Path) -> str:
    said = {"type": "user", "cwd": str(root), "message": {"role": "user", "content": FACT}}
    return json.dumps(said) + "\n"


def empty(_root: Path, _home: Path) -> None:
    """Nothing at all."""


def notes(root: Path, _home: Path) -> None:
    put(root / "kitchen/things.md")
    put(root / "plain.txt", "Nothing of note.\n")


def vault(root: Path, _home: Path) -> None:
    put(root / ".obsidian/app.json", "{}")
    put(root / "Kitchen.md", f"---\naliases: [galley]\n---\n# Kitchen\n\n> [!tip] Tea\n> {FACT}")
    put(root / "Templates/day.md", "{{title}} teapot\n")


def repository(root: Path, _home: Path) -> None:
    put(root / ".git/HEAD", "ref: refs/heads/main\n")
    put(root / "pyproject.toml", "[project]\n")
    put(root / "src/app.py", "teapot = 1\n")
    put(root / "CLAUDE.md")


def rules(root: Path, _home: Path) -> None:
    put(root / "package.json", "{}")
    put(root / ".cursor/rules/tea.mdc")


def auto_memory(root: Path, home: Path) -> None:
    put(root / "main.c", "int main;\n")
    put(home / ".claude/projects" / slug(root) / "memory/MEMORY.md", f"- {FACT}")


def codex(root: Path, home: Path) -> None:
    put(home / ".codex/memories/rollout_summaries/a.md", f"thread_id: 1\ncwd: {root}\n\n{FACT}")


def workspace(root: Path, _home: Path) -> None:
    put(root / "MEMORY.md", f"- {FACT}")


def transcripts(root: Path, home: Path) -> None:
    put(home / ".claude/projects" / slug(root) / "one.jsonl", turn(root))


def documents(root: Path, _home: Path) -> None:
    put(root / "manual.pdf", b"%PDF-1.7 teapot")
    put(root / "letter.docx", b"PK teapot")


def beside(root: Path, _home: Path) -> None:
    put(root / "MEMORY.md", "- Sam likes walks.\n")
    put(root / "kitchen.md")


def started(root: Path, _home: Path) -> None:
    assert run(["init", str(root)]) == 0


def templates(root: Path, _home: Path) -> None:
    put(root / "templates/note.md")


def binary(root: Path, _home: Path) -> None:
    put(root / "photo.md", bytes(range(256)) * 40)


def hidden(root: Path, _home: Path) -> None:
    put(root / "a.md")
    put(root / ".notewellignore", "*.md\n")


def private(root: Path, _home: Path) -> None:
    put(root / "inner/a.md")
    put(root / ".gitignore", "*\n")


def other_words(root: Path, _home: Path) -> None:
    put(root / "walks.md", "Sam likes walks.\n")


Shape = Callable[[Path, Path], None]
ANSWERED = (notes, vault, repository, rules, auto_memory, codex, workspace)
TOLD: dict[Shape, set[str]] = {
    empty: {"no_notes"},
    transcripts: {"no_notes", "sessions_not_read"},
    documents: {"no_notes", "documents_not_read"},
    beside: {"folder_not_read"},
    started: {"no_notes"},
    templates: {"no_notes"},
    binary: {"unread_notes"},
    hidden: {"no_notes", "ignored_not_read"},
    private: {"no_notes", "ignored_not_read"},
}
WITHOUT = (empty, transcripts, documents, templates, hidden, private)
SHAPES = [*ANSWERED, *TOLD]


@pytest.fixture(autouse=True)
def small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "none")


def made(
    shape: Shape, root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(root)
    shape(root, home)
    capsys.readouterr()


def asked(capsys: Capture, *words: str) -> dict[str, Any]:
    assert run([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def check(shape: Shape, hits: str, notices: list[dict[str, str]]) -> None:
    if shape in ANSWERED:
        assert "blue cupboard" in hits
        return
    assert "blue cupboard" not in hits
    assert {n["code"] for n in notices} >= TOLD[shape]
    assert all(n["message"] and n["hint"] for n in notices if n["code"] in TOLD[shape])


def nothing_made(shape: Shape, root: Path, home: Path, before: set[Path]) -> None:
    if shape in WITHOUT:
        assert not (root / ".notewell").exists()
    assert set(home.rglob("*")) == before, "reading makes nothing outside the workspace"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_command_line(
    shape: Shape,
    root: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    made(shape, root, own_environment, monkeypatch, capsys)
    before = set(own_environment.rglob("*"))
    found = asked(capsys, QUESTION)
    check(shape, json.dumps(found["results"]), found["notices"])
    block = asked(capsys, "search", QUESTION, "--format", "context")
    check(shape, block["context"], block["notices"])
    assert run([QUESTION]) == 0
    shown = capsys.readouterr()
    if "no hits" in shown.out:
        assert "note: " in shown.err
    for command in ("timeline", "index", "status", "sources", "doctor"):
        assert run([command]) == 0
        shown = capsys.readouterr()
        told = re.search("note: |warn|not read|skipped", shown.err + shown.out)
        assert (
            told or shape not in TOLD or (shape is beside and command in ("timeline", "index"))
        ), "it did its work"
    nothing_made(shape, root, own_environment, before)


@pytest.mark.parametrize("shape", [hidden, private])
def test_what_is_said_of_ignored_notes_helps(
    shape: Shape,
    root: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    made(shape, root, own_environment, monkeypatch, capsys)
    hint = next(
        n["hint"] for n in asked(capsys, QUESTION)["notices"] if n["code"] == "ignored_not_read"
    )
    subprocess.run(hint.removeprefix("run: "), shell=True, cwd=root, check=True)  # noqa: S602
    assert "blue cupboard" in json.dumps(asked(capsys, QUESTION)["results"])


@pytest.mark.parametrize("shape", SHAPES)
def test_tools_http_and_the_page(
    shape: Shape,
    root: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    made(shape, root, own_environment, monkeypatch, capsys)
    before = set(own_environment.rglob("*"))
    with Memory.open(root) as memory:
        answer = CALLS["search"].run(memory, {"query": QUESTION})
        text = CALLS["search"].text(answer)
        check(shape, text, answer["notices"])
        assert "Nothing found." not in text or "note: " in text
        with TestClient(
            application(memory, Door(anyone=True)), base_url="http://localhost"
        ) as client:
            over = client.get("/api/search", params={"query": QUESTION}).json()
            check(shape, json.dumps(over["results"]), over["notices"])
            state = client.get("/api/status").json()
            assert shape not in TOLD or state["notices"] or state["skipped"], (
                "the page shows these before any question"
            )
    nothing_made(shape, root, own_environment, before)


def test_a_question_that_no_note_has_words_for_says_so(
    root: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    made(other_words, root, own_environment, monkeypatch, capsys)
    assert [n["code"] for n in asked(capsys, QUESTION)["notices"]] == ["no_match"]
    found = asked(capsys, "search", "walks", "--path", "elsewhere/")["notices"]
    assert [n["code"] for n in found] == ["no_match"]
    assert "filters" in found[0]["message"]


def test_a_hit_without_a_word_of_the_question_does_not_hide_that_a_conversation_is_not_read(
    root: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "local")
    made(transcripts, root, own_environment, monkeypatch, capsys)
    put(root / "README.md", "# Doc\n")
    found = asked(capsys, "walrus port", "--all")
    assert found["results"], "or this shows nothing"
    assert "sessions_not_read" in {n["code"] for n in found["notices"]}


@pytest.fixture
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(root)
    put(root / "kitchen.md")
    return root


def test_what_init_makes_is_no_answer_and_hides_no_note(folder: Path, capsys: Capture) -> None:
    assert run(["init"]) == 0
    capsys.readouterr()
    found = asked(capsys, QUESTION)["results"]
    assert [hit["path"] for hit in found] == ["kitchen.md"]
    assert asked(capsys, "write one lasting fact per line")["results"] == []
    assert (folder / "MEMORY.md").read_bytes() == b""


def test_a_first_memory_hides_no_note(folder: Path, capsys: Capture) -> None:
    told = asked(capsys, "remember", "The kettle is red.")
    assert [n["code"] for n in told["notices"]] == ["folder_kept"]
    assert (folder / "notewell.toml").read_text() == 'folder = "always"\n'
    assert asked(capsys, QUESTION)["results"][0]["path"] == "kitchen.md"
    assert "kettle" in asked(capsys, "kettle")["results"][0]["snippet"]
    assert asked(capsys, "remember", "The tray is green.")["notices"] == []


def test_a_first_memory_in_an_empty_folder_is_all_there_is(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(root)
    assert asked(capsys, "remember", "The kettle is red.")["notices"] == []
    assert {p.name for p in root.iterdir()} == {"memory"}
    assert asked(capsys, "kettle")["results"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["stauts"], "status"),
        (["serach", "teapot"], "search teapot"),
        (["souces"], "sources"),
        (["idnex"], "index"),
    ],
)
def test_a_mistyped_command_is_searched_for_and_named(
    folder: Path, capsys: Capture, words: list[str], meant: str
) -> None:
    assert f"did you mean: notewell {meant}" in json.dumps(asked(capsys, *words)["notices"])


@pytest.mark.parametrize(
    "words", [["teapot"], ["where is the status of the teapot"], ["my", "index"]]
)
def test_a_bare_question_is_a_search(folder: Path, capsys: Capture, words: list[str]) -> None:
    assert "did_you_mean" not in json.dumps(asked(capsys, *words)["notices"])


def test_a_mistyped_command_with_its_own_option_is_refused(folder: Path, capsys: Capture) -> None:
    assert run(["stauts", "--deep"]) == 2
    assert "did you mean: notewell status --deep" in capsys.readouterr().err
