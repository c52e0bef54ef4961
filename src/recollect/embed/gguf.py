"""GGUF models through llama-cpp-python, an optional package."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.embed.families import family
from recollect.embed.rows import unit_rows
from recollect.embed.weights import fingerprint
from recollect.errors import EmbedderError
from recollect.ports import Role, Vectors

_MAX_TOKENS = 512


class GgufEmbedder:
    """A GGUF embedding model; one text at a time, since the model keeps its state while it reads."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        self.name = path.stem
        try:
            with path.open("rb") as file:
                mark = file.read(4)
        except OSError as error:
            raise EmbedderError(f"{path} cannot be read: {error.strerror}", hint="check the file") from error
        if mark != b"GGUF":
            raise EmbedderError(f"{path} is no GGUF file", hint="get it anew; a large-file pointer is not the file")
        try:
            import llama_cpp  # noqa: PLC0415 - an optional package
        except (ImportError, OSError, RuntimeError) as error:  # the package loads a shared library
            raise EmbedderError(
                f"a GGUF model needs llama-cpp-python: {error}", hint='pip install "recollect[gguf]"'
            ) from error
        try:
            self._model: Any = llama_cpp.Llama(
                model_path=str(path),
                embedding=True,
                n_ctx=_MAX_TOKENS,
                n_batch=_MAX_TOKENS,
                n_ubatch=_MAX_TOKENS,
                n_threads=threads or os.cpu_count() or 1,
                n_threads_batch=threads or os.cpu_count() or 1,
                verbose=False,
            )
        except Exception as error:
            raise EmbedderError(
                f"{path.name} cannot be loaded: {error}", hint="is it an embedding model? try a newer llama-cpp-python"
            ) from error
        # By itself it frees its memory too late at exit, and complains on the terminal.
        weakref.finalize(self, self._model.close)
        called = f"{self.name} {self._model.metadata.get('general.name', '')}"
        self._family = family(called)
        self.dim = int(self._model.n_embd())
        self._limit = min(_MAX_TOKENS, int(self._model.n_ctx()))
        self.id = f"gguf/{self.name}-{fingerprint([path])}@{self._limit}"
        self._one = threading.Lock()

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text."""
        prefix = self._family.query if role == "query" else self._family.document
        with self._one:
            rows = [self._row(prefix + text) for text in texts]
        return unit_rows(rows, dim=self.dim, name=self.name)

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        text = text.encode("utf-8", "ignore").decode("utf-8")
        try:
            found = np.asarray(self._model.embed(text, truncate=True), dtype=np.float32)
        except Exception as error:
            raise EmbedderError(f"{self.name} failed: {error}", hint="is it an embedding model?") from error
        # A model without pooling of its own gives a row a token.
        return found.mean(axis=0) if found.ndim == 2 else found
