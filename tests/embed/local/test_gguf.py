"""GGUF models: read by llama-cpp-python where it is installed, and a plain word where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from notewell.embed.local.gguf import GgufEmbedder
from notewell.errors import EmbedderError
from tests.embed.made import DIM, tiny_gguf


def test_a_missing_package_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(EmbedderError, match="llama-cpp-python") as caught:
        GgufEmbedder(tmp_path / "m.gguf")
    assert 'pip install "notewell[gguf]"' in caught.value.hint


def test_another_kind_of_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(EmbedderError, match="not a GGUF file"):
        GgufEmbedder(tmp_path / "m.gguf")


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="it has to be compiled")
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        GgufEmbedder(tmp_path / "m.gguf")


def test_a_model_is_known_by_its_file_and_reads_as_much_as_it_can(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp", reason="it has to be compiled")
    model = GgufEmbedder(tiny_gguf(tmp_path / "nomic-embed-text.gguf"), threads=1)
    assert model.id.startswith("gguf/nomic-embed-text-")
    assert model.id.endswith("@512")
    assert model.dim == DIM
    head = "word " * 600
    one, other = model.embed([head + "backup", head + "sofa"], "document")
    assert np.array_equal(one, other)
    asked, told = model.embed(["backup"], "query"), model.embed(["backup"], "document")
    assert not np.array_equal(asked, told)
