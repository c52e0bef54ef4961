"""A reader of HMSEMB01 files, which hold a RoBERTa encoder and its tokeniser; the encoder becomes an ONNX graph.

Layout: eight bytes of magic, the length of a JSON header (8 bytes), the header, a tokenizer.json, then the tensors in
the header's order; an int8 tensor is followed by one float32 scale for each group of columns.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

from notewell.errors import EmbedderError

_MAGIC = b"HMSEMB01"
_FLOAT, _INT8, _INT64 = 1, 3, 7
_KINDS = {"float32": _FLOAT, "int8": _INT8, "int64": _INT64}
_OPSET = 17
_IR_VERSION = 8


class Pack:
    """One model file."""

    def __init__(self, path: Path, name: str, *, hint: str) -> None:
        import numpy as np  # noqa: PLC0415

        try:
            raw = path.read_bytes()
            if raw[:8] != _MAGIC:
                raise ValueError("it does not start with its magic bytes")
            at = 16 + int.from_bytes(raw[8:16], "little")
            header = json.loads(raw[16:at])
            self._shape: dict[str, Any] = header["arch"]
            self.tokenizer = raw[at : at + header["tokenizer_len"]].decode("utf-8")
            at += header["tokenizer_len"]
            self._tensors: dict[str, Any] = {}
            for row in header["tensors"]:
                count, shape = math.prod(row["shape"]), row["shape"]
                if row["dtype"] == "f32":
                    self._tensors[row["name"]] = np.frombuffer(raw, "<f4", count, at).reshape(shape)
                else:
                    small = np.frombuffer(raw, "i1", count, at).reshape(*shape[:-1], -1, row["group"])
                    scales = np.frombuffer(raw, "<f4", count // row["group"], at + count).reshape(*small.shape[:-1], 1)
                    # The word table is large and little of it is used: its rows are scaled when they are looked up.
                    words = row["name"] == "word_emb"
                    self._tensors[row["name"]] = (small, scales) if words else (small * scales).reshape(shape)
                at += row["len"]
            self.model = self._onnx()
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise EmbedderError(f"the model file of {name} cannot be loaded: {error!r}", hint=hint) from error

    def _onnx(self) -> bytes:
        """The encoder from `input_ids` to `last_hidden_state`; without a mask, since it reads one text at a time."""
        import numpy as np  # noqa: PLC0415

        own, shape = self._tensors, self._shape
        heads, width = int(shape["heads"]), int(shape["hidden"]) // int(shape["heads"])
        graph = Graph()
        start = int(shape["position_offset"])
        tail = graph.constant(own["pos_emb"][start:])
        # Positions count up from the offset: as many rows of the table as the text has tokens.
        length = graph.node("Shape", "input_ids", start=1)
        places = graph.node("Slice", tail, graph.constant(np.zeros(1, np.int64)), length)
        small, scales = (graph.node("Gather", graph.constant(t), "input_ids", axis=0) for t in own["word_emb"])
        join = graph.constant(np.array([0, -1, heads * width], np.int64))
        x = graph.node("Reshape", graph.node("Mul", graph.node("Cast", small, to=_FLOAT), scales), join)
        x = graph.node("Add", x, graph.node("Add", places, graph.constant(own["type_emb"][0])))

        def normal(value: str, key: str) -> str:
            weight, bias = graph.constant(own[f"{key}.w"]), graph.constant(own[f"{key}.b"])
            return graph.node("LayerNormalization", value, weight, bias, axis=-1, epsilon=shape["layer_norm_eps"])

        def linear(value: str, weight: Any, bias: Any) -> str:
            return graph.node("Add", graph.node("MatMul", value, graph.constant(weight.T)), graph.constant(bias))

        split = graph.constant(np.array([0, -1, heads, width], np.int64))
        half, one = graph.constant(np.float32(0.5)), graph.constant(np.float32(1))
        root = graph.constant(np.float32(math.sqrt(2)))
        x = normal(x, "emb_ln")
        for i in range(int(shape["layers"])):
            weights = np.split(own[f"l{i}.qkv.w"], 3)
            biases = np.split(own[f"l{i}.qkv.b"], 3)
            weights[0], biases[0] = weights[0] * np.float32(width**-0.5), biases[0] * np.float32(width**-0.5)
            q, k, v = (
                graph.node("Transpose", graph.node("Reshape", linear(x, w, b), split), perm=perm)
                for w, b, perm in zip(weights, biases, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
            )
            seen = graph.node("MatMul", graph.node("Softmax", graph.node("MatMul", q, k), axis=-1), v)
            seen = graph.node("Reshape", graph.node("Transpose", seen, perm=[0, 2, 1, 3]), join)
            x = normal(graph.node("Add", x, linear(seen, own[f"l{i}.ao.w"], own[f"l{i}.ao.b"])), f"l{i}.aln")
            inner = linear(x, own[f"l{i}.f1.w"], own[f"l{i}.f1.b"])
            share = graph.node("Add", graph.node("Erf", graph.node("Div", inner, root)), one)
            inner = graph.node("Mul", graph.node("Mul", inner, share), half)  # the exact GELU
            x = normal(graph.node("Add", x, linear(inner, own[f"l{i}.f2.w"], own[f"l{i}.f2.b"])), f"l{i}.fln")
        return graph.model(x, width=heads * width)


def _varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; the high bit says that more follow."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


class Graph:
    """Writes an ONNX model without the onnx package: the few protobuf messages that a transformer needs.

    Nodes and constants are in the order they are added; every call returns the name of its result.
    """

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, value: Any) -> str:
        """An array of float32, int8 or int64."""
        import numpy as np  # noqa: PLC0415

        name = f"c{len(self._constants)}"
        raw = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        dims = b"".join(_number(1, n) for n in value.shape)
        self._constants.append(dims + _number(2, _KINDS[value.dtype.name]) + _bytes(8, name) + _bytes(9, raw))
        return name

    def node(self, kind: str, *inputs: str, **attributes: int | float | list[int]) -> str:
        """An operation with one output."""
        name = f"n{len(self._nodes)}"
        parts = [*(_bytes(1, i) for i in inputs), _bytes(2, name), _bytes(4, kind)]
        for key, value in attributes.items():
            if isinstance(value, list):
                body = b"".join(_number(8, n) for n in value) + _number(20, 7)
            elif isinstance(value, float):
                body = _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
            else:
                body = _number(3, value) + _number(20, 2)
            parts.append(_bytes(5, _bytes(1, key) + body))
        self._nodes.append(b"".join(parts))
        return name

    def model(self, output: str, *, width: int) -> bytes:
        """The model that turns `input_ids` into `last_hidden_state`."""
        self._nodes.append(_bytes(1, output) + _bytes(2, "last_hidden_state") + _bytes(4, "Identity"))
        free = [_bytes(1, _bytes(2, name)) for name in ("batch", "sequence")]
        graph = [
            *(_bytes(1, n) for n in self._nodes),
            _bytes(2, "encoder"),
            *(_bytes(5, c) for c in self._constants),
            _bytes(11, _value("input_ids", _INT64, free)),
            _bytes(12, _value("last_hidden_state", _FLOAT, [*free, _bytes(1, _number(1, width))])),
        ]
        return b"".join([_number(1, _IR_VERSION), _bytes(7, b"".join(graph)), _bytes(8, _number(2, _OPSET))])


def _value(name: str, kind: int, dims: list[bytes]) -> bytes:
    """The name, type and shape of an input or output."""
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, b"".join(dims))))
