"""fastembed: its cache is enough, its absence is said, and nothing is fetched without being
named.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from notewell.embed.local.fastembed_models import FastEmbedder
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder
from notewell.embed.registry import embedder
from notewell.errors import EmbedderError, SettingsError
from tests.embed.made import fastembed_cache

NAME = "BAAI/bge-small-en-v1.5"


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No hub, and a cache of our own."""
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def test_a_cached_model_needs_no_hub(offline: Path) -> None:
    fastembed_cache(offline)
    found = embedder(f"fastembed/{NAME}", threads=1)
    assert isinstance(found, FastEmbedder)
    assert found.id == f"fastembed/{NAME}@384"
    known = LocalEmbedder(PACKAGED["bge-small-en-v1.5"], threads=1)
    for role in ("query", "document"):
        rows, wanted = (
            found.embed(["backup at night", "sofa"], role),
            known.embed(["backup at night", "sofa"], role),
        )
        assert np.allclose(rows, wanted, atol=1e-3)


def test_a_model_that_is_not_there_is_an_error_with_a_remedy(offline: Path) -> None:
    model = FastEmbedder(NAME)
    with pytest.raises(EmbedderError, match="not in fastembed's cache") as caught:
        model.embed(["x"], "query")
    assert "FASTEMBED_CACHE_PATH" in caught.value.hint


def test_a_failure_is_remembered_for_a_while_and_not_for_ever(offline: Path) -> None:
    model = FastEmbedder(NAME)
    with pytest.raises(EmbedderError):
        model.embed(["x"], "query")
    fastembed_cache(offline)
    with pytest.raises(EmbedderError, match="not in fastembed's cache"):
        model.embed(["x"], "query")
    model._again_at = 0.0
    assert model.embed(["x"], "query").shape == (1, 384)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(SettingsError, match="no model") as caught:
        FastEmbedder("BAAI/bge-smal-en-v1.5")
    assert caught.value.hint == f"did you mean fastembed/{NAME}?"


def test_a_missing_package_is_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbedderError, match="fastembed") as caught:
        FastEmbedder(NAME)
    assert 'pip install "notewell[fastembed]"' in caught.value.hint
