"""Windows from the notes to the answer: lines, snippet, reasons, settings, and nothing left after
forgetting.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notewell.memory import Memory
from notewell.store.rows import hash_kept
from notewell.surfaces import view
from tests.conftest import PATIENT, Write
from tests.embed.models import Windowed

FILLER = "The barley and the oats grow well, and the cattle are on the upper meadow."
DEEP = "Quarterly invoices leave from Lisbon."


@pytest.fixture
def notes(root: Path, write: Write) -> Path:
    lines = [f"{FILLER} It is week {n}." for n in range(12)]
    write("memory/farm.md", "# Farm\n\n" + "\n".join([*lines[:8], DEEP, *lines[8:]]) + "\n")
    for n in range(6):
        write(f"memory/other{n}.md", f"A lamp, a ladder and {n} chairs are in the attic.\n")
    return root


def model() -> Windowed:
    return Windowed(dim=64)


def test_an_answer_names_the_lines_that_are_nearest(notes: Path) -> None:
    with Memory.open(notes, embedder=model(), env=PATIENT) as memory:
        found = memory.search("lisbon invoicing quarterly")
        hit = next(h for h in found.hits if h.chunk.path == "memory/farm.md")
        assert hit.near_lines == (11, 11)
        assert view.hit(hit)["near_lines"] == [11, 11]
        assert "line 11 is nearest in meaning" in hit.why
        story = memory.why("lisbon invoicing quarterly", hit.chunk.id)[1].lines
        told = next(line for line in story if line.startswith("meaning: "))
        cosine, whole, part = (float(told.replace("(", "").split()[n]) for n in (1, 3, 6))
        assert cosine == pytest.approx((whole + part) / 2, abs=1e-4)
        assert told.endswith("line 11 is nearest in meaning")
        other = next(
            (h for h in memory.search("attic ladder").hits if "other" in h.chunk.path), None
        )
        assert other is not None
        assert (other.near_lines, view.hit(other)["near_lines"]) == (None, None)


def test_an_excerpt_is_around_the_nearest_lines_unless_the_words_match_well(notes: Path) -> None:
    with Memory.open(notes, embedder=model(), env=PATIENT) as memory:
        unlike = memory.search("qquarterly iinvoices llisbon", min_score=0)
        hit = next(h for h in unlike.hits if h.chunk.path == "memory/farm.md")
        assert hit.signals.cover < 0.5
        assert DEEP in hit.snippet
        worded = memory.search("barley oats cattle meadow")
        assert "barley" in next(h for h in worded.hits if h.chunk.path == "memory/farm.md").snippet


def test_windows_can_be_switched_off(notes: Path) -> None:
    for off, parts in ((0, {None}), (-1, {None, 1.0})):
        with Memory.open(notes, embedder=model(), env=PATIENT, search__windows=off) as memory:
            hits = memory.search(DEEP, profile="vector").hits
            assert {h.signals.part and round(h.signals.part, 1) for h in hits} == parts
            assert any(h.near_lines for h in hits) == bool(off)


def test_a_merged_answer_keeps_the_lines(notes: Path) -> None:
    with Memory.open(notes, embedder=model(), env=PATIENT) as memory:
        block = memory.context("lisbon invoicing quarterly", budget_tokens=400)
        assert block.found is not None
        assert next(h for h in block.found.hits if h.chunk.path == "memory/farm.md").near_lines == (
            11,
            11,
        )


def test_no_byte_of_the_windows_of_forgotten_text_is_left(notes: Path) -> None:
    with Memory.open(notes, embedder=model(), env=PATIENT) as memory:
        memory.sync()
        store = memory.index.store
        (chunk,) = store.documents.chunks_of("memory/farm.md")
        codes = store.vectors.windows("windowed", [chunk.row])[chunk.row]
        assert len(codes) > 400
        receipt = memory.forget(chunk.id, yes=True)
        assert receipt.proved
        assert store.audit() == []
    kept = b"".join(p.read_bytes() for p in (notes / ".notewell").glob("index.sqlite*"))
    assert codes[20:60] not in kept
    assert codes[-60:] not in kept
    hashed = hash_kept(chunk.content_hash)
    assert isinstance(hashed, bytes)
    assert hashed not in kept


def test_json_has_the_lines_wherever_it_is_asked(notes: Path) -> None:
    with Memory.open(notes, embedder=model(), env=PATIENT) as memory:
        answer = json.loads(
            json.dumps(view.found(memory.search("lisbon invoicing quarterly"), explain=True))
        )
    (farm,) = (h for h in answer["results"] if h["path"] == "memory/farm.md")
    assert farm["near_lines"] == [11, 11]
    assert {"whole", "part"} <= answer["trace"]["candidates"][farm["id"]]["signals"].keys()
    schema = view.HIT.schema["properties"]["near_lines"]
    assert schema == {
        "anyOf": [{"type": "array", "items": {"type": "integer", "minimum": 0}}, {"type": "null"}]
    }
