"""A folder with an ONNX model, laid out like exports of sentence-transformers and Hugging Face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from notewell.embed.local.local_model import DOWNLOAD_AGAIN, LocalModel, family, pool
from notewell.embed.local.packaged import OnnxModel
from notewell.embed.local.tokenizer_files import Tokens, read_tokens
from notewell.embed.local.weights import Safetensors, fingerprint
from notewell.errors import EmbedderError

MODELS = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_MAX_TOKENS = 512  # passages are cut at about 400
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "lasttoken": "last"}
_SETTINGS = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer_config.json",
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
_TWO_POSITIONS_LESS = ("roberta", "xlm-roberta", "camembert", "mpnet")


class FolderEmbedder(LocalModel):
    """An ONNX transformer from a folder; its id changes with any file that affects a vector."""

    def __init__(self, folder: Path, *, model: Path | None = None, threads: int = 0) -> None:
        found = model or next((folder / name for name in MODELS if (folder / name).is_file()), None)
        if found is None:
            raise EmbedderError(
                (
                    f"{folder} has no embedding model: looked for {', '.join(MODELS)} and a static "
                    "model.safetensors"
                ),
                hint=(
                    "export it: optimum-cli export onnx --task feature-extraction --model NAME "
                    "FOLDER"
                ),
            )
        self.folder = folder
        self._path = found
        self._config = read_json(folder / "config.json")
        self._family = family(f"{folder.name} {self._config.get('_name_or_path', '')}")
        super().__init__(
            folder.name, threads=threads, query=self._family.query, document=self._family.document
        )
        self._read_modules()
        self._read_prompts()
        self._max_tokens = self._limit()
        beside = sorted(
            p for p in found.parent.iterdir() if p.name.startswith(found.name) and p != found
        )
        files = [found, *beside, *(p for name in _SETTINGS if (p := folder / name).is_file())]
        mark = fingerprint(
            [*files, *(p for dense in self._dense for p in sorted(dense.iterdir()) if p.is_file())]
        )
        self.id = f"onnx/{self.name}-{mark}@{self._max_tokens}"
        self.dim = self._width()

    def _read_modules(self) -> None:
        """Reads the steps after the transformer, from modules.json or else from the other files of
        the folder.
        """
        self._pooling = ""
        self._dense: list[Path] = []
        rows = read_json(self.folder / "modules.json", kind=list)
        for row in rows:
            kind, place = (
                str(row.get("type", "")).rpartition(".")[2],
                self.folder / str(row.get("path", "")),
            )
            if kind == "Pooling":
                self._pooling = self._pooling_of(read_json(place / "config.json"))
            elif kind == "Dense":
                self._dense.append(place)
            elif kind not in ("Transformer", "Normalize"):
                hint = "supported are Transformer, Pooling, Dense and Normalize"
                raise EmbedderError(
                    f"{self.name} has a module {kind!r}, which is not supported", hint=hint
                )
        if not self._pooling:
            settings = read_json(self.folder / "1_Pooling" / "config.json")
            self._pooling = self._pooling_of(settings) if settings else self._family.pooling

    def _pooling_of(self, settings: Mapping[str, Any]) -> str:
        on = [
            key
            for key, value in settings.items()
            if key.startswith("pooling_mode_") and value is True
        ]
        pooling = settings.get("pooling_mode") or (
            on[0].removeprefix("pooling_mode_") if len(on) == 1 else None
        )
        pooling = _POOLINGS.get(str(pooling), pooling)
        if pooling not in _POOLINGS.values():
            hint = f"supported are {', '.join(_POOLINGS.values())}"
            raise EmbedderError(f"{self.name} pools by {', '.join(on) or pooling}", hint=hint)
        if settings.get("include_prompt") is False:
            message = f"{self.name} leaves its prompt out of the pooling, which is not supported"
            raise EmbedderError(message, hint="use another model")
        return str(pooling)

    def _read_prompts(self) -> None:
        """Reads the prefixes of questions and passages, where the folder has them."""
        prompts = read_json(self.folder / "config_sentence_transformers.json").get("prompts") or {}
        if any(prompts.get(key) for key in ("query", "document", "passage")):
            self._query = str(prompts.get("query") or "")
            self._document = str(prompts.get("document") or prompts.get("passage") or "")

    def _limit(self) -> int:
        less = 2 if self._config.get("model_type") in _TWO_POSITIONS_LESS else 0
        limits = [
            read_json(self.folder / "sentence_bert_config.json").get("max_seq_length"),
            read_json(self.folder / "tokenizer_config.json").get("model_max_length"),
            (self._config.get("max_position_embeddings") or 0) - less,
        ]
        return int(min([_MAX_TOKENS, *(n for n in limits if isinstance(n, int | float) and n > 2)]))

    def _width(self) -> int:
        """The size of a row; the model is run where its settings do not state it."""
        size = (
            read_json(self._dense[-1] / "config.json").get("out_features") if self._dense else None
        )
        size = size or self._config.get("hidden_size") or self._config.get("dim")
        return size if isinstance(size, int) and size > 0 else int(self._row("a").shape[0])

    @cached_property
    def _loaded(self) -> tuple[OnnxModel, Tokens, list[tuple[Any, Any, bool]]]:
        model = OnnxModel(self._path, self.name, hint=DOWNLOAD_AGAIN)
        return (
            model,
            read_tokens(self.folder, self.name),
            [self._layer(place) for place in self._dense],
        )

    def _layer(self, place: Path) -> tuple[Any, Any, bool]:
        """Weight, bias and whether tanh follows."""
        if not (place / "model.safetensors").is_file():
            hint = "save the model again, with safetensors"
            raise EmbedderError(f"{self.name}: {place.name} has no model.safetensors", hint=hint)
        own = Safetensors(place / "model.safetensors")
        active = str(read_json(place / "config.json").get("activation_function", "")).rpartition(
            "."
        )[2]
        if active not in ("Tanh", "Identity") or "linear.weight" not in own.tensors:
            raise EmbedderError(
                f"{self.name}: {place.name} is not supported",
                hint="supported are Tanh and Identity",
            )
        bias = own["linear.bias"] if "linear.bias" in own.tensors else 0.0
        return own["linear.weight"], bias, active == "Tanh"

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        model, tokens, layers = self._loaded
        row = model(tokens.encode(text, self._max_tokens))
        if row.ndim == 1:  # a model that pools does the other steps too
            return row
        row = pool(row, self._pooling)
        for weight, bias, tanh in layers:
            row = np.asarray(weight, dtype=np.float32) @ row + bias
            row = np.tanh(row) if tanh else row
        return row


def read_json(path: Path, *, kind: type = dict) -> Any:
    """A settings file of a model; empty if there is none, an error if it is something else."""
    if not path.is_file():
        return kind()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderError(f"{path} cannot be read: {error}", hint=DOWNLOAD_AGAIN) from error
    if not isinstance(found, kind):
        raise EmbedderError(f"{path} has unexpected content", hint=DOWNLOAD_AGAIN)
    return found
