"""Writes a trained encoder as one int8 ONNX file with its tokenizer beside it.

Matrices are int8 with a scale for each output column, activations are quantised as they come (one
scale a run, after the few columns that are far larger than the rest were divided:
`training.largest` says which), the word table is int8 with a scale for each row. The graph takes
rows of ids that are all of one length, so that no mask is needed: run one passage at a time. It
gives the states of all tokens, so that one pass serves for the vector of a passage and for those of
its windows: each is the mean of a range of states.

    input_ids          (rows, length)         with <s> and </s>
    last_hidden_state  (rows, length, width)

Open it with `options()`: the higher levels of optimisation would join Add and LayerNormalization
into an operator that is three times slower.

    python -m training.export STUDENT.npz FOLDER
"""

import argparse
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from training import weights
from training.fetch import work

State = Mapping[str, NDArray[np.floating[Any]]]
FUSED = "com.microsoft"
IDS, STATES = "input_ids", "last_hidden_state"
EPSILON = 1e-12
USUAL = 0.98  # the share of columns that are not divided


class Graph:
    """A graph in the making."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """A named constant; the same name twice is the same constant."""
        if name not in self.held:
            self.held[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output, whose name comes back."""
        return self.add_many(kind, 1, *inputs, domain=domain, **attributes)[0]

    def add_many(
        self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any
    ) -> list[str]:
        """A node with several outputs."""
        names = [f"{kind}.{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names

    def model(self, width: int) -> onnx.ModelProto:
        """The whole as a model; the last node's output is what comes out."""
        self.nodes[-1].output[0] = STATES
        ids = helper.make_tensor_value_info(IDS, TensorProto.INT64, ["rows", "length"])
        states = helper.make_tensor_value_info(STATES, TensorProto.FLOAT, ["rows", "length", width])
        graph = helper.make_graph(self.nodes, "encoder", [ids], [states], list(self.held.values()))
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=8, producer_name="notewell"
        )


