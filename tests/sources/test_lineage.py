"""Sessions that continue others, from real files of the usual shapes."""

from __future__ import annotations

import json
from pathlib import Path

from recollect.sources.lineage import session_edges
from recollect.types import Document

OLD = "0195a2c4-1111-7222-8333-444455556666"
NEW = "0195a2c4-9999-7222-8333-444455556666"


def document(tmp_path: Path, name: str, *records: object) -> Document:
    place = tmp_path / name
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    place.write_text("\n".join(lines))
    return Document(f"sessions/{name}", "sessions", 1, 1, str(place))


def ends(one: Document, **rest: dict[str, str]) -> list[tuple[str, str, str]]:
    return [(e.kind, e.start.name, e.end.name) for e in session_edges(one, **rest)]


def test_a_resumed_session_derives_from_the_one_whose_records_it_carries(tmp_path: Path) -> None:
    one = document(
        tmp_path,
        f"{NEW}.jsonl",
        {"type": "summary", "leafUuid": "m9"},
        "{torn",
        {"sessionId": OLD, "uuid": "m1", "parentUuid": None},
        {"sessionId": NEW, "uuid": "m2", "parentUuid": "m1"},
    )
    path = f"sessions/{NEW}.jsonl"
    assert ends(one) == [("derives_from", path, OLD)]
    assert ends(one, known={"m9": "sessions/other.jsonl", "m1": path}) == [
        ("derives_from", path, OLD),
        ("derives_from", path, "sessions/other.jsonl"),
    ]


def test_a_forked_rollout_names_its_parent(tmp_path: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": NEW, "forked_from_id": OLD}}
    one = document(tmp_path, f"rollout-2026-11-15T10-00-00-{NEW}.jsonl", meta)
    assert [e[2] for e in ends(one)] == [OLD]


def test_a_session_of_its_own_has_no_edges(tmp_path: Path) -> None:
    one = document(
        tmp_path, f"{NEW}.jsonl", {"sessionId": NEW}, [1], '"text"', "\udcff".encode("utf-8", "replace").decode()
    )
    assert ends(one) == []
    assert session_edges(Document("gone.jsonl", "sessions", 1, 1, str(tmp_path / "gone.jsonl"))) == []
