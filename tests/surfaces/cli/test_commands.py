"""The command line, called in this process; what needs a process of its own is in
test_process.py.
"""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from notewell import __version__
from notewell.memory import Memory
from notewell.surfaces.cli.commands import run
from tests.conftest import Write

RESULT_KEYS = [
    "id",
    "path",
    "start_line",
    "end_line",
    "heading",
    "source",
    "date",
    "score",
    "confidence",
    "certainty",
    "vector_score",
    "text_score",
    "ranks",
    "recency",
    "snippet",
    "citation",
    "why",
    "time",
    "origin",
    "superseded_by",
    "conflicts_with",
    "near_lines",
    "kept",
    "hidden",
]
FOUND_KEYS = ["query", "profile", "mode", "results", "notices", "embedder", "stale", "took_ms"]


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three notes, and the current folder is among them; the model is the deterministic one."""
    write("MEMORY.md", "# Memory\n\n- Mira owns the billing service.\n")
    write(
        "memory/2026-02-10.md", "# Standup\n\nThe staging port moved to 8443.\n\nMore was said.\n"
    )
    write("memory/2026-05-06.md", "# Retro\n\nBilling was slow in April.\n")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


Capture = pytest.CaptureFixture[str]


def answer(capsys: Capture, *arguments: str) -> Any:
    """The object that a command prints with --json, and nothing but it."""
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_search_answers_in_the_documented_shape(capsys: Capture) -> None:
    found = answer(capsys, "search", "staging port", "--now", "2026-03-12")
    assert list(found) == FOUND_KEYS
    assert (found["query"], found["profile"], found["mode"]) == (
        "staging port",
        "default",
        "hybrid",
    )
    assert (found["notices"], found["embedder"], found["stale"]) == ([], "hashed@256", False)
    best = found["results"][0]
    assert list(best) == RESULT_KEYS
    assert (best["path"], best["start_line"], best["end_line"]) == ("memory/2026-02-10.md", 3, 5)
    assert (best["heading"], best["source"], best["date"]) == (["Standup"], "memory", "2026-02-10")
    assert best["citation"] == "memory/2026-02-10.md#L3-L5"
    assert best["ranks"]["lexical"]["rank"] == 1
    assert best["recency"] == pytest.approx(0.5)
    assert all(
        0 <= hit[key] <= 1
        for hit in found["results"]
        for key in ("score", "confidence", "text_score")
    )


def test_explain_adds_the_trace(capsys: Capture) -> None:
    found = answer(capsys, "search", "staging", "--explain")
    assert list(found) == [*FOUND_KEYS, "trace"]
    trace = found["trace"]
    assert [leg["name"] for leg in trace["legs"]] == ["lexical", "vector", "path"]
    assert trace["stages"][-1]["name"].startswith("Cut")
    assert set(trace["candidates"]) >= {hit["id"] for hit in found["results"]}


def test_explain_shows_the_lowest_score_that_is_in_force(capsys: Capture) -> None:
    found = answer(
        capsys, "search", "staging", "--explain", "--profile", "openclaw", "--min-score", "0"
    )
    assert found["trace"]["stages"][-1]["name"] == "Cut(min_score=0.0, on='score')"


def test_a_bare_question_is_a_search(capsys: Capture) -> None:
    for arguments in (
        ["staging port"],
        ["staging", "port"],
        ["-k", "1", "staging", "port"],
        ["--", "staging", "port"],
    ):
        assert run(arguments) == 0
        assert "memory/2026-02-10.md:3-5" in capsys.readouterr().out


def test_options_may_stand_before_the_command(capsys: Capture, root: Path, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    assert run(["-w", str(root), "--json", "status"]) == 0
    assert json.loads(capsys.readouterr().out)["workspace"] == str(root)


def test_a_dash_reads_the_question_from_stdin(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["-"], ["search", "-"]):
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO("staging pört\xff".encode("latin-1")))
        )
        assert run([*arguments, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["query"] == "staging p\ufffdrt\ufffd"


def test_no_hits_is_not_a_failure(capsys: Capture) -> None:
    assert run(["search", "zeppelin", "--model", "none"]) == 0
    assert capsys.readouterr().out == "no hits\n"


def test_filters_and_limits_are_flags(capsys: Capture) -> None:
    by_path = answer(capsys, "search", "billing", "--path", "memory")
    assert {h["path"] for h in by_path["results"]} <= {
        "memory/2026-02-10.md",
        "memory/2026-05-06.md",
    }
    by_day = answer(capsys, "search", "billing", "--since", "2026-05", "--until", "2026-05")
    assert [h["path"] for h in by_day["results"]] == ["memory/2026-05-06.md"]
    assert len(answer(capsys, "search", "billing", "-k", "1")["results"]) == 1
    assert answer(capsys, "search", "billing", "--source", "extra")["results"] == []
    lexical = answer(capsys, "search", "billing", "--profile", "lexical")
    assert (lexical["profile"], lexical["mode"]) == ("lexical", "lexical")


def test_the_terminal_shows_rank_place_snippet_and_reason(capsys: Capture) -> None:
    assert run(["staging port"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r" 1\. likely  \d\.\d\d  memory/2026-02-10\.md:3-5  Standup$", lines[0])
    assert lines[1] == "      The staging port moved to 8443."
    assert re.match(r"      [a-z2-7]{12}  keywords #1, meaning #\d", lines[3])


def test_a_pipe_gets_no_colour_and_no_progress(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR")
    for arguments in (
        ["staging port", "--explain"],
        ["index"],
        ["status"],
        ["config"],
        ["why", "port", "MEMORY.md"],
    ):
        assert run(arguments) == 0
        out, err = capsys.readouterr()
        assert out
        assert "\x1b" not in out + err
        assert err == ""


def test_index_reports_what_it_did_and_each_file_passed_over(capsys: Capture, write: Write) -> None:
    write("memory/binary.md", b"\0")
    report = answer(capsys, "index")
    assert list(report) == [
        "added",
        "changed",
        "dropped",
        "unchanged",
        "chunks",
        "embedded",
        "pending",
        "complete",
        "skipped",
        "notices",
        "took_ms",
        "model",
        "estimate",
        "pruned",
        "forgotten",
        "left",
        "redacted",
        "waiting",
    ]
    assert (report["added"], report["embedded"], report["pending"], report["complete"]) == (
        3,
        3,
        0,
        True,
    )
    assert report["skipped"] == [
        {"path": "memory/binary.md", "reason": "a binary file", "source": "memory", "partly": False}
    ]
    assert run(["index"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "0 added, 0 changed, 0 dropped, 3 unchanged; 0 passages embedded, 0 to go;"
    )
    assert out.endswith("  skipped memory/binary.md: a binary file\n")


def test_index_can_leave_the_vectors_for_later_and_force_all(capsys: Capture) -> None:
    left = answer(capsys, "index", "--no-embed")
    assert (left["embedded"], left["pending"]) == (0, 3)
    forced = answer(capsys, "index", "--force")
    assert (forced["changed"], forced["embedded"]) == (3, 3)


def test_get_prints_lines_and_knows_their_place(capsys: Capture) -> None:
    assert run(["get", "memory/2026-02-10.md:3"]) == 0
    assert capsys.readouterr().out == "The staging port moved to 8443.\n"
    text = answer(capsys, "get", "memory/2026-02-10.md#L3-L5")
    assert text == {
        "path": "memory/2026-02-10.md",
        "start_line": 3,
        "end_line": 5,
        "id": None,
        "text": "The staging port moved to 8443.\n\nMore was said.",
        "origin": "owner",
        "hidden": 0,
    }


def test_why_tells_the_story_of_a_passage(capsys: Capture) -> None:
    story = answer(capsys, "why", "staging port", "memory/2026-02-10.md")
    assert list(story) == [
        "query",
        "profile",
        "mode",
        "id",
        "citation",
        "verdict",
        "rank",
        "story",
        "notices",
    ]
    assert (story["verdict"], story["rank"]) == ("returned at rank 1", 1)
    assert run(["why", "staging port", "memory/2026-02-10.md"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"memory/2026-02-10.md#L3-L5  {story['id']}"
    assert lines[-1] == "returned at rank 1"


def test_status_counts_disk_against_index(capsys: Capture, root: Path) -> None:
    before = answer(capsys, "status")
    assert list(before) == [
        "version",
        "workspace",
        "index",
        "fresh",
        "documents",
        "on_disk",
        "to_add",
        "to_change",
        "to_drop",
        "chunks",
        "bytes",
        "embedder",
        "embedded",
        "pending",
        "models",
        "skipped",
        "notices",
        "answering",
        "refused",
        "cache",
        "levels",
        "sources",
        "waiting",
        "chain",
    ]
    assert (before["version"], before["workspace"], before["fresh"], before["to_add"]) == (
        __version__,
        str(root),
        False,
        3,
    )
    answer(capsys, "index")
    after = answer(capsys, "status")
    assert (after["fresh"], after["documents"], after["on_disk"], after["pending"]) == (
        True,
        3,
        3,
        0,
    )
    assert after["models"] == [{"name": "hashed@256", "dim": 256, "vectors": 3}]
    assert run(["status"]) == 0
    assert "3 on disk, 3 indexed: up to date" in capsys.readouterr().out


def test_config_shows_each_value_with_its_origin_and_makes_no_index(
    capsys: Capture, root: Path
) -> None:
    (root / "notewell.toml").write_text("[search]\nlimit = 9\n")
    shown = answer(capsys, "config", "--model", "none")["settings"]
    assert shown["search.limit"]["value"] == 9
    assert shown["search.limit"]["origin"] == str(root / "notewell.toml")
    assert shown["embed.model"] == {
        "value": "none",
        "origin": "flag",
        "about": shown["embed.model"]["about"],
    }
    assert shown["chunk.tokens"]["origin"] == "default"
    assert run(["config"]) == 0
    assert "embed.model = 'hashed'  [NOTEWELL_EMBED_MODEL]" in capsys.readouterr().out
    assert not (root / ".notewell").exists()


def test_an_index_named_on_the_command_line_is_relative_to_where_one_stands(
    root: Path, tmp_path: Path
) -> None:
    os.chdir(tmp_path)
    assert run(["index", "-w", str(root), "--index", "own.sqlite"]) == 0
    assert (tmp_path / "own.sqlite").exists()
    assert not (root / ".notewell").exists()


def test_init_makes_a_workspace_once(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "fresh"
    made = answer(capsys, "init", str(place))
    assert made == {"workspace": str(place), "made": ["MEMORY.md", "memory/", "notewell.toml"]}
    (place / "MEMORY.md").write_text("mine")
    assert answer(capsys, "init", str(place))["made"] == []
    assert (place / "MEMORY.md").read_text() == "mine"
    assert run(["index", "-w", str(place)]) == 0, "the settings file it makes is a valid one"


def test_init_sees_a_memory_file_in_any_case(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "memory.MD").write_text("mine")
    assert answer(capsys, "init", str(tmp_path))["made"] == ["memory/", "notewell.toml"]


def test_demo_makes_sample_notes_and_searches_them(capsys: Capture, tmp_path: Path) -> None:
    assert run(["demo", "--to", str(tmp_path / "demo")]) == 0
    out = capsys.readouterr().out
    assert out.count("$ notewell") >= 3
    assert "! conflicts with" in out.partition("which port does staging answer on")[2], (
        "the new memory is found"
    )
    assert len(out.splitlines()) <= 40
    assert (tmp_path / "demo" / "MEMORY.md").exists()
    assert not (tmp_path / "demo" / "demo.toml").exists()
    assert run(["demo", "--to", str(tmp_path / "demo")]) == 2
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-w", "/nowhere/at/all", "x"], ["does not exist", "make the folder"]),
        (["config", "-w", "/nowhere/at/all"], ["is not a folder", "make the folder"]),
        (["search", "-w", "MEMORY.md", "x"], ["is not a folder"]),
        (["search", "x", "--since", "someday"], ["'someday' is not a date", "try 2026-03-19"]),
        (["search", "x", "--now", "late"], ["is not an ISO date"]),
        (["search", "x", "--profile", "rff"], ["no profile is called 'rff'", "did you mean rrf?"]),
        (["search", "x", "--model", "hashd"], ["no embedding model", "did you mean hashed?"]),
        (["search", "x", "--limit", "0"], ["--limit"]),
        (["search"], ["Missing argument"]),
        (["search", "--colour", "x"], ["No such option"]),
        (["get", "memory/none.md"], ["no note or passage is called"]),
        (["get", "MEMORY.md:99"], ["has 3 lines"]),
        (["why", "x", "memory/none.md"], ["no note or passage is called"]),
    ],
)
def test_wrong_usage_exits_2_and_says_what_to_do(
    capsys: Capture, arguments: list[str], words: list[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    for word in words:
        assert word in err


@pytest.mark.parametrize("question", ["", "...", "?!", "\0", "\udcff"])
def test_a_question_without_words_says_what_to_do(capsys: Capture, question: str) -> None:
    assert run(["search", question]) == 0
    out, err = capsys.readouterr()
    assert out == "no hits\n"
    assert err == "note: the question has no word to look for (type some words)\n"


def test_notices_are_part_of_the_object_and_never_of_stdout_beside_it(capsys: Capture) -> None:
    found = answer(capsys, "search", "...")
    assert found["notices"] == [
        {
            "code": "empty_query",
            "message": "the question has no word to look for",
            "hint": "type some words",
        }
    ]


def test_a_newer_index_exits_1_with_a_hint(capsys: Capture, root: Path) -> None:
    assert run(["index"]) == 0
    db = sqlite3.connect(root / ".notewell" / "index.sqlite")
    db.execute("PRAGMA user_version = 999")
    db.close()
    capsys.readouterr()
    assert run(["search", "port"]) == 1
    err = capsys.readouterr().err
    assert "newer notewell" in err
    assert "hint: upgrade notewell" in err


def test_a_settings_file_that_asks_for_too_much_exits_2(capsys: Capture, root: Path) -> None:
    (root / "notewell.toml").write_text('extra_paths = ["/etc"]')
    assert run(["search", "port"]) == 2
    assert "inside the workspace" in capsys.readouterr().err


def test_an_interrupt_exits_130(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_args: Any, **_kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "search", interrupted)
    assert run(["search", "port"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_an_unexpected_trouble_with_a_file_exits_1_without_a_traceback(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_kwargs: Any) -> None:
        raise OSError(5, "Input/output error", "index.sqlite")

    monkeypatch.setattr(Memory, "open", broken)
    assert run(["search", "port"]) == 1
    assert capsys.readouterr().err == "error: Input/output error: index.sqlite\n"


HOSTILE = "\x1b]0;owned\x07\x1b[2Jstaging\x9b31m \u202eport"


def test_a_hostile_note_cannot_steer_the_terminal(
    capsys: Capture, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/evil\x1b[31m\n.md", f"# {HOSTILE}\n\n{HOSTILE} zeppelin\n")
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_args, **_kwargs: False)
    path = "memory/evil\x1b[31m\n.md"
    write("memory/bad\x1b[31m.md", b"\xff\xff\0")
    for arguments in (
        ["zeppelin", "--explain"],
        ["get", path],
        ["why", "zeppelin", path],
        ["index", "--force"],
    ):
        assert run(arguments) == 0
        out, err = capsys.readouterr()
        assert "evil" in out or "zeppelin" in out or "bad" in out
        ours = re.sub(r"\x1b\[\d*(;\d+)*m", "", out + err)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ours)
        assert "\x1b[31m" not in out


def test_json_keeps_a_hostile_note_as_data(capsys: Capture, write: Write) -> None:
    write("memory/evil.md", f"{HOSTILE} zeppelin\n")
    assert run(["zeppelin", "--json"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert any("\x1b[2J" in hit["snippet"] for hit in json.loads(out)["results"])


def test_an_error_about_a_hostile_name_is_safe_too(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_args, **_kwargs: False)
    assert run(["search", "x", "--profile", "\x9b2J"]) == 2
    assert "\x9b" not in capsys.readouterr().err


def test_every_command_has_help(capsys: Capture) -> None:
    for name in ("search", "why", "index", "get", "status", "config", "init", "demo", "doctor"):
        assert run([name, "--help"]) == 0
        assert f"notewell {name}" in capsys.readouterr().out


def test_a_hit_is_shown_with_its_confidence_in_a_word_and_a_number(capsys: Capture) -> None:
    best = answer(capsys, "search", "staging port")["results"][0]
    assert best["certainty"] in ("likely", "perhaps")
    assert run(["search", "staging port"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split()[1:3] == [best["certainty"], f"{best['confidence']:.2f}"]
    assert (
        answer(capsys, "search", "staging port", "--profile", "rrf")["results"][0]["certainty"]
        is None
    )
    assert run(["search", "staging port", "--profile", "rrf"]) == 0
    assert capsys.readouterr().out.split()[1] == "score"


def test_all_shows_what_is_almost_surely_wrong(capsys: Capture) -> None:
    question = ("search", "quarterly zeppelin hangar inspection of the Montgolfier brothers")
    silent = json.loads(_out(capsys, *question, "--json"))
    assert silent["results"] == []
    assert [n["code"] for n in silent["notices"]] == ["no_relevant_memory"]
    whole = answer(capsys, *question, "--all")["results"]
    assert len(whole) == 3
    assert {hit["certainty"] for hit in whole} == {"weak"}
    assert answer(capsys, *question, "--min-score", "0")["results"] == whole
    assert answer(capsys, *question, "-k", "2", "--all")["results"] == whole[:2]
    assert run([*question, "--all", "--min-score", "0.3"]) == 2


def _out(capsys: Capture, *arguments: str) -> str:
    assert run([*arguments]) == 0
    return capsys.readouterr().out
