"""The optimized form of a packaged model: the same vectors, made once, checked, and never in the
way.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import onnx
import pytest

from notewell.embed import registry
from notewell.embed.local import prepared
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder

TEXTS = ["what did we decide about the harbour", "Die Suppe braucht Butter.", "x"]


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    return np.asarray(LocalEmbedder(PACKAGED["bge-small-en-v1.5"], threads=1).embed(TEXTS, "query"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def rows(folder: Path) -> np.ndarray:
    return np.asarray(
        LocalEmbedder(PACKAGED["bge-small-en-v1.5"], threads=1, prepared=folder).embed(
            TEXTS, "query"
        )
    )


def made(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_vectors_are_the_same_to_the_last_bit_when_it_is_made_and_when_it_is_read(
    folder: Path, plain: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert np.array_equal(rows(folder), plain)
    (place,) = made(folder)
    assert sorted(p.name for p in place.iterdir()) == ["model.onnx", "sum", "weights.bin"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    monkeypatch.setattr(prepared, "_made", lambda *_, **__: pytest.fail("it was there already"))
    assert np.array_equal(rows(folder), plain)


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "sum"])
def test_a_damaged_or_cut_file_is_made_again(folder: Path, plain: np.ndarray, name: str) -> None:
    rows(folder)
    (place,) = made(folder)
    broken = place / name
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    assert np.array_equal(rows(folder), plain)
    assert made(folder) == [place]
    assert prepared.is_sound(place)


def test_a_form_that_does_not_load_is_made_again(folder: Path, plain: np.ndarray) -> None:
    rows(folder)
    (place,) = made(folder)
    (place / "model.onnx").write_bytes(b"no model")
    (place / "sum").write_text(
        prepared.sum_of((place / "model.onnx", place / "weights.bin")), encoding="ascii"
    )
    assert np.array_equal(rows(folder), plain)
    assert (place / "model.onnx").stat().st_size > 1000


def test_where_nothing_can_be_written_the_packaged_file_is_loaded(
    tmp_path: Path, plain: np.ndarray
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    assert np.array_equal(rows(blocked / "models"), plain)
    assert np.array_equal(rows(Path(os.devnull) / "models"), plain)


def test_a_model_an_onnxruntime_or_a_processor_of_another_kind_has_another_name(
    folder: Path, plain: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(folder)
    for processor in ("an old one", "a new one", "the next one"):
        monkeypatch.setattr(prepared, "_processor", lambda processor=processor: processor)
        assert np.array_equal(rows(folder), plain)
    assert len(made(folder)) == 3, "the oldest of four is deleted"


def test_weights_are_kept_as_they_are_multiplied(folder: Path) -> None:
    rows(folder)
    (place,) = made(folder)
    packed = onnx.load(place / "model.onnx", load_external_data=False)
    assert any(
        entry.key.startswith("prepacked")
        for one in packed.graph.initializer
        for entry in one.external_data
    )


def test_it_is_kept_in_the_cache_folder_of_the_user(tmp_path: Path) -> None:
    model = registry.embedder("auto", threads=1, env={"XDG_CACHE_HOME": str(tmp_path)})
    assert model is not None
    model.embed(["a question"], "query")
    assert made(tmp_path / "notewell" / "models")
