"""Static models by path: the mean of the rows of a text's tokens, weighted and mapped as the file
says.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell.embed.local.static import StaticEmbedder, find_static
from notewell.errors import EmbedderError
from tests.embed.made import (
    DIM,
    packaged,
    save_tensors,
    static_folder,
    table,
    tiny_folder,
    vocabulary,
)


@cache
def ids(*words: str) -> list[int]:
    return [vocabulary().index(word) for word in words]


def unit(row: Any) -> Any:
    return row / np.linalg.norm(row)


def row_of(folder: Path, text: str = "backup night") -> Any:
    place = find_static(folder)
    assert place is not None
    return StaticEmbedder(place, name=folder.name).embed([text], "document")[0]


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8"])
def test_a_text_is_the_mean_of_its_tokens(tmp_path: Path, kind: str) -> None:
    rows = (table() * 20).astype(kind)
    folder = static_folder(tmp_path / "m", rows)
    wanted = rows[ids("backup", "night")].astype(np.float64).mean(axis=0)
    assert row_of(folder) == pytest.approx(unit(wanted), abs=1e-5)


def test_weights_count(tmp_path: Path) -> None:
    weights = np.random.default_rng(4).uniform(0.1, 1.0, 30522)
    found = row_of(static_folder(tmp_path / "m", weights=weights))
    wanted = sum(weights[i] * table()[i] for i in ids("backup", "night"))
    assert found == pytest.approx(unit(wanted), abs=1e-5)


def test_tokens_may_share_rows(tmp_path: Path) -> None:
    mapping = np.arange(30522) % 100
    found = row_of(static_folder(tmp_path / "m", table(rows=100), mapping=mapping))
    assert found == pytest.approx(
        unit(table(rows=100)[mapping[ids("backup", "night")]].mean(axis=0)), abs=1e-5
    )


def test_an_unknown_word_counts_for_nothing(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "m")
    assert np.array_equal(row_of(folder, "backup 𓀀 night"), row_of(folder))


def test_the_layout_of_sentence_transformers_is_read_as_it_does(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    save_tensors(folder / "0_StaticEmbedding/model.safetensors", {"embedding.weight": table()})
    shutil.copy(packaged("tokenizer.json"), folder / "0_StaticEmbedding/tokenizer.json")
    wanted = table()[ids("backup", "[UNK]", "night")].mean(axis=0)
    assert row_of(folder, "backup 𓀀 night") == pytest.approx(unit(wanted), abs=1e-5)


def test_a_text_without_a_token_has_a_fixed_row(tmp_path: Path) -> None:
    row = row_of(static_folder(tmp_path / "m"), " ")
    assert row[0] == 1.0
    assert not row[1:].any()


def test_the_id_changes_with_the_weights(tmp_path: Path) -> None:
    one = StaticEmbedder(static_folder(tmp_path / "m"), name="m")
    assert one.id.startswith("static/m-")
    assert one.dim == DIM
    other = StaticEmbedder(static_folder(tmp_path / "m", table(seed=5)), name="m")
    assert other.id != one.id


def test_weights_of_a_transformer_are_no_static_model(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path / "m")
    save_tensors(folder / "model.safetensors", {"encoder.layer.0": table(3)})
    assert find_static(folder) is None


@pytest.mark.parametrize(
    ("tensors", "match"),
    [
        ({"embeddings": table(10)}, "more words than its table"),
        ({"embeddings": np.ones(4, np.float32)}, "no table of token rows"),
        ({"embeddings": table(), "weights": np.ones(3)}, "one weight per token"),
        ({"embeddings": table(10), "mapping": np.full(30522, 10)}, "row that does not exist"),
        ({"embeddings": table(10), "mapping": np.full(30522, -1)}, "row that does not exist"),
    ],
)
def test_tables_that_do_not_fit_are_an_error(
    tmp_path: Path, tensors: dict[str, Any], match: str
) -> None:
    folder = static_folder(tmp_path / "m")
    save_tensors(folder / "model.safetensors", tensors)
    with pytest.raises(EmbedderError, match=match):
        row_of(folder)


def test_a_missing_tokeniser_is_an_error(tmp_path: Path) -> None:
    folder = static_folder(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EmbedderError, match="no tokeniser"):
        row_of(folder)
