"""A static model from a folder: one row a token, looked up and averaged; made by model2vec or sentence-transformers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from recollect.embed.rows import unit_rows
from recollect.embed.tokens import Tokens, read_tokens
from recollect.embed.weights import Safetensors, fingerprint
from recollect.errors import EmbedderError
from recollect.ports import Role, Vectors

_MAX_TOKENS = 512
_NAMES = ("embeddings", "embedding.weight")
_PLACES = ("", "0_StaticEmbedding")


def static_place(folder: Path) -> Path | None:
    """Where in a folder a static model lies, if one does."""
    for sub in _PLACES:
        file = folder / sub / "model.safetensors"
        if file.is_file() and any(name in Safetensors(file).tensors for name in _NAMES):
            return folder / sub
    return None


class StaticEmbedder:
    """Mean of the rows of a text's tokens, weighted as the file says."""

    def __init__(self, place: Path, *, name: str) -> None:
        self.name = name
        self._place = place
        self._file = Safetensors(place / "model.safetensors")
        self._key = next((key for key in _NAMES if key in self._file.tensors), "")
        shape = self._file.tensors[self._key].shape if self._key else ()
        if len(shape) != 2 or not all(shape):
            raise EmbedderError(f"{name} holds no table of rows for tokens", hint="save the static model anew")
        self.dim = shape[1]
        told = [p for p in (place / "tokenizer.json", place / "vocab.txt") if p.is_file()]
        self.id = f"static/{name}-{fingerprint([place / 'model.safetensors', *told])}@{_MAX_TOKENS}"
        self._loading = threading.Lock()

    @cached_property
    def _tokens(self) -> Tokens:
        return read_tokens(self._place, self.name)

    @cached_property
    def _tables(self) -> tuple[Any, Any, Any]:
        """Rows, and where the file has them: a weight for each token, and the row each token uses."""
        own = self._file
        rows = own[self._key]
        weights = own["weights"] if "weights" in own.tensors else None
        mapping = own["mapping"] if "mapping" in own.tensors else None
        if mapping is not None and (mapping.ndim != 1 or int(mapping.max()) >= len(rows) or int(mapping.min()) < 0):
            raise EmbedderError(f"{self.name} maps a token to a row that is not there", hint="save it anew")
        if weights is not None and (weights.ndim != 1 or len(weights) != len(rows if mapping is None else mapping)):
            raise EmbedderError(f"{self.name} has another number of weights than of tokens", hint="save it anew")
        return rows, weights, mapping

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - both roles are alike
        """One unit row per text; a text without a known token gets a fixed unit row."""
        with self._loading:
            self._tokens, self._tables  # noqa: B018
        return unit_rows([self._row(text) for text in texts], dim=self.dim, name=self.name)

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        rows, weights, mapping = self._tables
        ids = self._tokens.plain(text, _MAX_TOKENS)
        if self._key == "embeddings":  # model2vec leaves unknown words out, sentence-transformers does not
            unknown = self._tokens.unknown
            ids = [i for i in ids if i != unknown] if unknown in ids else ids
        if not ids:
            return np.zeros(self.dim, dtype=np.float32)
        if max(ids) >= len(rows if mapping is None else mapping):
            raise EmbedderError(
                f"the tokeniser of {self.name} knows more words than its table has rows",
                hint="tokenizer.json and model.safetensors do not belong together: get both anew",
            )
        at = np.array(ids)
        found = rows.take(at if mapping is None else mapping[at], axis=0).astype(np.float32, copy=False)
        if weights is None:
            return found.mean(axis=0)
        return weights[at].astype(np.float32) @ found / len(ids)
