"""The exported file answers as the model it was made of, less what eight bits cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

export = pytest.importorskip("training.export")
weights = pytest.importorskip("training.weights")

WIDTH, INNER, HEADS, WORDS, LONGEST = 32, 64, 2, 50, 40
Floats = NDArray[np.floating[Any]]


def state(layers: int = 2) -> dict[str, Floats]:
    random = np.random.default_rng(5)

    def array(*shape: int, size: float = 0.2) -> Floats:
        return random.normal(size=shape).astype(np.float32) * size

    found = {
        weights.WORD_TABLE: array(WORDS, WIDTH, size=1.0),
        "embeddings.position_embeddings.weight": array(LONGEST, WIDTH),
        "embeddings.token_type_embeddings.weight": array(2, WIDTH),
        "embeddings.LayerNorm.weight": 1 + array(WIDTH),
        "embeddings.LayerNorm.bias": array(WIDTH),
    }
    for layer in range(layers):
        stem = f"encoder.layer.{layer}."
        shapes = dict.fromkeys(
            ("attention.self.query", "attention.self.key", "attention.self.value"), (WIDTH, WIDTH)
        )
        shapes |= {
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for name, shape in shapes.items():
            found[f"{stem}{name}.weight"] = array(*shape)
            found[f"{stem}{name}.bias"] = array(shape[0])
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"{stem}{name}.weight"] = 1 + array(WIDTH)
            found[f"{stem}{name}.bias"] = array(WIDTH)
    return found


def plain(held: dict[str, Floats], ids: list[int]) -> Floats:
    """The same encoder in numpy, in float."""

    def norm(x: Floats, name: str) -> Floats:
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * held[f"{name}.weight"] + held[f"{name}.bias"]

    def linear(x: Floats, name: str) -> Floats:
        return x @ held[f"{name}.weight"].T + held[f"{name}.bias"]

    def gelu(x: Floats) -> Floats:
        return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))

    places = held["embeddings.position_embeddings.weight"][: len(ids)]
    x = held[weights.WORD_TABLE][ids] + places + held["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(1 + max(int(n.split(".")[2]) for n in held if n.startswith("encoder"))):
        stem = f"encoder.layer.{layer}."
        parts = [linear(x, f"{stem}attention.self.{part}") for part in ("query", "key", "value")]
        query, key, value = (part.reshape(len(ids), HEADS, -1).transpose(1, 0, 2) for part in parts)
        seen = query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)
        seen = np.exp(seen - seen.max(-1, keepdims=True))
        mixed = (
            (seen / seen.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        )
        x = norm(
            x + linear(mixed, f"{stem}attention.output.dense"), f"{stem}attention.output.LayerNorm"
        )
        inner = gelu(linear(x, f"{stem}intermediate.dense"))
        x = norm(x + linear(inner, f"{stem}output.dense"), f"{stem}output.LayerNorm")
    return x


def cosine(one: Floats, other: Floats) -> Floats:
    return np.asarray(
        (one * other).sum(-1) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
    )


def test_states_are_those_of_the_float_model() -> None:
    held, ids = state(), [0, 7, 9, 11, 30, 49, 2]
    opened = export.session(export.build(held, heads=HEADS), threads=1)
    got = opened.run(None, {"input_ids": np.array([ids, ids[::-1]])})[0]
    assert got.shape == (2, len(ids), WIDTH)
    assert cosine(got[0], plain(held, ids)).min() > 0.995
    assert cosine(got[1], plain(held, ids[::-1])).min() > 0.995


def test_windows_come_from_one_pass() -> None:
    held, ids = state(), list(range(3, 23))
    opened = export.session(export.build(held, heads=HEADS), threads=1)
    got = export.vectors(opened, ids, [(0, 20), (0, 8), (8, 20)])
    states = plain(held, ids)
    wanted = np.stack([states.mean(0), states[:8].mean(0), states[8:].mean(0)])
    assert cosine(got, wanted).min() > 0.995
    assert np.allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)
    assert np.allclose(export.vectors(opened, ids), got[:1], atol=1e-6)


def test_the_last_matrix_turns_the_states() -> None:
    held, ids = state(), list(range(3, 23))
    random = np.random.default_rng(1)
    turn = {
        "head.weight": random.normal(size=(WIDTH, WIDTH)),
        "head.bias": random.normal(size=WIDTH),
    }
    opened = export.session(export.build(held | turn, heads=HEADS), threads=1)
    wanted = plain(held, ids) @ turn["head.weight"].T + turn["head.bias"]
    assert cosine(opened.run(None, {"input_ids": np.array([ids])})[0][0], wanted).min() > 0.99


def test_columns_far_larger_than_the_rest_cost_less_when_evened() -> None:
    torch = pytest.importorskip("torch")
    from training.largest import largest
    from training.student import from_bert, pack

    held, ids = state(), list(range(3, 23))
    for layer in range(2):
        held[f"encoder.layer.{layer}.attention.output.LayerNorm.weight"][3] = 60.0
        held[f"encoder.layer.{layer}.intermediate.dense.weight"][:, 3] /= 60.0
    student = from_bert(
        {name: torch.from_numpy(value) for name, value in held.items()}, heads=HEADS
    )
    with torch.no_grad():
        found = largest(student, pack([np.array(ids)], "cpu"))
    most = {name + weights.MOST: size.numpy() for name, size in found.items()}
    wanted = plain(held, ids)
    rough, even = (
        cosine(
            export.session(export.build(s, heads=HEADS), 1).run(
                None, {"input_ids": np.array([ids])}
            )[0][0],
            wanted,
        )
        for s in (held, held | most)
    )
    assert np.median(1 - even) < np.median(1 - rough) / 2


def test_a_wide_layer_sees_all_rows() -> None:
    held = state()
    rows = np.array([[3, 4, 5], [6, 7, 8]])
    other = np.array([[3, 4, 5], [9, 10, 11]])
    narrow, wide = (
        export.session(export.build(held, heads=HEADS, wide=w), threads=1) for w in ((), (1,))
    )
    first = [
        opened.run(None, {"input_ids": ids})[0][0]
        for opened in (narrow, wide)
        for ids in (rows, other)
    ]
    assert cosine(first[0], first[1]).min() > 0.999
    assert cosine(first[2], first[3]).min() < 0.999


def test_the_folder_lists_its_files(tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"pieces")
    listed = export.write(state(1), tmp_path / "made", tmp_path / "out", heads=HEADS)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "files.json",
        "model.onnx",
        "pieces.model",
    ]
    assert listed["pieces.model"]["bytes"] == 6


def test_torch_reads_the_same_names() -> None:
    pytest.importorskip("torch")
    models = pytest.importorskip("training.models")

    held = state()
    rows = [
        np.array(row)
        for row in ([0, 7, 9, 11, 30, 49, 2], [0, 7, 9], [0, 7, 9, 11, 30, 49, 2, 5, 6])
    ]
    model = models.from_arrays(held, heads=HEADS)
    vectors = models.encode(model, rows, "mean", budget=16).numpy()
    assert (
        cosine(vectors, np.stack([plain(held, row.tolist()).mean(0) for row in rows])).min()
        > 0.9999
    )
    first = models.encode(model, rows, "cls").numpy()
    assert cosine(first, np.stack([plain(held, row.tolist())[0] for row in rows])).min() > 0.9999
