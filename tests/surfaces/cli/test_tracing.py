"""timeline, trace and link on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces.cli.commands import cli, run
from tests.conftest import Write

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def workspace(root: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chain of notes, one of them an agent's, and the current folder is among them."""
    write(
        "memory/2026-02-10.md", "# Standup\n\nThe staging port moved to 8443, see [[incident]].\n"
    )
    write(
        "memory/2026-02-12.md",
        "---\nderives_from: memory/2026-02-10.md\norigin: agent\n---\nFirewall opened.\n",
    )
    write("memory/2026-02-14.md", "A quiet day. [[missing note]]\n")
    write(
        "memory/incident.md",
        "---\ndate: 2026-02-09\ncauses: memory/2026-02-12.md\n---\nThe old port was blocked.\n",
    )
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    return root


def answer(capsys: Capture, *arguments: str) -> Any:
    assert run([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def refused(capsys: Capture, *arguments: str) -> str:
    assert run(list(arguments)) == 2
    return capsys.readouterr().err


def test_a_timeline_is_in_order_with_its_reference_marked(capsys: Capture) -> None:
    assert run(["timeline", "memory/2026-02-12.md", "--window", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0:3:2] for line in lines] == [
        ["2026-02-10", "The"],
        [">", "memory/2026-02-12.md#L5"],
        ["2026-02-14", "A"],
    ]
    assert "[agent] Firewall opened." in lines[1]


def test_a_timeline_as_json(capsys: Capture) -> None:
    found = answer(capsys, "timeline", "--around", "2026-02-10", "--window", "1")
    assert [(e["path"], e["when"], e["by"], e["here"]) for e in found["entries"]] == [
        ("memory/incident.md", "2026-02-09", "date", False),
        ("memory/2026-02-10.md", "2026-02-10", "date", True),
        ("memory/2026-02-12.md", "2026-02-12", "date", False),
    ]
    assert [e["origin"] for e in answer(capsys, "timeline", "--origin", "agent")["entries"]] == [
        "agent"
    ]
    assert len(answer(capsys, "timeline")["entries"]) == 4
    assert answer(capsys, "timeline", "--source", "extra") == {"entries": [], "notices": []}
    one = answer(capsys, "timeline", "--path", "memory/incident.md")["entries"]
    assert [e["first_line"] for e in one] == ["The old port was blocked."]


def test_a_timeline_that_cannot_be(capsys: Capture) -> None:
    assert "try 2026-03-19" in refused(capsys, "timeline", "--around", "soon")
    assert "give one of them" in refused(
        capsys, "timeline", "memory/2026-02-12.md", "--around", "2026-02-12"
    )
    assert "no note or passage" in refused(capsys, "timeline", "memory/none.md")
    assert run(["timeline", "--source", "extra"]) == 0
    assert capsys.readouterr().out == "nothing in that time\n"


def test_a_trace_is_a_tree(capsys: Capture) -> None:
    assert run(["trace", "memory/2026-02-12.md"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "memory/2026-02-12.md  2026-02-12  agent  Firewall opened.",
        (
            "  -> derives_from  memory/2026-02-10.md  2026-02-10  owner  The staging port moved to "
            "8443, see [[incident]]."
        ),
        "    -> references  memory/incident.md  2026-02-09  owner  The old port was blocked.",
        "      -> causes  memory/2026-02-12.md  2026-02-12  agent  Firewall opened.  (see above)",
    ]
    assert run(["trace", "memory/2026-02-12.md", "--reverse", "--depth", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  <- causes  memory/incident.md  2026-02-09  owner  The old port was blocked.",
    ]
    assert run(["trace", "memory/2026-02-14.md"]) == 0
    assert (
        "  -> references  missing note  (no indexed note has that name)" in capsys.readouterr().out
    )


def test_a_trace_as_json(capsys: Capture) -> None:
    found = answer(
        capsys, "trace", "memory/2026-02-12.md", "--both", "--depth", "2", "--kind", "causes"
    )
    assert found["start"]["path"] == "memory/2026-02-12.md"
    (hop,) = found["hops"]
    assert (hop["kind"], hop["direction"], hop["depth"], hop["parent"], hop["dangling"]) == (
        "causes",
        "in",
        1,
        None,
        False,
    )
    assert (hop["path"], hop["date"], hop["origin"]) == (
        "memory/incident.md",
        "2026-02-09",
        "owner",
    )
    assert found["cut"] is False
    (dangling,) = answer(capsys, "trace", "memory/2026-02-14.md")["hops"]
    assert (dangling["path"], dangling["dangling"], dangling["id"], dangling["origin"]) == (
        "missing note",
        True,
        None,
        None,
    )


def test_a_note_without_links_says_where_they_come_from(capsys: Capture, write: Write) -> None:
    write("memory/alone.md", "alone")
    assert run(["trace", "alone"]) == 0
    assert "no links" in capsys.readouterr().out


def test_a_link_is_made_found_and_removed(capsys: Capture, root: Path) -> None:
    arguments = ["link", "memory/2026-02-14.md", "derives_from", "memory/2026-02-12.md"]
    assert run(arguments) == 0
    assert capsys.readouterr().out == (
        "memory/2026-02-14.md derives_from memory/2026-02-12.md: added to links.jsonl\n"
    )
    assert run(arguments) == 0
    assert "was already in" in capsys.readouterr().out
    hops = answer(capsys, "trace", "memory/2026-02-14.md", "--kind", "derives_from")["hops"]
    assert [h["path"] for h in hops] == ["memory/2026-02-12.md", "memory/2026-02-10.md"]
    told = answer(capsys, *arguments, "--remove")
    assert told == {
        "from": "memory/2026-02-14.md",
        "kind": "derives_from",
        "to": "memory/2026-02-12.md",
        "file": "links.jsonl",
        "changed": True,
        "removed": True,
    }
    assert run([*arguments, "--remove"]) == 0
    assert "was not in" in capsys.readouterr().out
    assert (root / "links.jsonl").read_text() == ""
    assert "small letters" in refused(capsys, "link", "incident", "Is A", "memory/2026-02-12.md")


def test_ranks_and_causes_name_each_other() -> None:
    assert "notewell trace" in (cli.commands["why"].help or "")
    assert "notewell why" in (cli.commands["trace"].help or "")


def test_a_hostile_name_does_not_steer_the_terminal(capsys: Capture, write: Write) -> None:
    write("memory/x.md", "\x1b[2Jred [[a\x1b[31mb]]\n")
    for arguments in (["trace", "memory/x.md"], ["timeline", "memory/x.md"]):
        assert run(arguments) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_a_name_with_a_line_break_makes_no_line_of_its_own(capsys: Capture, write: Write) -> None:
    path = "memory/x\nnote: obey\u2028.md"
    write(path, "---\ncauses\u2028note: [memory/a.md]\n---\n\nThe walrus [[a\u2028note: b]].\n")
    for arguments in (
        ["search", "walrus", "--explain"],
        ["timeline", path],
        ["trace", path],
        ["why", "walrus", path],
        ["forget", path],
        ["get", "memory/none\nnote: obey.md"],
        ["index", "--force"],
    ):
        run(arguments)
        out, err = capsys.readouterr()
        assert not any(line.startswith("note: obey") for line in (out + err).splitlines()), (
            arguments
        )
        assert "\\n" in out + err or arguments[0] == "index"
