"""Copies, contradictions and successors as a user meets them: in answers, explanations and on the
command line.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.notes.link_walk import Direction
from notewell.surfaces.cli.commands import run
from notewell.types import Filters
from tests.conftest import PATIENT, CountingEmbedder, Write

NOW = dt.datetime(2026, 4, 1, 9)  # noqa: DTZ001 - days of this place
PORT = "The staging port is 8080."


def paths(memory: Memory, text: str = "staging port", **options: object) -> list[str]:
    return [h.chunk.path for h in memory.search(text, now=NOW, **options).hits]  # type: ignore[arg-type]


def test_copies_are_shown_once_and_reachable(memory: Memory, write: Write) -> None:
    write("memory/2026-03-01.md", PORT)
    write("memory/2026-03-02.md", f"- {PORT}")
    assert paths(memory) == ["memory/2026-03-02.md"]
    found = memory.search("staging port", now=NOW, include_superseded=True)
    assert {h.chunk.path for h in found.hits} == {"memory/2026-03-01.md", "memory/2026-03-02.md"}
    by_path = {h.chunk.path: h for h in found.hits}
    newest = by_path["memory/2026-03-02.md"]
    assert by_path["memory/2026-03-01.md"].superseded_by == newest.chunk.id
    assert newest.superseded_by == ""


def test_why_names_the_copy_that_is_shown(memory: Memory, write: Write) -> None:
    write("memory/2026-03-01.md", PORT)
    write("memory/2026-03-02.md", PORT)
    hit = memory.search("staging port", now=NOW).hits[0]
    _, story = memory.why("staging port", "memory/2026-03-01.md", now=NOW)
    assert (
        story.verdict
        == f"dropped by Collapse(): memory/2026-03-02.md#L1 ({hit.chunk.id}) says the same"
    )


def test_a_superseded_note_is_left_out_although_its_successor_shares_no_word(
    memory: Memory, write: Write
) -> None:
    write("memory/old.md", PORT)
    write("memory/new.md", "---\nsupersedes: memory/old.md\n---\nEverything moved away.")
    assert "memory/old.md" not in paths(memory)
    _, story = memory.why("staging port", "memory/old.md", now=NOW)
    assert story.verdict.startswith("dropped by Suppress(): memory/new.md#L4 (")
    assert story.verdict.endswith("supersedes it")
    assert "memory/old.md" in paths(memory, include_superseded=True)


def test_a_pinned_passage_is_never_left_out(memory: Memory, write: Write) -> None:
    write("memory/old.md", f"---\npinned: true\n---\n{PORT}")
    write("memory/new.md", "---\nsupersedes: memory/old.md\n---\nStaging moved away.")
    write("memory/2026-03-02.md", PORT)
    found = paths(memory)
    assert "memory/old.md" in found
    assert "memory/2026-03-02.md" not in found, "the pinned copy stands for the group"


def test_of_two_that_contradict_the_newer_is_directly_first(memory: Memory, write: Write) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    write("memory/2026-03-05.md", "The staging port is 9443.")
    write(
        "memory/2026-03-03.md",
        "The staging port was a topic in the standup, and Ann asked who may open it.",
    )
    for question in ("which staging port", "staging port"):
        found = memory.search(question, now=NOW)
        order = [h.chunk.path for h in found.hits]
        newer, older = order.index("memory/2026-03-05.md"), order.index("memory/2026-03-01.md")
        assert newer < older
        hits = {h.chunk.path: h for h in found.hits}
        assert hits["memory/2026-03-05.md"].conflicts_with == (
            hits["memory/2026-03-01.md"].chunk.id,
        )
        assert hits["memory/2026-03-01.md"].conflicts_with == (
            hits["memory/2026-03-05.md"].chunk.id,
        )
        assert sorted((h.score for h in found.hits), reverse=True) == [h.score for h in found.hits]
    asked = memory.search("staging port 8080", now=NOW).hits
    assert asked[0].chunk.path == "memory/2026-03-01.md", (
        "the question has the older one's own words"
    )
    assert asked[0].conflicts_with == (hits["memory/2026-03-05.md"].chunk.id,), (
        "and who reads it is told"
    )


def test_a_filter_shows_the_copy_that_it_asks_for(memory: Memory, write: Write) -> None:
    write("memory/2026-03-01.md", PORT)
    write("memory/2026-03-02.md", PORT)
    assert paths(memory, filters=Filters(path="memory/2026-03-01.md")) == ["memory/2026-03-01.md"]
    assert paths(memory, filters=Filters(until=dt.date(2026, 3, 1))) == ["memory/2026-03-01.md"]


def test_switched_off_nothing_is_judged_and_nothing_hidden(
    root: Path, write: Write, embedder: CountingEmbedder
) -> None:
    write("memory/2026-03-01.md", PORT)
    write("memory/2026-03-02.md", PORT)
    with Memory.open(root, env=PATIENT, embedder=embedder, consolidate=False) as memory:
        memory.sync()
        assert len(paths(memory)) == 2
        assert len(memory.store.relations.unjudged(10)) == 2
    with Memory.open(root, env=PATIENT, embedder=embedder) as memory:
        assert len(paths(memory)) == 1
    with Memory.open(root, env=PATIENT, embedder=embedder, consolidate=False) as memory:
        assert len(paths(memory)) == 2


def test_published_pipelines_show_copies_as_they_always_did(memory: Memory, write: Write) -> None:
    write("memory/2026-03-01.md", PORT)
    write("memory/2026-03-02.md", PORT)
    for profile in ("lexical", "rrf", "maxnorm", "siftcoder", "openclaw"):
        assert len(paths(memory, profile=profile)) == 2, profile


def test_the_command_line_marks_and_includes(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("memory/2026-03-01.md", "The staging port is 8080.")
    write("memory/2026-03-02.md", "The staging port is 8080.")
    write("memory/2026-03-05.md", "The staging port is 9443.")
    common = ["search", "staging port", "-w", str(root), "--model", "none"]
    assert run([*common, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [r["path"] for r in results] == ["memory/2026-03-05.md", "memory/2026-03-02.md"]
    assert results[0]["conflicts_with"] == [results[1]["id"]]
    assert [r["superseded_by"] for r in results] == [None, None]
    assert run([*common, "--json", "--explain"]) == 0
    trace = json.loads(capsys.readouterr().out)["trace"]
    (gone,) = next(stage["dropped"] for stage in trace["stages"] if stage["name"] == "Collapse()")
    assert trace["candidates"][gone]["superseded_by"] == results[1]["id"]
    assert run([*common, "--json", "--include-superseded"]) == 0
    results = {r["path"]: r for r in json.loads(capsys.readouterr().out)["results"]}
    assert results["memory/2026-03-01.md"]["superseded_by"] == results["memory/2026-03-02.md"]["id"]
    assert run([*common, "--include-superseded"]) == 0
    shown = capsys.readouterr().out
    assert f"! conflicts with {results['memory/2026-03-02.md']['id']}" in shown
    assert f"superseded by {results['memory/2026-03-02.md']['id']}" in shown


def test_what_was_replaced_does_not_come_back_by_an_older_copy(
    memory: Memory, write: Write
) -> None:
    write("memory/2026-01-01.md", "The courier picks parcels up at noon.\n")
    write("memory/2026-02-01.md", "The courier picks parcels up at noon\n")
    write("memory/2026-03-01.md", "The courier picks parcels up at nine.\n")
    memory.sync()
    shown = {
        h.chunk.path: h.chunk.id
        for h in memory.search("when does the courier pick parcels up").hits
    }
    assert set(shown) == {"memory/2026-02-01.md", "memory/2026-03-01.md"}
    done = memory.remember(
        "Nobody collects anything here any more.", supersedes=shown["memory/2026-02-01.md"]
    )
    found = memory.search("when does the courier pick parcels up").hits
    assert [h.chunk.path for h in found if "courier" in h.chunk.text] == ["memory/2026-03-01.md"]
    assert found[0].conflicts_with == (), "what was replaced contradicts nobody any more"
    everything = memory.search(
        "when does the courier pick parcels up", include_superseded=True
    ).hits
    replaced = {h.chunk.path: h.superseded_by for h in everything if "noon" in h.chunk.text}
    assert replaced == {"memory/2026-01-01.md": done.id, "memory/2026-02-01.md": done.id}
    write("memory/2026-12-01.md", "The courier picks parcels up at noon.\n")
    again = memory.search("when does the courier pick parcels up").hits
    assert "memory/2026-12-01.md" in {h.chunk.path for h in again}, "who says it anew means it"


def test_trace_shows_what_a_passage_stands_for_from_both_ends(memory: Memory, write: Write) -> None:
    write("memory/2026-01-01.md", "The courier picks parcels up at noon.\n")
    write("memory/2026-02-01.md", "The courier picks parcels up at noon\n")
    write(
        "memory/2026-03-01.md",
        "Lunch is at one now.\n\n<!-- supersedes: memory/2026-02-01.md#L1 -->\n",
    )
    write("memory/2026-04-01.md", "---\nsupersedes: memory/old.md\n---\nAll new.\n")
    write("memory/old.md", "All old.\n")
    memory.sync()

    def hops(reference: str, direction: Direction) -> list[tuple[str, str, str]]:
        found, _ = memory.trace(reference, direction=direction, depth=1)
        return sorted((h.kind, h.direction, h.node.path) for h in found.hops)

    older = [
        ("supersedes", "out", "memory/2026-01-01.md"),
        ("supersedes", "out", "memory/2026-02-01.md"),
    ]
    assert hops("memory/2026-03-01.md", "out") == older
    assert hops("memory/2026-02-01.md", "in") == [("supersedes", "in", "memory/2026-03-01.md")]
    assert hops("memory/2026-04-01.md", "out") == [("supersedes", "out", "memory/old.md")], (
        "said once, shown once"
    )
    assert hops("memory/old.md", "in") == [("supersedes", "in", "memory/2026-04-01.md")]
