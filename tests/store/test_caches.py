"""A process that serves for months keeps no more of what it was asked than a bound allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import notewell
from notewell import Memory
from notewell.embed import chain
from notewell.store.sqlite import read_cache
from notewell.store.sqlite.store import SqliteStore
from notewell.text import words
from tests.conftest import PATIENT, Write

ENDLESS = re.compile(r"@(?:functools\.)?cache\b|lru_cache\((?:maxsize=)?None")
FIXED = {  # keyed by the rules of a table, or of no argument
    "text/secrets.py": 1,
    "text/secret_prose.py": 1,
    "sources/sessions/foreign_db.py": 1,
}


def test_every_cache_of_a_function_has_a_bound() -> None:
    source = Path(notewell.__file__).parent
    texts = {
        path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
        for path in source.rglob("*.py")
    }
    assert {
        name: count for name, text in texts.items() if (count := len(ENDLESS.findall(text)))
    } == FIXED


def test_searches_for_ever_new_words_keep_few_of_them(
    root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 40
    monkeypatch.setattr(words, "_CACHE_SIZE", most)
    monkeypatch.setattr(read_cache, "MOST", most)
    monkeypatch.setattr(chain, "QUESTIONS", most)
    write("memory/a.md", "# Hall\n\nThe lamp hangs in the hall of the house.\n")
    with Memory.open(root, env=PATIENT, embed__model="hashed@64") as memory:
        memory.sync()
        for n in range(2 * most):
            assert memory.search(f"lamp new{n}word other{n}thing", min_score=0, sync=False).hits
        assert len(words._analyser) <= most
        assert isinstance(memory.store, SqliteStore)
        cache = memory.store.connection._cache
        assert max(len(cache.words), len(cache.chunks), len(cache.terms)) <= most + 10, (
            "a search later at most"
        )
        assert len(memory.index.chain._questions) == most
