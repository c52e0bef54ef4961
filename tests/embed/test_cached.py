"""The remembering embedder: the same text is never embedded twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np
import pytest

from notewell.embed.cached import CachedEmbedder
from notewell.embed.local.hashed import HashedEmbedder
from notewell.types import Role, Vectors
from tests.embed.models import Windowed


class Counting(HashedEmbedder):
    """A hashed embedder that writes down what it was asked."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__(dim)
        self.asked: list[tuple[str, Role]] = []

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        self.asked += [(text, role) for text in texts]
        return super().embed(texts, role)


class Failing(HashedEmbedder):
    """An embedder whose model is gone."""

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        raise RuntimeError("no model")


def test_it_passes_for_the_one_inside(tmp_path: Path) -> None:
    cached = CachedEmbedder(HashedEmbedder(32), tmp_path / "cache.sqlite")
    assert (cached.id, cached.dim) == ("hashed@32", 32)


def test_a_text_is_embedded_once_for_each_role(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, tmp_path / "cache.sqlite")
    cached.embed(["a", "b", "a"], "document")
    cached.embed(["b", "c"], "document")
    cached.embed(["a"], "query")
    assert inner.asked == [("a", "document"), ("b", "document"), ("c", "document"), ("a", "query")]


def test_rows_are_those_of_the_one_inside_wherever_they_come_from(tmp_path: Path) -> None:
    texts = ["b", "a", "b", "c"]
    cached = CachedEmbedder(Counting(), tmp_path / "cache.sqlite")
    cached.embed(["a"], "document")
    wanted = HashedEmbedder(32).embed(texts, "document")
    assert np.array_equal(cached.embed(texts, "document"), wanted)
    assert np.array_equal(cached.embed(texts, "document"), wanted)


def test_the_file_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "cache.sqlite"
    wanted = CachedEmbedder(HashedEmbedder(32), path).embed(["a"], "document")
    assert np.array_equal(CachedEmbedder(Failing(32), path).embed(["a"], "document"), wanted)


def test_models_do_not_share_rows(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    CachedEmbedder(HashedEmbedder(32), path).embed(["a"], "document")
    assert CachedEmbedder(HashedEmbedder(64), path).embed(["a"], "document").shape == (1, 64)


def test_a_failure_leaves_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    CachedEmbedder(HashedEmbedder(32), path).embed(["a"], "document")
    broken = CachedEmbedder(Failing(32), path)
    with pytest.raises(RuntimeError, match="no model"):
        broken.embed(["a", "b"], "document")
    assert broken.embed(["a"], "document").shape == (1, 32)


def test_broken_text_is_not_confused_with_sound_text(tmp_path: Path) -> None:
    inner = Counting()
    cached = CachedEmbedder(inner, tmp_path / "cache.sqlite")
    cached.embed(["x?", "x\ud800"], "document")
    assert len(inner.asked) == 2


def test_the_file_holds_no_text(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    CachedEmbedder(HashedEmbedder(32), path).embed(["a very private sentence"], "document")
    apsw.Connection(str(path)).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert b"private" not in path.read_bytes()
    assert path.stat().st_size > 0


def test_windows_are_kept_too(tmp_path: Path) -> None:
    inner = Windowed()
    cached = CachedEmbedder(inner, tmp_path / "cache.sqlite")
    assert (
        cached.window_dims,
        CachedEmbedder(Counting(), tmp_path / "other.sqlite").window_dims,
    ) == (64, 0)
    texts = ["one line", "a first line\nand a second"]
    for _ in range(2):
        found = cached.embed_passages(texts)
        for one, wanted in zip(found, Windowed().embed_passages(texts), strict=True):
            assert np.array_equal(one.whole, wanted.whole)
            assert one.spans == wanted.spans
            assert np.allclose(one.windows, wanted.windows, atol=5e-4)
    assert inner.passages == 2
    assert inner.documents == 0, "a row without windows is another entry"
