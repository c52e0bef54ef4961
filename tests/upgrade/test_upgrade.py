"""An index and settings of every version that was released open, are converted, or say what to
do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from notewell import Memory
from notewell.embed.local.hashed import HashedEmbedder
from notewell.errors import StoreVersionError
from notewell.settings import Settings, load, user_file
from notewell.types import Role, Vectors
from tests.upgrade.keep import HERE, OWN, WORKSPACE, keep

KEPT = sorted(p for p in HERE.iterdir() if (p / "index.sqlite").exists())
COMPLAINTS = {
    "index_rebuilt",
    "index_reopened",
    "model_fallback",
    "no_embedder",
    "forgotten_unread",
}


@pytest.fixture(params=KEPT, ids=lambda p: p.name)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The workspace of an earlier version, as it lies on somebody's disk."""
    root = tmp_path / "workspace"
    own = root / ".notewell"
    own.mkdir(parents=True)
    shutil.copytree(request.param / "memory", root / "memory")
    for name in ("MEMORY.md", "notewell.toml"):
        shutil.copy(request.param / name, root / name)
    for name in ("index.sqlite", "forgotten.jsonl"):
        shutil.copy(request.param / name, own / name)
    return root


class Counting(HashedEmbedder):
    """The model of the kept index; remembers which passages it was given."""

    def __init__(self) -> None:
        super().__init__(64)
        self.given: list[str] = []

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.given += texts if role == "document" else []
        return super().embed(texts, role)


def test_something_is_kept_and_is_small() -> None:
    assert "0.1.0" in [p.name for p in KEPT]
    assert all((p / "index.sqlite").stat().st_size < 500_000 for p in KEPT)


def test_the_index_opens_and_nothing_is_embedded_again(kept: Path) -> None:
    model = Counting()
    with Memory.open(kept, embedder=model) as memory:
        found = memory.search("which port does staging have")
    assert found.hits[0].chunk.path == "memory/2026-02-10.md"
    assert found.mode == "hybrid"
    assert model.given == []
    assert not COMPLAINTS & {notice.code for notice in found.notices}


def test_what_was_forgotten_stays_forgotten(kept: Path) -> None:
    with Memory.open(kept) as memory:
        memory.sync(force=True)
        found = memory.search("spare key under the mat", min_score=0.0)
    assert not any("spare key" in hit.snippet for hit in found.hits)


def test_it_takes_new_notes_and_the_deep_look_finds_nothing(kept: Path) -> None:
    (kept / "memory/new.md").write_text("# New\n\nThe kettle is blue.\n", encoding="utf-8")
    with Memory.open(kept) as memory:
        memory.sync()
        assert memory.search("colour of the kettle").hits[0].chunk.path == "memory/new.md"
        assert list(memory.store.audit()) == []


def test_both_settings_files_are_taken(kept: Path, request: pytest.FixtureRequest) -> None:
    version: Path = request.node.callspec.params["kept"]
    own = user_file(os.environ)
    own.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(version / "config.toml", own)
    settings: Settings = load(kept, env=os.environ)
    values = {key: value for key, value, *_ in settings.items()}
    assert values["chunk.tokens"] == 300
    assert values["search.limit"] == 5
    assert values["hook.confidence"] == 0.5
    assert values["sessions.keep_mb"] == 500.0


def test_an_index_of_a_later_version_says_what_to_do(kept: Path) -> None:
    with apsw.Connection(str(kept / ".notewell/index.sqlite")) as db:
        db.execute("PRAGMA user_version = 900")
    before = (kept / ".notewell/index.sqlite").read_bytes()
    with (
        pytest.raises(StoreVersionError, match="written by a newer notewell") as caught,
        Memory.open(kept) as memory,
    ):
        memory.search("staging")
    assert "upgrade notewell" in caught.value.hint
    assert (kept / ".notewell/index.sqlite").read_bytes() == before


def test_this_version_can_be_kept(tmp_path: Path) -> None:
    place = tmp_path / "next"
    keep(place)
    assert (place / "index.sqlite").stat().st_size < 500_000
    assert (place / "notewell.toml").read_text(encoding="utf-8") == WORKSPACE
    assert (place / "config.toml").read_text(encoding="utf-8") == OWN
