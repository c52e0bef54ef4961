"""A static model from a folder (model2vec, sentence-transformers): one row per token, looked up and
averaged.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from notewell.embed.local.local_model import LocalModel
from notewell.embed.local.tokenizer_files import Tokens, read_tokens
from notewell.embed.local.weights import Safetensors, fingerprint
from notewell.errors import EmbedderError

_MAX_TOKENS = 512
_NAMES = ("embeddings", "embedding.weight")
_PLACES = ("", "0_StaticEmbedding")


def find_static(folder: Path) -> Path | None:
    """The folder of a static model: the given one or a known one inside it, or None."""
    for sub in _PLACES:
        file = folder / sub / "model.safetensors"
        if file.is_file() and any(name in Safetensors(file).tensors for name in _NAMES):
            return folder / sub
    return None


class StaticEmbedder(LocalModel):
    """The mean of the rows of a text's tokens, with the weights of the file."""

    def __init__(self, place: Path, *, name: str) -> None:
        super().__init__(name)
        self._place = place
        self._file = Safetensors(place / "model.safetensors")
        self._key = next((key for key in _NAMES if key in self._file.tensors), "")
        shape = self._file.tensors[self._key].shape if self._key else ()
        if len(shape) != 2 or not all(shape):
            raise EmbedderError(
                f"{name} has no table of token rows", hint="save the static model again"
            )
        self.dim = shape[1]
        described = [p for p in (place / "tokenizer.json", place / "vocab.txt") if p.is_file()]
        self.id = (
            f"static/{name}-{fingerprint([place / 'model.safetensors', *described])}@{_MAX_TOKENS}"
        )

    @cached_property
    def _loaded(self) -> tuple[Tokens, Any, Any, Any]:
        """Tokeniser, rows and, if the file has them, the weight of each token and the row that each
        token uses.
        """
        own = self._file
        rows = own[self._key]
        weights = own["weights"] if "weights" in own.tensors else None
        mapping = own["mapping"] if "mapping" in own.tensors else None
        if mapping is not None and (
            mapping.ndim != 1 or int(mapping.max()) >= len(rows) or int(mapping.min()) < 0
        ):
            raise EmbedderError(
                f"{self.name} maps a token to a row that does not exist", hint="save it again"
            )
        if weights is not None and (
            weights.ndim != 1 or len(weights) != len(rows if mapping is None else mapping)
        ):
            raise EmbedderError(
                f"{self.name} does not have one weight per token", hint="save it again"
            )
        return read_tokens(self._place, self.name), rows, weights, mapping

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        tokens, rows, weights, mapping = self._loaded
        ids = tokens.plain(text, _MAX_TOKENS)
        # model2vec leaves unknown words out, sentence-transformers does not
        if self._key == "embeddings":
            ids = [i for i in ids if i != tokens.unknown]
        if not ids:
            return np.zeros(self.dim, dtype=np.float32)
        if max(ids) >= len(rows if mapping is None else mapping):
            hint = "tokenizer.json and model.safetensors do not match: download both again"
            raise EmbedderError(
                f"the tokeniser of {self.name} has more words than its table has rows", hint=hint
            )
        at = np.array(ids)
        found = rows.take(at if mapping is None else mapping[at], axis=0).astype(
            np.float32, copy=False
        )
        if weights is None:
            return found.mean(axis=0)
        return weights[at].astype(np.float32) @ found / len(ids)
