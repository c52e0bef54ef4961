"""Hand-written pairs of passages: what is a copy, what contradicts, and what only looks alike.

The rules were written with `pairs.jsonl` in view, and without `pairs-held.jsonl`.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from notewell.compare.judge import Verdict, judge
from notewell.compare.reading import read
from notewell.index.dedupe import consolidate
from notewell.index.walk import Walk
from notewell.sources.files import FileSource
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Filters, Relations

HERE = Path(__file__).parent
FILES = ("pairs.jsonl", "pairs-held.jsonl")


def pairs(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def verdict(pair: dict[str, Any]) -> Verdict:
    first = read(pair["a"], tuple(pair.get("heading_a", ())))
    return judge(first, read(pair["b"], tuple(pair.get("heading_b", ()))))


def test_there_are_enough_pairs_of_every_kind() -> None:
    kinds = Counter(p["kind"] for name in FILES for p in pairs(name))
    assert set(kinds) == {"dup", "update", "conflict", "look-alike"}
    assert min(kinds.values()) >= 12
    assert len(pairs("pairs.jsonl")) >= 60
    assert len(pairs("pairs-held.jsonl")) >= 25


@pytest.mark.parametrize("name", FILES)
def test_95_of_100_pairs_are_judged_right(name: str) -> None:
    wrong = [
        (p["verdict"], str(verdict(p)), p["a"], p["b"])
        for p in pairs(name)
        if verdict(p) != p["verdict"]
    ]
    assert len(wrong) <= 0.05 * len(pairs(name)), wrong


@pytest.mark.parametrize("name", FILES)
def test_no_pair_that_differs_is_taken_for_copies(name: str) -> None:
    hidden = [
        p for p in pairs(name) if p["verdict"] != "duplicate" and verdict(p) == Verdict.DUPLICATE
    ]
    assert hidden == []


@pytest.mark.parametrize("name", FILES)
def test_in_a_workspace_a_copy_is_hidden_and_nothing_else_is(name: str, tmp_path: Path) -> None:
    """Indexes and consolidates each pair as two dated notes in a separate workspace."""
    wrong = []
    for n, pair in enumerate(pairs(name)):
        paths = []
        for day, side in (("01", "a"), ("02", "b")):
            heading = "".join(f"# {title}\n\n" for title in pair.get(f"heading_{side}", ()))
            place = tmp_path / str(n) / "memory" / f"2026-03-{day}.md"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{heading}{pair[side]}\n", encoding="utf-8")
            paths.append(f"memory/2026-03-{day}.md")
        store = SqliteStore(None)
        Walk([FileSource(tmp_path / str(n))], store).sync()
        consolidate(store)
        older, newer = (store.documents.chunks_of(path)[0] for path in paths)
        found = store.relations.related([older, newer], Filters()).get(older.row, Relations())
        got = (
            "duplicate"
            if found.copy
            else "conflict"
            if newer.id in found.conflicts_with
            else "different"
        )
        if got != pair["verdict"]:
            wrong.append((got, pair))
        store.close()
    assert not [w for w in wrong if w[0] == "duplicate"]
    assert len(wrong) <= 0.05 * len(pairs(name)), wrong
