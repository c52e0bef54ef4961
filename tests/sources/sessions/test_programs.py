"""Every program: what is heard of its conversations, what is not, how they grow, and that they
outlive it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from notewell.memory import Memory
from notewell.sources.sessions.counting import found
from notewell.sources.sessions.session_source import SessionSource
from notewell.types import Document, Turn
from tests.conftest import CountingEmbedder
from tests.sources.sessions.layouts import ANSWER, LATER, LAYOUTS, QUESTION, TOKEN, Layout

NEVER = ("quartz", "zanzibar", "<", "environment", "skill", "You are", "helper")
every = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


@pytest.fixture
def home(own_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TZ", "UTC")
    return own_environment


def only(source: SessionSource) -> Document:
    scanned = source.scan()
    assert (scanned.skipped, scanned.complete) == ((), True)
    (document,) = scanned.documents
    return document


def local(utc: str) -> dt.datetime:
    return dt.datetime.fromisoformat(f"{utc}+00:00").astimezone().replace(tzinfo=None)


def said(turns: Any) -> list[tuple[str, str]]:
    found: list[Turn] = list(turns)
    return [(t.origin, t.text.strip('"')) for t in found if "picture" not in t.text]


@every
def test_what_was_said_is_heard_with_speakers_and_times_and_nothing_else(
    layout: Layout, home: Path, root: Path
) -> None:
    layout.make(home, root)
    source = SessionSource(root)
    part = source.read_from(only(source), None)
    assert not part.foreign
    assert said(part.turns)[0] == ("owner", f"{QUESTION} My token is {TOKEN}")
    assert ("agent", ANSWER) in said(part.turns)
    assert not any(word in turn.text for turn in part.turns for word in NEVER)
    assert part.turns[0].time == local(layout.asked)
    assert [t.line for t in part.turns] == sorted({t.line for t in part.turns})
    assert found(root) == {layout.program.split(" (")[0].removesuffix(" 1").removesuffix(" 2"): 1}
    assert found(root / "elsewhere") == {}


@every
def test_what_is_added_is_read_by_itself(layout: Layout, home: Path, root: Path) -> None:
    place = layout.make(home, root)
    source = SessionSource(root)
    before = only(source)
    part = source.read_from(before, None)
    assert (part.mark is not None) == layout.grows
    assert source.read_from(before, part.mark).turns == (() if layout.grows else part.turns)
    layout.say(place)
    after = only(source)
    assert (after.size, after.mtime_ns) != (before.size, before.mtime_ns)
    more = source.read_from(after, part.mark)
    new = more.turns if layout.grows else more.turns[len(part.turns) :]
    assert [(t.origin, t.text, t.time) for t in new] == [
        ("owner", LATER, local("2026-11-16T18:33:20"))
    ]
    assert source.lines(after, new[0].line, new[0].line)[0] == list(new)
    assert LATER in source.raw(after)


@every
def test_a_conversation_outlives_its_program(
    layout: Layout, home: Path, root: Path, embedder: CountingEmbedder
) -> None:
    place = layout.make(home, root)
    with Memory.open(root, sources="sessions", embedder=embedder) as memory:
        memory.sync()
        hit = next(h for h in memory.search(QUESTION).hits if QUESTION in h.chunk.text)
        assert (hit.kept, TOKEN in hit.chunk.text) == (False, False)
        passages, texts = memory.store.counts()["chunks"], len(embedder.documents)
        layout.say(place)
        memory.sync()
        layout.delete(place)
        assert memory.sync().dropped == 0
        again = next(h for h in memory.search(QUESTION).hits if h.chunk.id == hit.chunk.id)
        assert (again.kept, again.chunk.citation) == (True, hit.chunk.citation)
        assert any(LATER in h.chunk.text for h in memory.search("port of production").hits)
        assert memory.sync().changed == 0
        text = memory.get(hit.chunk.citation).text
        assert QUESTION in text
        assert TOKEN not in text
        assert memory.store.counts()["chunks"] >= passages
        assert len(embedder.documents) <= texts + 2
        citations = sorted(
            c.citation
            for p in memory.store.documents.stored()
            for c in memory.store.documents.chunks_of(p)
        )
        ids = sorted(
            c.id
            for p in memory.store.documents.stored()
            for c in memory.store.documents.chunks_of(p)
        )
    for file in root.glob(".notewell/index.sqlite*"):
        file.unlink()
    # an index made from what is kept alone
    with Memory.open(root, sources="sessions", embedder=embedder) as memory:
        memory.sync()
        stored = memory.store.documents.stored()
        assert (
            sorted(c.citation for p in stored for c in memory.store.documents.chunks_of(p))
            == citations
        )
        assert sorted(c.id for p in stored for c in memory.store.documents.chunks_of(p)) == ids
        assert all(h.kept for h in memory.search(QUESTION).hits)
    (kept,) = (home / ".local/share/notewell/conversations").glob("*/*.md")
    written = kept.read_text()
    assert ANSWER in written
    assert TOKEN not in written
    assert not any(word in written for word in ("quartz", "zanzibar"))
    if os.name != "nt":
        modes = [path.stat().st_mode & 0o777 for path in (kept, kept.parent, kept.parent.parent)]
        assert modes == [0o600, 0o700, 0o700]


ODD: tuple[Any, ...] = (
    None,
    5,
    -1,
    1e308,
    float("inf"),
    True,
    "",
    "x",
    "\0",
    [],
    {},
    [None],
    {"a": None},
    -(10**18),
    2**62,
    "[",
    "2026-99-99",
)


def spoilt(value: Any, chance: Random) -> Any:
    """A JSON value with an odd value in some places, as another version of a program may write
    it.
    """
    if chance.random() < 0.1:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: spoilt(one, chance) for key, one in value.items()}
    return [spoilt(one, chance) for one in value] if isinstance(value, list) else value


def spoil(place: Path, chance: Random) -> None:
    """Puts odd values into a file of a program."""
    if place.suffix in (".json", ".jsonl"):
        text = place.read_text(encoding="utf-8")
        parts = [text] if place.suffix == ".json" else [line for line in text.split("\n") if line]
        place.write_text(
            "\n".join(json.dumps(spoilt(json.loads(one), chance)) for one in parts),
            encoding="utf-8",
        )
        return
    with apsw.Connection(str(place)) as db:
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall():
            names = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            with contextlib.suppress(apsw.Error):  # what a program itself could not write
                for row, *cells in db.execute(f'SELECT rowid, * FROM "{table}"').fetchall():
                    for name, cell in zip(names, cells, strict=True):
                        odd = spoilt(cell, chance)
                        if isinstance(cell, str) and cell[:1] in ("[", "{"):
                            odd = json.dumps(spoilt(json.loads(cell), chance))
                        odd = b"\xff" if isinstance(odd, list | dict) else odd
                        db.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = ?', (odd, row))
    db.close()


@every
@pytest.mark.parametrize("seed", range(12))
def test_odd_values_cost_no_more_than_the_conversation_they_are_in(
    layout: Layout, seed: int, home: Path, root: Path
) -> None:
    layout.make(home, root)
    for place in (
        p for p in home.rglob("*") if p.suffix in (".json", ".jsonl", ".db", ".sqlite", ".vscdb")
    ):
        spoil(place, Random(seed))
    found(root)
    source = SessionSource(root)
    for document in source.scan().documents:
        with contextlib.suppress(OSError):
            part = source.read_from(document, None)
            assert all(isinstance(t.text, str) for t in source.read_from(document, part.mark).turns)
            source.lines(document, 1, None)
            source.raw(document)
