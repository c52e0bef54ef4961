"""GGUF models through llama-cpp-python, an optional package."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any

from notewell.embed.local.local_model import DOWNLOAD_AGAIN, LocalModel, family
from notewell.embed.local.weights import fingerprint
from notewell.errors import EmbedderError

_MAX_TOKENS = 512


class GgufEmbedder(LocalModel):
    """A GGUF embedding model; one text at a time, since the model is stateful while it reads."""

    def __init__(self, path: Path, *, threads: int = 0) -> None:
        try:
            with path.open("rb") as file:
                mark = file.read(4)
        except OSError as error:
            raise EmbedderError(
                f"{path} cannot be read: {error.strerror}", hint="check the file"
            ) from error
        if mark != b"GGUF":
            raise EmbedderError(f"{path} is not a GGUF file", hint=DOWNLOAD_AGAIN)
        try:
            import llama_cpp  # noqa: PLC0415 - an optional package
        except (ImportError, OSError, RuntimeError) as error:  # the package loads a shared library
            hint = 'pip install "notewell[gguf]"'
            raise EmbedderError(
                f"a GGUF model needs llama-cpp-python: {error}", hint=hint
            ) from error
        try:
            sizes = dict.fromkeys(("n_ctx", "n_batch", "n_ubatch"), _MAX_TOKENS)
            sizes |= dict.fromkeys(("n_threads", "n_threads_batch"), threads or os.cpu_count() or 1)
            self._model: Any = llama_cpp.Llama(
                model_path=str(path), embedding=True, verbose=False, **sizes
            )
        except Exception as error:
            hint = "is it an embedding model? try a newer llama-cpp-python"
            raise EmbedderError(f"{path.name} cannot be loaded: {error}", hint=hint) from error
        # At exit it would free its memory too late, and complain on the terminal.
        weakref.finalize(self, self._model.close)
        own = family(f"{path.stem} {self._model.metadata.get('general.name', '')}")
        super().__init__(path.stem, query=own.query, document=own.document)
        self.dim = int(self._model.n_embd())
        limit = min(_MAX_TOKENS, int(self._model.n_ctx()))
        self.id = f"gguf/{self.name}-{fingerprint([path])}@{limit}"
        self._one = threading.Lock()

    def _row(self, text: str) -> Any:
        import numpy as np  # noqa: PLC0415

        text = text.encode("utf-8", "ignore").decode("utf-8")
        try:
            with self._one:
                found = np.asarray(self._model.embed(text, truncate=True), dtype=np.float32)
        except Exception as error:
            raise EmbedderError(
                f"{self.name} failed: {error}", hint="is it an embedding model?"
            ) from error
        # A model without pooling returns one row per token.
        return found.mean(axis=0) if found.ndim == 2 else found
