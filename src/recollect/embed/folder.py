"""A local folder with an ONNX model, laid out as sentence-transformers and Hugging Face exports are."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.embed.families import family
from recollect.embed.local import OnnxModel
from recollect.embed.rows import pool, side_by_side, unit_rows
from recollect.embed.tokens import Tokens, read_tokens
from recollect.embed.weights import Safetensors, fingerprint
from recollect.errors import EmbedderError
from recollect.ports import Role, Vectors

MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_MAX_TOKENS = 512  # passages are cut at about 400
_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_SETTINGS = (
    "tokenizer.json", "vocab.txt", "tokenizer_config.json", "config.json", "modules.json",
    "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
)  # fmt: skip
_TWO_POSITIONS_LESS = ("roberta", "xlm-roberta", "camembert", "mpnet")


class FolderEmbedder:
    """An ONNX transformer from a folder; its id changes with any of the files that make a vector."""

    def __init__(self, folder: Path, *, model: Path | None = None, threads: int = 0) -> None:
        found = model or next((folder / name for name in MODELS if (folder / name).is_file()), None)
        if found is None:
            raise EmbedderError(
                f"{folder} holds no embedding model: looked for {', '.join(MODELS)} and a static model.safetensors",
                hint="export it: optimum-cli export onnx --task feature-extraction --model NAME FOLDER",
            )
        self.folder = folder
        self.name = folder.name
        self._path = found
        self._threads = threads
        self._loading = threading.Lock()
        self._config = read_json(folder / "config.json")
        self._read_modules()
        self._read_prompts()
        self._max_tokens = self._limit()
        beside = sorted(p for p in found.parent.iterdir() if p.name.startswith(found.name) and p != found)
        files = [found, *beside, *(p for name in _SETTINGS if (p := folder / name).is_file())]
        mark = fingerprint([*files, *(p for dense in self._dense for p in sorted(dense.iterdir()) if p.is_file())])
        self.id = f"onnx/{self.name}-{mark}@{self._max_tokens}"
        self.dim = self._width()

    def _read_modules(self) -> None:
        """What is done after the transformer, from modules.json or, without it, from what lies in the folder."""
        self._pooling = ""
        self._dense: list[Path] = []
        rows = read_json(self.folder / "modules.json", kind=list)
        for row in rows:
            kind, place = str(row.get("type", "")).rpartition(".")[2], self.folder / str(row.get("path", ""))
            if kind == "Pooling":
                self._pooling = self._pooling_of(read_json(place / "config.json"))
            elif kind == "Dense":
                self._dense.append(place)
            elif kind not in ("Transformer", "Normalize"):
                raise EmbedderError(
                    f"{self.name} has a module of the kind {kind!r}, which is not known here",
                    hint="known are Transformer, Pooling, Dense and Normalize",
                )
        if not self._pooling:
            told = read_json(self.folder / "1_Pooling" / "config.json")
            self._pooling = self._pooling_of(told) if told else family(self._called()).pooling

    def _called(self) -> str:
        """The names this model goes by, to know its family."""
        return f"{self.name} {self._config.get('_name_or_path', '')}"

    def _pooling_of(self, told: Mapping[str, Any]) -> str:
        on = [key for key, value in told.items() if key.startswith("pooling_mode_") and value is True]
        one = told.get("pooling_mode") or (_POOLINGS.get(on[0]) if len(on) == 1 else None)
        one = {"lasttoken": "last"}.get(str(one), one)
        if one not in _POOLINGS.values():
            raise EmbedderError(
                f"{self.name} pools by {', '.join(on) or one}", hint=f"known are {', '.join(_POOLINGS.values())}"
            )
        if told.get("include_prompt") is False:
            raise EmbedderError(
                f"{self.name} leaves its prompt out when it pools, which is not known here", hint="use another model"
            )
        return str(one)

    def _read_prompts(self) -> None:
        """What stands before a question and before a passage: as the folder says, else as its family has it."""
        told = read_json(self.folder / "config_sentence_transformers.json").get("prompts") or {}
        known = family(self._called())
        said = any(told.get(key) for key in ("query", "document", "passage"))
        self._query = str(told.get("query") or "") if said else known.query
        self._document = str(told.get("document") or told.get("passage") or "") if said else known.document

    def _limit(self) -> int:
        less = 2 if self._config.get("model_type") in _TWO_POSITIONS_LESS else 0
        limits = [
            read_json(self.folder / "sentence_bert_config.json").get("max_seq_length"),
            read_json(self.folder / "tokenizer_config.json").get("model_max_length"),
            (self._config.get("max_position_embeddings") or 0) - less,
        ]
        return int(min([_MAX_TOKENS, *(n for n in limits if isinstance(n, int | float) and n > 2)]))

    def _width(self) -> int:
        """How many numbers a row has; the model is asked when its settings do not say."""
        told = read_json(self._dense[-1] / "config.json").get("out_features") if self._dense else None
        told = told or self._config.get("hidden_size") or self._config.get("dim")
        return told if isinstance(told, int) and told > 0 else int(self._row("a").shape[0])

    @cached_property
    def _model(self) -> OnnxModel:
        return OnnxModel(self._path, self.name, hint="get the file anew; a large-file pointer is not the file")

    @cached_property
    def _tokens(self) -> Tokens:
        return read_tokens(self.folder, self.name)

    @cached_property
    def _layers(self) -> list[tuple[Any, Any, bool]]:
        return [self._layer(place) for place in self._dense]

    def _layer(self, place: Path) -> tuple[Any, Any, bool]:
        """Weight, bias and whether tanh follows."""
        if not (place / "model.safetensors").is_file():
            raise EmbedderError(
                f"{self.name}: {place.name} has no model.safetensors", hint="save the model anew, with safetensors"
            )
        own = Safetensors(place / "model.safetensors")
        active = str(read_json(place / "config.json").get("activation_function", "")).rpartition(".")[2]
        if active not in ("Tanh", "Identity") or "linear.weight" not in own.tensors:
            raise EmbedderError(f"{self.name}: its {place.name} is not known here", hint="known are Tanh and Identity")
        bias = own["linear.bias"] if "linear.bias" in own.tensors else 0.0
        return own["linear.weight"], bias, active == "Tanh"

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text; each runs alone, so that its row does not depend on its neighbours."""
        prefix = self._query if role == "query" else self._document
        with self._loading:  # once, before the threads start
            self._model, self._tokens, self._layers  # noqa: B018
        rows = side_by_side(self._row, [prefix + text for text in texts], threads=self._threads)
        return unit_rows(rows, dim=self.dim, name=self.name)

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        row = self._model(self._tokens.encode(text, self._max_tokens))
        if row.ndim == 1:  # the file pools by itself, and then it does the rest too
            return row
        row = pool(row, self._pooling)
        for weight, bias, tanh in self._layers:
            row = np.asarray(weight, dtype=np.float32) @ row + bias
            row = np.tanh(row) if tanh else row
        return row


def read_json(path: Path, *, kind: type = dict) -> Any:
    """A settings file of a model; empty when it is not there, an error when it is something else."""
    if not path.is_file():
        return kind()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderError(f"{path} cannot be read: {error}", hint="get the model's files anew") from error
    if not isinstance(found, kind):
        raise EmbedderError(f"{path} is not what it should be", hint="get the model's files anew")
    return found
