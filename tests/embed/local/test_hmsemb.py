"""HMSEMB01 files: an encoder that computes what RoBERTa does, and errors for anything else."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embed.local.hmsemb import Graph, Pack
from notewell.embed.local.packaged import OnnxModel
from notewell.errors import EmbedderError

HIDDEN, HEADS, LAYERS, INNER, WORDS, GROUP = 16, 2, 2, 32, 20, 8


def tensors() -> dict[str, Any]:
    make = np.random.default_rng(1)
    out: dict[str, Any] = {
        "word_emb": make.standard_normal((WORDS, HIDDEN)), "pos_emb": make.standard_normal((12, HIDDEN)),
        "type_emb": make.standard_normal((2, HIDDEN)), "emb_ln.w": make.uniform(0.5, 1.5, HIDDEN),
        "emb_ln.b": make.standard_normal(HIDDEN),
    }  # fmt: skip
    for i in range(LAYERS):
        shapes = {"qkv": (3 * HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN), "f1": (INNER, HIDDEN), "f2": (HIDDEN, INNER)}
        for key, shape in shapes.items():
            out[f"l{i}.{key}.w"] = make.standard_normal(shape)
            out[f"l{i}.{key}.b"] = make.standard_normal(shape[0])
        for key in ("aln", "fln"):
            out[f"l{i}.{key}.w"] = make.uniform(0.5, 1.5, HIDDEN)
            out[f"l{i}.{key}.b"] = make.standard_normal(HIDDEN)
    return out


def write(path: Path, **changes: Any) -> dict[str, Any]:
    """Writes a file and gives the tensors as they are in it, after their way through int8."""
    rows, body, kept = [], b"", {}
    for name, value in tensors().items():
        row: dict[str, Any] = {"name": name, "dtype": "f32", "shape": list(value.shape), "group": 0}
        raw, kept[name] = value.astype("<f4").tobytes(), value.astype(np.float32).astype(np.float64)
        if name == "word_emb" or (value.ndim == 2 and name.startswith("l")):
            parts = value.reshape(value.shape[0], -1, GROUP)
            scales = (np.abs(parts).max(axis=-1, keepdims=True) / 127).astype("<f4")
            small = np.round(parts / scales).astype("i1")
            raw = small.tobytes() + scales.tobytes()
            kept[name] = (small * scales.astype(np.float64)).reshape(value.shape)
            row |= {"dtype": "i8", "group": GROUP}
        rows.append(row | {"len": len(raw)})
        body += raw
    arch = {
        "hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "intermediate": INNER, "vocab": WORDS,
        "max_positions": 12, "layer_norm_eps": 1e-5, "position_offset": 2,
    }  # fmt: skip
    header = json.dumps({"arch": arch, "tokenizer_len": 2, "tensors": rows} | changes).encode()
    path.write_bytes(b"HMSEMB01" + len(header).to_bytes(8, "little") + header + b"{}" + body)
    return kept


def reference(own: dict[str, Any], ids: list[int]) -> Any:
    """The encoder as the paper has it, slowly and in double precision."""

    def normal(x: Any, key: str) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * own[f"{key}.w"] + own[f"{key}.b"]

    x = normal(own["word_emb"][ids] + own["pos_emb"][2 : 2 + len(ids)] + own["type_emb"][0], "emb_ln")
    for i in range(LAYERS):
        q, k, v = np.split(x @ own[f"l{i}.qkv.w"].T + own[f"l{i}.qkv.b"], 3, axis=1)
        seen = np.zeros_like(x)
        for head in range(HEADS):
            part = slice(head * HIDDEN // HEADS, (head + 1) * HIDDEN // HEADS)
            score = np.exp(q[:, part] @ k[:, part].T / math.sqrt(HIDDEN / HEADS))
            seen[:, part] = score / score.sum(axis=1, keepdims=True) @ v[:, part]
        x = normal(x + seen @ own[f"l{i}.ao.w"].T + own[f"l{i}.ao.b"], f"l{i}.aln")
        inner = x @ own[f"l{i}.f1.w"].T + own[f"l{i}.f1.b"]
        inner = np.vectorize(lambda z: z * 0.5 * (1 + math.erf(z / math.sqrt(2))))(inner)
        x = normal(x + inner @ own[f"l{i}.f2.w"].T + own[f"l{i}.f2.b"], f"l{i}.fln")
    return x


@pytest.mark.parametrize("ids", [[0], [0, 7, 2], [0, 3, 3, 19, 4, 11, 5, 1, 2, 6]])
def test_it_computes_what_the_paper_says(tmp_path: Path, ids: list[int]) -> None:
    own = write(tmp_path / "model.hmsemb")
    pack = Pack(tmp_path / "model.hmsemb", "tiny", hint="")
    onnx.checker.check_model(onnx.load_from_string(pack.model), full_check=True)
    found = OnnxModel(pack.model, "tiny", hint="")(ids)
    assert found == pytest.approx(reference(own, ids), abs=2e-4)
    assert pack.tokenizer == "{}"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: b"",
        lambda raw: b"HMSEMB99" + raw[8:],
        lambda raw: raw[:200],
        lambda raw: raw[:-50],
        lambda raw: raw[:8] + b"\xff" * 8 + raw[16:],
    ],
)
def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, spoil: Any) -> None:
    place = tmp_path / "model.hmsemb"
    write(place)
    place.write_bytes(spoil(place.read_bytes()))
    with pytest.raises(EmbedderError, match="tiny cannot be loaded") as caught:
        Pack(place, "tiny", hint="install it again")
    assert caught.value.hint == "install it again"


def test_a_header_without_its_shape_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "model.hmsemb", arch={})
    with pytest.raises(EmbedderError, match="heads"):
        Pack(tmp_path / "model.hmsemb", "tiny", hint="")


@given(st.integers(-(2**63), 2**63 - 1), st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_numbers_of_any_size_are_written_as_the_format_has_them(one: int, many: list[int]) -> None:
    graph = Graph()
    graph.node("Thing", "input_ids", one=one, many=many, part=0.5)
    node = onnx.load_from_string(graph.model("n0", width=3)).graph.node[0]
    assert {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} == {
        "one": one, "many": many, "part": 0.5,
    }  # fmt: skip