def by_column(matrix: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The matrix as int8 with a scale for each column."""
    scale = np.abs(matrix).max(0).astype(np.float32) / 127
    scale[scale == 0] = 1
    return np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8), scale


def evened(most: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """What each column of the states is divided by, and each row of the matrix multiplied by, where
    it is large.
    """
    return np.asarray(np.maximum(1, most / np.quantile(most, USUAL)), np.float32)


class BertGraph(Graph):
    """The graph of a BERT with these weights."""

    def __init__(self, state: State, heads: int, wide: Sequence[int]) -> None:
        super().__init__()
        self.state = {name: np.asarray(value, np.float32) for name, value in state.items()}
        known = {
            name.removesuffix(weights.MOST): value
            for name, value in self.state.items()
            if name.endswith(weights.MOST)
        }
        self.even = {name: evened(most) for name, most in known.items()}
        self.heads = heads
        self.wide = frozenset(wide)
        self.width = self.state[weights.WORD_TABLE].shape[1]
        self.layers = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("encoder.layer."))

    def whole(self) -> onnx.ModelProto:
        """Embeddings and layers."""
        states = self.embeddings()
        for layer in range(self.layers):
            states = self.layer(states, layer)
        if f"{weights.TURN}.weight" in self.state:
            self.linear(states, weights.TURN)
        return self.model(self.width)

    def embeddings(self) -> str:
        """Words, places and the one token type."""
        stem = "embeddings."
        values, scale = by_column(self.state[weights.WORD_TABLE].T)
        rows = self.add("Gather", self.constant("words", values.T), IDS)
        scales = self.add("Gather", self.constant("words.scale", scale[:, None]), IDS)
        words = self.add("Mul", self.add("Cast", rows, to=TensorProto.FLOAT), scales)
        table = (
            self.state[f"{stem}position_embeddings.weight"]
            + self.state[f"{stem}token_type_embeddings.weight"][0]
        )
        length = self.add("Shape", IDS, start=1, end=2)
        zero, axis = self.constant("zero", np.array([0])), self.constant("axis", np.array([0]))
        table16 = self.constant("places", table.astype(np.float16))
        places = self.add(
            "Cast", self.add("Slice", table16, zero, length, axis), to=TensorProto.FLOAT
        )
        return self.norm(self.add("Add", words, places), f"{stem}LayerNorm")

    def layer(self, states: str, number: int) -> str:
        """One layer: attention, then the inner layer, each with residual and norm."""
        stem = f"encoder.layer.{number}."
        mixed = self.attention(states, f"{stem}attention.self.", wide=number in self.wide)
        mixed = self.linear(mixed, f"{stem}attention.output.dense")
        states = self.norm(self.add("Add", mixed, states), f"{stem}attention.output.LayerNorm")
        inner = self.add("Gelu", self.linear(states, f"{stem}intermediate.dense"), domain=FUSED)
        return self.norm(
            self.add("Add", self.linear(inner, f"{stem}output.dense"), states),
            f"{stem}output.LayerNorm",
        )

    def attention(self, states: str, stem: str, *, wide: bool) -> str:
        """Tokens see their row; where the layer is wide, they see all rows."""
        weight, scales, bias = self.matrix(stem + "query", stem + "key", stem + "value")
        small, small_scale, zero = self.small(states, stem + "query")
        if wide:
            small = self.add(
                "Reshape", small, self.constant("one row", np.array([1, -1, self.width]))
            )
        inputs = (small, weight, bias, small_scale, scales, "", zero)
        mixed = self.add("QAttention", *inputs, domain=FUSED, num_heads=self.heads)
        return self.add("Reshape", mixed, self.add("Shape", states)) if wide else mixed

    def linear(self, states: str, name: str) -> str:
        """The states times a matrix, with its bias."""
        weight, scales, bias = self.matrix(name)
        small, small_scale, zero = self.small(states, name)
        return self.add(
            "MatMulIntegerToFloat", small, weight, small_scale, scales, zero, "", bias, domain=FUSED
        )

    def matrix(self, *names: str) -> tuple[str, str, str]:
        """One matrix, or several side by side: values, scales and bias."""
        whole = np.concatenate([self.state[f"{name}.weight"] for name in names]).T
        values, scale = by_column(
            whole * self.even[names[0]][:, None] if names[0] in self.even else whole
        )
        bias = np.concatenate([self.state[f"{name}.bias"] for name in names])
        held: dict[str, NDArray[Any]] = {"weight": values, "scale": scale, "bias": bias}
        weight, scales, biases = (
            self.constant(f"{names[0]}.{part}", value) for part, value in held.items()
        )
        return weight, scales, biases

    def small(self, states: str, name: str) -> list[str]:
        """States as bytes, with their scale and zero; first made even, where it is known how large
        each column gets.
        """
        if name in self.even:
            states = self.add("Mul", states, self.constant(f"{name}.even", 1 / self.even[name]))
        return self.add_many("DynamicQuantizeLinear", 3, states)

    def norm(self, states: str, name: str) -> str:
        """Layer norm."""
        gain = self.constant(f"{name}.weight", self.state[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.state[f"{name}.bias"])
        return self.add("LayerNormalization", states, gain, bias, axis=-1, epsilon=EPSILON)


def build(state: State, heads: int = 12, wide: Sequence[int] = ()) -> bytes:
    """The int8 model of a state dict with BERT's names; `wide` names layers that attend over all
    rows.
    """
    model = BertGraph(state, heads, wide).whole()
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def options(threads: int = 0) -> onnxruntime.SessionOptions:
    """How the file wants to be opened."""
    chosen = onnxruntime.SessionOptions()
    chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    chosen.intra_op_num_threads = threads
    return chosen


def session(model: bytes | Path, threads: int = 0) -> onnxruntime.InferenceSession:
    """The model, open."""
    held = str(model) if isinstance(model, Path) else model
    return onnxruntime.InferenceSession(held, options(threads), providers=["CPUExecutionProvider"])


def vectors(
    opened: onnxruntime.InferenceSession,
    ids: Sequence[int],
    ranges: Sequence[tuple[int, int]] | None = None,
) -> NDArray[np.float32]:
    """Unit vectors of token ranges of one text, of the whole text if none are given."""
    states = opened.run([STATES], {IDS: np.array([ids], np.int64)})[0][0]
    sums = np.stack([states[start:end].sum(0) for start, end in ranges or [(0, len(ids))]])
    return np.asarray(
        sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), EPSILON), np.float32
    )


def write(state: State, pieces: Path, folder: Path, **shape: Any) -> dict[str, Any]:
    """The model, its tokenizer and a list of their hashes, in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(build(state, **shape))
    shutil.copyfile(pieces, folder / "pieces.model")
    files = {name: (folder / name).read_bytes() for name in ("model.onnx", "pieces.model")}
    listed = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
    }
    (folder / "files.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    return listed


def main() -> None:
    """Export one file of weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "state", type=Path, help="weights with BERT's names, packed or plain (.npz)"
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pieces", type=Path, default=work() / "weights" / "pieces.model")
    parser.add_argument(
        "--wide", type=int, nargs="*", default=[], help="layers that attend over all rows"
    )
    chosen = parser.parse_args()
    state = weights.read_files([chosen.state])
    for name, about in write(state, chosen.pieces, chosen.folder, wide=chosen.wide).items():
        print(f"{name}: {about['bytes'] / 1e6:.1f} MB, sha256 {about['sha256']}")


if __name__ == "__main__":
    main()
