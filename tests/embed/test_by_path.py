"""Paths to models: which there are, and what is said when nothing lies there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from notewell.embed.local.onnx_folder import FolderEmbedder
from notewell.embed.local.static import StaticEmbedder
from notewell.embed.registry import at_path, embedder, is_path
from notewell.errors import EmbedderError
from notewell.memory import Memory
from tests.conftest import Write
from tests.embed.made import save_tensors, static_folder, table, tiny_folder, tiny_onnx


@pytest.mark.parametrize("name", ["/x", "./x", "../x", "~/x", ".", "x.gguf", "models/X.GGUF"])
def test_these_are_paths(name: str) -> None:
    assert is_path(name)


@pytest.mark.parametrize(
    "name", ["auto", "bge-small-en-v1.5", "fastembed/BAAI/bge-small-en-v1.5", "openai/x", ""]
)
def test_these_are_names(name: str) -> None:
    assert not is_path(name)


def test_a_path_may_be_absolute_or_begin_where_you_stand_or_at_home(
    tmp_path: Path, own_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    static_folder(own_environment / "m")
    monkeypatch.chdir(own_environment)
    found = [embedder(name) for name in (str(own_environment / "m"), "./m", "~/m")]
    assert all(isinstance(one, StaticEmbedder) for one in found)
    assert len({one.id for one in found if one}) == 1


def test_a_static_model_goes_before_the_onnx_file_it_comes_with(tmp_path: Path) -> None:
    static_folder(tmp_path / "m")
    tiny_onnx(tmp_path / "m/onnx/model.onnx", table())
    assert isinstance(at_path(str(tmp_path / "m")), StaticEmbedder)


def test_one_of_several_files_can_be_chosen(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    for place in (folder / "model_int8.onnx", folder / "onnx/model_q4.onnx"):
        tiny_onnx(place, table(seed=8))
        found = at_path(str(place))
        assert isinstance(found, FolderEmbedder)
        assert found.id.startswith("onnx/m-")
        assert not np.array_equal(
            found.embed(["x"], "query"), at_path(str(folder)).embed(["x"], "query")
        )


def test_weights_of_a_transformer_alone_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    save_tensors(tmp_path / "m/model.safetensors", {"encoder.layer.0": table(3)})
    with pytest.raises(EmbedderError, match="no embedding model") as caught:
        at_path(str(tmp_path / "m"))
    assert "optimum-cli" in caught.value.hint


@pytest.mark.parametrize("name", ["gone", "gone.gguf", "gone.onnx"])
def test_nothing_there_is_an_error_with_a_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbedderError, match=name) as caught:
        at_path(str(tmp_path / name))
    assert caught.value.hint


def test_a_memory_searches_with_it_and_says_so_when_it_is_gone(
    tmp_path: Path, root: Path, write: Write
) -> None:
    write("memory/a.md", "The backup runs at night.\n")
    write("memory/b.md", "The cat sleeps on the sofa.\n")
    folder = static_folder(tmp_path / "m")
    with Memory.open(root, embed__model=str(folder)) as memory:
        memory.sync()
        found = memory.search("backup at night")
        assert found.hits[0].chunk.path == "memory/a.md"
        assert found.mode == "hybrid"
        assert not found.notices
    with Memory.open(root, embed__model=str(tmp_path / "gone")) as memory:
        found = memory.search("backup at night")
        assert found.hits[0].chunk.path == "memory/a.md"
        assert found.mode == "lexical"
        assert "there is no model at" in found.notices[0].message
