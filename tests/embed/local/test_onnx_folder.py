"""ONNX models by path: the layouts people have, and a plain word about what is missing."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell.embed.local.onnx_folder import FolderEmbedder
from notewell.embed.local.packaged import PACKAGED, LocalEmbedder
from notewell.errors import EmbedderError
from notewell.types import Role
from tests.embed.made import (
    DIM,
    bge_folder,
    packaged,
    save_json,
    save_tensors,
    table,
    tiny_folder,
    tiny_onnx,
    vocabulary,
)

TEXT = "backup night"
WORDS = ["[CLS]", "backup", "night", "[SEP]"]


@cache
def ids() -> list[int]:
    return [vocabulary().index(word) for word in WORDS]


def unit(row: Any) -> Any:
    return row / np.linalg.norm(row)


def row_of(folder: Path, text: str = TEXT, role: Role = "document") -> Any:
    return FolderEmbedder(folder).embed([text], role)[0]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_folder(tmp_path / "tiny")


def modules(folder: Path, *kinds: str) -> None:
    rows = [
        {
            "path": "" if kind == "Transformer" else f"{i}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    save_json(folder / "modules.json", rows)


def test_an_exported_folder_gives_the_vectors_of_the_packaged_model(tmp_path: Path) -> None:
    own, known = (
        FolderEmbedder(bge_folder(tmp_path / "bge")),
        LocalEmbedder(PACKAGED["bge-small-en-v1.5"]),
    )
    texts = ["The backup runs at night.", "東京都", "word " * 400]
    for role in ("query", "document"):
        assert np.array_equal(own.embed(texts, role), known.embed(texts, role))


def test_a_folder_without_settings_is_known_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "bge-small-en-v1.5"
    folder.mkdir()
    for name in ("model.onnx", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(packaged(name), folder / name)
    own, known = FolderEmbedder(folder), LocalEmbedder(PACKAGED["bge-small-en-v1.5"])
    assert own.dim == 384
    for role in ("query", "document"):
        assert np.array_equal(own.embed(["a backup"], role), known.embed(["a backup"], role))


@pytest.mark.parametrize("how", ["cls", "mean", "max", "last"])
@pytest.mark.parametrize("new", [False, True])
def test_pooling_is_as_the_folder_says(tiny: Path, how: str, new: bool) -> None:
    old = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "last": "lasttoken"}
    told = {f"pooling_mode_{name}": key == how for key, name in old.items()}
    save_json(tiny / "1_Pooling/config.json", {"pooling_mode": how} if new else told)
    rows = table()[ids()]
    wanted = {"cls": rows[0], "mean": rows.mean(axis=0), "max": rows.max(axis=0), "last": rows[-1]}[
        how
    ]
    assert row_of(tiny) == pytest.approx(unit(wanted), abs=1e-6)


def test_tokens_are_averaged_when_nothing_is_said(tiny: Path) -> None:
    assert row_of(tiny) == pytest.approx(unit(table()[ids()].mean(axis=0)), abs=1e-6)


def test_a_file_that_pools_by_itself_is_not_pooled_again(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "tiny", output="sentence_embedding")
    save_json(folder / "1_Pooling/config.json", {"pooling_mode": "cls"})
    assert row_of(folder) == pytest.approx(unit(table()[ids()].mean(axis=0)), abs=1e-6)


def test_inputs_may_be_of_32_bits_and_the_output_of_any_name(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "tiny", small=True, output="something")
    assert row_of(folder) == pytest.approx(unit(table()[ids()].mean(axis=0)), abs=1e-6)


@pytest.mark.parametrize("tanh", [False, True])
def test_a_dense_layer_follows(tiny: Path, tanh: bool) -> None:
    modules(tiny, "Transformer", "Pooling", "Dense", "Normalize")
    save_json(tiny / "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    weight, bias = table(7, DIM, seed=3), np.arange(7, dtype=np.float32)
    save_tensors(tiny / "2_Dense/model.safetensors", {"linear.weight": weight, "linear.bias": bias})
    active = "torch.nn.modules." + ("activation.Tanh" if tanh else "linear.Identity")
    save_json(
        tiny / "2_Dense/config.json",
        {"in_features": DIM, "out_features": 7, "activation_function": active},
    )
    wanted = weight @ table()[ids()[0]] + bias
    assert FolderEmbedder(tiny).dim == 7
    assert row_of(tiny) == pytest.approx(unit(np.tanh(wanted) if tanh else wanted), abs=1e-5)


def test_prompts_stand_before_the_text(tiny: Path) -> None:
    save_json(
        tiny / "config_sentence_transformers.json",
        {"prompts": {"query": "ask: ", "passage": "tell: "}},
    )
    plain = FolderEmbedder(tiny_folder(tiny.parent / "plain"))
    for role, prompt in (("query", "ask: "), ("document", "tell: ")):
        assert np.array_equal(row_of(tiny, role=role), plain.embed([prompt + TEXT], "document")[0])  # type: ignore[arg-type]


def test_what_lies_beyond_the_limit_is_not_read(tiny: Path) -> None:
    save_json(tiny / "sentence_bert_config.json", {"max_seq_length": 4})
    assert np.array_equal(row_of(tiny), row_of(tiny, TEXT + " server"))
    assert FolderEmbedder(tiny).id.endswith("@4")


def test_the_size_is_asked_of_the_model_when_nothing_says_it(tiny: Path) -> None:
    (tiny / "config.json").unlink()
    assert FolderEmbedder(tiny).dim == DIM


def test_another_size_than_the_settings_say_is_an_error(tiny: Path) -> None:
    save_json(tiny / "config.json", {"hidden_size": DIM + 1})
    with pytest.raises(EmbedderError, match=str(DIM + 1)):
        row_of(tiny)


def test_rows_that_are_no_numbers_are_an_error(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "tiny", table() * np.float32(np.nan))
    with pytest.raises(EmbedderError, match="not a number"):
        row_of(folder)


def test_the_id_has_the_name_of_the_folder_and_changes_with_what_makes_a_vector(tiny: Path) -> None:
    seen = [FolderEmbedder(tiny).id]
    assert seen[0].startswith("onnx/tiny-")
    assert FolderEmbedder(tiny).id == seen[0]
    moved = shutil.copytree(tiny, tiny.parent / "elsewhere" / "tiny")
    assert FolderEmbedder(moved).id == seen[0]
    tiny_onnx(tiny / "model.onnx", table(seed=9))
    seen.append(FolderEmbedder(tiny).id)
    save_json(tiny / "1_Pooling/config.json", {"pooling_mode": "cls"})
    seen.append(FolderEmbedder(tiny).id)
    (tiny / "model.onnx.data").write_bytes(b"weights beside it")
    seen.append(FolderEmbedder(tiny).id)
    with (tiny / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    seen.append(FolderEmbedder(tiny).id)
    assert len(set(seen)) == 5


def test_a_folder_without_a_model_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"onnx/model_quantized\.onnx") as caught:
        FolderEmbedder(tmp_path)
    assert "export" in caught.value.hint


def test_a_model_that_wants_more_than_a_text_is_refused(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "tiny", extra_input="pixel_values")
    with pytest.raises(EmbedderError, match="pixel_values") as caught:
        row_of(folder)
    assert "feature-extraction" in caught.value.hint


def test_a_damaged_model_is_an_error(tiny: Path) -> None:
    (tiny / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(EmbedderError, match="tiny cannot be loaded") as caught:
        row_of(tiny)
    assert "pointer" in caught.value.hint


def test_a_token_without_a_row_is_an_error(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "tiny", table(rows=50))
    with pytest.raises(EmbedderError, match="tiny failed"):
        row_of(folder)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        (
            "modules.json",
            [{"type": "sentence_transformers.models.CLIPModel", "path": ""}],
            "CLIPModel",
        ),
        ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "weightedmean"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            "cls_token",
        ),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "prompt"),
        ("config.json", [], "unexpected content"),
        ("modules.json", {}, "unexpected content"),
    ],
)
def test_what_is_not_supported_is_named(tiny: Path, name: str, content: Any, match: str) -> None:
    save_json(tiny / name, content)
    with pytest.raises(EmbedderError, match=match):
        FolderEmbedder(tiny)


def test_settings_that_are_no_json_are_named(tiny: Path) -> None:
    (tiny / "config.json").write_text("{")
    with pytest.raises(EmbedderError, match=r"config\.json cannot be read"):
        FolderEmbedder(tiny)


def test_a_dense_layer_of_another_kind_is_named(tiny: Path) -> None:
    modules(tiny, "Transformer", "Dense")
    (tiny / "1_Dense").mkdir()
    with pytest.raises(EmbedderError, match=r"1_Dense has no model\.safetensors"):
        row_of(tiny)
    save_tensors(tiny / "1_Dense/model.safetensors", {"linear.weight": table(DIM, DIM)})
    save_json(tiny / "1_Dense/config.json", {"activation_function": "torch.nn.ReLU"})
    with pytest.raises(EmbedderError, match="1_Dense is not supported"):
        row_of(tiny)
