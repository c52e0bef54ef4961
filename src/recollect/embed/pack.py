"""A reader of HMSEMB01 files: the RoBERTa encoder in them becomes an ONNX graph, its tokeniser a tokeniser.

Such a file is: eight bytes of name, the length of a JSON header, the header, a tokenizer.json, then the tensors in
the header's order; an int8 tensor is followed by one float32 scale for each group of columns.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from recollect.embed.graph import FLOAT, Graph
from recollect.errors import EmbedderError

_MAGIC = b"HMSEMB01"


class Pack:
    """One model file."""

    def __init__(self, path: Path, name: str, *, hint: str) -> None:
        import numpy as np  # noqa: PLC0415

        try:
            raw = path.read_bytes()
            if raw[:8] != _MAGIC:
                raise ValueError("it does not begin with its mark")
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
                    # Words are many and few are used: theirs are scaled when they are looked up.
                    words = row["name"] == "word_emb"
                    self._tensors[row["name"]] = (small, scales) if words else (small * scales).reshape(shape)
                at += row["len"]
            self.model = self._onnx()
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise EmbedderError(f"the model file of {name} cannot be loaded: {error!r}", hint=hint) from error

    def _onnx(self) -> bytes:
        """The encoder: `input_ids` in, `last_hidden_state` out, for one text at a time and so without a mask."""
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
        x = graph.node("Reshape", graph.node("Mul", graph.node("Cast", small, to=FLOAT), scales), join)
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
