"""A deterministic embedder without a model: hashed words and character trigrams.

It compares spelling, not meaning, so it is for tests and a last resort. The same text has the same
vector everywhere.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from notewell.text.words import index_terms
from notewell.types import Role, Vectors


class HashedEmbedder:
    """Signed feature hashing of terms (weight 1) and of the trigrams inside them (weight 0.4)."""

    def __init__(self, dim: int = 256) -> None:
        self.dim = dim
        self.id = f"hashed@{dim}"

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:  # noqa: ARG002 - both roles are alike
        """One unit row per text; a text without terms gets a fixed unit row."""
        import numpy as np  # noqa: PLC0415

        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(out, texts, strict=True):
            for term in index_terms(text)[0].split():
                self._add(row, term, 1.0)
                padded = f"<{term}>"
                for i in range(len(padded) - 2):
                    self._add(row, padded[i : i + 3], 0.4)
            if not row.any():
                row[0] = 1.0
        return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True), dtype=np.float32)

    def _add(self, row: Vectors, feature: str, weight: float) -> None:
        key = zlib.crc32(feature.encode("utf-8", "replace"))
        row[key % self.dim] += weight if key >> 31 else -weight
