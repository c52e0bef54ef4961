"""A memory opened where there is nothing yet, or far too much at once."""

from __future__ import annotations

from pathlib import Path

from notewell.memory import Memory
from tests.conftest import CountingEmbedder


def test_an_index_has_its_place_only_once_there_is_a_note(
    root: Path, embedder: CountingEmbedder
) -> None:
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.search("kiln").hits == ()
        assert memory.status().index == "none yet"
        assert list(root.iterdir()) == []
        (root / "a.md").write_text("The kiln is hot.\n")
        assert memory.search("kiln").hits
        assert memory.forget("a.md", yes=True).pieces
        assert (root / ".notewell/index.sqlite").is_file()
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.search("kiln").hits == (), "what was forgotten stays so"


def test_a_first_search_that_cannot_read_all_leaves_vectors_for_later(
    root: Path, embedder: CountingEmbedder
) -> None:
    for n in range(80):
        (root / f"{n}.md").write_text(f"The kiln number {n} is hot.\n")
    with Memory.open(root, embedder=embedder, search__scan_s=0.000001) as memory:
        first = memory.search("kiln")
        assert first.stale
        codes = [n.code for n in first.notices]
        assert "sync_cut" in codes or "scan_cut" in codes
        assert embedder.documents == [], "keywords for all notes come first"
        assert all(n.hint for n in first.notices)
